# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' figures as data: read strictly, planned, judged, verified and shown."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dumbbell
import multihop
from conftest import FIGURE, figure, keep, keep_all, result, run_folder, write_figure
from models.lred import pi_star
from papers import plan, verify
from papers.judge import Results, judge
from papers.measured import (
    found_metric,
    interval,
    known_metric,
    measure_of,
    pert_equilibrium_ms,
)
from papers.plan import ROOT, Run, Times, law_digest, modules_of, runs_of
from papers.result import Result, from_folder, unpacked
from papers.schema import FOLDER, Figure, FigureError, load_figure, load_figures, load_rows
from report.papers import write_report

FIGURES = load_figures()
SECONDS = range(1, 13)  # of flent's file
SCRIPTS = {"mininet/dumbbell.py": dumbbell, "mininet/multihop.py": multihop}


# The figures of this repository


@pytest.mark.parametrize("name", FIGURES)
def test_every_command_is_one_that_its_script_takes(name: str) -> None:
    for run in runs_of(FIGURES[name], 1):
        script, *options = run.words
        SCRIPTS[script].arguments([*options, "--out", "out/x"])


def test_quick_has_a_run_of_every_figure() -> None:
    for one in FIGURES.values():
        runs = list(runs_of(one, quick=True))
        assert bool(runs) == bool(one.case)
        assert {run.path for run in runs} <= {run.path for run in runs_of(one)}


def test_results_have_names_of_their_own() -> None:
    paths = [run.path for one in FIGURES.values() if not one.runs for run in runs_of(one)]
    assert len(paths) == len(set(paths))


def test_pi_star_has_the_gains_of_its_design_rules() -> None:
    longest_s = {"80": 0.55, "800": 0.1, "700": 0.6, "1000": 0.9}
    seen = 0
    for name in ("lred-fig5", "lred-fig6", "lred-fig7"):
        for run in runs_of(FIGURES[name], 1):
            if run.case.name == "PI*":
                words = dict(itertools.pairwise(shlex.split(" ".join(run.words))))
                a, b = pi_star(int(words["--flows"]), longest_s.get(words["--flows"], 0.45), 2500)
                assert (float(words["a"]), float(words["b"])) == pytest.approx((a, b), rel=1e-3)
                seen += 1
    assert seen == 15


def test_kept_results_are_those_of_a_figure() -> None:
    """No file lies about that no figure asks for."""
    known = {run.home / run.stem for one in FIGURES.values() for run in runs_of(one)}
    for path in FOLDER.glob("*/results/*/*"):
        assert path.name.endswith(plan.SUFFIX)
        assert path.with_name(path.name.removesuffix(plan.SUFFIX).rpartition(".")[0]) in known


# The file of a figure


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds = 2", "seeds = 0", "seeds: "),
        ("seeds = 2", "seeds = 2\ncolour = 1", "colour: Extra inputs"),
        ('qdisc = "pfifo limit {limit}"', "", "case.0.qdisc: Field required"),
        ('"tcp_pert coexist=1"', "1", "case.0.modules.0: Input should be a valid string"),
        ("limit {limit}", "limit {most}", "case short at few: 'most' is none of limit"),
        ('name = "REM"', 'name = "Short"', "more than one case is called 'short'"),
        ('metrics = ["jain"]', 'metrics = ["jam"]', "plot.metrics.0: no metric 'jam'"),
        ("ours = true", 'points = ["lots"]', "case REM: points: 'lots' is none of few, many"),
        ('"REM" = 0.95', '"PIE" = 0.95', "paper.jain: 'PIE' is none of"),
        ('target = "XQM Table I"', 'target = "Table I"', "no row 'Table I'"),
        ('common = "', "common = \"'", "No closing quotation"),
        ("seeds = 2", "seeds = ", "Invalid value"),
        ("[plot]", '[[model]]\nname = "red.fig1"\n[plot]', "model.0.name: no model 'red.fig1'"),
        ("[quick]", "[quack]", "quack: Extra inputs"),
        ('metrics = ["jain", "mean_queue_pkts"]', "", "metrics: needed with cases"),
        ('cases = ["short"]\npoints', 'cases = ["long"]\npoints', "quick: cases: 'long'"),
    ],
)
def test_nonsense_is_refused(folder: Path, old: str, new: str, said: str) -> None:
    assert old in FIGURE
    write_figure(folder, FIGURE.replace(old, new, 1))
    with pytest.raises(FigureError, match=re.escape(said)) as refused:
        load_figures(folder)
    assert str(refused.value).startswith(f"{folder / 'xqm' / 'tiny.toml'}: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('is = "above"', "either value or than"),
        ('is = "above"\nvalue = 1\nthan = {}', "either value or than"),
        ('is = "within"\nvalue = 1', "needs one of them"),
        ('is = "above"\nvalue = 1\ntolerance = 1', "goes with 'within'"),
        ('is = "over"\nvalue = 1', "gate.0.is"),
    ],
)
def test_gates_are_whole(folder: Path, words: str, said: str) -> None:
    with pytest.raises(FigureError, match=said):
        figure(folder, f'[[gate]]\nwords = "x"\nmetric = "jain"\ncases = ["REM"]\n{words}\n')


