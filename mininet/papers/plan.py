# SPDX-License-Identifier: GPL-2.0-or-later
"""Which runs a figure asks for, where their results are kept, and how long they take."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shlex
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from aqmlab.scenario import parse_rate, parse_seconds
from report.runs import in_lab

from .result import Result, unpacked
from .schema import FOLDER, SCRIPTS, Case, Figure, Point, slug

ROOT = FOLDER.parent.parent
SUFFIX = ".json.gz"
TIMES = "times.json"  # s on the wall, by run; no part of results, which are the same everywhere
NEW_TIMES = ROOT / "build" / "papers" / "times"  # of runs since: collected into TIMES
INCLUDE = re.compile(r'^#include [<"](?:aqm/)?(\w+\.h)[>"]', re.M)
KERNELS = re.compile(r"^#include <(?:linux|net)/", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
UNKNOWN_S = 30.0  # guessed of a run while none was timed


@dataclass(frozen=True)
class Run:
    """One run of a figure."""

    figure: Figure
    case: Case
    point: Point
    seed: int
    folder: Path  # that holds the papers

    @property
    def stem(self) -> str:
        """What its result is called, without the key."""
        return f"{slug(self.case.name)}.{slug(self.point.label)}.{self.seed}"

    @property
    def name(self) -> str:
        """Its name among all runs."""
        return f"{self.figure.home}/{self.stem}"

    @cached_property
    def words(self) -> list[str]:
        """The script and its options."""
        return [*self.figure.words(self.case, self.point), "--seed", str(self.seed)]

    def command(self, out: str) -> list[str]:
        """What makes it, into the folder OUT."""
        return in_lab([*self.words, "--out", out], out, self.seed, self.case.modules)

    @cached_property
    def laws(self) -> dict[str, str]:
        """Digests of our modules that it uses."""
        return {module: law_digest(module) for module in sorted(modules_of(self.words))}

    @cached_property
    def key(self) -> str:
        """Changes with the scenario and with the laws: such a run is another run."""
        made_of: list[object] = [self.words, self.case.modules, self.laws, self.course]
        if self.zoom:
            made_of.append(self.zoom)
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:8]

    @property
    def course(self) -> bool:
        """Whether its queue over time is shown."""
        return self.seed == 1 and any(
            self.case.name in time.cases and self.point.label == time.point
            for time in self.figure.courses
        )

    @property
    def zoom(self) -> tuple[float, float] | None:
        """Between which seconds its law is shown in full, if it is."""
        law = self.figure.plot.law
        return law.zoom if law and self.case.name == law.case and self.seed == 1 else None

    @property
    def packets(self) -> float:
        """About so many go over the links."""
        given = dict(itertools.pairwise(self.words))
        rates = given.get("--rate") or given["--rates"]
        total = sum(map(parse_rate, rates.split(",")))
        return total * parse_seconds(given["--duration"]) / 8 / int(given.get("--mtu", 1000))

    @property
    def home(self) -> Path:
        """Where the figure's results are kept."""
        paper, _, figure = self.figure.home.partition("-")
        return self.folder / paper / "results" / figure

    @property
    def path(self) -> Path:
        """Its result."""
        return self.home / f"{self.stem}.{self.key}{SUFFIX}"

    def older(self) -> list[Path]:
        """Results of the same place in the figure that were made otherwise."""
        found = self.home.glob(f"{self.stem}.*{SUFFIX}")
        return sorted(path for path in found if path != self.path)

    def result(self) -> tuple[Result, bool] | None:
        """The result, and whether it is of the present scenario and laws; None: not run."""
        if self.path.exists():
            return unpacked(self.path.read_bytes()), True
        older = self.older()
        return (unpacked(older[-1].read_bytes()), False) if older else None


def modules_of(words: Iterable[str]) -> set[str]:
    """Our modules that a command has to do with."""
    text = list(words)
    given = dict(itertools.pairwise(text))
    qdiscs = given.get("--qdisc") or given.get("--qdiscs", "")
    found = {f"sch_{kind.split()[0]}" for kind in qdiscs.split(";")}
    found |= {f"tcp_{name.partition('_')[0]}" for name in given.get("--cc", "").split(",") if name}
    if given.get("--label", "none") != "none":
        found.add("act_rttlabel")
    return {module for module in found if module_source(module)}


