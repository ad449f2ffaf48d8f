# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparators' own: what their laws are told by the queue around them."""

import time
from collections.abc import Callable

import pytest

from bottleneck import Bottleneck
from conftest import Link
from frames import ECT0, frame
from kinds import (
    ACTIVE,
    ARRIVAL_RATE,
    AVPKT,
    AVQ,
    AVQ_ALPHA,
    AVQ_GAMMA,
    BANDWIDTH,
    BUFFER,
    BYTEMODE,
    CERTAIN,
    CONGESTED,
    CORE,
    CSFQ,
    ECN,
    EDGE,
    FAIR_RATE,
    FRED,
    FRED_AVG,
    FRED_MAX,
    FRED_MIN,
    FRED_QWEIGHT,
    K_C,
    LABELLED,
    LIMIT,
    MS,
    ROLE,
    STRUCK,
    THRESHOLD,
    UNLABELLED,
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


@pytest.mark.parametrize(("ecn", "left"), [(1, 0), (0, 5)])
def test_marked_packets_count_for_the_virtual_capacity(make: Make, ecn: int, left: int) -> None:
    """Dropped ones do not."""
    settings = {BANDWIDTH: 10 * LENGTH, AVQ_ALPHA: real(0.5), AVQ_GAMMA: real(0.000001)}
    queue = make(AVQ, {**settings, AVPKT: LENGTH, BUFFER: 10, ECN: ecn})
    queue.fill(10)
    assert queue.send(*[frame(ECT0)] * 20) == (0 if ecn else 20)
    assert queue.read().stats[VIRTUAL_CAPACITY] / 256 == pytest.approx(left, abs=0.01)


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


UNKNOWN: Settings = {K_C: 10_000 * MS}  # alpha is, so long
LABEL_AT = 14 + 4  # bytes of a frame before the Identification


def label_for(rate: float) -> int:
    """The label that says so many bytes a second: (2048 + m) 2^(e - 36) bytes/ns."""
    exponent = 0
    while (mantissa := rate * 1e-9 * 2.0 ** (36 - exponent)) >= 4096:
        exponent += 1
    return exponent << 11 | round(mantissa) - 2048


def rate_of(data: bytes) -> float:
    """What the label of a packet says, in bytes a second."""
    label = int.from_bytes(data[LABEL_AT : LABEL_AT + 2], "big")
    return (2048 + label % 2048) * 2.0 ** (label // 2048 - 36) * 1e9 if label else 0.0


def stream(queue: Bottleneck, data: bytes, rate: float, seconds: float) -> int:
    """Send a frame again and again at so many bytes a second; return how many were refused."""
    refused = 0
    for _ in range(round(seconds * rate / LENGTH)):
        refused += queue.send(data)
        time.sleep(LENGTH / rate)
    return refused


def test_an_edge_labels_packets_with_the_rate_of_their_flow(make: Make) -> None:
    queue = make(CSFQ, {ROLE: EDGE, LIMIT: 1000, **UNKNOWN})
    assert stream(queue, frame(number=1), 100_000, 1) == 0
    assert stream(queue, frame(number=2), 20_000, 1) == 0
    assert queue.send(frame(version=6), frame(number=3, fragment=0)) == 0
    stats = queue.read().stats
    assert (stats[LABELLED], stats[UNLABELLED]) == (120, 2)
    queue.open()
    came = queue.received()
    assert rate_of(came[99]) == pytest.approx(100_000, rel=0.001)
    assert rate_of(came[119]) == pytest.approx(20_000, rel=0.01)
    assert came[120:] == [frame(version=6), frame(number=3, fragment=0)]


def test_without_a_core_behind_packets_stay_as_they_are(make: Make) -> None:
    queue = make(CSFQ, {LIMIT: 1000, **UNKNOWN})
    assert stream(queue, frame(label=77), 100_000, 0.5) == 0
    queue.open()
    assert queue.received() == [frame(label=77)] * 50


def test_the_core_drops_what_exceeds_the_fair_rate_and_labels_the_rest(make: Make) -> None:
    """Eq. (2): three quarters of packets that are labelled with four times alpha."""
    queue = make(CSFQ, {ROLE: CORE, LIMIT: 1000, **UNKNOWN})
    fair, fast = (frame(label=label_for(rate)) for rate in (50_000, 200_000))
    stream(queue, fair, 10_000, 10.1)  # the largest label within k-c
    assert queue.read().stats[FAIR_RATE] == pytest.approx(50_000, rel=0.001)
    count = 800
    refused = sum(queue.send(fast) for _ in range(count))
    assert queue.read().stats[Stat.PROB] / CERTAIN == pytest.approx(0.75, abs=0.001)
    assert refused == pytest.approx(0.75 * count, abs=60)
    assert queue.send(*[frame()] * 20) == 0  # of unlabelled packets nothing is known
    stats = queue.read().stats
    assert (stats[Stat.DROPPED], stats[UNLABELLED]) == (refused, 20)
    queue.open()
    came = queue.received()
    assert came[:101] == [fair] * 101
    assert {round(rate_of(data), -2) for data in came[101:-20]} == {50_000}


@pytest.mark.parametrize(("threshold", "congested"), [(1, True), (500, False)])
def test_congestion_needs_packets_that_wait(make: Make, threshold: int, congested: bool) -> None:
    """Below the threshold a link that packets come to at twice its rate is not congested."""
    queue = make(CSFQ, {BANDWIDTH: 50_000, LIMIT: 1000, THRESHOLD: threshold})
    refused = stream(queue, frame(), 100_000, 3)
    stats = queue.read().stats
    assert stats[ARRIVAL_RATE] == pytest.approx(100_000, rel=0.01)
    assert stats[CONGESTED] == congested
    assert (refused > 50) == congested
    assert stats[FAIR_RATE] == pytest.approx(50_000 if congested else 100_000, rel=0.4)
