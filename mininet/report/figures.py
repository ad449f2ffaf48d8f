# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures as SVG: the same bytes each time, colours that follow the reader's colour scheme."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

from .runs import Binned

if TYPE_CHECKING:  # pages without models need no SciPy
    from models.figure import ModelFigure, Series

WIDTH = 5.4  # inches: text of 11 points stays readable on a telephone

# Name: colour on light, colour on dark. Figures are drawn in the light ones, each of which is then
# replaced by a CSS variable. The hues are Okabe and Ito's, told apart by the colour-blind;
# their lightness is changed for contrast of 3:1 or better on either ground.
PALETTE = {
    "paper": ("#ffffff", "#15181c"),
    "ink": ("#1f2328", "#e4e7ea"),
    "rule": ("#d5d9de", "#363c43"),
    "grey": ("#6b7178", "#a3aab2"),
    "blue": ("#0072b2", "#5ab8ee"),
    "vermilion": ("#cc5500", "#ff8f4a"),
    "green": ("#008f68", "#2fcf9f"),
    "purple": ("#b0508c", "#e89ac6"),
}


@dataclass(frozen=True)
class Look:
    """How a queue is drawn, in every figure alike: colour, marker and dashes all differ."""

    colour: str  # of PALETTE
    marker: str
    dashes: str = "-"
    width: float = 1.6  # points


DASHES = ("--", ":", "-.")

LOOKS = {
    "DropTail": Look("grey", "s", "--"),
    "RED": Look("vermilion", "^"),
    "PIE": Look("green", "D", "-."),
    "fq_codel": Look("purple", "v", ":"),
    "REM": Look("blue", "o", width=2.8),
}

CYCLE = (
    ("blue", "o"), ("vermilion", "^"), ("green", "D"), ("purple", "v"), ("grey", "s"), ("ink", "P"),
)  # fmt: skip


def looks(families: Mapping[str, str], solid: Collection[str]) -> dict[str, Look]:
    """How cases are drawn, by name: a colour and a marker for each family, dashes by a case's turn
    in its family, or in the cycle of colours; the first of a family that is SOLID is stressed."""
    order = list(dict.fromkeys(families.values()))
    found: dict[str, Look] = {}
    turns: dict[str, int] = {}
    for name, family in families.items():
        turn, place = divmod(order.index(family), len(CYCLE))
        colour, marker = CYCLE[place]
        if name in solid and not turns.get(f"{family} solid"):
            turns[f"{family} solid"] = 1
            found[name] = Look(colour, marker, "-", 2.4)
            continue
        turns[family] = turns.get(family, 0) + 1
        found[name] = Look(colour, marker, DASHES[(turn + turns[family] - 1) % len(DASHES)])
    return found


STYLE: dict[RcKeyType, Any] = {
    "axes.edgecolor": PALETTE["grey"][0],
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.facecolor": PALETTE["paper"][0],
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 11,
    "grid.color": PALETTE["rule"][0],
    "grid.linewidth": 0.8,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "lines.markersize": 6,
    "patch.linewidth": 0,
    "svg.fonttype": "none",
    "svg.hashsalt": "aqmkit",
    "text.color": PALETTE["ink"][0],
    "axes.labelcolor": PALETTE["ink"][0],
    "xtick.color": PALETTE["grey"][0],
    "xtick.labelcolor": PALETTE["ink"][0],
    "ytick.color": PALETTE["grey"][0],
    "ytick.labelcolor": PALETTE["ink"][0],
}


def light(name: str) -> str:
    return PALETTE[name][0]


def dark_scheme() -> str:
    """CSS that gives figures, and whatever else uses the palette, their dark colours."""
    colours = "".join(f"--{name}:{dark};" for name, (_, dark) in PALETTE.items())
    return f"@media screen and (prefers-color-scheme:dark){{:root{{{colours}}}}}"


def light_scheme() -> str:
    colours = "".join(f"--{name}:{light};" for name, (light, _) in PALETTE.items())
    return f":root{{{colours}}}"


