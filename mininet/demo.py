# SPDX-License-Identifier: GPL-2.0-or-later
"""REM's Figure 2, shortened, in the lab: the runs, a table, and a page, out/demo/index.html."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from report.figures import against_flows, over_time, standalone, svg
from report.findings import Setting, claims, settling, summary
from report.measures import (
    DROPS,
    GOODPUT,
    MEASURES,
    OVERFLOW,
    QUEUE,
    Grid,
    Measure,
    Metrics,
    console_table,
)
from report.page import Drawing, render
from report.runs import NoResultError, Result, Run, read_result
from report.words import joined

ROOT = Path(__file__).resolve().parent.parent
OUT = Path("out/demo")

FRAME = 1014  # bytes: a packet of 1000 with its link header, as queues count it
RATE, RTT = "64mbit", "80ms"
PIPE = 64e6 * 0.080 / (8 * FRAME)  # packets that these two hold
LIMIT, TARGET = 120, 20  # packets
DURATION, WARMUP = 90, 50  # s
SEED = 1

SETTING = Setting(
    flows=(20, 80, 160, 320), limit=LIMIT, target=TARGET, reach=(10, 6, 6, 6), pipe=PIPE
)
COMMON = (
    *("--rate", RATE, "--rtt", RTT),
    *("--duration", str(DURATION), "--warmup", str(WARMUP)),
)
# RED counts bytes; a burst of 120 gives the weight of ns-2, 1/512.
QUEUES = {
    "DropTail": f"pfifo limit {LIMIT}",
    "RED": f"red limit {LIMIT * FRAME} min {20 * FRAME} max {80 * FRAME} avpkt {FRAME} burst 120"
    f" probability 0.1 bandwidth {RATE}",
    "PIE": f"pie limit {LIMIT} target 2500us",
    "fq_codel": f"fq_codel limit {LIMIT} target 2500us",
    "REM": f"rem limit {LIMIT} target {TARGET} bandwidth {RATE}",
}
REMARK = (
    "RED is the paper's RED(20:80), with ns-2's weight of 1/512. PIE and fq_codel are told REM's"
    " target as a time, 20 packets being 2.5 ms on this link; PIE's own target, 15 ms, would be the"
    " whole buffer."
)
PANEL_BIN = 0.5  # s
LAST_LINES = 6  # of what a failed run said

Results = Mapping[tuple[str, int], Result]  # by queue and number of flows


def plan() -> list[Run]:
    """All runs, the longest first, so that at the end no core waits for another."""
    return [
        Run(queue, qdisc, flows, SEED, OUT / "runs" / f"{queue.lower()}-{flows}", COMMON)
        for flows in reversed(SETTING.flows)
        for queue, qdisc in QUEUES.items()
    ]


async def perform(run: Run) -> str | None:
    """Do it. Returns None, or why it failed."""
    process = await asyncio.create_subprocess_exec(
        *run.command,
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches us alone, and we end the rest
    )
    try:
        _, said = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
    if process.returncode == 0:
        return None
    lines = said.decode(errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join(lines) or f"exit status {process.returncode}, without a word"


async def perform_all(
    runs: Sequence[Run], failures: dict[str, list[Run]], console: Console
) -> None:
    """Do the runs on all cores; those that fail go to FAILURES, by what went wrong."""
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    core = asyncio.Semaphore(len(os.sched_getaffinity(0)))
    count = itertools.count(1)
    columns = (TextColumn("runs in the lab"), BarColumn(), MofNCompleteColumn())
    progress = Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    )
    bar = progress.add_task("", total=len(runs))

    async def in_turn(run: Run) -> None:
        async with core:
            if reason := await perform(run):
                failures[reason].append(run)
        progress.advance(bar)
        if not console.is_terminal:
            console.print(f"{next(count)}/{len(runs)} {run.queue}, {run.flows} flows")

    with progress:
        async with asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(in_turn(run))


def collect(results: Results) -> Grid:
    """Metrics by queue and number of flows, in the order of tables and figures."""
    grid: dict[str, dict[int, Metrics]] = {queue: {} for queue in QUEUES}
    for queue, flows in itertools.product(QUEUES, SETTING.flows):
        if (queue, flows) in results:
            grid[queue][flows] = results[queue, flows].metrics
    return grid


def draw_queue(grid: Grid) -> str:
    """The figure that says it all: mean queue against flows."""
    lines = {queue: QUEUE.line(grid, queue) for queue in grid}
    figure = against_flows(QUEUE.title, SETTING.flows, lines, reference=(TARGET, "REM's target"))
    return svg(figure, summary(grid, SETTING))


def draw_figures(grid: Grid, results: Results) -> list[Drawing]:
    def sweep(measure: Measure, *, from_zero: bool = True) -> str:
        lines = {queue: measure.line(grid, queue) for queue in grid}
        figure = against_flows(measure.title, SETTING.flows, lines, from_zero=from_zero)
        return svg(figure, f"{measure.title}, against flows: the values are in the table below.")

    most = max(SETTING.flows)
    series = {queue: results[queue, most].binned(PANEL_BIN) for queue in QUEUES}
    panels = over_time(
        f"queue at {most} flows, packets", series,
        warmup_s=WARMUP, top=LIMIT, reference=TARGET,
    )  # fmt: skip
    return [
        Drawing(draw_queue(grid), f"Packets in the queue, mean of {DURATION - WARMUP} s."),
        Drawing(
            svg(panels, f"Queue over time at {most} flows, a panel for each kind of queue."),
            "Line: mean over half a second. Band: the middle 80 % of the samples. Dashed:"
            f" REM's target. The first {WARMUP} s, shaded, do not count.",
            tall=True,
        ),
        Drawing(
            sweep(GOODPUT, from_zero=False),
            "Payload that the senders got acknowledged. The axis does not start at zero.",
        ),
        Drawing(sweep(DROPS), "Packets dropped, early or for want of room, of those that came."),
        Drawing(sweep(OVERFLOW), "Packets dropped for want of room alone, of those that came."),
    ]


def write_page(grid: Grid, runs: Sequence[Run], results: Results) -> Path:
    page = ROOT / OUT / "index.html"
    text = render(
        "demo.html.j2",
        setting=SETTING,
        rate="64 Mb/s",
        rtt="80 ms",
        duration=DURATION,
        warmup=WARMUP,
        queues=QUEUES,
        remark=REMARK,
        kernel=next(iter(results.values())).kernel,
        summary=summary(grid, SETTING),
        settling=settling(results["REM", SETTING.flows[-1]], SETTING, WARMUP),
        claims=claims(grid, SETTING),
        figures=draw_figures(grid, results),
        measures=MEASURES,
        grid=grid,
        commands=[run.shell for run in runs],
    )
    page.write_text(text)
    return page


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mininet/demo.py", description=__doc__)
    option = parser.add_argument
    option("--json", action="store_true", help="end with the numbers as one line of JSON")
    option("--redraw", action="store_true", help="make no runs, draw those that are there")
    option("--figure", type=Path, metavar="FILE", help="write the figure of the README there, too")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    runs = plan()
    failures: dict[str, list[Run]] = defaultdict(list)
    if not args.redraw:
        shutil.rmtree(ROOT / OUT, ignore_errors=True)
        (ROOT / OUT / "runs").mkdir(parents=True)
        asyncio.run(perform_all(runs, failures, Console(stderr=True, highlight=False)))
    failed = list(itertools.chain.from_iterable(failures.values()))
    results: dict[tuple[str, int], Result] = {}
    for run in runs:
        if run not in failed:
            try:
                results[run.queue, run.flows] = read_result(ROOT / run.folder)
            except NoResultError as error:
                failures[str(error)].append(run)
    grid = collect(results)
    console = Console(highlight=False)
    console.print(console_table(grid, SETTING.flows))
    for reason, group in failures.items():
        names = joined(f"{run.queue} with {run.flows} flows" for run in group)
        console.print(f"[bold]Failed: {names}:[/bold]\n{escape(reason)}\n", soft_wrap=True)
    if not failures:
        print(f"The page with the figures: {write_page(grid, runs, results)}")
        if args.figure:
            args.figure.parent.mkdir(parents=True, exist_ok=True)
            args.figure.write_text(standalone(draw_queue(grid)))
    if args.json:
        print(json.dumps(grid))
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit("stopped")
