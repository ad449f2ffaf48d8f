# SPDX-License-Identifier: GPL-2.0-or-later
"""XQM's law in the kernel, and the flows it knows, against the paper in floating point."""

import math
import random
import re
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bottleneck import QUEUE, Bottleneck
from conftest import Link, Tc
from frames import (
    CE,
    DESTINATION,
    ECT0,
    ETH_P_8021AD,
    ETH_P_8021Q,
    SOURCE,
    Flags,
    checksum,
    frame,
    ipv4,
    received,
    segment,
)
from guest import inside
from kinds import (
    AVPKT,
    BANDWIDTH,
    BY_COPY,
    BYTEMODE,
    CERTAIN,
    CONTROL,
    CONTROL_PERIOD,
    DELTA,
    ECN,
    FLOW,
    FLOWS,
    HIDE,
    HIDE_BY,
    HIDE_DSCP,
    HIDE_OFF,
    HIDE_ONOFF,
    HIDE_SMOOTH,
    LIMIT,
    MBIT,
    MEASURE_PERIOD,
    MS,
    ONOFF,
    PI_T,
    PI_TB,
    PROTECT,
    RTT,
    RTT_CLASS,
    RTT_GIVEN,
    RTT_LABEL,
    RTT_TIME,
    SHARE,
    SHORT,
    SHORT_SHARE,
    SRC_DST,
    TARGET,
    WEIGHTS,
    XQM,
    XQM_PHI,
    S,
    Settings,
    Stat,
    XqmFlow,
    XqmStat,
    real,
    weights,
)
from netlink import ADD, Netlink
from test_parents import LENGTH as FRAME
from test_parents import PARENTS, RATE, Tree
from world import World

TRACING = Path("/sys/kernel/tracing")
PKTGEN = Path("/proc/net/pktgen")
LENGTH = 1000  # bytes of a frame
SO_PRIORITY = 12
PERIOD = 0.01  # s, the control period
# No gains: what is imposed stays what it was
STILL: Settings = {DELTA: 0, XQM_PHI: 0, LIMIT: 100_000, AVPKT: LENGTH}
FIN, SYN, ACK = Flags.FIN, Flags.SYN, Flags.ACK


class Queue(Bottleneck):
    """An xqm, and the flows that it knows."""

    def __init__(self, kernel: Netlink, link: Link, settings: Settings) -> None:
        super().__init__(kernel, link, XQM, settings)
        self._bandwidth = settings.get(BANDWIDTH, XQM.given[BANDWIDTH])
        self._index = link.index

    def change(self, settings: Settings) -> None:
        super().change({BANDWIDTH: self._bandwidth, **settings})

    def flows(self) -> list[dict[int, int]]:
        return list(self._kernel.classes(self._index, QUEUE))

    def flow(self) -> dict[int, int]:
        """Its only one."""
        (flow,) = self.flows()
        return flow

    def imposed(self) -> float:
        """The rate imposed on its only flow."""
        return self.flow()[XqmFlow.IMPOSED] / CERTAIN

    def stat(self, which: XqmStat) -> int:
        return self.read().stats[which]


Make = Callable[[Settings], Queue]


@pytest.fixture
def make(kernel: Netlink, link: Link) -> Make:
    return lambda settings: Queue(kernel, link, settings)


def data(port: int, tos: int = 0) -> bytes:
    """A segment of a TCP flow, 1000 bytes with its headers."""
    return segment(ACK, port, payload=bytes(LENGTH - 54))[:15] + bytes([tos]) + _tail(port, tos)


def _tail(port: int, tos: int) -> bytes:
    """What follows the TOS of data()."""
    header = struct.pack("!HHIIBBHHH", port, 9, 1, 1, 5 << 4, ACK, 1000, 0, 0)
    return ipv4(tos, header + bytes(LENGTH - 54), socket.IPPROTO_TCP)[2:]


def quiescent(share: float, rtt: float) -> float:
    """Eq. (16)."""
    return 2 / ((share * rtt) ** 2 + 2)


# Flows


def test_which_flows_count(make: Make) -> None:
    """Those seen within the measurement period and not short; each is a class."""
    queue = make({**STILL, MEASURE_PERIOD: S, SHORT: 10, BANDWIDTH: 8 * MBIT})
    for port in range(1, 21):
        queue.send(*[data(port)] * port)
    stats = queue.read().stats
    # the eleventh packet of a flow is its first that counts
    assert stats[XqmStat.FLOWS] == len(queue.flows()) == 10
    assert stats[XqmStat.EXEMPT] == sum(min(port, 10) for port in range(1, 21))
    assert stats[XqmStat.CAPACITY] / 256 == 1000
    assert stats[XqmStat.SHARE] / 256 == pytest.approx(100, abs=1 / 256)
    for _ in range(15):
        time.sleep(0.1)
        queue.send(data(20))
    assert queue.stat(XqmStat.FLOWS) == len(queue.flows()) == 1
    # one that comes back begins anew
    queue.send(data(11))
    assert queue.stat(XqmStat.FLOWS) == 1
    queue.send(*[data(11)] * 10)
    assert queue.stat(XqmStat.FLOWS) == 2
    time.sleep(2)
    assert queue.stat(XqmStat.FLOWS) == len(queue.flows()) == 0
    assert queue.stat(XqmStat.EVICTED) == queue.stat(XqmStat.NOT_SHOWN) == 0