def svg(figure: Figure, description: str) -> str:
    """The figure as an element to put into a page; DESCRIPTION is for those who cannot see it."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for name, (colour, _) in PALETTE.items():
        text = re.sub(rf"{colour}\b", f"var(--{name},{colour})", text)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # would stand more than once in the page
    label = html.escape(description, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def standalone(element: str) -> str:
    """The element as a file of its own that follows the reader's colour scheme."""
    head, rest = element.split(">", 1)
    return f"{head}><style>{dark_scheme()}</style>{rest}"


def reference_line(axes: Axes, value: float, label: str) -> None:
    axes.axhline(value, color=light("ink"), linewidth=1, dashes=(2, 2), zorder=1)
    axes.annotate(
        label, (0.92, value), (0, -3), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha="right", va="top", fontsize=9.5,
    )  # fmt: skip


def against_flows(
    title: str,
    flows: Sequence[int],
    lines: Mapping[str, Sequence[float]],
    *,
    from_zero: bool = True,
    reference: tuple[float, str] | None = None,
) -> Figure:
    """One line per queue over the number of flows; TITLE names what is drawn and its unit."""
    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, 3.9), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title)
        axes.set_xlabel("flows")
        axes.set_xticks(flows)
        for label, values in lines.items():
            look = LOOKS[label]
            axes.plot(
                flows, values, look.dashes, color=light(look.colour), linewidth=look.width,
                marker=look.marker, label=label, clip_on=False, zorder=3,
            )  # fmt: skip
        if from_zero:
            axes.set_ylim(bottom=0)
        if reference:
            reference_line(axes, *reference)
        figure.legend(loc="outside upper left", ncols=len(lines), columnspacing=1, handlelength=2)
        return figure


