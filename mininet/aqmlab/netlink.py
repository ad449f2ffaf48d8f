# SPDX-License-Identifier: GPL-2.0-or-later
"""Just enough rtnetlink and sock_diag to build a network and to watch it.

Debian's pyroute2 does this and far more, but importing it takes 1.4 s of wall time in the
lab: longer than all that is done here. Numbers and layouts are those of linux/netlink.h,
rtnetlink.h, if_link.h, neighbour.h, inet_diag.h and tcp.h.
"""

import os
import socket
import struct
from collections.abc import Iterator
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)

Address = IPv4Address | IPv6Address
AddressWithPrefix = IPv4Interface | IPv6Interface
Network = IPv4Network | IPv6Network

NETLINK_ROUTE, NETLINK_SOCK_DIAG = 0, 4
SOL_NETLINK, NETLINK_EXT_ACK = 270, 11
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO, NLM_F_DUMP = 0x1, 0x4, 0x8, 0x300
NLM_F_CREATE, NLM_F_EXCL = 0x400, 0x200
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
NLA_TYPE_MASK = 0x3FFF
RECEIVE_BYTES = 1 << 16  # the kernel fills at most 32 KiB of a dump at a time

RTM_NEWLINK, RTM_GETLINK = 16, 18
RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWNEIGH = 20, 24, 28
RTM_NEWQDISC, RTM_GETQDISC, RTM_GETTCLASS = 36, 38, 42
SOCK_DIAG_BY_FAMILY = 20

IFF_UP = 0x1
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO = 1, 3, 4, 18
IFLA_STATS64, IFLA_NET_NS_FD, IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES = 23, 28, 31, 32
IFLA_GSO_MAX_SEGS = 40
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL, IFA_F_NODAD = 1, 2, 0x2
NDA_DST, NDA_LLADDR, NUD_PERMANENT = 1, 2, 0x80
RTA_DST, RTA_GATEWAY, RTA_METRICS = 1, 5, 8
RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST = 254, 4, 0, 1
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TC_H_ROOT = 0xFFFFFFFF
INET_DIAG_INFO = 2
ALL_STATES, TIME_WAIT = 0xFFFFFFFF, 1 << 6

