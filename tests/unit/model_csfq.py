# SPDX-License-Identifier: GPL-2.0-or-later
"""CSFQ in floating point: eq. (2), eq. (3) and Figure 3. Times in s, rates in bytes/s."""

import math
from dataclasses import dataclass, field


@dataclass
class Rate:
    """A rate that is estimated, eq. (3)."""

    k: float
    rate: float = 0.0
    last: float = 0.0

    def estimate(self, time: float, size: float) -> float:
        elapsed = time - self.last
        decay = math.exp(-elapsed / self.k)
        # its limit where two packets come at once
        fresh = -math.expm1(-elapsed / self.k) * size / elapsed if elapsed else size / self.k
        self.rate = fresh + decay * self.rate
        self.last = time
        return self.rate


@dataclass
class Csfq:
    """A link."""

    capacity: float
    k_alpha: float
    k_c: float
    alpha: float = 0.0
    floor: float = 0.0
    tmp_alpha: float = 0.0
    start: float = 0.0
    congested: bool = False
    arrived: Rate = field(init=False)
    accepted: Rate = field(init=False)

    def __post_init__(self) -> None:
        self.arrived, self.accepted = Rate(self.k_alpha), Rate(self.k_alpha)

    def probability(self, label: float) -> float:
        """Eq. (2); while alpha is not known, none."""
        return max(0.0, 1 - self.alpha / label) if self.alpha and label else 0.0

    def _set(self, alpha: float, time: float) -> None:
        self.alpha = alpha
        self.floor = 0.75 * alpha
        self.start, self.tmp_alpha = time, 0.0

    def arrive(self, time: float, size: float, label: float, dropped: bool, filled: bool) -> None:
        """Figure 3's estimate_alpha(), with the rules that the text adds."""
        self.arrived.estimate(time, size)
        if not dropped:
            self.accepted.estimate(time, size)
        if self.arrived.rate >= self.capacity and (self.congested or filled):
            if not self.congested:
                self.congested = True
                self._set(self.alpha or max(self.tmp_alpha, label) or self.capacity, time)
            elif time > self.start + self.k_c:
                fair = min(self.alpha / self.accepted.rate, 1) * self.capacity
                self._set(max(fair, self.floor), time)
        elif self.congested:
            self.congested = False
            self.start, self.tmp_alpha = time, 0.0
        elif time < self.start + self.k_c:
            self.tmp_alpha = max(self.tmp_alpha, label)
        else:
            self._set(self.tmp_alpha, time)

    def overflow(self) -> None:
        self.alpha = max(0.99 * self.alpha, self.floor)
