# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of the papers' figures: from the results that are kept, and from nothing else."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from models import FIGURES
from models.figure import ModelFigure, Panel
from models.lred import loss_ratio
from papers.judge import Results, Verdict, judge_all
from papers.measured import buffer_pkts, found_metric, interval, measure_of
from papers.plan import Times, shell
from papers.result import BIN_S
from papers.schema import (
    FOLDER,
    PAPERS,
    Beside,
    Case,
    Course,
    Figure,
    Model,
    Point,
    Row,
    load_figures,
    load_rows,
)

from .figures import Look, Spot, by_case, looks, of_model, over_points, over_time, svg
from .page import HERE, Drawing, render
from .runs import Binned, Numbers
from .words import duration, joined

UPLOT = HERE / "uplot"  # uPlot 1.6.32 of the npm registry, as it is
TITLES = {
    "xqm": "XQM",
    "fifa": "FIFA",
    "lred": "LRED",
    "rem": "REM",
    "pert": "PERT",
}
NULLS = {"jain": ("null_model_jain", "null model")}
NONE = "-"
ROWS_CAPTION = "A ring: a run. Dot and bar: mean and 95 % interval. Blue: this repository's laws."
LINES_CAPTION = "Means, bars: 95 % intervals where there is more than a seed."
DASH_LENGTHS = {"-": [], "--": [8, 4], ":": [2, 3], "-.": [8, 3, 2, 3]}  # pixels
BESIDE_CAPTION = "A ring: a run, each of another load. Dot: their mean."
FALSE_POSITIVE_BINS = 10
FALSE_POSITIVE_CAPTION = "By tenths of the buffer; in brackets how many there were."
LAW_CAPTION = "Seed 1. What the qdisc tells; the ratio is eq. (3) solved for it."
COURSE_CAPTION = (
    "Seed 1. Line: mean of a second. Band: the middle 80 % of the samples. Shaded: not counted."
)


@dataclass(frozen=True)
class Cell:
    """A metric of a case at a point."""

    text: str
    paper: str = ""


