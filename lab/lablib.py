# SPDX-License-Identifier: GPL-2.0-or-later
"""What lab/build and lab/run share: where things are kept, what makes a kernel, locks, errors."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

LAB = Path(__file__).resolve().parent
ROOT = LAB.parent

FLAVOURS = ("fast", "debug")
DEFAULT_KERNEL = "6.12"
# Kernel series, and the Debian suite to ask where the machine's own suites do not have it.
KERNELS = {"6.12": "trixie", "6.1": "bookworm", "7.2": "trixie-backports"}

# What we change in the source of every series: (file, old, new).
SOURCE_EDITS = (
    # At the architecture's own 100 ticks a second, timers of PIE and its like round to 10 ms.
    (
        "arch/um/Kconfig",
        "config HZ\n\tint\n\tdefault 100\n",
        "config HZ\n\tint\n\tdefault 1000\n",
    ),
    # In virtual time a system call that fails costs 1 us, lest a loop that waits for something
    # never end. Not so one that asked for a file that is not there, or took something for a link:
    # how many of those a program makes depends on the folder it was called in.
    (
        "arch/um/kernel/skas/syscall.c",
        "if (IS_ERR_VALUE(ret) &&\n",
        "if (IS_ERR_VALUE(ret) && ret != -ENOENT && ret != -ENOTDIR && ret != -EINVAL &&\n",
    ),
    # Randomness comes from the seed alone, not from where a program's code lay when an interrupt
    # came, nor from the clock.
    ("kernel/irq/handle.c", "\tadd_interrupt_randomness(desc->irq_data.irq);\n", ""),
    (
        "include/linux/timex.h",
        "#define random_get_entropy()\trandom_get_entropy_fallback()\n",
        "#define random_get_entropy()\t1UL\n",
    ),
)
# Without these the build would carry the date and the name of the machine.
BUILD_ENV = {
    "KBUILD_BUILD_TIMESTAMP": "2027-01-15",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "aqmkit",
    "KBUILD_BUILD_HOST": "lab",
}

LAB_FAILED = 125  # exit status: the lab itself, or its kernel, failed; not COMMAND


class LabError(Exception):
    """Something went wrong that the user can do something about: one sentence that says what."""


class Parser(argparse.ArgumentParser):
    """Tells a wrong call like any other failure: exit status 2 might be COMMAND's."""

    def error(self, message: str) -> NoReturn:
        raise LabError(f"{message} (see lab/{Path(sys.argv[0]).name} --help)")


def main(work: Callable[[], int]) -> None:
    """Run a command's work; what goes wrong is told in a sentence, never as a traceback."""
    prog = Path(sys.argv[0]).name
    try:
        status = work()
    except LabError as error:
        print(f"lab/{prog}: {error}", file=sys.stderr)
        status = LAB_FAILED
    except KeyboardInterrupt:
        status = 130  # as a shell reports SIGINT
    except BrokenPipeError:  # whoever read our output has gone, and nobody is there to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141  # as a shell reports SIGPIPE
    except OSError as error:
        print(f"lab/{prog}: {error.filename or ''}: {error.strerror}.", file=sys.stderr)
        status = LAB_FAILED
    sys.exit(status)


def cache_dir() -> Path:
    """The user's cache folder: sources and kernels, shared by all clones of the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "aqmkit"


@contextlib.contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock file `path`; if another process has it, say `waiting` and wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(waiting, file=sys.stderr, flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def digest(parts: Iterable[bytes]) -> str:
    """A short name for a content: the same parts in the same order give the same name."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()[:12]


def compiler() -> str:
    """The compiler's version: kernel and modules must come from the same one."""
    try:
        told = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError("gcc is missing: apt-get install gcc") from None
    return told.stdout.strip()


@dataclass(frozen=True)
class Kernel:
    """A kernel of the lab, by series and flavour, as this repository configures it."""

    series: str
    flavour: str

    def config(self) -> str:
        """The options asked for, as lines of a .config."""
        text = (LAB / "kernel.config").read_text()
        if self.flavour == "debug":
            text += (LAB / "debug.config").read_text()
        return text

    def key(self) -> str:
        """Changes when the kernel must be built anew, whatever the version of its source."""
        recipe = (self.config(), repr(SOURCE_EDITS), repr(BUILD_ENV), compiler())
        return digest(part.encode() for part in recipe)

    def link(self) -> Path:
        """Leads to the folder of the finished build."""
        return cache_dir() / "kernel" / f"{self.series}-{self.flavour}-{self.key()}"

    def built(self) -> Path | None:
        """The folder of the finished build, if there is one."""
        link = self.link()
        return link.resolve() if (link / "linux").is_file() else None
