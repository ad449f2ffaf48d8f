# SPDX-License-Identifier: GPL-2.0-or-later
"""Data that are asked for: a client at a receiving host, a server at a sending one.

Each has a connection of its own. All clients and servers are in this process, which sleeps until
data are asked for or have come.
"""

import os
import select
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from .errors import ExperimentError
from .loop import Loop
from .scenario import Flow, Scenario
from .topology import NamespaceNode
from .traffic import READ_BYTES, WRITE_BYTES, Sockets

REQUEST = struct.Struct("=LQ")  # the download's number, bytes wanted


@dataclass
class Download:
    """Data on their way: whose, how many, and how many of these are missing, since when."""

    number: int
    size: int
    missing: int
    since: int
    client: socket.socket
    done: Callable[["Download"], None]
    server: socket.socket | None = None  # once it has been asked


class Downloads:
    """All downloads by servers of one PORT. ROOM: bytes after which a client is woken."""

    def __init__(
        self,
        loop: Loop,
        scenario: Scenario,
        host: Callable[[Flow], NamespaceNode],
        sinks: Mapping[int, NamespaceNode],
        port: int,
        room: int,
    ) -> None:
        self._loop = loop
        self._scenario = scenario
        self._host = host
        self._sinks = sinks
        self._port = port
        self._room = room
        self._clamp = 0  # bytes; 0: none
        self._sockets = Sockets(loop, scenario.ipv6)
        self._asked: dict[int, Download] = {}
        self._data = memoryview(bytes(WRITE_BYTES))
        self._scrap = bytearray(READ_BYTES)

    def clamp(self, window: int) -> None:
        """Have no download offer more than WINDOW full packets."""
        self._clamp = window * self._scenario.full_segment
        self._room = self._scenario.full_segment  # what waits would close the window

    def listen(self, likes: Iterable[Flow]) -> None:
        """Get the servers ready where flows like LIKES come from."""
        for server in dict.fromkeys(self._host(like) for like in likes):
            self._sockets.listen(server, self._port, self._serve)

    def ask(
        self, like: Flow, number: int, size: int, now: int, done: Callable[[Download], None]
    ) -> Download:
        """Ask for SIZE bytes on the path of LIKE, and call DONE when they are there.

        No other download has the same NUMBER; it decides the congestion control.
        """
        client = self._sockets.new(self._sinks[like.leave])
        self._clamp_window(client)
        client.connect_ex((self._host(like).IP(), self._port))
        download = self._asked[number] = Download(number, size, size, now, client, done)
        self._loop.watch(client.fileno(), select.EPOLLOUT, partial(self._connected, download))
        return download

    def _clamp_window(self, client: socket.socket) -> None:
        """To be done once more after the first data, which undo it."""
        if self._clamp:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, self._clamp)

    def _connected(self, download: Download) -> None:
        client = download.client
        self._loop.forget(client.fileno())
        if broken := client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise ExperimentError(f"a server could not be asked: {os.strerror(broken)}.")
        client.send(REQUEST.pack(download.number, download.size))
        self._wait(download)
        self._loop.watch(client.fileno(), select.EPOLLIN, partial(self._receive, download))

    def _wait(self, download: Download) -> None:
        """Sleep until all of it has come, or much."""
        least = min(download.missing, self._room)
        download.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)

    def _take(self, download: Download) -> int:
        """Bytes that have come; -1 if none have."""
        try:
            return download.client.recv_into(self._scrap, READ_BYTES, socket.MSG_TRUNC)
        except BlockingIOError:
            return -1

    def _receive(self, download: Download) -> None:
        came = self._take(download)
        if came < 0:
            return
        if download.missing == download.size:
            self._clamp_window(download.client)
        download.missing -= came
        if download.missing and came:
            self._wait(download)
            return
        if download.missing:
            raise ExperimentError(f"a server ended {download.missing} bytes early.")
        self._sockets.close(download.client, at_once=False)
        del self._asked[download.number]
        download.done(download)

    def _serve(self, taken: socket.socket) -> None:
        self._loop.watch(taken.fileno(), select.EPOLLIN, partial(self._answer, taken))

    def _answer(self, taken: socket.socket) -> None:
        """A request has come: its bytes are in one packet."""
        self._loop.forget(taken.fileno())
        try:
            request = taken.recv(REQUEST.size)
        except ConnectionResetError:
            request = b""
        if not request:  # broken off before
            self._sockets.close(taken)
            return
        number, size = REQUEST.unpack(request)
        if number not in self._asked:
            self._sockets.close(taken)
            return
        self._asked[number].server = taken
        cc = self._scenario.cc[number % len(self._scenario.cc)]
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        left = [size]
        self._loop.watch(taken.fileno(), select.EPOLLOUT, partial(self._send, number, taken, left))

    def _send(self, number: int, taken: socket.socket, left: list[int]) -> None:
        try:
            left[0] -= taken.send(self._data[: left[0]])
        except BlockingIOError:
            return
        if not left[0]:
            self._asked[number].server = None
            self._sockets.close(taken, at_once=False)

    def break_off(self, download: Download) -> None:
        """End a download at once, on both sides; what has come is no longer missing."""
        download.missing -= max(self._take(download), 0) if download.server else 0
        del self._asked[download.number]
        for end in (download.server, download.client):
            if end:
                self._sockets.close(end)

    def stop(self) -> None:
        """End all downloads at once."""
        self._sockets.close_all()
