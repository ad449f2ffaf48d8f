#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure what a gigabyte costs the processor under each congestion control, inside the lab in
real time; write senders.json to DIR.

Many flows run over the loopback device, in packets of 1500 bytes, from this process to itself:
nobody ever waits, so the time that passes is the processor's, at both ends. The controls take
turns of a fraction of a millisecond, once with the device's offloads and once without, when there
are ACKs for every other packet.

Each ACK makes pert and pert_pi draw a number, as over a queue at work, but with a probability so
small that windows are Reno's.
"""

import json
import os
import socket
import statistics
import subprocess
import time
from pathlib import Path

FLOWS = 50  # of each control
GROUP = 2  # of them that send in a turn
CHUNK = 64 << 10  # bytes that each sends
ROUNDS = 20  # each gives a pair of every control and Reno
CYCLES = 25  # times that each flow sends in a round
MTU = 1500
PORT = 5001

CONTROLS = ("reno", "pert", "pert_pi")
LAW_AT_WORK = ("tmin=0", "tmax=1000000", "pmax=1000000", "pi_target=0")
SEGMENTS = {"offloads": 65535, "no offloads": 1}  # of a packet that the stack hands down


class Flow:
    """A connection to ourselves."""

    def __init__(self, listener: socket.socket, control: str) -> None:
        self.sender = socket.socket()
        self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        self.sender.connect(listener.getsockname())
        self.receiver, _ = listener.accept()


def turn(flows: list[Flow], data: bytes, scrap: bytearray) -> int:
    """Have each flow carry DATA; the ns that it took."""
    begun = time.perf_counter_ns()
    for flow in flows:
        flow.sender.sendall(data)
    for flow in flows:
        missing = len(data)
        while missing:
            missing -= flow.receiver.recv_into(scrap, missing, socket.MSG_TRUNC)
    return time.perf_counter_ns() - begun


def undisturbed(turns: list[int]) -> float:
    """Seconds for a gigabyte in these turns: their lower quartile, as others' load only adds."""
    return statistics.quantiles(turns, n=4)[0] / (GROUP * CHUNK)  # ns a byte: s a gigabyte


def measure(listener: socket.socket) -> dict[str, list[float]]:
    """The cost in each round, of each control."""
    flows = {name: [Flow(listener, name) for _ in range(FLOWS)] for name in CONTROLS}
    data, scrap = bytes(CHUNK), bytearray(CHUNK)

    def carry() -> dict[str, list[int]]:
        """A round: the times of the turns of each control."""
        times: dict[str, list[int]] = {name: [] for name in CONTROLS}
        for _ in range(CYCLES):
            for first in range(0, FLOWS, GROUP):
                for name in CONTROLS:
                    senders = flows[name][first : first + GROUP]
                    times[name].append(turn(senders, data, scrap))
        return times

    carry()  # does not count
    rounds = [carry() for _ in range(ROUNDS)]
    return {name: [undisturbed(times[name]) for times in rounds] for name in CONTROLS}


def main() -> None:
    subprocess.run(["modprobe", "tcp_pert", *LAW_AT_WORK], check=True)
    for name in ("rmem", "wmem"):
        Path(f"/proc/sys/net/ipv4/tcp_{name}").write_text("4096 4194304 4194304")
    result = {}
    for name, segments in SEGMENTS.items():
        device = f"ip link set lo mtu {MTU} gso_max_segs {segments}"
        subprocess.run(device.split(), check=True)
        with socket.create_server(("127.0.0.1", PORT), backlog=FLOWS) as listener:
            result[name] = measure(listener)
    (Path(os.environ["AQM_OUT"]) / "senders.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
