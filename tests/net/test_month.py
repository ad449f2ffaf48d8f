# SPDX-License-Identifier: GPL-2.0-or-later
"""Days in which nothing comes, clocks that are set, counters beyond 32 bits.

All queues and connections are idle at the same time: a day, or with --long fifty, in which a 32-bit
count of milliseconds wraps. After that they are to be what the equations say: as if new.
"""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from bottleneck import LONGEST, Bottleneck
from conftest import Link
from frames import Port, frame, super_packet
from kinds import (
    ACCEPTED_RATE,
    ARRIVAL_RATE,
    AVPKT,
    AVQ,
    BANDWIDTH,
    CONTROL_PERIOD,
    CORE,
    CSFQ,
    DELTA,
    FIFA,
    FIFA_RED,
    FIFA_REM,
    FRED,
    FRED_AVG,
    GBIT,
    LIMIT,
    LOSS_RATIO,
    LRED,
    MBIT,
    MEASURE,
    MEASURE_PERIOD,
    MS,
    PERIOD,
    PRICE,
    QUEUE,
    RATE,
    REM,
    ROLE,
    SAMPLING,
    SHORT,
    TARGET,
    VIRTUAL_CAPACITY,
    VIRTUAL_QUEUE,
    WEIGHT,
    XQM,
    FifaStat,
    Kind,
    S,
    Settings,
    Stat,
    XqmStat,
    encode,
    real,
)
from netlink import ADD, ROOT, Netlink
from test_pert import BASE_MS, PERTS, Flow, Way

DAY = 86_400  # s
LENGTH = 1000  # bytes of a frame
LOAD = 60  # frames that come at once, each of another flow
ANSWER_S = 0.2  # until the law is asked what it made of them
# Of two queues one may have had a sampling instant more: of a hundred, where they are fewest.
CLOSE = 0.02


@dataclass(frozen=True)
class Case:
    """A queue, and the statistics that tell its law's state."""

    kind: Kind
    settings: Settings
    sampled: tuple[int, ...] = ()
    """Those that are true at any time."""
    counted: tuple[int, ...] = ()
    """Those that are brought up to date when a packet comes."""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


LINK: Settings = {BANDWIDTH: 1 * MBIT, AVPKT: LENGTH}
REM_LAW: Settings = {TARGET: 10, LIMIT: 200}
CASES = (
    Case(REM, {**REM_LAW, MEASURE: QUEUE}, (Stat.PROB, PRICE)),
    Case(REM, {**REM_LAW, **LINK}, (Stat.PROB, PRICE), name="backlog"),
    Case(REM, {**REM_LAW, **LINK, MEASURE: RATE}, (Stat.PROB, PRICE), name="rate"),
    Case(
        LRED,
        {TARGET: 10, LIMIT: 40, PERIOD: 10 * MS, WEIGHT: real(0.99)},
        (Stat.PROB, LOSS_RATIO),
    ),
    Case(FIFA, {TARGET: 20, SAMPLING: 1000}, (Stat.PROB,)),
    Case(FIFA_RED, LINK, counted=(FifaStat.RED_AVG,)),
    Case(FIFA_REM, REM_LAW, (Stat.PROB, FifaStat.REM_PRICE)),
    Case(
        XQM,
        {**LINK, TARGET: 10, SHORT: 0, DELTA: 0, CONTROL_PERIOD: 1 * MS, MEASURE_PERIOD: 1 * S},
        (Stat.PROB, XqmStat.FLOWS, XqmStat.SHARE),
    ),
    Case(AVQ, {**LINK, LIMIT: 200}, counted=(VIRTUAL_CAPACITY, VIRTUAL_QUEUE)),
    Case(FRED, LINK, counted=(FRED_AVG,)),
    Case(CSFQ, {**LINK, ROLE: CORE}, counted=(ARRIVAL_RATE, ACCEPTED_RATE)),
)

State = Mapping[int, int]
Wait = Callable[[float], None]


def state(queue: Bottleneck, which: tuple[int, ...]) -> State:
    stats = queue.read().stats
    return {stat: stats[stat] for stat in which}


def answer(queue: Bottleneck, case: Case, wait: Wait = time.sleep) -> State:
    """What the law makes of packets that come at once, and stand."""
    queue.shape(1)
    queue.send(frame(size=LONGEST))  # which the shaper has room for
    queue.send(*[frame(number=number) for number in range(LOAD)])
    wait(ANSWER_S)
    return state(queue, case.sampled + case.counted)


@contextlib.contextmanager
def pair(kernel: Netlink, name: str) -> Iterator[Link]:
    """A link of its own, as `link` is."""
    index, far_index = kernel.add_veth(f"n{name}", f"f{name}")
    near, far = Port(f"n{name}"), Port(f"f{name}")
    yield Link(index, far_index, f"n{name}", near, far)
    near.close()
    far.close()
    kernel.delete_link(index)


@contextlib.contextmanager
def one_way() -> Iterator[None]:
    """PERT goes by the receiver's clock, too."""
    subprocess.run(["modprobe", "tcp_pert"], check=True)
    setting = Path("/sys/module/tcp_pert/parameters/one_way")
    setting.write_text("1")
    yield
    setting.write_text("0")


@dataclass(frozen=True)
class Idle:
    """What was idle for long, having been under load before."""

    queues: Mapping[str, Bottleneck]
    loaded: Mapping[str, State]
    way: Way
    flows: Mapping[str, Flow]


