# SPDX-License-Identifier: GPL-2.0-or-later
"""A figure of a paper as data: its TOML file, read strictly."""

from __future__ import annotations

import re
import shlex
import string
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from models import FIGURES

from .measured import METRICS, known_metric

FOLDER = Path(__file__).resolve().parent
PAPERS = ("xqm", "fifa", "lred", "rem", "pert")
ALL = "all"  # in a run's name, where a figure has no points
SCRIPTS = {"dumbbell": ("dumbbell.py", "--qdisc"), "multihop": ("multihop.py", "--qdiscs")}
MAX_SEEDS = 10
# What a figure takes from the one whose runs it shows; of cases and points, those that it names.
SHARED = ("topology", "common", "seeds")


class FigureError(Exception):
    """A TOML file that cannot be used: names the file and the key."""


def _metric(name: str) -> str:
    if not known_metric(name):
        raise ValueError(f"no metric {name!r}; there are {', '.join(METRICS)}, and links.N.…")
    return name


def _words(text: str) -> str:
    try:
        shlex.split(text)
    except ValueError as wrong:
        raise ValueError(f"{text!r}: {wrong}") from None
    return text


def _several(given: object) -> object:
    """A single table as a list of one."""
    return [given] if isinstance(given, dict) else given


Metric = Annotated[str, AfterValidator(_metric)]
Options = Annotated[str, AfterValidator(_words)]  # as one types them to a shell
Seeds = Annotated[int, Field(ge=1, le=MAX_SEEDS)]


class Strict(BaseModel):
    """Takes the keys it knows, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Case(Strict):
    """What a figure compares: one of its lines, or a row of its table."""

    name: str
    qdisc: str  # tc's words; in a chain of all links, with a ';' between
    options: Options = ""  # of the script, for this case alone
    modules: tuple[str, ...] = ()  # loaded first, with these parameters: 'tcp_pert coexist=1'
    points: tuple[str, ...] | None = None  # None: all
    seeds: Seeds | None = None  # None: as the figure
    ours: bool = False  # a law of this repository's
    family: str = ""  # cases of one family are drawn in one colour


class Point(Strict):
    """Where a figure's sweep stops."""

    label: str
    x: float | None = None  # where it is drawn
    options: Options = ""
    values: dict[str, str | int | float] = {}  # for {name} in the case's qdisc and options


class Quick(Strict):
    """The part of a figure that is run when time is short."""

    cases: tuple[str, ...]
    points: tuple[str, ...] = ()


class Other(Strict):
    """What a gate compares with, instead of a number."""

    cases: tuple[str, ...] = ()  # each of them; none: the same case
    metric: Metric | tuple[Metric, ...] | None = None  # each of them; None: the same
    point: str | None = None  # None: the same
    paper: bool = False  # with the paper's value instead


class Gate(Strict):
    """A condition of TARGETS.md: METRIC IS (value or than) times TIMES plus PLUS."""

    words: str  # of TARGETS.md
    metric: Metric
    cases: tuple[str, ...]  # each of them
    points: tuple[str, ...] | None = None  # at each of them; None: at all
    compare: Literal["at least", "at most", "above", "below", "within"] = Field(alias="is")
    value: float | None = None
    than: Other | None = None
    times: float = 1
    plus: float = 0
    tolerance: float | None = None  # of 'within': either way
    share: float | None = None  # the same, as a part of what is compared with
    of: Literal["each seed", "mean"] = "each seed"
    over: Literal["slope", "rise"] | None = None  # of the points: least squares; the largest step

    @model_validator(mode="after")
    def _consistent(self) -> Gate:
        if (self.value is None) == (self.than is None):
            raise ValueError("give either value or than")
        margins = [margin for margin in (self.tolerance, self.share) if margin is not None]
        if len(margins) != (self.compare == "within"):
            raise ValueError("tolerance or share goes with 'within', which needs one of them")
        return self


class Course(Strict):
    """Queues over time, of a seed's runs, one panel a case."""

    cases: tuple[str, ...]
    point: str = ""
    link: int = 0
    reference: float | None = None  # a line: the target


class Beside(Strict):
    """Metrics of one kind side by side: a row each, a ring for each run."""

    title: str
    rows: dict[str, Metric]
    stressed: tuple[str, ...] = ()


class Law(Strict):
    """LRED's probability over time, and the loss ratio in it."""

    case: str
    zoom: tuple[float, float]  # s: the part that is shown in full


