# SPDX-License-Identifier: GPL-2.0-or-later
"""tc's own tests, tdc.py of the kernel source package, on cases of ours: README.md."""

import functools
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

import cases
from lablib import DEFAULT_KERNEL, ROOT, Kernel

CASES = list(cases.every())
BUILD = ROOT / "build" / "tdc"
CONFIG = """\
import os
ENVIR = dict(os.environ)  # else commands get none, and tc does not find our plug-ins
EXTRA_NAMES = {"DUMMY": "dummy", "IFB": "ifb"}
"""


@dataclass(frozen=True)
class Run:
    """What became of all cases on one kernel, each by its number: "" if it passed."""

    status: int
    errors: str
    results: Mapping[str, str]


def tdc() -> Path:
    """The folder of the tests of the source that the lab's kernel was built from."""
    built = Kernel(DEFAULT_KERNEL, "fast").built()
    assert built, "the lab's kernel is not built: lab/build"
    folder = (built / "source").resolve() / "tools/testing/selftests/tc-testing"
    assert (folder / "tdc.py").exists(), (
        f"an older lab/build left {folder} out: remove {built.resolve()} and"
        f" {folder.parents[3]}, then call lab/build"
    )
    return folder


@functools.cache
def run(kernel: str) -> Run:
    """Run tdc once on a kernel of the lab, with all cases."""
    out = BUILD / kernel
    shutil.rmtree(out, ignore_errors=True)
    plugins = out / "plugin-lib-custom"  # where tdc looks for other people's
    plugins.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("devices.py"), plugins / "nsPlugin.py")
    (out / "tdc_config_local.py").write_text(CONFIG)
    (out / "cases.json").write_text(json.dumps(CASES))
    chosen = ["--flavour", "debug"] if kernel == "debug" else ["--kernel", kernel]
    subprocess.run([ROOT / "lab/build", *chosen], check=True)
    command: list[str | Path] = [ROOT / "lab/run", *chosen, "--out", out, "--"]
    command += ["env", f"PYTHONPATH={out}:{ROOT / 'tests/net'}"]
    # unbuffered: that each case is named shows lab/run that it does not hang
    command += [sys.executable, "-u", tdc() / "tdc.py"]
    command += ["--file", "cases.json", "--format", "xunit", "--outfile", "results.xml"]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True)
    (out / "log").write_text(done.stdout + done.stderr)
    results = {}
    if (out / "results.xml").exists():
        for found in ElementTree.parse(out / "results.xml").iter("testcase"):
            told = [f"{part.tag}: {part.text or ''}" for part in found]
            results[found.attrib["classname"]] = "\n".join(told)
    return Run(done.returncode, done.stderr, results)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['name']}")
def test_case(case: cases.Case, kernel: str) -> None:
    said = run(kernel).results.get(str(case["id"]), "tdc ended before it")
    if said:
        pytest.fail(said, pytrace=False)


def test_kernel_has_no_complaint(kernel: str) -> None:
    """A case may pass and its kernel stumble."""
    ended = run(kernel)
    if ended.status not in (0, 1):  # tdc's own: none or some failed
        pytest.fail(ended.errors, pytrace=False)
