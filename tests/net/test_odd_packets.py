# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets nobody expects, through every queue and the action: what may be written is written, the
rest comes out as it went in, and the counts add up.
"""

import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence

import pytest

from bottleneck import STANDING, Bottleneck
from conftest import Link, Tc
from frames import (
    DESTINATION,
    DF,
    ECT0,
    ETH_P_8021AD,
    ETH_P_8021Q,
    ETH_P_IP,
    ETH_P_IPV6,
    MF,
    SOURCE,
    VIRTIO_NET_HDR_F_NEEDS_CSUM,
    Flags,
    Port,
    checksum,
    frame,
    ipv4,
    received,
    segment,
)
from kinds import COMPARATORS, ECN, KINDS, LIMIT, VARIANTS, Kind, Stat, encode
from netlink import ADD, ROOT, Netlink, number

IFLA_MTU = 4
JUMBO = 65535  # bytes: the most that a device carries
ETH_P_MPLS, ETH_P_PPPOE, ETH_P_TEB = 0x8847, 0x8864, 0x6558
IPPROTO_IPV6_IN_IPV4, VXLAN_PORT = 41, 4789
HOP_BY_HOP, ROUTING, FRAGMENT, OPTIONS, AUTHENTICATION, NOTHING = 0, 43, 44, 60, 51, 59
GSO_NONE, GSO_TCPV4, GSO_UDP, GSO_TCPV6, GSO_UDP_L4, GSO_ECN = 0, 1, 3, 4, 5, 0x80
SEGMENT = 1000  # bytes of payload
SEGMENTS = 10
PORT = 900  # no other test has flows from it, of which the namespace would know


def ethernet(kind: int, payload: bytes, tags: Sequence[int] = ()) -> bytes:
    tagged = b"".join(struct.pack("!HH", tag, 7) for tag in tags)
    return DESTINATION + SOURCE + tagged + kind.to_bytes(2, "big") + payload


def altered(data: bytes, at: int, value: int) -> bytes:
    """A packet one byte of which is another."""
    return data[:at] + bytes((value,)) + data[at + 1 :]


def with_options(words: int) -> bytes:
    """A UDP packet whose IPv4 header has so many words of options."""
    plain = ipv4(ECT0, bytes(100))
    header = bytes((0x45 + words,)) + plain[1:10] + b"\0\0" + plain[12:20] + b"\x01" * 4 * words
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + plain[20:]


def extended(*headers: int, cut: int = 0) -> bytes:
    """An IPv6 packet with these extension headers, and TCP; or what is left of it."""
    address = bytes.fromhex("20010db8000000000000000000000001")
    following = [*headers[1:], socket.IPPROTO_TCP]
    chain = b"".join(bytes((after, 0, 0, 0, 0, 0, 0, 1)) for after in following) if headers else b""
    rest = chain + segment(Flags.ACK, PORT)[34:]
    first = headers[0] if headers else socket.IPPROTO_TCP
    whole = struct.pack("!IHBB", 6 << 28 | ECT0 << 20, len(rest), first, 64) + address * 2 + rest
    return whole[: len(whole) - cut]


def odd_frames() -> Iterator[bytes]:
    """All of at most 1514 bytes."""
    tcp = segment(Flags.SYN, PORT, stamps=(1, 2), label=7)
    packet = tcp[14:]
    # cut short, everywhere
    for size in range(14, len(tcp)):
        yield tcp[:size]
    for size in range(54):
        yield ethernet(ETH_P_IPV6, extended()[:size])
    # the header of a version that is not that of the frame, or too short, or longer than the packet
    for first in (0x00, 0x40, 0x44, 0x4F, 0x55, 0x65, 0xF5):
        yield ethernet(ETH_P_IP, altered(packet, 0, first))
        yield ethernet(ETH_P_IPV6, altered(extended(), 0, first))
    for words in range(11):
        yield ethernet(ETH_P_IP, with_options(words))
    # lengths and checksums that are wrong
    for at in (2, 3, 10, 36, 37):
        yield ethernet(ETH_P_IP, altered(packet, at, 0xFF))
    # TCP's own
    for offset in (0, 1, 4, 6, 8, 15):
        yield ethernet(ETH_P_IP, altered(packet, 32, offset << 4))
    for flags in (0, 0xFF):
        yield ethernet(ETH_P_IP, altered(packet, 33, flags))
    # labels at their ends, and fragments, which have none
    for label in (0, 1, 0x7FFF, 0x8000, 0xFFFF):
        yield frame(ECT0, label=label)
        yield segment(Flags.ACK, PORT, label=label)
    for fragment in (0, MF, MF | DF, 1, 0x1FFF, DF | 0x1FFF, 0x8000, 0xFFFF):
        yield frame(ECT0, label=9, fragment=fragment)
    # IPv6, extended
    for headers in (
        (HOP_BY_HOP,), (ROUTING,), (FRAGMENT,), (OPTIONS,), (AUTHENTICATION,), (NOTHING,),
        (HOP_BY_HOP, ROUTING, FRAGMENT, OPTIONS), (OPTIONS,) * 20, (0xFF,),
    ):  # fmt: skip
        yield ethernet(ETH_P_IPV6, extended(*headers))
        yield ethernet(ETH_P_IPV6, extended(*headers, cut=25))
    # in tunnels, and with tags of all sorts
    yield ethernet(ETH_P_IP, ipv4(ECT0, packet, socket.IPPROTO_IPIP))
    yield ethernet(ETH_P_IP, ipv4(ECT0, extended(), IPPROTO_IPV6_IN_IPV4))
    for kind, inner in ((ETH_P_IP, packet), (ETH_P_TEB, tcp), (0xFFFF, b"")):
        gre = struct.pack("!HH", 0, kind) + inner
        yield ethernet(ETH_P_IP, ipv4(ECT0, gre, socket.IPPROTO_GRE))
    datagram = struct.pack("!HHHH", 50000, VXLAN_PORT, 16 + len(tcp), 0)
    yield ethernet(ETH_P_IP, ipv4(ECT0, datagram + b"\x08\0\0\0\0\0\x07\0" + tcp))
    yield ethernet(ETH_P_MPLS, b"\0\x01\x01\x40" + packet)
    yield ethernet(ETH_P_PPPOE, b"\x11\0\0\x01\0\x42\0\x21" + packet)
    for tags in (
        (ETH_P_8021Q,), (ETH_P_8021AD,), (ETH_P_8021AD, ETH_P_8021Q), (ETH_P_8021Q,) * 2,
        (ETH_P_8021AD,) * 3, (ETH_P_8021Q,) * 7, (ETH_P_8021Q,) * 20,
    ):  # fmt: skip
        yield ethernet(ETH_P_IP, packet, tags)
        yield ethernet(ETH_P_IPV6, extended(), tags)
        yield ethernet(0x1234, b"\0" * 10, tags)
    yield frame(size=60)
    yield frame(size=1514)


ODD = tuple(odd_frames())


def network(data: bytes) -> int:
    """Where the network header of a frame is, behind all its tags."""
    at = 12
    while int.from_bytes(data[at : at + 2], "big") in (ETH_P_8021Q, ETH_P_8021AD):
        at += 4
    return at + 2


def written(before: bytes, after: bytes, *places: tuple[int, int]) -> bool:
    """Whether a frame is what it was but for some bits (at, mask) of its network header, with
    IPv4's checksum as right or wrong as it was."""
    at = network(before)
    if len(before) != len(after):
        return False
    allowed = dict(places)
    is_ipv4 = before[at - 2 : at] == ETH_P_IP.to_bytes(2, "big")
    if is_ipv4:
        allowed |= {10: 0xFF, 11: 0xFF}
    same = all(
        (old ^ new) & ~allowed.get(byte - at, 0) == 0
        for byte, (old, new) in enumerate(zip(before, after, strict=True))
    )
    kept = not is_ipv4 or len(before) < at + 20 or (
        checksum(before[at : at + 20]) % 0xFFFF == checksum(after[at : at + 20]) % 0xFFFF
    )  # fmt: skip
    return same and kept