def pair(host: int, port: int, protocol: int) -> bytes:
    """A packet from one of several hosts."""
    whole = segment(ACK, port) if protocol == socket.IPPROTO_TCP else frame(number=port, size=100)
    payload = whole[34:]
    ends = bytes((192, 0, 2, host)), bytes((192, 0, 2, 200))
    return whole[:14] + ipv4(0, payload, protocol, ends=ends)


@pytest.mark.parametrize(("flow", "count"), [(0, 24), (SRC_DST, 6), (RTT_CLASS, 2)])
def test_what_a_flow_is(make: Make, flow: int, count: int) -> None:
    """5tuple: two protocols, three hosts, four ports; src-dst: no ports; rtt-class: one RTT."""
    queue = make({**STILL, FLOW: flow, SHORT: 0, RTT: RTT_GIVEN})
    for host in (1, 2, 3):
        for port in (1, 2, 3, 4):
            for protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
                queue.send(pair(host, port, protocol))
    assert len(queue.flows()) == count
    members = sum(found[XqmFlow.WEIGHT] for found in queue.flows())
    assert members == queue.stat(XqmStat.FLOWS) == (count if flow != RTT_CLASS else 24)
    # the way back is another flow
    queue.send(segment(ACK, 1, back=True))
    assert len(queue.flows()) == count + (flow != RTT_CLASS)


def test_what_is_not_ip_is_one_flow(make: Make) -> None:
    queue = make({**STILL, SHORT: 0})
    for ethertype in (0x0806, 0x1234):
        for source in (b"\x02\xa0\0\0\0\x07", SOURCE):
            queue.send((DESTINATION + source + ethertype.to_bytes(2, "big")).ljust(60, b"\0"))
    assert queue.stat(XqmStat.FLOWS) == 1


def test_weights_follow_the_priority(make: Make, link: Link) -> None:
    queue = make({**STILL, SHORT: 0, WEIGHTS: weights(1, 2, 7), BANDWIDTH: 8 * MBIT})
    sender = link.near._socket
    for priority, port in ((0, 1), (1, 2), (2, 3), (18, 4), (3, 5), (15, 6)):
        sender.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, priority)
        queue.send(*[data(port)] * port)
    # the heaviest first
    found = queue.flows()
    assert [flow[XqmFlow.WEIGHT] for flow in found] == [1, 1, 7, 7, 2, 1]
    for flow in found:
        share = 1000 * flow[XqmFlow.WEIGHT] / 19
        assert flow[XqmFlow.SHARE] / 256 == pytest.approx(share, abs=8 / 256)
    # a flow may change its weight
    sender.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, 2)
    queue.send(data(6))
    assert queue.stat(XqmStat.SHARE) / 256 == pytest.approx(1000 / 25, abs=1 / 256)
    # and weights may be changed: a flow's holds from its next packet on
    queue.change({WEIGHTS: weights()})
    queue.send(data(6))
    assert queue.stat(XqmStat.SHARE) / 256 == pytest.approx(1000 / 19, abs=1 / 256)


def test_share_of_the_flows(make: Make) -> None:
    queue = make({**STILL, SHORT: 0, BANDWIDTH: 8 * MBIT, SHORT_SHARE: 2 * MBIT})
    queue.send(data(1), data(2), data(3))
    assert queue.stat(XqmStat.SHARE) / 256 == pytest.approx(250, abs=1 / 256)
    assert queue.stat(XqmStat.CAPACITY) / 256 == 1000
    queue.change({SHARE: 1 * MBIT})
    assert queue.stat(XqmStat.SHARE) / 256 == 125
    queue.change({SHARE: 0, SHORT_SHARE: 0, AVPKT: 500, BYTEMODE: 1})
    queue.send(data(1))
    assert queue.stat(XqmStat.SHARE) / 256 == 2000


def test_capacity_is_of_the_packets_that_come(make: Make) -> None:
    queue = make({**STILL, AVPKT: 0, BANDWIDTH: 8 * MBIT})
    assert queue.stat(XqmStat.CAPACITY) == 0
    queue.send(*[frame(size=1000)] * 5, *[frame(size=500)] * 5)
    assert queue.stat(XqmStat.CAPACITY) / 256 == pytest.approx(1e6 / 750, abs=1 / 256)


# Round-trip times


def test_rtt_from_syn_to_ack(make: Make) -> None:
    """What the SYN waits here is no part of it."""
    queue = make({**STILL, SHORT: 0, BANDWIDTH: 8 * MBIT})
    queue.send(segment(SYN, 1))
    time.sleep(0.05)
    queue.send(segment(ACK, 1))
    assert queue.flow()[XqmFlow.RTT] == pytest.approx(0.05e9, abs=1e5)
    # 100 ms of queue before the next one's
    queue.send(*[frame()] * 99)
    before = queue.read().backlog
    queue.send(segment(SYN, 2))
    time.sleep(0.25)
    queue.send(segment(ACK, 2), data(2), data(2))
    found = {flow[XqmFlow.RTT] for flow in queue.flows()}
    expected = 0.25e9 - before / 1e6 * 1e9
    assert 0 in found  # UDP's
    assert min(abs(rtt - expected) for rtt in found) < 2e5
    # smaller ones count, larger ones do not, nor what is no handshake
    for wait, rtt in ((0.2, 0.05), (0.01, 0.01)):
        queue.open()
        queue.shape(1)
        queue.send(segment(SYN, 1))
        queue.send(segment(SYN | ACK, 1), segment(FIN | SYN, 1))
        queue.open()
        time.sleep(wait)
        queue.send(segment(ACK, 1), segment(ACK, 1))
        assert min(flow[XqmFlow.RTT] for flow in queue.flows() if flow[XqmFlow.RTT]) == (
            pytest.approx(rtt * 1e9, rel=0.02)
        )


