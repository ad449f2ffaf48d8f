# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tools say of our sources: checkpatch, sparse, W=1, kernel-doc, ruff, mypy, shellcheck.

Each test runs one tool over all files of its kind that git knows, or would add.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

import kernels
import lablib
import modules

REPOSITORY = modules.REPOSITORY
BUILD = REPOSITORY / "build" / "lint"


@dataclass(frozen=True)
class Exempt:
    """Types of checkpatch's remarks that do not hold for some files, and why."""

    pattern: str
    types: tuple[str, ...]
    reason: str


CHECKPATCH_EXEMPT = (
    Exempt(
        "*_trace.h",
        ("OPEN_ENDED_LINE", "PARENTHESIS_ALIGNMENT"),
        "TRACE_EVENT() is laid out as in the kernel's include/trace/events",
    ),
    Exempt(
        "tests/fuzz/fuzz.c",
        ("COMPLEX_MACRO", "MACRO_ARG_REUSE"),
        "rows that several tables have in common",
    ),
    *(
        Exempt(
            pattern,
            ("PREFER_DEFINED_ATTRIBUTE_MACRO", "PREFER_KERNEL_TYPES"),
            "a program of user space does not have the kernel's types and macros",
        )
        for pattern in ("lab/*", "tests/*", "tc-patches/*")
    ),
)

# pyproject.toml's pythonpath, and in the lab tests/net: where Python files of one folder find
# those of another.
SHARED_FOLDERS = ("mininet", "lab", "tests/stock", "tests/net")

# Prose, data and lists carry no licence line of their own.
NO_SPDX = (
    *("*.md", "*.txt", "*.in", "*.json", "*.csv", "*.svg", "*.png", "*.gz", "*.gitignore"),
    *("LICENSE", "mininet/report/uplot/*"),
)
SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
SPDX_UAPI = f"{SPDX} WITH Linux-syscall-note"

# Folders of one machine, and the hosts that packages come from, which are the user's to choose.
OF_ONE_MACHINE = re.compile(
    r"/(work|root|home)/\w|\b(deb|security|snapshot)\.debian\.org|\bpypi\.org"
    r"|\bfiles\.pythonhosted\.org|\barchive\.ubuntu\.com"
)


