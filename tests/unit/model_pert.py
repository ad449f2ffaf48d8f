# SPDX-License-Identifier: GPL-2.0-or-later
"""PERT in floating point: the paper's equations (4), (5), (18) and Fig. 5. Times in us."""

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
