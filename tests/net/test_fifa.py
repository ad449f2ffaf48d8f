# SPDX-License-Identifier: GPL-2.0-or-later
"""FIFA's law in the kernel, and its bases', against the papers' equations in floating point."""

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bottleneck import KNOCK, Bottleneck
from conftest import Link
from frames import DF, ECT0, ETH_P_8021AD, ETH_P_8021Q, MF, frame, super_packet
from kinds import (
    ALPHA,
    AVPKT,
    BANDWIDTH,
    CERTAIN,
    CLASSIC,
    COUNT,
    ECN,
    FIFA,
    FIFA_RED,
    FIFA_REM,
    FRAGILE,
    GAMMA,
    GENTLE,
    INTERVAL,
    KBIT,
    LIMIT,
    MAX,
    MIN,
    MS,
    PRICE,
    PROBABILITY,
    QWEIGHT,
    REM,
    ROBUST,
    RTT_MAX,
    RTT_MIN,
    RTT_WEIGHT,
    SAMPLING,
    SCALE,
    TARGET,
    WAIT,
    A,
    B,
    FifaStat,
    Kind,
    Settings,
    Stat,
    real,
)
from netlink import Netlink

TRACING = Path("/sys/kernel/tracing")
LENGTH = 1000  # bytes of a frame
LABEL = 1e-4  # s
PRICE_ONE = 1 << 40
# The kernel's R_average and R_formula are shown in whole ns.
CLOSE_NS = 2

Make = Callable[..., Bottleneck]


@pytest.fixture
def make(kernel: Netlink, link: Link) -> Make:
    return lambda settings, kind=FIFA: Bottleneck(kernel, link, kind, settings)


@dataclass(frozen=True)
class Decision:
    """What the tracepoint says of a packet."""

    label: int
    formula: int
    base: float
    probability: float
    verdict: str


@pytest.fixture
def decisions() -> Iterator[Callable[[], list[Decision]]]:
    """Return the decisions since the last call."""
    enable = TRACING / "events/fifa/fifa_decide/enable"
    trace = TRACING / "trace"
    pattern = re.compile(r"label=(\d+) formula=(\d+) base=(\d+) prob=(\d+) verdict=(\w+)")

    def read() -> list[Decision]:
        found = pattern.findall(trace.read_text())
        trace.write_text("")
        return [
            Decision(int(label), int(formula), int(base) / CERTAIN, int(p) / CERTAIN, verdict)
            for label, formula, base, p, verdict in found
        ]

    trace.write_text("")
    enable.write_text("1")
    yield read
    enable.write_text("0")


Decisions = Callable[[], list[Decision]]


def labelled(label: int, tos: int = 0) -> bytes:
    return frame(tos, label=label, size=200)


# FIFA itself


class Formula:
    """R_average and R_formula: the paper's Fig. 5, in seconds."""

    def __init__(self, weight: float) -> None:
        self._weight = weight
        self.average = self.formula = self._since = 0.0
        self._side = 0

    def arrive(self, now: float, rtt: float) -> None:
        if not self.formula:
            self.average, self.formula, self._since = rtt, rtt, now
        self.average += self._weight * (rtt - self.average)
        away = self.average - self.formula
        was, self._side = self._side, 0 if abs(away) < 0.0125 else int(math.copysign(1, away))
        if self._side == 0 or self._side == -was:
            self._since = now
        elif now - self._since > 0.1:
            self._since = now
            self.formula += away / 2


def test_average_and_formula_follow_the_paper(make: Make) -> None:
    weight = 0.05
    queue = make({**FIFA.never, RTT_WEIGHT: real(weight), LIMIT: 100_000})
    model = Formula(weight)
    assert queue.read().stats[FifaStat.RTT_FORMULA] == 0
    moves = set()
    script = [(400, 30), (420, 30), (700, 60), (2000, 40), (390, 200), (3, 30), (60000, 5), (7, 90)]
    for label, count in script:
        for _ in range(count):
            queue.send(labelled(label))
            model.arrive(time.monotonic(), label * LABEL)
            stats = queue.read().stats
            assert stats[FifaStat.RTT_AVG] == pytest.approx(model.average * 1e9, abs=CLOSE_NS)
            assert stats[FifaStat.RTT_FORMULA] == pytest.approx(model.formula * 1e9, abs=CLOSE_NS)
            moves.add(stats[FifaStat.RTT_FORMULA])
            time.sleep(0.0073)
    assert len(moves) > 15
    assert queue.read().stats[FifaStat.LABELLED] == sum(count for _, count in script)
    # packets without a label change nothing
    queue.fill(50)
    assert queue.read().stats[FifaStat.RTT_AVG] == stats[FifaStat.RTT_AVG]
    assert queue.read().stats[FifaStat.UNLABELLED] == 50


