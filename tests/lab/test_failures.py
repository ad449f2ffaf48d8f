# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong is seen, told in a sentence, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from guests import Lab, command, folders, guest_processes
from lablib import LAB_FAILED, ROOT, Kernel, cache_dir

LOOP = ["--", "sh", "-c", "echo started; while :; do :; done"]
PROVOKE = "/sys/kernel/debug/provoke-crash/DIRECT"

WORDS = {  # what LKDTM is told to do, and what the kernel says of it
    "WARNING": "WARNING: ",
    "BUG": "BUG: failure at",
    "PANIC": "Kernel panic",
    "EXCEPTION": "Kernel panic",
}
DEBUG_WORDS = {
    "READ_AFTER_FREE": "BUG: KASAN: slab-use-after-free",
    "ARRAY_BOUNDS": "UBSAN: array-index-out-of-bounds",
}


@pytest.mark.parametrize(("deed", "words"), WORDS.items())
def test_kernel_reports_fail_the_run(lab: Lab, deed: str, words: str) -> None:
    ended = lab("--", "sh", "-c", f"echo {deed} > {PROVOKE}; exit 0")
    assert ended.returncode == LAB_FAILED
    assert words in ended.stderr.decode()
    assert "this run is worth nothing" in ended.stderr.decode()


@pytest.mark.usefixtures("debug_kernel")
@pytest.mark.parametrize(("deed", "words"), DEBUG_WORDS.items())
def test_debug_kernel_reports_fail_the_run(lab: Lab, deed: str, words: str) -> None:
    ended = lab("--flavour", "debug", "--", "sh", "-c", f"echo {deed} > {PROVOKE}; exit 0")
    assert ended.returncode == LAB_FAILED
    assert words in ended.stderr.decode()


