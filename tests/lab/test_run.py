# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/run as its users see it: what COMMAND sees and may do, and what comes back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from guests import Lab, command
from lablib import ROOT, Kernel

TRIES = 3
BOOT_SECONDS = 1.5


@pytest.mark.parametrize("status", [0, 1, 77])
def test_exit_status_is_the_commands(lab: Lab, status: int) -> None:
    assert lab("--", "sh", "-c", f"exit {status}").returncode == status


def test_death_by_signal_is_128_and_the_signal(lab: Lab) -> None:
    assert lab("--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM


def test_streams_are_separate_and_binary(lab: Lab) -> None:
    every_byte = "bytes(range(256)) * 1000"
    script = f"import os; os.write(1, {every_byte}); os.write(2, ({every_byte})[::-1])"
    ended = lab("--", "/usr/bin/python3", "-c", script)
    assert ended.stdout == bytes(range(256)) * 1000
    assert ended.stderr == ended.stdout[::-1]


def test_output_streams(lab: Lab) -> None:
    """What COMMAND has printed is there while it runs on."""
    run = subprocess.Popen(
        command("--", "sh", "-c", "echo first; while :; do :; done"), stdout=subprocess.PIPE
    )
    assert run.stdout
    assert run.stdout.readline() == b"first\n"
    assert run.poll() is None
    run.terminate()
    assert run.wait() == 128 + signal.SIGTERM


def test_runs_in_the_current_folder_with_a_fixed_environment(lab: Lab, tmp_path: Path) -> None:
    os.environ["AQM_TEST_LEAK"] = "yes"
    ended = lab("--seed", "5", "--", "sh", "-c", "pwd; env", cwd=tmp_path)
    del os.environ["AQM_TEST_LEAK"]
    folder, *lines = ended.stdout.decode().splitlines()
    env = dict(line.split("=", 1) for line in lines)
    assert folder == str(tmp_path)
    assert "AQM_TEST_LEAK" not in env
    assert env["AQM_SEED"] == "5"
    assert env["AQM_LAB"] == "1"
    assert env["PYTHONHASHSEED"] == "0"


def test_environment_of_a_network(lab: Lab) -> None:
    """Loopback is up and alone, namespaces can be made, ptys and temporary files are there."""
    script = """
        ip -br link; ip netns add a && ip netns exec a ip -br link && ip netns del a
        python3 -c 'import pty; pty.openpty()' && echo > $TMPDIR/x && echo > /dev/shm/x
        ls /sys/kernel/tracing/events/qdisc /sys/kernel/debug > /dev/null
    """
    ended = lab("--", "sh", "-ec", script)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert [line.split()[0] for line in ended.stdout.splitlines()] == [b"lo", b"lo"]


def test_our_modules_and_plugins_are_found(lab: Lab) -> None:
    script = (
        "tc qdisc add dev lo root rem && tc qdisc show dev lo && grep -o ^sch_rem /proc/modules"
    )
    ended = lab("--", "sh", "-c", script)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(b"qdisc rem ")
    assert ended.stdout.endswith(b"sch_rem\n")


def test_stock_tc_files_are_found_too(lab: Lab) -> None:
    netem = "tc qdisc add dev lo root netem delay 10ms 2ms distribution normal"
    assert lab("--", *netem.split()).returncode == 0


def test_folder_is_writable(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "not there, yet=now"
    script = 'cd "$AQM_OUT" && mkdir -p a/b && echo hi > a/b/c && mv a/b/c a/d && ln -s a/d e'
    assert lab("--out", out, "--", "sh", "-c", script).returncode == 0
    assert (out / "e").read_text() == "hi\n"


ATTEMPTS = {
    "plain": "true",
    "remount": "mount -o remount,rw /",
    "another mount": "mkdir /run/x && mount -t hostfs none /run/x -o / && cd /run/x",
    "without the lab's mounts": "umount -l /run /tmp /dev /proc",
    "no folder": 'umount "$AQM_OUT"; mount -o remount,rw /',
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_the_rest_is_read_only(lab: Lab, tmp_path: Path, attempt: str) -> None:
    """Whatever the guest's root does: the host refuses."""
    out = tmp_path / "out"
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    tries = f"echo gone > .{kept}; rm .{kept}; echo new > .{tmp_path}/new; chmod 777 .{kept}"
    ended = lab("--out", out, "--", "sh", "-c", f"cd /; {attempt}; {tries}; exit 0")
    assert ended.returncode == 0
    assert b"Read-only file system" in ended.stderr
    assert kept.read_text() == "as it was"
    assert sorted(tmp_path.iterdir()) == [kept, out]


def test_many_files_and_much_output(lab: Lab, tmp_path: Path) -> None:
    """More open files than the host gives a process unasked, and more data than a pipe holds."""
    (tmp_path / "files").mkdir()
    for number in range(1500):
        (tmp_path / "files" / str(number)).touch()
    (tmp_path / "script.py").write_text(
        "import os\n"
        "opened = [open(entry) for entry in os.scandir('files')]\n"
        "os.write(1, bytes(1 << 22))\n"
        "print(len(opened))\n"
    )
    ended = lab("--", "sh", "-c", "ulimit -n 4096; /usr/bin/python3 script.py", cwd=tmp_path)
    assert ended.stdout == bytes(1 << 22) + b"1500\n"


def test_folders_are_read_in_order(lab: Lab, tmp_path: Path) -> None:
    names = [f"{number * 7919 % 1000:03}" for number in range(1000)]
    for name in names:
        (tmp_path / name).touch()
    ended = lab("--", "ls", "-U", cwd=tmp_path)
    assert ended.stdout.decode().split() == sorted(names)


def test_side_by_side() -> None:
    uuid = ["--", "cat", "/proc/sys/kernel/random/uuid"]
    runs = [
        subprocess.Popen(command("--seed", str(seed), *uuid), stdout=subprocess.PIPE)
        for seed in range(4)
    ]
    words = {run.communicate()[0] for run in runs}
    assert [run.returncode for run in runs] == [0] * 4
    assert len(words) == 4


def test_boot_is_fast(lab: Lab) -> None:
    lab("--", "true")
    took = []
    for _ in range(TRIES):
        start = time.monotonic()
        assert lab("--", "true").returncode == 0
        took.append(time.monotonic() - start)
    assert min(took) < BOOT_SECONDS


def test_realtime(lab: Lab) -> None:
    start = time.monotonic()
    assert lab("--realtime", "--", "sleep", "1").returncode == 0
    assert time.monotonic() - start >= 1


def test_virtual_time(lab: Lab) -> None:
    start = time.monotonic()
    ended = lab("--", "sh", "-c", "sleep 1000; date -u +%Y-%m-%d")
    assert time.monotonic() - start < 100
    assert ended.stdout == b"2027-01-15\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="no root is needed, as the other tests have shown")
def test_no_root_needed(lab: Lab) -> None:
    """As user nobody, from a clone and a cache that are readable and no more."""
    lab("--", "true")  # the kit is built
    kernel = Kernel("6.12", "fast")
    built = kernel.built()
    assert built
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        clone = Path(home) / "clone"
        others = shutil.ignore_patterns(".git", ".venv", "out", "src", "*.log", "stock")
        shutil.copytree(ROOT, clone, symlinks=True, ignore=others)
        folder = Path(home) / "aqmkit/kernel" / built.name
        folder.mkdir(parents=True)
        shutil.copy(built / "linux", folder)
        (folder.parent / kernel.link().name).symlink_to(folder.name)
        out = Path(home) / "out"
        out.mkdir()
        shutil.chown(out, "nobody")
        ended = subprocess.run(
            [clone / "lab/run", "--out", out, "--", "sh", "-c", 'id -u > "$AQM_OUT/id"; exit 3'],
            cwd=clone,
            env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": home},
            user="nobody",
            group="nogroup",
            extra_groups=[],
            capture_output=True,
        )
        assert (ended.returncode, ended.stderr) == (3, b"")
        assert (out / "id").read_text() == "0\n"  # root in the guest
        assert (out / "id").owner() == "nobody"  # and not outside
