# SPDX-License-Identifier: GPL-2.0-or-later
"""PERT's receive path, and a peer that sends whatever it likes: timestamps above all."""

import os
import random
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import Link
from frames import DESTINATION, ETH_P_IP, Flags, checksum

HERE, THERE = "198.51.100.1", "198.51.100.2"
PORT = 9
LIMIT = 1 << 32
TCP_CC_INFO = 26
PARAMETERS = Path("/sys/module/tcp_pert/parameters")
STAMPS = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)


class Peer:
    """The other end of a connection, made by hand; it takes what comes and answers as told."""

    def __init__(self, link: Link, control: str) -> None:
        self._link = link
        self._near = bytes.fromhex(Path("/sys/class/net/near/address").read_text().replace(":", ""))
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.setblocking(False)
        self.next = 0
        """What it has received up to, and so acknowledges."""
        self.stamp = 0
        """The newest of the sender's."""
        self.clock = 1000
        self.socket.connect_ex((THERE, PORT))
        self.listen()
        time.sleep(0.01)
        self.answer(Flags.SYN | Flags.ACK)
        self.socket.send(bytes(1))

    def listen(self) -> None:
        """Take what has come."""
        for data in self._link.far.received():
            if data[12:14] != ETH_P_IP.to_bytes(2, "big") or data[23] != socket.IPPROTO_TCP:
                continue
            segment = data[34:]
            self._port, _, sequence = struct.unpack_from("!HHI", segment)
            header, flags = segment[12] >> 4 << 2, segment[13]
            length = int.from_bytes(data[16:18], "big") - 20 - header + bool(flags & Flags.SYN)
            end = (sequence + length) % LIMIT
            if not self.next or (end - self.next) % LIMIT < LIMIT // 2:
                self.next = end
            at = segment.find(b"\x08\x0a", 20, header)
            if at >= 0:
                self.stamp = int.from_bytes(segment[at + 2 : at + 6], "big")

    def answer(
        self,
        flags: Flags = Flags.ACK,
        *,
        ack: int | None = None,
        stamps: tuple[int, int] | str | None = "right",
        more: bytes = b"",
        window: int = 60000,
    ) -> None:
        """Send a segment: with the right timestamps, with others, or with none."""
        if isinstance(stamps, str):
            self.clock += 1
            stamps = (self.clock, self.stamp)
        options = b"" if stamps is None else struct.pack("!BBBBII", 1, 1, 8, 10, *stamps)
        if flags & Flags.SYN:
            options += b"\x02\x04\x05\xb4\x04\x02\x01\x01"  # MSS 1460, SACK
        options += more
        number = 7 if flags & Flags.SYN else 8
        ports, offset = (PORT, self._port), (20 + len(options)) // 4 << 4
        acked = self.next if ack is None else ack % LIMIT
        rest = struct.pack("!HHIIBBHHH", *ports, number, acked, offset, flags, window, 0, 0)
        ends = socket.inet_aton(THERE), socket.inet_aton(HERE)
        segment = rest + options
        pseudo = b"".join(ends) + struct.pack("!HH", socket.IPPROTO_TCP, len(segment))
        whole = struct.pack("!H", checksum(pseudo + segment))
        segment = segment[:16] + whole + segment[18:]
        header = struct.pack(
            "!BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, socket.IPPROTO_TCP, 0, *ends
        )
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        kind = ETH_P_IP.to_bytes(2, "big")
        self._link.far.send(self._near + DESTINATION + kind + header + segment)
        time.sleep(1e-5)

    def more_data(self) -> None:
        """Have the sender send what its window lets it."""
        with suppress(BlockingIOError):
            self.socket.send(bytes(20000))
        time.sleep(0.001)
        self.listen()

    def measured(self) -> tuple[int, int]:
        """The average round-trip time and the least, us, as the control knows them."""
        info = self.socket.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 16)
        _, _, average, least = struct.unpack("=4I", info)
        return average, least


