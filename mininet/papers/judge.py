# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a figure's results meet its gates."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .measured import found_metric, measure_of
from .plan import Run, runs_of
from .result import Result
from .schema import FOLDER, Case, Figure, Gate, Other, Point

ROUNDING = 1e-9  # of sums: results have six decimals
Status = Literal["met", "missed", "not run"]
# Metrics of which none means that it lasted longer than the run.
ENDLESS = ("response_time_s", "transfer_s", "recovery_s")
Compared = tuple[str, str, str | None]  # with what: a case, a metric, and a point, or the same


@dataclass(frozen=True)
class Kept:
    """A run's result, and whether it is of the present scenario and laws."""

    run: Run
    result: Result
    present: bool


class Results:
    """What there is of a figure."""

    def __init__(self, figure: Figure, folder: Path = FOLDER) -> None:
        self.figure = figure
        self.runs = list(runs_of(figure, folder=folder))
        self.kept: list[Kept] = []
        self._by_place: dict[tuple[str, str], dict[int, Result]] = defaultdict(dict)
        for run in self.runs:
            if found := run.result():
                self.kept.append(Kept(run, *found))
                self._by_place[run.case.name, run.point.label][run.seed] = found[0]

    def at(self, case: str, point: str) -> Mapping[int, Result]:
        """Results by seed."""
        return self._by_place[case, point]

    def values(self, metric: str, case: str, point: str) -> dict[int, float | None]:
        """A metric's values by seed; None: the run has no such number."""
        found = {seed: found_metric(one, metric) for seed, one in self.at(case, point).items()}
        if metric in ENDLESS:
            return {seed: math.inf if one is None else one for seed, one in found.items()}
        return found


@dataclass(frozen=True)
class Verdict:
    """What became of a gate."""

    gate: Gate
    status: Status
    found: str  # the comparison nearest to failing, or the worst that failed
    case: str  # of that comparison
    point: str
    failed: int = 0
    done: int = 0  # comparisons
    seeds: tuple[int, int] = (0, 0)  # the fewest that a comparison had; those asked for


@dataclass(frozen=True)
class Check:
    """A single comparison: it holds if LEFT is on the right side, by MARGIN, of RIGHT."""

    place: str
    case: str
    point: str
    left: float
    right: float
    margin: float  # negative: it does not hold


def judge(gate: Gate, results: Results) -> Verdict:
    """Hold RESULTS against GATE; a gate of which a case or a point is missing was not run."""
    checks: list[Check] = []
    missing = False
    fewest, wanted = math.inf, 0
    for case, point, other in _places(gate, results.figure):
        left = _numbers(gate, results, gate.metric, case, point)
        right = _other(gate, other, results, case, point)
        seeds = sorted(left if right is None else left.keys() & right.keys())
        wanted = max(wanted, case.seeds or results.figure.seeds)
        fewest = min(fewest, len(seeds))
        if not seeds:
            missing = True
            continue
        where = " at ".join(filter(None, (case.name, point.label if point else "")))
        pairs = {
            f"{where}, seed {seed}": (left[seed], gate.value if right is None else right[seed])
            for seed in seeds
        }
        if gate.of == "mean":
            pairs = {f"{where}, mean": _mean(list(pairs.values()))}
        names = (case.name, point.label if point else "")
        checks += [_check(gate, place, *names, *pair) for place, pair in pairs.items()]
    failed = [check for check in checks if check.margin < -ROUNDING]
    status: Status = "missed" if failed else "not run" if missing or not checks else "met"
    worst = min(checks, key=lambda check: check.margin, default=None)
    return Verdict(
        gate,
        status,
        _told(gate, worst) if worst else "",
        worst.case if worst else gate.cases[0],
        worst.point if worst else "",
        len(failed),
        len(checks),
        (int(fewest) if checks else 0, wanted),
    )


def _places(gate: Gate, figure: Figure) -> Iterator[tuple[Case, Point | None, Compared | None]]:
    """Each case, point and what it is compared with; no point: a number of all of them."""
    for name in gate.cases:
        case = figure.cases[name]
        points = [
            point
            for point in figure.points_of(case)
            if gate.points is None or point.label in gate.points
        ]
        others: list[Compared | None] = [None]
        if gate.than:
            named = gate.than.metric or gate.metric
            metrics = (named,) if isinstance(named, str) else named
            cases = gate.than.cases or (name,)
            others = [(*pair, gate.than.point) for pair in itertools.product(cases, metrics)]
        places: list[Point | None] = [None] if gate.over else [*points]
        yield from itertools.product([case], places, others)


