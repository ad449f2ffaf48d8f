#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How well PERT's congestion predictors did on a flow that `dumbbell.py --observe` watched."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from models.predictors import PREDICTORS, read, study

SHARES = ("efficiency", "false_positives", "false_negatives")


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def table(found: dict[str, Any]) -> Table:
    """A row a predictor; in brackets losses within a round trip counted as one."""
    shown = Table(box=box.SIMPLE_HEAD)
    for title in ("%", "efficiency", "false positives", "false negatives"):
        shown.add_column(title, justify="left" if title == "%" else "right")
    rows = {one.title: found["predictors"][name] for name, one in PREDICTORS.items()}
    rows["RTT, the flow's own losses"] = found["own_losses"]
    for title, one in rows.items():
        cells = (f"{percent(one[key])} ({percent(one['episodes'][key])})" for key in SHARES)
        shown.add_row(title, *cells)
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="mininet/predict.py", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="of the run")
    parser.add_argument("--json", action="store_true", help="an object instead of a table")
    args = parser.parse_args()
    observed = read(args.folder)
    if not observed:
        print(f"predict.py: {args.folder}: no run with --observe", file=sys.stderr)
        return 1
    scenario = json.loads((args.folder / "run.json").read_text())["scenario"]
    found = study(observed, scenario["warmup_s"], scenario["rtts_us"][0] / 1e6)
    if args.json:
        print(json.dumps(found))
    else:
        Console().print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
