#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tests were run on which kernels, and what came of them: from the suites' results.

    make matrix            after make test, or one suite of it, or make trust
    make matrix JSON=1

Where there are several results of a test set on a kernel, the last one counts.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from junitparser import JUnitXml, TestCase, TestSuite
from rich.console import Console
from rich.table import Table

LAB = "lab"
STOCK = "stock"
DEFAULT = "6.12"  # the lab's, if no other is named
# What a suite's results are of, by the name of their file.
KERNELS = {
    "net": f"{LAB} {DEFAULT}",
    "lab": f"{LAB} {DEFAULT}",
    "experiment": f"{LAB} {DEFAULT}",
    "debug": f"{LAB} {DEFAULT} debug",
    "linux-6.1": f"{LAB} 6.1",
    "linux-7.2": f"{LAB} 7.2",
}
# Suites whose tests name the kernel themselves.
NAMED = {"stock": STOCK, "tdc": LAB}
NAME = re.compile(r"[\[-](\d+\.\d+|debug)(?=[]-])")


@dataclass
class Cell:
    """What came of a set of tests on a kernel."""

    tests: str
    kernel: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __str__(self) -> str:
        if self.failed:
            return f"[red]{self.failed} of {self.passed + self.failed} failed"
        return f"[green]{self.passed}" if self.passed else "skipped"


def kernel_of(suite: str, test: str) -> str | None:
    """The kernel that a test was run on; None if on none of ours."""
    if suite in KERNELS:
        return KERNELS[suite]
    found = NAME.search(test) if suite in NAMED else None
    if not found:
        return None
    series = f"{DEFAULT} debug" if found[1] == "debug" else found[1]
    return f"{NAMED[suite]} {series}"


def cases(file: Path) -> Iterator[tuple[str, TestCase]]:
    """The tests in a file of results, each with the time when its suite was begun."""
    for suite in JUnitXml.fromfile(str(file)):
        if isinstance(suite, TestSuite):
            for case in suite:
                yield suite.timestamp or "", case


def count(files: Iterable[Path]) -> list[Cell]:
    """Add up the results by test set and kernel."""
    runs: dict[tuple[str, str], dict[str, Cell]] = {}
    for file in files:
        for when, case in cases(file):
            kernel = kernel_of(file.stem, case.name or "")
            if not kernel:
                continue
            tests = (case.classname or file.stem).rpartition(".")[2].removeprefix("test_")
            run = runs.setdefault((tests, kernel), {}).setdefault(when, Cell(tests, kernel))
            if case.is_passed:
                run.passed += 1
            elif case.is_skipped:
                run.skipped += 1
            else:
                run.failed += 1
    return [run[max(run)] for _, run in sorted(runs.items())]


def table(cells: list[Cell]) -> Table:
    kernels = sorted({cell.kernel for cell in cells}, key=lambda name: (name.split()[0], name))
    shown = Table("tests", *kernels)
    for tests in dict.fromkeys(cell.tests for cell in cells):
        found = {cell.kernel: str(cell) for cell in cells if cell.tests == tests}
        shown.add_row(tests, *(found.get(kernel, "") for kernel in kernels))
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests by kernel, from the suites' results.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.xml")
    given = parser.parse_args()
    cells = count(given.files)
    if not cells:
        print("No results: run make test first, or a suite such as make test-net.",
              file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps([asdict(cell) for cell in cells], indent=1))
    else:
        Console().print(table(cells))
    return 1 if any(cell.failed for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
