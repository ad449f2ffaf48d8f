# SPDX-License-Identifier: GPL-2.0-or-later
"""fifa.h against the paper in floating point."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import laws
from model_fifa import RoundTripTime, scaled

RTT_ONE = 1 << 32  # 0.1 ms
EVENTS = 20_000
HISTORIES = 100  # 2 million packets


def params(
    robust: float = 0.65,
    fragile: float = 1.40,
    weight: float = 0.1,
    low: int = 1,
    high: int = 65535,
) -> laws.FifaParams:
    def exponents(drop: float, mark: float) -> tuple[int, int]:
        return round(drop * laws.REAL_ONE), round(mark * laws.REAL_ONE)

    return laws.FifaParams(
        exponents(robust, 1.60), exponents(fragile, 1.40), low, high, round(weight * laws.REAL_ONE)
    )


@pytest.mark.parametrize(
    ("rtt", "mark", "expected"),
    [(500, False, 0.01569), (500, True, 0.03031), (2000, False, 0.003789), (2000, True, 0.003789)],
)
def test_check_values(rtt: int, mark: bool, expected: float) -> None:
    """base 0.01, R_formula 100 ms."""
    p = laws.fifa_scaled(params(), 1000 * RTT_ONE, round(0.01 * laws.PROB_ONE), rtt, mark)
    assert p / laws.PROB_ONE == pytest.approx(expected, abs=5e-6)


@settings(max_examples=3000)
@given(
    formula=st.integers(RTT_ONE, 65535 * RTT_ONE),
    probability=st.integers(0, laws.PROB_ONE),
    label=st.integers(1, 65535),
    robust=st.floats(0, 4),
    fragile=st.floats(0, 4),
)
def test_power_law(
    formula: int, probability: int, label: int, robust: float, fragile: float
) -> None:
    """Within 1.5 units of 2^-32, and 6e-12 of the factor, for every exponent from 0 to 4."""
    law = params(robust, fragile)
    got = laws.fifa_scaled(law, formula, probability, label, False)
    exact = scaled(
        probability / laws.PROB_ONE,
        formula / RTT_ONE,
        label,
        law.robust[0] / laws.REAL_ONE,
        law.fragile[0] / laws.REAL_ONE,
    )
    assert abs(got / laws.PROB_ONE - exact) <= 1.5 * 2**-32 + 6e-12 * exact


def test_round_trip_times_against_floating_point() -> None:
    rng = np.random.default_rng(4)
    worst = 0.0
    moves = 0
    for _ in range(HISTORIES):
        law = params(weight=10 ** rng.uniform(-3, 0))
        # Flows come and go: the mix of labels changes every thousand packets.
        low = np.repeat(rng.integers(1, 3000, EVENTS // 1000), 1000)
        label = (low + rng.integers(0, 3000, EVENTS)).astype(np.uint16)
        time = np.cumsum(rng.exponential(10 ** rng.uniform(4, 7), EVENTS)).astype(np.uint64)
        average, formula = laws.fifa_history(law, time, label)
        model = RoundTripTime(law.rtt_weight / laws.REAL_ONE)
        packets = zip((time / 1e6).tolist(), (label / 10).tolist(), strict=True)
        exact = np.array(list(model.run(packets)))
        got = np.stack([average, formula], axis=1) / RTT_ONE / 10
        worst = max(worst, float(np.abs(got - exact).max()))
        moves += int((np.diff(formula.astype(np.int64)) != 0).sum())
    print(
        f"{HISTORIES * EVENTS} packets, R_formula moved {moves} times, worst error {worst:.1e} ms"
    )
    assert worst < 1e-5
    assert moves > 100


def test_claims_are_clamped() -> None:
    label = np.array([1, 65535, 500], dtype=np.uint16)
    time = np.arange(3, dtype=np.uint64)
    average, _ = laws.fifa_history(params(weight=1, low=100, high=1000), time, label)
    assert (average / RTT_ONE).tolist() == [100, 1000, 500]
