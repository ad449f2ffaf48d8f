# SPDX-License-Identifier: GPL-2.0-or-later
"""Flows that always have data to send, from this process or from iperf3.

How they are measured does not depend on who sends: sampler.FlowReader asks the kernel.
"""

import select
import socket
import struct
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import ExperimentError
from .loop import Loop
from .scenario import MAX_FLOWS, Flow, Scenario
from .topology import NamespaceNode

SINK_PORT = 5001
# The sink is woken once for so much of a flow, the source for what its buffer has room for: in
# the lab wake-ups are dear, in a real kernel they are not free. But what waits needs memory.
SINK_BYTES = 256 << 10
ALL_SINKS_BYTES = 32 << 20
WRITE_BYTES = 1 << 20
READ_BYTES = 4 << 20


class Sockets:
    """Sockets of nodes, all to be closed in the end."""

    def __init__(self, loop: Loop, ipv6: bool) -> None:
        self._loop = loop
        self._family = socket.AF_INET6 if ipv6 else socket.AF_INET
        self._open: set[socket.socket] = set()

    def new(self, node: NamespaceNode, kind: int = socket.SOCK_STREAM) -> socket.socket:
        """One of NODE's."""
        with node.namespace:
            made = socket.socket(self._family, kind | socket.SOCK_NONBLOCK)
        self._open.add(made)
        return made

    def listen(self, node: NamespaceNode, port: int, use: Callable[[socket.socket], None]) -> None:
        """Have what connects to PORT of NODE put to USE."""
        listener = self.new(node)
        listener.bind((node.IP(), port))
        listener.listen(MAX_FLOWS)
        self._loop.watch(listener.fileno(), select.EPOLLIN, lambda: self._accept(listener, use))

    def _accept(self, listener: socket.socket, use: Callable[[socket.socket], None]) -> None:
        taken, _ = listener.accept()
        taken.setblocking(False)
        self._open.add(taken)
        use(taken)

    def close(self, sock: socket.socket, at_once: bool = True) -> None:
        """Close one; AT_ONCE by a reset, so that nothing more is sent."""
        if self._loop.watches(sock.fileno()):
            self._loop.forget(sock.fileno())
        if at_once:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._open.remove(sock)
        sock.close()

    def close_all(self) -> None:
        """Close them at once."""
        for sock in list(self._open):
            self.close(sock)


class Traffic(ABC):
    """Flows from their source nodes to the sink of the router where they leave."""

    def __init__(self, loop: Loop, scenario: Scenario, sinks: Mapping[int, NamespaceNode]) -> None:
        self.loop = loop
        self.scenario = scenario
        self.sinks = sinks

    def address(self, flow: Flow) -> str:
        """Where FLOW goes."""
        return str(self.sinks[flow.leave].IP())

    @abstractmethod
    def listen(self, flows: Sequence[Flow]) -> None:
        """Get the sinks ready."""

    @abstractmethod
    def start(self, flow: Flow, source: NamespaceNode) -> None:
        """Start one flow, now. ExperimentError, then or later, if it breaks."""

    @abstractmethod
    def leave(self, flow: Flow) -> None:
        """End one flow, now."""

    @abstractmethod
    def check(self) -> None:
        """Raise ExperimentError if a flow has broken."""

    @abstractmethod
    def stop(self) -> None:
        """End all flows at once, whatever is on its way."""


