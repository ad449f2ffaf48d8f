# SPDX-License-Identifier: GPL-2.0-or-later
"""LRED in floating point, as the paper's Fig. 3 has it (with `index` advanced)."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Lred:
    """An LRED queue; the period in ns, the queue in packets."""

    target: float
    periods: int
    period: int
    beta: float
    weight: float

    def probability(self, loss_ratio: float, queue: float) -> float:
        """Eq. (3)."""
        p = loss_ratio + self.beta * math.sqrt(loss_ratio) * (queue - self.target)
        return max(0.0, min(1.0, p))

    def loss_ratios(self, arrivals: Iterable[tuple[int, bool]]) -> Iterator[float]:
        """The averaged loss ratio that each arrival (time, lost) finds."""
        arrived: deque[int] = deque([0] * self.periods, self.periods)
        lost: deque[int] = deque([0] * self.periods, self.periods)
        present_arrived = present_lost = 0
        loss_ratio = 0.0
        end = self.period
        for time, is_lost in arrivals:
            while end <= time:
                arrived.append(present_arrived)
                lost.append(present_lost)
                present_arrived = present_lost = 0
                measured = sum(lost) / sum(arrived) if sum(arrived) else 0.0  # eq. (1)
                loss_ratio = loss_ratio * self.weight + measured * (1 - self.weight)  # eq. (2)
                end += self.period
            yield loss_ratio
            present_arrived += 1
            present_lost += is_lost
