#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Send tc mutated netlink messages about our kinds, as nobody and with traffic, in the lab.

fuzz.c makes the messages. Here it is run in a guest whose kernel finds bugs; what it did is
shown; and an epoch in which the kernel had something to report is cut down to the steps that it
takes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build/fuzz"
QDISCS = ("rem", "lred", "fifa", "xqm", "avq", "fred", "csfq")
MODULES = ("act_rttlabel", "tcp_pert", *(f"sch_{name}" for name in QDISCS))
# Modules are there from the start, and no name that is made up has a program started.
PREPARE = f'modprobe -a {" ".join(MODULES)} && echo > /proc/sys/kernel/modprobe && exec "$@"'
STEPS = 5000  # of an epoch, as in fuzz.c
STALL = 600  # s; a debug kernel is slow, and may have to share its processor
AS_ROOT = 10  # of so many messages one more is root's, who alone may ask for actions


@dataclass
class Outcome:
    """What a run of the guest has come to."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of each sort of message: messages, accepted, unanswered, refused by errno."""
    failure: dict[str, Any] | None = None
    """The kernel's words, the epoch, and its first and last step that may have caused them."""
    status: int = 0
    epoch: int = -1
    """The last one that was begun."""
    shown: list[dict[str, Any]] = field(default_factory=list)
    words: str = ""
    """What lab/run said."""

    @property
    def failed(self) -> bool:
        return self.status != 0

    @property
    def messages(self) -> int:
        return sum(row["messages"] for row in self.rows.values())


def build() -> Path:
    """The program that runs in the guest."""
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / "fuzz"
    source = ROOT / "tests/fuzz/fuzz.c"
    warnings = ("-Wall", "-Wextra", "-Werror")
    include = ROOT / "include/uapi"
    command = ("gcc", "-O2", *warnings, "-I", include, "-o", program, source, "-lmnl")
    subprocess.run(command, check=True)
    return program


Progress = Callable[[dict[str, Any]], None]


def attack(
    *words: str, kernel: str = "6.12", flavour: str = "debug", progress: Progress | None = None
) -> Outcome:
    """Run fuzz with these arguments in a guest."""
    lab = [str(ROOT / "lab/run"), "--flavour", flavour, "--kernel", kernel, "--stall", str(STALL)]
    command = [*lab, "--", "sh", "-c", PREPARE, "sh", str(build()), *words]
    outcome = Outcome()
    said = BUILT / "words"
    with said.open("w") as errors:
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert run.stdout
        for line in run.stdout:
            take(outcome, json.loads(line))
            if progress and line.startswith('{"epoch"'):
                progress(json.loads(line))
        outcome.status = run.wait()
    outcome.words = said.read_text()
    return outcome


def take(outcome: Outcome, line: dict[str, Any]) -> None:
    """Take what fuzz printed into account."""
    if "failed" in line:
        outcome.failure = line
    elif "rows" in line:
        outcome.rows = line["rows"]
    elif "message" in line:
        outcome.shown.append(line)
    outcome.epoch = max(outcome.epoch, line.get("epoch", -1))


# Which steps does it take?


def ranges(steps: Sequence[int]) -> str:
    """Steps as fuzz takes them: 3,7-12."""
    parts: list[list[int]] = []
    for step in steps:
        if parts and parts[-1][1] == step - 1:
            parts[-1][1] = step
        else:
            parts.append([step, step])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in parts)


