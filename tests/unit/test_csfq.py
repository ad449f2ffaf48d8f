# SPDX-License-Identifier: GPL-2.0-or-later
"""csfq.h against the paper in floating point."""

import numpy as np
import numpy.typing as npt
import pytest

import laws
from model_csfq import Csfq, Rate

SECOND = 10**9
MS = 10**6
EVENTS = 5_000
HISTORIES = 60


def per_ns(rate: float) -> int:
    """Bytes/s as the law has them."""
    return round(rate / SECOND * laws.REAL_ONE)


def per_second(rate: laws.U64s) -> npt.NDArray[np.float64]:
    return rate.astype(float) / laws.REAL_ONE * SECOND


def test_exponentials() -> None:
    x = np.concatenate([np.geomspace(1e-14, 8192, 200_000), [0, 8192]])
    fixed = np.round(x * laws.REAL_ONE).astype(np.uint64)
    x = fixed / laws.REAL_ONE
    decay, gain = (one / laws.REAL_ONE for one in laws.csfq_exponentials(fixed))
    exact = np.divide(-np.expm1(-x), x, out=np.ones_like(x), where=x > 0)
    worst_decay, worst_gain = np.abs(decay - np.exp(-x)).max(), np.abs(gain / exact - 1).max()
    print(f"worst error of e^-x {worst_decay:.1e}, of (1 - e^-x) / x {worst_gain:.1e} of itself")
    assert worst_decay < 1e-11
    assert worst_gain < 1e-9


def test_rates_against_floating_point() -> None:
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(HISTORIES):
        k = round(10 ** rng.uniform(6.4, 11))
        gap = k * 10 ** rng.uniform(-6, 1)
        gaps = rng.exponential(gap, EVENTS) * rng.choice([0, 1, 50], EVENTS, p=[0.1, 0.899, 0.001])
        time = np.cumsum(gaps).astype(np.uint64)
        size = rng.integers(60, 65536, EVENTS, dtype=np.uint32)
        rate = per_second(laws.csfq_rates(k, time, size))
        model = Rate(k / SECOND)
        exact = np.array(
            [
                model.estimate(t / SECOND, s)
                for t, s in zip(time.tolist(), size.tolist(), strict=True)
            ]
        )
        # A time of 10^12 ns has 2^-13 ns in the model; a rate 2^-48 bytes/ns in the law.
        worst = max(worst, float((np.abs(rate - exact) / (exact + 1)).max()))
    print(f"{HISTORIES * EVENTS} packets, worst error {worst:.1e} of the rate")
    assert worst < 1e-4


@pytest.mark.parametrize("k", [10 * MS, 100 * MS, 1000 * MS])
@pytest.mark.parametrize("size", [64, 1500])
def test_check_value_of_equation_3(k: int, size: int) -> None:
    """A flow of one rate is estimated at that rate, whatever its packets and K are."""
    rate = 40_000.0  # 0.32 Mb/s: a fair share of the paper's
    count = round(20 * k / SECOND * rate / size) + 5
    time = (np.arange(1, count + 1) * (size / rate * SECOND)).astype(np.uint64)
    found = per_second(laws.csfq_rates(k, time, np.full(count, size, dtype=np.uint32)))
    assert found[-1] == pytest.approx(rate, rel=1e-5)