def at_base_probability(make: Make, steps: int, settings: Settings) -> Bottleneck:
    """A queue with R_formula = 100 ms and a base probability of so many hundredths, for good."""
    queue = make({
        TARGET: 10, A: real(0.001), B: 0, SAMPLING: 1000, RTT_WEIGHT: real(0.000001),
        LIMIT: 100_000,
    })  # fmt: skip
    queue.send(labelled(1000))
    queue.fill(19)
    time.sleep(steps * 0.001 + 0.0005)
    queue.change({A: 1, SAMPLING: 1, **settings})
    assert queue.read().stats[Stat.PROB] / CERTAIN == pytest.approx(steps / 100, abs=1e-9)
    return queue


LABELS = (1, 10, 100, 300, 500, 900, 999, 1000, 1001, 1500, 2000, 5000, 20_000, 65_535)


def equation_4(base: float, label: int, robust: float, fragile: float) -> float:
    factor: float = (1000 / label) ** (robust if label < 1000 else fragile)
    return min(1.0, base * factor)


@pytest.mark.parametrize(
    ("given", "ecn", "tos", "robust", "fragile"),
    [
        ({}, 0, ECT0, 0.65, 1.4),
        ({}, 1, ECT0, 1.6, 1.4),
        ({}, 1, 0, 0.65, 1.4),
        ({ROBUST: 0, FRAGILE: 0}, 0, 0, 0, 0),
        ({ROBUST: real(4), FRAGILE: real(4)}, 1, ECT0, 4, 4),
        ({ROBUST: real(1.234)}, 1, ECT0, 1.234, 1.4),
        ({FRAGILE: real(0.567)}, 0, 0, 0.65, 0.567),
    ],
    ids=["drop", "mark", "drop with ecn", "0", "4", "robust given", "fragile given"],
)
def test_probability_is_scaled_as_in_the_paper(
    make: Make,
    decisions: Decisions,
    given: Settings,
    ecn: int,
    tos: int,
    robust: float,
    fragile: float,
) -> None:
    queue = at_base_probability(make, 1, {ECN: ecn, **given})
    decisions()
    for label in LABELS:
        queue.send(labelled(label, tos))
        (seen,) = decisions()
        assert seen.label == label
        # 100 ms, rounded down
        assert seen.formula in (999, 1000)
        assert seen.base == pytest.approx(0.01, abs=1e-9)
        expected = equation_4(0.01, label, robust, fragile)
        assert seen.probability == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert queue.read().stats[FifaStat.PROB_SCALED] / CERTAIN == seen.probability
    queue.send(frame())
    (seen,) = decisions()
    assert (seen.label, seen.probability) == (0, seen.base)


def test_the_papers_values(make: Make, decisions: Decisions) -> None:
    """ALGORITHMS.md's check: base 0.01, R_formula 100 ms."""
    queue = at_base_probability(make, 1, {ECN: 1})
    decisions()
    queue.send(labelled(500), labelled(500, ECT0), labelled(2000), labelled(2000, ECT0))
    assert [round(seen.probability, 6) for seen in decisions()] == [
        pytest.approx(value, abs=6e-6) for value in (0.01569, 0.03031, 0.003789, 0.003789)
    ]