def over_time(
    title: str,
    series: Mapping[str, Binned],
    *,
    warmup_s: float,
    top: float | None = None,
    reference: float | None = None,
    drawn: Mapping[str, Look] = LOOKS,
) -> Figure:
    """A panel per queue: a line for the mean, a band for the percentiles."""
    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, 0.8 + 1.25 * len(series)), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        panels = figure.subplots(len(series), sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (label, bins) in zip(panels, series.items(), strict=True):
            colour = light(drawn[label].colour)
            axes.axvspan(0, warmup_s, color=light("rule"), alpha=0.5)
            axes.fill_between(bins.middle, bins.low, bins.high, color=colour, alpha=0.3)
            axes.plot(bins.middle, bins.mean, color=colour, linewidth=1.4)
            if reference is not None:
                axes.axhline(reference, color=light("ink"), linewidth=1, dashes=(2, 2))
            axes.set_title(label, fontsize=10.5, color=colour, fontweight="bold")
            axes.set_ylim(0, top)
            axes.margins(x=0)
        panels[-1].set_xlabel("seconds")
        return figure


@dataclass(frozen=True)
class Spot:
    """A case at a point of a sweep: the mean, half of its interval, and what the paper has."""

    x: float
    mean: float
    half: float | None
    paper: float | None = None


def over_points(
    title: str, x: str, lines: Mapping[str, Sequence[Spot]], drawn: Mapping[str, Look], *, log: bool
) -> Figure:
    """A line per case over a sweep, with bars for intervals; rings: the paper's."""
    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, 3.9 + 0.22 * (len(lines) // 3)), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title)
        axes.set_xlabel(x)
        if log:
            axes.set_xscale("log")
        for label, spots in lines.items():
            look, colour = drawn[label], light(drawn[label].colour)
            xs, means = [spot.x for spot in spots], [spot.mean for spot in spots]
            axes.errorbar(
                xs, means, yerr=[spot.half or 0 for spot in spots], fmt=look.marker + look.dashes,
                color=colour, linewidth=look.width, elinewidth=1, capsize=2, label=label, zorder=3,
            )  # fmt: skip
            paper = [(spot.x, spot.paper) for spot in spots if spot.paper is not None]
            if paper:
                axes.plot(*zip(*paper, strict=True), look.marker, color=colour, fillstyle="none",
                          markersize=9, zorder=2)  # fmt: skip
        if all(spot.mean >= 0 for spots in lines.values() for spot in spots):
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if "index" not in title else None)
        figure.legend(loc="outside upper left", ncols=min(len(lines), 3), handlelength=3)
        return figure


def by_case(
    title: str,
    cases: Mapping[str, tuple[Sequence[float], float, float | None]],
    *,
    stressed: Collection[str] | None = None,
    others: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """A row per case, those STRESSED, or the first one, in colour: a ring per run, a dot for the
    mean, a bar for its interval. A case is its runs' values, their mean and half of the interval.
    OTHERS are drawn beside them: 'paper' as a diamond, anything else as a stroke."""
    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, 0.8 + 0.34 * len(cases)), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        axes = figure.add_subplot()
        axes.grid(visible=False)
        axes.grid(visible=True, axis="x")
        rows = range(len(cases))
        axes.set_yticks(rows, list(cases))
        axes.set_ylim(len(cases) - 0.5, -0.5)
        for row, (name, (values, mean, half)) in enumerate(cases.items()):
            first = name in stressed if stressed is not None else not row
            colour = light("blue" if first else "grey")
            axes.plot(values, [row] * len(values), "o", color=colour, fillstyle="none", alpha=0.6)
            axes.errorbar(mean, row, xerr=half, fmt="o", color=colour, linewidth=2.4, zorder=3)
        places = {name: row for row, name in enumerate(cases)}
        for what, values_of in (others or {}).items():
            shown = {name: value for name, value in values_of.items() if name in places}
            style, colour = ("D", "vermilion") if what == "paper" else ("|", "ink")
            axes.plot(
                list(shown.values()), [places[name] for name in shown], style, color=light(colour),
                fillstyle="none", markersize=9, label=what, zorder=4,
            )  # fmt: skip
        if others:
            figure.legend(loc="outside lower right", ncols=len(others))
        return figure


# Of a model's series, in turn; hues and dashes both differ.
LINES = (("blue", "-"), ("vermilion", "--"), ("green", "-."), ("purple", ":"), ("grey", "-"))


def of_model(model: ModelFigure, measured: Mapping[str, Series] | None = None) -> Figure:
    """A panel above the other, a line for each series. What was MEASURED, as points, goes into the
    panel that has a series of its name or, if none has, into the first."""
    with matplotlib.rc_context(STYLE):
        count = len(model.panels)
        figure = Figure((WIDTH, 1.2 + (2.7 if count == 1 else 1.6 * count)), layout="constrained")
        figure.suptitle(model.title, x=0.01, ha="left", fontsize=11)
        panels = figure.subplots(count, sharex=True, squeeze=False)[:, 0]
        points = dict(measured or {})
        for axes, panel in reversed([*zip(panels, model.panels, strict=True)]):
            for (label, (x, y)), (colour, dashes) in zip(panel.series.items(), LINES, strict=False):
                axes.plot(x, y, dashes, color=light(colour), linewidth=1.4, label=label)
                if label in points:
                    axes.plot(*points.pop(label), "o", color=light(colour), label=f"{label}, seen")
            if axes is panels[0]:
                for (label, (x, y)), marker in zip(points.items(), "so^vD", strict=False):
                    axes.plot(x, y, marker, color=light("ink"), label=label)
            axes.set_ylabel(panel.y_label, fontsize=9.5)
            axes.set_yscale("log" if panel.log_y else "linear")
            axes.margins(x=0)
            axes.legend(
                fontsize=8.5, labelspacing=0.3, frameon=True, framealpha=0.8,
                facecolor=light("paper"), edgecolor="none",
            )  # fmt: skip
        panels[-1].set_xscale("log" if model.log_x else "linear")
        panels[-1].set_xlabel(model.x_label)
        return figure
