# SPDX-License-Identifier: GPL-2.0-or-later
"""A model's figure as data: named series on labelled axes, to be drawn, or over measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .dde import Numbers

POINTS = 1500  # of a series: more than a figure has pixels

Series = tuple[Numbers, Numbers]
"""Places on the axis below, and what is there."""


@dataclass(frozen=True)
class Panel:
    """Series that share an axis; their names differ from all others' of the figure."""

    y_label: str  # what, and in brackets its unit
    series: Mapping[str, Series]
    log_y: bool = False


@dataclass(frozen=True)
class ModelFigure:
    """What a model says in place of a figure of its paper; the panels stand one above the other."""

    title: str
    x_label: str  # what, and in brackets its unit
    panels: tuple[Panel, ...]
    note: str  # in words: what it shows, and where the paper's figure differs
    log_x: bool = False

    @property
    def series(self) -> dict[str, Series]:
        """Those of all panels, by name."""
        return {name: series for panel in self.panels for name, series in panel.series.items()}


def thinned(x: Numbers, y: Numbers) -> Series:
    """Evenly chosen ones of the points: at most POINTS."""
    chosen = np.linspace(0, len(x) - 1, min(POINTS, len(x))).round().astype(int)
    return x[chosen], y[chosen]
