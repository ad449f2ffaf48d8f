#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print what a packet costs in our qdiscs, against the kernel's: .venv/bin/python cost.py."""

import json
import math
import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import GROUPS, Contender

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "bench"
TIMEOUT_S = 240  # of the run in the lab, which takes ten seconds on an idle machine

STUDENT_95 = 2.093  # Student's t for 95 %, both sides, 20 pairs


@dataclass(frozen=True)
class Cost:
    """What a packet costs in a qdisc."""

    contender: Contender
    drop_share: float
    """Of the packets that came."""
    ns: tuple[float, ...]
    """Per packet, pktgen and all else included; one for each round."""
    ratios: tuple[float, ...]
    """To the rival's in the same round."""

    @property
    def ratio(self) -> float:
        """Geometric mean of the ratios."""
        return statistics.geometric_mean(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the ratio."""
        logs = [math.log(ratio) for ratio in self.ratios]
        mean = statistics.fmean(logs)
        wide = STUDENT_95 * statistics.stdev(logs) / math.sqrt(len(logs))
        return math.exp(mean - wide), math.exp(mean + wide)


def run(*words: str | Path) -> str:
    """Run a program apart from a make that may be running us; return its standard error."""
    environment = {key: text for key, text in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{words[0]} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stderr


def measure(group: str) -> list[Cost]:
    """Build what is needed, measure a group in the lab."""
    kernel = run("lab/build").split()[-1]  # where the kernel is, it says last
    OUT.mkdir(parents=True, exist_ok=True)
    run("make", "modules", "MODULES=tests/bench", f"KDIR={kernel}", f"OUT={OUT}", "ARCH=um")
    lab = ("lab/run", "--realtime", "--timeout", str(TIMEOUT_S), "--out", OUT, "--")
    run(*lab, HERE / "bench.py", OUT / "sch_standing.ko", group)
    found = json.loads((OUT / "cost.json").read_text())
    costs = []
    for contender in GROUPS[group]:
        one, rival = found[contender.name], found[contender.rival]["ns"]
        ratios = tuple(own / its for own, its in zip(one["ns"], rival, strict=True))
        costs.append(Cost(contender, one["drop_share"], tuple(one["ns"]), ratios))
    return costs


def table(costs: list[Cost]) -> Table:
    shown = Table("qdisc", "ns a packet", "of", "is", "95 % interval", "dropped")
    for cost in costs:
        low, high = cost.interval
        shown.add_row(
            cost.contender.name,
            f"{statistics.median(cost.ns):.0f}",
            cost.contender.rival,
            f"{cost.ratio:.3f}",
            f"{low:.3f} to {high:.3f}",
            f"{cost.drop_share:.2%}",
        )
    return shown


if __name__ == "__main__":
    for each in GROUPS:
        Console().print(table(measure(each)))
