# SPDX-License-Identifier: GPL-2.0-or-later
"""How these tests run an experiment: on the host they call lab/run, as a user does."""

import csv
import gzip
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAB = str(ROOT / "lab" / "run")
PYTHON = "/usr/bin/python3"  # Debian's, which knows Debian's Mininet
DUMBBELL = str(ROOT / "mininet" / "dumbbell.py")
MULTIHOP = str(ROOT / "mininet" / "multihop.py")
SABOTAGE = str(ROOT / "tests" / "experiment" / "sabotage.py")
SEGMENT = 948  # payload bytes of a packet of 1000 with timestamps
WALL_LIMIT_S = 300


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    status: int
    output: str
    errors: str

    @property
    def metrics(self) -> dict[str, Any]:
        """What it printed under --json."""
        found = json.loads(self.output.splitlines()[-1])
        assert isinstance(found, dict)
        return found


ARGUMENTS = """
import sys
sys.path.insert(0, sys.argv[1])
from {script} import arguments
arguments(sys.argv[2:])
"""


def expect_refusal(script: str, options: str, words: str) -> None:
    """See SCRIPT, a module of mininet/, refuse its options in one line with WORDS; none is run."""
    code = ARGUMENTS.format(script=script)
    done = subprocess.run(
        [PYTHON, "-c", code, str(ROOT / "mininet"), *options.split()],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


class Lab:
    """Runs commands in the lab, their results in one folder."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def run(self, *command: str, options: str = "", seed: int = 1, cwd: Path = ROOT) -> Done:
        """One command, from the folder `cwd`, with further options of lab/run."""
        lab = [LAB, "--seed", str(seed), "--out", str(self.out), *options.split(), "--", *command]
        done = subprocess.run(
            lab, cwd=cwd, text=True, capture_output=True, timeout=WALL_LIMIT_S, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def dumbbell(self, options: str, qdisc: str, seed: int = 1, cwd: Path = ROOT) -> Done:
        """One experiment whose files are put into the folder."""
        given = ["--qdisc", qdisc, *options.split(), "--out", str(self.out), "--json"]
        return self.run(DUMBBELL, *given, seed=seed, cwd=cwd)

    def multihop(self, options: str, qdiscs: str, seed: int = 1) -> Done:
        """The same on a chain."""
        given = ["--qdiscs", qdiscs, *options.split(), "--out", str(self.out), "--json"]
        return self.run(MULTIHOP, *given, seed=seed)

    def series(self, name: str) -> list[tuple[float, int, float]]:
        """Time, number and value of each row of series NAME of the last experiment."""
        with gzip.open(self.out / "series.csv.gz", "rt") as stream:
            rows = [row for row in csv.DictReader(stream) if row["series"] == name]
        return [(float(row["time_s"]), int(row["flow"]), float(row["value"])) for row in rows]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab that writes to a folder of this test."""
    return Lab(tmp_path)