@cache
def module_source(module: str) -> Path | None:
    """Where it is, if it is ours."""
    return next(ROOT.glob(f"*/{module}.c"), None)


@cache
def law_digest(module: str) -> str:
    """Of the laws that a module includes from include/aqm: their code, not their comments.

    A law includes nothing of the kernel's (but in fixed.h, the numbers). What does is a shell
    around laws: `make verify` notices if that, or the module itself, comes to behave otherwise.
    """
    source = module_source(module)
    assert source
    waiting, seen = [source], {source}
    total = hashlib.sha256()
    while waiting:
        path = waiting.pop()
        text = path.read_text()
        if path != source and (path.name == "fixed.h" or not KERNELS.search(text)):
            total.update(" ".join(COMMENT.sub(" ", text).split()).encode())
        for name in sorted(INCLUDE.findall(text)):
            header = ROOT / "include/aqm" / name
            if header.exists() and header not in seen:
                seen.add(header)
                waiting.append(header)
    return total.hexdigest()[:12]


@cache
def programs_digest() -> str:
    """Of the lab and of the experiments' programs: with another, flows meet another chance."""
    files = [
        *(path for path in sorted((ROOT / "lab").iterdir()) if path.is_file()),
        *sorted((ROOT / "mininet/aqmlab").glob("*.py")),
        *(ROOT / "mininet" / script for script, _ in SCRIPTS.values()),
    ]
    total = hashlib.sha256()
    for path in files:
        if path.suffix != ".md":
            total.update(path.read_bytes())
    return total.hexdigest()[:12]


def runs_of(
    figure: Figure, seeds: int | None = None, *, quick: bool = False, folder: Path = FOLDER
) -> Iterator[Run]:
    """The figure's runs: with SEEDS no more than so many of those it asks for."""
    for case in figure.case:
        if quick and case.name not in figure.quick.cases:
            continue
        for point in figure.points_of(case):
            if quick and figure.quick.points and point.label not in figure.quick.points:
                continue
            wanted = case.seeds or figure.seeds
            for seed in range(1, min(wanted, seeds or wanted, 1 if quick else wanted) + 1):
                yield Run(figure, case, point, seed, folder)


def shell(command: Iterable[str]) -> str:
    """A command as one types it."""
    return shlex.join(command)


class Times:
    """How long runs took."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.file = folder / TIMES
        self.seconds: dict[str, float] = {}
        if self.file.exists():
            self.seconds = json.loads(self.file.read_text())
        for note in NEW_TIMES.rglob("*.s") if folder == FOLDER else ():
            self.seconds[str(note.relative_to(NEW_TIMES).with_suffix(""))] = float(note.read_text())

    def guess(self, run: Run, among: Iterable[Run] = ()) -> float:
        """Seconds that RUN will take: as it did; as with other seeds; as the packets of AMONG."""
        if run.name in self.seconds:
            return self.seconds[run.name]
        stem = run.name.rpartition(".")[0]
        kin = [took for name, took in self.seconds.items() if name.rpartition(".")[0] == stem]
        if kin:
            return statistics.fmean(kin)
        timed = [one for one in among if one.name in self.seconds]
        if not timed:
            return UNKNOWN_S
        took = sum(self.seconds[one.name] for one in timed)
        return took * run.packets / sum(one.packets for one in timed)

    def save(self) -> None:
        """Put what was noted since into the file."""
        text = json.dumps({name: self.seconds[name] for name in sorted(self.seconds)}, indent=0)
        if self.seconds:
            self.file.write_text(text + "\n")


def note_time(run: Run, seconds: float) -> None:
    """Remember how long RUN took, if it is one of this repository's."""
    if run.folder != FOLDER:
        return
    note = NEW_TIMES / f"{run.name}.s"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"{seconds:.1f}\n")


def by_path(runs: Iterable[Run]) -> Mapping[str, Run]:
    """Runs by where their results are, from the top of the repository if they are within."""
    return {relative(run.path): run for run in runs}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