@pytest.mark.parametrize(("ecn", "fate"), [(0, Stat.DROPPED), (1, Stat.ECN_MARK)])
@pytest.mark.parametrize(
    ("label", "own", "other"),
    [(500, FifaStat.ROBUST, FifaStat.FRAGILE), (2000, FifaStat.FRAGILE, FifaStat.ROBUST)],
    ids=["robust", "fragile"],
)
def test_packets_are_hit_with_the_probability(
    make: Make, ecn: int, fate: Stat, label: int, own: FifaStat, other: FifaStat
) -> None:
    queue = at_base_probability(make, 5, {ECN: ecn})
    count = 5000
    chance = equation_4(0.05, label, 1.6 if ecn else 0.65, 1.4)
    queue.send(*[labelled(label, ECT0)] * count)
    stats = queue.read().stats
    assert abs(stats[fate] - count * chance) < 4.5 * math.sqrt(count * chance * (1 - chance))
    assert stats[own] == stats[fate] == stats[Stat.DROPPED] + stats[Stat.ECN_MARK]
    assert (stats[other], stats[FifaStat.LABELLED]) == (0, count + 1)


def test_labels_are_clamped(make: Make, decisions: Decisions) -> None:
    queue = at_base_probability(make, 1, {RTT_MIN: 50 * MS, RTT_MAX: 200 * MS})
    decisions()
    queue.send(*[labelled(label) for label in (1, 499, 500, 2000, 2001, 65_535)])
    seen = decisions()
    assert [decision.label for decision in seen] == [500, 500, 500, 2000, 2000, 2000]
    for decision in seen:
        expected = equation_4(0.01, decision.label, 0.65, 1.4)
        assert decision.probability == pytest.approx(expected, rel=1e-6)


def test_new_exponents_hold_at_once(make: Make, decisions: Decisions) -> None:
    queue = at_base_probability(make, 1, {})
    for exponent in (0.0, 1.0, 2.0, 0.5):
        queue.change({ROBUST: real(exponent), FRAGILE: real(exponent)})
        decisions()
        queue.send(labelled(500), labelled(2000))
        assert [decision.probability for decision in decisions()] == [
            pytest.approx(0.01 * ratio**exponent, rel=1e-6) for ratio in (2, 0.5)
        ]


def test_noscale_is_the_base_alone(make: Make, decisions: Decisions) -> None:
    queue = at_base_probability(make, 1, {SCALE: 0})
    before = queue.read().stats
    decisions()
    queue.send(*[labelled(label) for label in LABELS])
    assert all(seen.probability == seen.base for seen in decisions())
    after = queue.read().stats
    assert after[FifaStat.LABELLED] == before[FifaStat.LABELLED]
    assert after[FifaStat.RTT_AVG] == before[FifaStat.RTT_AVG]
    # and back
    queue.change({SCALE: 1})
    queue.send(labelled(500))
    assert decisions()[-1].probability == pytest.approx(equation_4(0.01, 500, 0.65, 1.4), rel=1e-6)


@pytest.mark.parametrize(
    "tags", [(), (ETH_P_8021Q,), (ETH_P_8021AD, ETH_P_8021Q)], ids=["untagged", "VLAN", "QinQ"]
)
def test_which_packets_have_a_label(make: Make, tags: Sequence[int]) -> None:
    queue = make(FIFA.never)

    def has_label(data: bytes) -> bool:
        before = queue.read().stats
        queue.send(data)
        after = queue.read().stats
        counted = [after[stat] - before[stat] for stat in (FifaStat.LABELLED, FifaStat.UNLABELLED)]
        assert sorted(counted) == [0, 1]
        return bool(counted[0])

    assert has_label(frame(label=300, tags=tags))
    assert not has_label(frame(label=0, tags=tags))
    for fragment in (0, MF, DF | MF, DF | 100, 100):
        assert not has_label(frame(label=300, fragment=fragment, tags=tags))
    assert not has_label(frame(version=6, tags=tags))
    assert not has_label(KNOCK)
    assert not has_label(frame(label=300, tags=tags)[: 14 + 4 * len(tags) + 19])


def test_a_super_packet_counts_as_its_segments(make: Make, link: Link) -> None:
    queue = make({**FIFA.never, LIMIT: 1000, ECN: 0})
    link.near.send_super(super_packet(0, segments=10))
    queue.fill(1)
    stats = queue.read().stats
    assert stats[FifaStat.LABELLED] + stats[FifaStat.UNLABELLED] == stats[Stat.PKTS_IN] == 11


