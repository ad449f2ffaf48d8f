#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetch Debian's stock kernels and their headers into the cache, never into the system.

    make KDIR=$(tests/stock/kernels.py fetch 6.1)

prints the folder to build modules against; with --image, the kernel to boot. The packages are
those that the meta packages (linux-headers-amd64, linux-image-6.12-amd64, ...) point to, fetched
with apt-get and unpacked, once per version, in ${XDG_CACHE_HOME:-~/.cache}/aqmkit/stock.

Of 6.1-686, Debian's last kernel for 32-bit processors, there are headers only; their tools are
this machine's, as the compiler is. What is in the cache serves until fetch is asked for more.
"""

import argparse
import functools
import re
import shutil
import sys
import tempfile
from email.message import Message
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))

from lablib import cache_dir, locked
from packages import Apt, PackageError, mirrors, run

SERIES = ("6.1", "6.12")
SERIES_32 = "6.1-686"
ARCH = "amd64"
ARCH_32 = "i386"
CACHE = cache_dir() / "stock"

# What is unpacked together: the meta package's name, and which of its dependencies are followed.
PARTS = {"headers": r"linux-(headers|kbuild)-", "image": r"linux-image-"}


@functools.cache
def _apt(flavour: str) -> Apt:
    """Return who knows the packages of kernels of this flavour: amd64 or 686."""
    if flavour == ARCH:
        return Apt()
    sources = [("deb", *mirror) for mirror in mirrors()]
    return Apt(cache_dir() / "apt" / ARCH_32, sources, architectures=(ARCH_32, ARCH))


def headers(series: str) -> Path:
    """Return the folder (KDIR) to build modules against for the stock kernel of a series."""
    old = _newest(series, "headers") if series == SERIES_32 else None
    return _sources(old or _fetch(series, "headers"))


def _sources(folder: Path) -> Path:
    return folder / "usr/src" / f"linux-headers-{folder.parent.name}"


def image(series: str) -> Path:
    """Return the stock kernel of a series; its modules are in ../lib/modules."""
    return _kernel(_fetch(series, "image"))


def _kernel(folder: Path) -> Path:
    return folder / "boot" / f"vmlinuz-{folder.parent.name}"


def _fetch(series: str, part: str) -> Path:
    """Return the folder with the unpacked packages of a part, as new as apt's lists know it."""
    flavour = _flavour(series)
    with locked(CACHE / "lock", "kernels.py: waiting for another one to finish"):
        try:
            apt = _apt(flavour)
            release, packages = _resolve(apt, series, part)
            folder = CACHE / release / part
            # Debian's release names stay the same over small updates: compare versions.
            stamp = folder / "packages"
            if not stamp.exists() or stamp.read_text() != "\n".join(packages):
                _unpack(apt, packages, folder, release)
        except PackageError as problem:
            if not (old := _newest(series, part)):
                raise
            print(f"{problem} Going on with {old.parent.name} of the cache.", file=sys.stderr)
            return old
        return folder


def _flavour(series: str) -> str:
    return series.partition("-")[2] or ARCH


def _resolve(apt: Apt, series: str, part: str) -> tuple[str, list[str]]:
    """Return the release that the meta package points to, and its packages as name=version."""
    flavour = _flavour(series)
    series = series.partition("-")[0]
    for meta in (f"linux-{part}-{series}-{flavour}", f"linux-{part}-{flavour}"):
        record = apt.record(meta)
        if record and record["Version"].startswith(f"{series}."):
            break
    else:
        raise PackageError(
            f"apt knows no linux-{part} package for {series}: on Debian 12 with its security "
            "updates, run 'sudo apt-get update' and try again."
        )
    releases = _depends(record, f"linux-{part}-")
    todo, versions = list(releases), dict[str, str]()
    while todo:
        name = todo.pop()
        if name.startswith("linux-kbuild-") and flavour != ARCH:
            name += f":{ARCH}"  # programs that run here
        if name not in versions and (found := apt.record(name)):
            versions[name] = found["Version"]
            todo += _depends(found, PARTS[part])
    packages = sorted(f"{name}={version}" for name, version in versions.items())
    return releases[0].removeprefix(f"linux-{part}-"), packages


def _depends(record: Message, pattern: str) -> list[str]:
    """Return the names of dependencies that match; of alternatives, the first."""
    names = [clause.split()[0] for clause in record.get("Depends", "").split(",") if clause.strip()]
    return [name for name in names if re.match(pattern, name)]


def _unpack(apt: Apt, packages: list[str], folder: Path, release: str) -> None:
    """Download packages and put their unpacked files in place of folder, all or nothing."""
    print(f"fetching {', '.join(packages)}", file=sys.stderr)
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="new-") as temporary:
        debs, files = Path(temporary, "debs"), Path(temporary, "files")
        debs.mkdir()
        for deb in apt.download(packages, debs):
            run(["dpkg", "--extract", deb, files])
        if folder.name == "headers":
            _make_relative(files / "usr/src" / f"linux-headers-{release}" / "Makefile")
        else:
            run(["depmod", "--basedir", files, release])
        (files / "packages").write_text("\n".join(packages))
        if folder.exists():
            shutil.rmtree(folder)
        files.rename(folder)


def _make_relative(makefile: Path) -> None:
    """Let unpacked headers build where they are: Debian's Makefile includes an absolute path."""
    include = re.compile(r"^include /usr/src/", re.MULTILINE)
    here = "include $(dir $(realpath $(lastword $(MAKEFILE_LIST))))../"
    text, count = include.subn(lambda _: here, makefile.read_text())
    if count != 1:
        raise PackageError(f"{makefile} is not laid out as known: aqmkit must learn this package.")
    makefile.write_text(text)


def _newest(series: str, part: str) -> Path | None:
    """Return the newest release of a series in the cache that has the part."""
    found = [path.parent for path in CACHE.glob(
        f"{series.partition('-')[0]}.*-{_flavour(series)}/{part}/packages"
    )]
    return max(found, default=None,
               key=lambda path: [int(digits) for digits in re.findall(r"\d+", path.parent.name)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch Debian's stock kernels into the cache.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    fetch = commands.add_parser("fetch", help="fetch what is missing and print where it is")
    fetch.add_argument("series", choices=(*SERIES, SERIES_32))
    fetch.add_argument("--image", action="store_true", help="the kernel to boot, not the headers")
    arguments = parser.parse_args()
    try:
        if arguments.image and arguments.series == SERIES_32:
            raise PackageError(f"Of {SERIES_32} there are headers only.")
        part = "image" if arguments.image else "headers"
        folder = _fetch(arguments.series, part)
        print(_kernel(folder) if arguments.image else _sources(folder))
    except PackageError as problem:
        sys.exit(f"kernels.py: {problem}")


if __name__ == "__main__":
    main()
