# SPDX-License-Identifier: GPL-2.0-or-later
"""Ways into a queue other than a socket's: several queues of a device, VLANs, bridges, IFB."""

import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bottleneck import STANDING, Bottleneck
from conftest import Link, Tc, users
from frames import CE, ECT0, ETH_P_8021AD, ETH_P_8021Q, Port, frame, received
from kinds import ECN, KINDS, Kind, Stat
from netlink import (
    IFLA_LINK,
    IFLA_NUM_TX_QUEUES,
    IFLA_TXQLEN,
    IFLA_VLAN_ID,
    Netlink,
    attribute,
    number,
)

DEFAULT_QDISC = Path("/proc/sys/net/core/default_qdisc")


@pytest.fixture(params=KINDS, ids=str, scope="session")
def kind(request: pytest.FixtureRequest) -> Kind:
    assert isinstance(request.param, Kind)
    return request.param


@pytest.fixture
def default_qdisc(kind: Kind) -> Iterator[None]:
    before = DEFAULT_QDISC.read_text()
    DEFAULT_QDISC.write_text(kind.name)
    yield
    DEFAULT_QDISC.write_text(before)


@pytest.mark.parametrize("kind", [k for k in KINDS if not k.given], ids=str, indirect=True)
@pytest.mark.usefixtures("default_qdisc")
def test_as_default_of_a_device_with_queues(
    kernel: Netlink, link: Link, kind: Kind, tc: Tc
) -> None:
    tc("qdisc add dev near root handle 1: mq")
    sent = [frame(number=number) for number in range(200)]
    assert link.near.send(*sent) == 0
    qdiscs = kernel.qdiscs(link.index)
    (mq,) = [q for q in qdiscs if q.kind == "mq"]
    children = [q for q in qdiscs if q.kind == kind.name]
    assert len(children) == len(qdiscs) - 1 == 4
    assert all(q.stats[Stat.PKTS_IN] == q.packets > 0 for q in children)
    assert sum(q.packets for q in children) == mq.packets == len(sent)
    assert all(q.empty for q in qdiscs)
    tc(
        f"qdisc replace dev near parent 1:1 handle 11: {kind} limit 300",
        f"qdisc change dev near parent 1:1 handle 11: {kind.name} ecn",
        "qdisc delete dev near parent 1:1",
        "qdisc delete dev near root",
    )


@pytest.mark.parametrize("kind", [k for k in KINDS if k.given], ids=str, indirect=True)
@pytest.mark.usefixtures("default_qdisc")
def test_is_no_default_if_more_must_be_said(
    kernel: Netlink, link: Link, kind: Kind, tc: Tc
) -> None:
    before = users(kind)
    with pytest.raises(AssertionError, match="Error"):
        tc("qdisc add dev near root handle 1: mq")
    assert users(kind) == before
    link.near.send(frame())
    assert link.far.received() == [frame()]


@pytest.mark.parametrize("kind", [k for k in KINDS if k.given], ids=str, indirect=True)
def test_child_of_a_device_with_queues(kernel: Netlink, link: Link, kind: Kind, tc: Tc) -> None:
    before = users(kind)
    tc(
        "qdisc add dev near root handle 1: mq",
        *(
            f"qdisc replace dev near parent 1:{queue} handle 1{queue}: {kind} limit 300"
            for queue in range(1, 5)
        ),
        f"qdisc change dev near parent 1:1 handle 11: {kind.name} ecn",
    )
    sent = [frame(number=number) for number in range(200)]
    assert link.near.send(*sent) == 0
    children = [q for q in kernel.qdiscs(link.index) if q.kind == kind.name]
    assert len(children) == 4
    assert all(q.stats[Stat.PKTS_IN] == q.packets > 0 for q in children)
    assert sum(q.packets for q in children) == len(sent)
    assert all(q.empty for q in children)
    tc("qdisc delete dev near parent 1:1", "qdisc delete dev near root")
    assert users(kind) == before


def test_marks_what_a_vlan_device_sends(kernel: Netlink, link: Link, kind: Kind) -> None:
    """The tag is beside the packet, not in it."""
    tag = attribute(IFLA_VLAN_ID, struct.pack("=H", 7))
    kernel.add_link("vlan", "near.7", number(IFLA_LINK, link.index), data=tag)
    tagged = Port("near.7")
    queue = Bottleneck(kernel, link, kind, {**kind.never, ECN: 1})
    queue.congest()
    assert tagged.send(frame(ECT0), frame(ECT0, version=6), frame()) == 1
    tagged.close()
    queue.open()
    assert queue.received()[STANDING:] == [frame(CE), frame(CE, version=6)]


@pytest.mark.parametrize(
    "tags",
    [(), (ETH_P_8021Q,), (ETH_P_8021AD, ETH_P_8021Q)],
    ids=["untagged", "VLAN", "QinQ"],
)
@pytest.mark.parametrize("version", [4, 6], ids=["IPv4", "IPv6"])
def test_marks_what_a_bridge_forwards(
    kernel: Netlink, bridged: Link, kind: Kind, tags: Sequence[int], version: int
) -> None:
    queue = Bottleneck(kernel, bridged, kind, {**kind.never, ECN: 1})
    queue.congest()
    queue.send(frame(ECT0, version=version, tags=tags))
    assert queue.read().stats[Stat.ECN_MARK] == 1
    queue.open()
    assert queue.received()[STANDING:] == [received(frame(CE, version=version, tags=tags))]


def test_packets_that_a_device_hands_back(kernel: Netlink, link: Link, kind: Kind, tc: Tc) -> None:
    """A device that takes one packet at a time: the next is put back before the queue."""
    slow = kernel.add_link("ifb", "slow", number(IFLA_NUM_TX_QUEUES, 4), number(IFLA_TXQLEN, 1))
    tc(
        "qdisc add dev near root handle 1: tbf rate 8bit burst 1514 limit 1mb",
        f"qdisc add dev slow root handle 1: {kind}",
        "qdisc add dev far clsact",
        "filter add dev far ingress protocol all prio 1 matchall "
        "action mirred egress redirect dev slow",
    )
    link.near.send(*[frame(number=number) for number in range(40)])
    tc("qdisc change dev near root handle 1: tbf rate 30gbit burst 100mb limit 1mb")
    link.near.send(frame())
    time.sleep(0.1)
    (queue,) = kernel.qdiscs(slow)
    kernel.delete_link(slow)
    assert queue.requeues > 0
    assert queue.empty
    assert queue.packets == queue.stats[Stat.PKTS_IN] == 41
