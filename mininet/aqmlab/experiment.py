# SPDX-License-Identifier: GPL-2.0-or-later
"""From a scenario to what was observed: network, traffic, samples, verdict."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import fidelity
from .errors import ExperimentError, RefusedError
from .inspection import inspect
from .kernel import held, machine, sysctl_path
from .loop import Loop
from .metrics import (
    Counters,
    Metrics,
    QueueSample,
    Reading,
    measure,
    response_time_s,
)
from .mininet_api import Mininet, Topo
from .netlink import SocketDiag
from .provenance import Provenance, provenance
from .sampler import FLOW_PERIOD_NS, QUEUE_PERIOD_NS, Bottleneck, FlowReader, QueueSampler
from .scenario import NS_PER_S, US_PER_S, Flow, Scenario
from .topology import (
    Device,
    Dumbbell,
    NamespaceNode,
    distinct_rtts,
    make_network,
    source_name,
)
from .traffic import TRAFFIC

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
    samples: list[QueueSample]  # from the first flow's start on
    readings: list[Reading]  # the same, every second, at warmup and at the end
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


class DumbbellRun:
    """A dumbbell that stands, and what is observed on it."""

    def __init__(self, net: Mininet, scenario: Scenario) -> None:
        self.net = net
        self.scenario = scenario
        self.flows = scenario.flow_list()
        self.hosts: dict[int, NamespaceNode] = {
            rtt: net.get(source_name(number)) for number, rtt in enumerate(distinct_rtts(scenario))
        }
        self.router, exit_router, self.sink = net.get("r1", "r2", "d1")
        self.device: Device = self.router.connectionsTo(exit_router)[0][0]
        self.exit_device: Device = exit_router.connectionsTo(self.sink)[0][0]
        self.bottleneck = Bottleneck(self.router.netlink, self.device.index)
        self.loop = Loop()
        self.traffic = TRAFFIC[scenario.traffic](self.loop, scenario, self.sink, self.sink.IP())
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
        times = sorted({*range(0, end, FLOW_PERIOD_NS), warmup, end})

        self.loop.at(start - INSPECT_NS, self._look_before)
        for when in times:
            self.loop.at(start + when, partial(self._read, start))
        self.loop.at(start + end, self.loop.stop)
        for flow in self.flows:
            self.loop.at(start + round(flow.start_s * NS_PER_S), partial(self._start, flow))
        sampler = QueueSampler(self.loop, self.bottleneck, start)
        tell_length((start + end - time.monotonic_ns()) / NS_PER_S)
        try:
            self.traffic.listen(self.flows)
            self.loop.run()
        finally:
            self.traffic.stop()
        self._rest()

        measured = self.readings[times.index(warmup) :]
        samples = [s for s in sampler.samples if warmup <= s.time_ns < end]
        made_of = provenance(self.hosts[self.flows[0].rtt_us], self.router, self.device.name)
        target = made_of.target()
        response_time = response_time_s(sampler.samples, target) if target else None
        return Outcome(
            self.scenario,
            measure(self.scenario, samples, measured[0], measured[-1], response_time),
            self._reasons(samples, measured),
            sampler.samples,
            self.readings,
            made_of,
        )

    def _start(self, flow: Flow, _: int) -> None:
        self.traffic.start(flow, self.hosts[flow.rtt_us])

    def _look_before(self, _: int) -> None:
        self.before = inspect(self.net)
        self.counters_before = self.bottleneck.counters()

    def _read(self, start: int, now: int) -> None:
        self.traffic.check()
        self.readings.append(Reading(now - start, self.bottleneck.counters(), self.reader.read()))

    def _rest(self) -> None:
        """Wait until nothing is on its way any more."""
        time.sleep(2 * max(self.hosts) / US_PER_S + REST_S)
        for _ in range(REST_LOOKS):
            if not self.bottleneck.counters().queued:
                return
            time.sleep(REST_S)

    def _reasons(self, samples: list[QueueSample], readings: list[Reading]) -> list[str]:
        """Why this run is not to be trusted: read when all is at rest."""
        after, rest = inspect(self.net), self.bottleneck.counters()
        warm, last = readings[0], readings[-1]
        expected = (last.time_ns - warm.time_ns) // QUEUE_PERIOD_NS
        return [
            *fidelity.check_devices(self.before, after, self.scenario.loss),
            *fidelity.check_hops(self._hops(after, rest)),
            *fidelity.check_rest(rest),
            *fidelity.check_shaper(samples, self.scenario),
            *fidelity.check_packets(warm, last, self.scenario),
            *fidelity.check_flows(readings, self.scenario),
            *fidelity.check_samples(samples, expected),
        ]

    def _hops(self, after: fidelity.Inspection, rest: Counters) -> list[fidelity.Hop]:
        """The three stretches of the way between which packets may be lost."""

        def moved(field: str, *devices: Device) -> int:
            return sum(
                getattr(after.devices[device.name], field)
                - getattr(self.before.devices[device.name], field)
                for device in devices
            )

        sources = [host.defaultIntf() for host in self.hosts.values()]
        sink = self.sink.defaultIntf()
        was = self.counters_before
        return [
            fidelity.Hop(
                "between senders and queue", moved("sent", *sources), rest.arrivals - was.arrivals
            ),
            fidelity.Hop(
                "between queue and receivers",
                rest.sent - was.sent,
                moved("received", sink) + moved("line_drops", self.exit_device),
            ),
            fidelity.Hop(
                "on the way of the ACKs", moved("sent", sink), moved("received", *sources)
            ),
        ]


def run(scenario: Scenario, ready: Callable[[], None]) -> Outcome:
    """Do the experiment; READY is called when its network stands, before the traffic.

    Raises RefusedError for a qdisc or congestion control that the kernel does not take,
    ExperimentError for what else keeps it from being done.
    """
    for name in scenario.cc:
        check_congestion_control(name)
    with prepared_machine(), standing(Dumbbell(scenario)) as net:
        ready()
        with contextlib.closing(DumbbellRun(net, scenario)) as dumbbell:
            return dumbbell.observe()
