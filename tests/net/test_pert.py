# SPDX-License-Identifier: GPL-2.0-or-later
"""PERT in the kernel: round-trip times are scripted, the window's answers watched."""

import contextlib
import gzip
import math
import re
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from aqmlab.kernel import NetNamespace, switch_offloads_off, write_sysctls

TRACING = Path("/sys/kernel/tracing")
EVENTS = TRACING / "events/pert/enable"
MODULE = Path("/sys/module/tcp_pert")
CERTAINTY = 1 << 32  # a probability of 1
PORT = 5001
ADDRESS = {socket.AF_INET: "10.9.0.2", socket.AF_INET6: "fd09::2"}
PERTS = ("pert", "pert_pi")
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
SO_MAX_PACING_RATE = 47
TCP_NOTSENT_LOWAT, TCP_CC_INFO = 25, 26
BUFFER = 16 << 20  # bytes
WINDOW_BYTES = 256 << 10  # so that no window grows beyond some hundred packets
PACED = 12_000_000  # bit/s
ETH_P_ALL = 3
ETHERNET_MTU = 1514  # bytes, with the header
CHUNK = bytes(1 << 20)
SCRAP = bytearray(4 << 20)
AHEAD = 128 << 10  # bytes that wait for the window: never none
STEP_S = 0.005
BASE_MS = 20.0
QUIET_S = 0.5  # until the last packet has arrived and been answered

# With these the answer is certain: each sample is the average, and the probability 0 up to 5 ms
# of queueing delay and 1 above.
CERTAIN = {"weight": 0, "tmin": 5000, "tmax": 5001, "pmax": 1_000_000}
# Offsets in struct tcp_info, linux/tcp.h
UNACKED, SSTHRESH, WINDOW, RETRANSMITTED = 24, 76, 80, 100

EVENT = re.compile(
    r" (\d+\.\d+): pert_decide: sport=(\d+) dport=\d+: base=(\d+) average=(\d+) window=(\d+)"
    r" prob=(\d+) respond=(\d)$",
    re.MULTILINE,
)
SAMPLE = re.compile(
    r" pert_sample: sport=\d+ dport=(\d+): rtt=(\d+) acked=(\d+) window=(\d+) delayed=(\d)$",
    re.MULTILINE,
)
HOSTS = (("sender", "near", 1), ("receiver", "far", 2))


@dataclass(frozen=True)
class Decision:
    """What a sender thought of one ACK: times in ms, the window before it in packets."""

    time: float
    base: float
    average: float
    window: int
    probability: float
    respond: bool

    @property
    def delay(self) -> float:
        return self.average - self.base


def decisions() -> list[Decision]:
    """The decisions since the last call."""
    text = (TRACING / "trace").read_text()
    (TRACING / "trace").write_text("")
    return [
        Decision(
            float(when) * 1e3,
            int(base) / 1e3,
            int(average) / 1e3,
            int(window),
            int(probability) / CERTAINTY,
            respond == "1",
        )
        for when, _, base, average, window, probability, respond in EVENT.findall(text)
    ]


def on(host: str, program: str, words: str) -> None:
    subprocess.run([program, "-n", f"aqm-{host}", *words.split()], check=True)


class Flow:
    """One connection, and both its ends."""

    def __init__(self, sender: socket.socket, receiver: socket.socket) -> None:
        self.sender, self.receiver = sender, receiver
        for end in (sender, receiver):
            end.setblocking(False)
        self.sent = self.received = 0

    def push(self, seconds: float) -> None:
        """Send as fast as the window lets."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.take()
            with contextlib.suppress(BlockingIOError):
                self.sent += self.sender.send(CHUNK)
            time.sleep(STEP_S)

    def run(self, seconds: float) -> None:
        """Send as fast as the window lets; then wait until all has arrived."""
        self.push(seconds)
        while self.received < self.sent:
            time.sleep(STEP_S)
            self.take()
        time.sleep(QUIET_S)

    def pace(self, rate: int) -> None:
        """From now on send no faster than RATE, bit/s."""
        self.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate // 8)

    def send(self, count: int) -> None:
        """So many bytes, at once."""
        self.sent += self.sender.send(bytes(count))

    def take(self) -> None:
        """Read what has arrived."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.received += self.receiver.recv_into(SCRAP, 0, socket.MSG_TRUNC)

    def info(self, offset: int) -> int:
        data = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        return int(struct.unpack_from("=I", data, offset)[0])

    def cc_info(self) -> tuple[int, int, int, int]:
        """Measured at all, early responses, average and base in us."""
        data = self.sender.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 16)
        enabled, responses, average, base = struct.unpack("=4I", data)
        return enabled, responses, average, base

    @property
    def control(self) -> str:
        name = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        return name.rstrip(b"\0").decode()

    @control.setter
    def control(self, name: str) -> None:
        self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


