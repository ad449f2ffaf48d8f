# SPDX-License-Identifier: GPL-2.0-or-later
"""LRED's law in the kernel, against the paper's equations in floating point."""

import math
import time
from collections.abc import Callable

import pytest

from bottleneck import Bottleneck
from conftest import Link
from frames import ECT0, frame
from kinds import (
    ARRIVALS,
    AVPKT,
    BETA,
    BYTEMODE,
    CERTAIN,
    ECN,
    LIMIT,
    LOSS_RATIO,
    LRED,
    MS,
    PERIOD,
    PERIODS,
    PROTECT,
    TARGET,
    WEIGHT,
    Settings,
    Stat,
    real,
)
from netlink import Netlink

LENGTH = 1000  # bytes of a frame
PERIOD_S = 0.01
# The statistics are cut to 32 bits after the point.
CLOSE = 2**-31
MEASURING: Settings = {PERIOD: 10 * MS, PERIODS: 3, WEIGHT: real(0.25), TARGET: 1}

Make = Callable[[Settings], Bottleneck]


@pytest.fixture
def make(kernel: Netlink, link: Link) -> Make:
    return lambda settings: Bottleneck(kernel, link, LRED, settings)


def loss_ratio(queue: Bottleneck) -> float:
    return queue.read().stats[LOSS_RATIO] / CERTAIN


def probability(queue: Bottleneck) -> float:
    return queue.read().stats[Stat.PROB] / CERTAIN


def equation_3(loss_ratio: float, beta: float, mismatch: float) -> float:
    return min(1.0, max(0.0, loss_ratio + beta * math.sqrt(loss_ratio) * mismatch))


class Ratio:
    """Equations (1) and (2), period by period."""

    def __init__(self, periods: int, weight: float) -> None:
        self._counts = [(0, 0)] * periods
        self._weight = weight
        self.value = 0.0

    def end_period(self, arrived: int, lost: int) -> float:
        self._counts = [*self._counts[1:], (arrived, lost)]
        all_arrived, all_lost = (sum(counts) for counts in zip(*self._counts, strict=True))
        measured = all_lost / all_arrived if all_arrived else 0.0
        self.value = self._weight * self.value + (1 - self._weight) * measured
        return self.value


def test_loss_ratio_follows_the_paper(make: Make) -> None:
    """Of a queue that loses to its limit what the test sends too much."""
    queue = make({**MEASURING, LIMIT: 20, BETA: real(0.000001)})
    queue.fill(20)
    time.sleep(4 * PERIOD_S + PERIOD_S / 2)
    assert loss_ratio(queue) == 0
    model = Ratio(3, 0.25)
    arrived = 20
    for count in (7, 0, 1, 30, 0, 0, 0, 0, 5, 5, 5, 5, 0, 0):
        assert queue.send(*[frame()] * count) == count
        arrived += count
        assert loss_ratio(queue) == pytest.approx(model.value, abs=CLOSE)
        time.sleep(PERIOD_S)
        assert loss_ratio(queue) == pytest.approx(model.end_period(count, count), abs=CLOSE)
    stats = queue.read().stats
    assert stats[ARRIVALS] == arrived
    assert arrived == stats[Stat.PKTS_IN] + stats[Stat.OVERLIMIT] + stats[Stat.DROPPED]


def test_several_periods_end_at_once(make: Make) -> None:
    queue = make({**MEASURING, LIMIT: 20})
    queue.fill(19)
    queue.send(*[frame()] * 6)
    model = Ratio(3, 0.25)
    model.end_period(25, 5)
    for _ in range(4):
        model.end_period(0, 0)
    time.sleep(5 * PERIOD_S + 0.001)
    assert loss_ratio(queue) == pytest.approx(model.value, abs=CLOSE)
    time.sleep(100)
    assert loss_ratio(queue) == 0
    # and it learns again
    assert queue.send(*[frame()] * 6) == 6
    time.sleep(PERIOD_S)
    assert loss_ratio(queue) == pytest.approx(0.75, abs=CLOSE)


def test_starts_as_drop_tail_and_learns_from_its_first_overflow(make: Make) -> None:
    queue = make({LIMIT: 60, TARGET: 10, BETA: real(0.01)})
    queue.fill(60)
    time.sleep(100)
    assert (loss_ratio(queue), probability(queue)) == (0, 0)
    assert queue.send(frame()) == 1
    assert queue.read().stats[Stat.OVERLIMIT] == 1
    time.sleep(1)
    learnt = loss_ratio(queue)
    # one period of M has arrivals in it: what was lost of them counts whole
    assert learnt == pytest.approx(0.9, abs=CLOSE)
    assert probability(queue) == pytest.approx(equation_3(0.9, 0.01, 50), abs=1e-6)


