# SPDX-License-Identifier: GPL-2.0-or-later
"""tc's own tests, tdc.py of the kernel source package, on cases of ours: README.md."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
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


PROBED = "probe command: test skipped"  # tdc's words, when a case's dependsOn said no


@dataclass(frozen=True)
class Result:
    """What tdc said against a case, if anything."""

    said: str
    skipped: bool = False


@dataclass(frozen=True)
class Run:
    """What became of all cases on one kernel, each by its number."""

    status: int
    errors: str
    results: Mapping[str, Result]


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


def chosen(items: Sequence[pytest.Item], kernel: str) -> list[cases.Case]:
    """The cases among the tests to be run on a kernel."""
    found: list[cases.Case] = []
    for item in items:
        asked: dict[str, Any] = item.callspec.params if isinstance(item, pytest.Function) else {}
        if asked.get("kernel") == kernel and "case" in asked:
            found.append(asked["case"])
    return found


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest, kernel: str) -> Run:
    """Run tdc once on a kernel of the lab, with all cases."""
    out = BUILD / kernel
    shutil.rmtree(out, ignore_errors=True)
    plugins = out / "plugin-lib-custom"  # where tdc looks for other people's
    plugins.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("devices.py"), plugins / "nsPlugin.py")
    (out / "tdc_config_local.py").write_text(CONFIG)
    (out / "cases.json").write_text(json.dumps(chosen(request.session.items, kernel) or CASES))
    options = ["--flavour", "debug"] if kernel == "debug" else ["--kernel", kernel]
    subprocess.run([ROOT / "lab/build", *options], check=True)
    command: list[str | Path] = [ROOT / "lab/run", *options, "--out", out, "--"]
    command += ["env", f"PYTHONPATH={out}:{ROOT / 'tests/net'}"]
    # unbuffered: that each case is named shows lab/run that it does not hang
    command += [sys.executable, "-u", tdc() / "tdc.py"]
    command += ["--file", "cases.json", "--format", "xunit", "--outfile", "results.xml"]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True)
    (out / "log").write_text(done.stdout + done.stderr)
    return Run(done.returncode, done.stderr, results(out / "results.xml"))


def results(file: Path) -> dict[str, Result]:
    if not file.exists():
        return {}
    return {
        found.attrib["classname"]: Result(
            said="\n".join(f"{part.tag}: {part.text or ''}" for part in found),
            skipped=found.find("skipped") is not None and found.find("failure") is None,
        )
        for found in ElementTree.parse(file).iter("testcase")
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['name']}")
def test_case(case: cases.Case, run: Run) -> None:
    result = run.results.get(str(case["id"]), Result("tdc ended before it"))
    if result.skipped and PROBED in result.said:
        pytest.skip("not for this kernel: dependsOn")
    if result.said:
        pytest.fail(result.said, pytrace=False)


def test_kernel_has_no_complaint(run: Run) -> None:
    """A case may pass and its kernel stumble."""
    if run.status not in (0, 1):  # tdc's own: none or some failed
        pytest.fail(run.errors, pytrace=False)
