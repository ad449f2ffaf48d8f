#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One experiment on a router of yours, in real time: this machine's device gets a shaper and the
qdisc under test, and hosts on either side of it send and receive, over ssh.

    mininet/router.py --device eth1 --in eth0 --rate 18mbit --qdisc 'rem bandwidth 18mbit' \\
        --client alice --server bob=192.0.2.2 --flows 10 --duration 60 --warmup 20 --out out/r

Flows go from the clients to the servers, dealt round. --dry-run prints all commands, runs none.
"""

import argparse
import contextlib
import json
import math
import os
import platform
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from itertools import accumulate
from pathlib import Path
from typing import Any

from aqmlab import fidelity
from aqmlab.cli import carry_out
from aqmlab.errors import ExperimentError
from aqmlab.experiment import Outcome
from aqmlab.kernel import machine, offloads_on
from aqmlab.loop import Loop
from aqmlab.metrics import Counters, FlowState, QueueSample, Reading, measure, response_time_s
from aqmlab.netlink import Route
from aqmlab.options import Parser, checked, whole
from aqmlab.provenance import Provenance, loaded_modules, target_of
from aqmlab.sampler import QUEUE_PERIOD_NS, Bottleneck, QueueSampler
from aqmlab.scenario import (
    HEADER_BYTES,
    MAX_FLOWS,
    MAX_MTU,
    NS_PER_S,
    Link,
    Scenario,
    parse_names,
    parse_qdisc,
    parse_rate,
    parse_seconds,
)
from aqmlab.tc import Shaper, ask

FIRST_PORT = 5201
IDLE_S = 60  # after which a server that nobody came to ends
LATE_S = 30.0  # that a client may take beyond --duration
PINGS = 5
SERVERS_READY_S = 2.0
REST_S, REST_LOOKS = 1.0, 30
PING_MIN = re.compile(r"= ([\d.]+)/")


@dataclass(frozen=True)
class Server:
    """Where flows go to: the host that ssh knows, and its address beyond the device."""

    host: str
    address: str


@dataclass(frozen=True)
class Setup:
    """The command line."""

    device: str
    incoming: tuple[str, ...]
    rate_bps: int
    qdisc: str
    clients: tuple[str, ...]
    servers: tuple[Server, ...]
    flows: int
    duration_s: float
    warmup_s: float
    cc: str
    ssh: tuple[str, ...]
    mtu: int

    def on(self, host: str, *words: str) -> list[str]:
        """WORDS, done by HOST; a shell there may read them, and finds nothing to change."""
        return [*self.ssh, host, *words]

    def client(self, flow: int) -> str:
        """Where FLOW comes from."""
        return self.clients[flow % len(self.clients)]

    def server(self, flow: int) -> Server:
        """Where it goes to."""
        return self.servers[flow % len(self.servers)]

    def pairs(self) -> list[tuple[str, Server]]:
        """All ends between which there are flows."""
        return list(dict.fromkeys((self.client(f), self.server(f)) for f in range(self.flows)))

    def ping(self, client: str, server: Server) -> list[str]:
        """Ask for the base round-trip time."""
        return self.on(client, "ping", "-q", "-c", str(PINGS), "-i", "0.2", server.address)

    def listen(self, flow: int) -> list[str]:
        """FLOW's receiver: it ends with the flow, or if that never comes."""
        port = ("--port", str(FIRST_PORT + flow), "--idle-timeout", str(IDLE_S))
        words = ("iperf3", "--server", "--one-off", *port, "--json")  # for what the sender gets
        return self.on(self.server(flow).host, *words)

    def send(self, flow: int) -> list[str]:
        """Its sender, which tells at the end what the receiver saw."""
        words = ["iperf3", "--client", self.server(flow).address, "--port", str(FIRST_PORT + flow)]
        words += ["--time", str(math.ceil(self.duration_s)), "--congestion", self.cc]
        return self.on(self.client(flow), *words, "--json", "--get-server-output")

    def shaper(self) -> Shaper:
        """The bottleneck."""
        return Shaper(self.rate_bps, self.qdisc, self.mtu + HEADER_BYTES)

    def tc(self) -> list[list[str]]:
        """What sets it up."""
        return [["tc", *command.split()] for command in self.shaper().commands(self.device)]

    def undo_tc(self) -> list[str]:
        """What takes it away: the kernel's own qdisc is then back."""
        return ["tc", "qdisc", "delete", "dev", self.device, "root"]


