# SPDX-License-Identifier: GPL-2.0-or-later
"""XQM's fluid model of TCP that loses packets elsewhere too: section II and III of the paper.

Equation (9), multiplied by 2 x, is linear in the square of the throughput x, and what it multiplies
is a round trip old:

    d(x^2)/dt = 2 x(t-r) (1 - q) / r^2 - x(t-r) q x^2

with q of D_bs ago. It is integrated in that form, where it is steep nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .dde import Numbers, Past, relax
from .figure import ModelFigure, Panel, thinned

SEED = 1  # of the delays that the paper draws at random
STEP_S = 4e-3
FULL = 1e-6  # packets: as near to its end the buffer counts as full

Loss = Callable[[Numbers], Numbers]
"""Exogenous loss rate p_e, 0..1, at the times given in s: one for each flow, or for each system."""


def throughput(loss_rate: npt.ArrayLike, rtt_s: npt.ArrayLike) -> Numbers:
    """Packets/s that a flow settles at: eq. (12). LOSS_RATE 0..1, not 0; RTT_S with queueing, s."""
    rate = np.asarray(loss_rate, float)
    return np.asarray(np.sqrt(2 * (1 / rate - 1)) / rtt_s)


def quiescent_loss(share: npt.ArrayLike, rtt_s: npt.ArrayLike) -> Numbers:
    """Loss rate, 0..1, at which a flow settles at SHARE packets/s: eq. (16), (12) turned round."""
    return np.asarray(2 / (np.multiply(share, rtt_s) ** 2 + 2))


def jain(rates: Numbers) -> Numbers:
    """Fairness index over the last axis: eq. (13)."""
    return np.asarray(rates.sum(axis=-1) ** 2 / (rates.shape[-1] * (rates**2).sum(axis=-1)))


def long_term(loss_rate: Numbers, hidden: float) -> Numbers:
    """What senders see when HIDDEN, p_h, is taken off: eq. (14). Rates are 0..1."""
    return np.maximum(0.0, loss_rate - hidden)


def short_term(loss_rate: Numbers, average: float, band: float) -> Numbers:
    """What senders see behind a dead band of BAND, p_h, around AVERAGE, p_a: eq. (15)."""
    seen = np.where(loss_rate > average + band, loss_rate - band, average)
    return np.where(loss_rate < average - band, loss_rate + band, seen)


@dataclass(frozen=True)
class Red:
    """Thresholds in packets, maximum probability, and weight a packet: eq. (6), (7), not gentle."""

    low: float = 50.0
    high: float = 120.0
    probability: float = 0.1
    weight: float = 1e-5

    def signal(self, average: Numbers) -> Numbers:
        """p_c at an average queue, packets: eq. (6)."""
        rise = self.probability * (average - self.low) / (self.high - self.low)
        return np.where(average <= self.low, 0.0, np.where(average < self.high, rise, 1.0))


@dataclass(frozen=True)
class Link:
    """The bottleneck; without RED it is DropTail."""

    capacity: float = 2000.0  # packets/s
    buffer: float = 250.0  # packets
    red: Red | None = None


@dataclass(frozen=True)
class Course:
    """What happened; the first axis is time, the second the system."""

    time_s: Numbers
    throughput: Numbers  # packets/s; the third axis is the flow
    queue: Numbers  # packets
    average: Numbers  # RED's, packets


def fluid(
    delays_s: npt.ArrayLike,
    ahead: npt.ArrayLike,
    loss: Loss,
    seconds: float,
    link: Link = Link(),
    step_s: float = STEP_S,
) -> Course:
    """Equations (1)-(10), from windows of one packet and an empty queue.

    DELAYS_S: propagation delay D of each flow, s; a row for each of several systems, which have
    nothing to do with each other. AHEAD: alpha of (2), how much of it lies ahead of the bottleneck;
    0..1. LOSS: exogenous. The buffer's end bounds the queue; under RED only (6) tells senders.

    Raises ValueError if a step is more than twice the shortest delay to or from the bottleneck.
    """
    delays = np.atleast_2d(np.asarray(delays_s, float))
    systems, flows = delays.shape
    delay = delays.ravel()
    to_queue = delay * np.broadcast_to(ahead, delays.shape).ravel()  # (2)
    if step_s > 2 * min(to_queue.min(), (delay - to_queue).min()):
        raise ValueError("a step must not be more than twice a delay to or from the bottleneck")
    count, system = delay.size, np.repeat(np.arange(systems), flows)
    steps = round(seconds / step_s)
    past = Past(np.concatenate([1 / delay, np.zeros(2 * systems)]), steps, step_s)
    asked = np.concatenate([np.arange(count)] * 2 + [count + system, count + systems + system])
    square = past.values[0, :count] ** 2
    earlier, queue, average = np.zeros((3, systems))
    for number in range(steps):
        now = (number + 0.5) * step_s
        between = (1.5 * queue - 0.5 * earlier).clip(0, link.buffer)
        rtt = delay + between[system] / link.capacity  # (1)
        signalled = now - (rtt - to_queue)  # (10)
        arriving, acked, queued, averaged = past.at(
            np.concatenate([now - to_queue, now - rtt, signalled, signalled]), asked
        ).reshape(4, count)
        if link.red:
            congestion = link.red.signal(averaged)
            forget = np.full(systems, link.red.weight * link.capacity)
            average = relax(average, forget * between, forget, step_s)  # (7)
        else:
            congestion = (queued >= link.buffer - FULL).astype(float)  # (5)
        lost = 1 - (1 - congestion) * (1 - loss(signalled.reshape(delays.shape)).ravel())  # (4)
        square = relax(square, 2 * acked * (1 - lost) / rtt**2, acked * lost, step_s)  # (9)
        surplus = arriving.reshape(delays.shape).sum(axis=1) - link.capacity  # (3)
        earlier, queue = queue, (queue + step_s * surplus).clip(0, link.buffer)
        past.add(np.concatenate([np.sqrt(square), queue, average]))
    rates, queues, averages = np.split(past.values[1:], [count, count + systems], axis=1)
    return Course(past.times_s, rates.reshape(-1, systems, flows), queues, averages)


def drawn_flows() -> tuple[Numbers, Numbers]:
    """Delays D, s, and alpha of the 20 flows of section II.D."""
    draw = np.random.default_rng(SEED)
    return draw.uniform(0.08, 0.12, 20), draw.uniform(0.25, 0.5, 20)


def equal_flows() -> tuple[Numbers, Numbers]:
    """The same with D 100 ms for all."""
    delays, ahead = drawn_flows()
    return np.full_like(delays, 0.1), ahead


def stepped(*ends: tuple[float, float]) -> Loss:
    """Loss rates, each with the time in s until which it holds."""
    return lambda when: np.select([when < end for end, _ in ends], [rate for _, rate in ends])


@dataclass(frozen=True)
class Shared:
    """Flows that share a link alike, the queue at XQM's target."""

    rate_bps: float
    frame_bytes: int
    rtts_s: tuple[float, ...]  # base
    target: float  # packets

    @property
    def quiescent(self) -> Numbers:
        """Loss rate of each flow, 0..1: eq. (16)."""
        capacity = self.rate_bps / 8 / self.frame_bytes
        rtts = np.array(self.rtts_s) + self.target / capacity
        return quiescent_loss(capacity / len(self.rtts_s), rtts)

    def imposed(self, loss_rate: npt.ArrayLike) -> Numbers:
        """What XQM adds to an exogenous LOSS_RATE, 0..1, in the mean over flows: Figure 5."""
        missing = self.quiescent - np.asarray(loss_rate, float)[..., None]
        return np.asarray(np.maximum(missing, 0).mean(axis=-1))

    def hidden(self, loss_rate: npt.ArrayLike) -> Numbers:
        """What it takes away."""
        above = np.asarray(loss_rate, float)[..., None] - self.quiescent
        return np.asarray(np.maximum(above, 0).mean(axis=-1))


