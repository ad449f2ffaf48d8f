# SPDX-License-Identifier: GPL-2.0-or-later
"""Build our modules against the headers of a stock kernel, and hear what the tools say of them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import kernels

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "stock"

COMPLAINT = re.compile(r"\b(warning|error)\b", re.IGNORECASE)
# Said of the machine and of the headers' packages, whatever is built.
NOT_OURS = (
    "the compiler differs from the one used to build the kernel",
    "Skipping BTF generation",
)
# What a make hands down to the makes below it.
OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


class Built:
    """Our modules for a stock kernel, and what was said while they were built."""

    def __init__(self, series: str) -> None:
        self.series = series
        self.folder = BUILD / series / "modules"
        self.complaints = build(series, self.folder)

    def qdiscs(self) -> list[Path]:
        return sorted(self.folder.glob("sch_*.ko"))

    def actions(self) -> list[Path]:
        return sorted(self.folder.glob("act_*.ko"))

    def controls(self) -> list[Path]:
        return sorted(self.folder.glob("tcp_*.ko"))


def build(series: str, out: Path, *settings: str) -> list[str]:
    """Build all modules into out, from nothing, so that all is said; return the complaints.

    settings are make's, such as W=1. A complaint is a line of warning or error, or one that names
    a place in our sources (sparse explains itself in such lines).
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    output = make("modules", f"KDIR={kernels.headers(series)}", f"OUT={out}", *settings)
    (out / "build.log").write_text(output)
    place_of_ours = re.compile(rf"^{re.escape(str(out.resolve()))}\S*:\d+:")
    return [
        line
        for line in output.splitlines()
        if COMPLAINT.search(line) or place_of_ours.match(line)
        if not any(words in line for words in NOT_OURS)
    ]


def make(*words: str) -> str:
    """Run make in the repository, apart from a make that may be running us."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", str(REPOSITORY), *words],
        env=environment | {"LC_ALL": "C"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"make {' '.join(words)} failed:\n{done.stdout}"
    return done.stdout
