# SPDX-License-Identifier: GPL-2.0-or-later
"""Ethernet frames made and read byte by byte, past the network stack."""

import socket
import struct
import time
from collections.abc import Sequence
from enum import IntFlag
from errno import ENOBUFS

NOT_ECT, ECT1, ECT0, CE = range(4)
DF, MF = 0x4000, 0x2000  # of an IPv4 header's fragment field, whose rest is the offset

ETH_P_ALL = 3
ETH_P_IP, ETH_P_ARP, ETH_P_8021Q, ETH_P_IPV6, ETH_P_8021AD = 0x0800, 0x0806, 0x8100, 0x86DD, 0x88A8
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
SOL_PACKET, PACKET_VNET_HDR = 263, 15
VIRTIO_NET_HDR_F_NEEDS_CSUM = VIRTIO_NET_HDR_GSO_TCPV4 = 1
SETTLE = 1e-5  # s; a kernel may hand received packets on a little later (6.1 does)
BUFFER = 64 << 20  # bytes; what stands in a queue counts as the sender's

# A VLAN whose tag, taken for the start of an IP header of either version, reads ECT(0).
TAG = 0x0026
# Nobody's address: the stack at the other end lets the frame pass by.
DESTINATION = bytes.fromhex("02a000000002")
SOURCE = bytes.fromhex("02a000000001")


def checksum(header: bytes) -> int:
    """The Internet checksum; 0 over a header whose checksum is right."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(
    tos: int,
    payload: bytes,
    protocol: int = socket.IPPROTO_UDP,
    *,
    label: int = 0,
    fragment: int = DF,
    ends: tuple[bytes, bytes] = (bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))),
) -> bytes:
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, tos, 20 + len(payload), label, fragment, 64, protocol, 0, *ends
    )
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def ipv6(tos: int, payload: bytes) -> bytes:
    flow = 0xABCDE
    address = bytes.fromhex("20010db8000000000000000000000001")
    first = 6 << 28 | tos << 20 | flow
    header = struct.pack("!IHBB", first, len(payload), socket.IPPROTO_UDP, 64)
    return header + address + address + payload


class Flags(IntFlag):
    """Of a TCP header."""

    FIN = 0x01
    SYN = 0x02
    ACK = 0x10


def segment(
    flags: Flags,
    port: int,
    *,
    back: bool = False,
    stamps: tuple[int, int] | None = None,
    label: int = 0,
    payload: bytes = b"",
) -> bytes:
    """A TCP segment in a frame: of a client's flow from `port`, or the way back to it.

    `stamps` are its timestamp and the one it echoes.
    """
    option = b"" if stamps is None else struct.pack("!BBBBII", 1, 1, 8, 10, *stamps)
    ports, ends = (port, 9), (bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2)))
    if back:
        ports, ends = ports[::-1], ends[::-1]
    offset = (20 + len(option)) // 4 << 4
    header = struct.pack("!HHIIBBHHH", *ports, 1, 1, offset, flags, 1000, 0, 0)
    packet = ipv4(0, header + option + payload, socket.IPPROTO_TCP, label=label, ends=ends)
    return DESTINATION + SOURCE + ETH_P_IP.to_bytes(2, "big") + packet


def label_of(data: bytes) -> int:
    """The label of a frame without VLAN tags; its IPv4 checksum is right."""
    assert checksum(data[14:34]) == 0
    return int.from_bytes(data[18:20], "big")


def frame(
    tos: int = 0,
    *,
    version: int = 4,
    tags: Sequence[int] = (),
    number: int = 0,
    size: int = 1000,
    label: int = 0,
    fragment: int = DF,
) -> bytes:
    """A UDP packet in a frame of `size` bytes, behind VLAN tags with these ethertypes."""
    kind = ETH_P_IP if version == 4 else ETH_P_IPV6
    link = DESTINATION + SOURCE
    for tag in tags:
        link += struct.pack("!HH", tag, TAG)
    link += struct.pack("!H", kind)
    room = size - len(link) - (20 if version == 4 else 40)
    datagram = struct.pack("!HHHHI", 1000 + number % 1000, 9, room, 0, number)
    payload = datagram.ljust(room, b"\0")
    if version == 4:
        return link + ipv4(tos, payload, label=label, fragment=fragment)
    return link + ipv6(tos, payload)


def received(data: bytes) -> bytes:
    """A frame as a receiver sees it: the kernel takes the outer VLAN tag off."""
    tagged = int.from_bytes(data[12:14], "big") in (ETH_P_8021Q, ETH_P_8021AD)
    return data[:12] + data[16:] if tagged else data


def super_packet(tos: int, segments: int, size: int = 1000) -> bytes:
    """A TCP packet to be cut into frames of `size` bytes, as a virtual machine hands it out.

    What precedes it tells the socket how to cut it.
    """
    link, header = 14, 14 + 20 + 20
    payload = size - header
    tcp = struct.pack("!HHIIBBHHH", 1000, 9, 1, 1, 5 << 4, 0x10, 1000, 0, 0)
    whole = ipv4(tos, tcp + bytes(payload * segments), socket.IPPROTO_TCP)
    how = struct.pack(
        "=BBHHHH", VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV4, header, payload,
        link + 20, 16,
    )  # fmt: skip
    return how + DESTINATION + SOURCE + ETH_P_IP.to_bytes(2, "big") + whole


class Port:
    """An end of a link: what is sent goes through the device's qdisc, as a whole frame."""

    def __init__(self, device: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
        self._socket.setblocking(False)
        self._socket.bind((device, ETH_P_ALL))
        self._virtual = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._virtual.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self._virtual.bind((device, 0))

    def close(self) -> None:
        self._socket.close()
        self._virtual.close()

    def recover(self) -> None:
        """Forget that the device was down, which the next call would report."""
        self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def send(self, *frames: bytes) -> int:
        """Send frames; return how many of them the qdisc refused."""
        return sum(_refused(self._socket, data) for data in frames)

    def send_super(self, *packets: bytes) -> int:
        """Send super_packet()s; return how many were refused."""
        return sum(_refused(self._virtual, data) for data in packets)

    def received(self) -> list[bytes]:
        """The frames of ours that came since the last call."""
        time.sleep(SETTLE)
        frames: list[bytes] = []
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return frames
            if data.startswith(DESTINATION):
                frames.append(data)


def _refused(by: socket.socket, data: bytes) -> bool:
    try:
        by.send(data)
    except OSError as error:
        if error.errno != ENOBUFS:  # what a socket makes of NET_XMIT_DROP
            raise
        return True
    return False