class Way:
    """Two hosts: what goes from the sender to the receiver takes as long as is said."""

    def __init__(self, ends: contextlib.ExitStack) -> None:
        self._ends = ends
        self.hosts = {name: NetNamespace(name) for name, *_ in HOSTS}
        for namespace in self.hosts.values():
            ends.callback(namespace.close)
        on("sender", "ip", "link add near type veth peer name far netns aqm-receiver")
        for name, device, number in HOSTS:
            with self.hosts[name]:
                write_sysctls(
                    {
                        f"net.ipv6.conf.{device}.disable_ipv6": "0",
                        "net.ipv4.tcp_no_metrics_save": "1",
                        "net.ipv4.tcp_slow_start_after_idle": "0",
                        "net.ipv4.tcp_ecn": "1",
                    }
                )
            on(name, "ip", f"address add 10.9.0.{number}/24 dev {device}")
            on(name, "ip", f"address add fd09::{number}/64 dev {device} nodad")
            on(name, "ip", f"link set {device} up")
            with self.hosts[name], socket.socket() as any_socket:
                switch_offloads_off(any_socket, device)
        self.delays_acks(False)
        on("sender", "tc", "qdisc add dev near root netem limit 100000")
        self.takes(BASE_MS)

    def takes(self, milliseconds: float, more: str = "") -> None:
        """From now on; while nothing is under way, or packets overtake others."""
        line = f"netem limit 100000 delay {milliseconds * 1000:g}us {more}"
        on("sender", "tc", f"qdisc change dev near root {line}")

    def delays_acks(self, yes: bool) -> None:
        """Whether the receiver, over IPv4, waits for a second segment, or until it is read."""
        on("receiver", "ip", f"route change 10.9.0.0/24 dev far quickack {int(not yes)}")

    def joins_segments(self) -> None:
        """From now on hosts hand down, and get, many segments in one packet."""
        for name, device, _ in HOSTS:
            with self.hosts[name]:
                words = ["ethtool", "-K", device, "tso", "on", "gso", "on", "gro", "on"]
                subprocess.run(words, check=True, capture_output=True)

    @contextlib.contextmanager
    def longest(self) -> Iterator[list[int]]:
        """The longest packet that arrives meanwhile: headers and all, bytes."""
        found: list[int] = []
        with self.hosts["receiver"]:
            tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        with tap:
            tap.setblocking(False)
            yield found
            lengths = [0]
            with contextlib.suppress(BlockingIOError):
                while True:
                    lengths.append(tap.recv_into(SCRAP, 1, socket.MSG_TRUNC))
        found.append(max(lengths))

    @contextlib.contextmanager
    def marking(self) -> Iterator[None]:
        """Packets that are sent meanwhile are marked CE."""
        self.takes(BASE_MS, "loss 100% ecn")
        yield
        self.takes(BASE_MS)

    @contextlib.contextmanager
    def dropping(self) -> Iterator[None]:
        """Packets that arrive meanwhile are lost: not by the sender, which would be told."""
        on("receiver", "tc", "qdisc add dev far clsact")
        on("receiver", "tc", "filter add dev far ingress matchall action drop")
        yield
        on("receiver", "tc", "qdisc del dev far clsact")

    def connect(self, control: str | None, family: socket.AddressFamily = socket.AF_INET) -> Flow:
        with self.hosts["receiver"]:
            listener = socket.socket(family)
        with self.hosts["sender"]:
            sender = socket.socket(family)
        with listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, WINDOW_BYTES)
            sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
            sender.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, AHEAD)
            if control:
                name = control.encode()
                sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
            listener.bind((ADDRESS[family], PORT))
            listener.listen()
            sender.connect((ADDRESS[family], PORT))
            flow = Flow(sender, listener.accept()[0])
        self._ends.callback(flow.close)
        return flow


