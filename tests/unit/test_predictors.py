# SPDX-License-Identifier: GPL-2.0-or-later
"""PERT's predictors on traces made by hand, and the paper's six transitions."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import predict
from models import predictors
from models.dde import Numbers
from models.predictors import PREDICTORS, Acks, Observed, Opinions, read, study, walk

RNG = np.random.default_rng(7)


def numbers(values: Sequence[float]) -> Numbers:
    return np.array(values, dtype=np.float64)


def one_a_round(rtts: Sequence[float], windows: Sequence[float]) -> Acks:
    """ACKs of which each is of a packet that was sent when the one before had come."""
    return Acks(np.cumsum(numbers(rtts)), numbers(rtts), numbers(windows))


def said(name: str, acks: Acks) -> list[bool]:
    high: list[bool] = PREDICTORS[name].says(acks).high.tolist()
    return high


# Signals


@pytest.mark.parametrize("weight", [0.875, 0.99])
def test_an_average_is_eq_5(weight: float) -> None:
    values = RNG.uniform(0.06, 0.12, 500)
    average, found = values[0], predictors.ewma(values, weight)
    for value, got in zip(values, found, strict=True):
        average = weight * average + (1 - weight) * value
        assert got == pytest.approx(average)


def test_a_moving_mean_is_of_what_there_is() -> None:
    values = RNG.uniform(size=40)
    expected = [values[max(i - 6, 0) : i + 1].mean() for i in range(40)]
    assert predictors.moving_mean(values, 7) == pytest.approx(expected)


def test_a_round_trip_ends_with_a_packet_sent_after_the_last() -> None:
    time = numbers([1.0, 1.1, 1.2, 1.29, 1.3, 1.35, 1.51])
    rtt = numbers([0.2, 0.2, 0.2, 0.3, 0.1, 0.1, 0.2])
    # Sent at .8, .9, 1, .99, 1.2, 1.25, 1.31: after 1 came is the third, after 1.2 the fifth,
    # after 1.3 the last.
    found = Acks(time, rtt, np.arange(7.0)).rounds()
    assert found.window.tolist() == [0, 2, 4, 6]
    assert found.time.tolist() == [1.0, 1.2, 1.3, 1.51]


# What predictors say


def test_the_threshold_is_the_papers() -> None:
    acks = one_a_round([0.0649, 0.0651, 0.060, 0.0651], [5, 5, 5, 5])
    assert said("rtt", acks) == [False, True, False, True]
    assert PREDICTORS["rtt"].says(acks).time.tolist() == acks.time.tolist()


def test_averages_are_slow_to_cross_it() -> None:
    """From 60 to 80 ms, a quarter of the way is enough: ln(3/4) over ln(weight) steps."""
    acks = one_a_round([0.06] * 100 + [0.08] * 100, [5] * 200)
    first = {name: said(name, acks).index(True) - 100 for name in ("rtt", "srtt_875", "srtt_99")}
    assert first == {"rtt": 0, "srtt_875": 2, "srtt_99": 28}
    assert said("mean", acks).index(True) - 100 == 33  # of 133 values 33: not more than a quarter
    assert not any(said("mean", one_a_round([0.06] * 750 + [0.08] * 187, [5] * 937)))
    assert said("mean", one_a_round([0.06] * 750 + [0.08] * 188, [5] * 938)).index(True) == 937


def test_card_is_the_sign_of_the_delays_gradient() -> None:
    rtts = [0.06, 0.07, 0.07, 0.08, 0.07, 0.06]
    windows = [10, 11, 12, 11, 10, 10]
    assert said("card", one_a_round(rtts, windows)) == [True, False, False, True, False]


def test_tris_is_half_of_the_first_packets_gradient() -> None:
    """A packet more a round trip brings 1/RTT of the first; or nothing once the link is full."""
    base = 0.06
    windows = [1, 2, 3, 4, 4, 5, 5]
    rtts = [base, base, base, 4 * base / 3, 4 * base / 3, base, base]
    # 1/60 ms more each; then 3/60 both before and after; as before; 5/60 after 3/60; as before.
    found = said("tris", one_a_round(rtts, windows))
    assert found == [False, False, True, True, False, False]
    slightly = [base, 2 * base / 1.51, 2 * base / 1.49]
    for rtt, high in zip(slightly[1:], (False, True), strict=True):
        assert said("tris", one_a_round([base, rtt], [1, 2])) == [high]


def test_dual_is_the_middle_of_least_and_greatest() -> None:
    acks = one_a_round([0.06, 0.10, 0.079, 0.081, 0.14, 0.099, 0.101], [5] * 7)
    assert said("dual", acks) == [False, True, False, True, True, False, True]


def test_vegas_is_more_than_three_packets() -> None:
    """Window times queueing delay over the round-trip time."""
    acks = one_a_round([0.06, 0.08, 0.08, 0.08], [20, 11.9, 12.1, 4])
    assert said("vegas", acks) == [False, False, True, False]


def test_cim_is_few_against_many() -> None:
    acks = one_a_round([0.06] * 30 + [0.062, 0.07] + [0.06] * 3, [5] * 35)
    assert said("cim", acks) == [False] * 30 + [True, True, True, False, False]


# Transitions


def test_all_six_transitions() -> None:
    #  A    B    A (5)  B    C (2)  B (6)  C (2)  A (3)  C (4)  A (3)
    times = numbers([1, 2, 3, 4, 6, 8, 10])
    high = np.array([False, True, False, True, True, False, False])
    losses = numbers([5, 7, 9])
    found = walk(Opinions(times, high), losses)
    assert found.counts == {1: 2, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1}
    assert found.false_positives_s == [3]
    assert found.efficiency == pytest.approx(2 / 3)
    assert found.false_positives == pytest.approx(1 / 3)
    assert found.false_negatives == pytest.approx(1 / 3)
    late = walk(Opinions(times, high), losses, since=7)
    assert late.counts == {1: 0, 2: 1, 3: 2, 4: 1, 5: 0, 6: 0}
    assert (late.efficiency, late.false_positives) == (1, 0)


def test_losses_of_one_state_are_one() -> None:
    """Between two opinions; or, with a round trip of quiet, until that has passed."""
    times = np.arange(1.0, 21.0)
    opinions = Opinions(times, np.full(20, True))
    losses = numbers([2.5, 2.6, 2.7, 4.5, 12.5])
    assert walk(opinions, losses).counts[2] == 3
    together = walk(opinions, losses, quiet_s=3)
    assert (together.counts[2], together.counts[6]) == (2, 2)


def test_without_transitions_there_is_no_share() -> None:
    found = walk(Opinions(numbers([1, 2]), np.array([False, False])), numbers([]))
    assert (found.efficiency, found.false_positives, found.false_negatives) == (None, None, None)
    at_once = walk(Opinions(numbers([2]), np.array([True])), numbers([1]))
    assert sum(at_once.counts.values()) == at_once.counts[6] == 1  # no state before the loss


# A run


def leave(folder: Path, rtts_ms: Sequence[float]) -> None:
    """What a run leaves: an ACK each 100 ms, a retransmission, drops; a queue that grows."""
    rows = [f"{i / 10:.6f},rtt_us,{1000 * rtt:.0f},{10 + i}" for i, rtt in enumerate(rtts_ms)]
    text = "\n".join(["time_s,event,value,window", *rows, "0.250000,retransmit,,", "0.56,drops,3,"])
    (folder / "observed.csv.gz").write_bytes(gzip.compress(f"{text}\n".encode()))
    queue = [f"{i / 100:.3f},queue_pkts,{link},,{i + link}" for i in range(100) for link in (0, 1)]
    series = "\n".join(["time_s,series,link,flow,value", *queue, "1.000,goodput_mbps,,0,1.5"])
    (folder / "series.csv.gz").write_bytes(gzip.compress(f"{series}\n".encode()))
    scenario = {"warmup_s": 0, "rtts_us": [60_000]}
    (folder / "run.json").write_text(json.dumps({"scenario": scenario}))


def test_a_run_is_read(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    leave(tmp_path, [60, 70, 80])
    found = read(tmp_path)
    assert found
    assert found.acks.time.tolist() == pytest.approx([0, 0.1, 0.2])
    assert found.acks.rtt.tolist() == pytest.approx([0.06, 0.07, 0.08])
    assert found.acks.window.tolist() == [10, 11, 12]
    assert found.retransmitted.tolist() == pytest.approx([0.25])
    assert found.dropped.tolist() == pytest.approx([0.555])  # between two samples
    assert found.queue_at([0.0, 0.319, 0.995]).tolist() == [0, 31, 99]


def test_a_flows_own_losses_are_not_the_queues(tmp_path: Path) -> None:
    """High from .1 s on, its own loss at .25; low at .3, high from .5, the queue's loss at .555."""
    leave(tmp_path, [60, 70, 70, 60, 60, 70, 70, 70])
    observed = read(tmp_path)
    assert observed
    found = study(observed, 0, 0.06)
    assert found["predictors"].keys() == PREDICTORS.keys()
    assert found["predictors"]["rtt"]["transitions"] == [2, 1, 0, 0, 1, 1]
    assert found["own_losses"]["transitions"] == [2, 1, 1, 0, 0, 0]
    assert found["own_losses"]["episodes"]["transitions"] == [2, 1, 1, 0, 0, 0]


def test_the_queue_at_false_positives(tmp_path: Path) -> None:
    """srtt .99 is above the threshold from the third on, and never below again, or at once."""
    leave(tmp_path, [60, 60, 700, 60])
    observed = read(tmp_path)
    assert observed
    assert predictors.false_positive_queue(observed, 0).tolist() == []
    brief = Observed(
        Acks(numbers([0.1, 0.2, 0.3]), numbers([0.0651, 0.0651, 0.05]), numbers([5, 5, 5])),
        numbers([]),
        numbers([]),
        observed.queue,
    )
    assert predictors.false_positive_queue(brief, 0).tolist() == [30]
    assert predictors.false_positive_queue(brief, 0.31).tolist() == []


def test_the_table_has_every_predictor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["predict.py", str(tmp_path)])
    assert predict.main() == 1
    leave(tmp_path, [60, 70, 70, 60, 60, 70, 70, 70])
    assert predict.main() == 0
    shown = capsys.readouterr().out
    assert all(one.title in shown for one in PREDICTORS.values())
    monkeypatch.setattr("sys.argv", ["predict.py", str(tmp_path), "--json"])
    assert predict.main() == 0
    assert json.loads(capsys.readouterr().out)["predictors"]["rtt"]["efficiency"] == 0.5
