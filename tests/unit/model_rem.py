# SPDX-License-Identifier: GPL-2.0-or-later
"""REM in floating point, as the paper writes it: one step at each sampling instant."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum


class Measure(IntEnum):
    """How the rate mismatch is known; the law's enum rem_measure."""

    BACKLOG = 0
    QUEUE = 1
    RATE = 2


@dataclass
class Rem:
    """A REM queue; times in ns, queue and capacity in packets and packets/ns.

    The paper's price has no ceiling; the law's is where the probability rounds to one.
    """

    measure: Measure
    target: float
    interval: int
    alpha: float
    gamma: float
    phi: float
    capacity: float
    ceiling: float

    def probability(self, price: float) -> float:
        """Eq. (3)."""
        return -math.expm1(-price * math.log(self.phi))

    def prices(self, events: Iterable[tuple[int, float, int]]) -> Iterator[float]:
        """Price before each event (time, packets: in > 0 > out, time to send them)."""
        price = queue = queue_before = arrived = idle = 0.0
        instant, clock, link_free = self.interval, 0, 0

        for time, packets, send_time in events:
            while clock < time or instant <= time:
                until = min(time, instant)
                if queue == 0:
                    idle += max(0, until - max(clock, link_free))
                clock = until
                if until != instant:
                    continue
                backlog_mismatch = self.alpha * (queue_before - self.target)
                if self.measure is Measure.RATE:  # eq. (2)
                    rate_mismatch = arrived - self.capacity * self.interval
                elif self.measure is Measure.QUEUE:  # eq. (4)
                    rate_mismatch = queue - queue_before
                else:
                    rate_mismatch = queue - queue_before - self.capacity * idle
                price += self.gamma * (backlog_mismatch + rate_mismatch)
                price = min(max(price, 0.0), self.ceiling)
                queue_before, arrived, idle = queue, 0.0, 0.0
                instant += self.interval
            yield price
            queue += packets
            if packets > 0:
                arrived += packets
            elif packets < 0:
                ahead = max(self.interval, send_time)
                link_free = min(max(link_free, time) + send_time, time + ahead)
