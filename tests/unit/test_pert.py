# SPDX-License-Identifier: GPL-2.0-or-later
"""pert.h against the paper in floating point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laws
from model_pert import Pert, PertPi

US_ONE = 1 << 24  # of a delay
MS, S = 1_000, 1_000_000  # us
RUNS, ACKS = 50, 20_000


def params(
    low: int = 5 * MS,
    high: int = 10 * MS,
    probability: float = 0.05,
    weight: float = 0.99,
    time_constant: int = 0,
    window: int = 10 * S,
) -> laws.PertParams:
    return laws.PertParams(
        low,
        high,
        round(probability * laws.PROB_ONE),
        round((1 - weight) * laws.PROB_ONE),
        time_constant,
        window,
    )


def every(step: int, count: int) -> laws.U64s:
    """Times of ACKs, us, from a day after the clock's start."""
    return np.arange(count, dtype=np.uint64) * np.uint64(step) + np.uint64(86400 * S)


def us(values: object) -> laws.U32s:
    return np.array(values).astype(np.uint32)


@pytest.mark.parametrize(
    ("delay_ms", "expected"),
    [(0, 0), (5, 0), (7.5, 0.025), (10, 0.05), (15, 0.525), (20, 1), (21, 1), (2000, 1)],
)
def test_check_values_of_the_curve(delay_ms: float, expected: float) -> None:
    found = laws.pert_curve(params(), round(delay_ms * MS * US_ONE))
    assert found / laws.PROB_ONE == pytest.approx(expected, abs=2**-31)


@given(
    low=st.integers(0, 10**6),
    span=st.integers(1, 10**6),
    probability=st.floats(1e-6, 1),
    share=st.floats(0, 3),
)
def test_curve_against_floating_point(
    low: int, span: int, probability: float, share: float
) -> None:
    law = params(low, low + span, probability)
    delay = round(share * (low + span) * US_ONE)
    model = Pert(low, low + span, law.probability / laws.PROB_ONE, 0.99)
    found = laws.pert_curve(law, delay) / laws.PROB_ONE
    assert found == pytest.approx(model.curve(delay / US_ONE), abs=2**-30)


def test_average_against_floating_point() -> None:
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(RUNS):
        law = params(weight=rng.choice([0.0, 0.5, 0.875, 0.99, 0.999]), high=int(10 * S))
        rtt = us(rng.uniform(10**4, 10 ** rng.uniform(4.1, 6), ACKS))
        found = laws.pert_history(law, every(100, ACKS), rtt)
        exact = np.fromiter(
            Pert(0, 1, 1, 1 - law.weight / laws.PROB_ONE).averages(rtt.tolist()), float, ACKS
        )
        worst = max(worst, float(np.abs(found.average / US_ONE - exact).max()))
        np.testing.assert_array_equal(found.base, np.minimum.accumulate(rtt))
    print(f"{RUNS * ACKS} samples, worst error {worst:.1e} us")
    assert worst < 1e-3