_HEADER = struct.Struct("=LHHLL")
_ATTRIBUTE = struct.Struct("=HH")


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    return _ATTRIBUTE.pack(4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def u32(kind: int, value: int) -> bytes:
    """A 32-bit attribute."""
    return attribute(kind, struct.pack("=L", value))


def attributes(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """The attributes in DATA from OFFSET on, by kind; of a repeated one, the last."""
    found = {}
    while offset + 4 <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        found[kind & NLA_TYPE_MASK] = data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found


class Netlink:
    """A netlink socket in the network namespace of the moment it is made."""

    def __init__(self, protocol: int = NETLINK_ROUTE) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol
        )
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._socket.send(
            _HEADER.pack(_HEADER.size + len(body), kind, NLM_F_REQUEST | flags, 0, 0) + body
        )

    def _receive(self) -> Iterator[tuple[int, bytes]]:
        """Kind and body of each message of one datagram; OSError if it reports an error."""
        data = self._socket.recv(RECEIVE_BYTES)
        offset = 0
        while offset < len(data):
            length, kind, flags, _, _ = _HEADER.unpack_from(data, offset)
            body = data[offset + _HEADER.size : offset + length]
            if kind == NLMSG_ERROR:
                _raise_error(body, flags)
            yield kind, body
            offset += (length + 3) & ~3

    def change(self, kind: int, body: bytes, flags: int = 0) -> None:
        """Have the kernel do something; OSError with its words if it will not."""
        self._send(kind, NLM_F_ACK | flags, body)
        for _ in self._receive():
            pass

    def get(self, kind: int, body: bytes) -> bytes:
        """The body of the one message that answers."""
        self._send(kind, NLM_F_ECHO, body)  # older kernels answer only those who ask for an echo
        for _, answer in self._receive():
            return answer
        raise OSError("netlink: empty answer")

    def dump(self, kind: int, body: bytes) -> list[bytes]:
        """The bodies of all messages that answer."""
        self._send(kind, NLM_F_DUMP, body)
        answers: list[bytes] = []
        while True:
            for answer_kind, answer in self._receive():
                if answer_kind == NLMSG_DONE:
                    return answers
                answers.append(answer)


def _raise_error(body: bytes, flags: int) -> None:
    """Raise the OSError that an error message tells of, unless it is a plain acknowledgement."""
    code = -struct.unpack_from("=l", body)[0]
    if not code:
        return
    words = os.strerror(code)
    if flags & NLM_F_ACK_TLVS:
        request = _HEADER.size if flags & NLM_F_CAPPED else struct.unpack_from("=L", body, 4)[0]
        message = attributes(body, 4 + request).get(NLMSGERR_ATTR_MSG, b"")
        words = message.rstrip(b"\0").decode() or words
    raise OSError(code, words)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _family(address: Address | Network) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _link_message(index: int = 0, flags: int = 0) -> bytes:
    """struct ifinfomsg: a device, and flags to set."""
    return struct.pack("=BxHiLL", socket.AF_UNSPEC, 0, index, flags, flags)


def _device(name: str, mac: str, mtu: int) -> bytes:
    """struct ifinfomsg and attributes of a device that takes single packets only."""
    return (
        _link_message()
        + attribute(IFLA_IFNAME, name.encode() + b"\0")
        + attribute(IFLA_ADDRESS, _mac(mac))
        + u32(IFLA_MTU, mtu)
        # TCP joins segments for any device, whatever its offloads; this keeps it from that.
        + u32(IFLA_GSO_MAX_SEGS, 1)
        + u32(IFLA_NUM_TX_QUEUES, 1)
        + u32(IFLA_NUM_RX_QUEUES, 1)
    )


class Route(Netlink):
    """Devices, addresses, routes and queues of one network namespace."""

    def add_veth(
        self, names: tuple[str, str], macs: tuple[str, str], mtu: int, peer_namespace: int
    ) -> None:
        """A pair of devices, down: one here, one in the namespace of descriptor PEER_NAMESPACE."""
        peer = _device(names[1], macs[1], mtu) + u32(IFLA_NET_NS_FD, peer_namespace)
        info = attribute(IFLA_INFO_KIND, b"veth") + attribute(
            IFLA_INFO_DATA, attribute(VETH_INFO_PEER, peer)
        )
        body = _device(names[0], macs[0], mtu) + attribute(IFLA_LINKINFO, info)
        self.change(RTM_NEWLINK, body, NLM_F_CREATE | NLM_F_EXCL)

    def set_up(self, index: int) -> None:
        """Set a device up."""
        self.change(RTM_NEWLINK, _link_message(index, IFF_UP))

    def add_address(self, index: int, address: AddressWithPrefix) -> None:
        """Give a device an address, usable at once."""
        body = struct.pack(
            "=BBBBi", _family(address.ip), address.network.prefixlen, IFA_F_NODAD, 0, index
        )
        body += attribute(IFA_LOCAL, address.packed) + attribute(IFA_ADDRESS, address.packed)
        self.change(RTM_NEWADDR, body, NLM_F_CREATE | NLM_F_EXCL)

    def add_neighbour(self, index: int, address: Address, mac: str) -> None:
        """Tell a neighbour's link address for good: nobody needs to ask over the link."""
        body = struct.pack("=BxHiHBB", _family(address), 0, index, NUD_PERMANENT, 0, 0)
        body += attribute(NDA_DST, address.packed) + attribute(NDA_LLADDR, _mac(mac))
        self.change(RTM_NEWNEIGH, body, NLM_F_CREATE | NLM_F_EXCL)

    def add_route(self, to: Network, via: Address, metrics: dict[int, int]) -> None:
        """A route by a gateway, with metrics by RTAX number."""
        body = struct.pack(
            "=BBBBBBBBL",
            _family(to),
            to.prefixlen,
            0,
            0,
            RT_TABLE_MAIN,
            RTPROT_STATIC,
            RT_SCOPE_UNIVERSE,
            RTN_UNICAST,
            0,
        )
        body += attribute(RTA_DST, to.network_address.packed)
        body += attribute(RTA_GATEWAY, via.packed)
        if metrics:
            packed = b"".join(u32(kind, value) for kind, value in metrics.items())
            body += attribute(RTA_METRICS, packed)
        self.change(RTM_NEWROUTE, body, NLM_F_CREATE | NLM_F_EXCL)

    def add_root_qdisc(self, index: int, kind: str, options: bytes) -> None:
        """Attach a qdisc as a device's root."""
        self._root_qdisc(index, kind, options, NLM_F_CREATE)

    def change_root_qdisc(self, index: int, kind: str, options: bytes) -> None:
        """Change the options of a device's root."""
        self._root_qdisc(index, kind, options, 0)

    def _root_qdisc(self, index: int, kind: str, options: bytes, flags: int) -> None:
        body = tc_message(index, parent=TC_H_ROOT) + attribute(TCA_KIND, kind.encode() + b"\0")
        self.change(RTM_NEWQDISC, body + attribute(TCA_OPTIONS, options), flags)

    def link(self, index: int) -> dict[int, bytes]:
        """A device's attributes, by IFLA number."""
        request = _link_message(index)
        return attributes(self.get(RTM_GETLINK, request), len(request))


def tc_message(index: int, handle: int = 0, parent: int = 0) -> bytes:
    """struct tcmsg: which qdisc or class of which device."""
    return struct.pack("=BxxxiLLL", socket.AF_UNSPEC, index, handle, parent, 0)


TC_MESSAGE_BYTES = len(tc_message(0))

_DIAG_ID = "=HH16s16sLLL"  # struct inet_diag_sockid; ports in network order
_DIAG_ANSWER_BYTES = 72  # struct inet_diag_msg


class SocketDiag(Netlink):
    """The TCP sockets of one network namespace."""

    def __init__(self) -> None:
        super().__init__(NETLINK_SOCK_DIAG)

    def tcp_info(self, family: int) -> Iterator[tuple[int, bytes]]:
        """Local port and struct tcp_info of each TCP socket that has one."""
        request = struct.pack(
            "=BBBxL", family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), ALL_STATES & ~TIME_WAIT
        )
        request += struct.pack(_DIAG_ID, 0, 0, b"", b"", 0, 0, 0)
        for answer in self.dump(SOCK_DIAG_BY_FAMILY, request):
            info = attributes(answer, _DIAG_ANSWER_BYTES).get(INET_DIAG_INFO)
            if info:
                yield int.from_bytes(answer[4:6], "big"), info