def test_a_flow_of_unknown_rtt_has_the_mean_of_the_others(make: Make) -> None:
    queue = make({**STILL, SHORT: 0})
    queue.send(data(9))
    assert queue.flow()[XqmFlow.QUIESCENT] == queue.flow()[XqmFlow.RTT] == 0
    assert queue.stat(XqmStat.RTT_AVG) == 0
    queue.send(segment(SYN, 1))
    time.sleep(0.05)
    queue.send(segment(ACK, 1), data(9), data(9))
    mean = queue.stat(XqmStat.RTT_AVG)
    assert mean == pytest.approx(0.05e9, abs=2e6)
    assert queue.flows()[0][XqmFlow.RTT] == mean
    assert queue.flows()[0][XqmFlow.QUIESCENT] > 0


def test_rtt_of_connections_between_the_same_hosts(make: Make) -> None:
    """A SYN of one and an ACK of another are no handshake."""
    queue = make({**STILL, SHORT: 0, FLOW: SRC_DST})
    queue.send(segment(SYN, 1))
    time.sleep(0.001)
    queue.send(data(2))
    time.sleep(0.049)
    queue.send(segment(ACK, 1))
    assert queue.flow()[XqmFlow.RTT] == pytest.approx(0.05e9, abs=1e6)


def test_rtt_from_the_label_or_given(make: Make) -> None:
    queue = make({**STILL, SHORT: 0, RTT: RTT_LABEL})
    queue.send(segment(ACK, 1))
    assert queue.flow()[XqmFlow.RTT] == 0
    queue.send(segment(ACK, 1, label=700), segment(ACK, 1))
    assert queue.flow()[XqmFlow.RTT] == 70 * MS
    queue.change({RTT: RTT_GIVEN, RTT_TIME: 33 * MS})
    queue.send(segment(ACK, 1, label=700))
    assert queue.flow()[XqmFlow.RTT] == 33 * MS


def test_classes_are_octaves(make: Make) -> None:
    queue = make({**STILL, SHORT: 0, FLOW: RTT_CLASS, RTT: RTT_LABEL, BANDWIDTH: 80 * MBIT})
    queue.send(*(segment(ACK, port, label=200 + 10 * port) for port in range(1, 150)))
    classes = queue.flows()
    # 21 to 169 ms: to 33.6, to 67.1, to 134.2
    assert sorted(found[XqmFlow.WEIGHT] for found in classes) == [13, 34, 35, 67]
    share = queue.stat(XqmStat.SHARE) / 256
    for found in classes:
        assert found[XqmFlow.SHARE] / 256 == pytest.approx(share * found[XqmFlow.WEIGHT], rel=1e-3)


# The law


@pytest.mark.parametrize(("target", "rtt"), [(1, 100), (50, 100), (50, 10), (200, 300)])
def test_quiescent_rate_is_that_of_the_paper(make: Make, target: int, rtt: int) -> None:
    """At which a flow begins."""
    queue = make({
        **STILL, SHORT: 0, TARGET: target, BANDWIDTH: 8 * MBIT, RTT: RTT_GIVEN, RTT_TIME: rtt * MS,
    })  # fmt: skip
    queue.send(data(1))
    expected = quiescent(1000, rtt / 1000 + target / 1000)
    assert queue.imposed() == pytest.approx(expected, rel=1e-4)
    queue.send(data(2), data(3), data(4))
    expected = quiescent(250, rtt / 1000 + target / 1000)
    for flow in queue.flows():
        assert flow[XqmFlow.QUIESCENT] / CERTAIN == pytest.approx(expected, rel=1e-4)


def test_the_papers_value(make: Make) -> None:
    """ALGORITHMS.md's check: 100 packets/s, 100 ms."""
    queue = make({
        **STILL, SHORT: 0, TARGET: 50, BANDWIDTH: 800_000, AVPKT: 80, BYTEMODE: 1, SHARE: 8000,
        RTT: RTT_GIVEN, RTT_TIME: 95 * MS,
    })  # fmt: skip
    queue.send(data(1))
    assert queue.flow()[XqmFlow.QUIESCENT] / CERTAIN == pytest.approx(0.01961, abs=5e-6)


