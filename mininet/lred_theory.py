# SPDX-License-Identifier: GPL-2.0-or-later
"""What LRED's paper says of its rivals: how slow they must be, and PI's gains by design.

Equation numbers are that paper's; the design rules are those of PI's (Hollot and others, 2001).
"""

from __future__ import annotations

import itertools
import math

from aqmlab.scenario import parse_seconds

# Of the queues and laws that the bounds are for; as their options are given, in packets and s.
PI = {"a": "1.822e-5", "b": "1.816e-5", "sampling": "170"}
REM = {"interval": "2ms", "alpha": "0.1", "gamma": "0.001", "phi": "1.001"}
DEFAULTS = {
    "rem": {"limit": "120", "target": "20"} | REM,
    "fifa base rem": {"limit": "1000", "target": "20"} | REM,
    "fifa base pi": {"limit": "1000", "target": "50"} | PI,
}


def response_bound_s(qdisc: str, loss_ratio: float) -> float | None:
    """How long PI, eq. (34), or REM, eq. (40), takes at least to a loss ratio from none.

    Until then the buffer is full. None for other qdiscs, and where FIFA scales the probability.
    """
    words = qdisc.split()
    law = " ".join(words[: 3 if words[0] == "fifa" else 1])
    if law not in DEFAULTS or (words[0] == "fifa" and "noscale" not in words):
        return None
    given = DEFAULTS[law] | dict(itertools.pairwise(words))
    above = float(given["limit"]) - float(given["target"])
    if law == "fifa base pi":
        gain = float(given["a"]) - float(given["b"])
        return loss_ratio / (above * gain * float(given["sampling"]))
    gain = float(given["gamma"]) * float(given["alpha"]) * math.log(float(given["phi"]))
    return loss_ratio * parse_seconds(given["interval"]) / (gain * above)


def pi_star(
    flows: int, rtt_s: float, capacity: float, sampling: float = 170
) -> tuple[float, float]:
    """PI's gains a and b for no fewer FLOWS, no longer an RTT, and packets/s of CAPACITY."""
    m = 2 * flows / (rtt_s**2 * capacity)
    gain = m * math.hypot(1, m * rtt_s) * 4 * flows**2 / (rtt_s * capacity) ** 3
    return gain * (1 / m + 0.5 / sampling), gain * (1 / m - 0.5 / sampling)
