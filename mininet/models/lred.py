# SPDX-License-Identifier: GPL-2.0-or-later
"""LRED's stability, and how slow it shows PI and REM to be: sections 4 and 5 of the paper.

N are the flows, C the link's packets/s, R the round-trip time in s.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from aqmlab.scenario import parse_seconds

from .dde import Numbers, Past, abscissa, relax
from .figure import ModelFigure, Panel

ETA = 1.5  # eta of (4) for a receiver that acknowledges each packet

# Of the queues and laws that the bounds are for; as their options are given, in packets and s.
PI = {"a": "1.822e-5", "b": "1.816e-5", "sampling": "170"}
REM = {"interval": "2ms", "alpha": "0.1", "gamma": "0.001", "phi": "1.001"}
DEFAULTS = {
    "lred": {"limit": "200", "target": "100", "beta": "0.001"},
    "rem": {"limit": "120", "target": "20"} | REM,
    "fifa base rem": {"limit": "1000", "target": "20"} | REM,
    "fifa base pi": {"limit": "1000", "target": "50"} | PI,
}

BOUNDED = ("rem", "fifa base rem", "fifa base pi")


@dataclass(frozen=True)
class Network:
    """A bottleneck's 3-tuple (N, C, R) of section 4.1; (N-, C, R+) where a bound is asked for."""

    flows: float  # N
    capacity: float  # C, packets/s
    rtt_s: float  # R

    @property
    def window(self) -> float:
        """w_0 in packets: eq. (6)."""
        return self.rtt_s * self.capacity / self.flows

    @property
    def loss_ratio(self) -> float:
        """p_0: eq. (6). At 1 or beyond there is no such equilibrium."""
        return ETA / self.window**2

    @property
    def k11(self) -> float:
        """K_11, 1/s: beside eq. (8)."""
        return 2 / (self.window * self.rtt_s)

    @property
    def kc(self) -> float:
        """K_c = K_12 K_21, 1/s^2 for a probability a packet: beside eq. (13)."""
        return self.capacity**2 / (ETA * self.flows)

    @property
    def slope(self) -> float:
        """sqrt(p_0): H_c of LRED, eq. (29), for a beta of 1."""
        return math.sqrt(self.loss_ratio)


def crossing(network: Network) -> float:
    """omega, rad/s, at which the root of (13) is on the imaginary axis: eqs. (21), (24), (31)."""

    def angle(omega: float) -> float:
        return network.rtt_s * omega + math.atan(omega / network.k11) - math.pi / 2

    return float(brentq(angle, 0, math.pi / (2 * network.rtt_s)))


def greatest_gain(network: Network) -> float:
    """H_c*, probability a packet, below which proportional control is stable: Lemma 4.

    Assumes w(t) = w(t - R), a fixed R, and a p_0 below 1.
    """
    omega = crossing(network)
    return omega * math.hypot(omega, network.k11) / network.kc


def theorem_2(network: Network) -> tuple[float, float]:
    """The two bounds on beta: beta_0 of (31), and that of Lemma 5; beta+ is the smaller one.

    NETWORK has the fewest flows and the longest round-trip time. Theorem 2 prints (2N)^4 in the
    second, which is for (2N)^2: Lemma 5's proof has that, and it gives the paper's own 0.001.

    Raises ValueError where p_0 of (6) is not below 1.
    """
    if network.loss_ratio >= 1:
        raise ValueError(
            f"windows of {network.window:.2f} packets: the theorem needs more than {ETA**0.5:.2f}"
        )
    size = network.rtt_s * network.capacity
    lemma_5 = math.sqrt(2 * ETA) * (2 * network.flows) ** 2 / size**3
    return greatest_gain(network) / network.slope, lemma_5


def growth(network: Network, gain: float, *, same: bool = True, fixed_rtt: bool = True) -> float:
    """Rate, 1/s, at which (4), (5), (11) leave their equilibrium; negative: they come back to it.

    GAIN: H_c, probability a packet. With SAME, the paper's w(t) = w(t - R), these are the roots of
    (13). Without FIXED_RTT the queue is part of R in (5), as it is in a network.
    """
    now, then = np.zeros((2, 2, 2))
    now[0, 0], then[0, 0] = (-network.k11, 0) if same else (-network.k11 / 2, -network.k11 / 2)
    then[0, 1] = -gain * network.rtt_s * network.capacity**2 / (ETA * network.flows**2)  # K_12
    now[1] = network.flows / network.rtt_s, 0 if fixed_rtt else -1 / network.rtt_s  # K_21
    return abscissa(now, then, network.rtt_s)


def growth_pi(network: Network, proportional: float, integral: float) -> float:
    """The same under PI control: probability a packet, and a packet and second. The queue is in R.

    For REM, ln(phi) gamma (1 - p_0) and alpha/interval times that: eq. (36) is PI in the price.
    """
    now, then = np.zeros((2, 3, 3))
    now[0, 0] = then[0, 0] = -network.k11 / 2
    now[1, :2] = network.flows / network.rtt_s, -1 / network.rtt_s
    now[2, 1] = 1
    gains = np.array([proportional, integral])
    then[0, 1:] = -gains * network.rtt_s * network.capacity**2 / (ETA * network.flows**2)
    return abscissa(now, then, network.rtt_s)


