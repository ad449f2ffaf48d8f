# SPDX-License-Identifier: GPL-2.0-or-later
"""RED in floating point: Floyd and Jacobson's Fig. 2, and ns-2's gentle slope and count."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Red:
    """A RED queue; times in ns, the queue in packets."""

    min: float
    max: float
    probability: float
    weight: float
    gentle: bool
    wait: bool
    send_time: float

    def slope(self, avg: float) -> float:
        """p_b."""
        if avg < self.max:
            return self.probability * (avg - self.min) / (self.max - self.min)
        if not self.gentle:
            return 1.0
        return min(1.0, self.probability + (1 - self.probability) * (avg - self.max) / self.max)

    def spread(self, p: float, count: int) -> float:
        """The probability after the count."""
        if self.wait:
            if count * p < 1:
                return 0.0
            return min(1.0, p / (2 - count * p)) if count * p < 2 else 1.0
        return min(1.0, p / (1 - count * p)) if count * p < 1 else 1.0

    def decisions(
        self, arrivals: Iterable[tuple[int, float, int | None, float]]
    ) -> Iterator[tuple[float, float]]:
        """Average and probability at each arrival (time, queue, idle from, random)."""
        avg, count, above = 0.0, 0, False
        for time, queue, idle_from, random in arrivals:
            if idle_from is not None and idle_from < time:
                avg *= (1 - self.weight) ** ((time - idle_from) / self.send_time)
            avg = (1 - self.weight) * avg + self.weight * queue
            p = 0.0
            if avg < self.min:
                above = False
            elif self.slope(avg) == 1:
                p = 1.0
            elif not above:
                above, count = True, 1
            else:
                count += 1
                p = self.spread(self.slope(avg), count)
            yield avg, p
            if random < p:
                count = 0
