# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare queues over several seeds in the lab: each case's mean and its 95 % interval.

    mininet/compare.py --case RED 'fifa base red noscale' \\
        --case RED+ 'fifa base red' --label socket \\
        -- --flows 30 --rate 30mbit --rtt 40ms:330ms --duration 120 --warmup 30

The metrics are dumbbell.py's, and those that papers/measured.py makes of them: fifa_null_jain,
Jain's index as FIFA's null model has it; response_bound_s, the least response time of PI or REM at
the drop_rate, by LRED's paper; and others.

What follows a case's qdisc, up to the next case, are options of dumbbell.py for that case alone;
what follows "--" are options for all. With --rates among these the runs are multihop.py's: a case
has the qdiscs of all links, and links.0.mean_queue_pkts is a metric of the first.

--figure draws the first metric, a row per case, as SVG; --title says what it is.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from aqmlab.options import Parser, whole
from papers.measured import T_95, NoMetricError, found_metric, interval
from papers.perform import perform
from papers.result import Result
from report.figures import by_case, standalone, svg
from report.runs import NoResultError, in_lab

METRICS = "jain,null_model_jain,goodput_mbps,mean_queue_pkts,drop_rate"
USAGE = "see compare.py --help"


@dataclass(frozen=True)
class Case:
    """A name, and the options of dumbbell.py or multihop.py that make it."""

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One run."""

    case: Case
    seed: int


@dataclass
class Request:
    """The command line."""

    cases: list[Case]
    common: tuple[str, ...]
    multihop: bool
    seeds: int
    metrics: tuple[str, ...]
    figure: Path | None
    title: str
    json: bool


def reader() -> Parser:
    """Of the options that are compare.py's own, which may stand anywhere before the "--"."""
    parser = Parser((__doc__ or "").splitlines()[0])
    parser.usage = "%(prog)s [options] --case NAME QDISC [its options] ... -- options for all"
    add = parser.add_argument
    add(
        "--seeds",
        type=whole(min(T_95), max(T_95)),
        default=5,
        metavar="N",
        help="runs of each case (%(default)s)",
    )
    add(
        "--metrics",
        type=lambda text: tuple(text.split(",")),
        default=tuple(METRICS.split(",")),
        metavar="A,B",
        help=f"{METRICS}, unless stated",
    )
    add("--figure", type=Path, metavar="FILE", help="for the first metric, a row per case, as SVG")
    add("--title", default="", help="of that figure")
    add("--json", action="store_true", help="print all values as well")
    return parser


def parse(words: list[str]) -> Request:
    """Read the command line; its options belong to three different readers."""
    end = words.index("--") if "--" in words else len(words)
    groups: list[list[str]] = [[]]
    for word in words[:end]:
        if word == "--case":
            groups.append([])
        else:
            groups[-1].append(word)
    parser, common = reader(), tuple(words[end + 1 :])
    multihop = "--rates" in common
    own, unknown = parser.parse_known_args(groups[0])
    if unknown:
        parser.error(f"{unknown[0]} stands before the first --case: {USAGE}")
    if not groups[1:] or not common:
        parser.error(f"needs cases, and options for all after --: {USAGE}")
    cases = dict[str, Case]()
    for group in groups[1:]:
        own, options = parser.parse_known_args(group, own)
        if len(options) < 2:
            parser.error(f"--case: needs a name and a qdisc: {USAGE}")
        name, *rest = options
        if name in cases:
            parser.error(f"--case: there are two of the name {name}")
        cases[name] = Case(name, ("--qdiscs" if multihop else "--qdisc", *rest))
    return Request(list(cases.values()), common, multihop, **vars(own))


def run(job: Job, request: Request) -> Result:
    """Do one run in the lab. Ends everything if it fails, or lacks a metric."""
    script = "mininet/multihop.py" if request.multihop else "mininet/dumbbell.py"

    def command(folder: str) -> list[str]:
        words = [script, *job.case.options, *request.common, "--out", folder]
        return in_lab(words, folder, job.seed)

    try:
        result = perform(command)
    except NoResultError as failed:
        raise SystemExit(f"{job.case.name}, seed {job.seed}:\n{failed}") from None
    for name in request.metrics:
        value(result, name)
    return result


def value(result: Result, name: str) -> float | None:
    """The metric NAME: jain, or links.0.drop_rate. Ends everything if there is none."""
    try:
        return found_metric(result, name)
    except NoMetricError as wrong:
        raise SystemExit(f"compare.py: --metrics: {wrong}") from None


def shown(values: list[float | None]) -> str:
    """A cell of the table; a metric that some run lacks has no mean."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return f"{len(numbers)} of {len(values)}"
    mean, half = interval(numbers)
    return f"{mean:.3f}±{half:.3f}"


def draw(request: Request, summary: dict[str, dict[str, list[float | None]]]) -> str:
    """The first metric as a figure; cases that some run lacks it in are left out."""
    metric = request.metrics[0]
    cases = {}
    for name, found in summary.items():
        values = [one for one in found[metric] if one is not None]
        if len(values) == request.seeds:
            cases[name] = (values, *interval(values))
    words = "; ".join(f"{name} {mean:.3f}" for name, (_, mean, _) in cases.items())
    title = request.title or metric
    return standalone(svg(by_case(title, cases), f"{title}: {words}."))


def main() -> int:
    request = parse(sys.argv[1:])
    seeds = range(1, request.seeds + 1)
    jobs = [Job(*pair) for pair in itertools.product(request.cases, seeds)]
    console = Console(stderr=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(lambda job: run(job, request), jobs)
        results = list(track(found, "runs", len(jobs), console=console, transient=True))
    table = Table(Column("case", overflow="fold"))
    for metric in request.metrics:
        table.add_column(metric, overflow="fold", justify="right")
    summary: dict[str, dict[str, list[float | None]]] = {}
    for case in request.cases:
        mine = [result for job, result in zip(jobs, results, strict=True) if job.case == case]
        summary[case.name] = {name: [value(one, name) for one in mine] for name in request.metrics}
        table.add_row(case.name, *map(shown, summary[case.name].values()))
    Console().print(table)
    if request.figure:
        request.figure.write_text(draw(request, summary))
    if request.json:
        print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