def ethtool(device: str, names: Sequence[str], state: str) -> list[str]:
    """Switch offloads NAMES of DEVICE to STATE."""
    return ["ethtool", "-K", device, *(word for name in names for word in (name, state))]


def call(words: Sequence[str]) -> str:
    """Run a command; ExperimentError with its words if it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise ExperimentError(f"{shlex.join(words)}: status {done.returncode}: {said}")
    return done.stdout


def joining(device: str) -> list[str]:
    """The offloads of DEVICE that join packets and are on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return offloads_on(sock, device)


def check_free(device: str) -> None:
    """ExperimentError if DEVICE has a qdisc that somebody put there, or is down."""
    for qdisc in json.loads(ask("-j", "qdisc", "show", "dev", device)):
        if qdisc.get("root") and qdisc["handle"] != "0:":
            raise ExperimentError(
                f"{device} has a {qdisc['kind']} {qdisc['handle']} of yours as its root: take it"
                f" off first (tc qdisc delete dev {device} root)."
            )


@contextlib.contextmanager
def prepared(setup: Setup) -> Iterator[None]:
    """The device set up; however it ends, all is as it was."""
    check_free(setup.device)
    with contextlib.ExitStack() as undo:
        for device in (setup.device, *setup.incoming):
            if names := joining(device):
                undo.callback(call, ethtool(device, names, "on"))
                call(ethtool(device, names, "off"))
        # before, not after: what fails half-way is taken away, too
        undo.callback(subprocess.run, setup.undo_tc(), capture_output=True)
        setup.shaper().attach(setup.device)
        yield


class Programs:
    """Programs over ssh, ended when this one does."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[str]] = []

    def start(self, words: Sequence[str], output: int) -> "subprocess.Popen[str]":
        """Start one; OUTPUT is subprocess's word for what becomes of what it says."""
        program = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,  # Ctrl-C reaches us alone, and we end the rest
        )
        self._running.append(program)
        return program

    def end(self) -> None:
        """End those that still run: SIGTERM to all of their sessions."""
        for program in self._running:
            if program.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGTERM)
        for program in self._running:
            program.wait()


def ignore_signals() -> None:
    """Once one was heeded: what is being undone is not to be interrupted."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def base_rtts_us(setup: Setup) -> tuple[int, ...]:
    """The round-trip time of each flow while nothing else is sent."""
    found = {}
    for client, server in setup.pairs():
        words = setup.ping(client, server)
        least = PING_MIN.search(call(words))
        if not least:
            raise ExperimentError(f"{shlex.join(words)} told no round-trip time.")
        found[client, server] = max(round(float(least[1]) * 1000), 1)
    return tuple(found[setup.client(flow), setup.server(flow)] for flow in range(setup.flows))


def scenario_of(setup: Setup, rtts_us: tuple[int, ...]) -> Scenario:
    """For run.json, and for the metrics."""
    return Scenario(
        links=(Link(setup.rate_bps, setup.qdisc),),
        long=setup.flows,
        cross=0,
        rtts_us=rtts_us,
        mtu=setup.mtu,
        ipv6=ip_address(setup.servers[0].address).version == 6,
        initcwnd=None,
        window=None,
        duration_s=setup.duration_s,
        warmup_s=setup.warmup_s,
        cc=(setup.cc,),
        ecn=False,
        start_spread_s=0.0,
        traffic="iperf3",
        seed=0,
    )


@dataclass(frozen=True)
class Observed:
    """What was seen here: of queue and shaper."""

    samples: list[QueueSample]
    counters: list[Counters]  # every second, from the start to the end


def observe(setup: Setup, bottleneck: Bottleneck) -> Observed:
    """Watch the queue for as long as flows are measured; stops when the clock says so."""
    loop = Loop()
    start = loop.now()
    counters: list[Counters] = []
    seconds = range(math.ceil(setup.duration_s) + 1)
    for second in seconds:
        loop.at(start + second * NS_PER_S, lambda _: counters.append(bottleneck.counters()))
    loop.at(start + seconds[-1] * NS_PER_S, loop.stop)
    sampler = QueueSampler(loop, [bottleneck], start)
    try:
        loop.run()
    finally:
        loop.close()
    return Observed(sampler.samples[0], counters)


def flow_states(told: dict[str, Any], seconds: int) -> list[FlowState]:
    """One flow's state second by second, from iperf3's JSON: payload as its receiver counted it."""
    if "error" in told:
        raise ExperimentError(f"iperf3: {told['error']}.")
    if "server_output_json" not in told:
        raise ExperimentError(
            "a sender got no JSON from its receiver: is that iperf3 3.1 or later?"
        )
    received = [part["sum"]["bytes"] for part in told["server_output_json"]["intervals"]]
    resent = [part["sum"].get("retransmits", 0) for part in told["intervals"]]
    if len(received) < seconds:
        raise ExperimentError(f"iperf3 told of {len(received)} seconds instead of {seconds}.")
    total, again = list(accumulate(received)), list(accumulate(resent))
    return [FlowState(0, 0, False, 0, 0, 1)] + [
        FlowState(total[second], again[min(second, len(again) - 1)], False, 0, 0, 1)
        for second in range(seconds)
    ]


def provenance(device: str) -> Provenance:
    """What this machine ran; the hosts are others'."""
    return Provenance(
        kernel=platform.release(),
        clock="real",
        modules=loaded_modules(),
        iproute2=ask("-V").split(",")[1].strip(),
        mininet="none",
        python=platform.python_version(),
        sysctls={},
        qdiscs=[json.loads(ask("-j", "qdisc", "show", "dev", device))],
    )


