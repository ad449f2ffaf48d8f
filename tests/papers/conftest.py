# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures and results that are made up."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from papers.plan import Run, runs_of
from papers.result import Result
from papers.schema import Figure, load_figures

FIGURE = """\
title = "a figure"
target = "XQM Table I"
setup = "two flows"
readings = ["of 20 ms"]
common = "--flows 2 --rate 2mbit --rtt 20ms --duration 6 --warmup 3 --start-spread 1"
seeds = 2
metrics = ["jain", "mean_queue_pkts"]

[[case]]
name = "short"
qdisc = "pfifo limit {limit}"
options = "--cc pert"
modules = ["tcp_pert coexist=1"]

[[case]]
name = "REM"
qdisc = "rem limit {limit}"
ours = true
seeds = 1

[[point]]
label = "few"
x = 10
values = { limit = 10 }

[[point]]
label = "many"
x = 50
options = "--mtu 500"
values = { limit = 50 }

[quick]
cases = ["short"]
points = ["few"]

[paper.jain]
"short" = { few = 0.9 }
"REM" = 0.95

[plot]
metrics = ["jain"]
x = "packets"

[plot.time]
cases = ["short"]
point = "few"
"""
ROWS = """\
[[row]]
figure = "XQM Table I"
paper = "xqm"
setup = "two flows"
says = "equal shares"
gate = "jain >= .9"

[[row]]
figure = "PERT Fig. 99"
paper = "pert"
setup = "none yet"
says = "nothing"
gate = "none"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of papers with one figure."""
    (tmp_path / "xqm").mkdir()
    (tmp_path / "targets.toml").write_text(ROWS)
    write_figure(tmp_path, FIGURE)
    return tmp_path


def write_figure(folder: Path, text: str) -> None:
    (folder / "xqm" / "tiny.toml").write_text(text)


def figure(folder: Path, more: str = "") -> Figure:
    """The figure, with MORE in its file."""
    write_figure(folder, FIGURE + more)
    return load_figures(folder)["xqm-tiny"]


def result(**metrics: Any) -> Result:
    """A run's, with these METRICS."""
    flow = {"path": "AB", "rtt_ms": 20.0, "cc": "reno", "flows": 2, "goodput_mbps": 0.9}
    found = {
        "jain": 0.9,
        "null_model_jain": 1.0,
        "mean_queue_pkts": 5.0,
        "response_time_s": None,
        "flows": [flow | {"least_mbps": 0.8, "most_mbps": 1.0, "retransmits": 3}],
    }
    return Result(
        command="lab/run …",
        laws={},
        scenario={"links": [{"rate_bps": 2_000_000, "qdisc": "pfifo limit 10"}], "warmup_s": 3.0},
        provenance={
            "kernel": "6.12.1",
            "iproute2": "iproute2-6.1.0",
            "mininet": "2.3.0",
            "python": "3.11.2",
            "programs": "0123456789ab",
            "modules": {},
        },
        metrics=found | metrics,
        series={"queue": [[[3.0, 1, 5], [4.0, 2, 6]]]},
    )


def keep(run: Run, one: Result) -> None:
    """Put RESULT where RUN's belongs."""
    run.home.mkdir(parents=True, exist_ok=True)
    run.path.write_bytes(one.packed())


def keep_all(folder: Path, values: dict[tuple[str, str], list[float]], metric: str) -> None:
    """Results with VALUES of METRIC, by case and point, a seed each."""
    for run in runs_of(load_figures(folder)["xqm-tiny"], folder=folder):
        found = values.get((run.case.name, run.point.label), [])
        if len(found) >= run.seed:
            keep(run, replace(result(**{metric: found[run.seed - 1]})))


def run_folder(path: Path, scenario: dict[str, Any], rows: list[str]) -> Path:
    """What dumbbell.py would leave."""
    flows = [
        {"path": "AB", "rtt_ms": 20.0, "cc": "reno", "goodput_mbps": rate, "retransmits": 1}
        for rate in (0.5, 1.0)
    ]
    run = {
        "scenario": {"links": [], "mtu": 1000, "duration_s": 6.0, "warmup_s": 3.0, **scenario},
        "provenance": {
            "kernel": "6.12.1",
            "clock": "virtual",
            "sysctls": {"a": "1"},
            "modules": {"sch_rem": {"srcversion": "ABC"}, "tcp_cdg": {"window": "8"}},
        },
        "metrics": {"jain": 0.9, "flows": flows, "reverse": None, "fidelity": {"ok": True}},
    }
    path.mkdir()
    (path / "run.json").write_text(json.dumps(run))
    with gzip.open(path / "series.csv.gz", "wt") as series:
        series.write("\n".join(["time_s,series,link,flow,value", *rows]) + "\n")
    return path