def _numbers(
    gate: Gate, results: Results, metric: str, case: Case, point: Point | None
) -> dict[int, float | None]:
    """By seed: the metric, or what GATE makes of it over all points."""
    if point:
        return results.values(metric, case.name, point.label)
    points = [
        one
        for one in results.figure.points_of(case)
        if gate.points is None or one.label in gate.points
    ]
    by_point = [results.values(metric, case.name, one.label) for one in points]
    seeds = set.intersection(*(set(found) for found in by_point))
    xs = [one.x for one in points if one.x is not None]
    reduce = OVER[gate.over or "slope"]

    def reduced(seed: int) -> float | None:
        values = [found[seed] for found in by_point]
        known = [value for value in values if value is not None]
        return reduce(xs, known) if len(known) == len(values) else None

    if gate.of == "mean":  # of means: the points' seeds need not be the same
        means = [_mean_of(list(found.values())) for found in by_point]
        numbers = [mean for mean in means if mean is not None]
        return {0: reduce(xs, numbers)} if len(numbers) == len(points) else {}
    return {seed: reduced(seed) for seed in sorted(seeds)}


def _other(
    gate: Gate,
    other: Compared | None,
    results: Results,
    case: Case,
    point: Point | None,
) -> dict[int, float | None] | None:
    if other is None:
        return None
    than = gate.than or Other()
    name, metric, label = other
    if than.paper:
        return _paper(results, metric, case, point)
    if label is not None:
        return results.values(metric, name, label)
    return _numbers(gate, results, metric, results.figure.cases[name], point)


def _paper(
    results: Results, metric: str, case: Case, point: Point | None
) -> dict[int, float | None]:
    """The paper's value, for every seed."""
    label = point.label if point else ""
    value = results.figure.papers_value(metric, case.name, label)
    return dict.fromkeys(results.at(case.name, label), value)


def _slope(xs: Sequence[float], values: Sequence[float]) -> float:
    return statistics.linear_regression(xs, values).slope


def _rise(_: Sequence[float], values: Sequence[float]) -> float:
    """The largest step up from one point to the next."""
    return max(b - a if b != a else 0.0 for a, b in itertools.pairwise(values))


OVER: dict[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "slope": _slope,
    "rise": _rise,
}


def _mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _mean(
    pairs: Sequence[tuple[float | None, float | None]],
) -> tuple[float | None, float | None]:
    left, right = zip(*pairs, strict=True)
    return _mean_of(left), _mean_of(right)


def _check(
    gate: Gate, place: str, case: str, point: str, left: float | None, right: float | None
) -> Check:
    if left is None or right is None:
        return Check(place, case, point, math.nan, math.nan, -math.inf)
    bound = gate.times * right + gate.plus
    if gate.compare == "within":
        allowed = gate.tolerance if gate.share is None else gate.share * abs(bound)
        margin = (allowed or 0) - abs(left - bound)
    elif left == bound:
        margin = 0.0 if gate.compare in ("at least", "at most") else -math.inf
    else:
        margin = left - bound if gate.compare in ("at least", "above") else bound - left
    return Check(place, case, point, left, bound, margin)


def _told(gate: Gate, check: Check) -> str:
    """The comparison in words."""
    if math.isnan(check.left):
        return f"{check.place}: no such number"
    measure = measure_of(gate.metric)
    scale, digits = measure.scale, measure.digits + (1 if gate.over == "slope" else 0)

    def text(value: float) -> str:
        return "none" if math.isinf(value) else f"{scale * value:.{digits}f}"

    which = {"slope": "slope of ", "rise": "largest step of ", None: ""}[gate.over]
    around = ""
    if gate.compare == "within":
        allowed = gate.tolerance if gate.share is None else gate.share * abs(check.right)
        around = f" ± {text(allowed or 0)}"
    words = f"{which}{measure.title} {text(check.left)}, {gate.compare} {text(check.right)}"
    return f"{check.place}: {words}{around}"


def judge_all(results: Results) -> list[Verdict]:
    """Every gate of the figure."""
    return [judge(gate, results) for gate in results.figure.gate]