# PI


@pytest.mark.parametrize("sampling", [170, 1000])
def test_pi_follows_the_paper(make: Make, sampling: int) -> None:
    interval = 1_000_000_000 // sampling  # ns
    a, b, target = 3e-4, 2.5e-4, 20
    queue = make({
        SCALE: 0, A: real(a), B: real(b), SAMPLING: sampling, TARGET: target, LIMIT: 100_000,
    })  # fmt: skip
    started = time.monotonic_ns()
    instant, backlog, before, p = interval, 0, 0, 0.0

    def advance() -> None:
        nonlocal instant, before, p
        while instant <= time.monotonic_ns() - started:
            p += a * (backlog - target) - b * (before - target)
            p = min(max(p, 0.0), 1.0)
            before = backlog
            instant += interval

    highest = 0.0
    # halfway between two instants; 7 s is long enough for p to be 1, and 0 again
    time.sleep(interval / 2e9)
    for packets, intervals in ((50, 1), (0, 3), (20, 10), (3, 1), (0, 100), (40, 7), (0, 400)):
        advance()
        before_stats = queue.read().stats
        queue.send(*[frame(size=100)] * packets)
        backlog += queue.read().stats[Stat.PKTS_IN] - before_stats[Stat.PKTS_IN]
        for _ in range(2):
            time.sleep(intervals * interval / 1e9)
            advance()
            stats = queue.read().stats
            assert stats[Stat.PROB] / CERTAIN == pytest.approx(p, abs=1e-8)
        highest = max(highest, p)
    assert highest > 0.5
    queue.open()
    assert queue.read().stats[Stat.QUEUE] == 0
    advance()
    backlog = 0
    time.sleep(50 * interval / 1e9)
    advance()
    assert queue.read().stats[Stat.PROB] / CERTAIN == pytest.approx(p, abs=1e-8)
    time.sleep(20)
    assert queue.read().stats[Stat.PROB] == 0


# RED


class Red:
    """Floyd and Jacobson's Fig. 2, ns-2's gentle slope and its count."""

    def __init__(self, *, gentle: bool, wait: bool, send_time: float) -> None:
        self.min, self.max, self.top, self.weight = 5.0, 15.0, 0.1, 0.05
        self._gentle, self._wait, self._send_time = gentle, wait, send_time
        self.avg, self._count, self._above = 0.0, 0, False

    def arrive(self, queue: int, idle: float) -> float:
        """Return the probability for a packet that finds such a queue after so many idle s."""
        self.avg *= (1 - self.weight) ** (idle / self._send_time)
        self.avg += self.weight * (queue - self.avg)
        if self.avg < self.min:
            self._above = False
            return 0.0
        p = self.slope()
        if p == 1:
            return p
        if not self._above:
            self._above, self._count = True, 1
            return 0.0
        self._count += 1
        spent = self._count * p - self._wait
        if spent < 0:
            return 0.0
        return min(1.0, p / (1 - spent)) if spent < 1 else 1.0

    def slope(self) -> float:
        if self.avg < self.min:
            return 0.0
        if self.avg < self.max:
            return self.top * (self.avg - self.min) / (self.max - self.min)
        if not self._gentle:
            return 1.0
        return min(1.0, self.top + (1 - self.top) * (self.avg - self.max) / self.max)

    def hit(self) -> None:
        self._count = 0


