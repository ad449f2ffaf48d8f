# SPDX-License-Identifier: GPL-2.0-or-later
"""FIFA in floating point, as the paper's Fig. 4 and 5 have it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

RANGE = 12.5  # ms
HOLD = 100.0  # ms


def scaled(probability: float, formula: float, rtt: float, robust: float, fragile: float) -> float:
    """Eq. (4), with the exponent that goes with the flow."""
    exponent = robust if rtt < formula else fragile
    return float(min(1.0, probability * (formula / rtt) ** exponent))


@dataclass
class RoundTripTime:
    """Fig. 5; times in ms."""

    weight: float

    def run(self, packets: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
        """R_average and R_formula after each labelled packet (time, RTT)."""
        average = formula = since = side = 0.0
        for now, rtt in packets:
            if not formula:
                average, formula, since = rtt, rtt, now
            average = (1 - self.weight) * average + self.weight * rtt
            within = formula - RANGE < average < formula + RANGE
            was, side = side, 0 if within else (1 if average > formula else -1)
            if within or side * was < 0:
                since = now
            elif now - since > HOLD:
                since = now
                formula += (average - formula) / 2
            yield average, formula
