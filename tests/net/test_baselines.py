# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparators' own: what their laws are told by the queue around them."""

from collections.abc import Callable

import pytest

from bottleneck import Bottleneck
from conftest import Link
from frames import ECT0, frame
from kinds import (
    ACTIVE,
    AVPKT,
    AVQ,
    AVQ_ALPHA,
    AVQ_GAMMA,
    BANDWIDTH,
    BUFFER,
    BYTEMODE,
    CERTAIN,
    ECN,
    FRED,
    FRED_AVG,
    FRED_MAX,
    FRED_MIN,
    FRED_QWEIGHT,
    LIMIT,
    STRUCK,
    VIRTUAL_CAPACITY,
    VIRTUAL_QUEUE,
    Kind,
    Settings,
    Stat,
    real,
)
from netlink import Netlink

LENGTH = 1000  # bytes of a frame
SLOW: Settings = {BANDWIDTH: LENGTH}  # a packet a second

Make = Callable[[Kind, Settings], Bottleneck]


@pytest.fixture
def make(kernel: Netlink, link: Link) -> Make:
    return lambda kind, settings: Bottleneck(kernel, link, kind, settings)


@pytest.mark.parametrize("bytemode", [0, 1])
def test_virtual_queue_holds_what_its_buffer_says(make: Make, bytemode: int) -> None:
    """In packets of mean length, or in bytes: a longer one then takes the room of more."""
    queue = make(AVQ, {**SLOW, BUFFER: 10, AVPKT: LENGTH, BYTEMODE: bytemode})
    assert queue.send(*[frame()] * 8) == 0
    assert queue.send(frame(size=LENGTH + 500)) == 0
    assert queue.send(frame()) == bytemode
    assert queue.read().stats[VIRTUAL_QUEUE] / 256 == pytest.approx(
        9.5 if bytemode else 10, abs=0.1
    )
    assert queue.send(*[frame()] * 5) == 5
    assert queue.read().stats[Stat.PROB] == CERTAIN
    assert queue.read().stats[Stat.DROPPED] == 5 + bytemode


def test_virtual_queue_is_as_long_as_the_queue_unless_stated(make: Make) -> None:
    queue = make(AVQ, {**SLOW, LIMIT: 30, ECN: 1})
    queue.fill(30)
    assert queue.read().stats[Stat.PROB] == CERTAIN
    queue.change({**SLOW, LIMIT: 40})
    assert queue.send(*[frame(ECT0)] * 12) == 2
    assert queue.read().stats[Stat.ECN_MARK] == 0
    queue.change({**SLOW, LIMIT: 50, BUFFER: 30})
    queue.send(frame(ECT0))
    assert queue.read().stats[Stat.ECN_MARK] == 1


def test_virtual_capacity_falls_by_alpha_for_what_came(make: Make) -> None:
    settings = {BANDWIDTH: 10 * LENGTH, AVQ_ALPHA: real(0.5), AVQ_GAMMA: real(0.000001)}
    queue = make(AVQ, {**settings, AVPKT: LENGTH})
    queue.fill(10)
    assert queue.read().stats[VIRTUAL_CAPACITY] / 256 == pytest.approx(10 - 0.5 * 10, abs=0.01)
    queue.fill(20)
    assert queue.read().stats[VIRTUAL_CAPACITY] == 0


CALM: Settings = {FRED_MIN: 1000, FRED_MAX: 2000}


def flows(*numbers: int) -> list[bytes]:
    """A packet of each of these flows."""
    return [frame(version=(4, 6)[number]) for number in numbers]


def test_flows_are_counted_while_they_have_packets_queued(make: Make) -> None:
    queue = make(FRED, CALM)
    queue.send(*flows(0, 0, 0, 1))
    assert queue.read().stats[ACTIVE] == 2
    queue.open()  # lets a packet of a third flow pass, too
    assert queue.read().empty
    assert queue.read().stats[ACTIVE] == 0


def test_flows_are_counted_anew_after_a_change(make: Make) -> None:
    """The oldest packets are cut off, or the unit changes."""
    queue = make(FRED, {**CALM, LIMIT: 60})
    queue.send(*flows(*[0] * 20, *[1] * 5))
    queue.change({LIMIT: 5})
    assert queue.read().stats[ACTIVE] == 1
    queue.change({LIMIT: 60, BYTEMODE: 1, AVPKT: LENGTH})
    queue.change({FRED_MIN: 6})
    assert queue.send(*flows(1, 1, 1)) == 2
    assert queue.read().stats[STRUCK] == 2
    queue.change({FRED_MIN: 8})
    assert queue.send(*flows(1)) == 1  # with two strikes it gets no more than the average
    assert queue.send(*flows(0)) == 0
    queue.open()
    assert (queue.read().stats[ACTIVE], queue.read().empty) == (0, True)


def test_a_flow_alone_has_min_packets_at_most(make: Make) -> None:
    queue = make(FRED, {FRED_MIN: 10, FRED_MAX: 100, ECN: 1})
    assert queue.send(*flows(*[0] * 15)) == 5
    assert queue.read().stats[Stat.DROPPED] == queue.read().stats[STRUCK] == 5
    assert queue.send(frame(ECT0)) == 0
    assert queue.read().stats[Stat.ECN_MARK] == 1
    assert queue.send(*flows(1)) == 0


def test_departures_are_averaged(make: Make) -> None:
    queue = make(FRED, {**CALM, FRED_QWEIGHT: real(0.5)})
    queue.fill(20)
    before = queue.read().stats[FRED_AVG] / 256
    assert 17 < before < 19
    queue.open()
    assert queue.read().stats[FRED_AVG] / 256 < 1.1
