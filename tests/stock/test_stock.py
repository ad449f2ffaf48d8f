# SPDX-License-Identifier: GPL-2.0-or-later
"""Our modules on Debian's stock kernels: built against their headers, used under them in QEMU."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import boot
import guest
import kernels
import modules
from modules import BUILD, Built

# Emulation feels every other load of the machine: the test of a hang, not of speed.
BOOT_TIMEOUT_S = 1200


@pytest.fixture(scope="session")
def run(built: Built, plugins: Path) -> boot.Run:
    """One boot, in which all checks are made."""
    out = BUILD / built.series / "guest"
    shutil.rmtree(out, ignore_errors=True)
    command = ["/usr/bin/python3", guest.__file__, str(built.folder)]
    return boot.boot(built.series, command, out, plugins, timeout=BOOT_TIMEOUT_S)


def test_builds_without_a_warning(built: Built) -> None:
    assert not built.complaints, "\n".join(built.complaints)


def test_builds_for_32_bits_without_a_warning() -> None:
    """That 64-bit numbers are divided by the kernel's helpers alone, modpost sees to."""
    folder = BUILD / kernels.SERIES_32
    assert not (complaints := modules.build(kernels.SERIES_32, folder)), "\n".join(complaints)
    names = {name for kbuild in modules.REPOSITORY.glob("*/Kbuild")
             for name in re.findall(r"\w+(?=\.o)", kbuild.read_text())}
    assert {module.stem for module in folder.glob("*.ko")} == names
    for module in folder.glob("*.ko"):
        assert module.read_bytes()[:5] == b"\x7fELF\x01", f"{module.name} is not of 32 bits"


def aliases(module: Path) -> list[str]:
    words = ["/sbin/modinfo", "--field", "alias", str(module)]
    return subprocess.run(words, capture_output=True, text=True).stdout.split()


def test_modules_are_found_by_tc(built: Built) -> None:
    """Kernels ask for net-sch-<kind> since 2024, for sch_<kind> before; for actions likewise."""
    for module in (*built.qdiscs(), *built.actions()):
        assert "net-" + module.stem.replace("_", "-", 1) in aliases(module)


def test_modules_are_found_by_tcp(built: Built) -> None:
    """Kernels ask for tcp_<name>, of which one module may have several."""
    names = {name for module in built.controls() for name in (module.stem, *aliases(module))}
    assert names == {f"tcp_{name}" for name in (*guest.CONTROLS, guest.BASELINE_CONTROL)}


def test_everything_is_checked(built: Built) -> None:
    kinds = {module.stem.removeprefix("sch_") for module in built.qdiscs()}
    assert kinds == {qdisc.kind for qdisc in guest.QDISCS}
    assert {module.stem.removeprefix("act_") for module in built.actions()} == set(guest.ACTIONS)


@pytest.mark.parametrize("check", [name for name, _ in guest.checks(Path())])
def test_in_the_kernel(run: boot.Run, check: str) -> None:
    results = json.loads(run.words("checks.json") or "{}")
    failure = results.get(check, f"not reached:\n{run.words('stderr')}\n{run.words('console')}")
    if failure:
        pytest.fail(failure, pytrace=False)


def test_a_report_is_seen() -> None:
    log = "rem: hello\nWARNING: CPU: 0 PID: 7 at net/sched/sch_rem.c:70 rem_dequeue+0x1/0x2\nbye"
    assert guest.reports(log) == [log.splitlines()[1]]