@pytest.fixture
def way() -> Iterator[Way]:
    with contextlib.ExitStack() as ends:
        yield Way(ends)
    time.sleep(1)  # until the namespaces have gone


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    subprocess.run(["modprobe", "tcp_pert"], check=True)
    (TRACING / "buffer_size_kb").write_text("16384")
    (TRACING / "trace_clock").write_text("mono")
    (TRACING / "trace").write_text("")
    EVENTS.write_text("1")
    yield
    if EVENTS.exists():
        EVENTS.write_text("0")


Set = Callable[..., None]


@pytest.fixture
def module() -> Iterator[Set]:
    """Set parameters of the module, until the end of the test."""
    before: dict[Path, str] = {}

    def put(**values: int) -> None:
        for name, value in values.items():
            file = MODULE / "parameters" / name
            before.setdefault(file, file.read_text())
            file.write_text(str(value))

    yield put
    for file, value in before.items():
        file.write_text(value)


def congested(way: Way, flow: Flow, seconds: float = 1.0) -> None:
    """Have the flow find its base, and then a queue of 6 ms."""
    flow.run(4 * BASE_MS / 1000)
    way.takes(BASE_MS + 6)
    decisions()
    flow.run(seconds)


def test_no_answer_below_the_threshold(way: Way, module: Set) -> None:
    """One packet more a round trip, as Reno; none less."""
    module(**CERTAIN)
    flow = way.connect("pert")
    congested(way, flow)  # so that slow start is over
    way.takes(BASE_MS + 4.9)
    decisions()
    flow.run(1.0)
    seen = decisions()
    assert all(4.8 < one.delay < 5.0 for one in seen), seen
    assert {one.probability for one in seen} == {0.0}
    assert not any(one.respond for one in seen)
    assert all(0 <= after.window - before.window <= 1 for before, after in pairwise(seen))
    gained = seen[-1].window - seen[0].window
    assert gained == pytest.approx(1000 / (BASE_MS + 4.9), abs=3)


@pytest.mark.parametrize("spacing", [1, 2, 5])
def test_answer_above_the_threshold(way: Way, module: Set, spacing: int) -> None:
    """0.65 of the window, once in so many round trips; nothing else takes any of it."""
    module(**CERTAIN, spacing=spacing)
    flow = way.connect("pert")
    congested(way, flow, seconds=1.5)
    seen = decisions()
    assert {one.probability for one in seen} == {1.0}
    for before, after in pairwise(seen):
        if before.respond:
            assert after.window in (max(round(before.window * 0.65 + d), 2) for d in (-0.5, 0, 0.5))
        else:
            assert 0 <= after.window - before.window <= 1
    times = [one.time for one in seen if one.respond]
    assert len(times) > 3
    round_trip = BASE_MS + 6
    for before_ms, after_ms in pairwise(times):
        # the packets sent after the cut are awaited, and these wait for the window to be free
        waited = after_ms - before_ms
        assert spacing * round_trip - 0.1 < waited < (spacing + 1) * round_trip + 10
    enabled, responses, average, base = flow.cc_info()
    assert (enabled, responses) == (1, len(times))
    assert average == pytest.approx(26_000, abs=100)
    assert base == pytest.approx(20_000, abs=100)


def test_probability_is_that_of_the_curve(way: Way) -> None:
    """With the paper's parameters, whatever is measured; and ACKs are hit as often as it says."""
    flow = way.connect("pert")
    flow.run(0.1)
    expected = hits = spread = 0.0
    for delay_ms in (4, 7, 9, 12, 16, 22):
        way.takes(BASE_MS + delay_ms)
        for _ in range(4):
            flow.run(1.0)
        seen = decisions()
        last = None
        for one in seen:
            p = min(max(0.0, 0.05 * (one.delay - 5) / 5), 0.05)
            if one.delay > 10:
                p = min(1.0, 0.05 + 0.95 * (one.delay - 10) / 10)
            assert one.probability == pytest.approx(p, abs=2e-4)
            # a round trip after a response, and its rest, there is no other
            if last is None or one.time - last > 2.2 * (BASE_MS + delay_ms):
                expected += p
                spread += p * (1 - p)
                hits += one.respond
            last = one.time if one.respond else last
    assert expected > 20
    assert abs(hits - expected) < 4 * spread**0.5


