# SPDX-License-Identifier: GPL-2.0-or-later
"""Networks on Mininet's API, with nodes and links of our own beneath it.

A node is a network namespace without a process: all is done by netlink from this one, and a
shell is started only when somebody calls node.cmd(). The dumbbell:

    h1 (delay) --.
    h2 (delay) --- r1 =(shaper, qdisc)= r2 (loss) --- d1
    ...        --'

One sending host for each distinct RTT, with all of that RTT as a delay line on its own
device. Routers route, so that the bottleneck's queue does not push back into a sender's
socket; netem takes packets off their socket too. Loss is two hops from the senders, who
would be told of a loss on their own device.
"""

import socket
from dataclasses import dataclass
from ipaddress import ip_interface, ip_network
from typing import Any

from .kernel import NetNamespace, offloads_on, switch_offloads_off, write_sysctls
from .mininet_api import Intf, Link, Mininet, Node, Topo
from .netlink import AddressWithPrefix, Network, Route
from .scenario import US_PER_S, Scenario
from .tc import Labels, Shaper, netem

RTAX_WINDOW, RTAX_INITCWND = 3, 11

# Sysctls of each node. Buffers are so large, or grow so far, that only the congestion window,
# or --window, ever limits a flow; IPv6 is off where it is not the subject.
NO_IPV6 = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
}
QUIET_IPV6 = {  # no addresses but those we give, and no talk about them
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.addr_gen_mode": "1",
}
HOST_SYSCTLS = {
    "net.ipv4.tcp_ecn_fallback": "0",
    "net.ipv4.tcp_moderate_rcvbuf": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": "4096 67108864 67108864",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_wmem": "4096 262144 67108864",
}
FORWARDING = {False: "net.ipv4.ip_forward", True: "net.ipv6.conf.all.forwarding"}


@dataclass(frozen=True)
class RouteBy:
    """A route of a node: where to, by which gateway, and its metrics by RTAX number."""

    to: Network
    via: AddressWithPrefix
    metrics: tuple[tuple[int, int], ...] = ()


class NamespaceNode(Node):  # type: ignore[misc]
    """A Mininet node that is a namespace; `routes` are its routes, `sysctls` its settings."""

    def __init__(
        self, name: str, sysctls: dict[str, str], routes: tuple[RouteBy, ...] = (), **params: Any
    ) -> None:
        self.namespace = NetNamespace(name)
        self.routes = routes
        with self.namespace:
            self.netlink = Route()
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # for ethtool
            write_sysctls(sysctls)
        # To Mininet it is in no namespace: it would make another, for the shell.
        super().__init__(name, inNamespace=False, **params)

    @classmethod
    def setup(cls) -> None:
        """Look for no programs: none are needed."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Start none: cmd() and sendCmd() do when they are first used."""

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """Mininet's, in a shell that is started now if there is none."""
        self._ensure_shell()
        super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Mininet's, in a shell that is started now if there is none."""
        self._ensure_shell()
        return str(super().cmd(*args, **kwargs))

    def _ensure_shell(self) -> None:
        if not self.shell:
            with self.namespace:
                super().startShell()

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Mininet's, in this namespace."""
        with self.namespace:
            return super().popen(*args, mncmd=[], **kwargs)

    def config(self, **_: Any) -> None:
        """Set the routes, now that the links are there."""
        for route in self.routes:
            self.netlink.add_route(route.to, route.via.ip, dict(route.metrics))

    def terminate(self) -> None:
        """End the shell, if one was started, and the namespace."""
        super().terminate()
        self.netlink.close()
        self.socket.close()
        self.namespace.close()


class Device(Intf):  # type: ignore[misc]
    """One end of a link. Params: address; delay_s, loss, shaper or labels for what leaves by it."""

    node: NamespaceNode
    mac: str

    def config(
        self,
        address: AddressWithPrefix,
        delay_s: float = 0.0,
        loss: float = 0.0,
        shaper: Shaper | None = None,
        labels: Labels | None = None,
        **_: Any,
    ) -> None:
        """Set up the device that the link has made."""
        self.address = address
        self.ip, self.prefixLen = str(address.ip), address.network.prefixlen
        self.lossy = loss > 0
        self.has_line = delay_s > 0 or self.lossy
        with self.node.namespace:
            self.index = socket.if_nametoindex(self.name)
            switch_offloads_off(self.node.socket, self.name)
            if shaper:
                shaper.attach(self.name)
            if labels:
                labels.attach(self.name)
        self.node.netlink.set_up(self.index)
        self.node.netlink.add_address(self.index, address)
        if self.has_line:
            self.node.netlink.add_root_qdisc(self.index, "netem", netem(delay_s, loss))

    def offloads_on(self) -> list[str]:
        """The names of the offloads that are on."""
        return offloads_on(self.node.socket, self.name)

    def delete(self) -> None:
        """Nothing: the device ends with its namespace."""


