# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures, words and page from made-up runs: they say what the numbers say, and nothing else."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import demo
from report.figures import PALETTE, against_flows, by_case, over_time, standalone, svg
from report.findings import claims, settling, summary
from report.measures import MEASURES, OVERFLOW, QUEUE, Grid, console_table
from report.runs import NoResultError, Result, read_result
from report.words import joined, span

SOURCES = Path(demo.__file__).parent
FLOWS = demo.SETTING.flows
# As REM's authors had it: mean queue (packets), goodput (Mb/s), overflow drops of 1000 packets.
PAPER = {
    "DropTail": ((40, 60, 85, 117), (57, 58, 60, 60), (2, 20, 60, 120)),
    "RED": ((6, 20, 36, 65), (51, 54, 57, 59), (3, 30, 80, 140)),
    "PIE": ((20, 22, 22, 20), (59, 59, 59, 59), (0, 0, 0, 0)),
    "fq_codel": ((70, 68, 45, 30), (55, 59, 59, 59), (0, 12, 32, 150)),
    "REM": ((22, 20, 21, 19), (58, 59, 59, 59), (2, 21, 63, 125)),
}


def run_json(queue: float, goodput: float, overflow: int, **changed: object) -> dict[str, object]:
    """As dumbbell.py writes it, less what nobody reads."""
    metrics = {
        "mean_queue_pkts": queue,
        "p99_queue_pkts": round(queue) + 1,
        "goodput_mbps": goodput,
        "arrivals": 1000,
        "drop_rate": 0.1,
        "overflow_drops": overflow,
        "fidelity": {"ok": True, "reasons": []},
        "flows": [],
        **changed,
    }
    return {"metrics": metrics, "provenance": {"kernel": "6.12.1"}}


def write_run(folder: Path, run: dict[str, object]) -> None:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run))
    with gzip.open(folder / "series.csv.gz", "wt") as rows:
        rows.write("time_s,series,link,flow,value\n")
        for tick in range(200):
            rows.write(f"{tick / 100:.3f},queue_pkts,0,,{tick % 100}\n")
            rows.write(f"{tick / 100:.3f},probability,0,,0.5\n")
        rows.write("1.000,goodput_mbps,,0,12.5\n")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The top of a repository, as the demo sees it."""
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def results(root: Path) -> demo.Results:
    """The paper's runs, written to files and read back."""
    found = {}
    for run in demo.plan():
        numbers = [column[FLOWS.index(run.flows)] for column in PAPER[run.queue]]
        write_run(root / run.folder, run_json(*numbers))
        found[run.queue, run.flows] = read_result(root / run.folder)
    return found


@pytest.fixture
def grid(results: demo.Results) -> Grid:
    return demo.collect(results)


def changed(grid: Grid, queue: str, key: str, values: tuple[float, ...]) -> Grid:
    """GRID, with other values of one metric of one queue."""
    pairs = zip(grid[queue].items(), values, strict=True)
    other = {flows: {**metrics, key: value} for (flows, metrics), value in pairs}
    return {**grid, queue: other}


def verdicts(grid: Grid) -> list[str]:
    return [claim.verdict for claim in claims(grid, demo.SETTING)]


