# SPDX-License-Identifier: GPL-2.0-or-later
"""pi.h against the paper in floating point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laws
from model_pi import Pi

EVENTS = 20_000
HISTORIES = 100  # 2 million changes of the queue


def config(target: int, interval: int, a: float, b: float) -> laws.PiConfig:
    return laws.PiConfig(target, interval, round(a * laws.REAL_ONE), round(b * laws.REAL_ONE))


def queue(
    rng: np.random.Generator, mean_gap: float, target: int, unit: int, events: int
) -> tuple[laws.U64s, laws.U64s]:
    """Times and sizes of a queue that wanders about its target."""
    gaps = rng.exponential(mean_gap, events) * rng.choice([0, 1, 1, 1, 20], events)
    size = np.abs(target + np.cumsum(rng.integers(-3, 4, events)) % (2 * target + 1) - target)
    return np.cumsum(gaps).astype(np.uint64), (size * unit).astype(np.uint64)


def test_against_floating_point() -> None:
    rng = np.random.default_rng(3)
    worst = worst_share = 0.0
    steps = 0
    for _ in range(HISTORIES):
        b = 10 ** rng.uniform(-6, -2)
        law = config(
            int(rng.integers(1, 500)),
            round(10 ** rng.uniform(5, 8)),
            b * (1 + 10 ** rng.uniform(-4, -1)),
            b,
        )
        unit = int(rng.choice([1, 1500]))  # in packets it is exact
        time, backlog = queue(
            rng, law.interval * 10 ** rng.uniform(-2, 1), law.target, unit, EVENTS
        )
        probability = laws.pi_history(law, unit, time, backlog)
        model = Pi(law.target, law.interval, law.a / laws.REAL_ONE, law.b / laws.REAL_ONE)
        changes = zip(time.tolist(), (backlog / unit).tolist(), strict=True)
        exact = np.fromiter(model.probabilities(changes), float, EVENTS)
        # Two roundings a step, and the gains' own.
        done = time.astype(float) / law.interval + 1
        bound = done * (2**-48 + 3 * law.target * unit * 2**-60)
        error = np.abs(probability / laws.REAL_ONE - exact)
        worst = max(worst, float(error.max()))
        worst_share = max(worst_share, float((error / bound).max()))
        steps += int(done[-1])
    print(
        f"{HISTORIES * EVENTS} changes, {steps} steps, worst error {worst:.1e},"
        f" {worst_share:.2f} of its bound"
    )
    assert worst_share <= 1
    assert worst < 1e-6


@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.integers(1, 10**6),
    interval=st.integers(10**5, 10**9),
    b=st.floats(1e-9, 1),
    excess=st.floats(1e-9, 1),
    unit=st.sampled_from([1, 64, 1500]),
)
def test_lazy_equals_eager(
    seed: int, target: int, interval: int, b: float, excess: float, unit: int
) -> None:
    """To the last bit, whatever the parameters."""
    data = queue(np.random.default_rng(seed), 5 * interval, target, unit, 500)
    law = config(target, interval, b + excess, b)
    lazy = laws.pi_history(law, unit, *data)
    eager = laws.pi_history(law, unit, *data, eager=True)
    np.testing.assert_array_equal(lazy, eager)


def test_a_year_of_silence() -> None:
    year = 365 * 86400 * 10**9
    law = config(50, 10**9 // 170, 1.822e-5, 1.816e-5)
    time = np.array([0, 10**11, year, 2 * year], dtype=np.uint64)
    probability = laws.pi_history(law, 1, time, np.array([1000, 0, 10**6, 0], dtype=np.uint64))
    assert probability[1] == pytest.approx(
        laws.REAL_ONE * (950 * (1.822e-5 + 6e-8 * (17000 - 1)) + 50 * 1.816e-5), rel=1e-3
    )
    assert probability[2] == 0 and probability[3] == laws.REAL_ONE


def test_a_fall_is_answered_however_large_gain_and_queue() -> None:
    """p + a 8950 - b 999950, for a = 2: the terms may not cancel for being large."""
    law = config(50, 10**9 // 170, 2, 1.998)
    time = np.array([0, 10**8, 18 * law.interval], dtype=np.uint64)
    backlog = np.array([10**6, 9000, 9000], dtype=np.uint64)
    probability = laws.pi_history(law, 1, time, backlog)
    assert probability[1] == laws.REAL_ONE and probability[2] == 0
