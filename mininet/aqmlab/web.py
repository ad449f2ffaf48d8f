# SPDX-License-Identifier: GPL-2.0-or-later
"""Web sessions: a client at a receiving host asks a server at a sending host for pages.

A page is one object of Pareto size, over a connection of its own; then the client thinks. All
clients and servers are in this process, which sleeps until a page is asked for or has come.
"""

import math
import os
import random
import select
import socket
import struct
from collections.abc import Callable, Mapping
from functools import partial

from .errors import ExperimentError
from .loop import Loop
from .metrics import Page
from .scenario import NS_PER_S, Flow, Scenario, Session
from .topology import NamespaceNode
from .traffic import ALL_SINKS_BYTES, READ_BYTES, SINK_BYTES, WRITE_BYTES, Sockets

SERVER_PORT = 80
REQUEST = struct.Struct("=LQ")  # the session's number, bytes wanted


class Download:
    """A page on its way: how much of it is missing, and since when."""

    def __init__(self, session: Session, client: socket.socket, missing: int, since: int) -> None:
        self.session = session
        self.client = client
        self.size = self.missing = missing
        self.since = since


class WebTraffic:
    """All sessions of a scenario."""

    def __init__(
        self,
        loop: Loop,
        scenario: Scenario,
        host: Callable[[Flow], NamespaceNode],
        sinks: Mapping[int, NamespaceNode],
    ) -> None:
        self.pages: list[Page] = []
        self.sessions = scenario.session_list()
        self._loop = loop
        self._scenario = scenario
        self._host = host
        self._sinks = sinks
        self._sockets = Sockets(loop, scenario.ipv6)
        self._draws = [random.Random(f"web {scenario.seed} {s.index}") for s in self.sessions]
        window = scenario.web.window if scenario.web else None
        self._clamp = window * scenario.full_segment if window else 0  # bytes; 0: none
        self._room = min(ALL_SINKS_BYTES // max(len(self.sessions), 1), SINK_BYTES)
        if self._clamp:  # what waits would close the window
            self._room = scenario.full_segment
        self._data = memoryview(bytes(WRITE_BYTES))
        self._scrap = bytearray(READ_BYTES)

    def begin(self, start: int) -> None:
        """Get the servers ready, and the clients' first requests due; times count from START."""
        self._start = start
        for server in dict.fromkeys(self._host(session.like) for session in self.sessions):
            self._sockets.listen(server, SERVER_PORT, self._serve)
        for session in self.sessions:
            when = start + round(session.start_s * NS_PER_S)
            self._loop.at(when, partial(self._ask, session))

    def _ask(self, session: Session, now: int) -> None:
        assert self._scenario.web
        draw = self._draws[session.index]
        missing = self._scenario.web.draw_packets(draw) * self._scenario.full_segment
        client = self._sockets.new(self._sinks[session.like.leave])
        self._clamp_window(client)
        client.connect_ex((self._host(session.like).IP(), SERVER_PORT))
        download = Download(session, client, missing, now)
        self._loop.watch(client.fileno(), select.EPOLLOUT, partial(self._connected, download))

    def _clamp_window(self, client: socket.socket) -> None:
        """To be done once more after the first data, which undo it."""
        if self._clamp:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, self._clamp)

    def _connected(self, download: Download) -> None:
        client = download.client
        self._loop.forget(client.fileno())
        if broken := client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise ExperimentError(f"a web page could not be asked for: {os.strerror(broken)}.")
        client.send(REQUEST.pack(download.session.index, download.size))
        self._wait(download)
        self._loop.watch(client.fileno(), select.EPOLLIN, partial(self._receive, download))

    def _wait(self, download: Download) -> None:
        """Sleep until all of it has come, or much."""
        least = min(download.missing, self._room)
        download.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)

    def _receive(self, download: Download) -> None:
        try:
            came = download.client.recv_into(self._scrap, READ_BYTES, socket.MSG_TRUNC)
        except BlockingIOError:
            return
        if download.missing == download.size:
            self._clamp_window(download.client)
        download.missing -= came
        if download.missing and came:
            self._wait(download)
            return
        if download.missing:
            raise ExperimentError(f"a web page ended {download.missing} bytes early.")
        self._sockets.close(download.client, at_once=False)
        self._read(download)

    def _read(self, download: Download) -> None:
        """A page is there: note it, and think."""
        assert self._scenario.web
        now, session = self._loop.now(), download.session
        response_s = (now - download.since) / NS_PER_S
        self.pages.append(Page(now - self._start, session.index, download.size, response_s))
        think_s = self._draws[session.index].expovariate(1 / self._scenario.web.think_s)
        self._loop.at(now + math.ceil(think_s * NS_PER_S), partial(self._ask, session))

    def _serve(self, taken: socket.socket) -> None:
        self._loop.watch(taken.fileno(), select.EPOLLIN, partial(self._answer, taken))

    def _answer(self, taken: socket.socket) -> None:
        """A request has come: its bytes are in one packet."""
        self._loop.forget(taken.fileno())
        number, size = REQUEST.unpack(taken.recv(REQUEST.size))
        cc = self._scenario.cc[number % len(self._scenario.cc)]
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        left = [size]
        self._loop.watch(taken.fileno(), select.EPOLLOUT, partial(self._send, taken, left))

    def _send(self, taken: socket.socket, left: list[int]) -> None:
        try:
            left[0] -= taken.send(self._data[: left[0]])
        except BlockingIOError:
            return
        if not left[0]:
            self._sockets.close(taken, at_once=False)

    def stop(self) -> None:
        """End all sessions at once."""
        self._sockets.close_all()
