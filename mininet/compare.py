# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare queues over several seeds in the lab: each case's mean and its 95 % interval.

    mininet/compare.py --case RED 'fifa base red noscale' \\
        --case RED+ 'fifa base red' --label socket \\
        -- --flows 30 --rate 30mbit --rtt 40ms:330ms --duration 120 --warmup 30

The metrics are dumbbell.py's, and fifa_null_jain: Jain's index as FIFA's null model has it.

What follows a case's qdisc, up to the next case, are options of dumbbell.py for that case alone;
what follows "--" are options for all.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from fifa_null import exponents, fifa_null_jain

ROOT = Path(__file__).resolve().parent.parent
# Student's t for a two-sided interval of 95 %, by number of runs.
T_95 = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
METRICS = "jain,null_model_jain,goodput_mbps,mean_queue_pkts,drop_rate"
USAGE = "--seeds N (5), --metrics A,B (" + METRICS + "), --json; see the head of mininet/compare.py"


@dataclass(frozen=True)
class Case:
    """A name, and the options of dumbbell.py that make it."""

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
    seeds: int = 5
    metrics: tuple[str, ...] = tuple(METRICS.split(","))
    json: bool = False


def parse(words: list[str]) -> Request:
    """Read the command line; its options belong to three different readers."""
    own, _, common = "\0".join(words).partition("\0--\0")
    request = Request([], tuple(common.split("\0")) if common else ())
    rest = iter(own.split("\0"))
    options: list[str] = []
    for word in rest:
        if word == "--seeds":
            request.seeds = int(next(rest))
        elif word == "--metrics":
            request.metrics = tuple(next(rest).split(","))
        elif word == "--json":
            request.json = True
        elif word == "--case":
            name, options = next(rest), ["--qdisc", next(rest)]
            request.cases.append(Case(name, ()))
        else:
            options.append(word)
        if request.cases and options:
            request.cases[-1] = Case(request.cases[-1].name, tuple(options))
    if not request.cases or not common or request.seeds not in T_95:
        raise SystemExit(f"compare.py: needs cases, options for all and 2 to 10 seeds: {USAGE}")
    return request


def run(job: Job, common: tuple[str, ...]) -> dict[str, Any]:
    """Do one run in the lab; its metrics. Ends everything if it fails."""
    folder = tempfile.mkdtemp(prefix="compare-")
    out = ["--out", folder]
    command = ["lab/run", "--seed", str(job.seed), *out, "--", "mininet/dumbbell.py"]
    done = subprocess.run(
        [*command, *job.case.options, *common, *out, "--json"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    shutil.rmtree(folder)
    if done.returncode:
        raise SystemExit(f"{job.case.name}, seed {job.seed}:\n{done.stderr}")
    metrics: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    rtts = [flow["rtt_ms"] for flow in metrics["flows"]]
    scaling = exponents(job.case.options[1])
    metrics["fifa_null_jain"] = fifa_null_jain(rtts, metrics["queue_delay_ms"], *scaling)
    return metrics


def interval(values: list[float]) -> tuple[float, float]:
    """Mean of the values, and half of its 95 % interval."""
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), T_95[len(values)] * spread


def shown(values: list[float | None]) -> str:
    """A cell of the table; a metric that some run lacks has no mean."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return f"{len(numbers)} of {len(values)}"
    return "{:.3f}±{:.3f}".format(*interval(numbers))


def main() -> int:
    request = parse(sys.argv[1:])
    seeds = range(1, request.seeds + 1)
    jobs = [Job(*pair) for pair in itertools.product(request.cases, seeds)]
    console = Console(stderr=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(lambda job: run(job, request.common), jobs)
        results = list(track(found, "runs", len(jobs), console=console, transient=True))
    table = Table(Column("case", overflow="fold"))
    for metric in request.metrics:
        table.add_column(metric, overflow="fold", justify="right")
    summary: dict[str, dict[str, list[float | None]]] = {}
    for case in request.cases:
        mine = [result for job, result in zip(jobs, results, strict=True) if job.case == case]
        summary[case.name] = {metric: [one[metric] for one in mine] for metric in request.metrics}
        table.add_row(case.name, *map(shown, summary[case.name].values()))
    Console().print(table)
    if request.json:
        print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
