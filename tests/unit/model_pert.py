# SPDX-License-Identifier: GPL-2.0-or-later
"""PERT in floating point: the paper's equations (4), (5), (14), (18) and Fig. 5. Times in us."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Pert:
    """RED's curve and the average of a sender."""

    min: float
    max: float
    probability: float
    weight: float  # of the past

    def curve(self, delay: float) -> float:
        """Fig. 5, of the queueing delay."""
        if delay <= self.min:
            return 0.0
        if delay <= self.max:
            return self.probability * (delay - self.min) / (self.max - self.min)
        return min(1.0, self.probability + (1 - self.probability) * (delay - self.max) / self.max)

    def averages(self, rtts: Iterable[float]) -> Iterator[float]:
        """Eq. (5), from the first round-trip time on."""
        average = None
        for rtt in rtts:
            average = rtt if average is None else self.weight * average + (1 - self.weight) * rtt
            yield average


@dataclass
class PertPi:
    """PI of the queueing delay; in seconds, but for the times of ACKs, whole ns."""

    target: float
    proportional: float  # K / m
    integral: float  # K
    sampling: int  # Hz

    @property
    def gamma(self) -> float:
        """Gain of the present delay."""
        return self.proportional + self.integral / (2 * self.sampling)

    @property
    def beta(self) -> float:
        """Gain of the delay one step before."""
        return self.proportional - self.integral / (2 * self.sampling)

    def probabilities(self, acks: Iterable[tuple[int, float]]) -> Iterator[float]:
        """At each ACK (time, delay): eq. (19) at each sampling instant, from the first ACK on."""
        p, before, instant = 0.0, 0.0, None
        interval = 10**9 // self.sampling
        for time, delay in acks:
            if instant is None:
                instant, before = time + interval, delay
            while instant <= time:
                p += self.gamma * (delay - self.target) - self.beta * (before - self.target)
                p = min(max(p, 0.0), 1.0)
                before = delay
                instant += interval
            yield p


def fluid(rtt: float, seconds: float, step: float = 1e-3) -> list[float]:
    """The window over time in the fluid model (14), as section 5.3 sets it up; in seconds."""
    capacity, flows, t_min, slope, k = 100, 5, 0.05, 0.1 / 0.05, math.log(0.99) / 1e-4
    lag = round(rtt / step)
    windows, averages, delay = [1.0] * (lag + 1), [1.0] * (lag + 1), 1.0
    forget = math.exp(k * step)  # the average's own equation, solved over a step
    for _ in range(round(seconds / step)):
        window, then = windows[-1], windows[-1 - lag]
        respond = slope * (averages[-1 - lag] - t_min)
        windows.append(window + step * (1 / rtt - window * then * respond / (2 * rtt)))
        delay += step * (flows * window / (rtt * capacity) - 1)
        averages.append(delay + (averages[-1] - delay) * forget)
    return windows[lag:]