def test_queue_moves_the_rate(make: Make) -> None:
    """Eq. (20), while the flow's throughput is not known yet."""
    phi, target = 1e-6, 20
    queue = make({
        **STILL, SHORT: 0, XQM_PHI: real(phi), TARGET: target, RTT: RTT_GIVEN, RTT_TIME: 20 * MS,
    })  # fmt: skip
    queue.send(data(1))
    begun = queue.imposed()
    assert begun == queue.flow()[XqmFlow.QUIESCENT] / CERTAIN
    time.sleep(PERIOD * 10.5)
    assert queue.imposed() == pytest.approx(begun + phi * (1 - target) * 10, abs=2e-9)
    while queue.read().qlen < 31:
        queue.send(data(1))
    after = queue.imposed() + phi * 11 * 5
    time.sleep(PERIOD * 5)
    assert queue.imposed() == pytest.approx(after, abs=2e-9)
    queue.send(data(1))  # a change holds for a flow from its last packet on
    queue.change({CONTROL: PI_T})
    time.sleep(PERIOD * 5)
    assert queue.imposed() == pytest.approx(after, abs=2e-9)
    # limits
    queue.change({CONTROL: PI_TB, XQM_PHI: real(1)})
    time.sleep(PERIOD)
    assert queue.flow()[XqmFlow.IMPOSED] == queue.flow()[XqmFlow.QUIESCENT]
    queue.send(data(1))
    queue.change({TARGET: 99})
    time.sleep(PERIOD)
    assert queue.imposed() == 0


def test_throughput_moves_the_rate(make: Make) -> None:
    """Eq. (19), bin by bin; a flow of 100 packets/s that has a share of 300."""
    delta = 3e-8
    queue = make({
        **STILL, SHORT: 0, CONTROL: PI_T, DELTA: real(delta), MEASURE_PERIOD: 2 * S, SHARE: 300_000,
        BANDWIDTH: 8 * MBIT, RTT: RTT_GIVEN, RTT_TIME: 5 * MS,
    })  # fmt: skip
    previous = None
    for step in range(800):
        queue.send(*[data(1)] * 2 if step % 2 else ())
        time.sleep(PERIOD)
        if step % 100 == 99 and step > 250:
            flow = queue.flow()
            assert flow[XqmFlow.THROUGHPUT] / 256 == pytest.approx(
                (queue.read().packets + queue.read().qlen) / (PERIOD * (step + 1)), rel=0.1
            )
            rate = queue.imposed()
            if previous is not None:
                change = delta * 100 * (flow[XqmFlow.THROUGHPUT] / 256 - 300)
                assert rate - previous == pytest.approx(change, rel=0.05)
            previous = rate


def test_onoff(make: Make) -> None:
    """Eq. (18): all or nothing, as the throughput is above the share or not."""
    queue = make({
        **STILL, SHORT: 0, CONTROL: ONOFF, MEASURE_PERIOD: S, SHARE: 100_000, BANDWIDTH: 8 * MBIT,
        RTT: RTT_GIVEN, RTT_TIME: 50 * MS,
    })  # fmt: skip
    seen = set()
    for packets in (0, 2, 0, 2):
        for _ in range(150):
            queue.send(*[data(1)] * packets, data(2))
            time.sleep(PERIOD)
        for flow in queue.flows():
            above = flow[XqmFlow.THROUGHPUT] > flow[XqmFlow.SHARE]
            assert flow[XqmFlow.IMPOSED] == (flow[XqmFlow.QUIESCENT] if above else 0)
            seen.add(above)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("ecn", "tos", "fate"),
    [(0, ECT0, Stat.DROPPED), (1, 0, Stat.DROPPED), (1, ECT0, Stat.ECN_MARK)],
)
def test_drops_are_spread(make: Make, ecn: int, tos: int, fate: Stat) -> None:
    """Eq. (17): from one drop to the next 1 to 1/q packets; twice q in all."""
    queue = make({
        **STILL, SHORT: 0, ECN: ecn, SHARE: 10_000, BANDWIDTH: 80 * MBIT, RTT: RTT_GIVEN,
        RTT_TIME: 995 * MS,
    })  # fmt: skip
    queue.send(data(1, tos))
    rate = queue.imposed()
    longest = round(1 / rate)
    assert longest == 51
    gaps, gap, counted = [], 0, queue.read().stats[fate]
    for _ in range(3000):
        queue.send(data(1, tos))
        gap += 1
        if (now := queue.read().stats[fate]) != counted:
            counted = now
            gaps.append(gap)
            gap = 0
    assert max(gaps[1:]) <= longest + 1
    expected = 3000 * 2 * rate / (1 + rate)
    assert len(gaps) == pytest.approx(expected, abs=4 * math.sqrt(expected / 3))
    stats = queue.read().stats
    assert stats[XqmStat.IMPOSED] == stats[Stat.DROPPED] + stats[Stat.ECN_MARK] == counted
    assert queue.read().drops == stats[Stat.DROPPED]


def test_short_flows_are_left_alone(make: Make) -> None:
    settings = {**STILL, SHARE: 1000, BANDWIDTH: 80 * MBIT, RTT: RTT_GIVEN, RTT_TIME: MS}
    queue = make({**settings, SHORT: 20})
    assert queue.send(*[data(1)] * 20) == 0
    assert queue.stat(XqmStat.EXEMPT) == 20
    # of a share of a packet a second, all are dropped
    assert queue.send(*[data(1)] * 20) > 15
    queue.change({SHORT: 1000})
    assert queue.send(*[data(1)] * 20) == 0
    assert queue.stat(XqmStat.FLOWS) == 0