class VethLink(Link):  # type: ignore[misc]
    """A pair of devices with MTU `mtu` that know each other's link addresses."""

    intf1: Device
    intf2: Device

    def __init__(self, node1: NamespaceNode, node2: NamespaceNode, mtu: int, **params: Any) -> None:
        self.mtu = mtu
        super().__init__(node1, node2, **params)
        for near, far in ((self.intf1, self.intf2), (self.intf2, self.intf1)):
            near.node.netlink.add_neighbour(near.index, far.address.ip, far.mac)

    def makeIntfPair(  # noqa: N802
        self,
        intfname1: str,
        intfname2: str,
        addr1: str,
        addr2: str,
        node1: NamespaceNode,
        node2: NamespaceNode,
        deleteIntfs: bool = True,  # noqa: N803
    ) -> None:
        """Make the devices, each in its place."""
        names, macs = (intfname1, intfname2), (addr1, addr2)
        node1.netlink.add_veth(names, macs, self.mtu, node2.namespace.fileno())


@dataclass(frozen=True)
class Addresses:
    """The address plan: link N has one /24 of 10.0.0.0/8 or one /64 of fd00::/16."""

    ipv6: bool

    def on(self, link: int, host: int) -> AddressWithPrefix:
        """The address of end HOST (1 or 2) of link LINK."""
        if self.ipv6:
            return ip_interface(f"fd00:0:0:{link:x}::{host}/64")
        return ip_interface(f"10.{link >> 8}.{link & 255}.{host}/24")

    @property
    def everywhere(self) -> Network:
        """All of them."""
        return ip_network("fd00::/16" if self.ipv6 else "10.0.0.0/8")


BOTTLENECK_LINK, SINK_LINK, FIRST_SOURCE_LINK = 0, 1, 2


class Dumbbell(Topo):  # type: ignore[misc]
    """Senders h1, h2, ... one for each distinct RTT; routers r1 and r2; receiver d1."""

    def build(self, scenario: Scenario) -> None:
        """Mininet's hook: lay the network out."""
        plan = Addresses(scenario.ipv6)
        common = QUIET_IPV6 if scenario.ipv6 else NO_IPV6
        host = common | HOST_SYSCTLS | {"net.ipv4.tcp_ecn": "1" if scenario.ecn else "0"}
        router = common | {FORWARDING[scenario.ipv6]: "1"}
        window, initcwnd = scenario.window, scenario.initcwnd

        def route(link: int, end: int, metrics: dict[int, int] | None = None) -> RouteBy:
            return RouteBy(plan.everywhere, plan.on(link, end), tuple((metrics or {}).items()))

        def join(near: str, far: str, link: int, **params: dict[str, Any]) -> None:
            """Link LINK from NEAR to FAR; params1 and params2 are further ones of their ends."""
            self.addLink(
                near,
                far,
                mtu=scenario.mtu,
                addr1=f"02:00:00:01:{link >> 8:02x}:{link & 255:02x}",
                addr2=f"02:00:00:02:{link >> 8:02x}:{link & 255:02x}",
                params1={"address": plan.on(link, 1), **params.get("params1", {})},
                params2={"address": plan.on(link, 2), **params.get("params2", {})},
            )

        self.addHost("r1", sysctls=router, routes=(route(BOTTLENECK_LINK, 2),))
        self.addHost("r2", sysctls=router, routes=(route(BOTTLENECK_LINK, 1),))
        # The receiver's window is what clamps a flow: by its route at first, then by traffic.py.
        clamp = {RTAX_WINDOW: window * scenario.max_segment} if window else None
        self.addHost("d1", sysctls=host, routes=(route(SINK_LINK, 1, clamp),))
        shaper = Shaper(scenario.rate_bps, scenario.qdisc, scenario.frame_bytes)
        labels = Labels(scenario.label, scenario.rtt_error) if scenario.label != "none" else None
        own = labels if scenario.label == "socket" else None  # each sender labels, or the router
        edge = {"labels": labels} if labels and not own else {}
        join("r1", "r2", BOTTLENECK_LINK, params1={"shaper": shaper, **edge})
        join("r2", "d1", SINK_LINK, params1={"loss": scenario.loss})
        first = {RTAX_INITCWND: initcwnd} if initcwnd else None
        for number, rtt_us in enumerate(distinct_rtts(scenario)):
            link, name = FIRST_SOURCE_LINK + number, source_name(number)
            self.addHost(name, sysctls=host, routes=(route(link, 1, first),))
            join("r1", name, link, params2={"delay_s": rtt_us / US_PER_S, "labels": own})


def distinct_rtts(scenario: Scenario) -> list[int]:
    """The RTTs that occur, in us, in the order of the flows."""
    return list(dict.fromkeys(scenario.rtts_us))


def source_name(number: int) -> str:
    """The name of the host of the NUMBERth distinct RTT."""
    return f"h{number + 1}"


def make_network(topo: Topo) -> Mininet:
    """A Mininet of our nodes and links, not built yet: build(), start(), and stop() in any case."""
    return Mininet(
        topo=topo, host=NamespaceNode, link=VethLink, intf=Device, controller=None, build=False
    )
