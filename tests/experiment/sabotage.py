#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A script on a network that lies: the arguments say how, which, and its. Runs in the guest."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "mininet"))

import dumbbell
import multihop
from aqmlab import netlink, tc, topology


def joined(kind: int, value: int) -> bytes:
    """netlink.u32, but TCP may join segments."""
    return netlink.attribute(
        kind, (40 if kind == netlink.IFLA_GSO_MAX_SEGS else value).to_bytes(4, sys.byteorder)
    )


def slow(rate_bps: int, qdisc: str, frame_bytes: int) -> tc.Shaper:
    """A shaper at nine tenths of its rate."""
    return tc.Shaper(round(0.9 * rate_bps), qdisc, frame_bytes)


class LossyDevice(topology.Device):
    """Loses packets though nobody asked for it: ACKs, from r1 back to the senders."""

    def config(self, *args: Any, **params: Any) -> None:
        """Mininet's hook."""
        super().config(*args, **params)
        if self.node.name == "r1" and "shaper" not in params:
            self.node.netlink.add_root_qdisc(self.index, "netem", tc.netem(loss=0.01))


SMALL = "4096 8192 8192"  # bytes: least, at first, most

WAYS: dict[str, AbstractContextManager[Any]] = {
    "short_delay_line": patch.object(tc, "ROOM", 20),
    "offloads": patch.object(topology, "switch_offloads_off", lambda *_: None),
    "joined_segments": patch.object(netlink, "u32", joined),
    "stuck_loss": patch.object(netlink.Route, "change_root_qdisc", lambda *_: None),
    "slow_shaper": patch.object(topology, "Shaper", slow),
    "hidden_loss": patch.object(topology, "Device", LossyDevice),
    "small_windows": patch.dict(topology.HOST_SYSCTLS, {"net.ipv4.tcp_rmem": SMALL}),
    "small_buffers": patch.dict(topology.HOST_SYSCTLS, {"net.ipv4.tcp_wmem": SMALL}),
}

if __name__ == "__main__":
    with WAYS[sys.argv.pop(1)]:
        sys.exit({"dumbbell": dumbbell, "multihop": multihop}[sys.argv.pop(1)].main())