def test_pi_integrates_the_delay(way: Way, module: Set) -> None:
    """At a constant delay p grows by K times what exceeds the target; below it, it is 0."""
    module(weight=0, pi_integral=2_000_000)
    flow = way.connect("pert_pi")
    flow.run(0.1)
    way.takes(BASE_MS + 2)
    decisions()
    flow.run(1.0)
    assert decisions()[-1].probability == 0  # the step itself has passed
    way.takes(BASE_MS + 13)
    flow.run(0.1)
    first = decisions()[-1]
    flow.run(1.0)
    seen = decisions()
    assert any(one.respond for one in seen)
    slope = (seen[-1].probability - first.probability) / (seen[-1].time - first.time) * 1000
    assert slope == pytest.approx(2 * 0.010, rel=0.1)


@pytest.mark.parametrize("control", PERTS)
@pytest.mark.parametrize("how", ["lost", "marked"])
def test_a_loss_or_a_mark_takes_half(way: Way, module: Set, control: str, how: str) -> None:
    module(**CERTAIN)
    flow = way.connect(control)
    congested(way, flow, seconds=0.02)
    way.takes(BASE_MS)
    flow.run(0.5)
    window = flow.info(WINDOW)
    assert window > 20
    flow.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # one packet is hit, and others after it are not
    with way.dropping() if how == "lost" else way.marking():
        flow.send(100)
        time.sleep(BASE_MS / 1000 + STEP_S)
    for _ in range(5):
        flow.send(100)
    flow.run(0)
    assert flow.info(SSTHRESH) == window // 2


def test_a_longer_path_is_found_out(way: Way, module: Set) -> None:
    module(base_window=10)
    flow = way.connect("pert")
    flow.run(0.5)
    assert flow.cc_info()[3] == pytest.approx(20_000, abs=100)
    way.takes(BASE_MS + 60)
    flow.run(1.0)
    assert flow.cc_info()[3] == pytest.approx(20_000, abs=100)
    flow.run(10)
    assert flow.cc_info()[3] == pytest.approx(80_000, abs=100)
    small = flow.info(WINDOW)
    flow.run(3)
    assert flow.info(WINDOW) > small + 10
    way.takes(BASE_MS)
    flow.run(0.1)
    assert flow.cc_info()[3] == pytest.approx(20_000, abs=100)


@pytest.mark.parametrize("filtered", [True, False])
def test_delayed_acks_are_no_queue(way: Way, module: Set, filtered: bool) -> None:
    """Of three segments at a time the third is answered late: without the filter, by a response.

    With the filter off the same traffic is answered: what is tested is the filter.
    """
    way.delays_acks(True)
    flow = way.connect("pert")
    flow.run(0.1)
    segment = flow.info(16)

    def send_by_three(times: int) -> None:
        for _ in range(times):
            flow.send(3 * segment)
            time.sleep(0.12)
            flow.take()

    send_by_three(30)  # at first the receiver answers each, and a single one late
    module(**{**CERTAIN, "weight": 900_000}, delack_filter=int(filtered))
    send_by_three(20)
    decisions()
    send_by_three(50)
    samples = SAMPLE.findall((TRACING / "trace").read_text())
    assert {int(port) for port, *_ in samples} == {PORT}
    late = [
        (acked, delayed) for _, rtt, acked, _, delayed in samples if int(rtt) > 1e3 * BASE_MS + 9e3
    ]
    assert set(late) == {("1", str(int(filtered)))}  # all of them, and no others:
    assert all(delayed == "0" or int(rtt) > 1e3 * BASE_MS for _, rtt, *_, delayed in samples)
    seen = decisions()
    assert any(one.respond for one in seen) == (not filtered)
    assert (max(one.delay for one in seen) < 1) == filtered