def test_udp_of_twice_its_share_is_held_to_it(make: Make) -> None:
    """Within 5 %: two flows on a link of 1000 packets/s, of which one sends all that."""
    queue = make({
        BANDWIDTH: 8 * MBIT, AVPKT: LENGTH, LIMIT: 250, MEASURE_PERIOD: 2 * S, CONTROL: PI_TB,
    })  # fmt: skip
    queue.shape(LENGTH * 1000)
    counts = {1000: 0, 1001: 0}
    for step in range(12_000):
        if step == 4000:
            queue.received()
            counts = dict.fromkeys(counts, 0)
        # 500 packets/s and 1000
        queue.send(frame(number=1), frame(number=0), frame(number=0))
        time.sleep(0.002)
        if step % 500 == 499:
            for came in queue.received():
                counts[int.from_bytes(came[34:36], "big")] += 1
    assert counts[1000] / 16 == pytest.approx(500, rel=0.05)
    assert counts[1001] / 16 == pytest.approx(500, rel=0.05)


def test_udp_has_shares_by_weight(make: Make, link: Link) -> None:
    """Both send more than the link carries; goodputs as 1 to 2, within 10 %."""
    queue = make({
        BANDWIDTH: 8 * MBIT, AVPKT: LENGTH, MEASURE_PERIOD: 2 * S, WEIGHTS: weights(1, 2),
    })  # fmt: skip
    queue.shape(LENGTH * 1000)
    sender = link.near._socket
    counts = {1000: 0, 1001: 0}
    for step in range(12_000):
        for number in (0, 1):
            sender.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, number)
            queue.send(*[frame(number=number)] * 2)
        time.sleep(0.002)
        if step == 4000:
            queue.received()
            counts = dict.fromkeys(counts, 0)
        if step % 500 == 499:
            for came in queue.received():
                counts[int.from_bytes(came[34:36], "big")] += 1
    assert counts[1001] / counts[1000] == pytest.approx(2, rel=0.1)


# Real connections


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.param, loss=0)
    yield made
    made.close()


@pytest.mark.parametrize("world", [[0.02, 0.05, 0.08] * 2], indirect=True, ids=["6 flows"])
def test_tcp_has_shares_by_weight(tc: Tc, world: World) -> None:
    """Goodputs of weights 1 and 2 are as 1 to 2, within 10 %, at three round-trip times."""
    rate, length = 4_800_000, 1514  # bit/s, bytes of a frame
    with inside("router"):
        tc(
            "qdisc add dev to-server root handle 1: htb default 1",
            f"class add dev to-server parent 1: classid 1:1 htb rate {rate}bit burst 2k cburst 2k "
            "quantum 1514",
            f"qdisc add dev to-server parent 1:1 handle 2: xqm bandwidth {rate}bit "
            f"weights 1 2 avpkt {length}",
            "qdisc add dev to-server clsact",
            *(
                f"filter add dev to-server egress protocol ip prio 1 u32 match ip dst "
                f"10.1.0.{host}/32 action skbedit priority {host > 3:d}"
                for host in range(1, 7)
            ),
        )
        for device in ("to-server", "to-client"):
            _no_offload(device)
    for end in ("client", "server"):
        with inside(end):
            _no_offload("eth0")
            Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")
    by_address = world.connect()
    connections = [by_address[f"10.1.0.{host}"] for host in range(1, 7)]
    for step in range(9000):
        if step == 3000:
            for connection in connections:
                connection.received = 0
        for connection in connections:
            connection.move(30_000)
        time.sleep(0.01)
    goodput = [connection.received for connection in connections]
    ratio = sum(goodput[3:]) / sum(goodput[:3])
    assert ratio == pytest.approx(2, rel=0.1)
    # and hardly less than the link carries
    assert sum(goodput) > 0.9 * rate / 8 * 60


def _no_offload(device: str) -> None:
    words = ["ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"]
    subprocess.run(words, check=True, capture_output=True)


# Hiding

HIDDEN = 33
VERSIONS = pytest.mark.parametrize("version", [4, 6], ids=["IPv4", "IPv6"])
TAGS = pytest.mark.parametrize(
    "tags", [(), (ETH_P_8021Q,), (ETH_P_8021AD, ETH_P_8021Q)], ids=["untagged", "VLAN", "QinQ"]
)


def tagged(whole: bytes, tags: tuple[int, ...]) -> bytes:
    """A frame behind VLAN tags."""
    link = b"".join(struct.pack("!HH", tag, 7) for tag in tags)
    return whole[:12] + link + whole[12:]


def hiding(make: Make, settings: Settings) -> Queue:
    """A queue whose only flow has more losses elsewhere than it may bear."""
    queue = make({
        **STILL, SHORT: 0, TARGET: 100, XQM_PHI: real(1), RTT: RTT_GIVEN, HIDE: HIDE_ONOFF,
        **settings,
    })  # fmt: skip
    queue.send(data(1))
    time.sleep(3 * PERIOD)
    return queue


@TAGS
@pytest.mark.parametrize("ect", range(4), ids=["NotECT", "ECT1", "ECT0", "CE"])
@pytest.mark.parametrize("dscp", [0, 46, HIDDEN])
def test_hidden_packets_get_the_code_point(
    make: Make, tags: tuple[int, ...], ect: int, dscp: int
) -> None:
    """And keep their ECN bits; the header's checksum is right."""
    queue = hiding(make, {})
    queue.send(tagged(data(1, dscp << 2 | ect), tags))
    queue.open()
    came = queue.received()[-1]
    assert came == received(tagged(data(1, HIDDEN << 2 | ect), tags))
    assert checksum(came[-986:-966]) == 0
    assert queue.stat(XqmStat.HIDDEN) == 1


