# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the lab share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from guests import Ended, Lab, abandoned, command, folders, guest_processes
from lablib import ROOT, Kernel


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """However a run ended, it leaves neither processes nor files."""
    before = folders()  # of others, who may be killed while we look
    yield
    assert guest_processes() == []
    assert abandoned(before) == []


@pytest.fixture
def lab() -> Lab:
    """Call lab/run, in the repository's folder if no other is given, and wait for it."""

    def call(*arguments: str | Path, cwd: Path = ROOT) -> Ended:
        return subprocess.run(
            command(*arguments), cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL
        )

    return call


@pytest.fixture(scope="session")
def debug_kernel() -> None:
    """The debug kernel is there; building it takes minutes the first time."""
    if Kernel("6.12", "debug").built() is None:
        subprocess.run([ROOT / "lab/build", "--flavour", "debug"], check=True)
