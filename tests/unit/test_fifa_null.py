# SPDX-License-Identifier: GPL-2.0-or-later
"""FIFA's null model, where it can be told without a computer."""

import pytest

from aqmlab.metrics import null_model_jain
from fifa_null import exponents, fifa_null_jain, shares

RTTS = [0.04 + 0.01 * flow for flow in range(30)]


def test_exponents_are_those_in_force() -> None:
    assert exponents("fifa base red limit 1000") == (0.65, 1.4)
    assert exponents("fifa base red ecn") == (1.6, 1.4)
    assert exponents("fifa base pi exponent-robust 1.5 exponent-fragile 2 ecn") == (1.5, 2.0)
    assert exponents("fifa base pi noscale exponent-robust 1.5") == (0.0, 0.0)
    assert exponents("sfq limit 120") == (0.0, 0.0)


def test_without_scaling_it_is_the_common_null_model() -> None:
    assert fifa_null_jain(RTTS, 0.02, 0, 0) == pytest.approx(
        null_model_jain([rtt + 0.02 for rtt in RTTS])
    )


def test_an_exponent_of_2_makes_up_for_any_rtt() -> None:
    assert fifa_null_jain(RTTS, 0.0, 2, 2) == pytest.approx(1)


def test_a_label_average_of_its_own_shares() -> None:
    """Two flows, R_formula between them: x (R_1 + q) sqrt((F/R_1)^a) is y (R_2 + q) sqrt(...)."""
    near, far = shares([1.0, 4.0], 0.5, 1.0, 2.0)
    formula = near * 1.0 + far * 4.0
    left = near * (1.0 + 0.5) * formula**0.5
    right = far * (4.0 + 0.5) * (formula / 4.0)
    assert left == pytest.approx(right)
    assert near + far == pytest.approx(1)
