# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign of the five papers: one run; what is there to be done; runs verified.

`make papers` has Snakemake call this once for each run.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from papers.perform import carry_out
from papers.plan import ROOT, Run, Times, by_path, relative, runs_of
from papers.schema import FOLDER, FigureError, load_figures
from papers.verify import draw, verify
from report.papers import write_report
from report.runs import NoResultError


def all_runs(folder: Path) -> list[Run]:
    """Every run that a figure asks for."""
    figures = load_figures(folder).values()
    return [run for one in figures if not one.runs for run in runs_of(one, folder=folder)]


def do_run(args: argparse.Namespace) -> int:
    """Do the run whose result is to be at PATH."""
    folder = args.result.resolve().parents[3]
    run = by_path(all_runs(folder)).get(relative(args.result.resolve()))
    if not run:
        print(f"campaign.py: no figure asks for {args.result}", file=sys.stderr)
        return 2
    carry_out(run)
    return 0


def do_report(args: argparse.Namespace) -> int:
    """Write the page, from the results that are kept."""
    print(f"The page with the figures: {write_report(args.out, args.folder)}")
    return 0


def do_verify(args: argparse.Namespace) -> int:
    """Make some of the kept runs anew, and compare them with what is kept."""
    kept = [run for run in all_runs(args.folder) if run.path.exists()]
    drawn = draw(sorted(kept, key=Times(args.folder).guess)[: args.quickest], args.runs, args.seed)
    if not drawn:
        print("campaign.py: no results are kept that could be verified", file=sys.stderr)
        return 1
    bad = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for finding in pool.map(verify, drawn):
            how = "same bytes" if finding.same_makings else "agrees, made of other versions"
            print(f"{finding.run.name}: {'; '.join(finding.differences) or how}", flush=True)
            bad += bool(finding.differences)
    print(f"{len(drawn) - bad} of {len(drawn)} runs, drawn by {args.seed!r}, as kept")
    return 1 if bad else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mininet/campaign.py", description=__doc__)
    parts = parser.add_subparsers(required=True)
    run = parts.add_parser("run", help=do_run.__doc__)
    run.add_argument("result", type=Path, metavar="PATH")
    run.set_defaults(work=do_run)
    report = parts.add_parser("report", help=do_report.__doc__)
    report.add_argument("--out", type=Path, default=ROOT / "out" / "report")
    report.add_argument("--folder", type=Path, default=FOLDER, help="that holds the papers")
    report.set_defaults(work=do_report)
    check = parts.add_parser("verify", help=do_verify.__doc__)
    check.add_argument("--runs", type=int, default=5, metavar="N", help="how many (5)")
    check.add_argument("--seed", default=f"{date.today()}", help="of the draw (the day)")
    check.add_argument("--quickest", type=int, metavar="N", help="draw from the N quickest only")
    check.add_argument("--folder", type=Path, default=FOLDER, help="that holds the papers")
    check.set_defaults(work=do_verify)
    return parser.parse_args()


def main() -> int:
    args = arguments()
    try:
        status: int = args.work(args)
    except FigureError as wrong:
        print(f"campaign.py: {wrong}", file=sys.stderr)
        return 2
    except NoResultError as failed:
        print(f"campaign.py: {failed}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