def run(setup: Setup, ready: Callable[[], None]) -> Outcome:
    """Do the experiment."""
    with machine(), contextlib.ExitStack() as undo:
        rtts_us = base_rtts_us(setup)
        undo.enter_context(prepared(setup))
        ready()
        route = undo.enter_context(contextlib.closing(Route()))
        bottleneck = Bottleneck(route, socket.if_nametoindex(setup.device))
        programs = Programs()
        undo.callback(programs.end)
        undo.callback(ignore_signals)
        for flow in range(setup.flows):
            programs.start(setup.listen(flow), subprocess.DEVNULL)
        time.sleep(SERVERS_READY_S)
        senders = [programs.start(setup.send(flow), subprocess.PIPE) for flow in range(setup.flows)]
        told: dict[int, str] = {}
        readers = [
            threading.Thread(target=_collect, args=(told, flow, sender), daemon=True)
            for flow, sender in enumerate(senders)
        ]
        for reader in readers:
            reader.start()
        seen = observe(setup, bottleneck)
        late = time.monotonic() + LATE_S
        for reader in readers:
            reader.join(max(late - time.monotonic(), 0))
        rest = at_rest(bottleneck)
        made_of = provenance(setup.device)
        joined = [(name, joining(name)) for name in (setup.device, *setup.incoming)]
    return judged(setup, scenario_of(setup, rtts_us), seen, rest, told, made_of, joined)


def _collect(told: dict[int, str], flow: int, sender: "subprocess.Popen[str]") -> None:
    """Keep what a sender says; that of one that failed, too, which says why."""
    said, complaint = sender.communicate()
    told[flow] = said or json.dumps({"error": complaint.strip() or "it said nothing"})


def at_rest(bottleneck: Bottleneck) -> Counters:
    """The counters when nothing waits any more, or never."""
    for _ in range(REST_LOOKS):
        if not (rest := bottleneck.counters()).queued:
            break
        time.sleep(REST_S)
    return rest