def run(*words: str | Path, folder: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """Run a program; all its words are in stdout, whichever way it says them."""
    return subprocess.run(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def expect_success(*words: str | Path) -> str:
    """Run a program that has nothing to object to; return its words."""
    done = run(*words)
    if done.returncode:
        pytest.fail(f"status {done.returncode}:\n{done.stdout}", pytrace=False)
    return done.stdout


def expect_silence(remarks: Iterable[str]) -> None:
    if told := "\n".join(remarks):
        pytest.fail(told, pytrace=False)


def our_files() -> list[Path]:
    """Return the files in git and those not ignored, relative to the repository."""
    names = expect_success("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    found = {Path(name) for name in names.split("\0") if name}
    return sorted(path for path in found if (REPOSITORY / path).is_file())


def text(path: Path) -> str:
    return (REPOSITORY / path).read_text(errors="replace")


def written_in(language: str, suffix: str) -> list[Path]:
    """Return our files in a language, known by their suffix or by the program that runs them."""
    shebang = re.compile(rf"#!.*\b{language}\b")
    return [path for path in FILES if path.suffix == suffix or shebang.match(text(path))]


FILES = our_files()
C_FILES = [path for path in FILES if path.suffix in (".c", ".h")]
KERNEL_FOLDERS = ("include", "sch_", "tcp_", "baselines")
KERNEL_FILES = [path for path in C_FILES if path.parts[0].startswith(KERNEL_FOLDERS)]
PYTHON_FILES = written_in(r"python3", ".py")
SHELL_FILES = written_in(r"(ba|da)?sh", ".sh")


@pytest.fixture(scope="session")
def linux() -> Path:
    """The kernel source that the lab was built from: it comes with the kernel's own tools."""
    kernel = lablib.Kernel(lablib.DEFAULT_KERNEL, "fast")
    if not kernel.built():
        expect_success(REPOSITORY / "lab" / "build")
    built = kernel.built()
    assert built
    return (built / "source").resolve()


COMPAT = Path("include/aqm/compat.h")
VERSION = re.compile(
    r"LINUX_VERSION|KERNEL_VERSION|RHEL_|SUSE_|UTS_RELEASE|KERNELRELEASE|VERSION_CODE"
    r"|(linux/version|generated/\w+)\.h|\$\((VERSION|PATCHLEVEL|SUBLEVEL)\)"
)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(.*)", re.MULTILINE)
# What a condition may ask: was this header here before, which program is this, which machine.
ASKED = re.compile(r"defined|\w+_H_?|TRACE_HEADER_MULTI_READ|__KERNEL__|CONFIG_\w+|__SIZEOF_\w+")


def test_no_source_goes_by_the_kernels_version() -> None:
    """Distributions backport: what a kernel can do is found out by asking for it."""
    builds = [path for path in FILES if path.name == "Kbuild"]
    expect_silence(
        f"{path}:{number}: {line.strip()}"
        for path in (*KERNEL_FILES, *builds)
        for number, line in enumerate(text(path).splitlines(), 1)
        if VERSION.search(line)
    )


def test_only_compat_knows_that_kernels_differ() -> None:
    assert COMPAT in KERNEL_FILES
    expect_silence(
        f"{path}: #if{condition}"
        for path in KERNEL_FILES
        if path != COMPAT
        for condition in CONDITION.findall(text(path))
        if not all(ASKED.fullmatch(name) for name in re.findall(r"[A-Za-z_]\w*", condition))
    )


# They may be set, or go on while the machine sleeps; laws go by CLOCK_MONOTONIC and by jiffies.
OTHER_CLOCK = re.compile(
    r"ktime_get_(real|boot|clocktai|raw|coarse)\w*|ktime_get_(tai|mono_fast|seconds)\w*"
    r"|get_(seconds|monotonic_boottime)\b|(local|sched|cpu)_clock\b|do_gettimeofday|getnstimeofday"
    r"|rdtsc|get_cycles"
)


def test_no_source_looks_at_a_clock_that_jumps() -> None:
    expect_silence(
        f"{path}:{number}: {line.strip()}"
        for path in KERNEL_FILES
        for number, line in enumerate(text(path).splitlines(), 1)
        if OTHER_CLOCK.search(line)
    )


def test_checkpatch(linux: Path) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    told = run(
        *("perl", linux / "scripts" / "checkpatch.pl", f"--root={linux}", "--no-summary"),
        *("--strict", "--terse", "--show-types", "--file"),
        *(REPOSITORY / path for path in C_FILES),
        folder=BUILD,  # it leaves a list of the kernel's CamelCase names where it is run
    )
    expect_silence(line for line in told.stdout.splitlines() if not is_exempt(line))


def is_exempt(remark: str) -> bool:
    """Tell whether one line of checkpatch's is of a type that its file is exempt from."""
    found = re.match(rf"{re.escape(str(REPOSITORY))}/(\S+?):\d+: \w+:(\w+): ", remark)
    return found is not None and any(
        fnmatch(found[1], exempt.pattern) and found[2] in exempt.types
        for exempt in CHECKPATCH_EXEMPT
    )


def test_kernel_doc(linux: Path) -> None:
    kernel_doc = ("perl", linux / "scripts" / "kernel-doc", "-none", "-Wall")
    expect_silence(expect_success(*kernel_doc, *KERNEL_FILES).splitlines())


@pytest.mark.parametrize("series", kernels.SERIES)
def test_extra_warnings_and_sparse(series: str) -> None:
    settings = ("W=1", "C=2", "CF=-D__CHECK_ENDIAN__")
    expect_silence(modules.build(series, BUILD / series, *settings))


def test_plugins_build_without_a_warning() -> None:
    said = modules.make("--always-make", "plugins", f"OUT={BUILD / 'plugins'}")
    expect_silence(line for line in said.splitlines() if modules.COMPLAINT.search(line))


def test_ruff() -> None:
    ruff = (sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise")
    expect_success(*ruff, *PYTHON_FILES)


def python_folders() -> dict[str, list[Path]]:
    """Sort the Python files by folder: each is a search path of its own, where names recur."""
    folders = defaultdict[str, list[Path]](list)
    for path in PYTHON_FILES:
        depth = 2 if path.parts[0] == "tests" else 1
        folders[str(Path(*path.parent.parts[:depth]))].append(path)
    return folders


@pytest.mark.parametrize(("folder", "paths"), python_folders().items(), ids=python_folders())
def test_mypy(folder: str, paths: list[Path]) -> None:
    expect_success(
        *("env", f"MYPYPATH={':'.join((folder, *SHARED_FOLDERS))}"),
        *(sys.executable, "-m", "mypy", "--scripts-are-modules", f"--cache-dir={BUILD / 'mypy'}"),
        *paths,
    )


def test_shellcheck() -> None:
    expect_success("shellcheck", *SHELL_FILES)


def test_licences_are_named() -> None:
    missing = []
    for path in FILES:
        wanted = SPDX_UAPI if "uapi" in path.parts else SPDX
        heads = [line.rstrip("*/->#} ") for line in text(path).splitlines()[:2]]
        if not any(head.endswith(wanted) for head in heads) and not is_like(path, NO_SPDX):
            missing.append(f"{path}: {wanted!r} is not in its first two lines")
    expect_silence(missing)


def is_like(path: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatch(str(path), pattern) for pattern in patterns)


def test_nothing_is_of_one_machine() -> None:
    expect_silence(
        f"{path}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(text(path).splitlines(), 1)
        if OF_ONE_MACHINE.search(line) or str(REPOSITORY) in line
    )
