# SPDX-License-Identifier: GPL-2.0-or-later
"""Super-packets (GSO): each counts as the frames that it becomes.

Those of virtual machines come without their number of segments, and are counted.
"""

import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from bottleneck import Bottleneck
from conftest import Link
from frames import DESTINATION, ECT0, frame, super_packet
from kinds import CERTAIN_KINDS, ECN, LIMIT, Kind, Settings, Stat
from netlink import Netlink

IP_RECVERR = 11
SOL_UDP, UDP_SEGMENT = 17, 103
LENGTH = 1000  # bytes of a frame
SEGMENTS = 10
HEADERS = 14 + 20 + 8  # bytes: Ethernet, IPv4, UDP


@dataclass(frozen=True)
class Source:
    """Sends super-packets with a TOS, saying whether they were refused."""

    send: Callable[[int], bool]
    packets: int
    """What each counts for."""


def guest(link: Link) -> Source:
    packet = partial(super_packet, segments=SEGMENTS, size=LENGTH)
    return Source(lambda tos: bool(link.near.send_super(packet(tos))), SEGMENTS)


def local(link: Link) -> Source:
    mac = DESTINATION.hex(":")
    subprocess.run(
        ["ip", "-batch", "-"],
        input=f"addr add 198.51.100.1/24 dev {link.name}\n"
        f"neigh replace 198.51.100.2 lladdr {mac} dev {link.name} nud permanent\n",
        text=True,
        check=True,
    )
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)  # to be told of a drop
    sender.setsockopt(SOL_UDP, UDP_SEGMENT, LENGTH - HEADERS)

    def send(tos: int) -> bool:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        try:
            sender.sendto(bytes((LENGTH - HEADERS) * SEGMENTS), ("198.51.100.2", 9))
        except OSError:
            return True
        return False

    return Source(send, SEGMENTS)


@pytest.fixture(params=[guest, local])
def source(request: pytest.FixtureRequest, link: Link) -> Source:
    made = request.param(link)
    assert isinstance(made, Source)
    return made


Make = Callable[[Settings], Bottleneck]


@pytest.fixture
def make(kernel: Netlink, link: Link, kind: Kind) -> Make:
    return lambda settings: Bottleneck(kernel, link, kind, settings)


def test_counts_as_its_segments(make: Make, kind: Kind, source: Source) -> None:
    queue = make({**kind.never, LIMIT: 100})
    assert not source.send(0)
    assert not source.send(0)
    queue.fill(1)
    qdisc = queue.read()
    assert qdisc.stats[Stat.PKTS_IN] == qdisc.stats[Stat.MAXQ] == 2 * source.packets + 1
    assert qdisc.stats[Stat.QUEUE] == 2 * source.packets + 1
    assert qdisc.qlen == 3
    assert qdisc.backlog == (2 * SEGMENTS + 1) * LENGTH
    queue.open()
    qdisc = queue.read()
    assert qdisc.stats[Stat.QUEUE] == 0
    assert qdisc.empty


def test_needs_room_for_all_its_segments(make: Make, kind: Kind, source: Source) -> None:
    queue = make({**kind.never, LIMIT: 2 * source.packets + 5})
    assert [source.send(0) for _ in range(4)] == [False, False, True, True]
    assert queue.send(*[frame()] * 7) == 2
    qdisc = queue.read()
    assert qdisc.stats[Stat.OVERLIMIT] == 2 * source.packets + 2
    assert qdisc.stats[Stat.QUEUE] == 2 * source.packets + 5


def test_passes_an_empty_queue_whatever_the_limit(make: Make, kind: Kind, source: Source) -> None:
    queue = make({**kind.never, LIMIT: 2})
    assert [source.send(0), source.send(0)] == [False, True]
    assert queue.send(frame()) == 1
    queue.open()
    assert queue.read().empty
    assert not source.send(0)


def test_a_lower_limit_drops_it_whole(make: Make, kind: Kind, source: Source) -> None:
    queue = make({**kind.never, LIMIT: 100})
    assert not source.send(0)
    assert not source.send(0)
    queue.fill(3)
    queue.change({LIMIT: source.packets + 2})
    qdisc = queue.read()
    assert (qdisc.qlen, qdisc.stats[Stat.QUEUE]) == (3, 3)
    assert qdisc.stats[Stat.OVERLIMIT] == 2 * source.packets
    assert queue.parent().qlen == 3
    assert queue.parent().backlog == qdisc.backlog == 3 * LENGTH


@pytest.mark.parametrize("kind", CERTAIN_KINDS, ids=str, indirect=True)
@pytest.mark.parametrize(
    ("ecn", "tos", "fate"), [(1, ECT0, Stat.ECN_MARK), (1, 0, Stat.DROPPED), (0, 0, Stat.DROPPED)]
)
def test_is_marked_or_dropped_whole(
    make: Make, kind: Kind, source: Source, ecn: int, tos: int, fate: Stat
) -> None:
    queue = make({**kind.never, ECN: ecn})
    queue.congest()
    assert source.send(tos) == (fate is Stat.DROPPED)
    stats = queue.read().stats
    assert stats[fate] == source.packets
    assert stats[Stat.ECN_MARK] + stats[Stat.DROPPED] == source.packets
    assert stats[Stat.PKTS_IN] == 5 + stats[Stat.ECN_MARK]