COMPANION = """\
title = "the same runs"
target = "PERT Fig. 99"
setup = "as before"
runs = "xqm-tiny"
case = ["REM", "short"]
point = ["many"]
metrics = ["mean_queue_pkts"]

[quick]
cases = ["short"]

[plot]

[[plot.time]]
cases = ["REM"]
point = "many"
"""


def companion(folder: Path, text: str = COMPANION) -> dict[str, Figure]:
    (folder / "xqm" / "same.toml").write_text(text)
    return load_figures(folder)


def test_a_figure_shows_the_runs_of_another(folder: Path) -> None:
    alone = {run.stem: run.path for run in runs_of(load_figures(folder)["xqm-tiny"], folder=folder)}
    found = companion(folder)
    shown = list(runs_of(found["xqm-same"], folder=folder))
    assert [run.stem for run in shown] == ["rem.many.1", "short.many.1", "short.many.2"]
    theirs = {run.stem: run for run in runs_of(found["xqm-tiny"], folder=folder)}
    for run in shown:
        other = theirs[run.stem]
        assert (run.path, run.name, run.course) == (other.path, other.name, other.course)
    # What is kept of a run, and so which run it is, depends on who shows it, and on nothing else.
    courses = {stem for stem, run in theirs.items() if run.course}
    assert courses == {"short.few.1", "rem.many.1"}
    assert {stem for stem in alone if alone[stem] != theirs[stem].path} == {"rem.many.1"}
    for run in theirs.values():
        keep(run, result())
    index = write_report(folder / "out", folder).read_text()
    assert "6 runs in the lab" in index
    page = (folder / "out" / "xqm-same.html").read_text()
    assert "queue over time at many, packets" in page
    assert "make papers FIGURE=xqm-tiny" in page
    assert "few" not in page.partition("<h2>Numbers")[2].partition("</table>")[0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("xqm-tiny", "xqm-huge", "runs: no figure 'xqm-huge' of this paper has any"),
        ("xqm-tiny", "xqm-same", "runs: no figure 'xqm-same' of this paper has any"),
        ("[quick]", "[quack]", "quack: Extra inputs"),
        ('["REM", "short"]', '["PIE"]', "case: 'PIE' is none of short, REM"),
        ('point = ["many"]', 'point = ["lots"]', "point: 'lots' is none of few, many"),
        ('point = ["many"]', "[[point]]", "point: names are wanted"),
        ("metrics", 'common = "--flows 2"\nmetrics', "common: that of xqm-tiny"),
        ('point = "many"\n', 'point = "few"\n', "plot.time: point: 'few' is none of many"),
    ],
)
def test_runs_of_none_are_refused(folder: Path, old: str, new: str, said: str) -> None:
    text = COMPANION.replace(old, new, 1)
    if new == "[[point]]":
        text = COMPANION.replace(old + "\n", "") + '\n[[point]]\nlabel = "many"\n'
    with pytest.raises(FigureError, match=re.escape(said)) as refused:
        companion(folder, text)
    assert str(refused.value).startswith(f"{folder / 'xqm' / 'same.toml'}: ")


# Runs


def test_options_come_in_their_order(folder: Path) -> None:
    runs = {run.stem: run for run in runs_of(figure(folder), folder=folder)}
    assert list(runs) == [
        *("short.few.1", "short.few.2", "short.many.1", "short.many.2"),
        *("rem.few.1", "rem.many.1"),
    ]
    words = runs["short.many.2"].words
    assert words[:3] == ["mininet/dumbbell.py", "--qdisc", "pfifo limit 50"]
    assert words[-6:] == ["--mtu", "500", "--cc", "pert", "--seed", "2"]
    assert runs["short.many.2"].command("OUT")[:6] == [
        "lab/run",
        "--seed",
        "2",
        "--out",
        "OUT",
        "--",
    ]


def test_modules_are_loaded_with_their_parameters() -> None:
    run = next(run for run in runs_of(FIGURES["pert-coexist"]) if run.case.modules)
    command = run.command("OUT")
    assert command[5:9] == ["--", "sh", "-c", 'modprobe tcp_pert coexist=1 && exec "$@"']
    assert command[10] == "mininet/dumbbell.py"


def test_what_a_run_uses_of_ours() -> None:
    words = ["x", "--qdisc", "fifa base red", "--cc", "pert_pi,reno", "--label", "socket"]
    assert modules_of(words) == {"sch_fifa", "tcp_pert", "act_rttlabel"}
    assert modules_of(["x", "--qdiscs", "xqm; red limit 5; rem"]) == {"sch_xqm", "sch_rem"}
    assert modules_of(["x", "--qdisc", "pfifo", "--cc", "reno"]) == set()