class Plot(Strict):
    """What is drawn."""

    metrics: tuple[Metric, ...] = ()
    x: str = ""  # what the points' x is, with its unit
    log: bool = False
    time: Annotated[tuple[Course, ...], BeforeValidator(_several)] = ()
    law: Law | None = None
    beside: tuple[Beside, ...] = ()
    false_positives: bool = False  # the queue's length at those of srtt .99, a line for each point

    @property
    def all_metrics(self) -> list[str]:
        """All that are drawn."""
        return [*self.metrics, *(name for one in self.beside for name in one.rows.values())]


class Measured(Strict):
    """Results over a model's curves: a point for each of a case's own."""

    x: Metric
    y: Metric
    cases: dict[str, str]  # and by which of the model's series they stand


class Model(Strict):
    """A figure of models/."""

    name: str
    measured: Measured | None = None

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in FIGURES:
            raise ValueError(f"no model {name!r}; there are {', '.join(FIGURES)}")
        return name


class Figure(Strict):
    """A figure, or a table, of a paper."""

    title: str
    target: str  # its row in targets.toml
    setup: str  # in the paper's words
    readings: tuple[str, ...] = ()  # of what these leave open
    topology: Literal["dumbbell", "multihop"] = "dumbbell"
    common: Options = ""
    case: tuple[Case, ...] = ()  # none: there are models only
    point: tuple[Point, ...] = ()
    seeds: Seeds = 1
    quick: Quick = Quick(cases=())
    metrics: tuple[Metric, ...] = ()  # of the table, in this order
    paper: dict[Metric, dict[str, float | dict[str, float]]] = {}  # by case, or by case and point
    gate: tuple[Gate, ...] = ()
    plot: Plot = Plot()
    model: tuple[Model, ...] = ()
    misses: str = ""  # why, and what was tried
    name: str = Field(init=False)  # xqm-table1: of the file's path
    runs: str = ""  # the figure whose runs it shows, instead of runs of its own
    courses: tuple[Course, ...] = Field(init=False)  # kept of its runs, whoever shows them

    @property
    def home(self) -> str:
        """Whose the runs are."""
        return self.runs or self.name

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """At least one."""
        return self.point or (Point(label=""),)

    @cached_property
    def cases(self) -> dict[str, Case]:
        """By name."""
        return {case.name: case for case in self.case}

    def points_of(self, case: Case) -> list[Point]:
        """Where CASE is run."""
        return [one for one in self.points if case.points is None or one.label in case.points]

    @property
    def kept_as(self) -> str:
        """The name of the figure whose runs it shows: its own, if it has any."""
        return f"{self.name.partition('-')[0]}-{self.runs}" if self.runs else self.name

    def papers_value(self, metric: str, case: str, point: str) -> float | None:
        """What the paper has there."""
        found = self.paper.get(metric, {}).get(case)
        return found.get(point) if isinstance(found, dict) else found

    def words(self, case: Case, point: Point) -> list[str]:
        """The script and its options."""
        script, option = SCRIPTS[self.topology]
        fill = dict(point.values)
        texts = (self.common, point.options, case.options)
        options = [word for text in texts for word in shlex.split(text.format_map(fill))]
        return [f"mininet/{script}", option, case.qdisc.format_map(fill), *options]

    @model_validator(mode="after")
    def _consistent(self) -> Figure:
        needed = ("common", "quick", "metrics", "plot") if self.case else ("model",)
        for key in needed:
            if key not in self.model_fields_set:
                raise ValueError(f"{key}: needed {'with cases' if self.case else 'without cases'}")
        labels = [one.label for one in self.points]
        _unique("case", (slug(case.name) for case in self.case))
        _unique("point", map(slug, labels))

        def known(where: str, names: Iterable[str] | None, among: Iterable[str]) -> None:
            for name in names or ():
                if name not in among:
                    raise ValueError(f"{where}: {name!r} is none of {', '.join(among)}")

        def known_values(where: str, texts: Sequence[str], point: Point) -> None:
            fields = (field for text in texts for _, field, _, _ in string.Formatter().parse(text))
            known(where, sorted({field for field in fields if field}), point.values)

        for case in self.case:
            known(f"case {case.name}: points", case.points, labels)
            for point in self.points_of(case):
                where = f"case {case.name} at {point.label or ALL}"
                known_values(where, (case.qdisc, case.options, point.options, self.common), point)
        known("quick: cases", self.quick.cases, self.cases)
        known("quick: points", self.quick.points, labels)
        for metric, by_case in self.paper.items():
            known(f"paper.{metric}", by_case, self.cases)
            for name, value in by_case.items():
                known(f"paper.{metric}.{name}", value if isinstance(value, dict) else (), labels)
        for gate in self.gate:
            where = f"gate {gate.words!r}"
            other = gate.than or Other()
            known(f"{where}: cases", (*gate.cases, *other.cases), self.cases)
            known(f"{where}: points", gate.points, labels)
            known(f"{where}: point", other.point and [other.point], labels)
            if gate.over and any(one.x is None for one in self.points):
                raise ValueError(f"{where}: over needs an x at every point")
        for model in self.model:
            over = model.measured.cases if model.measured else ()
            known(f"model {model.name}: cases", over, self.cases)
        for time in self.plot.time:
            known("plot.time: cases", time.cases, self.cases)
            known("plot.time: point", [time.point], labels)
        if self.plot.law:
            known("plot.law: case", [self.plot.law.case], self.cases)
        return self


