# SPDX-License-Identifier: GPL-2.0-or-later
"""A run: the command that makes it, and what it left in its folder."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


class NoResultError(Exception):
    """A run left nothing that can be shown; the text says why."""


def in_lab(command: Sequence[str], out: str, seed: int, modules: Sequence[str] = ()) -> list[str]:
    """COMMAND, which writes the folder OUT, within the lab; MODULES are loaded first."""
    load = "".join(f"modprobe {module} && " for module in modules)
    first = ["sh", "-c", f'{load}exec "$@"', "sh"] if modules else []
    return ["lab/run", "--seed", str(seed), "--out", out, "--", *first, *command]


@dataclass(frozen=True)
class Run:
    """One experiment in the lab; paths are relative to the top of the repository."""

    queue: str  # the name by which tables and figures call it
    qdisc: str
    flows: int
    seed: int  # of the lab
    folder: Path
    options: tuple[str, ...]  # of dumbbell.py, as words: all others

    @property
    def command(self) -> list[str]:
        out = str(self.folder)
        what = ("--qdisc", self.qdisc, "--flows", str(self.flows))
        script = ["mininet/dumbbell.py", *what, *self.options, "--out", out]
        return in_lab(script, out, self.seed)

    @property
    def shell(self) -> str:
        """The command as one types it."""
        return shlex.join(self.command)


@dataclass(frozen=True)
class Binned:
    """Samples in equal bins of time: of each bin its middle, its mean, and 10 and 90 % points."""

    middle: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True)
class Result:
    """What a run found."""

    kernel: str
    metrics: dict[str, Any]
    time: Numbers  # s since the first flow's start, ascending
    length: Numbers  # packets queued at that time

    def binned(self, width: float) -> Binned:
        """Put the queue's samples into bins of WIDTH seconds."""
        bins = np.floor(self.time / width)
        cuts = np.flatnonzero(np.diff(bins)) + 1
        parts = np.split(self.length, cuts)
        low, high = np.array([np.percentile(part, (10, 90)) for part in parts]).T
        return Binned(
            middle=(bins[np.concatenate(([0], cuts))] + 0.5) * width,
            mean=np.array([part.mean() for part in parts]),
            low=low,
            high=high,
        )


def read_result(folder: Path) -> Result:
    """Read a run's folder; raises NoResultError where there is nothing that can be trusted."""
    try:
        run = json.loads((folder / "run.json").read_text())
    except FileNotFoundError:
        raise NoResultError("there is no such run yet") from None
    metrics = run["metrics"]
    if not metrics["fidelity"]["ok"]:
        raise NoResultError("; ".join(metrics["fidelity"]["reasons"]))
    del metrics["flows"]  # hundreds
    with gzip.open(folder / "series.csv.gz", "rt") as rows:
        queue = (row.split(",") for row in rows if ",queue_pkts,0,," in row)
        time, length = np.array([(row[0], row[4]) for row in queue], dtype=float).T
    return Result(run["provenance"]["kernel"], metrics, time, length)