class TestRuns:
    def test_what_is_read_is_what_was_written(self, results: demo.Results) -> None:
        result = results["RED", 80]
        assert result.kernel == "6.12.1"
        assert result.metrics["mean_queue_pkts"] == 20
        assert OVERFLOW.value(result.metrics) == pytest.approx(3)
        assert result.length[:3].tolist() == [0, 1, 2]
        assert result.time[-1] == pytest.approx(1.99)

    def test_bins(self, results: demo.Results) -> None:
        bins = results["RED", 80].binned(0.5)
        assert bins.middle == pytest.approx([0.25, 0.75, 1.25, 1.75])
        assert bins.mean == pytest.approx([24.5, 74.5, 24.5, 74.5])
        assert bins.low == pytest.approx([4.9, 54.9, 4.9, 54.9])
        assert bins.high == pytest.approx([44.1, 94.1, 44.1, 94.1])

    def test_nothing_is_shown_of_a_run_that_is_not_to_be_trusted(self, tmp_path: Path) -> None:
        with pytest.raises(NoResultError, match="no such run"):
            read_result(tmp_path / "none")
        verdict = {"ok": False, "reasons": ["offloads were on"]}
        write_run(tmp_path / "bad", run_json(1, 1, 1, fidelity=verdict))
        with pytest.raises(NoResultError, match="offloads were on"):
            read_result(tmp_path / "bad")

    def test_the_command_can_be_typed(self) -> None:
        for run in demo.plan():
            assert shlex.split(run.shell) == run.command

    def test_every_run_has_a_folder_of_its_own(self) -> None:
        runs = demo.plan()
        assert len({run.folder for run in runs}) == len(runs) == len(demo.QUEUES) * len(FLOWS)


class TestFindings:
    def test_the_paper_agrees_with_itself(self, grid: Grid) -> None:
        assert verdicts(grid) == ["holds"] * 6

    def test_a_missed_target_is_told(self, grid: Grid) -> None:
        assert "is on its target each time" in summary(grid, demo.SETTING)
        missed = changed(grid, "REM", "mean_queue_pkts", (31, 26, 33, 20))
        assert "misses its target at 20 flows with 31 and at 160 flows with 33 (" in summary(
            missed, demo.SETTING
        )
        assert verdicts(missed)[0] == "holds only at 80 and 320 flows"

    def test_courses(self, grid: Grid) -> None:
        told = summary(grid, demo.SETTING)
        assert "grows from 40 to 117 under DropTail" in told
        assert "stays between 20 and 22 under PIE" in told
        assert "falls from 70 to 30 under fq_codel" in told
        back = changed(grid, "DropTail", "mean_queue_pkts", (40, 90, 60, 100))
        assert "moves between 40 and 100 under DropTail" in summary(back, demo.SETTING)
        assert verdicts(back)[1] == "does not hold"

    def test_goodput_and_overflow_are_compared(self, grid: Grid) -> None:
        told = summary(grid, demo.SETTING).replace("\N{NO-BREAK SPACE}", " ")
        assert "+1.8 %, +1.7 %, -1.7 % and -1.7 % at 20, 80, 160 and 320 flows" in told
        assert "for want of room, at most 12.50 % and 12.00 %" in told
        none = changed(grid, "REM", "overflow_drops", (0, 0, 0, 0))
        assert verdicts(none)[4:] == ["does not hold", "holds"]
        low = changed(grid, "REM", "goodput_mbps", (50, 50, 50, 50))
        assert verdicts(low)[3] == "holds only at 160 and 320 flows"

    @pytest.mark.parametrize(
        ("lengths", "words"),
        [
            ([100, 110, 90, 25, 40, 20], "takes 4 s to bring the queue to its target; the first 5"),
            ([100, 110, 90, 80, 40, 20], "do not count, too few for REM here."),
            ([100, 110, 90, 80, 70, 60], "never brings the queue down to its target"),
        ],
    )
    def test_settling(self, lengths: list[float], words: str) -> None:
        time = np.arange(0.5, len(lengths), dtype=np.float64)
        result = Result("6.12.1", {}, time, np.array(lengths, dtype=np.float64))
        assert words in settling(result, demo.SETTING, 5)

    def test_words(self) -> None:
        assert [joined(range(n)) for n in (1, 2, 3)] == ["0", "0 and 1", "0, 1 and 2"]
        assert span([0.2, 3.14, 1], 1) == "0.2 to 3.1"
        assert span([1.01, 1.02], 1) == "1.0"


