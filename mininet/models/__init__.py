# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' models, a module for each paper, and their figures by name: see README.md."""

from collections.abc import Callable

from . import fifa, lred, pert, rem, xqm
from .figure import ModelFigure

FIGURES: dict[str, Callable[[], ModelFigure]] = {
    "fifa.fig3": fifa.fig3,
    "fifa.fig6": fifa.fig6,
    "fifa.recovery": fifa.recovery,
    "fifa.response": fifa.response,
    "fifa.unsent": fifa.unsent,
    "lred.fig5": lred.fig5,
    "lred.theorem2": lred.theorem_2_figure,
    "pert.fig5": pert.fig5,
    "pert.fig13": pert.fig13,
    "pert.fig13a": pert.fig13a,
    "rem.stability": rem.stability,
    "xqm.fig2": xqm.fig2,
    "xqm.fig3a": xqm.fig3a,
    "xqm.fig3bc": xqm.fig3bc,
    "xqm.fig4": xqm.fig4,
    "xqm.fig5": xqm.fig5,
}
"""Each takes some seconds at most, and gives the same numbers each time."""
