# SPDX-License-Identifier: GPL-2.0-or-later
"""What fairness is worth, FIFA's section 3, where its exponent comes from, and its null model.

n are the flows of a link, a the robust flows' round-trip time over that of the one fragile flow.
The null model: the shares if FIFA's base gave all flows one probability, which it then scales. A
flow's share is proportional to 1/((RTT + queueing delay) * sqrt(f)), f = (R_formula / RTT)^e, with
e the one exponent for flows nearer than R_formula and the other for those farther away. R_formula
is what the labels of those shares average to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from aqmlab.metrics import jain

from .dde import Numbers
from .figure import ModelFigure, Panel

ROUNDS = 100  # of bringing shares and R_formula together, which twenty do to six digits
FRAGILE = 1.4
ROBUST_DROP, ROBUST_MARK = 0.65, 1.6


def unfair_share(flows: int, ratio: float) -> float:
    """What a fragile flow gets of a link beside FLOWS - 1 robust ones: T_f/C of section 3.1."""
    return 1 / ((flows - 1) / ratio + 1)


def transfer_s(size_bits: float, capacity_bps: float, share: float) -> float:
    """Response time, s: that of a transfer at SHARE of the link, section 3.1."""
    return size_bits / (capacity_bps * share)


def response_ratio(flows: int, ratio: float) -> float:
    """t_fair/t_unfair of a fragile flow's transfer: section 3.1."""
    return unfair_share(flows, ratio) * flows


def recovery_round_trips(
    capacity_bps: float, share: float, rtt_s: float, packet_bits: float
) -> float:
    """Round trips from SHARE of the link to all of it, a packet a round trip: t of section 3.2.

    The paper's t, which it calls a time: C/(s/R) has no unit.
    """
    return capacity_bps * (1 - share) * rtt_s / packet_bits


def recovery_ratio(flows: int, ratio: float) -> float:
    """t_fair/t_unfair of the way back to full utilisation: section 3.2."""
    return (1 - 1 / flows) / (1 - unfair_share(flows, ratio))


def printed_area(
    flows: int, ratio: float, capacity_bps: float, rtt_s: float, packet_bits: float
) -> float:
    """Area of section 3.2, bits/s times round trips: data lost to unfairness, over R_f.

    Its example, 701.3 Mb, is this for R_f = 300 ms, which it does not print.
    """
    gap = 1 / (ratio + flows - 1) ** 2 - 1 / flows**2
    return rtt_s * (capacity_bps * (flows - 1)) ** 2 / (2 * packet_bits) * gap


def lost_bits(
    flows: int, ratio: float, capacity_bps: float, rtt_s: float, packet_bits: float
) -> float:
    """Data not sent for unfairness, bits: the area, with the round trips as the time they take."""
    return rtt_s * printed_area(flows, ratio, capacity_bps, rtt_s, packet_bits)


def fitted_exponent(low: float = 1e-3, high: float = 0.5) -> tuple[float, float]:
    """c and a of c p^a nearest to the sum of (1)'s p-terms from LOW to HIGH: eq. (2).

    Nearest in logarithms, and the terms bare, p^(1/2) + p^(3/2) + p^(7/2): of the readings tried,
    what comes nearest to the printed a of 0.63. With (1)'s factors it is 0.86.
    """
    p = np.linspace(low, high, 500)
    slope, offset = np.polyfit(np.log(p), np.log(p**0.5 + p**1.5 + p**3.5), 1)
    return float(np.exp(offset)), float(slope)


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


EXAMPLE = {"capacity_bps": 10e6, "rtt_s": 0.3, "packet_bits": 8000.0}
"""Section 3's, 4 flows and a = 0.1; the round-trip time is that of its 701.3 Mb."""


