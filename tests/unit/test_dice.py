# SPDX-License-Identifier: GPL-2.0-or-later
"""Hits come as independently, and as often, as if each packet drew a number of its own."""

import numpy as np
import pytest

import laws

ONE = laws.PROB_ONE
THROWS = 1 << 20
EVERY = (np.arange(THROWS, dtype=np.uint64) << np.uint64(44)) + np.uint64(1 << 43)
"""Throws spread evenly: what is found is exact, not chance."""


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
def test_each_packet_has_its_probability(shares: list[float]) -> None:
    probability = np.array([round(share * ONE) for share in shares], dtype=np.uint64)
    first = laws.dice_first(EVERY, probability)
    for packet, share in enumerate(shares):
        asked = int((first >= packet).sum())  # the throws that spared all before it
        hit = int((first == packet).sum())
        assert hit == pytest.approx(share * asked, abs=2)


def test_rounding_never_puts_a_hit_off_for_ever() -> None:
    throws = np.array([0, 1, 7], dtype=np.uint64)  # those that spare longest
    assert (laws.dice_first(throws, np.full(2000, ONE // 8, dtype=np.uint64)) < 2000).all()


def test_no_probability_never_hits() -> None:
    assert (laws.dice_first(EVERY[:1000], np.zeros(100, dtype=np.uint64)) == 100).all()