def test_against_floating_point() -> None:
    rng = np.random.default_rng(2)
    worst_probability = worst_fair = 0.0
    drops = turns = disagreed = 0
    for _ in range(HISTORIES):
        config = laws.CsfqConfig(0, *(round(10 ** rng.uniform(6.4, 8.5)) for _ in range(2)))
        capacity = 10 ** rng.uniform(4, 10)
        load = np.repeat(rng.uniform(0.3, 2, EVENTS // 250), 250)
        size = rng.integers(60, 1515, EVENTS).astype(np.uint32)
        gaps = rng.exponential(790 / capacity * SECOND, EVENTS) / load
        time = np.cumsum(gaps).astype(np.uint64) + np.uint64(1)
        label = np.array([per_ns(capacity * share) for share in 10 ** rng.uniform(-3, 0, EVENTS)])
        label = label.astype(np.uint64) * (rng.uniform(size=EVENTS) > 0.05).astype(np.uint64)
        random = rng.integers(0, laws.PROB_ONE, EVENTS, dtype=np.uint64)
        filled = rng.uniform(size=EVENTS) < np.repeat(rng.choice([0, 0.5, 1], EVENTS // 250), 250)
        overflow = rng.uniform(size=EVENTS) < 0.01
        c = per_ns(capacity)
        probability, fair, congested = laws.csfq_history(
            config, c, time, size, label, random, filled, overflow
        )

        model = Csfq(c / laws.REAL_ONE * SECOND, config.k_alpha / SECOND, config.k_c / SECOND)
        exact = np.zeros((EVENTS, 3))
        for i, (t, s, rate) in enumerate(
            zip(time.tolist(), size.tolist(), per_second(label).tolist(), strict=True)
        ):
            p = model.probability(rate)
            dropped = random[i] / laws.PROB_ONE < p
            model.arrive(t / SECOND, s, rate, bool(dropped or overflow[i]), bool(filled[i]))
            if overflow[i] and not dropped:
                model.overflow()
            exact[i] = p, model.alpha, model.congested
        # Where a rounding decides otherwise, all that follows is another history.
        differs = (random < probability) != (random / laws.PROB_ONE < exact[:, 0])
        differs |= congested != exact[:, 2].astype(bool)
        differs |= np.abs(per_second(fair) - exact[:, 1]) > 0.01 * capacity
        end = int(np.argmax(differs)) if differs.any() else EVENTS
        gap = np.abs(probability / laws.PROB_ONE - exact[:, 0])[:end]
        worst_probability = max(worst_probability, float(gap.max(initial=0)))
        gap = np.abs(per_second(fair) - exact[:, 1])[:end] / capacity
        worst_fair = max(worst_fair, float(gap.max(initial=0)))
        drops += int((random < probability)[:end].sum())
        turns += int(np.count_nonzero(np.diff(congested[:end].astype(int))))
        disagreed += bool(differs.any())
    print(
        f"{HISTORIES * EVENTS} packets, {drops} drops, congested or not {turns} times; worst error"
        f" of the probability {worst_probability:.1e}, of alpha {worst_fair:.1e} of the link;"
        f" {disagreed} of {HISTORIES} histories took another turn"
    )
    assert worst_probability < 1e-3
    assert worst_fair < 1e-4
    assert disagreed <= HISTORIES / 10
    assert drops > 10_000
    assert turns > 50


def test_check_value_of_equation_2() -> None:
    """Labels of once, twice and four times alpha: 0, 1/2, 3/4."""
    config = laws.CsfqConfig(0, 100 * MS, 100 * MS)
    count = 1050
    time = (np.arange(1, count + 1) * MS).astype(np.uint64)
    label = np.full(count, per_ns(1e6), dtype=np.uint64)
    label[-3:] = per_ns(1e6), per_ns(2e6), per_ns(4e6)
    never = np.full(count, laws.PROB_ONE - 1, dtype=np.uint64)
    nothing = np.zeros(count, dtype=bool)
    size = np.full(count, 1000, dtype=np.uint32)
    # an uncongested link: alpha is the largest label
    probability, fair, _ = laws.csfq_history(
        config, per_ns(1e8), time, size, label, never, nothing, nothing
    )
    assert per_second(fair)[-1] == pytest.approx(1e6, rel=1e-6)
    assert (probability[-3:] / laws.PROB_ONE).tolist() == pytest.approx([0, 0.5, 0.75], abs=1e-6)


def test_check_value_of_the_papers_first_simulation() -> None:
    """32 flows on 10 Mb/s, flow i at i times its fair share of 0.3125 Mb/s: each gets that."""
    rng = np.random.default_rng(3)
    flows, capacity, seconds, size = 32, 10e6 / 8, 20, 1000
    rates = (np.arange(flows) + 1) * capacity / flows
    comes = [rng.uniform() + np.arange(round(seconds * rate / size)) for rate in rates]
    time = np.concatenate([one * size / rate for one, rate in zip(comes, rates, strict=True)])
    flow = np.repeat(np.arange(flows), [len(one) for one in comes])
    order = np.argsort(time)
    time, flow = time[order], flow[order]
    label = np.array([per_ns(rate) for rate in rates], dtype=np.uint64)[flow]
    random = rng.integers(0, laws.PROB_ONE, len(time), dtype=np.uint64)
    yes, no = np.ones(len(time), dtype=bool), np.zeros(len(time), dtype=bool)
    config = laws.CsfqConfig(0, 100 * MS, 100 * MS)
    probability, fair, _ = laws.csfq_history(
        config, per_ns(capacity), (time * SECOND).astype(np.uint64),
        np.full(len(time), size, dtype=np.uint32), label, random, yes, no,
    )  # fmt: skip
    late = time > 5
    assert per_second(fair)[late].mean() == pytest.approx(capacity / flows, rel=0.05)
    passed = late & (random >= probability)
    got = np.bincount(flow[passed], minlength=flows) * size / (time[-1] - 5)
    np.testing.assert_allclose(got, capacity / flows, rtol=0.15)
    assert got.sum() == pytest.approx(capacity, rel=0.03)


def test_overflows_take_a_quarter_at_most() -> None:
    """One per cent each, until alpha is set anew."""
    config = laws.CsfqConfig(0, 100 * MS, 100 * MS)
    count = 400
    time = (np.arange(1, count + 1) * MS).astype(np.uint64)
    overflow = np.zeros(count, dtype=bool)
    overflow[300:] = True
    _, fair, _ = laws.csfq_history(
        config, per_ns(1e8), time, np.full(count, 1000, dtype=np.uint32),
        np.full(count, per_ns(1e6), dtype=np.uint64),
        np.full(count, laws.PROB_ONE - 1, dtype=np.uint64), np.zeros(count, dtype=bool), overflow,
    )  # fmt: skip
    before, after = per_second(fair[299:301])
    assert after == pytest.approx(0.99 * before, rel=1e-9)
    # set every 100 ms: the last time at 302 ms
    assert per_second(fair)[303:].min() == pytest.approx(0.75e6, rel=1e-6)


def test_labels() -> None:
    """A rate's label is within 2^-12 of it, from 30 bytes/s to a Tbit/s; none is 0."""
    rate = np.geomspace(30, 1.27e11, 100_000)
    label, said = laws.csfq_labels(np.array([per_ns(one) for one in rate], dtype=np.uint64))
    assert label.min() > 0
    # the lowest codes are of a rate that is known to 2^-48 bytes/ns
    assert np.abs(per_second(said) / rate - 1).max() < 2**-12 + 1e-6
    assert (np.diff(label.astype(int)) >= 0).all()
    every = np.arange(1, 65536)
    rates = ((every % 2048 + 2048) << (every // 2048 + 12)).astype(np.uint64)
    label, said = laws.csfq_labels(rates)
    np.testing.assert_array_equal(label, every)
    np.testing.assert_array_equal(said, rates)
    label, _ = laws.csfq_labels(np.array([0, 1, 2**63 - 1], dtype=np.uint64))
    assert label.tolist() == [1, 1, 65535]
