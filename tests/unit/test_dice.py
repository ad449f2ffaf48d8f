# SPDX-License-Identifier: GPL-2.0-or-later
"""Hits come as independently, and as often, as if each packet drew a number of its own."""

import numpy as np
import pytest

import laws

ONE = laws.PROB_ONE
THROWS = 1 << 20
EVERY = (np.arange(THROWS, dtype=np.uint64) << np.uint64(44)) + np.uint64(1 << 43)
"""Throws spread evenly: what is found is exact, not chance."""


WHOLES = (1.0, 0.75, 0.01)


def fixed(shares: list[float]) -> laws.U64s:
    return np.array([round(share * ONE) for share in shares], dtype=np.uint64)


@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize(
    "shares",
    [
        [0.5] * 10,
        [0.01] * 400,
        [0.0, 0.3, 0.0, 1e-3, 0.9, 0.05, 0.0, 0.5],
        [1.0],
        [0.2, 1.0],
        np.random.default_rng(1).uniform(0, 0.1, 200).tolist(),
    ],
)
def test_each_packet_has_its_probability(shares: list[float], whole: float) -> None:
    first = laws.dice_first(
        EVERY, fixed([share * whole for share in shares]), fixed([whole] * len(shares))
    )
    for packet, share in enumerate(shares):
        asked = int((first >= packet).sum())  # the throws that spared all before it
        hit = int((first == packet).sum())
        assert hit == pytest.approx(share * asked, abs=2)


def test_red_spreads_its_hits_evenly() -> None:
    """After RED's count: 1/100 of 1, of 99/100, of 98/100 and so on."""
    left = [(100 - packet) / 100 for packet in range(100)]
    first = laws.dice_first(EVERY, fixed([0.01] * 100), fixed(left))
    counts = np.bincount(first.astype(np.int64), minlength=100)
    assert counts == pytest.approx(np.full(100, THROWS / 100), abs=3)


@pytest.mark.parametrize("whole", WHOLES)
def test_rounding_never_puts_a_hit_off_for_ever(whole: float) -> None:
    throws = np.array([0, 1, 7], dtype=np.uint64)  # those that spare longest
    packets = 5000
    first = laws.dice_first(throws, fixed([whole / 8] * packets), fixed([whole] * packets))
    assert (first < packets).all()


def test_no_probability_never_hits() -> None:
    assert (laws.dice_first(EVERY[:1000], fixed([0.0] * 100), fixed([1.0] * 100)) == 100).all()