TABLE_1 = Shared(16e6, 1014, tuple(0.024 + 0.008 * step for step in range(20)), 50.0)
"""Table I's flows, frames as the lab's shaper counts them."""


def cyclic(when: Numbers) -> Numbers:
    """Figure 4's: 3 %, and from 10 to 20 s +-2 % around it. The period, 2 s, is not in print."""
    swing = 0.02 * np.sin(np.pi * (when - 10))
    return 0.03 + np.where((when >= 10) & (when < 20), swing, 0.0)


def fig2() -> ModelFigure:
    """DropTail and RED with 0, 1 and 5 % of exogenous loss for 20 s each."""
    delays, ahead = drawn_flows()
    loss = stepped((20, 0.0), (40, 0.01), (np.inf, 0.05))
    panels = []
    for name, link in (("DropTail", Link()), ("RED", Link(red=Red()))):
        course = fluid(delays, ahead, loss, 60, link)
        rates = course.throughput[:, 0]
        shown = {
            "shortest RTT": rates[:, delays.argmin()],
            "mean flow": rates.mean(axis=1),
            "longest RTT": rates[:, delays.argmax()],
        }
        panels.append(
            Panel(
                "throughput (packets/s)",
                {f"{name}, {key}": thinned(course.time_s, y) for key, y in shown.items()},
            )
        )
        queues = {f"{name}, queue": thinned(course.time_s, course.queue[:, 0])}
        if link.red:
            queues[f"{name}, average"] = thinned(course.time_s, course.average[:, 0])
        panels.append(Panel("queue (packets)", queues))
    return ModelFigure(
        "Exogenous loss of 0, 1 and 5 %",
        "time (s)",
        tuple(panels),
        "As in print: DropTail swings until 1 % of loss settles it at its share of 100 packets/s;"
        " RED's queue empties at 20 s and comes back to 50; at 5 % both queues are empty and the"
        " link idles. RED settles at 16 s, in print around 10.",
    )


