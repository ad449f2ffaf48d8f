# SPDX-License-Identifier: GPL-2.0-or-later
"""The documentation: its commands do what it says, its links lead somewhere, it makes a site."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^```(\S*) *(.*)\n((?:(?!```).*\n)*)```$", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# A new law's own tree need not build all the others.
OTHERS = ("sch_fifa", "sch_lred", "sch_xqm", "baselines", "tcp_pert")
TIMEOUT_S = 900  # of a hang


@dataclass(frozen=True)
class Block:
    """Commands of a page, and who runs them."""

    page: Path
    runner: str
    commands: str


def blocks() -> list[Block]:
    return [
        Block(page, runner, commands)
        for page in PAGES
        for language, runner, commands in FENCE.findall(page.read_text())
        if language == "sh"
    ]


BLOCKS = blocks()


def together(runner: str, page: str) -> str:
    """The commands of a page that one RUNNER runs; each is shown before what it prints."""
    return "\n".join(
        block.commands for block in BLOCKS if (block.runner, block.page.name) == (runner, page)
    )


def run(*words: str | Path, folder: Path = ROOT) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, f"status {done.returncode}:\n{done.stdout}"
    return done.stdout


def status() -> str:
    return run("git", "status", "--porcelain") + run("git", "diff", "HEAD")


def test_every_command_is_run() -> None:
    """And runners are not named in vain."""
    assert len(BLOCKS) > 10
    known = {("lab", "router.md"), ("tree", "new-law.md")}
    for block in BLOCKS:
        runner, _, name = block.runner.partition(" ")
        if runner == "by":
            assert (ROOT / name).is_file() and name.startswith("tests/"), block
        else:
            assert runner == "host" or (runner, block.page.name) in known, block


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.runner == "host"],
    ids=lambda block: block.page.name,
)
def test_on_this_machine(block: Block) -> None:
    """The reference is as docs/reference.py writes it, too."""
    before = status()
    run("sh", "-ex", "-c", block.commands)
    assert status() == before


def test_router_page() -> None:
    script = f"set -ex\n. tests/docs/router.sh\n{together('lab', 'router.md')}"
    said = run(ROOT / "lab/run", "--", "sh", "-c", script)
    pings = re.findall(r"rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/", said)
    (idle, _), (_, modem), (_, here) = [(float(least), float(mean)) for least, mean in pings]
    assert 30 <= idle < 32
    assert modem > 30 + 60, "the queue was to be in the modem"
    assert here < 30 + 3 * 13, "the queue was to be here, and short"
    shown = re.search(r"queue +(\d+) packets.*\n.*\n.*sent +([\d.]+) Mb/s", said)
    assert shown and 1 <= int(shown[1]) <= 60 and float(shown[2]) > 16
    assert re.search(r"node_qdisc_backlog\{device=\"eth0\",kind=\"rem\"", said)
    assert "tc qdisc replace dev eth0 root rem limit" in said
    shares = re.findall(r"share ([\d.]+)pps throughput ([\d.]+)pps", said)
    assert len(shares) >= 4


def test_new_law_page(tmp_path: Path) -> None:
    tree = tmp_path / "aqmkit"
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard").split("\n"):
        if name and Path(name).parts[0] not in OTHERS:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
            (tree / name).chmod((ROOT / name).stat().st_mode)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    said = run("sh", "-ex", "-c", together("tree", "new-law.md"), folder=tree)
    assert "farthest from the paper's p" in said
    assert "Error: sch_blue: d1 must be 0.000001 to 1." in said
    assert "limit 50p d1 0.01 d2 0.002 freeze 10ms ecn" in said
    queues = {
        name: float(mean)
        for name, mean in re.findall(r"^\W*(DropTail|BLUE|REM)\W+([\d.]+)", said, re.MULTILINE)
    }
    assert queues.keys() == {"DropTail", "BLUE", "REM"}
    assert queues["BLUE"] < 0.8 * queues["DropTail"]
    assert queues["REM"] == pytest.approx(20, abs=6)
    assert (tree / "out/blue.svg").read_text().startswith("<")


MARKDOWN = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md").split()


@pytest.mark.parametrize("name", MARKDOWN)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    prose = CODE.sub("", page.read_text())
    missing = [link for link in LINK.findall(prose) if not (page.parent / link).exists()]
    assert not missing


def test_it_makes_a_site(tmp_path: Path) -> None:
    sphinx = Path(sys.executable).with_name("sphinx-build")
    run(sphinx, "-qW", "-c", "docs", "-d", tmp_path / "doctrees", ".", tmp_path / "site")
    for page in PAGES:
        assert (tmp_path / "site" / page.relative_to(ROOT).with_suffix(".html")).is_file()
