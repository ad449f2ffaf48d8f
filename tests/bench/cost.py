#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print what a packet costs in our qdiscs, against the kernel's RED and fq_codel, and a gigabyte
under our congestion controls, against Reno: .venv/bin/python cost.py.
"""

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
TIMEOUT_S = 240  # of a run in the lab, which takes 10 to 20 seconds on an idle machine

RIVAL_SENDER = "reno"
STUDENT_95 = 2.093  # Student's t for 95 %, both sides, 20 pairs


@dataclass(frozen=True)
class Cost:
    """What a contender costs."""

    name: str
    spent: tuple[float, ...]
    """ns a packet, or s a gigabyte, all else included; one for each round."""
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


@dataclass(frozen=True)
class QdiscCost(Cost):
    """What a packet costs in a qdisc."""

    contender: Contender
    drop_share: float
    """Of the packets that came."""


def run(*words: str | Path) -> str:
    """Run a program apart from a make that may be running us; return its standard error."""
    environment = {key: text for key, text in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{words[0]} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stderr


def in_lab(*command: str | Path) -> None:
    """Run a benchmark in the lab, on real time."""
    run("lab/run", "--realtime", "--timeout", str(TIMEOUT_S), "--out", OUT, "--", *command)


def ratios(own: list[float], rival: list[float]) -> tuple[float, ...]:
    """Round by round."""
    return tuple(mine / its for mine, its in zip(own, rival, strict=True))


def measure_qdiscs(group: str) -> list[QdiscCost]:
    """Build what is needed, measure in the lab those that take turns, their rivals included."""
    kernel = run("lab/build").split()[-1]  # where the kernel is, it says last
    OUT.mkdir(parents=True, exist_ok=True)
    run("make", "modules", "MODULES=tests/bench", f"KDIR={kernel}", f"OUT={OUT}", "ARCH=um")
    in_lab(HERE / "bench.py", OUT / "sch_standing.ko", group)
    found = json.loads((OUT / "cost.json").read_text())
    costs = []
    for contender in GROUPS[group]:
        name, rival = contender.name, found[contender.rival]["ns"]
        ns = found[name]["ns"]
        drop_share = found[name]["drop_share"]
        costs.append(QdiscCost(name, tuple(ns), ratios(ns, rival), contender, drop_share))
    return costs


def measure_senders() -> dict[str, list[Cost]]:
    """With offloads and without; the first of each is Reno itself."""
    OUT.mkdir(parents=True, exist_ok=True)
    in_lab(HERE / "senders.py")
    found = json.loads((OUT / "senders.json").read_text())
    return {
        how: [
            Cost(name, tuple(spent), ratios(spent, controls[RIVAL_SENDER]))
            for name, spent in controls.items()
        ]
        for how, controls in found.items()
    }


def words(cost: Cost) -> tuple[str, str]:
    """The ratio and its interval."""
    return f"{cost.ratio:.3f}", "{:.3f} to {:.3f}".format(*cost.interval)


def qdisc_table(costs: list[QdiscCost]) -> Table:
    shown = Table("qdisc", "ns a packet", "is", "of that of", "95 % interval", "dropped")
    for cost in costs:
        spent = f"{statistics.median(cost.spent):.0f}"
        ratio, interval = words(cost)
        rival, dropped = cost.contender.rival, f"{cost.drop_share:.2%}"
        shown.add_row(cost.name, spent, ratio, rival, interval, dropped)
    return shown


def sender_table(costs: dict[str, list[Cost]]) -> Table:
    shown = Table("", "congestion control", "s a gigabyte", "of Reno's", "95 % interval")
    for how, controls in costs.items():
        for cost in controls:
            spent = f"{statistics.median(cost.spent):.2f}"
            shown.add_row(how, cost.name, spent, *words(cost))
    return shown


if __name__ == "__main__":
    tables = [qdisc_table(measure_qdiscs(group)) for group in GROUPS]
    Console().print(*tables, sender_table(measure_senders()))
