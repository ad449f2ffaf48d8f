# SPDX-License-Identifier: GPL-2.0-or-later
"""REM's law in the kernel, against the paper's equations in floating point.

In virtual time a queue can be scripted to the microsecond: packets come, wait, and go when the
test says so.
"""

import math
import time
from collections.abc import Callable

import pytest

from bottleneck import KNOCK, Bottleneck
from conftest import Link
from frames import ECT0, frame, super_packet
from kinds import (
    ALPHA,
    AVPKT,
    BACKLOG,
    BANDWIDTH,
    BYTEMODE,
    CAPACITY,
    CERTAIN,
    ECN,
    GAMMA,
    INTERVAL,
    KBIT,
    LIMIT,
    MBIT,
    MEASURE,
    MS,
    PHI,
    PRICE,
    QUEUE,
    RATE,
    REM,
    TARGET,
    Option,
    S,
    Settings,
    Stat,
    real,
)
from netlink import Netlink

LENGTH = 1000  # bytes of a frame
PRICE_ONE = 1 << 40
# Differences between the kernel's fixed point and ours; prices here are of the order of 1.
CLOSE = 1e-6

Make = Callable[[Settings], Bottleneck]


@pytest.fixture
def make(kernel: Netlink, link: Link) -> Make:
    return lambda settings: Bottleneck(kernel, link, REM, settings)


def price(queue: Bottleneck) -> float:
    return queue.read().stats[PRICE] / PRICE_ONE


class Model:
    """The price, brought up to date at each instant in turn, as the paper has it."""

    def __init__(self, settings: dict[Option, int], now: int) -> None:
        self.price = 0.0
        self.backlog = self.sampled = self.arrived = 0  # packets
        self.idle = 0  # ns of this interval, as far as it is over
        self.idle_from = now
        self.configure(settings, now)

    def configure(self, settings: dict[Option, int], now: int) -> None:
        self.measure = settings[MEASURE]
        self.target = settings[TARGET]
        self.interval = settings[INTERVAL]
        self.alpha = settings[ALPHA] / (1 << 48)
        self.gamma = settings[GAMMA] / (1 << 48)
        self.capacity = settings[BANDWIDTH] / LENGTH / S  # packets/ns
        self.next = now + self.interval
        self.sampled, self.arrived, self.idle = self.backlog, 0, 0

    def advance(self, now: int) -> None:
        while self.next <= now:
            excess: float = self.backlog - self.sampled
            if self.measure == RATE:
                excess = self.arrived - self.capacity * self.interval
            elif self.measure == BACKLOG:
                excess -= self.capacity * (self.idle + self._idle_until(self.next))
            step = self.gamma * (self.alpha * (self.sampled - self.target) + excess)
            self.price = max(0.0, self.price + step)
            self.sampled, self.arrived, self.idle = self.backlog, 0, 0
            self.next += self.interval

    def arrive(self, packets: int, now: int) -> None:
        self.advance(now)
        self.idle += self._idle_until(now)
        self.backlog += packets
        self.arrived += packets

    def leave(self, now: int, last: int) -> None:
        """All packets go at once, the last of so many bytes; the link then has them all to send."""
        self.advance(now)
        busy = round(((self.backlog - 1) + last / LENGTH) / self.capacity)
        self.backlog = 0
        self.idle_from = now + min(busy, max(self.interval, round(last / LENGTH / self.capacity)))

    def _idle_until(self, now: int) -> int:
        started = max(self.idle_from, self.next - self.interval)
        return max(0, now - started) if self.backlog == 0 else 0


class Script:
    """A queue and its model, to which the same things happen."""

    def __init__(self, make: Make, settings: dict[Option, int]) -> None:
        self.settings = settings
        self.queue = make(settings)
        self.model = Model(settings, time.monotonic_ns())

    def arrive(self, packets: int, *, leaving: bool = False) -> None:
        self.queue.fill(packets)
        now = time.monotonic_ns()
        self.model.arrive(packets, now)
        if leaving:
            self.model.leave(now, LENGTH)

    def open(self) -> None:
        before = self.queue.read().stats[Stat.PKTS_IN]
        self.queue.open()
        now = time.monotonic_ns()
        self.model.arrive(self.queue.read().stats[Stat.PKTS_IN] - before, now)
        self.model.leave(now, len(KNOCK))

    def change(self, settings: dict[Option, int]) -> None:
        self.settings = {**self.settings, **settings}
        self.queue.change(settings)
        now = time.monotonic_ns()
        self.model.advance(now)
        self.model.configure(self.settings, now)

    def price_after(self, seconds: float) -> float:
        """Let time pass; return the price, which is the model's."""
        time.sleep(seconds)
        self.model.advance(time.monotonic_ns())
        found = price(self.queue)
        assert found == pytest.approx(self.model.price, abs=CLOSE)
        return found


