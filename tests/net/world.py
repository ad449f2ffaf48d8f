# SPDX-License-Identifier: GPL-2.0-or-later
"""Real connections through a router, in the kernel that the tests run in."""

import socket
import struct
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from guest import inside

SERVICE = 9000
TCP_INFO_MIN_RTT = 148  # offset of tcpi_min_rtt, us
UNREACHED = (BlockingIOError, InterruptedError)


@dataclass
class Connection:
    """A connection to one of the server's addresses."""

    sender: socket.socket
    receiver: socket.socket
    received: int = 0
    """Bytes."""

    @property
    def rtt(self) -> float:
        """The sender's own smallest round-trip time, s."""
        info = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        found: int = struct.unpack_from("=I", info, TCP_INFO_MIN_RTT)[0]
        return found / 1e6

    def move(self, size: int) -> None:
        """Send some bytes, and receive what has come."""
        with suppress(*UNREACHED):
            self.sender.send(bytes(size))
        with suppress(*UNREACHED):
            while count := len(self.receiver.recv(1 << 20)):
                self.received += count


class World:
    """A client and a server with many addresses, each at its own distance; a router between."""

    def __init__(self, distances: Sequence[float], loss: float) -> None:
        ip = ["netns add client", "netns add router", "netns add server"]
        for end, network in (("client", 0), ("server", 1)):
            ip += [
                f"link add to-{end} netns router type veth peer name eth0 netns {end}",
                f"-n router address add 10.{network}.0.254/24 dev to-{end}",
                f"-n router link set to-{end} up",
                f"-n {end} link set eth0 up",
            ]
            count = len(distances) if end == "server" else 1
            for host in range(1, count + 1):
                ip.append(f"-n {end} address add 10.{network}.0.{host}/24 dev eth0")
            ip.append(f"-n {end} route add default via 10.{network}.0.254")
        for line in ip:
            subprocess.run(["ip", *line.split()], check=True)
        with inside("router"):
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        self._addresses = [f"10.1.0.{host}" for host in range(1, len(distances) + 1)]
        for end, match, share in (("client", "dst", 0.3), ("server", "src", 0.7)):
            commands = ["qdisc add dev eth0 root handle 1: htb"]
            for host, (address, rtt) in enumerate(zip(self._addresses, distances, strict=True), 1):
                commands += [
                    f"class add dev eth0 parent 1: classid 1:{host:x} "
                    "htb rate 10gbit quantum 60000",
                    f"qdisc add dev eth0 parent 1:{host:x} "
                    f"netem delay {rtt * share * 1e6:.0f}us loss {loss}% limit 10000",
                    f"filter add dev eth0 parent 1: protocol ip prio 1 u32 "
                    f"match ip {match} {address}/32 flowid 1:{host:x}",
                ]
            batch = "\n".join(commands)
            words = ["tc", "-n", end, "-batch", "-"]
            subprocess.run(words, input=batch, text=True, check=True)

    def connect(self) -> dict[str, Connection]:
        """Connect to all of the server's addresses."""
        with inside("server"):
            listener = socket.create_server(("0.0.0.0", SERVICE), backlog=256)
        senders: dict[tuple[int, str], socket.socket] = {}
        with listener, inside("client"):
            for address in self._addresses:
                sender = socket.socket()
                sender.setblocking(False)
                sender.connect_ex((address, SERVICE))
                senders[sender.getsockname()[1], address] = sender
            made: dict[str, Connection] = {}
            while len(made) < len(senders):
                receiver, (_, port) = listener.accept()
                receiver.setblocking(False)
                address = receiver.getsockname()[0]
                made[address] = Connection(senders[port, address], receiver)
        return made

    def close(self) -> None:
        for end in ("client", "router", "server"):
            subprocess.run(["ip", "netns", "delete", end], check=True)
