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