def test_one_way_leaves_out_the_way_back(way: Way, module: Set) -> None:
    module(weight=0)
    on("receiver", "tc", "qdisc add dev far root netem limit 100000 delay 1ms")
    flow = way.connect("pert")
    flow.run(0.3)

    def delays(back_ms: int, one_way: bool) -> tuple[float, float]:
        """The least and the most of what is taken for queueing, ms."""
        line = f"netem limit 100000 delay {1 + back_ms}ms"
        on("receiver", "tc", f"qdisc change dev far root {line}")
        module(one_way=int(one_way))
        flow.run(0.1)  # with the option on, it measures anew
        decisions()
        flow.run(0.2)
        seen = [one.delay for one in decisions()]
        return min(seen), max(seen)

    assert delays(0, one_way=True)[1] <= 1  # the receiver's clock has steps of 1 ms
    assert delays(12, one_way=True)[1] <= 1
    assert delays(12, one_way=False)[0] == pytest.approx(12, abs=0.2)
    assert delays(0, one_way=True)[1] <= 1
    way.takes(BASE_MS + 12)
    low, high = delays(0, one_way=True)
    assert 11 - 0.2 <= low <= high <= 12 + 1


def test_average_by_time(way: Way, module: Set) -> None:
    """A step of 4 ms is followed in the time constant, not in a number of ACKs."""
    module(time_constant=200_000)
    flow = way.connect("pert")
    flow.run(0.5)
    way.takes(BASE_MS + 4)
    decisions()
    flow.run(0.6)
    seen = decisions()
    # QUIET_S is the gap before the first sample: from there on
    first = seen[0]
    for one in seen[1:]:
        left = (4 - first.delay) * math.exp(-(one.time - first.time) / 200)
        assert one.delay == pytest.approx(4 - left, abs=0.3)


def test_coexistence_gives_up_by_and_by(way: Way, module: Set) -> None:
    """Against a queue of others the pauses double."""
    module(**CERTAIN, coexist=1, base_window=3600)
    flow = way.connect("pert")
    flow.run(0.1)
    way.takes(BASE_MS + 20)
    decisions()
    flow.run(4.0)
    times = [one.time for one in decisions() if one.respond]
    rounds = [(after - before) / (BASE_MS + 20) for before, after in pairwise(times)]
    assert len(rounds) >= 4
    for number, waited in enumerate(rounds, 1):
        assert 2**number - 0.1 < waited < 2**number + 1.6


def test_an_idle_connection_forgets_its_queue(way: Way) -> None:
    flow = way.connect("pert")
    flow.run(0.1)
    way.takes(BASE_MS + 50)
    flow.run(3)
    way.takes(BASE_MS)
    decisions()
    flow.run(0.1)
    assert all(one.delay > 5 for one in decisions())
    time.sleep(3)
    flow.run(0.1)
    assert all(one.delay < 0.5 for one in decisions())