def test_a_law_is_its_code_not_its_comments_nor_its_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sch_toy").mkdir()
    (tmp_path / "include/aqm").mkdir(parents=True)
    source, law, shell, deep = (
        tmp_path / name
        for name in (
            *("sch_toy/sch_toy.c", "include/aqm/toy.h"),
            *("include/aqm/shell.h", "include/aqm/deep.h"),
        )
    )
    source.write_text("#include <aqm/toy.h>\n#include <aqm/shell.h>\nint a;\n")
    law.write_text("int b; /* b */\n")
    shell.write_text('#include <linux/types.h>\n#include "deep.h"\nint c;\n')
    deep.write_text("int d;\n")
    monkeypatch.setattr(plan, "ROOT", tmp_path)

    def digest() -> str:
        plan.law_digest.cache_clear()
        plan.module_source.cache_clear()
        return law_digest("sch_toy")

    try:
        before = digest()
        law.write_text("int b; // another\n/* of\n two */\n")
        shell.write_text(shell.read_text() + "int e;\n")
        source.write_text(source.read_text() + "int f;\n")
        assert digest() == before
        deep.write_text("int g;\n")
        changed = digest()
        law.write_text("int h;\n")
        assert len({before, changed, digest()}) == 3
    finally:
        plan.law_digest.cache_clear()
        plan.module_source.cache_clear()


def test_other_laws_make_a_result_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = next(run for run in runs_of(figure(folder), folder=folder) if run.case.name == "REM")
    assert run.result() is None
    keep(run, result(jain=0.8))
    kept = run.result()
    assert kept
    assert (kept[0].metrics["jain"], kept[1]) == (0.8, True)
    monkeypatch.setattr(plan, "law_digest", lambda module: f"new {module}")
    other = Run(run.figure, run.case, run.point, run.seed, folder)
    assert other.path != run.path
    kept = other.result()
    assert kept
    assert (kept[0].metrics["jain"], kept[1]) == (0.8, False)
    assert other.older() == [run.path]


def test_times_are_guessed_from_runs_alike(folder: Path) -> None:
    runs = {run.stem: run for run in runs_of(figure(folder), folder=folder)}
    times = Times(folder)
    assert times.guess(runs["short.few.1"]) == plan.UNKNOWN_S
    times.seconds = {"xqm-tiny/short.few.1": 3.0, "xqm-tiny/short.many.1": 9.0}
    times.save()
    times = Times(folder)
    assert times.guess(runs["short.few.1"]) == 3
    assert times.guess(runs["short.few.2"]) == 3
    assert times.guess(runs["rem.few.1"]) == plan.UNKNOWN_S
    # 12 s for three times as many packets: those of 500 bytes are twice as many.
    assert times.guess(runs["rem.few.1"], runs.values()) == pytest.approx(4)


# Results


def test_a_run_is_cut_down(tmp_path: Path) -> None:
    rows = [f"{tick / 100:.3f},queue_pkts,0,,{tick % 100}" for tick in range(200)]
    rows += ["4.000,goodput_mbps,,0,0.5", "4.000,goodput_mbps,,1,1.0", "4.000,goodput_mbps,,2,9"]
    groups = {"size": 1, "join_s": 10.0, "leave_s": None}
    found = from_folder(
        run_folder(tmp_path / "run", {"groups": groups, "long": 2}, rows), course=True
    )
    assert found.series == {"queue": [[[49.5, 9, 89], [49.5, 9, 89]]], "cohorts": [[0.5], [1.0]]}
    assert found.metrics["jain_1s"] == 0.9
    assert found.metrics["flows"] == [
        {
            "path": "AB", "rtt_ms": 20.0, "cc": "reno", "flows": 2, "goodput_mbps": 0.75,
            "least_mbps": 0.5, "most_mbps": 1.0, "retransmits": 2,
        }
    ]  # fmt: skip
    assert found.provenance["modules"] == {"sch_rem": {"srcversion": "ABC"}}
    assert found.packed() == found.packed()
    assert unpacked(found.packed()) == found
    assert gzip.decompress(found.packed()).endswith(b"}\n")