def marked(before: bytes, after: bytes) -> bool:
    """Whether a frame has got a congestion mark, and nothing else."""
    at = network(before)
    is_ipv4 = before[at - 2 : at] == ETH_P_IP.to_bytes(2, "big")
    return before != after and written(before, after, (1, 0x03 if is_ipv4 else 0x30))


def labels(before: bytes) -> bool:
    """Whether a frame can carry a label."""
    at = network(before)
    return (
        before[at - 2 : at] == ETH_P_IP.to_bytes(2, "big")
        and len(before) >= at + 20
        and before[at] >> 4 == 4
        and int.from_bytes(before[at + 6 : at + 8], "big") & (DF | MF | 0x1FFF) == DF
    )


def carried(link: Link) -> list[bytes]:
    """The odd frames as a receiver gets them."""
    assert link.near.send(*ODD) == 0
    return link.far.received()


@pytest.fixture(params=VARIANTS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    assert isinstance(request.param, Kind)
    return request.param


def root(kernel: Netlink, link: Link, kind: Kind) -> None:
    options = encode({**kind.given, **kind.never, LIMIT: 1000})
    kernel.qdisc(ADD, link.index, kind.name, options, ROOT, 0x10000)


def fifo(kernel: Netlink, link: Link) -> None:
    """A queue of Linux's own."""
    kernel.qdisc(ADD, link.index, "pfifo", None, ROOT, 0x10000)


def test_come_out_as_they_went_in(kernel: Netlink, link: Link, kind: Kind) -> None:
    fifo(kernel, link)
    as_they_are = carried(link)
    assert as_they_are == [received(data) for data in ODD]
    kernel.delete_qdisc(link.index)
    root(kernel, link, kind)
    assert carried(link) == as_they_are
    (qdisc,) = kernel.qdiscs(link.index)
    assert qdisc.packets == qdisc.stats[Stat.PKTS_IN] == len(ODD)
    assert qdisc.empty


@pytest.mark.parametrize("kind", (*KINDS, *COMPARATORS), ids=str, indirect=True)
def test_are_marked_or_dropped_and_nothing_else(kernel: Netlink, link: Link, kind: Kind) -> None:
    queue = Bottleneck(kernel, link, kind, {**kind.never, ECN: 1, LIMIT: 1000})
    if kind.certain:
        queue.congest()
    else:
        queue.fill(STANDING)
    before = queue.read()
    refused = [queue.send(data) for data in ODD]
    qdisc = queue.read()
    marks = qdisc.stats[Stat.ECN_MARK] - before.stats[Stat.ECN_MARK]
    assert qdisc.qlen == qdisc.stats[Stat.QUEUE] == STANDING + len(ODD) - sum(refused)
    assert qdisc.stats[Stat.DROPPED] - before.stats[Stat.DROPPED] == sum(refused)
    assert qdisc.drops - before.drops == sum(refused)
    queue.open()
    came = queue.received()[STANDING:]
    sent = [received(data) for data, no in zip(ODD, refused, strict=True) if not no]
    assert len(came) == len(sent)
    changed = [pair for pair in zip(sent, came, strict=True) if pair[0] != pair[1]]
    assert all(marked(*pair) for pair in changed)
    assert len(changed) == marks
    assert marks > 0 or not kind.certain
    assert queue.read().empty


@pytest.mark.parametrize("what", ["6553.5ms", "0.1ms", "clear", "handshake", "timestamps"])
def test_are_labelled_and_nothing_else(kernel: Netlink, tc: Tc, link: Link, what: str) -> None:
    fifo(kernel, link)
    before = carried(link)
    tc(
        "qdisc add dev near clsact",
        f"filter add dev near egress prio 1 protocol all matchall action rttlabel from {what}",
    )
    given = {"6553.5ms": (65535,), "0.1ms": (1,), "clear": (0,)}
    expected = given.get(what, (0, 1))  # among them a SYN, with what follows at once
    after = carried(link)
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        if labels(old):
            at = network(old)
            assert int.from_bytes(new[at + 4 : at + 6], "big") in expected, old.hex()
            assert written(old, new, (4, 0xFF), (5, 0xFF)), old.hex()
        else:
            assert new == old


def virtual(data: bytes, gso: int, headers: int, start: int, offset: int, size: int) -> bytes:
    """A frame as a virtual machine hands it out, with what tells how to cut it."""
    how = VIRTIO_NET_HDR_F_NEEDS_CSUM if gso else 0
    return struct.pack("=BBHHHH", how, gso, headers, size, start, offset) + data


def super_packets() -> dict[str, bytes]:
    """One of each type that can be made."""
    payload = bytes(SEGMENT * SEGMENTS)
    tcp = struct.pack("!HHIIBBHHH", 1000, 9, 1, 1, 5 << 4, 0x10, 1000, 0, 0) + payload
    udp = struct.pack("!HHHH", 1000, 9, 8 + len(payload), 0) + payload
    address = bytes.fromhex("20010db8000000000000000000000001")

    def six(next_header: int, rest: bytes) -> bytes:
        return ethernet(
            ETH_P_IPV6,
            struct.pack("!IHBB", 6 << 28, len(rest), next_header, 64) + address * 2 + rest,
        )

    four_tcp = ethernet(ETH_P_IP, ipv4(0, tcp, socket.IPPROTO_TCP))
    four_udp = ethernet(ETH_P_IP, ipv4(0, udp, fragment=0))
    six_tcp, six_udp = six(socket.IPPROTO_TCP, tcp), six(socket.IPPROTO_UDP, udp)
    return {
        "TCPv4": virtual(four_tcp, GSO_TCPV4, 54, 34, 16, SEGMENT),
        "TCPv4 with CWR": virtual(altered(four_tcp, 47, 0x90), GSO_TCPV4 | GSO_ECN, 54, 34, 16,
                                  SEGMENT),
        "TCPv6": virtual(six_tcp, GSO_TCPV6, 74, 54, 16, SEGMENT),
        "UDPv4": virtual(four_udp, GSO_UDP_L4, 42, 34, 6, SEGMENT),
        "UDPv6": virtual(six_udp, GSO_UDP_L4, 62, 54, 6, SEGMENT),
        "fragments of IPv4": virtual(four_udp, GSO_UDP, 42, 34, 6, SEGMENT),
        "jumbo": virtual(four_udp, GSO_NONE, 42, 0, 0, 0),
        "headers not in one piece": virtual(four_tcp, GSO_NONE, 15, 0, 0, 0),
        "headers elsewhere, IPv6": virtual(six_tcp, GSO_NONE, 14, 0, 0, 0),
        "headers of a super-packet elsewhere": virtual(four_tcp, GSO_TCPV4, 36, 34, 16, SEGMENT),
    }  # fmt: skip


SUPER = super_packets()


@pytest.fixture
def wide(kernel: Netlink, link: Link) -> Link:
    """A link whose frames may be as long as any."""
    for end in (link.index, link.far_index):
        kernel.set_link(end, number(IFLA_MTU, JUMBO), up=True)
    return link


@pytest.mark.parametrize("name", SUPER)
def test_super_packets_and_pieces(kernel: Netlink, wide: Link, kind: Kind, name: str) -> None:
    """What comes out is what comes out of a queue of Linux's own."""
    how = SUPER[name]
    fifo(kernel, wide)
    assert wide.near.send_super(how) == 0
    expected = wide.far.received()
    assert expected
    kernel.delete_qdisc(wide.index)
    root(kernel, wide, kind)
    assert wide.near.send_super(how) == 0
    assert wide.far.received() == expected
    (qdisc,) = kernel.qdiscs(wide.index)
    assert qdisc.empty
    assert qdisc.stats[Stat.QUEUE] == 0
    counted = SEGMENTS if how[1] and how[1] != GSO_UDP else qdisc.stats[Stat.PKTS_IN]
    assert qdisc.stats[Stat.PKTS_IN] == counted >= 1


@pytest.mark.parametrize("name", SUPER)
def test_super_packets_and_pieces_are_labelled(
    kernel: Netlink, tc: Tc, wide: Link, name: str
) -> None:
    fifo(kernel, wide)
    assert wide.near.send_super(SUPER[name]) == 0
    before = wide.far.received()
    tc(
        "qdisc add dev near clsact",
        "filter add dev near egress prio 1 protocol all matchall action rttlabel from 40ms",
    )
    assert wide.near.send_super(SUPER[name]) == 0
    after = wide.far.received()
    assert len(after) == len(before) > 0
    for old, new in zip(before, after, strict=True):
        assert (new[18:20] == (400).to_bytes(2, "big")) == labels(old)
        assert written(old, new, (4, 0xFF), (5, 0xFF))


def test_super_packets_in_a_tunnel(kernel: Netlink, link: Link, kind: Kind, tc: Tc) -> None:
    """GRE around a super-packet: the queue counts its segments, the action leaves it alone."""
    commands = (
        "addr add 198.51.100.1/24 dev near\n"
        f"neigh replace 198.51.100.2 lladdr {DESTINATION.hex(':')} dev near nud permanent\n"
        "link add tunnel type gretap local 198.51.100.1 remote 198.51.100.2 dev near\n"
        "link set tunnel up\n"
    )
    subprocess.run(["ip", "-batch", "-"], input=commands, text=True, check=True)
    tunnel = Port("tunnel")
    tc(
        "qdisc add dev near clsact",
        "filter add dev near egress prio 1 protocol all matchall action rttlabel from 40ms",
    )
    root(kernel, link, kind)
    link.far.received()
    assert tunnel.send_super(SUPER["TCPv4"]) == 0
    time.sleep(0.1)
    came = link.far.received()
    (qdisc,) = [q for q in kernel.qdiscs(link.index) if q.kind == kind.name]
    tunnel.close()
    subprocess.run(["ip", "link", "delete", "tunnel"], check=True)
    assert qdisc.empty
    assert qdisc.stats[Stat.PKTS_IN] == SEGMENTS
    assert came