class TestFigures:
    def test_a_row_per_case_shows_mean_interval_and_runs(self) -> None:
        figure = by_case("share", {"ours": ([0.7, 0.9], 0.8, 0.2), "other": ([0.5, 0.6], 0.5, 0.1)})
        (axes,) = figure.axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["ours", "other"]
        runs, mean, *_ = axes.lines
        assert np.array_equal(runs.get_xydata(), [[0.7, 0], [0.9, 0]])
        assert np.array_equal(mean.get_xydata(), [[0.8, 0]])
        interval = axes.collections[0].get_paths()[0].vertices
        assert np.allclose(interval, [[0.6, 0], [1.0, 0]])
        assert mean.get_color() != axes.lines[-1].get_color()

    @pytest.fixture
    def drawings(self, grid: Grid, results: demo.Results) -> list[str]:
        return [drawing.svg for drawing in demo.draw_figures(grid, results)]

    def test_they_are_the_same_each_time(
        self, grid: Grid, results: demo.Results, drawings: list[str]
    ) -> None:
        assert [drawing.svg for drawing in demo.draw_figures(grid, results)] == drawings

    def test_colours_follow_the_scheme(self, drawings: list[str]) -> None:
        for drawing in drawings:
            assert set(re.findall(r"#[0-9a-f]{6}\b", drawing)) == set(
                re.findall(r"(?<=var\(--)\w+,(#[0-9a-f]{6})(?=\))", drawing)
            )
        assert not any("prefers-color-scheme" in drawing for drawing in drawings)
        assert standalone(drawings[0]).count("prefers-color-scheme") == 1

    def test_they_are_xml_and_share_one_page(self, drawings: list[str]) -> None:
        """What has an id in two figures is the same thing in both."""
        definitions: dict[str, str] = {}
        for element in itertools.chain.from_iterable(
            ET.fromstring(drawing).iter() for drawing in drawings
        ):
            if name := element.get("id"):
                element.tail = None
                text = ET.tostring(element, encoding="unicode")
                assert definitions.setdefault(name, text) == text

    def test_the_description_is_quoted(self) -> None:
        figure = against_flows("queue", [1, 2], {"REM": [3, 4]})
        assert ET.fromstring(svg(figure, 'a "b" <c>')).get("aria-label") == 'a "b" <c>'

    def test_colours_can_be_seen(self) -> None:
        """Contrast of 3:1 with the paper, as WCAG 2 asks of graphics; of text, 4.5:1."""

        def luminance(colour: str) -> float:
            parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        for scheme in (0, 1):
            paper = luminance(PALETTE["paper"][scheme])
            for name, pair in PALETTE.items():
                low, high = sorted((paper, luminance(pair[scheme])))
                wanted = {"paper": 1.0, "rule": 1.2, "ink": 7.0, "grey": 4.5}.get(name, 3.0)
                assert (high + 0.05) / (low + 0.05) >= wanted, (name, scheme)

    def test_one_panel(self, results: demo.Results) -> None:
        series = {"REM": results["REM", 20].binned(1)}
        figure = over_time("queue", series, warmup_s=1, top=120, reference=20)
        assert svg(figure, "one").count("REM") == 1