def at_loss_ratio(make: Make, settings: Settings, packets: int, accepted: int) -> Bottleneck:
    """A queue with so many packets, which lost one of the `accepted` + 1 last ones, for good."""
    first = {LIMIT: packets, TARGET: packets - 1, PERIOD: 10 * MS, PERIODS: 1, WEIGHT: 0}
    queue = make({**first, BETA: real(0.000001)})
    queue.fill(packets - accepted)
    time.sleep(1.5 * PERIOD_S)
    queue.fill(accepted)
    assert queue.send(frame()) == 1
    time.sleep(PERIOD_S)
    queue.change({PERIOD: 100_000 * MS, LIMIT: 100_000, **settings})
    assert loss_ratio(queue) == pytest.approx(1 / (accepted + 1), abs=CLOSE)
    return queue


@pytest.mark.parametrize(
    ("packets", "target", "beta"),
    [(50, 40, 0.001), (50, 60, 0.001), (50, 50, 0.001), (50, 99, 0.01), (99, 1, 0.1), (50, 20, 1)],
)
def test_probability_is_that_of_the_paper(
    make: Make, packets: int, target: int, beta: float
) -> None:
    queue = at_loss_ratio(make, {TARGET: target, BETA: real(beta)}, packets, 24)
    expected = equation_3(1 / 25, beta, packets - target)
    assert probability(queue) == pytest.approx(expected, abs=1e-8)


def test_probability_is_that_of_the_queue_an_arrival_finds(make: Make) -> None:
    queue = at_loss_ratio(make, {TARGET: 10, BETA: real(0.01)}, 30, 19)
    before = probability(queue)
    assert before == pytest.approx(equation_3(0.05, 0.01, 20), abs=1e-8)
    while queue.send(frame()):
        pass
    step = 0.01 * math.sqrt(0.05)
    assert probability(queue) == pytest.approx(before + step, abs=1e-8)


def test_bytemode_counts_bytes(make: Make) -> None:
    settings = {TARGET: 10, BETA: real(0.01), AVPKT: 500, BYTEMODE: 1}
    queue = at_loss_ratio(make, settings, 30, 19)
    expected = equation_3(0.05, 0.01, 30 * LENGTH / 500 - 10)
    assert probability(queue) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("ecn", "tos", "fate"),
    [(0, ECT0, Stat.DROPPED), (1, 0, Stat.DROPPED), (1, ECT0, Stat.ECN_MARK)],
)
def test_packets_are_hit_with_the_probability(make: Make, ecn: int, tos: int, fate: Stat) -> None:
    # so small a gain that the growing queue does not matter
    settings = {TARGET: 20, BETA: real(0.000001), ECN: ecn}
    queue = at_loss_ratio(make, settings, 20, 19)
    before = queue.read().stats
    count, chance = 10_000, 1 / 20
    queue.send(*[frame(tos)] * count)
    stats = queue.read().stats
    hit = stats[fate] - before[fate]
    # at most 0.011 of 0.05 more, when all are queued
    most = equation_3(chance, 0.000001, count)
    spread = 4.5 * math.sqrt(count * most * (1 - most))
    assert count * chance - spread < hit < count * most + spread
    assert stats[Stat.DROPPED] + stats[Stat.ECN_MARK] == hit
    assert stats[Stat.OVERLIMIT] == before[Stat.OVERLIMIT]
    assert stats[ARRIVALS] - before[ARRIVALS] == count


@pytest.mark.parametrize(
    ("ecn", "tos", "counts"),
    [(0, 0, True), (1, 0, True), (1, ECT0, True), (0, 46 << 2, False), (1, 46 << 2 | ECT0, False)],
    ids=["drop", "drop with ecn", "mark", "spared", "spared with ecn"],
)
def test_what_counts_as_lost(make: Make, ecn: int, tos: int, counts: bool) -> None:
    """Drops and marks do; a packet that its code point spares does not."""
    settings = {TARGET: 1, BETA: real(1000), ECN: ecn, PROTECT: 46, PERIOD: 10 * MS, PERIODS: 1}
    queue = at_loss_ratio(make, settings, 20, 19)
    assert probability(queue) == 1
    queue.send(*[frame(tos)] * 30)
    time.sleep(1.5 * PERIOD_S)
    assert loss_ratio(queue) == pytest.approx(float(counts), abs=CLOSE)


def test_a_change_keeps_the_average_and_starts_to_count_anew(make: Make) -> None:
    queue = at_loss_ratio(make, {TARGET: 10}, 30, 19)
    queue.change({PERIOD: 10 * MS, PERIODS: 1, WEIGHT: real(0.5), LIMIT: 30})
    queue.send(*[frame()] * 50)
    queue.change({ECN: 1})
    time.sleep(PERIOD_S + 0.001)
    assert loss_ratio(queue) == pytest.approx(0.025, abs=CLOSE)
