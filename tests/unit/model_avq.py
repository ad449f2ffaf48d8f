# SPDX-License-Identifier: GPL-2.0-or-later
"""AVQ in floating point: the paper's Figure 2, in bytes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Avq:
    """A virtual queue; times in s, the capacity in bytes/s, the buffer in bytes."""

    capacity: float
    buffer: float
    alpha: float
    gamma: float
    mark: bool
    """Packets that are hit are marked, not dropped."""

    def decisions(
        self, arrivals: Iterable[tuple[float, float]]
    ) -> Iterator[tuple[bool, float, float]]:
        """Of each arrival (time, bytes): is it hit; then the virtual capacity and queue."""
        virtual, queue, last = self.capacity, 0.0, 0.0
        for time, size in arrivals:
            queue = max(queue - virtual * (time - last), 0)
            # an empty queue takes any packet
            hit = queue > 0 and queue + size > self.buffer
            if not hit:
                queue += size
            grown = virtual + self.alpha * self.gamma * self.capacity * (time - last)
            accepted = size if self.mark or not hit else 0.0
            virtual = max(min(grown, self.capacity) - self.alpha * accepted, 0)
            last = time
            yield hit, virtual, queue