@pytest.mark.parametrize("family", ADDRESS, ids=lambda family: family.name)
@pytest.mark.parametrize("control", PERTS)
@pytest.mark.parametrize("how", ["alone", "joined", "lossy"])
def test_a_link_is_filled_and_its_queue_kept_short(
    way: Way, how: str, control: str, family: socket.AddressFamily
) -> None:
    """Over IPv4 and IPv6; by segments that go alone, or joined by TSO, or are lost, with SACK."""
    if how == "joined":
        way.joins_segments()
    way.takes(BASE_MS, "rate 20mbit" + (" loss 0.2%" if how == "lossy" else ""))
    flow = way.connect(control, family)
    flow.run(3)
    sent = flow.sent
    decisions()
    with way.longest() as longest:
        flow.run(5)
    seen = decisions()
    assert (flow.sent - sent) * 8 > 0.25 * 20e6 * 5
    assert sorted(one.delay for one in seen)[len(seen) // 2] < 20
    assert flow.cc_info()[0] == 1
    assert (longest[0] > ETHERNET_MTU) == (how == "joined")
    assert (flow.info(RETRANSMITTED) > 0) == (how == "lossy")


def test_pacing_holds(way: Way) -> None:
    """A sender that paces itself below the rate of the link makes no queue, and sees none."""
    way.takes(BASE_MS, "rate 20mbit")
    flow = way.connect("pert")
    flow.pace(PACED)
    flow.run(1)
    decisions()
    before = flow.received
    flow.push(5)
    assert 0.9 * PACED < (flow.received - before) * 8 / 5 < PACED
    flow.run(0)
    seen = decisions()
    assert max(one.delay for one in seen) < 1
    assert not any(one.respond for one in seen)


def test_compressed_acks(way: Way) -> None:
    """ACKs that come in bunches count with half the time from one to the next; the base holds."""
    on("receiver", "tc", "qdisc add dev far root netem limit 100000 slot 8ms 8ms")
    flow = way.connect("pert")
    flow.pace(PACED)  # or all data would come in such bunches, and none would wait
    flow.run(5)
    decisions()
    flow.run(5)
    seen = decisions()
    assert sum(one.delay for one in seen) / len(seen) == pytest.approx(4, rel=0.2)
    assert not any(one.respond for one in seen)
    on("receiver", "tc", "qdisc change dev far root netem limit 100000 slot 32ms 32ms")
    flow.run(5)
    assert any(one.respond for one in decisions())
    assert BASE_MS <= flow.cc_info()[3] / 1000 < BASE_MS + 1


def test_parameters_are_kept_within_their_limits(way: Way, module: Set) -> None:
    """Whatever is written is taken, and does no harm."""
    flows = [way.connect(control) for control in PERTS]
    for value in (0, 1, (1 << 32) - 1):
        module(**{file.name: value for file in (MODULE / "parameters").iterdir()
                  if file.read_text().strip() not in "YN"})  # fmt: skip
        for flow in flows:
            flow.run(0.3)
            assert flow.info(WINDOW) >= 2
    assert {one.window for one in decisions()}


def test_per_host_per_route_and_per_socket(way: Way) -> None:
    assert way.connect("pert_pi").control == "pert_pi"
    on("sender", "ip", "route add 10.9.0.2/32 dev near congctl pert")
    assert way.connect(None).control == "pert"
    on("sender", "ip", "route del 10.9.0.2/32")
    with way.hosts["sender"]:
        # not the first namespace: only for what is not restricted
        Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("pert_pi")
    assert way.connect(None).control == "pert_pi"


def test_switching_under_load(way: Way) -> None:
    """While packets are under way, and some of them lost."""
    way.takes(BASE_MS, "rate 20mbit loss 0.5%")
    flows = [way.connect("reno") for _ in range(4)]
    for name in ("pert", "cubic", "pert_pi", "pert", "vegas", "pert_pi", "reno") * 5:
        for flow in flows:
            flow.push(0.02)
            assert flow.info(UNACKED) > 0
            flow.control = name
            assert flow.control == name
    for flow in flows:
        flow.run(0.1)
        assert flow.received == flow.sent
    assert sum(flow.info(RETRANSMITTED) for flow in flows) > 0


def test_thousands_of_short_connections(way: Way) -> None:
    way.takes(1)
    data = bytes(20_000)
    with way.hosts["receiver"]:
        listener = socket.create_server((ADDRESS[socket.AF_INET], PORT), backlog=64)
    with listener:
        for number in range(3000):
            with way.hosts["sender"]:
                sender = socket.socket()
            with sender:
                name = PERTS[number % 2].encode()
                sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
                sender.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", number % 3 == 0, 0)
                )
                sender.connect((ADDRESS[socket.AF_INET], PORT))
                taken, _ = listener.accept()
                with taken:
                    sender.sendall(data)
                    assert len(taken.recv(len(data), socket.MSG_WAITALL)) == len(data)


def test_ss_shows_it(way: Way) -> None:
    flow = way.connect("pert")
    flow.run(0.3)
    with way.hosts["sender"]:
        shown = subprocess.run(["ss", "-tino"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"\bpert\b.*\bcwnd:\d+", shown), shown


def test_goes_when_no_socket_uses_it(way: Way) -> None:
    flow = way.connect("pert")
    flow.push(0.2)
    refused = subprocess.run(["rmmod", "tcp_pert"], capture_output=True, text=True)
    assert "in use" in refused.stderr
    flow.push(0.2)
    flow.control = "reno"
    flow.push(0.1)
    # KASAN takes whatever module is loaded next, to the same place, for an overrun.
    if "CONFIG_KASAN=y" not in gzip.decompress(Path("/proc/config.gz").read_bytes()).decode():
        EVENTS.write_text("0")
        subprocess.run(["rmmod", "tcp_pert"], check=True)
        assert not MODULE.exists()
        flow.run(0.2)
        flow.control = "pert"  # which loads it
    flow.run(0.2)
    assert flow.received == flow.sent