@pytest.mark.usefixtures("debug_kernel")
def test_debug_kernel_is_silent_without_a_cause(lab: Lab) -> None:
    ended = lab("--flavour", "debug", "--", "ip", "netns", "add", "a")
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.usefixtures("debug_kernel")
def test_memory_leaks_fail_the_run(lab: Lab, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests/lab/leak", tmp_path / "leak")
    built = Kernel("6.12", "debug").built()
    make = ["make", "-C", str(built), f"M={tmp_path}/leak", "ARCH=um", "modules"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    ended = lab("--flavour", "debug", "--", "insmod", tmp_path / "leak/leak.ko")
    assert ended.returncode == LAB_FAILED
    assert "kmemleak: 1 new suspected memory leaks" in ended.stderr.decode()
    assert "lose_memory" in ended.stderr.decode()


def test_hang_is_found(lab: Lab) -> None:
    ended = lab("--stall", "3", *LOOP)
    assert ended.returncode == LAB_FAILED
    assert ended.stdout == b"started\n"
    assert "hang: virtual time has stood still" in ended.stderr.decode()


def test_waiting_is_no_hang(lab: Lab) -> None:
    """Time moves, though nothing is printed for longer than a hang may last."""
    assert lab("--realtime", "--stall", "3", "--", "sleep", "5").returncode == 0


def test_timeout(lab: Lab) -> None:
    start = time.monotonic()
    ended = lab("--timeout", "1", "--", "sh", "-c", "sleep infinity & sleep infinity")
    assert ended.returncode == 124
    assert time.monotonic() - start < 10
    assert b"--timeout" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_everything(number: signal.Signals) -> None:
    """Also where these tests run in a shell's background, which ignores SIGINT."""
    heeding = ("env", "--default-signal=INT")
    with subprocess.Popen([*heeding, *command(*LOOP)], stdout=subprocess.PIPE) as run:
        assert run.stdout
        run.stdout.readline()
        assert guest_processes()
        run.send_signal(number)
        assert run.wait() == 128 + number
        assert guest_processes() == []


def test_not_even_kill_leaves_a_guest() -> None:
    with subprocess.Popen(command(*LOOP), stdout=subprocess.PIPE) as run:
        assert run.stdout
        run.stdout.readline()
        run.kill()
    deadline = time.monotonic() + 5
    while guest_processes() and time.monotonic() < deadline:
        time.sleep(0.05)
    for folder in folders(run.pid):  # all that nobody was left to tidy up
        shutil.rmtree(folder)


def told(*arguments: str | Path, tool: str = "run", cwd: Path = ROOT, **env: str | Path) -> str:
    """What lab/TOOL says when it refuses: one line, and the status of the lab's own failures."""
    ended = subprocess.run(
        [ROOT / "lab" / tool, *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == LAB_FAILED, ended.stderr
    assert ended.stdout == ""
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"lab/{tool}: ")
    return last


def test_no_such_command(lab: Lab) -> None:
    ended = lab("--", "no-such-command")
    assert ended.returncode == 127
    assert ended.stderr == b"lab/run: no-such-command: no such command.\n"


def test_no_command() -> None:
    assert "name the COMMAND" in told("--seed", "1")


def test_kernel_not_built(tmp_path: Path) -> None:
    sentence = told("--kernel", "7.2", "--", "true", XDG_CACHE_HOME=tmp_path)
    assert sentence.endswith("lab/build --kernel 7.2 --flavour fast")


def test_unknown_kernel() -> None:
    assert "choose from '6.12', '6.1', '7.2'" in told("--kernel", "5.10", "--", "true")


def test_folder_that_cannot_be() -> None:
    assert "make it first" in told("--out", "/no/such", "--", "true")
    assert "is not a folder" in told("--out", ROOT / "lab/run", "--", "true")
    assert "a folder of its own" in told("--out", "/", "--", "true")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_folder_not_writable() -> None:
    assert "is not writable" in told("--out", "/usr", "--", "true")


def test_folder_that_the_guest_does_not_see() -> None:
    assert "call from elsewhere" in told("--", "true", cwd=Path("/dev"))


def test_memory() -> None:
    assert "ask less" in told("--mem", "9999G", "--", "true")
    assert "a size like" in told("--mem", "lots", "--", "true")


def test_too_little_memory_in_the_guest(lab: Lab) -> None:
    ended = lab("--", "/usr/bin/python3", "-c", "bytearray(1 << 30)")
    assert ended.returncode == LAB_FAILED or b"MemoryError" in ended.stderr


def test_bwrap_missing(tmp_path: Path) -> None:
    (tmp_path / "gcc").symlink_to("/usr/bin/gcc")
    assert "apt-get install bubblewrap" in told("--", "true", PATH=tmp_path)


def test_namespaces_forbidden(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    sentence = told("--", "true", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert "sysctl user.max_user_namespaces" in sentence


def on_small_disk(folder: Path, *call: str | Path) -> subprocess.CompletedProcess[str]:
    """Call with a disk of 1 MiB in the folder's place."""
    small = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    script = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
    return subprocess.run(
        [*small, script, folder, *call],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(cache_dir().parent)},
        capture_output=True,
        text=True,
    )


def test_disk_full(tmp_path: Path) -> None:
    """A result that was cut short is never taken for a whole one."""
    write = ["--", "sh", "-c", 'head -c 2000000 /dev/zero > "$AQM_OUT/x"; exit 0']
    ended = on_small_disk(tmp_path, *command("--out", tmp_path, *write))
    assert ended.returncode == LAB_FAILED, ended.stderr
    assert "No space left on device" in ended.stderr


def test_no_room_to_build(tmp_path: Path) -> None:
    cache = ["env", f"XDG_CACHE_HOME={tmp_path}"]
    ended = on_small_disk(tmp_path, *cache, ROOT / "lab/build")
    assert ended.returncode == LAB_FAILED
    assert "make room" in ended.stderr


def test_no_source_package(tmp_path: Path) -> None:
    config = tmp_path / "apt.conf"
    config.write_text('Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "/dev/null";\n')
    sentence = told(tool="build", XDG_CACHE_HOME=tmp_path, APT_CONFIG=config)
    assert "KERNEL_SOURCE=" in sentence


def test_no_such_source(tmp_path: Path) -> None:
    sentence = told(tool="build", XDG_CACHE_HOME=tmp_path, KERNEL_SOURCE="/no/such")
    assert "neither a source tree nor a tarball" in sentence


def test_nothing_is_built_twice() -> None:
    start = time.monotonic()
    assert subprocess.run([ROOT / "lab/build"], capture_output=True).returncode == 0
    assert time.monotonic() - start < 2
