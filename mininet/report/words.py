# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists and ranges as one writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def joined(items: Iterable[object]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last


def span(values: Sequence[float], digits: int) -> str:
    """'0.2 to 15.6', or one number where both ends are written alike."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def duration(seconds: float) -> str:
    """'40 s', '12 min' or '3.5 h'."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
