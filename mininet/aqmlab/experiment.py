# SPDX-License-Identifier: GPL-2.0-or-later
"""From a scenario to what was observed: network, traffic, samples, verdict."""

import contextlib
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from . import fidelity
from .errors import ExperimentError, RefusedError
from .fidelity import Inspection
from .inspection import inspect
from .kernel import held, machine, sysctl_path
from .line import Line
from .loop import Loop
from .metrics import (
    Counters,
    Metrics,
    Page,
    QueueSample,
    Reading,
    measure,
    measure_stages,
    response_time_s,
)
from .mininet_api import Mininet, Topo
from .netlink import SocketDiag
from .provenance import Provenance, provenance, target_of
from .sampler import FLOW_PERIOD_NS, QUEUE_PERIOD_NS, Bottleneck, FlowReader, QueueSampler
from .scenario import NS_PER_S, US_PER_S, Flow, Scenario
from .short import ShortTraffic
from .topology import (
    Chain,
    Device,
    NamespaceNode,
    lossy_device,
    make_network,
    queue_device,
    sink_name,
    source_names,
    udp_source_name,
)
from .traffic import TRAFFIC
from .udp import UdpTraffic
from .watch import Sight, Watch
from .web import WebTraffic

TCP_MEMORY_PAGES = "1000000 1500000 2000000"  # so that no flow meets memory pressure
HYSTART = Path("/sys/module/tcp_cubic/parameters/hystart")

SETTLE_NS = 3 * NS_PER_S  # servers start, an IPv6 host says what it says unasked
INSPECT_NS = NS_PER_S // 2  # before the first flow starts
REST_S = 1.0  # how often to look whether all has arrived
REST_LOOKS = 60


@dataclass(frozen=True)
class Outcome:
    """What an experiment gives."""

    scenario: Scenario
    metrics: Metrics
    reasons: list[str]  # why not to trust it
    samples: list[list[QueueSample]]  # of each queue, from the first flow's start on
    readings: list[Reading]  # the same, every second, at warmup and at the end
    pages: list[Page]  # that have come
    short: list[Page]  # short flows that have gone
    sights: list[Sight]  # of the flow that is watched, if one is
    provenance: Provenance


