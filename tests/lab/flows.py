#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest side of the determinism tests: TCP flows over a lossy path, every packet written down.

Writes two files to AQM_OUT: `packets`, the time and the headers of each packet as a packet socket
saw it, and `counters`, what each flow's TCP counted.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

FLOWS = 4
SECONDS = 3.0
PORT = 5001
HEADERS = 66  # bytes: Ethernet, IPv4, TCP with its timestamps
ALL_PROTOCOLS = 3
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
TCP_INFO_BYTES = 192
BUFFER = 64 << 20  # bytes: room for every packet's headers until the end
NETEM = "netem delay 10ms 3ms loss 1% rate 8mbit"


def tell(tool: str, *lines: str) -> None:
    subprocess.run([*tool.split(), "-batch", "-"], input="\n".join(lines), text=True, check=True)


def sink() -> None:
    """Read what comes, in the far namespace."""
    server = socket.create_server(("", PORT), backlog=FLOWS)
    print("ready", flush=True)
    peers = [server.accept()[0] for _ in range(FLOWS)]
    time.sleep(2 * SECONDS)
    for peer in peers:
        peer.close()


def source() -> None:
    out = Path(os.environ["AQM_OUT"])
    tell(
        "ip",
        "netns add far",
        "link add near type veth peer name end netns far",
        "addr add 10.0.0.1/24 dev near",
        "link set near up gso_max_segs 1",
    )
    tell("ip -n far", "addr add 10.0.0.2/24 dev end", "link set end up")
    tell("tc", f"qdisc add dev near root {NETEM}")
    far = ["ip", "netns", "exec", "far", sys.executable, __file__, "sink"]
    with subprocess.Popen(far, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        wire.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        wire.bind(("near", 0))
        wire.setblocking(False)
        flows = [socket.create_connection(("10.0.0.2", PORT)) for _ in range(FLOWS)]
        for flow in flows:
            flow.setblocking(False)
            flow.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            flow.send(bytes(2 << 20))
        time.sleep(SECONDS)
        with (out / "packets").open("wb") as record:
            try:
                while True:
                    headers, stamps, _, _ = wire.recvmsg(HEADERS, 256)
                    record.write(stamps[0][2] + headers)
            except BlockingIOError:
                pass
        with (out / "counters").open("wb") as record:
            for flow in flows:
                record.write(flow.getsockopt(socket.SOL_TCP, socket.TCP_INFO, TCP_INFO_BYTES))


if __name__ == "__main__":
    sink() if sys.argv[1:] == ["sink"] else source()