@VERSIONS
@TAGS
@pytest.mark.parametrize("hide", [HIDE_OFF, HIDE_ONOFF], ids=["off", "onoff"])
def test_the_code_point_means_hidden(
    make: Make, tags: tuple[int, ...], version: int, hide: int
) -> None:
    """A packet that came with it and is not to be hidden loses it, unless nothing is hidden."""
    queue = hiding(make, {HIDE: hide, HIDE_DSCP: 17})
    for dscp in (17, 18):
        queue.send(frame(dscp << 2 | ECT0, version=version, tags=tags))
    queue.open()
    left = 17 if hide == HIDE_OFF else 0
    assert queue.received()[-2:] == [
        received(frame(dscp << 2 | ECT0, version=version, tags=tags)) for dscp in (left, 18)
    ]
    assert queue.stat(XqmStat.HIDDEN) == 0


def test_who_is_not_hidden(make: Make) -> None:
    """Who is above its share, who does not slow down, and who is short."""
    queue = hiding(make, {SHORT: 3})
    queue.send(*[data(1)] * 4)
    queue.send(*[frame()] * 9)
    queue.send(*[data(2)] * 3)
    hidden = queue.stat(XqmStat.HIDDEN)
    assert hidden == 2
    queue.change({TARGET: 1})
    time.sleep(2 * PERIOD)
    queue.send(data(1))
    assert queue.stat(XqmStat.HIDDEN) == hidden
    queue.change({TARGET: 100, HIDE: HIDE_OFF})
    time.sleep(2 * PERIOD)
    queue.send(data(1))
    assert queue.stat(XqmStat.HIDDEN) == hidden


def test_smooth_hiding_hides_in_proportion(make: Make) -> None:
    """Of its packets -q / qhat, q falling by phi times what the queue is too short."""
    phi = 1e-5
    queue = make({
        **STILL, SHORT: 0, TARGET: 1001, XQM_PHI: real(phi), RTT: RTT_GIVEN, RTT_TIME: 50 * MS,
        HIDE: HIDE_SMOOTH, BANDWIDTH: 8 * MBIT, SHARE: 5000, AVPKT: LENGTH,
    })  # fmt: skip
    queue.send(data(1))
    qhat = queue.flow()[XqmFlow.QUIESCENT] / CERTAIN
    while queue.flow()[XqmFlow.HIDDEN] / CERTAIN < 0.3:
        time.sleep(PERIOD)
    # time stands still between two packets
    share = queue.flow()[XqmFlow.HIDDEN] / CERTAIN
    assert queue.imposed() == 0 and 0.3 <= share < 0.3 + 2 * phi * 1000 / qhat
    before = queue.stat(XqmStat.HIDDEN)
    queue.send(*[data(1)] * 2000)
    count = queue.stat(XqmStat.HIDDEN) - before
    assert count == pytest.approx(2000 * share, abs=5 * math.sqrt(2000 * share * (1 - share)))
    queue.change({HIDE: HIDE_ONOFF})
    queue.send(data(1))
    assert queue.flow()[XqmFlow.HIDDEN] == CERTAIN
    # down to -qhat at most
    queue.change({HIDE: HIDE_SMOOTH, XQM_PHI: real(1), TARGET: 50_000})
    time.sleep(PERIOD)
    assert queue.flow()[XqmFlow.HIDDEN] == CERTAIN


def test_hiding_by_copies(make: Make) -> None:
    """Each hidden packet goes twice, one right after the other, as long as few others wait."""
    queue = hiding(make, {HIDE_BY: BY_COPY, TARGET: 6})
    arrived = [data(1, tos) for tos in range(4, 4 + 4 * 9, 4)]
    queue.send(*arrived)
    assert queue.flow()[XqmFlow.HIDDEN] == CERTAIN
    before = queue.read()
    assert before.qlen == len(arrived) + 1
    queue.open()
    # the first packet of all came before anything was hidden; five, and KNOCK, wait behind the
    # fifth, which is not less than the target
    expected = [data(1), *arrived[:4]]
    for each in arrived[4:]:
        expected += [each, each]
    assert queue.received() == [received(each) for each in expected]
    after = queue.read()
    assert after.stats[XqmStat.HIDDEN] == 5
    assert after.empty and queue.parent().empty
    # the copies are the link's load, and not the flow's
    assert after.packets == len(expected) + 1
    assert after.stats[Stat.PKTS_IN] == len(arrived) + 2
    # who is above its share is not hidden
    queue.change({TARGET: 1, HIDE_BY: BY_COPY, XQM_PHI: real(1)})
    queue.shape(1)
    queue.send(data(2))
    time.sleep(3 * PERIOD)
    hidden = queue.stat(XqmStat.HIDDEN)
    queue.open()
    assert queue.stat(XqmStat.HIDDEN) == hidden


@pytest.mark.parametrize("parent", PARENTS)
def test_parents_know_of_the_copies(kernel: Netlink, link: Link, tc: Tc, parent: str) -> None:
    tree = Tree(kernel, link, XQM, PARENTS[parent], tc)
    settings = {**STILL, SHORT: 0, TARGET: 20, FLOW: 0, RTT: RTT_GIVEN, HIDE: HIDE_ONOFF}
    tree.request(ADD, {**settings, HIDE_BY: BY_COPY, XQM_PHI: real(1)})
    link.near.send(*[data(1)] * 5)
    time.sleep(5 * PERIOD)
    link.near.send(*[data(1)] * 25)
    sent = 0
    while not tree.empty():
        assert tree.agree()
        time.sleep(0.5 / RATE)
        sent += 1
    assert sent > 50
    assert tree.read().stats[XqmStat.HIDDEN] > 15
    assert len(link.far.received()) == 30 + tree.read().stats[XqmStat.HIDDEN]
    # with a copy in it
    link.near.send(*[data(1)] * 10)
    time.sleep(2.5 / RATE)
    tree.delete()
    assert all(above.qlen <= 1 and above.backlog <= FRAME for above in tree.ancestors())