class Reader(HTMLParser):
    """Sees that tags close, and collects what a page would fetch."""

    VOID = frozenset({"meta", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.fetched: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class TestPage:
    @pytest.fixture
    def page(self, grid: Grid, results: demo.Results) -> str:
        return demo.write_page(grid, demo.plan(), results).read_text()

    def test_it_stands_alone(self, page: str) -> None:
        reader = Reader()
        reader.feed(page)
        assert not reader.open
        assert "script" not in reader.tags
        assert reader.fetched[0] == "data:,"
        # Within figures, parts of the same page.
        assert all(link and link.startswith("#") for link in reader.fetched[1:])
        assert "url(http" not in page
        assert "@import" not in page

    def test_all_is_there(self, page: str, grid: Grid) -> None:
        for measure, queue in itertools.product(MEASURES, grid):
            cells = "".join(f"<td>{text}</td>" for text in measure.row(grid, queue, FLOWS))
            assert cells in page
        assert page.count("<svg") == 5
        assert page.count("lab/run --seed") == len(demo.plan())
        assert summary(grid, demo.SETTING).replace("'", "&#39;") in page

    def test_it_is_the_same_each_time(self, page: str, grid: Grid, results: demo.Results) -> None:
        assert demo.write_page(grid, demo.plan(), results).read_text() == page


def test_the_table_fits_a_terminal(grid: Grid) -> None:
    text = StringIO()
    partly = {**grid, "PIE": {20: grid["PIE"][20]}}
    Console(file=text, width=80).print(console_table(partly, FLOWS))
    rows = [line.split() for line in text.getvalue().splitlines()]
    assert ["REM", *QUEUE.row(grid, "REM", FLOWS)] in rows
    assert ["PIE", "20.0", "-", "-", "-"] in rows
    assert max(map(len, text.getvalue().splitlines())) <= 80


class TestCommand:
    """demo.py from end to end, with a lab that only pretends."""

    @pytest.fixture
    def tree(self, tmp_path: Path, results: demo.Results) -> Path:
        """A repository whose lab/run does what the test says; the results lie in made/."""
        shutil.copytree(SOURCES / "report", tmp_path / "mininet/report")
        shutil.copy(SOURCES / "demo.py", tmp_path / "mininet")
        (tmp_path / demo.OUT / "runs").rename(tmp_path / "made")
        (tmp_path / "lab").mkdir()
        return tmp_path

    def lab(self, tree: Path, does: str) -> None:
        """Have lab/run do this, a shell's words, in which $4 is the folder of the run."""
        (tree / "lab/run").write_text(f"#!/bin/sh\n{does}\n")
        (tree / "lab/run").chmod(0o755)

    def start(self, tree: Path, *options: str) -> subprocess.Popen[str]:
        heeding = ("env", "--default-signal=INT")  # a shell's background ignores it
        return subprocess.Popen(
            [*heeding, sys.executable, tree / "mininet/demo.py", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_runs_table_page_figure(self, tree: Path) -> None:
        self.lab(tree, 'cp -r "made/${4##*/}" "$4"')
        figure = tree / "figure.svg"
        process = self.start(tree, "--json", "--figure", str(figure))
        told, progress = process.communicate()
        assert process.returncode == 0, progress
        assert "20/20" in progress
        numbers = json.loads(told.splitlines()[-1])
        assert numbers["REM"]["320"]["mean_queue_pkts"] == 19
        assert (tree / demo.OUT / "index.html").exists()
        assert ET.parse(figure).getroot().tag.endswith("svg")

    def test_a_run_that_fails_is_named_with_its_reason(self, tree: Path) -> None:
        bad = 'case $4 in */red-80) echo "offloads [were] on" >&2; exit 1;; esac; '
        self.lab(tree, bad + 'cp -r "made/${4##*/}" "$4"')
        process = self.start(tree)
        told, _ = process.communicate()
        assert process.returncode == 1
        assert "Failed: RED with 80 flows:\noffloads [were] on\n" in told
        assert not (tree / demo.OUT / "index.html").exists()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_all(self, tree: Path, number: signal.Signals) -> None:
        self.lab(tree, "echo $$ >> started; exec sleep 60")
        process = self.start(tree)
        started = tree / "started"
        cores = min(len(os.sched_getaffinity(0)), len(demo.plan()))
        while not started.exists() or len(started.read_text().splitlines()) < cores:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, told = process.communicate(timeout=20)
        assert process.returncode == 1
        assert told.endswith("stopped\n")
        for pid in started.read_text().split():
            assert not Path("/proc", pid).exists()

    def test_redrawing_nothing(self, tree: Path) -> None:
        process = self.start(tree, "--redraw")
        told, _ = process.communicate()
        assert process.returncode == 1
        assert "there is no such run yet" in told
