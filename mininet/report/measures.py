# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown of a run: each measure with its name, its unit and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

Metrics = Mapping[str, Any]  # of one run, by the keys of its run.json
Grid = Mapping[str, Mapping[int, Metrics]]  # the same by queue, then by number of flows

MISSING = "-"


@dataclass(frozen=True)
class Measure:
    """One number of a run."""

    name: str
    unit: str
    digits: int
    value: Callable[[Metrics], float]

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}"

    def text(self, metrics: Metrics | None) -> str:
        return MISSING if metrics is None else f"{self.value(metrics):.{self.digits}f}"

    def row(self, grid: Grid, queue: str, flows: Sequence[int]) -> list[str]:
        return [self.text(grid[queue].get(number)) for number in flows]

    def line(self, grid: Grid, queue: str) -> list[float]:
        return [self.value(metrics) for _, metrics in sorted(grid[queue].items())]


QUEUE = Measure("mean queue", "packets", 1, lambda m: float(m["mean_queue_pkts"]))
TAIL = Measure("99th percentile of the queue", "packets", 0, lambda m: float(m["p99_queue_pkts"]))
GOODPUT = Measure("goodput", "Mb/s", 1, lambda m: float(m["goodput_mbps"]))
DROPS = Measure("all drops", "%", 2, lambda m: 100 * float(m["drop_rate"]))
OVERFLOW = Measure("overflow drops", "%", 2, lambda m: 100 * m["overflow_drops"] / m["arrivals"])
MEASURES = (QUEUE, TAIL, GOODPUT, DROPS, OVERFLOW)


def console_table(grid: Grid, flows: Sequence[int]) -> Table:
    """All measures, a row per queue, a column per number of flows."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("flows")
    for number in flows:
        table.add_column(str(number), justify="right")
    for measure in MEASURES:
        table.add_section()
        table.add_row(f"[bold]{measure.title}")
        for queue in grid:
            table.add_row(f"  {queue}", *measure.row(grid, queue, flows))
    return table