def test_the_queue_downstream_spares_what_is_hidden(make: Make) -> None:
    settings = {SHARE: 1000, BANDWIDTH: 80 * MBIT, RTT: RTT_GIVEN, RTT_TIME: MS, SHORT: 0}
    queue = make({**STILL, **settings, PROTECT: HIDDEN})
    queue.send(data(1))
    assert queue.send(*[data(1, HIDDEN << 2 | CE)] * 20) == 0
    assert queue.send(*[data(1)] * 20) > 15


# Changes, many flows, and flows made to harm


def test_a_change_keeps_what_is_known(make: Make) -> None:
    queue = make({**STILL, SHORT: 0, RTT: RTT_GIVEN, RTT_TIME: 50 * MS})
    queue.send(data(1))
    kept: tuple[Settings, ...] = (
        {DELTA: real(1e-5)}, {LIMIT: 60}, {HIDE: HIDE_SMOOTH}, {CONTROL: PI_T}, {SHORT: 1},
        {ECN: 1}, {BANDWIDTH: 5 * MBIT}, {PROTECT: 3}, {FLOWS: 40_000},
    )  # fmt: skip
    for settings in kept:
        queue.change(settings)
        assert len(queue.flows()) == 1
    forgotten: tuple[Settings, ...] = (
        {FLOWS: 100}, {FLOW: SRC_DST}, {FLOW: RTT_CLASS}, {FLOW: 0}, {MEASURE_PERIOD: 5 * S},
        {CONTROL_PERIOD: 5 * MS}, {BYTEMODE: 1},
    )  # fmt: skip
    for settings in forgotten:
        queue.change(settings)
        assert queue.flows() == []
        assert queue.stat(XqmStat.FLOWS) == 0
        queue.send(data(1), data(1))
        assert queue.stat(XqmStat.FLOWS) == 1


def test_a_small_table_forgets_the_stalest(make: Make) -> None:
    queue = make({**STILL, SHORT: 0, FLOWS: 8})
    for port in range(1, 9):
        queue.send(data(port))
        time.sleep(0.02)
    queue.send(data(1), data(9))
    assert queue.stat(XqmStat.FLOWS) == 8
    assert queue.stat(XqmStat.EVICTED) == 1
    time.sleep(0.02)
    # the first one is known still
    queue.send(data(1))
    assert queue.stat(XqmStat.EVICTED) == 1
    queue.send(data(2))
    assert queue.stat(XqmStat.EVICTED) == 2


MILLION = 1_000_000
SHOWN = 65_000


def pktgen(file: str, *commands: str) -> None:
    for command in commands:
        (PKTGEN / file).write_text(f"{command}\n")


def test_a_million_flows(make: Make, link: Link, kernel: Netlink) -> None:
    """Come, are counted, shown as far as there is room for, and go."""
    queue = make({
        **STILL, SHORT: 0, FLOWS: 1 << 20, LIMIT: 1000, BANDWIDTH: 800 * MBIT, AVPKT: 64,
    })  # fmt: skip
    queue.open()  # pktgen would send what is dropped once more
    pktgen("kpktgend_0", "rem_device_all", f"add_device {link.name}")
    pktgen(
        link.name, "xmit_mode queue_xmit", "flag !SHARED", "flag IPSRC_RND", "flag UDPSRC_RND",
        "src_min 10.0.0.0", "src_max 10.255.255.255", "udp_src_min 1", "udp_src_max 65535",
        "dst 192.0.2.2", "pkt_size 60", "delay 0", f"count {MILLION // 50}",
    )  # fmt: skip
    for _ in range(50):
        pktgen("pgctrl", "start")
        time.sleep(0.001)  # the lab takes a clock that stands still for a hang
    pktgen("kpktgend_0", "rem_device_all")
    queue.send(*[frame()] * 200)
    stats = queue.read().stats
    flows, evicted = stats[XqmStat.FLOWS], stats[XqmStat.EVICTED]
    # some are made up twice; the table has places for most of them
    assert MILLION - 100 < flows + evicted <= MILLION + 2
    assert flows > 0.8 * MILLION
    assert stats[XqmStat.NOT_SHOWN] == flows - SHOWN
    assert len(queue.flows()) == SHOWN
    # the heaviest comes first; the others have a packet or two each
    time.sleep(1)
    throughputs = [flow[XqmFlow.THROUGHPUT] for flow in queue.flows()]
    assert throughputs[0] > 10 * max(throughputs[1:])
    time.sleep(11)
    queue.send(frame())
    stats = queue.read().stats
    assert stats[XqmStat.FLOWS] == 1 and stats[XqmStat.NOT_SHOWN] == 0
    assert len(queue.flows()) == 1
    assert stats[XqmStat.SHARE] == stats[XqmStat.CAPACITY]
    kernel.delete_qdisc(link.index)