def test_a_flow_that_was_watched(tmp_path: Path) -> None:
    """High from .1 s on, a drop of the queue's at .5; high again at .6, and low at .8."""
    rows = [f"{tick / 100:.3f},queue_pkts,0,,{tick}" for tick in range(100)]
    rows += ["4.000,goodput_mbps,,0,0.5", "4.000,goodput_mbps,,1,1.0"]
    run = run_folder(tmp_path / "run", {"groups": None, "warmup_s": 0, "rtts_us": [60_000]}, rows)
    rtts_us = [60_000] + 7 * [66_000] + 2 * [60_000]
    with gzip.open(run / "observed.csv.gz", "wt") as seen:
        seen.write("time_s,event,value,window\n")
        seen.writelines(f"{i / 10:.6f},rtt_us,{rtt},5\n" for i, rtt in enumerate(rtts_us))
        seen.write("0.500000,drops,2,\n")
    found = from_folder(run)
    found = replace(found, scenario={"links": [{"qdisc": "pfifo limit 100"}]})
    assert found.metrics["predictors"]["rtt"]["transitions"] == [1, 1, 0, 0, 1, 1]
    assert found_metric(found, "efficiency_rtt") == 0.5
    assert found_metric(found, "false_positives_rtt_episodes") == 0.5
    assert found_metric(found, "false_negatives_own") is None
    assert found.series["false_positive_queue"] == []
    assert found_metric(found, "false_positives_short_queue") is None
    known = replace(found, series={"false_positive_queue": [10.0, 49.0, 50.0, 51.0]})
    assert found_metric(known, "false_positives_short_queue") == 0.5
    assert measure_of("false_positives_srtt_99").label == "srtt .99: false positives, %"


def test_a_law_is_kept_where_it_is_shown(folder: Path, tmp_path: Path) -> None:
    text = FIGURE.replace(
        "[plot.time]", '[plot.law]\ncase = "short"\nzoom = [0.3, 0.32]\n[plot.time]'
    )
    write_figure(folder, text)
    runs = {run.stem: run for run in runs_of(load_figures(folder)["xqm-tiny"], folder=folder)}
    assert {stem for stem, run in runs.items() if run.zoom} == {"short.few.1", "short.many.1"}
    rows = []
    for tick in range(100):
        rows += [
            f"{tick / 100:.3f},queue_pkts,0,,{tick}",
            f"{tick / 100:.3f},probability,0,,{tick}e-3",
        ]
    rows += ["4.000,goodput_mbps,,0,0.5", "4.000,goodput_mbps,,1,1.0"]
    zoom = runs["short.few.1"].zoom
    found = from_folder(run_folder(tmp_path / "run", {"groups": None}, rows), zoom=zoom)
    assert found.series == {
        "law": [(tick / 100, tick, tick / 1000) for tick in range(0, 100, 10)],
        "law_zoomed": [(0.3, 30, 0.03), (0.31, 31, 0.031)],
    }


def test_the_page_shows_a_law_and_its_loss_ratio(folder: Path) -> None:
    text = FIGURE.partition("[[point]]")[0].replace("{limit}", "10")
    text += '[quick]\ncases = []\n[plot.law]\ncase = "short"\nzoom = [3, 4]\n'
    write_figure(folder, text)
    for run in runs_of(load_figures(folder)["xqm-tiny"], folder=folder):
        law = [(second / 10, 100 + second, 0.1 + second / 1000) for second in range(40)]
        one = replace(result(), series={"law": law, "law_zoomed": law[30:]})
        links = [{"rate_bps": 2_000_000, "qdisc": "lred limit 200 target 100"}]
        keep(run, replace(one, scenario={**one.scenario, "links": links}))
    write_report(folder / "out", folder)
    page = (folder / "out" / "xqm-tiny.html").read_text()
    assert page.count("loss ratio</text>") == 2
    assert "0 to 4 s: both over time" in page


def copied(**metrics: float) -> Result:
    """20 s of 1000 packets/s, of which HALF is copies."""
    scenario = {
        "links": [{"rate_bps": 8_000_000, "qdisc": "xqm"}],
        "frame_bytes": 1000,
        "duration_s": 30.0,
        "warmup_s": 10.0,
    }
    given = {"utilization": 1.0, "arrivals": 16_000, "drop_rate": 0.05, "line_loss": 0.1} | metrics
    return replace(result(**given), scenario=scenario)


def test_what_copies_hide() -> None:
    # 20000 packets left of 15200 that were let in; a tenth is lost, of which nine in ten are there
    assert found_metric(copied(), "hidden_rate") == pytest.approx(4800 / 16_000 * 0.1 * 0.9)
    assert found_metric(copied(), "net_loss") == pytest.approx(0.05 - 0.027)
    assert found_metric(copied(arrivals=21_000), "hidden_rate") == pytest.approx(50 / 21_000 * 0.09)
    assert found_metric(copied(arrivals=22_000), "hidden_rate") == 0
    none = result(drop_rate=0.05, line_loss=None, utilization=1.0, arrivals=16_000)
    none = replace(none, scenario=copied().scenario)
    assert found_metric(none, "line_loss") == 0
    assert found_metric(none, "net_loss") == 0.05


