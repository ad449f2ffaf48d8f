# SPDX-License-Identifier: GPL-2.0-or-later
"""Add up the suites' results: summary.py FILE.xml... ends with "N passed, N failed"."""

import sys
from pathlib import Path

from junitparser import JUnitXml
from rich.console import Console
from rich.table import Table


def main(files: list[Path]) -> int:
    table = Table("suite", "passed", "failed", "skipped", "seconds")
    passed = failed = skipped = 0
    for file in files:
        if not file.exists():
            table.add_row(file.stem, "", "no results", "", "")
            failed += 1
            continue
        result = JUnitXml.fromfile(str(file))
        bad = result.failures + result.errors
        good = result.tests - bad - result.skipped
        table.add_row(file.stem, *map(str, (good, bad, result.skipped)), f"{result.time:.0f}")
        passed, failed, skipped = passed + good, failed + bad, skipped + result.skipped
    console = Console()
    console.print(table)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