def test_flows_that_end_while_they_are_told(make: Make, link: Link) -> None:
    """The list comes in parts, between which its flows may become classes of flows."""
    queue = make({**STILL, LIMIT: 4000, SHORT: 0, BANDWIDTH: 100 * MBIT})
    queue.send(*(segment(ACK, port) for port in range(1, 3000)))
    with closing(Netlink()) as other:
        told = other.classes(link.index, QUEUE)
        assert next(told)[XqmFlow.SHARE]
        queue.change({FLOW: RTT_CLASS})
        assert sum(1 for flow in told if flow) < 2998
    assert queue.flows() == []


def test_looking_changes_nothing(make: Make, kernel: Netlink, link: Link) -> None:
    """Flows that wait for their next packet are as they would be if nobody had looked."""
    found = []
    for looked in (False, True):
        queue = make({**STILL, SHORT: 0, TARGET: 20, XQM_PHI: real(1e-6)})
        queue.send(frame(number=1))
        time.sleep(0.5)
        if looked:
            assert len(queue.flows()) == 1
            assert queue.read().stats
        queue.send(*[frame(number=2)] * 100)
        time.sleep(0.5)
        queue.send(frame(number=1))
        found.append(sorted(flow[XqmFlow.IMPOSED] for flow in queue.flows()))
        kernel.delete_qdisc(link.index)
    assert found[0] == found[1]
    assert found[0][0] < found[0][1]


def test_flooding_with_chosen_ports_changes_nothing(make: Make) -> None:
    """What one flow has stays as it is while a hundred thousand come that somebody makes up."""
    chance = random.Random(1)
    queue = make({**STILL, LIMIT: 1 << 20, FLOWS: 1024, SHORT: 3, BANDWIDTH: 8 * MBIT})
    queue.send(segment(SYN, 7))
    time.sleep(0.05)
    queue.send(segment(ACK, 7), *[data(7)] * 4)
    before = queue.flow()
    for _ in range(1000):
        queue.send(*(segment(ACK, chance.randrange(1000, 65536)) for _ in range(100)))
        time.sleep(0.001)
        queue.send(data(7))
    stats = queue.read().stats
    assert stats[XqmStat.EVICTED] > 50_000
    (after, *_) = queue.flows()
    for what in (XqmFlow.RTT, XqmFlow.QUIESCENT, XqmFlow.SHARE):
        # but for ports that came three times
        assert after[what] == pytest.approx(before[what], rel=0.02)


def test_each_decision_is_traced(make: Make) -> None:
    """What is traced of a packet explains its probability, eq. (17), and its hiding."""
    enable = TRACING / "events/xqm/xqm_decide/enable"
    (TRACING / "trace").write_text("")
    queue = make({
        **STILL, SHORT: 2, SHARE: 5000, BANDWIDTH: 8 * MBIT, RTT: RTT_GIVEN, RTT_TIME: 550 * MS,
        HIDE: HIDE_ONOFF,
    })  # fmt: skip
    enable.write_text("1")
    refused = queue.send(*[data(1)] * 30)
    queue.change({XQM_PHI: real(1), TARGET: 99})
    time.sleep(2 * PERIOD)
    refused += queue.send(*[data(1)] * 5)
    enable.write_text("0")
    lines = [line for line in (TRACING / "trace").read_text().splitlines() if "xqm_decide" in line]
    found = [dict(re.findall(r"(\w+)=(\w+)", line)) for line in lines]
    assert len(found) == 35
    assert len({one["flow"] for one in found}) == 1
    since = 2  # with those that were left alone
    for number, one in enumerate(found):
        if number < 2:
            assert one["prob"] == one["rate"] == one["quiescent"] == one["since"] == "0"
            continue
        rate = int(one["rate"]) / 2**48
        assert int(one["share"]) / 256 == 5
        assert one["hidden"] == str(int(number >= 30))
        if number < 30:
            assert rate == pytest.approx(quiescent(5, 0.55 + 0.05), rel=1e-3)
            assert int(one["since"]) == since
        probability = min(1.0, rate / max(1 - int(one["since"]) * rate, rate))
        assert int(one["prob"]) / CERTAIN == pytest.approx(probability, rel=1e-6)
        since = 0 if one["verdict"] == "drop" else since + 1
    assert refused == sum(one["verdict"] == "drop" for one in found) > 0


def test_classes_in_human_form(make: Make, tc: Tc) -> None:
    queue = make({**STILL, SHORT: 0, RTT: RTT_GIVEN, RTT_TIME: 50 * MS, BANDWIDTH: 8 * MBIT})
    queue.send(data(1), data(1), data(2))
    shown = tc("class show dev near", options="-statistics")
    lines = [line.strip() for line in shown.splitlines() if "quiescent" in line]
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"share 500pps throughput 0pps|share 500pps", line.partition(" rtt")[0])
        assert line.partition(" rtt ")[2].startswith("50ms quiescent 0.0")
        assert line.endswith("weight 1")
    assert "xqm 2:1 " in shown and "xqm 2:2 " in shown


def test_classes_cannot_be_made(make: Make, tc: Tc) -> None:
    make({})
    for command in (
        "class add dev near parent 2: classid 2:1 xqm",
        "qdisc add dev near parent 2:1 pfifo",
    ):
        with pytest.raises(AssertionError):
            tc(command)