def shrink(steps: list[int], fails: Callable[[list[int]], bool]) -> list[int]:
    """The least of the steps, none of which can be left out, that still fail."""
    parts = 2
    while len(steps) > 1:
        size = -(-len(steps) // parts)
        for first in range(0, len(steps), size):
            rest = steps[:first] + steps[first + size :]
            if rest and fails(rest):
                steps = rest
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(2 * parts, len(steps))
    return steps


def replay(
    words: Sequence[str], epoch: int, kernel: str, flavour: str = "debug"
) -> list[dict[str, Any]]:
    """The messages that an epoch's failure takes; none if the epoch does not fail by itself."""
    again = [*words, "--epoch", str(epoch)]

    def run(*more: str) -> Outcome:
        return attack(*again, *more, kernel=kernel, flavour=flavour)

    def fails(steps: list[int]) -> bool:
        failed = run("--only", ranges(steps)).failed
        print(f"{len(steps)} steps: {'fail' if failed else 'pass'}", file=sys.stderr)
        return failed

    whole = run()
    if not whole.failed:
        return []
    found = whole.failure or {"first": 0, "last": STEPS - 1}
    steps = list(range(found["first"], found["last"] + 1))
    if not fails(steps):  # what was sent at once does not do it alone
        steps = list(range(found["last"] + 1))
    return run("--only", ranges(shrink(steps, fails)), "--show").shown


# For people


class Line:
    """One line of progress: on a terminal in place, else for every tenth of the way."""

    def __init__(self, whole: int) -> None:
        self._whole = whole
        self._begin = time.monotonic()
        self._tenths = 0
        self._live = sys.stderr.isatty()

    def __call__(self, told: dict[str, Any]) -> None:
        done, seconds = told["messages"], time.monotonic() - self._begin
        tenths = 10 * done // self._whole
        if not self._live and tenths == self._tenths:
            return
        self._tenths = tenths
        left = seconds * max(self._whole - done, 0) / done
        text = (
            f"fuzz: {done} of {self._whole} messages, {told['accepted'] / done:.0%} accepted, "
            f"{done / seconds:.0f} a second, {left:.0f} s left"
        )
        start, end = ("\r\x1b[K", "") if self._live else ("", "\n")
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)


def table(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield f"{'about':10}{'messages':>10}{'accepted':>10}{'':>6}  refused"
    for name, row in rows.items():
        if not row["messages"]:
            continue
        refused = ", ".join(f"{error} {count}" for error, count in row["refused"].items())
        if row["unanswered"]:
            refused += f"; unanswered {row['unanswered']}"
        share = row["accepted"] / row["messages"]
        yield f"{name:10}{row['messages']:10}{row['accepted']:10}{share:6.0%}  {refused}"


def merge(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """The counts of several runs, added up."""
    rows: dict[str, dict[str, Any]] = {}
    for outcome in outcomes:
        for name, row in outcome.rows.items():
            into = rows.setdefault(
                name, {"messages": 0, "accepted": 0, "unanswered": 0, "refused": Counter()}
            )
            for key in ("messages", "accepted", "unanswered"):
                into[key] += row[key]
            into["refused"].update(row["refused"])
    return rows


def campaign(messages: int, seed: int, kernel: str) -> list[Outcome]:
    """As nobody, and then some as root; the second only if the first was sound."""
    outcomes: list[Outcome] = []
    for words, count in (((), messages), (("--root",), messages // AS_ROOT)):
        again = ("--seed", str(seed), *words)
        outcome = attack(*again, "--messages", str(count), kernel=kernel, progress=Line(count))
        outcomes.append(outcome)
        if outcome.failed:
            failure = outcome.failure or {"epoch": outcome.epoch + 1}
            command = f"tests/fuzz/fuzz.py --shrink {failure['epoch']} {' '.join(again)}"
            print(f"{outcome.words}\n{json.dumps(failure)}\n{command} --kernel {kernel}")
            break
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    option = parser.add_argument
    option("--messages", type=int, default=200_000, help="to send (default 200000)")
    option("--seed", type=int, default=1, help="of all chance (default 1)")
    option("--kernel", default="6.12", help="debug kernel of this series (default 6.12)")
    option("--root", action="store_true", help="with --shrink: the run was root's")
    option("--shrink", type=int, metavar="EPOCH", help="find the messages that make it fail")
    option("--json", type=Path, metavar="FILE", help="write what, times, failed and seconds there")
    args = parser.parse_args()
    if args.shrink is not None:
        words = ["--seed", str(args.seed), *(["--root"] if args.root else [])]
        needed = replay(words, args.shrink, args.kernel)
        if not needed:
            print("The epoch does not fail by itself.")
        for message in needed:
            print(json.dumps(message))
        return 0
    print(f"seed {args.seed}, {args.messages} messages", file=sys.stderr)
    begin = time.monotonic()
    outcomes = campaign(args.messages, args.seed, args.kernel)
    print(*table(merge(outcomes)), sep="\n")
    summary = {
        "what": f"mutated netlink messages as nobody and as root, with traffic, on {args.kernel} "
        f"debug, seed {args.seed}",
        "times": sum(outcome.messages for outcome in outcomes),
        "failed": sum(outcome.failed for outcome in outcomes),
        "seconds": round(time.monotonic() - begin),
    }
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(summary) + "\n")
    print(json.dumps(summary))
    return 1 if summary["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