def check_congestion_control(name: str) -> None:
    """RefusedError if the kernel has no congestion control of that name."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            raise RefusedError(
                f"--cc {name}: the kernel has no congestion control of that name."
            ) from None


@contextlib.contextmanager
def prepared_machine() -> Iterator[None]:
    """Claim the machine, and set for the while what all network namespaces share."""
    with (
        machine(),
        held(sysctl_path("net.ipv4.tcp_mem"), TCP_MEMORY_PAGES),
        # CUBIC as in its paper: slow start ends with a loss, not with a delay.
        held(HYSTART, "0"),
    ):
        yield


@contextlib.contextmanager
def standing(topo: Topo) -> Iterator[Mininet]:
    """The network of TOPO, built and started; whatever happens, nothing of it is left."""
    net = make_network(topo)
    try:
        try:
            net.build()
            net.start()
        except OSError as refused:
            raise ExperimentError(
                f"the network cannot be built: {refused.strerror}."
                " The kernel must have veth, htb and netem."
            ) from None
        yield net
    finally:
        net.stop()


def tell_length(seconds: float) -> None:
    """Tell the lab, if it asks, how much virtual time there is to come."""
    if told := os.environ.get("AQM_PROGRESS"):
        Path(told).write_text(f"{seconds:g}")


class ChainRun:
    """A chain that stands, and what is observed on it."""

    def __init__(self, net: Mininet, scenario: Scenario) -> None:
        self.net = net
        self.scenario = scenario
        self.flows = scenario.flow_list()
        self.hosts: dict[tuple[int, int], NamespaceNode] = {
            place: net.get(name) for place, name in source_names(scenario.end_to_end()).items()
        }
        leaves = sorted({flow.leave for flow in scenario.end_to_end()})
        sinks = {leave: net.get(sink_name(leave)) for leave in leaves}
        self.devices = [queue_device(net, queue) for queue in scenario.queues]
        self.bottlenecks = [Bottleneck(dev.node.netlink, dev.index) for dev in self.devices]
        links = scenario.links
        self.lines = {
            number: line
            for number, link in enumerate(links)
            if link.loss and (line := lossy_device(net, number, len(links)).line)
        }
        self.loop = Loop()
        self.traffic = TRAFFIC[scenario.traffic](self.loop, scenario, sinks)
        self.web = WebTraffic(self.loop, scenario, self.host, sinks)
        self.short = ShortTraffic(self.loop, scenario, self.host, sinks)
        sources = {
            entry: net.get(udp_source_name(entry))
            for entry in {stream.entry for stream in scenario.stream_list()}
        }
        self.udp = UdpTraffic(self.loop, scenario, sources, sinks)
        observe_us = scenario.observe_us
        self.watch = None if observe_us is None else Watch(self.loop, self.flows[0], observe_us)
        self.reader = FlowReader(
            [self._diag(host) for host in self.hosts.values()],
            [flow.port for flow in self.flows],
            socket.AF_INET6 if scenario.ipv6 else socket.AF_INET,
        )
        self.readings: list[Reading] = []

    @staticmethod
    def _diag(host: NamespaceNode) -> SocketDiag:
        with host.namespace:
            return SocketDiag()

    def close(self) -> None:
        """Give the descriptors back."""
        self.reader.close()
        self.loop.close()

    def observe(self) -> Outcome:
        """Run the traffic from start to end, and judge it."""
        settled = time.monotonic_ns() + SETTLE_NS
        start = -(-settled // NS_PER_S) * NS_PER_S  # in the lab, the same however set-up went
        end = round(self.scenario.duration_s * NS_PER_S)
        warmup = round(self.scenario.warmup_s * NS_PER_S)
        borders = [round(time_s * NS_PER_S) for time_s in self.scenario.stage_times_s]
        times = sorted({*range(0, end, FLOW_PERIOD_NS), warmup, end, *borders})

        self.loop.at(start - INSPECT_NS, self._look_before)
        for when in times:
            self.loop.at(start + when, partial(self._read, start))
        self.loop.at(start + end, self.loop.stop)
        self._vary_losses(start)
        for flow in self.flows:
            self.loop.at(start + round(flow.start_s * NS_PER_S), partial(self._start, flow))
            if flow.stop_s is not None:
                self.loop.at(start + round(flow.stop_s * NS_PER_S), partial(self._leave, flow))
        sampler = QueueSampler(self.loop, self.bottlenecks, start)
        tell_length((start + end - time.monotonic_ns()) / NS_PER_S)
        try:
            self.traffic.listen(self.flows)
            self.web.begin(start)
            self.short.begin(start)
            self.udp.begin(start)
            with self.watch.watching(start) if self.watch else contextlib.nullcontext():
                self.loop.run()
        finally:
            self.traffic.stop()
            self.web.stop()
            self.short.stop()
            self.udp.stop()
        self._rest()

        measured = self.readings[times.index(warmup) :]
        samples = [
            [sample for sample in of_one if warmup <= sample.time_ns < end]
            for of_one in sampler.samples
        ]
        pages, short = (
            [one for one in ended if warmup <= one.time_ns < end]
            for ended in (self.web.pages, self.short.finished)
        )
        made_of = provenance(self.host(self.flows[0]), self.devices)
        response_times = [
            response_time_s(of_one, target) if (target := target_of(shown)) else None
            for of_one, shown in zip(sampler.samples, made_of.qdiscs, strict=True)
        ]
        ends = measured[0], measured[-1]
        metrics = measure(self.scenario, samples, *ends, response_times, pages, short)
        at_borders = [self.readings[times.index(border)] for border in borders]
        stages = measure_stages(self.scenario, sampler.samples, at_borders)
        return Outcome(
            self.scenario,
            replace(metrics, stages=stages),
            self._reasons(samples, measured),
            sampler.samples,
            self.readings,
            self.web.pages,
            self.short.finished,
            self.watch.sights() if self.watch else [],
            made_of,
        )

    def host(self, flow: Flow) -> NamespaceNode:
        """Where FLOW comes from."""
        return self.hosts[flow.entry, flow.rtt_us]

    def _vary_losses(self, start: int) -> None:
        """Have lines lose what they are to lose, from START on."""
        for number, line in self.lines.items():
            loss = self.scenario.links[number].loss
            if not isinstance(loss, float):
                schedule = loss.schedule(random.Random(f"loss {self.scenario.seed} {number}"))
                self._next_loss(line, schedule, start, None)

    def _next_loss(
        self, line: Line, schedule: Iterator[tuple[float, float]], start: int, share: float | None
    ) -> None:
        """Lose SHARE from now on, and what SCHEDULE says next when it says so."""
        if share is not None:
            line.lose(share)
        if following := next(schedule, None):
            when = start + round(following[0] * NS_PER_S)
            self.loop.at(when, lambda _: self._next_loss(line, schedule, start, following[1]))

    def _start(self, flow: Flow, _: int) -> None:
        self.traffic.start(flow, self.host(flow))

    def _leave(self, flow: Flow, _: int) -> None:
        self.reader.read()
        self.traffic.leave(flow)

    def _counters(self) -> list[Counters]:
        found = [bottleneck.counters() for bottleneck in self.bottlenecks]
        for number, line in self.lines.items():
            seen = line.read()
            found[number] = replace(found[number], line_came=seen.came, line_lost=seen.lost)
        return found

    def _look_before(self, _: int) -> None:
        self.before = inspect(self.net)
        self.counters_before = self._counters()

    def _read(self, start: int, now: int) -> None:
        self.traffic.check()
        self.readings.append(
            Reading(now - start, self._counters(), self.reader.read(), self.udp.received())
        )

    def _rest(self) -> None:
        """Wait until nothing is on its way any more."""
        time.sleep(2 * max(flow.rtt_us for flow in self.flows) / US_PER_S + REST_S)
        for _ in range(REST_LOOKS):
            if not any(counters.queued for counters in self._counters()):
                return
            time.sleep(REST_S)

    def _reasons(self, samples: list[list[QueueSample]], readings: list[Reading]) -> list[str]:
        """Why this run is not to be trusted: read when all is at rest."""
        after, rest = inspect(self.net), self._counters()
        warm, last = readings[0], readings[-1]
        expected = (last.time_ns - warm.time_ns) // QUEUE_PERIOD_NS
        frame = self.scenario.frame_bytes
        reasons = [
            *fidelity.check_devices(self.before, after),
            *fidelity.check_hops(self._hops(after, rest)),
        ]
        for number, (device, queue) in enumerate(
            zip(self.devices, self.scenario.queues, strict=True)
        ):
            begin, end = warm.counters[number], last.counters[number]
            reasons += [
                *fidelity.check_rest(device.name, rest[number]),
                *fidelity.check_shaper(device.name, samples[number], queue, frame),
                *fidelity.check_packets(device.name, begin, end, frame),
            ]
        reasons += fidelity.check_flows(readings, self.scenario)
        return reasons + fidelity.check_samples(samples[0], expected)

    def _hops(self, after: Inspection, rest: list[Counters]) -> list[fidelity.Hop]:
        """Each direction of each link, and each node that passes packets on."""
        queue_drops = {
            device.name: at_rest.drops - before.drops - (at_rest.copies - before.copies)
            for device, before, at_rest in zip(
                self.devices, self.counters_before, rest, strict=True
            )
        }

        def moved(field: str, *devices: Device) -> int:
            return sum(
                getattr(after.devices[device.name], field)
                - getattr(self.before.devices[device.name], field)
                for device in devices
            )

        hops = []
        for link in self.net.links:
            for near, far in ((link.intf1, link.intf2), (link.intf2, link.intf1)):
                name = f"from {near.name} to {far.name}"
                hops.append(fidelity.Hop(name, moved("sent", near), moved("received", far)))
        for node in self.net.hosts:
            devices = node.intfList()
            if len(devices) > 1:
                dropped = sum(queue_drops.get(device.name, 0) for device in devices)
                out = moved("sent", *devices) + moved("line_drops", *devices) + dropped
                hops.append(fidelity.Hop(f"in {node.name}", moved("received", *devices), out))
        return hops


def run(scenario: Scenario, ready: Callable[[], None]) -> Outcome:
    """Do the experiment; READY is called when its network stands, before the traffic.

    Raises RefusedError for a qdisc or congestion control that the kernel does not take,
    ExperimentError for what else keeps it from being done.
    """
    for name in scenario.cc:
        check_congestion_control(name)
    with prepared_machine(), standing(Chain(scenario)) as net:
        ready()
        with contextlib.closing(ChainRun(net, scenario)) as chain:
            return chain.observe()