def staged(last: list[float]) -> Result:
    """Of one robust flow until 10 s, and one that comes at 4 s: 1 Mb/s of payload for both."""
    flows = [
        {"path": "AB", "rtt_ms": rtt, "cc": "reno", "flows": 1, "goodput_mbps": 0.5}
        for rtt in (20.0, 80.0)
    ]
    scenario = {
        "links": [{"rate_bps": round(1_000_000 * 1014 / 948), "qdisc": "pfifo"}],
        "frame_bytes": 1014,
        "groups": {"size": 1, "join_s": 4.0, "leave_s": 10.0},
    }
    one = result(flows=flows)
    return replace(one, scenario=scenario, series={"cohorts": [[0.5] * 10 + [0.0] * 10, last]})


def test_a_transfer_and_the_way_back() -> None:
    rising = [0.0] * 4 + [0.4] * 6 + [0.5, 0.7, 0.9] + [1.0] * 7
    assert found_metric(staged(rising), "rtt_ratio") == 0.25
    # 6 s of half a Mb/s are not through in 6 s of 0.4
    assert found_metric(staged(rising), "transfer_s") is None
    quick = [0.0] * 4 + [0.5, 1.0] + [0.5] * 4 + [0.5, 0.7, 0.9] + [1.0] * 7
    assert found_metric(staged(quick), "transfer_s") == pytest.approx(5, abs=1e-5)
    # of the seconds from the one of 0.9 on, five have a mean of 0.98
    assert found_metric(staged(quick), "recovery_s") == 2
    assert found_metric(staged(quick), "unsent_mbit") == pytest.approx(0.8, abs=1e-5)
    slow = [0.0] * 4 + [0.5] * 16
    assert found_metric(staged(slow), "recovery_s") is None
    assert found_metric(staged(slow), "unsent_mbit") is None
    for name in ("transfer_s", "recovery_s", "unsent_mbit"):
        assert found_metric(replace(staged(slow), series={}), name) is None


def test_metrics_that_are_made_of_others() -> None:
    one = result(mean_queue_pkts=5.0, drop_rate=0.02, overflow_drops=None, arrivals=100, web=None)
    assert found_metric(one, "least_share") == pytest.approx(0.8 / 0.9)
    assert found_metric(one, "queue_share") == 0.5
    assert found_metric(one, "overflow_rate") == 0.02
    assert found_metric(one, "first_cc_share") == 1
    assert found_metric(one, "page_response_s") is None
    assert found_metric(result(links=[{"drop_rate": 0.5}]), "links.0.drop_rate") == 0.5
    back = result(reverse={"links": [{"drop_rate": 0.2}]})
    assert found_metric(back, "reverse.links.0.drop_rate") == 0.2
    assert measure_of("reverse.links.2.drop_rate").label == "dropped at CD, on the way back, %"
    full = replace(
        one,
        scenario={**one.scenario, "frame_bytes": 1014},
        metrics={**one.metrics, "goodput_mbps": 2 * 948 / 1014},
    )
    assert found_metric(full, "goodput_share") == pytest.approx(1)


@pytest.mark.parametrize("name", ["links.0.least_share", "links.x.jain", "jam", "", "reverse.jam"])
def test_some_metrics_there_are_not(name: str) -> None:
    assert not known_metric(name)


def test_cohorts_after_a_join() -> None:
    groups = {"size": 25, "join_s": 100.0, "leave_s": 400.0}
    cohorts = [[2.0] * 400, [0.0] * 100 + [1.0] * 20 + [1.6] * 280]
    one = result()
    one = replace(one, scenario={**one.scenario, "groups": groups}, series={"cohorts": cohorts})
    assert found_metric(one, "cohorts_1") == pytest.approx(1.25)
    assert found_metric(one, "cohorts_2") is None


def test_perts_steady_state_is_the_formulas() -> None:
    queue_ms = pert_equilibrium_ms(60, 50, 150e6 / 8 / 1514)
    assert queue_ms == pytest.approx(7.1, abs=0.05)  # tcp_pert/README.md
    window = 150e6 / 8 / 1514 * (60 + queue_ms) / 1000 / 50
    assert (queue_ms - 5) / 5 * 0.05 == pytest.approx(2 / (0.35 * window**2))


def test_intervals() -> None:
    mean, half = interval([1.0, 2.0, 3.0])
    assert mean == 2
    assert half == pytest.approx(4.303 / math.sqrt(3))
    assert interval([4.0]) == (4.0, None)


# Gates


def gated(folder: Path, text: str) -> Figure:
    return figure(folder, f'[[gate]]\nwords = "x"\ncases = ["short"]\n{text}\n')


ALL = {("short", "few"): [0.9, 0.8], ("short", "many"): [0.7, 0.6]}
REM = {("REM", "few"): [0.85], ("REM", "many"): [0.65]}