@pytest.fixture(params=[False, True], ids=["both ways", "one way"])
def one_way(request: pytest.FixtureRequest) -> Iterator[None]:
    subprocess.run(["modprobe", "tcp_pert"], check=True)
    (PARAMETERS / "one_way").write_text("1" if request.param else "0")
    yield
    (PARAMETERS / "one_way").write_text("0")


@pytest.fixture(params=["pert", "pert_pi"])
def peer(request: pytest.FixtureRequest, link: Link, one_way: None) -> Iterator[Peer]:
    commands = (
        f"addr add {HERE}/24 dev near\n"
        f"neigh replace {THERE} lladdr {DESTINATION.hex(':')} dev near nud permanent\n"
    )
    subprocess.run(["ip", "-batch", "-"], input=commands, text=True, check=True)
    made = Peer(link, request.param)
    yield made
    made.socket.close()


def still_works(peer: Peer) -> None:
    """Whether the connection goes on, and knows a round trip that can have been one."""
    for _ in range(20):
        peer.more_data()
        time.sleep(0.02)
        peer.answer()
    before = peer.next
    peer.more_data()
    peer.answer()
    assert peer.next != before
    assert peer.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    average, least = peer.measured()
    assert 0 < least <= average <= 70_000_000


def test_timestamps_at_their_limits(peer: Peer) -> None:
    for value in STAMPS:
        for echo in (*STAMPS, peer.stamp + 1, peer.stamp - 1, peer.stamp + LIMIT // 2):
            peer.more_data()
            peer.answer(stamps=(value, echo % LIMIT))
    peer.clock = 0  # what follows the last of them
    still_works(peer)


def test_timestamps_come_and_go(peer: Peer) -> None:
    for turn in range(100):
        peer.more_data()
        time.sleep(0.01)
        peer.answer(stamps=None if turn % 2 else "right")
    still_works(peer)


def test_a_clock_that_jumps(peer: Peer) -> None:
    for step in (1, 1000, 1 << 20, (1 << 31) - 1, 1, (1 << 31) - 1, 1 << 30):
        peer.more_data()
        time.sleep(0.01)
        peer.clock = (peer.clock + step) % LIMIT
        peer.answer()
    still_works(peer)


def test_acks_of_what_was_never_sent_and_long_ago(peer: Peer) -> None:
    for distance in (1, 1000, 1 << 20, 1 << 31, -1, -1000, -(1 << 20), (1 << 31) - 1):
        peer.more_data()
        peer.answer(ack=peer.next + distance)
    still_works(peer)


def test_acks_after_a_long_time(peer: Peer) -> None:
    for seconds in (0.0, 0.3, 3.0, 30.0, 0.0):
        peer.more_data()
        time.sleep(seconds)
        peer.listen()
        peer.answer()
    still_works(peer)


def test_broken_options_and_sacks(peer: Peer) -> None:
    sack = struct.pack("!BBBBII", 1, 1, 5, 10, (peer.next + 5000) % LIMIT, peer.next)
    stamps = (b"\x08\x0a\0\0", b"\x08\x02\0\0", b"\x08\xff\0\0")
    for more in (*stamps, b"\x05\x0a\0\0", sack, bytes(4)):
        peer.more_data()
        peer.answer(stamps=None, more=more)
        peer.answer(more=more, window=0)
        peer.answer()
    still_works(peer)


def test_any_acks(peer: Peer) -> None:
    chance = random.Random(os.environ.get("AQM_SEED"))
    for _ in range(200):
        if chance.random() < 0.3:
            peer.more_data()
        if chance.random() < 0.1:
            time.sleep(chance.choice((0.001, 0.05, 1.0)))
        peer.answer(
            ack=peer.next - chance.choice((0, 0, 0, 1, 1000, chance.getrandbits(16))),
            stamps=(peer.clock, chance.choice((peer.stamp, chance.getrandbits(32)))),
            window=chance.choice((0, 100, 60000)),
        )
    still_works(peer)