@pytest.mark.parametrize("measure", [QUEUE, BACKLOG, RATE], ids=["queue", "backlog", "rate"])
def test_price_follows_the_paper(make: Make, measure: int) -> None:
    # Times are chosen so that nothing happens within 0.1 ms of a sampling instant.
    script = Script(
        make,
        {
            LIMIT: 1000,
            TARGET: 20,
            INTERVAL: 2 * MS,
            ALPHA: real(0.1),
            GAMMA: real(0.01),
            PHI: real(1.00001),  # hardly ever a drop
            MEASURE: measure,
            BANDWIDTH: 800 * KBIT,  # 100 packets/s
            AVPKT: LENGTH,
        },
    )
    assert script.price_after(0.101) == 0
    script.arrive(50)
    risen = script.price_after(0.2)
    assert risen > 0.1
    script.arrive(10)
    assert script.price_after(0.1) > risen
    script.change({TARGET: 100, GAMMA: real(0.005)})
    script.arrive(1)
    fallen = script.price_after(0.051)
    assert fallen > 0
    script.change({TARGET: 5, ALPHA: real(0.5), INTERVAL: 5 * MS})
    risen = script.price_after(0.1025)
    assert risen > fallen
    script.open()
    script.price_after(0.01)
    for _ in range(50):
        script.arrive(1, leaving=True)
        script.price_after(0.0035)
    script.arrive(10, leaving=True)
    script.price_after(0.1)
    # to nothing, on an idle link
    assert script.price_after(10) == 0
    script.arrive(3, leaving=True)
    script.price_after(0.001)


def test_price_of_a_standing_queue(make: Make) -> None:
    """Equation (4) with b constant: gamma * alpha * (b - target) in each interval."""
    queue = make({TARGET: 20, INTERVAL: 2 * MS, ALPHA: real(0.1), GAMMA: real(0.001), LIMIT: 100})
    queue.fill(70)
    time.sleep(0.001)
    assert price(queue) == 0
    time.sleep(0.002)
    first = price(queue)
    assert first == pytest.approx(0.001 * (70 - 0.1 * 20), abs=CLOSE)
    time.sleep(2)
    assert price(queue) == pytest.approx(first + 0.001 * 0.1 * (70 - 20) * 1000, abs=CLOSE)


def at_price_105(make: Make, settings: Settings) -> Bottleneck:
    """A queue whose price is 105 and stays so for ten seconds."""
    queue = make({
        TARGET: 20, INTERVAL: 1 * MS, ALPHA: real(0.5), GAMMA: real(1), PHI: real(1.001),
        LIMIT: 100_000, **settings,
    })  # fmt: skip
    queue.fill(30)
    time.sleep(0.0185)  # 20 at the first instant, 5 at each of the 17 others
    queue.change({INTERVAL: 10 * S})
    assert price(queue) == pytest.approx(105, abs=CLOSE)
    return queue


def test_probability_of_a_price(make: Make) -> None:
    queue = at_price_105(make, {})
    probability = queue.read().stats[Stat.PROB] / CERTAIN
    assert probability == pytest.approx(1 - 1.001**-105, abs=1e-9)
    assert probability == pytest.approx(0.09963, abs=5e-6)
    # equation (3) holds for the new base at once
    queue.change({PHI: real(1.1)})
    assert queue.read().stats[Stat.PROB] / CERTAIN == pytest.approx(1 - 1.1**-105, abs=1e-9)


@pytest.mark.parametrize(
    ("ecn", "tos", "fate"),
    [(0, ECT0, Stat.DROPPED), (1, 0, Stat.DROPPED), (1, ECT0, Stat.ECN_MARK)],
)
def test_packets_are_hit_with_the_probability(make: Make, ecn: int, tos: int, fate: Stat) -> None:
    queue = at_price_105(make, {ECN: ecn})
    count, probability = 10_000, 1 - 1.001**-105
    deviation = math.sqrt(count * probability * (1 - probability))
    queue.send(*[frame(tos)] * count)
    stats = queue.read().stats
    assert abs(stats[fate] - count * probability) < 4.5 * deviation
    assert stats[Stat.DROPPED] + stats[Stat.ECN_MARK] == stats[fate]
    assert stats[Stat.OVERLIMIT] == 0


def test_bytemode_counts_bytes(make: Make) -> None:
    """In packets of `avpkt` bytes, equation (4) for a queue of 40 frames of 500 bytes."""
    queue = make({
        TARGET: 10, INTERVAL: 2 * MS, ALPHA: real(0.1), GAMMA: real(0.001),
        AVPKT: LENGTH, BYTEMODE: 1,
    })  # fmt: skip
    queue.send(*[frame(size=500)] * 40)
    time.sleep(1.001)
    expected = 0.001 * (20 - 0.1 * 10) + 0.001 * 0.1 * (20 - 10) * 499
    assert price(queue) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("bytemode", [0, 1])
def test_capacity_is_the_bandwidth_in_packets(make: Make, bytemode: int) -> None:
    queue = make({BANDWIDTH: 64 * MBIT, AVPKT: LENGTH, BYTEMODE: bytemode})
    assert queue.read().stats[CAPACITY] / 256 == pytest.approx(8000, abs=0.01)
    queue.change({BANDWIDTH: 0})
    assert queue.read().stats[CAPACITY] == 0


def test_capacity_goes_by_the_packets_that_come(make: Make, link: Link) -> None:
    queue = make({BANDWIDTH: 64 * MBIT})
    assert queue.read().stats[CAPACITY] == 0
    queue.send(*[frame(size=500)] * 30, *[frame(size=1500)] * 10)
    assert queue.read().stats[CAPACITY] / 256 == pytest.approx(64 * MBIT / 750, rel=0.001)
    link.near.send_super(super_packet(0, segments=40, size=375))
    total = 30 * 500 + 10 * 1500 + 40 * 375
    assert queue.read().stats[CAPACITY] / 256 == pytest.approx(64 * MBIT * 80 / total, rel=0.001)
