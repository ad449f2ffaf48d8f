# SPDX-License-Identifier: GPL-2.0-or-later
"""Networks on Mininet's API, with nodes and links of our own beneath it.

A node is a network namespace without a process: all is done by netlink from this one, and a
shell is started only when somebody calls node.cmd(). A chain of two links; one is a dumbbell:

    h1 (delay) --.                              .-- d1
    h2 (delay) --- r1 =(shaper, qdisc)= (loss) r2 =(shaper, qdisc)= r3 (loss) --- d2
    ...        --'                              '-- h9 (delay)

One sending host for each distinct RTT of a router's flows, with all of that RTT, the links'
delays too, as a delay line on its own device; one receiving host at each router where flows
end. Routers route, so that the bottleneck's queue does not push back into a sender's socket;
netem takes packets off their socket too. Loss is two hops from the senders, who would be told
of a loss on their own device: before the last receiver, and elsewhere, if there is any, in a
node w1, w2... of its own behind the queue. Where flows go both ways, each link has the same
shaper and qdisc at its other end.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface, ip_network
from typing import Any

from .kernel import NetNamespace, offloads_on, switch_offloads_off, write_sysctls
from .line import Line
from .losses import Loss
from .mininet_api import Intf, Link, Mininet, Node, Topo
from .netlink import AddressWithPrefix, Network, Route
from .scenario import US_PER_S, Flow, Queue, Scenario
from .tc import Labels, Shaper, fq

RTAX_WINDOW, RTAX_INITCWND, RTAX_QUICKACK = 3, 11, 15

Params = Mapping[str, Any]  # of a device
Metrics = Mapping[int, int]  # of a route, by RTAX number

# Sysctls of each node. Buffers are so large, or grow so far, that only the congestion window,
# or --window, ever limits a flow; no connection gives up, as none does in the papers' simulators;
# IPv6 is off where it is not the subject.
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
    "net.ipv4.tcp_retries2": "255",
    "net.ipv4.tcp_rmem": "4096 67108864 67108864",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_syn_retries": "127",
    "net.ipv4.tcp_synack_retries": "255",
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
        self, name: str, sysctls: dict[str, str], routes: Sequence[RouteBy] = (), **params: Any
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
    """One end of a link. Params: address; the others are for what leaves by it."""

    node: NamespaceNode
    mac: str

    def config(
        self,
        address: AddressWithPrefix,
        delay_s: float = 0.0,
        loss: Loss = 0.0,
        shaper: Shaper | None = None,
        labels: Labels | None = None,
        paced_bytes: int = 0,
        **_: Any,
    ) -> None:
        """Set up the device that the link has made; PACED_BYTES: of a packet, if sockets pace."""
        self.address = address
        self.ip, self.prefixLen = str(address.ip), address.network.prefixlen
        with self.node.namespace:
            self.index = socket.if_nametoindex(self.name)
            switch_offloads_off(self.node.socket, self.name)
            if shaper:
                shaper.attach(self.name)
            if labels:
                labels.attach(self.name)
        self.node.netlink.set_up(self.index)
        self.node.netlink.add_address(self.index, address)
        self.line = Line(self.node.netlink, self.index, delay_s, loss) if delay_s or loss else None
        if paced_bytes:
            self.node.netlink.add_root_qdisc(self.index, "fq", fq(paced_bytes))

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


class Chain(Topo):  # type: ignore[misc]
    """Routers in a chain, hosts on either side: a dumbbell if there is one link."""

    def build(self, scenario: Scenario) -> None:
        """Mininet's hook: say what there is."""
        self.scenario = scenario
        self.plan = Addresses(scenario.ipv6)
        self.common = QUIET_IPV6 if scenario.ipv6 else NO_IPV6
        self.links_made = 0
        self.routers: dict[str, list[RouteBy]] = {}  # from left to right, with their routes
        labels = Labels(scenario.label, scenario.rtt_error) if scenario.label != "none" else None
        own = labels if scenario.label == "socket" else None  # each sender labels, or the router
        edge = {"labels": labels} if labels and not own else {}
        last = len(scenario.links)

        self._add_router(router_name(0))
        for number, link in enumerate(scenario.links):
            shaper = Shaper(link.rate_bps, link.qdisc, scenario.frame_bytes)
            queue: Params = {"shaper": shaper, **edge}
            lossy = {"loss": link.loss}
            if link.loss and number + 1 < last:
                self._add_router(wire_name(number), queue)
                queue = lossy
            back = {"shaper": shaper, **edge} if scenario.two_way else {}
            self._add_router(router_name(number + 1), queue, back)

        flows = scenario.end_to_end()
        # The receiver's window is what clamps a flow: by its route at first, then by traffic.py.
        acks = {RTAX_QUICKACK: 1} if scenario.quickack else {}
        clamp = {RTAX_WINDOW: scenario.window * scenario.max_segment} if scenario.window else {}
        for leave in sorted({flow.leave for flow in flows}):
            ack_labels = {"labels": own} if scenario.two_way else {}  # ACKs meet a queue, too
            self._add_host(
                sink_name(leave), leave, clamp | acks, lossy if leave == last else {}, ack_labels
            )
        first = {RTAX_INITCWND: scenario.initcwnd} if scenario.initcwnd else {}
        for (entry, rtt_us), name in source_names(flows).items():
            line = {"delay_s": rtt_us / US_PER_S, "labels": own}
            self._add_host(name, entry, first | acks, {}, line)

        for entry in sorted({stream.entry for stream in scenario.stream_list()}):
            paced = {"paced_bytes": scenario.frame_bytes, "labels": own}
            self._add_host(udp_source_name(entry), entry, {}, {}, paced)

    def _join(self, near: str, far: str, of_near: Params, of_far: Params) -> int:
        """The next link, from NEAR to FAR, with further params of its ends; its number."""
        link = self.links_made
        self.links_made += 1
        self.addLink(
            near,
            far,
            mtu=self.scenario.mtu,
            addr1=f"02:00:00:01:{link >> 8:02x}:{link & 255:02x}",
            addr2=f"02:00:00:02:{link >> 8:02x}:{link & 255:02x}",
            params1={"address": self.plan.on(link, 1), **of_near},
            params2={"address": self.plan.on(link, 2), **of_far},
        )
        return link

    def _add_router(
        self, name: str, of_near: Params | None = None, of_far: Params | None = None
    ) -> None:
        """The next router and the link N to it from the Nth. It sends left what it knows no
        better way for; the first one, right."""
        routes: list[RouteBy] = []
        sysctls = self.common | {FORWARDING[self.scenario.ipv6]: "1"}
        self.addHost(name, sysctls=sysctls, routes=routes)
        if self.routers:
            before, its_routes = list(self.routers.items())[-1]
            link = self._join(before, name, of_near or {}, of_far or {})
            routes.append(RouteBy(self.plan.everywhere, self.plan.on(link, 1)))
            if not its_routes:
                its_routes.append(RouteBy(self.plan.everywhere, self.plan.on(link, 2)))
        self.routers[name] = routes

    def _add_host(
        self, name: str, router: int, metrics: Metrics, of_router: Params, of_host: Params
    ) -> None:
        """A host at router ROUTER, with METRICS of its route; all routers left of it know it."""
        ecn = "1" if self.scenario.ecn else "0"
        sysctls = self.common | HOST_SYSCTLS | {"net.ipv4.tcp_ecn": ecn}
        routes: list[RouteBy] = []
        self.addHost(name, sysctls=sysctls, routes=routes)
        link = self._join(router_name(router), name, of_router, of_host)
        gateway = self.plan.on(link, 1)
        routes.append(RouteBy(self.plan.everywhere, gateway, tuple(metrics.items())))
        names = list(self.routers)
        for place in range(1, names.index(router_name(router))):
            way = RouteBy(gateway.network, self.plan.on(place, 2))
            self.routers[names[place]].append(way)


