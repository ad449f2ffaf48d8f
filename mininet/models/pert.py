# SPDX-License-Identifier: GPL-2.0-or-later
"""PERT's fluid model and stability: sections 5 and 6 of the paper.

C is the link's packets/s, N the flows, R their round-trip time in s, L the slope of the probability
in 1/s: the paper's L_PERT. The decrease is 0.5, as in the paper's analysis, unless it is given; the
protocol's is 0.35.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .dde import Numbers, Past, abscissa, relax
from .figure import ModelFigure, Panel, thinned

DECREASE = 0.5
RESPONSE_MS = ((0.0, 0.0), (5.0, 0.0), (10.0, 0.05), (20.0, 1.0))  # queueing delay, probability


@dataclass(frozen=True)
class Network:
    """What the flows meet."""

    capacity: float  # C, packets/s
    flows: float  # N
    rtt_s: float  # R

    @property
    def window(self) -> float:
        """W* in packets: eq. (9)."""
        return self.rtt_s * self.capacity / self.flows

    def response(self, decrease: float = DECREASE) -> float:
        """p*, per ACK: eq. (9), there with a decrease of 0.5. Not below 1 if windows are small."""
        return 1 / (decrease * self.window**2)


@dataclass(frozen=True)
class Curve:
    """The response and the average: eq. (4) and (5)."""

    t_min_s: float = 0.05
    t_max_s: float = 0.1
    p_max: float = 0.1
    weight: float = 0.99  # alpha, of the past
    sampling_s: float = 1e-4  # delta, between two ACKs

    @property
    def slope(self) -> float:
        """L_PERT, 1/s: eq. (10)."""
        return self.p_max / (self.t_max_s - self.t_min_s)

    @property
    def forgetting(self) -> float:
        """K, 1/s, which is negative: eq. (10)."""
        return math.log(self.weight) / self.sampling_s

    def delay(self, probability: float) -> float:
        """Queueing delay, s, of a response probability; beyond p_max too: eq. (4) as it stands."""
        return self.t_min_s + probability / self.slope


SIMULATED = Curve()
"""Section 5.3's."""


def theorem_1(network: Network, curve: Curve) -> float:
    """How far from its bound the left-hand side of (11) is: stable for sure if at least 1.

    Assumes W(t) = W(t - R), a decrease of 0.5, and that p* is at most p_max.
    """
    window, rtt = network.window, network.rtt_s
    crossover = 0.1 * min(2 / (window * rtt), 1 / rtt)  # (12)
    left = curve.slope * rtt * window**2 / 4
    return math.hypot(crossover / curve.forgetting, 1) / left


def least_sampling(network: Network, curve: Curve) -> float:
    """The least delta, s, that Theorem 1 asks for; 0 if it asks for none: eq. (13)."""
    window, rtt = network.window, network.rtt_s
    crossover = 0.1 * min(2 / (window * rtt), 1 / rtt)
    beyond = (curve.slope * rtt * window**2 / 4) ** 2 - 1
    return -math.log(curve.weight) / crossover * math.sqrt(max(beyond, 0.0))


def theorem_2(network: Network) -> tuple[float, float]:
    """m in 1/s and K in 1/s^2 for PERT/PI: eq. (21). NETWORK has the fewest flows, longest RTT.

    Raises ValueError where (20), a window well above 2, does not hold: at 2 or less.
    """
    window, rtt = network.window, network.rtt_s
    if window <= 2:
        raise ValueError(f"windows of {window:.2f} packets: the theorem needs more than 2")
    m = 2 / (window * rtt)
    return m, m * math.hypot(rtt * m, 1) / (rtt * window**2 / 4)


def growth(
    network: Network,
    curve: Curve,
    decrease: float = DECREASE,
    *,
    same: bool = False,
    fixed_rtt: bool = True,
) -> float:
    """Rate, 1/s, at which (2)-(7) leave their equilibrium; negative: they come back to it.

    SAME: with the proof's W(t) = W(t - R), as the end of section 5.3 has it. FIXED_RTT: as in (8)
    and (14); else the queue is part of R in (7), which calms. Assumes a queueing delay beyond t_min
    and a probability that goes on rising beyond p_max, as in (14).
    """
    now, then = _window_and_queue(network, same=same, fixed_rtt=fixed_rtt)
    k = curve.forgetting
    now[2, 1:] = -k, k  # the average
    then[0, 2] = -decrease * curve.slope * network.window**2 / network.rtt_s
    return abscissa(now, then, network.rtt_s)


def growth_pi(
    network: Network, m: float, k: float, decrease: float = DECREASE, *, fixed_rtt: bool = False
) -> float:
    """The same for PERT/PI, with the gains M, 1/s, and K, 1/s^2.

    With FIXED_RTT, as in (8), queue and controller both integrate, and the gains of (21) are stable
    nowhere: Theorem 2 is right only if the queue is part of R, as in the paper that it follows.
    """
    now, then = _window_and_queue(network, same=False, fixed_rtt=fixed_rtt)
    now[2, 1] = 1  # the integral of Tq
    then[0, 1:] = -decrease * network.window**2 / network.rtt_s * k * np.array([1 / m, 1])
    return abscissa(now, then, network.rtt_s)