def test_average_by_time_does_not_depend_on_the_acks() -> None:
    """With a time constant, a step in the delay is followed as fast by few ACKs as by many."""
    law = params(time_constant=100 * MS)
    reached = []
    for step in (1 * MS, 10 * MS):
        count = 200 * MS // step  # 100 ms of 20 ms, 100 ms of 30 ms
        rtt = us([20 * MS] * (count // 2) + [30 * MS] * (count // 2))
        reached.append(laws.pert_history(law, every(step, count), rtt).delay[-1] / US_ONE / MS)
    assert reached == pytest.approx([10 * (1 - np.exp(-1))] * 2, rel=0.05)
    by_ack = laws.pert_history(params(), every(10 * MS, 20), us([20 * MS] * 10 + [30 * MS] * 10))
    assert by_ack.delay[-1] / US_ONE / MS == pytest.approx(10 * (1 - 0.99**10), rel=1e-3)


def test_base_follows_a_longer_path() -> None:
    """When for the whole window nothing came within reach of it, and not before."""
    law = params()
    time = every(10 * MS, 3000)
    rtt = us([30 * MS] * 500 + [80 * MS + 3 * (i % 7) for i in range(2500)])
    base = laws.pert_history(law, time, rtt).base
    assert set(base[:1499]) == {30 * MS}
    assert set(base[1510:]) == {80 * MS}
    # a queue that stands below 2 T_max, however long, is no path
    standing = us([30 * MS] * 500 + [49 * MS] * 2500)
    assert set(laws.pert_history(law, time, standing).base) == {30 * MS}
    # nor one that drains in between
    draining = us([30 * MS] * 500 + ([80 * MS] * 900 + [45 * MS]) * 2 + [80 * MS] * 698)
    assert set(laws.pert_history(law, time, draining).base) == {30 * MS}
    # and a shorter path is known at once
    shorter = us([80 * MS] * 100 + [30 * MS] * 100)
    assert laws.pert_history(law, every(MS, 200), shorter).base[100] == 30 * MS


def test_one_sample_after_a_silence_is_no_longer_path() -> None:
    time = np.concatenate([every(MS, 100), every(MS, 10) + np.uint64(60 * S)])
    history = laws.pert_history(params(), time, us([30 * MS] * 100 + [90 * MS] * 10))
    assert set(history.base) == {30 * MS}


def test_average_starts_anew_after_a_silence() -> None:
    time = np.concatenate([every(MS, 1000), every(MS, 2) + np.uint64(5 * S)])
    history = laws.pert_history(params(), time, us([30 * MS] + [60 * MS] * 999 + [31 * MS] * 2))
    assert history.delay[999] / US_ONE / MS > 29
    assert history.delay[1000:] / US_ONE == pytest.approx([MS, MS], abs=1)


def test_bogus_samples() -> None:
    """Zero is no base, and an hour counts as seconds."""
    history = laws.pert_history(params(), every(MS, 3), us([0, 0, 3600 * S % 2**31]))
    assert list(history.base) == [1, 1, 1]
    assert history.delay[2] / US_ONE == pytest.approx(4 * S / 100, rel=1e-3)


@pytest.mark.parametrize("offset", [0, 2**31, 2**32 - 1000 * MS])
def test_one_way_leaves_out_the_way_back(offset: int) -> None:
    """A clock of whole ms, which may wrap, at the other end of a 20 ms path."""
    time = every(MS, 4000)
    there = np.where(np.arange(4000) % 2000 < 1000, 20 * MS, 28 * MS)  # queue on the way there
    back = np.where(np.arange(4000) < 2000, 20 * MS, 35 * MS)
    rtt = there + back
    arrived = time.astype(np.int64) - rtt + there + offset
    clock = us(arrived // MS * MS % 2**32)
    history = laws.pert_history(params(weight=0.9), time, us(rtt), clock)
    delay = history.delay[[999, 1999, 2999, 3999]] / US_ONE / MS
    assert delay == pytest.approx([0, 8, 0, 8], abs=1.01)
    both = laws.pert_history(params(weight=0.9), time, us(rtt))
    assert both.delay[[2999, 3999]] / US_ONE / MS == pytest.approx([15, 23], abs=0.1)


@pytest.mark.parametrize("drift_ppm", [-100, 100])
def test_one_way_with_a_clock_that_drifts(drift_ppm: int) -> None:
    """A clock that runs away by 60 ms in ten minutes never makes a queue of nothing."""
    time = every(10 * MS, 60_000)
    clock = us((time.astype(np.int64) * (1_000_000 + drift_ppm) // 1_000_000 // MS * MS) % 2**32)
    rtt = np.full(60_000, 40 * MS)
    history = laws.pert_history(params(), time, us(rtt), clock)
    assert history.delay.max() / US_ONE < 1
    # nor does one that is set, by an hour, hide a queue
    rtt[30_000:] += 15 * MS
    clock[29_000:] += np.uint32(3600 * S)
    history = laws.pert_history(params(), time, us(rtt), clock)
    assert history.delay[19_000:30_000].max() / US_ONE < 1
    assert 15 - 20 * 0.1 - 1 < history.delay[32_000] / US_ONE / MS <= 15


def test_delayed_acks_are_told_by_those_before_them() -> None:
    assert laws.pert_delayed([1, 1, 1]) == [False] * 3  # nobody delays
    assert laws.pert_delayed([2, 1, 1]) == [False, True, False]
    assert laws.pert_delayed([2] * 9 + [1] * 7) == [False] * 9 + [True] * 5 + [False] * 2
    assert laws.pert_delayed([2, 0, 1]) == [False, False, True]  # SACK only: not asked about


def test_gains_of_pi() -> None:
    """K/m +- K/(2*170), the router's gains times 150 Mb/s in packets of 1000 bytes."""
    gamma, beta = laws.pert_pi_gains(laws.PertPiConfig(3 * MS, 340_000, 190_000, 170))
    model = PertPi(3e-3, 0.34, 0.19, 170)
    assert gamma * 2**-60 * S == pytest.approx(model.gamma, rel=1e-9)
    assert beta * 2**-60 * S == pytest.approx(model.beta, rel=1e-9)
    assert model.gamma == pytest.approx(1.822e-5 * 18750, rel=0.01)
    assert model.beta == pytest.approx(1.816e-5 * 18750, rel=0.01)


def test_pi_against_floating_point() -> None:
    rng = np.random.default_rng(7)
    worst = 0.0
    for _ in range(RUNS):
        config = laws.PertPiConfig(
            int(rng.integers(0, 20 * MS)),
            int(10 ** rng.uniform(4, 7)),
            int(10 ** rng.uniform(3, 5)),
            int(rng.choice([1, 100, 170, 1000])),
        )
        time = every(1, 1) + np.cumsum(rng.integers(1, 20 * MS, ACKS)).astype(np.uint64)
        delay = (np.abs(np.cumsum(rng.integers(-300, 301, ACKS))) % (30 * MS)).astype(np.uint64)
        found = laws.pert_pi_history(config, time, delay * np.uint64(US_ONE))
        model = PertPi(
            config.target / S, config.proportional / S, config.integral / S, config.sampling
        )
        acks = zip((time * np.uint64(1000)).tolist(), (delay / S).tolist(), strict=True)
        exact = np.fromiter(model.probabilities(acks), float, ACKS)
        worst = max(worst, float(np.abs(found / laws.REAL_ONE - exact).max()))
    print(f"{RUNS * ACKS} ACKs, worst error {worst:.1e}")
    assert worst < 1e-6


def test_pi_makes_up_for_a_second_at_most() -> None:
    config = laws.PertPiConfig(3 * MS, 340_000, 190_000, 170)
    delay = np.full(2, 13 * MS * US_ONE, dtype=np.uint64)
    an_hour = laws.pert_pi_history(config, every(3600 * S, 2), delay)
    assert an_hour[1] / laws.REAL_ONE == pytest.approx(0.19 * 0.01 * 1, rel=0.01)


WINDOW = 10  # packets of 1, whose ACKs come 10 ms apart: a round trip takes 100 ms


def pauses(count: int, certain: object, spacing: int = 1, coexist: bool = False) -> list[int]:
    """The ACKs responded to; their sequence numbers and times wrap."""
    una = us(np.arange(count) + 2**32 - 20)
    time = us(np.arange(count) * 10 * MS + 2**32 - S)
    sure = np.broadcast_to(np.array(certain, dtype=np.bool_), count).copy()
    return laws.pert_pauses(spacing, una, us(una + np.uint32(WINDOW)), time, sure, coexist)


@pytest.mark.parametrize("certain", [False, True])
def test_one_response_in_so_many_round_trips(certain: bool) -> None:
    for spacing in (1, 2, 3):
        assert pauses(45, certain, spacing) == list(range(0, 45, spacing * (WINDOW + 1)))


def test_coexistence_gives_up_by_and_by() -> None:
    """Twice the pause after each response in vain, to a thousand; the same where it is not."""
    apart = np.diff(pauses(100_000, True, coexist=True))
    assert list(apart[:10]) == [(WINDOW + 1) << n for n in range(1, 11)]
    assert set(apart[10:]) == {(WINDOW + 1) << 10}
    assert pauses(1000, False, coexist=True) == pauses(1000, False)


def test_coexistence_finds_its_patience_again() -> None:
    """Within seconds of a bearable delay."""
    certain = np.arange(20_000) < 10_000  # 100 s, then 100 s
    apart = np.diff([i for i in pauses(20_000, certain, coexist=True) if i > 11_000])
    assert set(apart) == {WINDOW + 1}


@pytest.mark.parametrize(("window", "after"), [(100, 65), (11, 7), (4, 3), (3, 2), (2, 2), (1, 2)])
def test_window_after_a_response(window: int, after: int) -> None:
    assert laws.pert_window(window, 0.35) == after
