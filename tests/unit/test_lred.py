# SPDX-License-Identifier: GPL-2.0-or-later
"""lred.h against the paper in floating point."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laws
from model_lred import Lred

EVENTS = 20_000
HISTORIES = 150  # 3 million arrivals
SECOND = 10**9


def config(
    target: int = 100,
    periods: int = 4,
    period: int = SECOND,
    beta: float = 0.001,
    weight: float = 0.1,
) -> laws.LredConfig:
    return laws.LredConfig(
        target=target,
        periods=periods,
        period=period,
        beta=round(beta * laws.REAL_ONE),
        weight=round(weight * laws.REAL_ONE),
    )


def arrivals(
    rng: np.random.Generator, mean_gap: float, target: int, unit: int
) -> tuple[laws.U64s, laws.U64s, npt.NDArray[np.bool_]]:
    """Times, backlogs and losses of packets, the losses rare and common by turns, with silences."""
    gaps = rng.exponential(mean_gap, EVENTS)
    gaps *= rng.choice([0, 1, 300], EVENTS, p=[0.1, 0.898, 0.002])
    share = np.repeat(10 ** rng.uniform(-5, 0, EVENTS // 1000), 1000)
    return (
        np.cumsum(gaps).astype(np.uint64),
        rng.integers(0, 4 * target * unit, EVENTS).astype(np.uint64),
        rng.uniform(size=EVENTS) < share,
    )


def test_against_floating_point() -> None:
    rng = np.random.default_rng(1)
    worst_ratio = worst_probability = 0.0
    for _ in range(HISTORIES):
        law = config(
            target=int(rng.integers(1, 1000)),
            periods=int(rng.integers(1, 65)),
            period=round(10 ** rng.uniform(6, 9)),
            beta=10 ** rng.uniform(-6, 1),
            weight=rng.uniform(0, 0.99),
        )
        unit = int(rng.choice([1, 512]))
        time, backlog, lost = arrivals(rng, law.period / 10 ** rng.uniform(0, 3), law.target, unit)
        ratio, probability = laws.lred_history(law, unit, time, backlog, lost)
        beta, weight = law.beta / laws.REAL_ONE, law.weight / laws.REAL_ONE
        model = Lred(law.target, law.periods, law.period, beta, weight)
        history = zip(time.tolist(), lost.tolist(), strict=True)
        exact = np.fromiter(model.loss_ratios(history), float, EVENTS)
        mismatch = backlog.astype(float) / unit - law.target
        p = np.clip(exact + model.beta * np.sqrt(exact) * mismatch, 0, 1)
        # One unit of 2^-48 and one rounding a period, forgotten at 1 - weight.
        measured = ratio / laws.REAL_ONE
        error = np.abs(measured - exact) * (1 - model.weight) * 2**48
        worst_ratio = max(worst_ratio, float(error.max()))
        # The root's 2^-31, what it makes of the ratio's error, and the gain's 2^-48.
        root_error = 2**-31 + np.abs(np.sqrt(measured) - np.sqrt(exact))
        bound = 2 * 2**-32 + np.abs(mismatch) * (model.beta * root_error + unit * 2**-47)
        share = np.abs(probability / laws.PROB_ONE - p) / bound
        worst_probability = max(worst_probability, float(share.max()))
    print(
        f"{HISTORIES * EVENTS} arrivals, worst error of the loss ratio {worst_ratio:.2f} units of"
        f" 2^-48 / (1 - w), of the probability {worst_probability:.2f} of its bound"
    )
    assert worst_ratio < 4
    assert worst_probability <= 1


@given(
    seed=st.integers(0, 2**32 - 1),
    periods=st.integers(1, 64),
    period=st.integers(10**6, 10**11),
    weight=st.floats(0, 0.99),
    packets=st.floats(0.001, 1000),
)
def test_lazy_equals_eager(
    seed: int, periods: int, period: int, weight: float, packets: float
) -> None:
    """To the last bit, whatever the parameters."""
    law = config(periods=periods, period=period, weight=weight)
    data = arrivals(np.random.default_rng(seed), min(period / packets, 1e13), law.target, 1)
    data = (data[0][:2000], data[1][:2000], data[2][:2000])
    lazy = laws.lred_history(law, 1, *data)
    eager = laws.lred_history(law, 1, *data, eager=True)
    np.testing.assert_array_equal(lazy, eager)


def test_without_losses_it_is_a_drop_tail_queue() -> None:
    time = np.arange(1000, dtype=np.uint64) * np.uint64(SECOND // 100)
    full = np.full(1000, 10**6, dtype=np.uint64)
    ratio, probability = laws.lred_history(config(), 1, time, full, np.zeros(1000, dtype=bool))
    assert not ratio.any() and not probability.any()


@pytest.mark.parametrize("weight", [0, 0.1, 0.5, 0.99])
def test_one_loss_in_2_to_the_60_ends_that(weight: float) -> None:
    """Rounding never makes a loss ratio of zero permanent, and counts pass 32 bits."""
    law = config(weight=weight)
    assert laws.lred_ratio_after(law, 1 << 60, 1) > 0
    assert laws.lred_ratio_after(law, 1 << 60, 0) == 0
    exact = (1 - law.weight / laws.REAL_ONE) / 2 * 2**48
    assert laws.lred_ratio_after(law, 1 << 60, 1 << 59) == pytest.approx(exact, abs=2)
    assert laws.lred_ratio_after(law, 1 << 33, 1 << 33) <= laws.REAL_ONE


def test_months_of_silence() -> None:
    """The loss ratio comes down to zero: LRED starts anew as DropTail."""
    month = 30 * 86400 * SECOND
    time = np.array([0, SECOND, 3 * month, 3 * month + SECOND], dtype=np.uint64)
    backlog = np.full(4, 150, dtype=np.uint64)
    lost = np.array([True, True, False, False])
    for weight in (0.1, 0.99):
        law = config(weight=weight)
        ratio, probability = laws.lred_history(law, 1, time, backlog, lost)
        assert ratio[1] == pytest.approx((1 - weight) * laws.REAL_ONE, abs=3)
        assert ratio[2] == ratio[3] == probability[2] == 0


def test_check_value_of_theorem_2() -> None:
    """beta+ for N = 300, C = 2500/s, R = 0.35 s; (2N)^2 as in Lemma 5, not the printed (2N)^4."""
    eta, flows, capacity, rtt = 1.5, 300, 2500, 0.35
    assert math.sqrt(2 * eta) * (2 * flows) ** 2 / (rtt * capacity) ** 3 == pytest.approx(
        9.31e-4, abs=5e-7
    )
