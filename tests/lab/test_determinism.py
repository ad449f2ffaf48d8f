# SPDX-License-Identifier: GPL-2.0-or-later
"""The same command, seed and build give the same bytes, wherever and whenever; another seed not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from guests import command
from lablib import ROOT

FLOWS = Path("tests/lab/flows.py")

Bytes = dict[str, bytes]


def flows(out: Path, seed: int = 1, clone: Path = ROOT, flavour: str = "fast") -> Bytes:
    """Run the flows with DIR being `out`; all that they wrote."""
    out.mkdir(parents=True)
    choice: list[str | Path] = ["--seed", str(seed), "--flavour", flavour, "--out", out]
    call = [clone / "lab/run", *command(*choice, "--", FLOWS)[1:]]
    subprocess.run(call, cwd=clone, check=True)
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(written) == ["counters", "packets"]
    assert len(written["packets"]) > 10_000
    return written


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Bytes:
    return flows(tmp_path_factory.mktemp("first") / "out")


def test_again(first: Bytes, tmp_path: Path) -> None:
    assert flows(tmp_path / "out") == first


def test_in_another_folder_and_clone(first: Bytes, tmp_path: Path) -> None:
    """Longer paths, files made in another order and at another time, another environment."""
    clone = tmp_path / "a/folder/deeper/in/the/tree/with/a/longer/name/than/the/other"
    clone.mkdir(parents=True)
    wanted = [ROOT / "Makefile", ROOT / "lab", ROOT / "include", ROOT / "tc-patches"]
    wanted += [ROOT / "tests", *(path.parent for path in ROOT.glob("*/Kbuild"))]
    caches = shutil.ignore_patterns("__pycache__")
    for path in sorted(wanted, reverse=True):
        if path.is_dir():
            shutil.copytree(path, clone / path.name, copy_function=shutil.copy, ignore=caches)
        else:
            shutil.copy(path, clone)
    os.environ["AQM_TEST"] = "x" * 5000
    assert flows(tmp_path / "and/its/results", clone=clone) == first
    del os.environ["AQM_TEST"]


@pytest.fixture
def load() -> Iterator[None]:
    """More work than the machine has processors."""
    spin = [sys.executable, "-c", "while True: pass"]
    workers = [subprocess.Popen(spin) for _ in range(2 * (os.cpu_count() or 1))]
    yield
    for worker in workers:
        worker.kill()
        worker.wait()


@pytest.mark.usefixtures("load")
def test_beside_other_load(first: Bytes, tmp_path: Path) -> None:
    assert flows(tmp_path / "out") == first


def test_other_seeds(first: Bytes, tmp_path: Path) -> None:
    """Neighbouring seeds, and yet nothing in common."""
    runs = [first, *(flows(tmp_path / str(seed), seed) for seed in (0, 2, 3))]
    assert len({run["packets"] for run in runs}) == len(runs)
    assert len({run["counters"] for run in runs}) == len(runs)


@pytest.mark.usefixtures("debug_kernel")
def test_debug_kernel(tmp_path: Path) -> None:
    runs = [flows(tmp_path / name, flavour="debug") for name in ("a", "b")]
    assert runs[0] == runs[1]
