# SPDX-License-Identifier: GPL-2.0-or-later
"""One run in the lab, from its command to its result."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from report.runs import NoResultError

from .plan import ROOT, Run, note_time, programs_digest, shell
from .result import Result, from_folder

LAST_LINES = 6  # of what a failed run said


def perform(
    command: Callable[[str], Sequence[str]],
    *,
    told: str = "",
    laws: Mapping[str, str] | None = None,
    course: bool = False,
    zoom: tuple[float, float] | None = None,
) -> Result:
    """Carry out COMMAND of a folder; NoResultError if it fails or is not to be trusted."""
    with tempfile.TemporaryDirectory(prefix="papers-") as folder:
        given = command(folder)
        done = subprocess.run(
            given, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            said = done.stderr.splitlines()[-LAST_LINES:]
            words = "\n".join(said) or f"exit status {done.returncode}, without a word"
            raise NoResultError(f"{shell(given)}:\n{words}")
        found = from_folder(Path(folder), command=told, laws=laws, course=course, zoom=zoom)
    return replace(found, provenance={**found.provenance, "programs": programs_digest()})


def result_of(run: Run) -> Result:
    """Do RUN."""
    return perform(
        run.command,
        told=shell(run.command("OUT")),
        laws=run.laws,
        course=run.course,
        zoom=run.zoom,
    )


def carry_out(run: Run) -> None:
    """Do RUN, and keep its result in place of older ones."""
    begin = time.monotonic()
    result = result_of(run)
    note_time(run, time.monotonic() - begin)
    run.home.mkdir(parents=True, exist_ok=True)
    part = run.path.with_suffix(".part")
    part.write_bytes(result.packed())
    part.rename(run.path)
    for path in run.older():
        path.unlink()