def slug(name: str) -> str:
    """NAME as part of a file's name."""
    found = name.lower().replace("+", "-plus").replace("*", "-star").replace("%", "-percent")
    return re.sub(r"[^a-z0-9.]+", "-", found).strip("-").replace(".", "_") or ALL


def _unique(what: str, names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise ValueError(f"more than one {what} is called {name!r}")
        seen.add(name)


class Row(Strict):
    """A row of TARGETS.md, or a figure beyond it that is to be shown."""

    figure: str
    paper: Literal["xqm", "fifa", "lred", "rem", "pert"]
    setup: str
    says: str  # the paper, and the prototype
    gate: str


class Rows(Strict):
    row: tuple[Row, ...]


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as wrong:
        raise FigureError(f"{path}: {wrong}") from None


def _built(path: Path, build: Callable[[], Any]) -> Any:
    try:
        return build()
    except ValidationError as wrong:
        first = wrong.errors()[0]
        key = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        raise FigureError(f"{path}: {key + ': ' if key else ''}{said}") from None


def _chosen(path: Path, key: str, field: str, names: object, among: Any) -> list[Any]:
    """Of the tables AMONG those that NAMES has; all of them if it is None."""
    if names is None:
        return list(among)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FigureError(f"{path}: {key}: names are wanted, of those whose runs are shown")
    found = {one.get(field): one for one in among}
    for name in names:
        if name not in found:
            raise FigureError(f"{path}: {key}: {name!r} is none of {', '.join(found)}")
    return [found[name] for name in names]


def _times(keys: Mapping[str, Any]) -> list[Any]:
    time = keys.get("plot", {}).get("time", [])
    return [time] if isinstance(time, dict) else list(time)


def _counted(path: Path) -> list[str | int]:
    """As people sort: Figure 7 before Figure 10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.stem)]


def _folder_of(path: Path) -> dict[str, Figure]:
    """The figures of a paper's folder, by name."""
    found = sorted(path.glob("*.toml"), key=_counted)
    paths = {f"{path.name}-{one.stem}": one for one in found}
    own = {name: _parsed(one) for name, one in paths.items()}
    whole = {}
    for name, keys in own.items():
        home = keys.get("runs", name)
        if home not in own or "runs" in own[home]:
            raise FigureError(f"{paths[name]}: runs: no figure {home!r} of this paper has any")
        shown = [one for one in own.values() if one.get("runs", "") == home]
        courses = [time for one in (own[home], *shown) for time in _times(one)]
        whole[name] = {**keys, "name": name, "courses": courses}
        if home != name:
            theirs = own[home]
            for key in SHARED:
                if key in keys:
                    raise FigureError(f"{paths[name]}: {key}: that of {home}, whose runs it shows")
            shared = {key: theirs[key] for key in SHARED if key in theirs}
            for key, field in (("case", "name"), ("point", "label")):
                if given := theirs.get(key):
                    shared[key] = _chosen(paths[name], key, field, keys.get(key), given)
            whole[name] |= shared
    return {name: _built(paths[name], partial(Figure, **keys)) for name, keys in whole.items()}


def load_figure(path: Path) -> Figure:
    """The figure of a TOML file; FigureError if it makes no sense."""
    return _folder_of(path.parent)[f"{path.parent.name}-{path.stem}"]


def load_figures(folder: Path = FOLDER) -> dict[str, Figure]:
    """All figures of FOLDER, by name, in the order of PAPERS."""
    figures = {name: one for paper in PAPERS for name, one in _folder_of(folder / paper).items()}
    rows = {row.figure for row in load_rows(folder)}
    for name, figure in figures.items():
        if figure.target not in rows:
            path = folder / name.replace("-", "/", 1)
            raise FigureError(f"{path}.toml: target: no row {figure.target!r} in targets.toml")
    return figures


def load_rows(folder: Path = FOLDER) -> tuple[Row, ...]:
    """The rows of targets.toml."""
    path = folder / "targets.toml"
    keys = _parsed(path)
    rows: Rows = _built(path, partial(Rows, **keys))
    return rows.row
