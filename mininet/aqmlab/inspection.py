# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads from the kernel what fidelity.py judges."""

import struct
from pathlib import Path

from .fidelity import NO_LINE, DeviceState, Inspection
from .mininet_api import Mininet
from .netlink import IFLA_GSO_MAX_SEGS, IFLA_STATS64
from .topology import Device, NamespaceNode

# Counters under which IP and TCP report packets that they threw away.
STACK_LOSSES = frozenset(
    {
        "Ip:FragFails",
        "Ip:InAddrErrors",
        "Ip:InDiscards",
        "Ip:InHdrErrors",
        "Ip:OutDiscards",
        "Ip:OutNoRoutes",
        "Ip6InAddrErrors",
        "Ip6InDiscards",
        "Ip6InHdrErrors",
        "Ip6InTooBigErrors",
        "Ip6OutDiscards",
        "Ip6OutNoRoutes",
        "Tcp:InCsumErrors",
        "TcpExt:ListenDrops",
        "TcpExt:PFMemallocDrop",
        "TcpExt:RcvPruned",
        "TcpExt:TCPBacklogDrop",
        "TcpExt:TCPRcvQDrop",
        "TcpExt:TCPZeroWindowDrop",
    }
)


def _device_state(device: Device) -> DeviceState:
    link = device.node.netlink.link(device.index)
    # struct rtnl_link_stats64
    received, sent, _, _, rx_errors, tx_errors, rx_dropped, tx_dropped = struct.unpack_from(
        "=8Q", link[IFLA_STATS64]
    )
    return DeviceState(
        name=device.name,
        offloads=tuple(device.offloads_on()),
        max_segments=struct.unpack("=L", link[IFLA_GSO_MAX_SEGS])[0],
        sent=sent,
        received=received,
        dropped=rx_errors + tx_errors + rx_dropped + tx_dropped,
        line=device.line.read() if device.line else NO_LINE,
    )


def _stack_counters(text: str) -> dict[str, int]:
    """Counters of /proc/net/snmp or netstat, as 'Ip:InDiscards'."""
    lines = text.splitlines()
    found = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group, *keys = names.split()
        found.update({group + key: int(v) for key, v in zip(keys, values.split()[1:], strict=True)})
    return found


def _stack_losses(node: NamespaceNode) -> dict[str, int]:
    counters: dict[str, int] = {}
    with node.namespace:
        for name in ("snmp", "netstat"):
            counters |= _stack_counters(Path("/proc/net", name).read_text())
        snmp6 = Path("/proc/net/snmp6")
        if snmp6.exists():
            pairs = (line.split() for line in snmp6.read_text().splitlines())
            counters |= {name: int(value) for name, value in pairs}
    return {name: value for name, value in sorted(counters.items()) if name in STACK_LOSSES}


def inspect(net: Mininet) -> Inspection:
    """Look at every device and node."""
    devices = [device for node in net.hosts for device in node.intfList()]
    return Inspection(
        {device.name: _device_state(device) for device in devices},
        {node.name: _stack_losses(node) for node in net.hosts},
    )
