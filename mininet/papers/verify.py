# SPDX-License-Identifier: GPL-2.0-or-later
"""Kept results made anew: the same bytes where all is the same, else the same distribution."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .judge import ENDLESS
from .measured import found_metric
from .perform import result_of
from .plan import Run, runs_of
from .result import Result, unpacked

# Student's t for a two-sided interval of 99.9 %, by number of runs: one false alarm in a thousand.
T_999 = {2: 636.6, 3: 31.60, 4: 12.92, 5: 8.610, 6: 6.869, 7: 5.959, 8: 5.408, 9: 5.041, 10: 4.781}
SLACK = 0.1  # of the mean: less is no difference worth an alarm
LONE_SLACK = 0.25  # where there is one run, or two, and so no knowing how much they vary


@dataclass(frozen=True)
class Finding:
    """What became of a run that was made anew."""

    run: Run
    same_makings: bool  # kernel, modules, programs
    differences: tuple[str, ...]  # none: it agrees


def draw(kept: Sequence[Run], number: int, seed: str) -> list[Run]:
    """NUMBER of the runs that are KEPT, drawn by SEED."""
    return random.Random(seed).sample(kept, min(number, len(kept)))


def compare(run: Run, kept: Result, anew: Result) -> Finding:
    """Hold ANEW against what is KEPT."""
    if kept.provenance == anew.provenance and kept.laws == anew.laws:
        same = kept.packed() == anew.packed()
        return Finding(run, True, () if same else tuple(differing(kept, anew)))
    return Finding(run, False, tuple(disagreeing(run, anew)))


def differing(kept: Result, anew: Result) -> Iterable[str]:
    """Where two results differ that should be equal to the byte."""
    for part in ("command", "scenario", "series"):
        if getattr(kept, part) != getattr(anew, part):
            yield f"another {part}"
    for name in sorted(kept.metrics.keys() | anew.metrics.keys()):
        before, now = kept.metrics.get(name), anew.metrics.get(name)
        if before != now:
            short = f"{before} before, {now} now" if name != "flows" else "others"
            yield f"{name}: {short}"


def disagreeing(run: Run, anew: Result) -> Iterable[str]:
    """The figure's metrics in which ANEW does not belong to the kept seeds of its case and point.

    It belongs to n of them if it differs from their mean by no more than t s sqrt(1 + 1/n), t of
    Student's distribution for 99.9 %, or by SLACK of the mean; for n < 3 by LONE_SLACK.
    """
    figure = run.figure
    others = [
        unpacked(one.path.read_bytes())
        for one in runs_of(figure, folder=run.folder)
        if (one.case, one.point) == (run.case, run.point) and one.path.exists()
    ]
    for name in figure.plot.all_metrics:
        found = [found_metric(one, name) for one in others]
        before = [value for value in found if value is not None]
        now = found_metric(anew, name)
        if name in ENDLESS and len(before) < len(found):
            continue  # it ended in some runs, and not in others
        if (now is None) != (not before):
            yield f"{name}: {before} before, {now} now"
        elif now is not None and abs(now - statistics.fmean(before)) > allowed(before):
            yield f"{name}: {', '.join(f'{value:.4g}' for value in before)} before, {now:.4g} now"


def allowed(values: Sequence[float]) -> float:
    """How far a further run may be from the mean of VALUES."""
    mean, count = abs(statistics.fmean(values)), len(values)
    if count < 3:
        return LONE_SLACK * mean
    spread = statistics.stdev(values) * math.sqrt(1 + 1 / count)
    return max(T_999[count] * spread, SLACK * mean)


def verify(run: Run) -> Finding:
    """Make RUN anew."""
    return compare(run, unpacked(run.path.read_bytes()), result_of(run))
