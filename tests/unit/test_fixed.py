# SPDX-License-Identifier: GPL-2.0-or-later
"""fixed.h against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import laws

U64 = st.integers(0, 2**64 - 1)
S64_MAX = 2**63 - 1


@given(U64, U64, st.integers(0, 64))
def test_mul_rounds_to_nearest_or_saturates(a: int, b: int, shift: int) -> None:
    exact = Fraction(a * b, 1 << shift)
    got = laws.mul(a, b, shift)
    if got == S64_MAX:
        assert exact > 2**60
    else:
        assert abs(got - exact) <= Fraction(1, 2)


@given(st.integers(-S64_MAX, S64_MAX), U64, st.integers(0, 64))
def test_smul_is_odd(a: int, b: int, shift: int) -> None:
    assert laws.smul(a, b, shift) == -laws.smul(-a, b, shift)
    assert laws.smul(abs(a), b, shift) == laws.mul(abs(a), b, shift)


def test_log2() -> None:
    rng = np.random.default_rng(1)
    x = (2 ** rng.uniform(48, 64, 200_000)).astype(np.uint64)
    x[:3] = 1 << 48, (1 << 48) + 1, 2**64 - 1
    got = laws.log2(x)
    # log1p keeps its precision just above one, where log2 loses it.
    exact = [math.log1p(float(v - (1 << 48)) / 2**48) / math.log(2) * 2**48 for v in x.tolist()]
    error = got.astype(float) - np.array(exact)
    print(f"log2: error {error.min():.2f} to {error.max():.2f} units of 2^-48")
    # One unit below at most, and the double's own rounding at 16 * 2^48.
    assert error.min() > -1.6 and error.max() < 0.6


def test_exp2() -> None:
    rng = np.random.default_rng(2)
    one = 1 << 40
    x = np.concatenate(
        [
            rng.integers(-35 * one, 32 * one, 1_000_000),
            rng.integers(-(1 << 20), 1 << 20, 100_000),
            np.arange(-36, 32) * one,
            np.array([-(2**63) + 1]),
        ]
    )
    got = laws.exp2(x).astype(float)
    exact = np.exp2(x.astype(float) / one) * 2**32
    worst = (np.abs(got - exact) / (1 + exact * 3e-12)).max()
    print(f"exp2: worst error {worst:.3f} units of 2^-32 and of 3e-12")
    assert worst <= 1
    assert laws.exp2(np.array([0]))[0] == 1 << 32
    assert laws.exp2(np.array([32 * one, 2**63 - 1])).tolist() == [2**64 - 1] * 2
    ordered = laws.exp2(np.sort(x))
    assert np.all(ordered[1:] >= ordered[:-1]), "not monotone"
