#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a command as root of a virtual machine with one of Debian's stock kernels.

    tests/stock/boot.py --out DIR 6.1 -- COMMAND...

The machine (QEMU by virtme-ng, in software: no KVM needed, and none used where it would hang) sees
this machine's files read-only and may write DIR, where stdout, stderr, status, dmesg and console
are left. The kernel's modules are found by modprobe; TC_LIB_DIR (--plugins) leads tc to ours.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import kernels
from packages import PackageError

INIT = Path(__file__).resolve().with_name("guest-init.sh")
BOOT_FAILED = 125
NEEDED = {
    "virtme-run": "virtme-ng (pip)",
    "qemu-system-x86_64": "qemu-system-x86",
    "bwrap": "bubblewrap",
    "busybox": "busybox-static",
}


class BootError(Exception):
    """A sentence for the user."""


@dataclass(frozen=True)
class Run:
    """What a run in the virtual machine left behind."""

    out: Path

    @property
    def status(self) -> int | None:
        """The command's exit status; None where the machine ended before the command did."""
        text = self.words("status").strip()
        return int(text) if text else None

    def words(self, name: str) -> str:
        """Return one of: stdout, stderr, status, dmesg, console."""
        path = self.out / name
        return path.read_text(errors="replace") if path.exists() else ""


def boot(
    series: str,
    command: list[str],
    out: Path,
    plugins: Path | None = None,
    cpus: int = 2,
    memory: str = "1G",
    timeout: float = 300,
) -> Run:
    """Boot the stock kernel of a series (6.1, 6.12) and run a command in the current folder."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    virtme, *others = (shutil.which(name, path=path) for name in NEEDED)
    if not virtme or not all(others):
        raise BootError(f"To boot a kernel, {', '.join(NEEDED.values())} are needed.")
    kernel = kernels.image(series)
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in ("stdout", "stderr", "status", "dmesg", "console"):
        (out / name).unlink(missing_ok=True)
    # By way of a file, as a kernel's command line is short.
    library = plugins.resolve() if plugins else ""
    steps = ["exec", "sh", INIT, out, kernel.parents[1], library, Path.cwd(), *command]
    script = out / "boot.sh"
    script.write_text(shlex.join(map(str, steps)) + "\n")

    words: list[str | Path] = [
        # However this process ends, the machine ends with it.
        *("bwrap", "--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc"),
        *(virtme, "--kimg", kernel, "--mods", "auto", "--disable-kvm", "--force-9p"),
        *("--cpus", str(cpus), "--memory", memory, "--rwdir", out, "--show-boot-console"),
        *("--script-sh", shlex.join(["exec", "sh", str(script)])),
        # One thread for all virtual CPUs: with a thread each, QEMU may run an instruction that the
        # kernel has patched meanwhile, and where tracing is turned on or off the kernel then dies.
        *("--qemu-opts", "-accel", "tcg,thread=single"),
    ]
    with (out / "console").open("ab") as console:
        try:
            subprocess.run(words, stdin=subprocess.DEVNULL, stdout=console,
                           stderr=subprocess.STDOUT, timeout=timeout)
        except subprocess.TimeoutExpired:
            console.write(f"\nStopped after {timeout:g} s.\n".encode())
    return Run(out)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a command under a stock kernel in QEMU.")
    parser.add_argument("--out", type=Path, required=True, help="folder that the guest may write")
    parser.add_argument("--plugins", type=Path, help="folder with tc's q_*.so")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--timeout", type=float, default=300, help="seconds (300)")
    parser.add_argument("series", choices=kernels.SERIES)
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    given = parser.parse_args()
    try:
        run = boot(given.series, given.command, given.out, given.plugins,
                   given.cpus, given.memory, given.timeout)
    except (BootError, PackageError) as problem:
        print(f"boot.py: {problem}", file=sys.stderr)
        return BOOT_FAILED
    if run.status is None:
        print(f"{run.words('console')}\nboot.py: The machine ended before the command did.",
              file=sys.stderr)
        return BOOT_FAILED
    sys.stdout.write(run.words("stdout"))
    sys.stderr.write(run.words("stderr"))
    return run.status


if __name__ == "__main__":
    sys.exit(main())