def source_names(flows: Sequence[Flow]) -> dict[tuple[int, int], str]:
    """The sending hosts: one for each router and RTT, in the order of the flows."""
    places = dict.fromkeys((flow.entry, flow.rtt_us) for flow in flows)
    return {place: f"h{number}" for number, place in enumerate(places, 1)}


def router_name(number: int) -> str:
    """The name of router NUMBER, from 0 on."""
    return f"r{number + 1}"


def sink_name(router: int) -> str:
    """The name of the host at router ROUTER that receives."""
    return f"d{router}"


def udp_source_name(router: int) -> str:
    """The name of the host at router ROUTER that sends UDP."""
    return f"u{router + 1}"


def wire_name(link: int) -> str:
    """The name of the node that loses packets of link LINK, where it is not the last."""
    return f"w{link + 1}"


def queue_device(net: Mininet, queue: Queue) -> Device:
    """The device that QUEUE is on."""
    near, *far = net.get(router_name(queue.near), router_name(queue.far))
    wire = wire_name(min(queue.near, queue.far))
    if wire in net:
        far = [net.get(wire)]
    device: Device = near.connectionsTo(*far)[0][0]
    return device


def lossy_device(net: Mininet, link: int, links: int) -> Device:
    """The device that loses what link LINK of so many LINKS is to lose."""
    last = link + 1 == links
    near = net.get(router_name(links) if last else wire_name(link))
    far = net.get(sink_name(links) if last else router_name(link + 1))
    device: Device = near.connectionsTo(far)[0][0]
    return device


def make_network(topo: Topo) -> Mininet:
    """A Mininet of our nodes and links, not built yet: build(), start(), and stop() in any case."""
    return Mininet(
        topo=topo, host=NamespaceNode, link=VethLink, intf=Device, controller=None, build=False
    )