def _window_and_queue(network: Network, *, same: bool, fixed_rtt: bool) -> tuple[Numbers, Numbers]:
    """W and Tq of (8) near the equilibrium, and room for a third quantity: now, and R ago."""
    now, then = np.zeros((2, 3, 3))
    fall = 1 / (network.window * network.rtt_s)
    now[0, 0], then[0, 0] = (-2 * fall, 0) if same else (-fall, -fall)
    now[1, 0] = 1 / network.window
    now[1, 1] = 0 if fixed_rtt else -1 / network.rtt_s
    return now, then


def fluid(
    rtts_s: npt.ArrayLike,
    seconds: float,
    capacity: float = 100.0,
    flows: float = 5.0,
    curve: Curve = SIMULATED,
    step_s: float = 2e-3,
    *,
    same: bool = False,
) -> tuple[Numbers, Numbers]:
    """Equations (14) from (1, 1, 1), for each RTT: time in s, and windows with time as first axis.

    W is in packets, the delays in s. As printed, the probability goes below 0 and beyond 1 with the
    average, and the delay below 0. SAME: with W(t) in the place of W(t - R).

    Raises ValueError if a step is more than twice the shortest RTT.
    """
    rtt = np.atleast_1d(np.asarray(rtts_s, float))
    if step_s > 2 * rtt.min():
        raise ValueError("a step must not be more than twice a round-trip time")
    steps, k = round(seconds / step_s), np.full_like(rtt, curve.forgetting)
    past = Past(np.ones(2 * rtt.size), steps, step_s)
    window, delay, average = np.ones((3, rtt.size))
    columns, now = np.arange(2 * rtt.size), np.arange(rtt.size)
    for number in range(steps):
        middle = (number + 0.5) * step_s
        ago, averaged = past.at(np.tile(middle - rtt, 2), columns).reshape(2, -1)
        if same:
            ago = past.at(np.full_like(rtt, middle), now)
        decay = curve.slope * ago * (averaged - curve.t_min_s) / (2 * rtt)
        later = relax(window, 1 / rtt, decay, step_s)
        longer = delay + step_s * (flows * (window + later) / 2 / (rtt * capacity) - 1)
        average = relax(average, -k * (delay + longer) / 2, -k, step_s)
        window, delay = later, longer
        past.add(np.concatenate([window, average]))
    return past.times_s, past.values[1:, : rtt.size]


RTTS_S = (0.1, 0.16, 0.171)


def response_probability(queue_ms: float) -> float:
    """Of an early response to an ACK, the protocol's own: section 3 and Figure 5."""
    delays, probabilities = zip(*RESPONSE_MS, strict=True)
    return float(np.interp(queue_ms, delays, probabilities))


def fig5() -> ModelFigure:
    """The response curve of section 3."""
    delay = np.linspace(0, 25, 251)
    curve = np.array([response_probability(queue_ms) for queue_ms in delay])
    return ModelFigure(
        "Probability of a response to an ACK",
        "queueing delay: srtt .99 above the propagation delay P (ms)",
        (Panel("probability", {"pert": (delay, curve)}),),
        "As in print: 0 up to T_min = P + 5 ms, p_max = .05 at T_max = P + 10 ms, 1 from 2 T_max"
        " on, which is read as P + 20 ms. include/aqm/pert.h is held against it by tests.",
    )


def fig13a() -> ModelFigure:
    """Least sampling interval against the fewest flows: eq. (13), 10 Mb/s of 1250 bytes, 200 ms."""
    flows = np.arange(1.0, 51.0)
    least = np.array([least_sampling(Network(1000, n, 0.2), SIMULATED) for n in flows])
    return ModelFigure(
        "Least sampling interval for stability",
        "flows, at least",
        (Panel("delta (s)", {"eq. (13)": (flows, least)}, log_y=True),),
        "As in print: it falls with the flows, to 0.1 s (0.115) at 40.",
    )


def fig13() -> ModelFigure:
    """The fluid model (14) at R = 100, 160 and 171 ms."""
    time, windows = fluid(RTTS_S, 60)
    panels = tuple(
        Panel("window (packets)", {f"R = {1000 * rtt:.0f} ms": thinned(time, windows[:, i])})
        for i, rtt in enumerate(RTTS_S)
    )
    return ModelFigure(
        "PERT at 100 packets/s, 5 flows",
        "time (s)",
        panels,
        "As in print: stable at 100 ms, ringing at 160 ms, not stable at 171 ms. The equations"
        " become unstable at 165.8 ms; at 172.7 with W(t) for W(t - R); Theorem 1 says 171.0.",
    )