class Shown:
    """A figure with its results, as the page has it."""

    def __init__(self, figure: Figure, times: Times, folder: Path) -> None:
        self.figure = figure
        self.results = Results(figure, folder)
        self.verdicts = judge_all(self.results)
        self.file = f"{figure.name}.html"
        self.seconds = sum(times.seconds.get(kept.run.name, 0) for kept in self.results.kept)

    @property
    def took(self) -> str:
        """On the wall, all runs together."""
        return duration(self.seconds) if self.seconds else ""

    @property
    def runs(self) -> str:
        """How much of it there is."""
        return f"{len(self.results.kept)} of {len(self.results.runs)}"

    @property
    def stale(self) -> int:
        """Results of older laws or another scenario."""
        return sum(not kept.present for kept in self.results.kept)

    @property
    def counts(self) -> Counter[str]:
        """Gates by what became of them."""
        return Counter(verdict.status for verdict in self.verdicts)

    @cached_property
    def places(self) -> list[tuple[Case, Point]]:
        """Where there are results."""
        return [
            (case, point)
            for case in self.figure.case
            for point in self.figure.points_of(case)
            if self.results.at(case.name, point.label)
        ]

    def ours(self, metric: str, case: str, point: str) -> str:
        """Mean and interval."""
        values = list(self.results.values(metric, case, point).values())
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not values:
            return NONE
        if not known:
            return "none" if math.inf in values else NONE
        measure = measure_of(metric)
        mean, half = interval(known)
        text = measure.text(mean) + (f" ± {measure.text(half)}" if half is not None else "")
        return text if len(known) == len(values) else f"{text} ({len(known)} of {len(values)})"

    def cell(self, metric: str, case: Case, point: Point) -> Cell:
        paper = self.figure.papers_value(metric, case.name, point.label)
        text = "" if paper is None else measure_of(metric).text(paper)
        return Cell(self.ours(metric, case.name, point.label), text)

    def of_gate(self, verdict: Verdict) -> tuple[str, str, str]:
        """Where the gate is nearest to failing: the paper's value, the null model's, ours."""
        metric, case = verdict.gate.metric, verdict.case
        if verdict.gate.over:
            return "", "", verdict.found and verdict.found.partition(": ")[2].split(",")[0]
        point = verdict.point
        paper = self.figure.papers_value(metric, case, point)
        null = self.ours(NULLS[metric][0], case, point) if metric in NULLS else ""
        return (
            "" if paper is None else measure_of(metric).text(paper),
            "" if null == NONE else null,
            self.ours(metric, case, point),
        )

    def drawings(self) -> Iterator[Drawing]:
        """The plots."""
        for metric in self.figure.plot.metrics:
            if drawn := self._drawing(metric):
                yield drawn
        for beside in self.figure.plot.beside:
            if drawn := self._beside(beside):
                yield drawn
        if self.figure.plot.false_positives and (drawn := self._false_positives()):
            yield drawn
        for time in self.figure.plot.time:
            if drawn := self._course(time):
                yield drawn
        yield from self._law()
        for model in self.figure.model:
            yield self._model(model)

    def _model(self, model: Model) -> Drawing:
        """What a model says, over what was measured."""
        found = FIGURES[model.name]()
        measured = {}
        if over := model.measured:
            for name, series in over.cases.items():
                pairs = [
                    (found_metric(kept.result, over.x), found_metric(kept.result, over.y))
                    for kept in self.results.kept
                    if kept.run.case.name == name
                ]
                known = [(x, y) for x, y in pairs if x is not None and y is not None]
                if known:
                    xs, ys = zip(*known, strict=True)
                    measured[series] = numbers(xs), numbers(ys)
        svg_text = svg(of_model(found, measured), f"{found.title}: {found.note}")
        return Drawing(svg_text, f"The model. {found.note}", tall=len(found.panels) > 2)

    @cached_property
    def _looks(self) -> dict[str, Look]:
        families = {case.name: case.family or case.name for case in self.figure.case}
        return looks(families, [case.name for case in self.figure.case if case.ours])

    def _drawing(self, metric: str) -> Drawing | None:
        measure = measure_of(metric)
        found = {
            (case.name, point.label): [
                measure.scale * value
                for value in self.results.values(metric, case.name, point.label).values()
                if value is not None and math.isfinite(value)
            ]
            for case, point in self.places
        }
        found = {place: values for place, values in found.items() if values}
        if not found:
            return None
        if all(point.x is not None for point in self.figure.points):
            return self._lines(metric, found)
        return self._rows(metric, found)

    def _rows(self, metric: str, found: dict[tuple[str, str], list[float]]) -> Drawing:
        measure = measure_of(metric)
        lone = len(self.figure.points) == 1
        rows = {
            name if lone else f"{name}, {label}": (values, *interval(values))
            for (name, label), values in found.items()
        }
        others = {}
        if lone:
            paper = {
                case.name: measure.scale * value
                for case in self.figure.case
                if (value := self.figure.papers_value(metric, case.name, "")) is not None
            }
            if paper:
                others["paper"] = paper
            if metric in NULLS:
                key, title = NULLS[metric]
                others[title] = {name: self._mean(key, name, label) for name, label in found}
        ours = [self.figure.cases[name].ours for name, _ in found]
        stressed = [row for row, mine in zip(rows, ours, strict=True) if mine]
        figure = by_case(measure.label, rows, stressed=stressed, others=others)
        text = "; ".join(f"{name} {mean:.{measure.digits}f}" for name, (_, mean, _) in rows.items())
        return Drawing(svg(figure, f"{measure.label}: {text}."), ROWS_CAPTION)

    def _beside(self, beside: Beside) -> Drawing | None:
        rows = {}
        for name, metric in beside.rows.items():
            values = [
                measure_of(metric).scale * value
                for case, point in self.places
                for value in self.results.values(metric, case.name, point.label).values()
                if value is not None
            ]
            if values:
                rows[name] = values, float(np.mean(values)), None
        if not rows:
            return None
        figure = by_case(beside.title, rows, stressed=beside.stressed)
        text = "; ".join(f"{name} {mean:.1f}" for name, (_, mean, _) in rows.items())
        return Drawing(svg(figure, f"{beside.title}, means: {text}."), BESIDE_CAPTION)

    def _false_positives(self) -> Drawing | None:
        """How the queue's length is distributed at the false positives: PERT's Figure 4."""
        edges = np.linspace(0, 1, FALSE_POSITIVE_BINS + 1)
        middle = (edges[:-1] + edges[1:]) / 2
        lines = {}
        for case, point in self.places:
            found = [
                length / buffer
                for result in self.results.at(case.name, point.label).values()
                if (buffer := buffer_pkts(result))
                for length in result.series["false_positive_queue"]
            ]
            if found:
                share = 100 * np.histogram(found, edges)[0] / len(found)
                name = f"{point.label or case.name} ({len(found)})"
                pairs = zip(middle.tolist(), share.tolist(), strict=True)
                lines[name] = [Spot(x, y, None) for x, y in pairs]
        if not lines:
            return None
        title = "false positives of srtt .99, % of them"
        drawn = looks({name: name for name in lines}, ())
        figure = over_points(title, "queue, of the buffer", lines, drawn, log=False)
        means = {name: sum(spot.x * spot.mean for spot in spots) for name, spots in lines.items()}
        text = "; ".join(f"{name} {mean / 100:.2f}" for name, mean in means.items())
        words = f"queue over buffer at false positives, mean: {text}."
        return Drawing(svg(figure, words), FALSE_POSITIVE_CAPTION)

    def _mean(self, metric: str, case: str, point: str) -> float:
        values = self.results.values(metric, case, point).values()
        return float(np.mean([value for value in values if value is not None]))

    def _lines(self, metric: str, found: dict[tuple[str, str], list[float]]) -> Drawing:
        measure = measure_of(metric)
        lines: dict[str, list[Spot]] = {}
        for (name, label), values in found.items():
            x = next(point.x for point in self.figure.points if point.label == label)
            paper = self.figure.papers_value(metric, name, label)
            scaled = None if paper is None else measure.scale * paper
            assert x is not None
            lines.setdefault(name, []).append(Spot(x, *interval(values), scaled))
        figure = over_points(
            measure.label, self.figure.plot.x, lines, self._looks, log=self.figure.plot.log
        )
        caption = LINES_CAPTION
        if any(spot.paper is not None for spots in lines.values() for spot in spots):
            caption += " Hollow: the paper's."
        return Drawing(svg(figure, f"{measure.label}: the values are in the table below."), caption)

    def _law(self) -> Iterator[Drawing]:
        """LRED's probability and loss ratio, over all the run and in a part of it."""
        law = self.figure.plot.law
        result = self.results.at(law.case, "").get(1) if law else None
        for part in ("law", "law_zoomed") if result else ():
            assert result
            time_s, queue, probability = map(numbers, zip(*result.series[part], strict=True))
            ratio = loss_ratio(result.qdisc, probability, queue)
            lines = {"drop probability": (time_s, probability), "loss ratio": (time_s, ratio)}
            title = f"{time_s[0]:.0f} to {time_s[-1]:.0f} s"
            drawn = ModelFigure(title, "seconds", (Panel("", lines),), "")
            yield Drawing(svg(of_model(drawn), f"{title}: both over time."), LAW_CAPTION)

    def _course(self, time: Course) -> Drawing | None:
        series = {}
        warmup_s = 0.0
        for case in time.cases:
            result = self.results.at(case, time.point).get(1)
            if result and len(result.series.get("queue", [])) > time.link:
                bins = result.series["queue"][time.link]
                middle = BIN_S * (np.arange(len(bins), dtype=np.float64) + 0.5)
                series[case] = Binned(middle, *map(numbers, zip(*bins, strict=True)))
                warmup_s = result.scenario["warmup_s"]
        if not series:
            return None
        where = f" at {time.point}" if time.point else ""
        figure = over_time(
            f"queue over time{where}, packets", series,
            warmup_s=warmup_s, reference=time.reference, drawn=self._looks,
        )  # fmt: skip
        caption = COURSE_CAPTION + ("" if time.reference is None else " Dashed: the target.")
        words = f"queue over time, a panel each for {joined(series)}."
        return Drawing(svg(figure, words), caption, tall=True, course=self._zoomed(series))

    def _zoomed(self, series: Mapping[str, Binned]) -> str:
        """The means, as zoom.js takes them."""
        longest = max(series.values(), key=lambda bins: len(bins.middle))
        lines = [
            {
                "name": name,
                "colour": self._looks[name].colour,
                "dash": DASH_LENGTHS[self._looks[name].dashes],
                "mean": bins.mean.tolist(),
            }
            for name, bins in series.items()
        ]
        return json.dumps({"time": longest.middle.tolist(), "lines": lines})

    def commands(self) -> list[str]:
        """Of each case and point, for the first seed."""
        return [shell(run.command("out/run")) for run in self.results.runs if run.seed == 1]

    def made_of(self) -> list[str]:
        """Kernels, programs and modules of the results, each once."""
        found: dict[str, None] = {}
        for kept in self.results.kept:
            made = kept.result.provenance
            modules = (
                f"{name} {facts['srcversion']}"
                for name, facts in made["modules"].items()
                if name in kept.run.laws
            )
            words = (
                f"Linux {made['kernel']}", made["iproute2"], f"Mininet {made['mininet']}",
                f"Python {made['python']}", f"lab and aqmlab {made['programs']}", *modules,
            )  # fmt: skip
            found[", ".join(words)] = None
        return list(found)


