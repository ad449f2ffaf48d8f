# SPDX-License-Identifier: GPL-2.0-or-later
"""Routing netlink, small enough that a test decides about every byte that goes to the kernel."""

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
ADD, CHANGE, REPLACE = NLM_F_CREATE | NLM_F_EXCL, 0, NLM_F_CREATE | NLM_F_REPLACE

SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
NLA_F_NESTED = 0x8000
NLA_TYPE_MASK = 0x3FFF

RTM_NEWLINK, RTM_DELLINK = 16, 17
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_GETTCLASS = 42
IFF_UP = 1
IFLA_IFNAME, IFLA_LINK, IFLA_MASTER, IFLA_TXQLEN, IFLA_LINKINFO = 3, 5, 10, 13, 18
IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES = 31, 32
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER, IFLA_VLAN_ID = 1, 2, 1, 1
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8

ROOT = 0xFFFFFFFF
"""The parent of a device's own qdisc."""


class Refusal(Exception):
    """The kernel said no: an errno, and a sentence if it gave one."""

    def __init__(self, errno: int, sentence: str) -> None:
        super().__init__(f"{os.strerror(errno)}: {sentence}")
        self.errno = errno
        self.sentence = sentence


def attribute(kind: int, payload: bytes) -> bytes:
    padding = b"\0" * (-len(payload) % 4)
    return struct.pack("=HH", 4 + len(payload), kind) + payload + padding


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def nest(kind: int, *attributes: bytes) -> bytes:
    return attribute(kind | NLA_F_NESTED, b"".join(attributes))


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:  # no attributes but a structure, as prio's options are
            break
        found[kind & NLA_TYPE_MASK] = data[4:length]
        data = data[-(-length // 4) * 4 :]
    return found


def numbers(data: bytes) -> dict[int, int]:
    """Attributes that each hold an unsigned number, without the padding between them."""
    return {
        kind: int.from_bytes(payload, "little")
        for kind, payload in attributes(data).items()
        if payload
    }


@dataclass(frozen=True)
class Qdisc:
    """A qdisc as the kernel reports it."""

    kind: str
    handle: int
    parent: int
    options: dict[int, int]
    bytes: int
    packets: int
    qlen: int
    backlog: int
    drops: int
    requeues: int
    overlimits: int
    stats: dict[int, int]

    @property
    def empty(self) -> bool:
        return (self.backlog, self.qlen) == (0, 0)


class Netlink:
    """A socket that makes links and qdiscs, and asks for them."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self._socket.bind((0, 0))

    def close(self) -> None:
        self._socket.close()

    def request(self, kind: int, flags: int, body: bytes) -> list[bytes]:
        """Send a request; return the bodies of what is answered, or raise Refusal."""
        return list(self._answers(kind, flags, body))

    def _answers(self, kind: int, flags: int, body: bytes) -> Iterator[bytes]:
        """The same, the kernel's next part asked for as it is needed."""
        header = struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_F_REQUEST, 0, 0)
        self._socket.send(header + body)
        while True:
            for kind, flags, body in self._messages():
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    _raise(flags, body)
                    return
                yield body

    def _messages(self) -> Iterator[tuple[int, int, bytes]]:
        data = self._socket.recv(1 << 20)
        while data:
            length, kind, flags = struct.unpack_from("=IHH", data)
            yield kind, flags, data[16:length]
            data = data[-(-length // 4) * 4 :]

    def add_link(self, kind: str, name: str, *more: bytes, data: bytes = b"") -> int:
        """Make a link and bring it up; return its index."""
        info = nest(IFLA_LINKINFO, text(IFLA_INFO_KIND, kind), nest(IFLA_INFO_DATA, data))
        body = _link(0, up=False) + text(IFLA_IFNAME, name) + b"".join(more) + info
        self.request(RTM_NEWLINK, ADD | NLM_F_ACK, body)
        index = socket.if_nametoindex(name)
        self.set_link(index, up=True)
        return index

    def add_veth(self, name: str, peer: str, queues: int = 1) -> tuple[int, int]:
        """Make a pair of connected devices; return their indexes."""
        many = attribute(IFLA_NUM_TX_QUEUES, struct.pack("=I", queues)) + attribute(
            IFLA_NUM_RX_QUEUES, struct.pack("=I", queues)
        )
        other = nest(VETH_INFO_PEER, _link(0, up=False) + text(IFLA_IFNAME, peer) + many)
        near = self.add_link("veth", name, many, data=other)
        far = socket.if_nametoindex(peer)
        self.set_link(far, up=True)
        return near, far

    def set_link(self, index: int, *more: bytes, up: bool) -> None:
        self.request(RTM_NEWLINK, NLM_F_ACK, _link(index, up=up) + b"".join(more))

    def delete_link(self, index: int) -> None:
        self.request(RTM_DELLINK, NLM_F_ACK, _link(index, up=False))

    def qdisc(
        self, how: int, device: int, kind: str, options: bytes | None, parent: int, handle: int
    ) -> None:
        """Add, change or replace a qdisc; `options` is the whole TCA_OPTIONS or None."""
        body = _tcmsg(device, parent, handle) + text(TCA_KIND, kind) + (options or b"")
        self.request(RTM_NEWQDISC, how | NLM_F_ACK, body)

    def delete_qdisc(self, device: int, parent: int = ROOT) -> None:
        self.request(RTM_DELQDISC, NLM_F_ACK, _tcmsg(device, parent, 0))

    def qdiscs(self, device: int) -> list[Qdisc]:
        answers = self.request(RTM_GETQDISC, NLM_F_DUMP, _tcmsg(0, 0, 0))
        return [_qdisc(body) for body in answers if struct.unpack_from("=4xi", body)[0] == device]

    def classes(self, device: int, qdisc: int) -> Iterator[dict[int, int]]:
        """The statistics of a qdisc's classes, as and in the order in which the kernel tells."""
        for body in self._answers(RTM_GETTCLASS, NLM_F_DUMP, _tcmsg(device, qdisc, 0)):
            stats = attributes(attributes(body[20:])[TCA_STATS2])
            yield numbers(stats.get(TCA_STATS_APP, b""))


def _raise(flags: int, body: bytes) -> None:
    errno = -struct.unpack_from("=i", body)[0]
    if errno:
        said = attributes(body[20:]) if flags & NLM_F_ACK_TLVS and flags & NLM_F_CAPPED else {}
        raise Refusal(errno, said.get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode())


def _link(index: int, *, up: bool) -> bytes:
    return struct.pack("=BxHiII", 0, 0, index, IFF_UP if up else 0, IFF_UP)


def _tcmsg(device: int, parent: int, handle: int) -> bytes:
    return struct.pack("=BxxxiIII", 0, device, handle, parent, 0)


def _qdisc(body: bytes) -> Qdisc:
    _, handle, parent = struct.unpack_from("=4xiII", body)
    found = attributes(body[20:])
    stats = attributes(found[TCA_STATS2])
    sent, packets = struct.unpack_from("=QI", stats[TCA_STATS_BASIC])
    if TCA_STATS_PKT64 in stats:
        (packets,) = struct.unpack("=Q", stats[TCA_STATS_PKT64])
    qlen, backlog, drops, requeues, overlimits = struct.unpack("=5I", stats[TCA_STATS_QUEUE])
    return Qdisc(
        kind=found[TCA_KIND].rstrip(b"\0").decode(),
        handle=handle,
        parent=parent,
        options=numbers(found.get(TCA_OPTIONS, b"")),
        bytes=sent,
        packets=packets,
        qlen=qlen,
        backlog=backlog,
        drops=drops,
        requeues=requeues,
        overlimits=overlimits,
        stats=numbers(stats.get(TCA_STATS_APP, b"")),
    )