def fig3() -> ModelFigure:
    """Throughput of a fragile flow that robust ones leave the link to at time 0: section 3.2."""
    rtt_s, all_of_it = EXAMPLE["rtt_s"], EXAMPLE["capacity_bps"] / 1e6
    curves: dict[str, tuple[Numbers, Numbers]] = {}
    for name, share in (("fair", 1 / 4), ("unfair", unfair_share(4, 0.1))):
        back_s = rtt_s * recovery_round_trips(share=share, **EXAMPLE)
        low = all_of_it * share
        curves[name] = (
            np.array([-40.0, -20.0, -20.0, 0.0, back_s, 120.0]),
            np.array([all_of_it, all_of_it, low, low, all_of_it, all_of_it]),
        )
    return ModelFigure(
        "A fragile flow, when robust ones leave",
        "time (s)",
        (Panel("throughput (Mb/s)", curves),),
        "Section 3.2's example at 300 ms: back after 84 s, not 109; 210 Mb lie between the lines."
        " Print has 701.3 Mb, which are bits/s times round trips.",
    )


PAGE_S = 6.0  # of section 3.1's example: what a transfer takes at a fair share
QUEUE_S = 0.0162  # s: 20 packets at EXAMPLE's capacity, in the middle of Figure 12's RED
RATIOS = np.linspace(0.05, 1, 96)


def queued_ratio(ratio: float) -> float:
    """The ratio of round-trip times with QUEUE_S in both, EXAMPLE's being the fragile flow's."""
    rtt_s = EXAMPLE["rtt_s"]
    return (ratio * rtt_s + QUEUE_S) / (rtt_s + QUEUE_S)


def _over_ratio(
    title: str, label: str, of_share: Callable[[float], float], note: str
) -> ModelFigure:
    """What OF_SHARE makes of a fragile flow's share, its ratio to the robust ones' RTT varied."""
    shares = {
        "fair": np.full_like(RATIOS, 1 / 4),
        "unfair": np.array([unfair_share(4, ratio) for ratio in RATIOS]),
        "unfair, 20 packets queued": np.array(
            [unfair_share(4, queued_ratio(ratio)) for ratio in RATIOS]
        ),
    }
    curves = {name: (RATIOS, np.array([*map(of_share, found)])) for name, found in shares.items()}
    words = "round-trip time of three robust flows over the fragile one's"
    return ModelFigure(title, words, (Panel(label, curves),), note)


def response() -> ModelFigure:
    """Section 3.1: response time of a fragile flow's transfer."""
    capacity_bps = EXAMPLE["capacity_bps"]
    size_bits = PAGE_S * capacity_bps / 4
    return _over_ratio(
        "A transfer of a fragile flow",
        "response time (s)",
        lambda share: transfer_s(size_bits, capacity_bps, share),
        "The paper's 6 and 46.5 s at 0.1. A queue, which the paper leaves out, makes round-trip"
        " times more alike. Slow start is in no line.",
    )


def recovery() -> ModelFigure:
    """Section 3.2: the time until a fragile flow that is left alone fills the link."""
    rtt_s = EXAMPLE["rtt_s"]
    return _over_ratio(
        "The way back to full utilization",
        "time (s)",
        lambda share: rtt_s * recovery_round_trips(share=share, **EXAMPLE),
        "A packet a round trip: 84 and 109 s at 0.1.",
    )


def unsent() -> ModelFigure:
    """Section 3.2: what the link could have carried on that way: the area above Figure 3's line."""
    rtt_s, capacity_bps = EXAMPLE["rtt_s"], EXAMPLE["capacity_bps"]

    def area(share: float) -> float:
        back_s = rtt_s * recovery_round_trips(share=share, **EXAMPLE)
        return back_s * capacity_bps * (1 - share) / 2e6

    return _over_ratio(
        "Not sent on the way back",
        "data (Mb)",
        area,
        "The area above each line of Figure 3. Between the two, 210 Mb at 0.1.",
    )


def fig6() -> ModelFigure:
    """The p-terms of eq. (1), and what approximates their sum."""
    p = np.linspace(0.001, 0.5, 500)
    factor, exponent = fitted_exponent()
    terms = {"p^1/2": p**0.5, "p^3/2": p**1.5, "p^7/2": p**3.5}
    curves = terms | {
        "sum": p**0.5 + p**1.5 + p**3.5,
        f"{factor:.2f} p^{exponent:.2f}": factor * p**exponent,
    }
    return ModelFigure(
        "Terms of TCP's equation",
        "drop or mark probability",
        (Panel("contribution", {name: (p, y) for name, y in curves.items()}),),
        "The exponent is 0.63 in print. Print says that the terms are nearly equal at 0.5, which"
        " these are not.",
    )