@pytest.mark.parametrize("gentle", [0, 1], ids=["", "gentle"])
@pytest.mark.parametrize("count", [WAIT, CLASSIC], ids=["wait", "classic"])
def test_red_follows_the_papers(make: Make, decisions: Decisions, gentle: int, count: int) -> None:
    send_time = 0.01  # s a frame: 800 kbit/s
    model = Red(gentle=bool(gentle), wait=count == WAIT, send_time=send_time)
    queue = make(
        {
            SCALE: 0, MIN: 5, MAX: 15, PROBABILITY: real(model.top), QWEIGHT: real(model.weight),
            GENTLE: gentle, COUNT: count, BANDWIDTH: 800 * KBIT, AVPKT: LENGTH, LIMIT: 1000,
        },
        FIFA_RED,
    )  # fmt: skip
    decisions()
    standing = 0
    verdicts = set()

    def arrive(idle: float = 0.0) -> bool:
        expected = model.arrive(standing, idle)
        queue.send(frame())
        (seen,) = decisions()
        # idle times are known to the microsecond
        close = 1e-4 if idle else 1e-6
        assert seen.base == pytest.approx(expected, abs=close)
        verdicts.add(seen.verdict)
        # a random number may fall anywhere below a probability that is not 0 or 1
        assert (seen.verdict == "drop") >= (expected == 1)
        assert (seen.verdict == "drop") <= (expected > 0)
        if seen.verdict == "drop":
            model.hit()
        stats = queue.read().stats
        assert stats[FifaStat.RED_AVG] / 256 == pytest.approx(model.avg, abs=2 / 256)
        assert stats[Stat.PROB] / CERTAIN == pytest.approx(model.slope(), abs=close)
        return seen.verdict == "pass"

    for _ in range(400):
        standing += arrive()
    assert verdicts == {"pass", "drop"}
    assert model.avg > 10
    # an idle link: the average fades with every packet that it could have sent
    queue.open()
    opened = time.monotonic()
    (seen,) = decisions()  # of the packet that sets it going
    model.arrive(standing, 0)
    if seen.verdict == "drop":
        model.hit()
    last = LENGTH if seen.verdict == "drop" else len(KNOCK)
    idle_from = opened + send_time * last / LENGTH
    standing = 0
    before = model.avg
    for pause in (0.05, 0.11, 0.011, 0.4, 3.0):
        time.sleep(pause)
        arrived = time.monotonic()
        accepted = arrive(arrived - idle_from)
        idle_from = arrived + (send_time if accepted else 0)
    assert model.avg < before / 10


def test_red_without_a_bandwidth_knows_of_no_idle_time(make: Make) -> None:
    queue = make({SCALE: 0, MIN: 5, MAX: 15, QWEIGHT: real(0.5), LIMIT: 1000}, FIFA_RED)
    queue.fill(8)
    queue.open()
    before = queue.read().stats[FifaStat.RED_AVG] / 256
    assert before > 5
    time.sleep(100)
    queue.send(frame())
    assert queue.read().stats[FifaStat.RED_AVG] / 256 == pytest.approx(before / 2, abs=1 / 256)


# REM


@pytest.mark.parametrize("kind", [REM, FIFA_REM], ids=str)
def test_rem_as_a_base_is_rem(make: Make, kind: Kind) -> None:
    """Equation (4) with b constant: gamma * alpha * (b - target) in each interval."""
    settings = {TARGET: 20, INTERVAL: 2 * MS, ALPHA: real(0.1), GAMMA: real(0.001), LIMIT: 200}
    queue = make(settings, kind)
    attribute = FifaStat.REM_PRICE if kind is FIFA_REM else PRICE
    queue.fill(70)
    time.sleep(0.003)
    stats = queue.read().stats
    first = stats[attribute] / PRICE_ONE
    assert first == pytest.approx(0.001 * (70 - 0.1 * 20), abs=1e-6)
    time.sleep(2)
    stats = queue.read().stats
    price = stats[attribute] / PRICE_ONE
    assert price == pytest.approx(first + 0.001 * 0.1 * (70 - 20) * 1000, abs=1e-6)
    assert stats[Stat.PROB] / CERTAIN == pytest.approx(1 - 1.001**-price, abs=1e-8)


def test_rem_is_scaled(make: Make, decisions: Decisions) -> None:
    queue = make({TARGET: 20, INTERVAL: 2 * MS, LIMIT: 200, RTT_WEIGHT: real(1e-6)}, FIFA_REM)
    queue.send(labelled(1000))
    queue.fill(69)
    time.sleep(2)
    decisions()
    queue.send(labelled(500), labelled(2000))
    for seen in decisions():
        expected = equation_4(seen.base, seen.label, 0.65, 1.4)
        assert seen.base > 0
        assert seen.probability == pytest.approx(expected, rel=1e-5)