def judged(
    setup: Setup,
    scenario: Scenario,
    seen: Observed,
    rest: Counters,
    told: dict[int, str],
    made_of: Provenance,
    joined: Sequence[tuple[str, list[str]]],
) -> Outcome:
    """The metrics, and whether they are to be trusted."""
    seconds = len(seen.counters) - 1
    flows = []
    for flow in range(setup.flows):
        if flow not in told:
            raise ExperimentError(f"flow {flow}, from {setup.client(flow)}, did not end.")
        flows.append(flow_states(json.loads(told[flow]), seconds))
    readings = [
        Reading(second * NS_PER_S, [seen.counters[second]], list(states))
        for second, states in enumerate(zip(*flows, strict=True))
    ]
    warm, last = readings[math.ceil(setup.warmup_s)], readings[-1]
    samples = [one for one in seen.samples if warm.time_ns <= one.time_ns < last.time_ns]
    target = target_of(made_of.qdiscs[0])
    response = response_time_s(seen.samples, target) if target else None
    frame = scenario.frame_bytes
    reasons = [
        *(f"{name} had offloads on: {', '.join(on)}" for name, on in joined if on),
        *fidelity.check_rest(setup.device, rest),
        *fidelity.check_shaper(setup.device, samples, scenario.queues[0], frame),
        *fidelity.check_packets(setup.device, warm.counters[0], last.counters[0], frame),
        *fidelity.check_samples(samples, (last.time_ns - warm.time_ns) // QUEUE_PERIOD_NS),
    ]
    metrics = measure(scenario, [samples], warm, last, [response])
    return Outcome(scenario, metrics, reasons, [seen.samples], readings, [], [], [], made_of)


def parse_server(text: str) -> Server:
    """'bob=192.0.2.2', or an address that ssh can reach, too."""
    host, _, address = text.rpartition("=")
    try:
        ip_address(address)
    except ValueError:
        raise ValueError(f"{text!r} is not of the form bob=192.0.2.2") from None
    return Server(host or address, address)


def mtu_of(device: str) -> int:
    """Bytes of an IP packet that DEVICE takes."""
    try:
        return int(Path("/sys/class/net", device, "mtu").read_text())
    except OSError:
        raise ValueError(f"there is no device {device!r}") from None


def arguments(argv: list[str] | None = None) -> tuple[Setup, argparse.Namespace]:
    """What is to be done; exits with status 2 if it makes no sense."""
    parser = Parser(__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--device", required=True, help="of this machine, towards the servers: its queue")
    add(
        "--in",
        dest="incoming",
        action="append",
        default=[],
        metavar="DEVICE",
        help="by which flows come: what joins packets there is off meanwhile",
    )
    add("--rate", required=True, type=checked(parse_rate), help="of the shaper: 18mbit")
    add("--qdisc", required=True, type=checked(parse_qdisc), help="as tc takes it, verbatim")
    add("--client", required=True, action="append", metavar="HOST", help="sends, for ssh")
    add(
        "--server",
        required=True,
        action="append",
        type=checked(parse_server),
        metavar="HOST=ADDRESS",
        help="receives: for ssh, and for the client",
    )
    add("--flows", required=True, type=whole(1, MAX_FLOWS), metavar="N", help="dealt round")
    add("--duration", required=True, type=checked(parse_seconds), help="s, whole ones")
    add("--warmup", required=True, type=checked(parse_seconds), help="s of it not measured")
    add("--cc", type=checked(parse_names), default="cubic", help="congestion control (%(default)s)")
    add(
        "--ssh",
        default="ssh -o BatchMode=yes",
        metavar="COMMAND",
        help="instead of ssh: called with a host and a command (%(default)s)",
    )
    add("--out", required=True, type=Path, metavar="DIR", help="for run.json, series.csv.gz")
    add("--json", action="store_true", help="print one line of JSON instead of a table")
    add("--dry-run", action="store_true", help="print the commands, run none")
    args = parser.parse_args(argv)
    if args.duration - args.warmup < 1:
        parser.error(f"--warmup: {args.warmup:g} s leave less than a second of --duration")
    if len(args.cc) > 1:
        parser.error("--cc: one for all")
    try:
        mtu = min(mtu_of(args.device), MAX_MTU)
        for device in args.incoming:
            mtu_of(device)
    except ValueError as wrong:
        parser.error(str(wrong))
    setup = Setup(
        args.device,
        tuple(args.incoming),
        args.rate,
        args.qdisc,
        tuple(args.client),
        tuple(args.server),
        args.flows,
        args.duration,
        args.warmup,
        args.cc[0],
        tuple(shlex.split(args.ssh)),
        mtu,
    )
    return setup, args


def commands(setup: Setup) -> Iterator[list[str]]:
    """All that would be done, in its order."""
    for client, server in setup.pairs():
        yield setup.ping(client, server)
    offloads = {name: joining(name) for name in (setup.device, *setup.incoming)}
    for device, names in offloads.items():
        if names:
            yield ethtool(device, names, "off")
    yield from setup.tc()
    yield from (setup.listen(flow) for flow in range(setup.flows))
    yield from (setup.send(flow) for flow in range(setup.flows))
    yield setup.undo_tc()
    for device, names in reversed(offloads.items()):
        if names:
            yield ethtool(device, names, "on")


def main() -> int:
    """Do the experiment; the exit status."""
    setup, args = arguments()
    if args.dry_run:
        for words in commands(setup):
            print(shlex.join(words))
        return 0
    return carry_out("router.py", args, partial(run, setup))


if __name__ == "__main__":
    sys.exit(main())
