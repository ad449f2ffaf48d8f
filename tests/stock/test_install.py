# SPDX-License-Identifier: GPL-2.0-or-later
"""make install and make uninstall: what they put where, what they take away, what they refuse."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import kernels
import modules
from modules import Built

# Of a system that is there already; nothing of it may go.
OF_OTHERS = (
    "etc/bash_completion.d/git-prompt",
    "lib/modules/{kernel}/kernel/net/sched/sch_pie.ko",
    "usr/bin/sort",
    "usr/share/man/man8/tc-pie.8.gz",
)


def said(*words: str) -> str:
    """What make prints, though it fails."""
    command = ["make", "--no-print-directory", "-C", str(modules.REPOSITORY), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode, f"{' '.join(words)} was not refused:\n{done.stdout}"
    return done.stdout


def listing(folder: Path) -> dict[str, bytes]:
    """All files and folders below, with what is in them."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@dataclass(frozen=True)
class Stage:
    """A folder to install to, and what make is told of it."""

    root: Path
    kernel: str
    settings: tuple[str, ...]

    def make(self, target: str, *more: str) -> str:
        return modules.make(target, *self.settings, *more)

    def refused(self, target: str, *more: str) -> str:
        """What is said when make will not; nothing may change."""
        before = listing(self.root)
        words = said(target, *self.settings, *more)
        assert listing(self.root) == before
        return words

    def modules(self) -> list[Path]:
        return sorted(self.root.glob("lib/modules/*/updates/aqmkit/*.ko"))


@pytest.fixture
def stage(built: Built, plugins: Path, tmp_path: Path) -> Stage:
    """Everything is built, and installed nowhere."""
    headers = kernels.headers(built.series)
    out, root = tmp_path / "out", tmp_path / "root"
    out.mkdir()
    root.mkdir()
    for file in (*built.folder.glob("*.ko"), *plugins.glob("*.so")):
        shutil.copy(file, out)
    settings = (f"KDIR={headers}", f"OUT={out}", f"DESTDIR={root}")
    return Stage(root, headers.name.removeprefix("linux-headers-"), settings)


def test_comes_and_goes(stage: Stage) -> None:
    for name in OF_OTHERS:
        file = stage.root / name.format(kernel=stage.kernel)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("not ours")
    before = listing(stage.root)

    words = stage.make("install")
    installed = listing(stage.root)
    assert before.items() < installed.items()
    assert f"{len(stage.modules())} modules for Linux {stage.kernel}, not signed" in words
    for folder in (f"lib/modules/{stage.kernel}/updates/aqmkit", "usr/share/man", "usr/bin"):
        assert f"{stage.root}/{folder}\n" in words

    assert stage.make("install") == words
    assert listing(stage.root) == installed

    assert "removed" in stage.make("uninstall")
    assert listing(stage.root) == before
    stage.make("uninstall")
    assert listing(stage.root) == before


def test_everything_is_installed(stage: Stage) -> None:
    stage.make("install")
    found = {path.rpartition("/")[2] for path in listing(stage.root)}
    repository = modules.REPOSITORY
    for pattern in ("tc-patches/*.8", "tcp_pert/*.7", "mininet/*.1", "tc-patches/completion/*"):
        assert {path.name for path in repository.glob(pattern)} <= found
    assert {f"{path.stem}.so" for path in repository.glob("tc-patches/[qm]_*.c")} <= found
    for kbuild in repository.glob("*/Kbuild"):
        assert {f"{name}.ko" for name in re.findall(r"(\w+)\.o", kbuild.read_text())} <= found
    for name in ("aqm-top", "aqm-tune"):
        words: list[str | Path] = [sys.executable, stage.root / "usr/bin" / name, "--help"]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        assert f"usage: {name}" in said


def test_nothing_is_left_of_an_empty_place(stage: Stage) -> None:
    stage.make("install")
    stage.make("install", "PREFIX=/opt/aqmkit")
    stage.make("uninstall")
    stage.make("uninstall", "PREFIX=/opt/aqmkit")
    assert listing(stage.root) == {}