@pytest.mark.parametrize(
    ("text", "values", "status", "place"),
    [
        ('is = "at least"\nvalue = 0.6', ALL, "met", "short at many, seed 2"),
        ('is = "above"\nvalue = 0.6', ALL, "missed", "short at many, seed 2"),
        ('is = "at most"\nvalue = 0.9', ALL, "met", "short at few, seed 1"),
        ('is = "below"\nvalue = 0.9\nof = "mean"', ALL, "met", "short at few, mean"),
        ('is = "at least"\nvalue = 0.7\npoints = ["few"]', ALL, "met", "short at few, seed 2"),
        ('is = "within"\nvalue = 0.75\ntolerance = 0.14', ALL, "missed", "short at few, seed 1"),
        ('is = "within"\nvalue = 0.75\nshare = 0.21', ALL, "met", "short at few, seed 1"),
        ('is = "above"\nthan = { cases = ["REM"] }', ALL | REM, "met", "seed 1"),
        ('is = "above"\nthan = { cases = ["REM"] }\nplus = 0.06', ALL | REM, "missed", ""),
        ('is = "above"\nthan = { cases = ["REM"] }\ntimes = 1.07', ALL | REM, "missed", ""),
        ('is = "above"\nthan = { cases = ["REM"] }', ALL, "not run", ""),
        ('is = "below"\nthan = { metric = "null_model_jain" }', ALL, "met", ""),
        ('is = "at least"\nthan = { point = "many" }', ALL, "met", "short at many, seed 1"),
        ('is = "below"\nthan = { metric = ["null_model_jain", "jain"] }', ALL, "missed", ""),
        ('is = "below"\nthan = { metric = ["null_model_jain"] }', ALL, "met", ""),
        ('is = "at most"\nthan = { paper = true }\npoints = ["few"]', ALL, "met", "seed 1"),
        ('is = "below"\nvalue = 0\nover = "slope"', ALL, "met", "short, seed"),
        ('is = "above"\nvalue = -0.004\nover = "slope"\nof = "mean"', ALL, "missed", "short, mean"),
        ('is = "at most"\nvalue = 0\nover = "rise"', ALL, "met", "short, seed 1"),
        ('is = "at least"\nvalue = 0.1', {("short", "few"): [0.9]}, "not run", ""),
        ('is = "at least"\nvalue = 0.95', {("short", "few"): [0.9]}, "missed", ""),
    ],
)
def test_gates(
    folder: Path, text: str, values: dict[tuple[str, str], list[float]], status: str, place: str
) -> None:
    one = gated(folder, f'metric = "jain"\n{text}')
    keep_all(folder, values, "jain")
    verdict = judge(one.gate[0], Results(one, folder))
    assert verdict.status == status
    assert place in verdict.found


def test_a_gate_says_how_many_seeds_it_saw(folder: Path) -> None:
    one = gated(folder, 'metric = "jain"\nis = "at least"\nvalue = 0.5')
    keep_all(folder, {("short", "few"): [0.9, 0.9], ("short", "many"): [0.9]}, "jain")
    assert judge(one.gate[0], Results(one, folder)).seeds == (1, 2)


@pytest.mark.parametrize(("compare", "status"), [("at least", "met"), ("at most", "missed")])
def test_no_response_is_a_late_one(folder: Path, compare: str, status: str) -> None:
    one = gated(folder, f'metric = "response_time_s"\nis = "{compare}"\nvalue = 100')
    keep_all(folder, ALL, "jain")
    assert judge(one.gate[0], Results(one, folder)).status == status


def test_a_number_that_is_missing_fails(folder: Path) -> None:
    one = gated(folder, 'metric = "mark_rate"\nis = "at most"\nvalue = 1')
    keep_all(folder, ALL, "jain")
    found = {run.path: None for run in runs_of(one, folder=folder)}
    for path in found:
        if path.exists():
            path.write_bytes(result(mark_rate=None).packed())
    verdict = judge(one.gate[0], Results(one, folder))
    assert (verdict.status, verdict.found) == ("missed", "short at few, seed 1: no such number")


# Verification


def test_the_draw_is_the_seeds(folder: Path) -> None:
    runs = list(runs_of(figure(folder), folder=folder))
    assert sorted(run.stem for run in verify.draw(runs, 10, "a")) == sorted(r.stem for r in runs)
    assert verify.draw(runs, 2, "a") == verify.draw(runs, 2, "a")
    assert len({tuple(r.stem for r in verify.draw(runs, 2, str(n))) for n in range(20)}) > 3


def test_bytes_are_demanded_of_the_same_makings(folder: Path) -> None:
    run = next(runs_of(figure(folder), folder=folder))
    kept = result()
    assert verify.compare(run, kept, result()).differences == ()
    finding = verify.compare(run, kept, result(jain=0.900001))
    assert (finding.same_makings, finding.differences) == (
        True,
        ("jain: 0.9 before, 0.900001 now",),
    )
    other = replace(kept, series={})
    assert verify.compare(run, kept, other).differences == ("another series",)