def numbers(values: Sequence[float]) -> Numbers:
    """For numpy."""
    return np.array(values, dtype=np.float64)


def chapters(
    rows: Sequence[Row], figures: Sequence[Shown]
) -> list[tuple[str, list[tuple[Row, list[Shown]]]]]:
    """Of each paper its rows, with what there is of them."""
    return [
        (
            TITLES[paper],
            [
                (row, [one for one in figures if one.figure.target == row.figure])
                for row in rows
                if row.paper == paper
            ],
        )
        for paper in PAPERS
    ]


def write_report(out: Path, folder: Path = FOLDER) -> Path:
    """Write the pages into OUT; the first of them."""
    times = Times(folder)
    figures = [Shown(figure, times, folder) for figure in load_figures(folder).values()]
    rows = load_rows(folder)
    own = [one for one in figures if not one.figure.runs]
    unplanned = [row for row in rows if all(one.figure.target != row.figure for one in figures)]
    counts = sum((one.counts for one in figures), Counter[str]())
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    common = {"chapters": chapters(rows, figures), "measure_of": measure_of}
    for file in UPLOT.iterdir():
        shutil.copy(file, out / file.name.replace("LICENSE", "uPlot.LICENSE"))
    index = out / "index.html"
    index.write_text(
        render(
            "papers.html.j2",
            **common,
            counts=counts,
            unplanned=unplanned,
            runs=sum(len(one.results.kept) for one in own),
            stale=sum(one.stale for one in own),
            took=duration(sum(one.seconds for one in own)),
        )
    )
    for one in figures:
        row = next(row for row in rows if row.figure == one.figure.target)
        (out / one.file).write_text(
            render(
                "figure.html.j2",
                shown=one,
                figure=one.figure,
                row=row,
                paper=TITLES[row.paper],
                drawings=list(one.drawings()),
                zoom=(HERE / "zoom.js").read_text(),
                measure_of=measure_of,
            )
        )
    return index
