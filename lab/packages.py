# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's packages, binary and source, fetched with apt into folders of ours.

Nothing of the system's is changed, and no root is needed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Sequence
from email.message import Message
from email.parser import Parser
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class PackageError(Exception):
    """A sentence for the user."""


def run(
    words: Sequence[str | Path], folder: Path | None = None, config: Path | None = None
) -> str:
    """What a program prints; with `config` apt's, a configuration of its own."""
    env = {**os.environ, "LC_ALL": "C", **({"APT_CONFIG": str(config)} if config else {})}
    try:
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    except FileNotFoundError:
        raise PackageError(f"There is no {words[0]} here: Debian's tools are needed.") from None
    if done.returncode:
        raise PackageError((done.stderr or done.stdout).strip())
    return done.stdout


def mirrors() -> list[tuple[str, str]]:
    """Where this machine has its packages from: places and suites, Debian's usual name first."""
    told = run(["apt-get", "update", "--print-uris"])
    found = re.findall(r"^'(\S+)/dists/(\S+)/InRelease' ", told, re.MULTILINE)
    return sorted(set(found), key=lambda at: (not at[0].endswith("/debian"), at))


class Apt:
    """The machine's apt; or, with a folder of its own, one that knows other sources."""

    def __init__(
        self,
        home: Path | None = None,
        sources: Sequence[tuple[str, str, str]] = (),
        architectures: Sequence[str] = (),
    ):
        """Sources: deb or deb-src, place, suite. Their lists are fetched; if some are not to be
        had, the others serve. Architectures: if not the machine's, those of packages, of which the
        first is that of a name without one."""
        self._config: Path | None = None
        if home is None:
            return
        (home / "lists/partial").mkdir(parents=True, exist_ok=True)
        (home / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        lines = [f"{kind} {signed}{place} {suite} main\n" for kind, place, suite in sources]
        (home / "sources.list").write_text("".join(lines))
        self._config = home / "apt.conf"
        self._config.write_text(
            f'Dir::Etc::SourceList "{home}/sources.list";\n'
            'Dir::Etc::SourceParts "/dev/null";\n'
            f'Dir::State "{home}";\n'
            f'Dir::State::Lists "{home}/lists";\n'
            f'Dir::Cache "{home}/cache";\n'
            'APT::Sandbox::User "root";\n'  # who fetches is who called, and may write here
            + "".join(f'APT::Architecture "{name}";\n' for name in architectures[:1])
            + "".join(f'APT::Architectures:: "{name}";\n' for name in architectures)
        )
        with contextlib.suppress(PackageError):  # what is missing is told when it is asked for
            run(["apt-get", "update"], config=self._config)

    def record(self, package: str) -> Message | None:
        """What apt would install under this name; None if it knows none."""
        try:
            shown = run(["apt-cache", "show", "--no-all-versions", package], config=self._config)
        except PackageError:
            return None
        return Parser().parsestr(shown) if shown else None

    def download(self, packages: Sequence[str], folder: Path) -> list[Path]:
        """Fetch packages, by name or name=version, into an empty folder."""
        # Run by root, apt would hand the download to a user who cannot write there.
        own = ["apt-get", "--quiet", "-o", "APT::Sandbox::User=root"]
        try:
            run([*own, "download", *packages], folder, self._config)
        except PackageError as problem:
            raise PackageError(f"{problem}\nDo 'apt-get update' as root and try again.") from None
        return sorted(folder.glob("*.deb"))

    def source(self, package: str, folder: Path) -> Path:
        """Fetch and unpack a source package, by name=version, in a folder; where its files are."""
        run(["apt-get", "--quiet", "source", package], folder, self._config)
        name = package.partition("=")[0]
        return next(path for path in folder.glob(f"{name}-*") if path.is_dir())
