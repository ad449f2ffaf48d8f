# SPDX-License-Identifier: GPL-2.0-or-later
"""Losses behind a queue: a share of the packets, or one that changes in time.

Each packet is lost on its own, with the share of the moment. What changes is a schedule: pairs of
a time in seconds after the first flow's start and the share from then on.
"""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

SINE_STEPS = 100  # a period: the share is off by at most 3 % of the amplitude


@dataclass(frozen=True)
class Sine:
    """A share that swings about its mean, between two times, and is the mean at others."""

    mean: float  # 0..1
    amplitude: float
    period_s: float
    from_s: float
    until_s: float

    def schedule(self, _: random.Random) -> Iterator[tuple[float, float]]:
        """The share in the middle of each hundredth of a period."""
        if self.from_s:
            yield 0.0, self.mean
        for step in itertools.count():
            when = self.from_s + step * self.period_s / SINE_STEPS
            if when >= self.until_s:
                yield self.until_s, self.mean
                return
            phase = 2 * math.pi * (step + 0.5) / SINE_STEPS
            yield when, self.mean + self.amplitude * math.sin(phase)


@dataclass(frozen=True)
class Steps:
    """A share that is set at given times, and 0 before the first."""

    steps: tuple[tuple[float, float], ...]  # s, 0..1

    def schedule(self, _: random.Random) -> Iterator[tuple[float, float]]:
        """As it is given."""
        return iter(self.steps)


@dataclass(frozen=True)
class State:
    """A state of a link: what it loses, how long it stays, and what comes then."""

    share: float  # 0..1
    stay_s: float
    next: tuple[float, ...]  # probability of each state, this one too


@dataclass(frozen=True)
class Markov:
    """A link that changes between states, whether packets come or not; it begins in the first."""

    states: tuple[State, ...]

    def schedule(self, draw: random.Random) -> Iterator[tuple[float, float]]:
        """One of the chain's ways, by DRAW."""
        now, state = 0.0, self.states[0]
        while True:
            yield now, state.share
            now += state.stay_s
            (state,) = draw.choices(self.states, state.next)


Varying = Sine | Steps | Markov
Loss = float | Varying