@pytest.fixture(scope="module")
def idle(kernel: Netlink, pytestconfig: pytest.Config) -> Iterator[Idle]:
    with contextlib.ExitStack() as ends:
        queues: dict[str, Bottleneck] = {}
        for number, case in enumerate(CASES):
            link = ends.enter_context(pair(kernel, str(number)))
            queues[str(case)] = Bottleneck(kernel, link, case.kind, case.settings)
        loaded = {str(case): answer(queues[str(case)], case) for case in CASES}
        for queue in queues.values():
            queue.open()
        ends.enter_context(one_way())
        way = Way(ends.enter_context(contextlib.ExitStack()))
        flows = {control: way.connect(control) for control in PERTS}
        for milliseconds in (BASE_MS, BASE_MS + 6):
            way.takes(milliseconds)
            for flow in flows.values():
                flow.run(1.0)
        way.takes(BASE_MS)
        time.sleep((50 if pytestconfig.getoption("long") else 1) * DAY)
        yield Idle(queues, loaded, way, flows)
    time.sleep(1)  # until the namespaces have gone


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_queue_is_as_new(kernel: Netlink, link: Link, idle: Idle, case: Case) -> None:
    fresh, old = Bottleneck(kernel, link, case.kind, case.settings), idle.queues[str(case)]
    at_rest = state(fresh, case.sampled)
    assert any(idle.loaded[str(case)][stat] != value for stat, value in at_rest.items()) or (
        not at_rest and any(idle.loaded[str(case)].values())
    )
    assert old.read().empty
    assert state(old, case.sampled) == at_rest
    time.sleep(60)  # a link that was never used is no idle one yet
    expected = answer(fresh, case)
    assert any(expected.values())
    assert answer(old, case) == pytest.approx(expected, rel=CLOSE)
    for queue in (fresh, old):
        queue.open()
        assert queue.read().empty


@pytest.mark.parametrize("control", PERTS)
def test_a_sender_begins_its_average_anew(idle: Idle, control: str) -> None:
    """The path stays the one that it was, but of its queue nothing is remembered."""
    flow = idle.flows[control]
    enabled, responses, average, base = flow.cc_info()
    assert enabled == 1
    assert average > base + 4000
    assert base == pytest.approx(BASE_MS * 1000, rel=0.01)
    as_new = pytest.approx((1, responses, base, base), rel=0.01)
    for _ in range(6):  # more than are taken for delayed ones
        flow.send(100)
        time.sleep(10 * BASE_MS / 1000)
        flow.take()
    assert flow.received == flow.sent
    assert flow.cc_info() == as_new
    flow.run(1.0)
    assert flow.cc_info() == as_new


@pytest.fixture
def set_clocks() -> Iterator[Wait]:
    """Let time pass while the wall clock is set: years on and back, as if the machine slept."""
    jumps = (3600, -7200, 400 * DAY, -800 * DAY)
    moved = 0.0

    def wait(seconds: float) -> None:
        nonlocal moved
        for jump in jumps:
            time.sleep(seconds / len(jumps))
            time.clock_settime(time.CLOCK_REALTIME, time.time() + jump)
            moved += jump

    yield wait
    time.clock_settime(time.CLOCK_REALTIME, time.time() - moved)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_queue_does_not_look_at_the_wall_clock(
    kernel: Netlink, link: Link, case: Case, set_clocks: Wait
) -> None:
    expected = answer(Bottleneck(kernel, link, case.kind, case.settings), case)
    with pair(kernel, "set") as other:
        queue = Bottleneck(kernel, other, case.kind, case.settings)
        assert answer(queue, case, set_clocks) == pytest.approx(expected, rel=CLOSE)
        queue.open()
        assert queue.read().empty


@pytest.mark.parametrize("control", PERTS)
def test_a_sender_does_not_look_at_the_wall_clock(
    idle: Idle, control: str, set_clocks: Wait
) -> None:
    flow = idle.way.connect(control)
    for _ in range(5):
        flow.run(0.2)
        set_clocks(0.01)
    flow.run(0.2)
    base = BASE_MS * 1000
    assert flow.cc_info() == pytest.approx((1, 0, base, base), rel=0.01)


SEGMENTS = 8_125  # of a super-packet, each with 8 bytes: TCP has none with less
SEGMENT = 14 + 20 + 20 + 8  # bytes
AT_ONCE = 64  # super-packets; then avq's virtual queue may run empty
WRAP = 1 << 32


def test_counters_beyond_32_bits(kernel: Netlink, kind: Kind, pytestconfig: pytest.Config) -> None:
    """Of bytes; with --long of packets, too."""
    index = kernel.add_link("dummy", "sink")
    fast: Settings = {BANDWIDTH: 1000 * GBIT} if kind is AVQ else {}
    kernel.qdisc(
        ADD, index, kind.name, encode({**kind.given, **kind.never, **fast}), ROOT, 0x10000
    )
    port = Port("sink")
    packet = super_packet(0, SEGMENTS, SEGMENT)
    unit = 1 if pytestconfig.getoption("long") else SEGMENT
    rounds = WRAP // (SEGMENTS * unit * AT_ONCE) + 2
    refused = 0
    for _ in range(rounds):
        refused += port.send_super(*[packet] * AT_ONCE)
        time.sleep(0.001)
    (queue,) = kernel.qdiscs(index)
    port.close()
    kernel.delete_link(index)
    packets = (rounds * AT_ONCE - refused) * SEGMENTS
    assert refused == 0
    assert queue.stats[Stat.PKTS_IN] == packets > WRAP // unit
    assert queue.bytes == packets * SEGMENT > WRAP
    assert queue.stats[Stat.MAXQ] == SEGMENTS
    assert queue.empty