def test_prefix(stage: Stage) -> None:
    words = stage.make("install", "PREFIX=/opt/aqmkit")
    assert {path.name for path in stage.root.iterdir()} == {"lib", "opt"}
    folder = re.search(r"TC_LIB_DIR=(\S+)", words)
    assert folder
    assert (stage.root / folder[1].lstrip("/") / "q_rem.so").is_file()


def test_plugins_are_where_tc_looks(stage: Stage) -> None:
    """There are those of tc's own that are plug-ins, too."""
    stage.make("install")
    (plugin,) = stage.root.rglob("q_rem.so")
    assert (Path("/") / plugin.relative_to(stage.root)).with_name("m_xt.so").exists()


def test_kernel_finds_modules(stage: Stage) -> None:
    stage.make("install")
    (stage.root / f"lib/modules/{stage.kernel}/modules.order").touch()
    (stage.root / f"lib/modules/{stage.kernel}/modules.builtin").touch()
    subprocess.run(["/sbin/depmod", "-b", stage.root, stage.kernel], check=True)
    for asked, name in {
        "net-sch-rem": "sch_rem",
        "net-act-rttlabel": "act_rttlabel",
        "tcp_pert_pi": "tcp_pert",
    }.items():
        done = subprocess.run(
            ["/sbin/modprobe", "-d", stage.root, "-S", stage.kernel, "-R", asked],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.stdout.split() == [name], done.stderr


def test_modules_are_signed(stage: Stage, tmp_path: Path) -> None:
    key, certificate = tmp_path / "mok.key", tmp_path / "mok.pub"
    subprocess.run(
        ["openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-subj", "/CN=aqmkit test/", "-outform", "DER", "-out", certificate, "-keyout", key],
        check=True, capture_output=True,
    )  # fmt: skip
    words = stage.make("install", f"SIGN_KEY={key}")
    assert f"signed with {key}" in words
    for module in stage.modules():
        assert module.read_bytes().endswith(b"~Module signature appended~\n")
        signer = subprocess.run(
            ["/sbin/modinfo", "-F", "signer", module], capture_output=True, text=True
        )
        assert signer.stdout.strip() == "aqmkit test"
    certificate.unlink()
    assert "are needed" in stage.refused("install", f"SIGN_KEY={key}")


def test_refuses_what_was_not_built(stage: Stage, tmp_path: Path) -> None:
    assert "do make first" in stage.refused("install-modules", f"OUT={tmp_path / 'no'}")
    assert "do make first" in stage.refused("install-tools", f"OUT={tmp_path / 'no'}")


def test_refuses_modules_of_another_kernel(stage: Stage) -> None:
    words = stage.refused("install", "KVER=6.1.0-1-other")
    assert f"are for Linux {stage.kernel}, not for 6.1.0-1-other" in words


def test_refuses_without_headers() -> None:
    words = said("modules", "KVER=6.1.0-1-none")
    assert "No kernel headers in /lib/modules/6.1.0-1-none/build" in words
    assert "linux-headers-6.1.0-1-none" in words


@pytest.mark.parametrize("release", ["5.15.0-1-amd64", "7.3.0-rc1", "10.0.1"])
def test_refuses_untested_kernels(release: str, tmp_path: Path) -> None:
    (tmp_path / "include/generated").mkdir(parents=True)
    said_there = f'#define UTS_RELEASE "{release}"\n'
    (tmp_path / "include/generated/utsrelease.h").write_text(said_there)
    settings = (f"KDIR={tmp_path}", f"OUT={tmp_path / 'out'}")
    sentence = f"Linux {release} is not among those that aqmkit is tested with, 6.1 to 7.2"
    assert sentence in said("modules", *settings)
    assert not (tmp_path / "out").exists()
    assert sentence not in said("modules", *settings, "UNTESTED=1")  # what make then lacks is there
