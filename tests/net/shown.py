# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what tc shows in human form, to hold it against the JSON."""

import math
import re
from collections.abc import Mapping

# What tc itself says about every qdisc.
STOCK = {
    "kind", "handle", "parent", "root", "refcnt", "options", "bytes", "packets", "drops",
    "overlimits", "requeues", "backlog", "qlen",
}  # fmt: skip

# What a number's unit stands for in JSON: times in ns, rates in bytes/s.
UNITS = {
    "": 1, "p": 1, "b": 1, "pps": 1,
    "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9,
    "bit": 1 / 8, "Kbit": 125, "Mbit": 125e3, "Gbit": 125e6, "Tbit": 125e9,
}  # fmt: skip
# tc rounds times in statistics to three digits and other numbers to six.
ROUNDED = {"delay": 5e-3, "rtt_avg": 5e-3, "rtt_formula": 5e-3}
TOLERANCE = 1e-5


def differences(human: str, json: Mapping[str, object]) -> list[str]:
    """Keys whose values differ, where what the human form leaves out is off, unknown or none."""
    words = iter(human.split())
    shown: dict[str, object] = {}
    for key in words:
        if isinstance(json.get(key.removeprefix("no")), bool):
            shown[key.removeprefix("no")] = not key.startswith("no")
        elif isinstance(many := json.get(key), list):
            shown[key] = [_value(next(words)) for _ in many]
        else:
            shown[key] = _value(next(words))
    off = [key for key, value in json.items() if key not in shown and value]
    return off + [key for key, value in shown.items() if not _same(key, value, json.get(key))]


def _value(word: str) -> float | str:
    number = re.fullmatch(r"([-+.\de]*\d)([A-Za-z]*)", word)
    if not number or number[2] not in UNITS:
        return word  # such as "5tuple"
    return float(number[1]) * UNITS[number[2]]


def _same(key: str, shown: object, value: object) -> bool:
    if isinstance(shown, list) and isinstance(value, list):
        return all(_same(key, one, other) for one, other in zip(shown, value, strict=True))
    if isinstance(shown, float) and isinstance(value, int | float):
        return math.isclose(shown, value, rel_tol=ROUNDED.get(key, TOLERANCE))
    return shown == value