def test_agreement_is_demanded_of_other_makings(folder: Path) -> None:
    write_figure(folder, FIGURE.replace("seeds = 2", "seeds = 5"))
    run, *_ = runs = [
        run
        for run in runs_of(load_figures(folder)["xqm-tiny"], folder=folder)
        if run.stem.startswith("short.few")
    ]
    draw = random.Random(1)
    values = [0.5 + draw.gauss(0, 0.02) for _ in runs]
    for one, value in zip(runs, values, strict=True):
        keep(one, result(jain=value))

    def agrees(value: float) -> bool:
        anew = result(jain=value)
        anew = replace(anew, provenance={**anew.provenance, "kernel": "6.13.0"})
        finding = verify.compare(run, result(jain=values[0]), anew)
        assert not finding.same_makings
        return not finding.differences

    assert agrees(0.5)
    assert agrees(0.6)
    assert not agrees(1.0)


def test_few_runs_leave_more_room() -> None:
    assert verify.allowed([1.0]) == verify.LONE_SLACK
    assert verify.allowed([1.0, 1.0]) == verify.LONE_SLACK
    assert verify.allowed([1.0] * 5) == verify.SLACK
    assert verify.allowed([1.0, 2.0, 3.0]) == pytest.approx(31.60 * math.sqrt(4 / 3))


# The page


class Links(HTMLParser):
    """What a page refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


def test_every_row_is_on_the_page_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    index = write_report(tmp_path / "report")
    text = index.read_text()
    for row in load_rows():
        assert row.figure in text
    pages = list(index.parent.glob("*.html"))
    assert len(pages) == len(FIGURES) + 1
    for page in pages:
        for link in Links(page.read_text()).found:
            name, _, part = link.partition("#")
            assert link == "data:," or (index.parent / name).is_file()
            assert not part or f'id="{part}"' in (index.parent / name).read_text()


def test_the_page_tells_hits_misses_and_what_was_not_run(folder: Path) -> None:
    gate = (
        '[[gate]]\nwords = "{0}"\nmetric = "jain"\ncases = ["{1}"]\nis = "at least"\nvalue = {2}\n'
    )
    figure(
        folder,
        gate.format("a gate met", "short", 0.5)
        + gate.format("a gate missed", "short", 0.75)
        + gate.format("a gate not run", "REM", 0.5),
    )
    keep_all(folder, ALL, "jain")
    out = folder / "out"
    text = write_report(out, folder).read_text()
    assert "<strong>1 met</strong>, <strong>1 missed</strong>" in text
    assert "1 not run" in text
    assert "PERT Fig. 99" in text
    rows = re.findall(r"<td.*?>(a gate .*?)<br>.*?</tr>", text, re.S)
    assert rows == ["a gate met", "a gate missed", "a gate not run"]
    page = (out / "xqm-tiny.html").read_text()
    assert "0.850 ± 0.635" in page  # .9 and .8
    assert "paper 0.900" in page
    assert "queue over time at few, packets" in page
    assert "make papers FIGURE=xqm-tiny SEEDS=2" in page
    course = re.search(r'<script class="course".*?>(.*?)</script>', page)
    assert course
    assert json.loads(course[1])["lines"][0]["mean"] == [3, 4]
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.S)


def test_metrics_stand_beside_each_other(folder: Path) -> None:
    more = """[[plot.beside]]