class Bulk(Traffic):
    """All flows from this process: one socket each, made in its host's namespace.

    It sleeps nearly always: large non-blocking writes into a buffer of the kernel's, and a
    sink that is woken for some 100 KiB at a time and has the kernel throw them away unread.
    """

    def __init__(self, loop: Loop, scenario: Scenario, sinks: Mapping[int, NamespaceNode]) -> None:
        super().__init__(loop, scenario, sinks)
        self._data = bytes(WRITE_BYTES)
        self._scrap = bytearray(READ_BYTES)
        self._sockets = Sockets(loop, scenario.ipv6)
        self._senders: dict[int, socket.socket] = {}
        self._untuned: set[int] = set()  # descriptors of sockets that took no data yet

    def listen(self, flows: Sequence[Flow]) -> None:
        self._room = min(ALL_SINKS_BYTES // len(flows), SINK_BYTES)
        for sink in self.sinks.values():
            self._sockets.listen(sink, SINK_PORT, self._take)

    def _take(self, taken: socket.socket) -> None:
        self._untuned.add(taken.fileno())
        self.loop.watch(taken.fileno(), select.EPOLLIN, lambda: self._discard(taken))

    def _discard(self, taken: socket.socket) -> None:
        if taken.fileno() in self._untuned:
            self._tune(taken)
        try:
            taken.recv_into(self._scrap, READ_BYTES, socket.MSG_TRUNC)
        except BlockingIOError:
            pass
        except ConnectionResetError:  # the flow has left
            self._sockets.close(taken)

    def _tune(self, taken: socket.socket) -> None:
        """Set what cannot be set before the first data: then the kernel undoes a clamp."""
        self._untuned.remove(taken.fileno())
        if self.scenario.window:
            clamp = self.scenario.window * self.scenario.full_segment
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, clamp)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, self._room)

    def start(self, flow: Flow, source: NamespaceNode) -> None:
        sender = self._senders[flow.index] = self._sockets.new(source)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow.cc.encode())
        sender.bind((source.IP(), flow.port))
        sender.connect_ex((self.address(flow), SINK_PORT))  # in progress: _send learns how it went
        self.loop.watch(sender.fileno(), select.EPOLLOUT, lambda: self._send(flow, sender))

    def _send(self, flow: Flow, sender: socket.socket) -> None:
        try:
            sender.send(self._data)
        except BlockingIOError:
            pass
        except OSError as broken:
            raise ExperimentError(f"flow {flow.index} broke: {broken.strerror}.") from None

    def leave(self, flow: Flow) -> None:
        self._sockets.close(self._senders[flow.index])

    def check(self) -> None:
        """Nothing: a flow that breaks is noticed when it is written to."""

    def stop(self) -> None:
        self._sockets.close_all()


class Iperf3(Traffic):
    """The same flows from iperf3, one client and one server process for each.

    It is there to show that Bulk changes nothing, and slow in the lab: it switches between
    user and kernel for each packet, and a client never sleeps between the making of its data
    connection and the server's word to start: seconds of wall time for each 10 ms of RTT, the
    queue's delay included. Start all at once (`--start-spread 0`), before there is a queue.
    """

    LENGTH_S = 86400  # longer than any run: stop() ends it

    def __init__(self, loop: Loop, scenario: Scenario, sinks: Mapping[int, NamespaceNode]) -> None:
        super().__init__(loop, scenario, sinks)
        self._servers: list[subprocess.Popen[bytes]] = []
        self._clients: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def _launch(node: NamespaceNode, *options: str) -> Any:
        return node.popen(
            ["iperf3", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which then ends its own
        )

    def listen(self, flows: Sequence[Flow]) -> None:
        for flow in flows:
            sink = self.sinks[flow.leave]
            server = self._launch(sink, "-s", "-1", "-p", str(SINK_PORT + flow.index))
            self._servers.append(server)

    def start(self, flow: Flow, source: NamespaceNode) -> None:
        options = ["-c", self.address(flow), "-p", str(SINK_PORT + flow.index)]
        options += ["--cport", str(flow.port), "-C", flow.cc, "-t", str(self.LENGTH_S)]
        self._clients.append(self._launch(source, *options))

    def leave(self, flow: Flow) -> None:
        """None leaves: one that came to a link in use might have the lab stand still for hours."""
        raise NotImplementedError

    def check(self) -> None:
        for process in self._servers + self._clients:
            if process.poll() is not None:
                raise ExperimentError(f"iperf3 ended early: {process.args!r}.")

    def stop(self) -> None:
        # The servers first: their kernel answers what still comes with a reset.
        for process in self._servers + self._clients:
            process.kill()
            process.wait()


TRAFFIC: dict[str, type[Traffic]] = {"bulk": Bulk, "iperf3": Iperf3}
