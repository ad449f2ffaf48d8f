# SPDX-License-Identifier: GPL-2.0-or-later
"""Calling lab/run, and seeing what runs of its guests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from lablib import ROOT

# A size of memory that tells the guests of this test run from others in the list of processes.
MEGABYTES = 300 + os.getpid() % 64

Ended = subprocess.CompletedProcess[bytes]
Lab = Callable[..., Ended]


def command(*arguments: str | Path) -> list[str | Path]:
    return [ROOT / "lab/run", "--mem", f"{MEGABYTES}M", *arguments]


def guest_processes() -> list[int]:
    """What runs of the guests of these tests."""
    mark = f"mem={MEGABYTES << 10}K".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has just ended
        if mark in words:
            found.append(int(folder.name))
    return found


def folders(process: int | None = None) -> set[Path]:
    """The folders of runs, of all or of one process, after which they are named."""
    return set(Path("/dev/shm").glob(f"aqmkit-{process or '*'}-*"))


def abandoned(before: set[Path]) -> list[Path]:
    """Folders of runs that are no more, but for those that were there before."""
    return [
        folder
        for folder in folders() - before
        if not Path("/proc", folder.name.split("-")[1]).exists()
        and folder.exists()  # not only just tidied up
    ]
