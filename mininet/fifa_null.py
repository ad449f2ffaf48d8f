# SPDX-License-Identifier: GPL-2.0-or-later
"""FIFA's null model: the shares if its base gave all flows one probability, which it then scales.

A flow's share is proportional to 1/((RTT + queueing delay) * sqrt(f)), f = (R_formula / RTT)^e,
with e the one exponent for flows nearer than R_formula and the other for those farther away.
R_formula is what the labels of those shares average to.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from aqmlab.metrics import jain

ROUNDS = 100  # of bringing shares and R_formula together, which twenty do to six digits
FRAGILE = 1.4
ROBUST_DROP, ROBUST_MARK = 0.65, 1.6


def exponents(qdisc: str) -> tuple[float, float]:
    """The exponents of a qdisc, for robust and for fragile flows; 0 if it does not scale."""
    words = qdisc.split()
    if words[0] != "fifa" or "noscale" in words:
        return 0.0, 0.0
    given = dict(itertools.pairwise(words))
    robust = given.get("exponent-robust", ROBUST_MARK if "ecn" in words else ROBUST_DROP)
    return float(robust), float(given.get("exponent-fragile", FRAGILE))


def shares(rtts: Sequence[float], delay: float, robust: float, fragile: float) -> list[float]:
    """Each flow's, of one, in the unit of time that RTTS and DELAY are in."""
    formula = sum(rtts) / len(rtts)
    found: list[float] = []
    for _ in range(ROUNDS):
        scales = [(formula / rtt) ** (robust if rtt < formula else fragile) for rtt in rtts]
        found = [1 / ((rtt + delay) * scale**0.5) for rtt, scale in zip(rtts, scales, strict=True)]
        total = sum(found)
        found = [share / total for share in found]
        formula = sum(share * rtt for share, rtt in zip(found, rtts, strict=True))
    return found


def fifa_null_jain(
    rtts: Sequence[float], delay: float, robust: float = ROBUST_DROP, fragile: float = FRAGILE
) -> float:
    """Jain's index of the shares."""
    return jain(shares(rtts, delay, robust, fragile))
