#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The long forms of what CI does briefly; what came of them goes to docs/trust.md.

    make trust                        all of them: hours
    make trust ONLY=month,loads       some; the other rows stay as they are
    make trust ONLY=fuzz MESSAGES=1000000

Each leaves build/trust/NAME.json: what was tried, how often, how often it failed, and how long it
took; and, where it is a suite of tests, its results in build/trust/NAME.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "stock"))

from rich.console import Console
from rich.table import Table

import modules
from lablib import DEFAULT_KERNEL, KERNELS, Kernel

ROOT = modules.REPOSITORY
OUT = ROOT / "build" / "trust"
PAGE = ROOT / "docs" / "trust.md"
HEAD = """\
# What was tried to break it

Made by `make trust`, which runs for hours what every change is tested with for minutes; each row
says when, of which revision and on which kernels. Other rows stay when one is run anew
(`make trust ONLY=month`). How long each takes here depends on what else the machine did.

"""
COLUMNS = ("name", "what was tried", "times", "failed", "took", "on", "when", "revision")
NUMBERS = ("times", "failed", "took")


@dataclass(frozen=True)
class Tried:
    """What came of a long form; the first four are what a form itself has to say."""

    what: str
    times: int
    failed: int
    seconds: float
    kernels: str = ""
    date: str = ""
    revision: str = ""


@dataclass(frozen=True)
class Form:
    """A long form: how it is run, and on which kernels."""

    run: Callable[[str, int], Tried]  # its name, and how many messages the fuzzer is to send
    kernels: tuple[str, ...]


def make(*words: str) -> None:
    """Run make; whether it failed is seen from what it leaves."""
    env = {name: value for name, value in os.environ.items() if name not in modules.OF_MAKE}
    subprocess.run(["make", "--no-print-directory", "-C", str(ROOT), *words], env=env)


def suite(what: str, *words: str) -> Callable[[str, int], Tried]:
    """A suite of tests, by make's words for it; a test may say that it tried many times."""

    def run(name: str, _: int) -> Tried:
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        started = time.monotonic()
        make(*words, f"JUNIT={folder.relative_to(ROOT)}")
        times, failed = counted(folder.glob("*.xml"))
        return Tried(what, times, failed, time.monotonic() - started)

    return run


def counted(files: Iterable[Path]) -> tuple[int, int]:
    """How often something was tried, and how often it failed; no result is a failure, too."""
    cases = [case for file in files for case in ElementTree.parse(file).iter("testcase")]
    times = failed = 0
    for case in cases:
        if case.find("skipped") is None:
            said = case.find("properties/property[@name='times']")
            times += 1 if said is None else int(said.attrib["value"])
            failed += case.find("failure") is not None or case.find("error") is not None
    return times, failed if times else 1


def fuzz(name: str, messages: int) -> Tried:
    left = OUT / f"{name}.json"
    left.unlink(missing_ok=True)
    make("fuzz", f"MESSAGES={messages}")
    if not left.exists():
        return Tried("messages of a netlink fuzzer, which ended early", messages, 1, 0)
    said = json.loads(left.read_text())
    return Tried(said["what"], said["times"], said["failed"], said["seconds"])


ALL = " ".join((*KERNELS, "debug"))
FORMS: Mapping[str, Form] = {
    "fuzz": Form(fuzz, ("debug",)),
    "month": Form(
        suite(
            "fifty idle days, then traffic; the wall clock set by years; counters beyond 2^32:"
            " tests",
            "test-net", "NET=tests/net/test_month.py", "OPTIONS=--long",
        ),
        (DEFAULT_KERNEL,),
    ),
    "loads": Form(
        suite(
            "loads, uses and unloads, a thousand of each module",
            "test-net", "NET=tests/net/test_loads.py", "OPTIONS=--long",
        ),
        (DEFAULT_KERNEL,),
    ),
    "failslab": Form(
        suite(
            "requests, and traffic, of which each allocation failed in turn: tests",
            "test-debug", "NET=tests/net/test_failslab.py",
        ),
        ("debug",),
    ),
    "tdc": Form(suite("cases of tc's own tests", "test-tdc", f"TDC={ALL}"), (*KERNELS, "debug")),
    "debug": Form(
        suite("tests with KASAN, UBSAN, lockdep, kmemleak", "test-debug"), ("debug",)
    ),
    **{
        f"linux-{series}": Form(
            suite("tests", f"test-linux-{series}", "NET=tests/net", "OPTIONS="), (series,)
        )
        for series in KERNELS if series != DEFAULT_KERNEL
    },
}  # fmt: skip


def version(kernel: str) -> str:
    """The exact name of a kernel of the lab: 6.12, debug."""
    flavour = "debug" if kernel == "debug" else "fast"
    built = Kernel(DEFAULT_KERNEL if kernel == "debug" else kernel, flavour).built()
    if not built:
        return kernel
    return built.name.rpartition("-")[0].removesuffix("-fast").replace("-debug", " debug")


def revision() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT,
                          capture_output=True, text=True)
    return done.stdout.strip()


def attempt(name: str, messages: int) -> Tried:
    """Run a long form, and leave what came of it."""
    form = FORMS[name]
    told = form.run(name, messages)
    tried = Tried(
        told.what, told.times, told.failed, round(told.seconds),
        ", ".join(dict.fromkeys(map(version, form.kernels))),
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), revision(),
    )  # fmt: skip
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps(asdict(tried), indent=1) + "\n")
    return tried


Row = tuple[str, ...]


def row(name: str, tried: Tried) -> Row:
    minutes, seconds = divmod(round(tried.seconds), 60)
    took = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    return (name, tried.what, f"{tried.times:,}", str(tried.failed), took, tried.kernels,
            tried.date, tried.revision)


def read(page: str) -> dict[str, Row]:
    """The rows of the page as it was, by name."""
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|"))
             for line in page.splitlines() if line.startswith("| ")]
    return {found[0]: found for found in cells if found[0] in FORMS and len(found) == len(COLUMNS)}


def write(rows: Mapping[str, Row]) -> str:
    """The page, its rows in the order of the forms."""
    rules = ("---:" if column in NUMBERS else "---" for column in COLUMNS)
    ordered = [COLUMNS, tuple(rules), *(rows[name] for name in FORMS if name in rows)]
    return HEAD + "".join(f"| {' | '.join(cells)} |\n" for cells in ordered)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the long forms of the tests.")
    parser.add_argument("--only", metavar="NAME,...", help=f"some of: {', '.join(FORMS)}")
    parser.add_argument("--messages", type=int, default=10_000_000, help="of the fuzzer")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else list(FORMS)
    if unknown := [name for name in names if name not in FORMS]:
        parser.error(f"no such form: {', '.join(unknown)}; there are {', '.join(FORMS)}")
    failed = 0
    for name in names:
        tried = attempt(name, asked.messages)
        failed += tried.failed
        rows = read(PAGE.read_text() if PAGE.exists() else "") | {name: row(name, tried)}
        PAGE.write_text(write(rows))  # each time, as the next may take long
    table = Table(*COLUMNS)
    for cells in read(PAGE.read_text()).values():
        table.add_row(*cells)
    Console().print(table)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
