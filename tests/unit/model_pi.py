# SPDX-License-Identifier: GPL-2.0-or-later
"""PI in floating point: one step at each sampling instant (LRED's paper, eq. 32)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Pi:
    """A PI queue; the interval in ns, the queue in packets."""

    target: float
    interval: int
    a: float
    b: float

    def probabilities(self, changes: Iterable[tuple[int, float]]) -> Iterator[float]:
        """Probability before each change (time, packets from then on) of the queue."""
        p = queue = before = 0.0
        instant = self.interval
        for time, packets in changes:
            while instant <= time:
                p += self.a * (queue - self.target) - self.b * (before - self.target)
                p = min(max(p, 0.0), 1.0)
                before = queue
                instant += self.interval
            yield p
            queue = packets
