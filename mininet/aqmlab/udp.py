# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP flows of a given rate, whatever becomes of them.

The kernel paces: this process writes what is to be sent in the next second, or a few hundred
packets, and fq on the sending host's device lets them go at the rate. The kernel also counts
what comes, by throwing it away: a socket whose filter takes nothing needs nobody to read it.
"""

import ctypes
import socket
import struct
from collections.abc import Mapping
from functools import partial

from .loop import Loop
from .metrics import BITS
from .scenario import NS_PER_S, Scenario, Stream
from .topology import NamespaceNode
from .traffic import Sockets

FIRST_PORT = 30000  # of flow 0's receiver
UDP_IP_HEADERS = {False: 28, True: 48}  # bytes, by --ipv6
BUFFER_BYTES = 1 << 28  # of a sending socket: it never blocks
AHEAD_NS, AHEAD_PACKETS = NS_PER_S, 256  # the most that is written at a time

# asm-generic/socket.h
SO_ATTACH_FILTER, SO_SNDBUFFORCE, SO_MAX_PACING_RATE, SO_MEMINFO = 26, 32, 47, 55
SK_MEMINFO_DROPS = 8
DROP_ALL = struct.pack("=HBBL", 0x06, 0, 0, 0)  # struct sock_filter: return 0


class UdpTraffic:
    """All UDP flows of a scenario."""

    def __init__(
        self,
        loop: Loop,
        scenario: Scenario,
        sources: Mapping[int, NamespaceNode],
        sinks: Mapping[int, NamespaceNode],
    ) -> None:
        self.streams = scenario.stream_list()
        self._loop = loop
        self._scenario = scenario
        self._sources = sources
        self._sinks = sinks
        self._sockets = Sockets(loop, scenario.ipv6)
        self._receivers: list[socket.socket] = []
        self._owed: dict[socket.socket, float] = {}  # parts of a packet, from what is over
        self._rate_bps = scenario.udp.rate_bps if scenario.udp else 0
        self._payload = bytes(scenario.mtu - UDP_IP_HEADERS[scenario.ipv6])

    def begin(self, start: int) -> None:
        """Get the receivers ready, and the flows due; times count from START."""
        for stream in self.streams:
            sender = self._new(stream)
            self._owed[sender] = 0.0
            for on, off in stream.periods:
                begin, end = (start + round(time_s * NS_PER_S) for time_s in (on, off))
                self._loop.at(begin, partial(self._send, sender, begin, end))

    def _new(self, stream: Stream) -> socket.socket:
        address = self._sinks[stream.leave].IP(), FIRST_PORT + stream.index
        receiver = self._sockets.new(self._sinks[stream.leave], socket.SOCK_DGRAM)
        program = ctypes.create_string_buffer(DROP_ALL)
        receiver.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(program))
        )
        receiver.bind(address)
        self._receivers.append(receiver)
        sock = self._sockets.new(self._sources[stream.entry], socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
        rate = struct.pack("@L", self._rate_bps // BITS)
        sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
        sock.connect(address)
        return sock

    def _send(self, sender: socket.socket, begin: int, end: int, _: int) -> None:
        """Send from BEGIN to END."""
        packets_per_ns = self._rate_bps / (BITS * self._scenario.frame_bytes * NS_PER_S)
        piece = min(end - begin, AHEAD_NS, round(AHEAD_PACKETS / packets_per_ns))
        self._owed[sender] += piece * packets_per_ns
        while self._owed[sender] >= 1:
            sender.send(self._payload)
            self._owed[sender] -= 1
        begin += piece
        if begin < end:
            self._loop.at(begin, partial(self._send, sender, begin, end))

    def received(self) -> list[int]:
        """Packets of each flow that have come."""
        return [
            struct.unpack_from("=L", info, 4 * SK_MEMINFO_DROPS)[0]
            for info in (
                sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 64) for sock in self._receivers
            )
        ]

    def stop(self) -> None:
        """End all flows; what is on its way still comes."""
        self._sockets.close_all()