def fluid(
    network: Network,
    betas: npt.ArrayLike,
    seconds: float,
    target: float = 100.0,
    start: float = 0.9,
    step_s: float = 2e-3,
) -> tuple[Numbers, Numbers, Numbers]:
    """Equations (4), (5), (26) for each of BETAS: time in s, windows and queues in packets.

    From a window of START times w_0, a queue at its TARGET. As in the paper nothing bounds queue or
    probability, R is fixed, and the loss ratio is p_0 throughout.

    Raises ValueError if a step is more than twice R.
    """
    rtt, gain = network.rtt_s, np.atleast_1d(np.asarray(betas, float)) * network.slope
    if step_s > 2 * rtt:
        raise ValueError("a step must not be more than twice a round-trip time")
    steps = round(seconds / step_s)
    window, queue = np.full_like(gain, start * network.window), np.full_like(gain, target)
    past = Past(np.concatenate([window, queue]), steps, step_s)
    columns = np.arange(2 * gain.size)
    for number in range(steps):
        ago = np.full(columns.size, (number + 0.5) * step_s - rtt)
        windows, queues = past.at(ago, columns).reshape(2, -1)
        probability = network.loss_ratio + gain * (queues - target)
        later = relax(
            window, np.full_like(gain, 1 / rtt), windows * probability / (ETA * rtt), step_s
        )
        queue = queue + step_s * (network.flows * (window + later) / (2 * rtt) - network.capacity)
        window = later
        past.add(np.concatenate([window, queue]))
    windows, queues = np.split(past.values[1:], 2, axis=1)
    return past.times_s, windows, queues


def response_bound_s(qdisc: str, loss_ratio: float) -> float | None:
    """How long PI, eq. (34), or REM, eq. (40), takes at least to a loss ratio from none.

    Until then the buffer is full. None for other qdiscs, and where FIFA scales the probability.
    """
    words = qdisc.split()
    law = " ".join(words[: 3 if words[0] == "fifa" else 1])
    if law not in BOUNDED or (words[0] == "fifa" and "noscale" not in words):
        return None
    given = DEFAULTS[law] | dict(itertools.pairwise(words))
    above = float(given["limit"]) - float(given["target"])
    if law == "fifa base pi":
        gain = float(given["a"]) - float(given["b"])
        return loss_ratio / (above * gain * float(given["sampling"]))
    gain = float(given["gamma"]) * float(given["alpha"]) * math.log(float(given["phi"]))
    interval = given["interval"]
    interval += "us" if interval.isdecimal() else ""  # as tc reads it
    return loss_ratio * parse_seconds(interval) / (gain * above)


def loss_ratio(qdisc: str, probability: Numbers, queue: Numbers) -> Numbers:
    """The loss ratio in LRED's probability at a queue in packets: eq. (3), solved for its root.

    Where the probability is cut to 0, only that of a queue at its target or above tells one, 0;
    where it is cut to 1, none does: not a number.
    """
    given = DEFAULTS["lred"] | dict(itertools.pairwise(qdisc.split()))
    slope = float(given["beta"]) * (queue - float(given["target"]))
    ratio = ((np.sqrt(slope**2 + 4 * probability) - slope) / 2) ** 2
    known = ((probability > 0) | (slope >= 0)) & (probability < 1)
    return np.where(known, ratio, np.nan)


def pi_gains(network: Network) -> tuple[float, float]:
    """m, 1/s, and K, probability a packet and second, by PI's design rule.

    Hollot and others, 2001: for no fewer flows than NETWORK's, no longer a round-trip time.
    """
    m = network.k11
    size = network.rtt_s * network.capacity
    return m, m * math.hypot(1, m * network.rtt_s) * 4 * network.flows**2 / size**3


def pi_star(
    flows: float, rtt_s: float, capacity: float, sampling: float = 170
) -> tuple[float, float]:
    """PI's a and b of (32) by that rule, for SAMPLING steps a second: PI* of section 6."""
    m, gain = pi_gains(Network(flows, capacity, rtt_s))
    return gain * (1 / m + 0.5 / sampling), gain * (1 / m - 0.5 / sampling)


def fig5() -> ModelFigure:
    """The bounds (34) and (40) on response times, section 6.1's parameters: q0 100, limit 200."""
    ratios = np.linspace(0, 0.45, 46)
    qdiscs = {
        "PI, eq. (34)": "fifa base pi noscale limit 200 target 100",
        "REM, eq. (40)": "rem limit 200 target 100",
    }
    bounds = {
        name: (ratios, np.array([response_bound_s(qdisc, ratio) or 0.0 for ratio in ratios]))
        for name, qdisc in qdiscs.items()
    }
    return ModelFigure(
        "Least response times",
        "loss ratio",
        (Panel("response time (s)", bounds),),
        "As in print: both grow with the loss ratio, 162 and 33 s at 0.165. LRED has no bound.",
    )


def theorem_2_figure() -> ModelFigure:
    """beta+ of Theorem 2 against the fewest flows, on the paper's link of 2500 packets/s."""
    panels = {}
    for rtt_s in (0.15, 0.35, 0.55):
        most = rtt_s * 2500 / ETA**0.5  # flows, at which p_0 is 1
        flows = np.arange(20, min(most, 1000), 5)
        least = [min(theorem_2(Network(count, 2500, rtt_s))) for count in flows]
        panels[f"R+ = {1000 * rtt_s:.0f} ms"] = (flows, np.array(least))
    return ModelFigure(
        "Greatest stable beta",
        "flows, at least",
        (Panel("beta", panels, log_y=True),),
        "9.31e-4 for 300 flows and 350 ms, printed as 0.001.",
    )