def fig3a() -> ModelFigure:
    """Throughput against a constant exogenous loss, DropTail, D 100 ms for all."""
    delays, ahead = equal_flows()
    rates = np.linspace(0, 0.05, 26)
    course = fluid(np.tile(delays, (len(rates), 1)), ahead, lambda _: rates[:, None] + 0 * _, 40)
    settled = course.throughput[course.time_s >= 20].mean(axis=2)
    percent = 100 * rates
    return ModelFigure(
        "Throughput of a flow, 20 to 40 s",
        "exogenous loss (%)",
        (
            Panel(
                "throughput (packets/s)",
                {
                    "highest": (percent, settled.max(axis=0)),
                    "mean": (percent, settled.mean(axis=0)),
                    "lowest": (percent, settled.min(axis=0)),
                    "eq. (12), empty queue": (percent[5:], throughput(rates[5:], 0.1)),
                },
            ),
        ),
        "As in print: the share, 100 packets/s, is held from about 1 to 2 %; below, throughput"
        " swings; above, it falls as eq. (12) says.",
    )


def fig3bc() -> ModelFigure:
    """Fairness over 1-s intervals and queue with 0, 2 and 7 % of loss, DropTail, short RTTs."""
    draw = np.random.default_rng(SEED)
    near, far = draw.uniform(0.001, 0.004, (2, 20))
    delays = 2 * (near + 0.001 + far)
    loss = stepped((100, 0.0), (150, 0.02), (np.inf, 0.07))
    course = fluid(delays, near / delays, loss, 200, step_s=STEP_S / 2)
    time = np.linspace(50.5, 199.5, 150)
    each = (len(time), round(2 / STEP_S))
    late = np.flatnonzero(course.time_s > 50)
    rates = course.throughput[late, 0].reshape(*each, len(delays)).mean(axis=1)
    queue = course.queue[late, 0].reshape(each)
    return ModelFigure(
        "Exogenous loss of 0, 2 (from 100 s) and 7 % (from 150 s)",
        "time (s)",
        (
            Panel("Jain's index over 1 s", {"fairness": (time, jain(rates))}),
            Panel(
                "queue in 1 s (packets)",
                {
                    "most": (time, queue.max(axis=1)),
                    "mean": (time, queue.mean(axis=1)),
                    "least": (time, queue.min(axis=1)),
                },
            ),
        ),
        "Print has ns-2 here: fairness up at 2 %, down at 7 %, where the queue nears 0. In the"
        " model it goes up twice, from .92 to .96 and .998: all flows see the same losses, so only"
        " RTTs and synchrony set them apart; at 7 % the queue stands still at 79 packets.",
    )


def fig5() -> ModelFigure:
    """Losing and hiding against the exogenous loss rate, flows as in Table I."""
    rates = np.linspace(0, 0.08, 81)
    imposed, hidden = TABLE_1.imposed(rates), TABLE_1.hidden(rates)
    return ModelFigure(
        "What XQM imposes, and hides",
        "exogenous loss rate",
        (
            Panel(
                "loss rate",
                {
                    "imposed": (rates, imposed),
                    "hidden, below 0": (rates, -hidden),
                    "both": (rates, imposed - hidden),
                },
            ),
        ),
        "Print has one flow: a line that falls to 0 at its quiescent rate, and another that rises"
        f" from there. These are means over Table I's flows, whose rates are"
        f" {100 * TABLE_1.quiescent.min():.1f} to {100 * TABLE_1.quiescent.max():.1f} %.",
    )


def fig4() -> ModelFigure:
    """Loss of 3 %, cyclic from 10 to 20 s: as it is, adjusted (14), and compensated (14), (15)."""
    delays, ahead = equal_flows()
    courses = {
        "as it is": cyclic,
        "adjusted": lambda when: long_term(cyclic(when), 0.01),
        "adjusted and compensated": lambda when: short_term(
            long_term(cyclic(when), 0.01), average=0.02, band=0.01
        ),
    }
    panels = []
    for name, loss in courses.items():
        course = fluid(delays, ahead, loss, 30)
        rate = thinned(course.time_s, course.throughput[:, 0].mean(axis=1))
        panels.append(Panel("throughput (packets/s)", {f"loss {name}": rate}))
    return ModelFigure(
        "Loss of 3 %, between 1 and 5 % from 10 to 20 s",
        "time (s)",
        tuple(panels),
        "As in print: 80 packets/s of a share of 100 as it is; the share, but wide swings, when the"
        " mean is brought to 2 %; the dead band takes most of the swings away.",
    )