title = "both at once"
rows = { "this row" = "jain", "that row" = "null_model_jain" }
"""
    write_figure(folder, FIGURE.replace("[plot.time]", f"{more}[plot.time]"))
    keep_all(folder, {("short", "few"): [0.9, 0.7]}, "jain")
    write_report(folder / "out", folder)
    page = (folder / "out" / "xqm-tiny.html").read_text()
    assert "both at once, means: this row 0.8; that row 1.0." in page


def test_the_queue_at_false_positives_is_drawn(folder: Path) -> None:
    write_figure(folder, FIGURE.replace("[plot]\n", "[plot]\nfalse_positives = true\n"))
    for run in runs_of(load_figures(folder)["xqm-tiny"], folder=folder):
        if run.case.name == "short" and run.seed == 1:
            lengths = [1.0, 4.0] if run.point.label == "few" else []
            keep(run, replace(result(), series={"queue": [], "false_positive_queue": lengths}))
    write_report(folder / "out", folder)
    page = (folder / "out" / "xqm-tiny.html").read_text()
    assert "queue over buffer at false positives, mean: few (2) 0.30." in page  # .15 and .45


def test_the_page_tells_of_older_laws(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_all(folder, REM, "jain")
    out = folder / "out"
    assert "older laws" not in write_report(out, folder).read_text()
    monkeypatch.setattr(plan, "law_digest", lambda module: f"new {module}")
    assert "2 of the results were made with older laws" in write_report(out, folder).read_text()


# Flent


@pytest.fixture
def flent_file(tmp_path: Path) -> Path:
    """Of a run of two flows for twelve seconds, its queue growing by a packet each second."""
    rows = [f"{tick / 10:.3f},queue_pkts,0,,{tick // 10}" for tick in range(121)]
    rows += [f"{time}.000,goodput_mbps,,{flow},{0.5 + flow}" for time in SECONDS for flow in (0, 1)]
    links = [{"rate_bps": 1_014_000, "qdisc": "rem", "loss": 0.0}]
    scenario = {"links": links, "rtts_us": [20000, 30000], "ipv6": False, "seed": 1}
    folder = run_folder(tmp_path / "run", scenario, rows)
    file = tmp_path / "run.flent.gz"
    words = [sys.executable, "mininet/flent_data.py", str(folder), str(file)]
    subprocess.run(words, cwd=ROOT, check=True)
    return file


def test_flent_finds_its_numbers(flent_file: Path) -> None:
    found = json.loads(gzip.decompress(flent_file.read_bytes()))
    assert found["x_values"] == list(SECONDS)
    assert found["results"]["TCP upload::2"] == [1.5] * 12
    assert found["results"]["TCP upload sum"] == [2] * 12
    assert found["results"]["Ping (ms) ICMP"][:3] == [20, 28, 36]
    assert found["raw_values"]["qdisc_stats_AB"][10] == {
        "t": 1_800_000_001,
        "backlog_pkts": 1,
        "backlog_bytes": 1014,
        "delay": 8.0,
    }


@pytest.mark.parametrize("plot", ["totals", "upload", "delay"])
def test_flent_opens_it(flent_file: Path, plot: str) -> None:
    flent = str(Path(sys.executable).with_name("flent"))
    image = flent_file.with_name(f"{plot}.svg")
    words = [flent, "-i", str(flent_file), "-p", plot, "-o", str(image)]
    done = subprocess.run(words, cwd=flent_file.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search("ERROR|WARNING", done.stdout + done.stderr)
    assert "<path" in image.read_text()


# Everything together, in the lab


TRY = """
ip link add d0 type dummy && ip link set d0 up
while read -r words; do
    tc qdisc add dev d0 root $words && tc qdisc del dev d0 root || echo "refused: $words"
done
echo done
"""


def test_the_kernel_takes_every_qdisc() -> None:
    qdiscs = {
        qdisc.strip()
        for one in FIGURES.values()
        for run in runs_of(one, 1)
        for qdisc in run.words[2].split(";")
    }
    assert len(qdiscs) > 50
    tries = "".join(f"{qdisc}\n" for qdisc in sorted(qdiscs))
    with tempfile.NamedTemporaryFile("w") as listed:
        listed.write(tries)
        listed.flush()
        command = ["lab/run", "--", "sh", "-c", f"{{ {TRY} }} <'{listed.name}'"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def snakemake(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("snakemake")),
        *("--snakefile", "mininet/papers/Snakefile"),
        *("--quiet", "--nolock", "--rerun-triggers", "mtime", "--config", f"folder={folder}"),
    ]
    return subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True)


def test_runs_are_done_once_and_come_out_the_same(folder: Path) -> None:
    """By the cluster's profile, but with Snakemake's local executor."""
    profile = ("--workflow-profile", "none", "--profile", "mininet/papers/profiles/slurm")
    words = ("quick=1", *profile, "--executor", "local", "--cores", "1")
    told = snakemake(folder, *words, "--dry-run")
    assert "1 of 1 runs to do" in told.stderr
    assert not list(folder.rglob("*.gz"))
    done = snakemake(folder, *words)
    assert done.returncode == 0, done.stderr
    (kept,) = folder.rglob("*.gz")
    again = snakemake(folder, *words)
    assert "0 of 1 runs to do" in again.stderr

    run = next(runs_of(load_figure(folder / "xqm" / "tiny.toml"), folder=folder))
    assert run.path == kept
    finding = verify.verify(run)
    assert finding.same_makings
    assert finding.differences == ()
    one = unpacked(kept.read_bytes())
    assert one.provenance["modules"]["tcp_pert"]["coexist"] == "Y"
    assert found_metric(one, "pert_equilibrium_ms") is not None


def test_kept_results_come_out_again() -> None:
    """The short form of `make verify`; which runs, the day decides."""
    words = ("verify", "--runs", "2", "--quickest", "20")
    command = [sys.executable, "mininet/campaign.py", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 runs" in done.stdout


def test_a_run_that_fails_leaves_nothing(folder: Path) -> None:
    write_figure(folder, FIGURE.replace("pfifo limit {limit}", "pfifo limits {limit}"))
    done = snakemake(folder, "quick=1", "--cores", "1")
    assert done.returncode
    assert "limits" in done.stderr
    assert not list(folder.rglob("*.gz"))


def test_unknown_figures_are_named(folder: Path) -> None:
    done = snakemake(folder, "figure=xqm-table9", "--cores", "1")
    assert done.returncode
    assert "no figure 'xqm-table9'; there are xqm-tiny" in done.stderr
