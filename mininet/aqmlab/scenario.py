# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment is, as data: links, flows, queues, seed; and how its options are read."""

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from .losses import Loss, Markov, Sine, State, Steps

HEADER_BYTES = 14  # of Ethernet: what the shaper counts on top of an IP packet
TCP_IP_HEADERS = {False: 40, True: 60}  # bytes, by --ipv6
TIMESTAMP_OPTION = 12  # bytes of every TCP segment, timestamps being on
FIRST_PORT = 20000  # of flow 0's sender; flow i has FIRST_PORT + i
US_PER_S = 1_000_000
NS_PER_S = 1_000_000_000

RATE_UNITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}  # bits/s
TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0}  # seconds

MIN_RATE, MAX_RATE = 100_000, 10_000_000_000  # bits/s
MIN_RTT, MAX_RTT = 0.001, 10.0  # seconds
MIN_MTU = {False: 100, True: 1280}  # bytes, by --ipv6: Linux's smallest segment; RFC 8200
MAX_MTU = 9000  # bytes
MAX_FLOWS = 2000
MAX_LINKS = 25  # routers have letters
MAX_DELAY = 5.0  # seconds, one way
MAX_LOSS = 0.5  # share
MIN_LOSS_PERIOD, MIN_LOSS_STAY = 0.1, 0.001  # seconds: of a sine, in a state
MAX_TIME = 1e5  # seconds
PARETO_SHAPE = 1.2  # of web pages' sizes
MIN_SHAPE, MAX_SHAPE = 1.01, 100.0  # Pareto's: the mean must be finite
MAX_SHORT = 200_000  # short flows in a run


@dataclass(frozen=True)
class Link:
    """A bottleneck between two routers."""

    rate_bps: int
    qdisc: str  # tc's words, verbatim
    loss: Loss = 0.0  # behind the queue


def path(entry: int, leave: int) -> str:
    """The way from router ENTRY to router LEAVE, by their letters: 0 is A, so 'AD'."""
    return chr(ord("A") + entry) + chr(ord("A") + leave)


@dataclass(frozen=True)
class Queue:
    """What waits at router NEAR for the link to its neighbour FAR."""

    link: Link
    near: int
    far: int


@dataclass(frozen=True)
class Flow:
    """One TCP connection: its base RTT in us, and its start in seconds after the first one's."""

    index: int
    entry: int  # router at which its data come in
    leave: int  # router at which they go out
    rtt_us: int
    cc: str  # congestion control
    start_s: float
    stop_s: float | None  # None: it stays

    @property
    def port(self) -> int:
        """The sender's TCP port: how the flow is found among a host's sockets."""
        return FIRST_PORT + self.index

    @property
    def path(self) -> str:
        """Its way by the routers' letters."""
        return path(self.entry, self.leave)

    def crosses(self, queue: Queue) -> bool:
        """Whether its data or their ACKs wait in QUEUE."""
        first, last = sorted((self.entry, self.leave))
        return first <= min(queue.near, queue.far) < last


@dataclass(frozen=True)
class Groups:
    """Flows that come, and perhaps leave, a group at a time: the first come, the first to leave."""

    size: int  # of the long flows and of each link's cross flows, so many make up a group
    join_s: float  # time between one group and the next
    leave_s: float | None  # when the first group leaves; None: all stay


@dataclass(frozen=True)
class Web:
    """Sessions that ask for one page after the other, as in ns-2's examples."""

    sessions: int  # each on the path, and from the host, of a flow
    think_s: float  # mean, exponential: from the end of a page to the next request
    page_packets: int  # mean, Pareto
    window: int | None = None  # packets a session may have in flight; None: no clamp
    shape: float = PARETO_SHAPE

    def draw_packets(self, draw: random.Random) -> int:
        """A page's size, at least 1: Pareto's second distribution, as in ns-2's WebTraf."""
        scale = self.page_packets * (self.shape - 1)
        return max(1, round(scale * (math.pow(1 - draw.random(), -1 / self.shape) - 1)))


@dataclass(frozen=True)
class Session:
    """One of the sessions: what flow it is like, and when its first request is made."""

    index: int
    like: Flow
    start_s: float


def draw_time(draw: random.Random, mean: float, shape: float | None) -> float:
    """Exponential, or with a SHAPE Pareto of the first kind: never less than a part of the mean."""
    if shape is None:
        return draw.expovariate(1 / mean)
    return mean * (shape - 1) / shape * draw.paretovariate(shape)


@dataclass(frozen=True)
class Length:
    """What a short flow sends: packets, or whatever goes in a time."""

    low: float  # of a uniform distribution; of Pareto's, the mean
    high: float
    shape: float | None  # of Pareto's; None: uniform
    timed: bool  # seconds, or packets

    def draw(self, draw: random.Random) -> float:
        """One flow's: seconds, or whole packets, at least 1."""
        if self.shape is None:
            length = draw.uniform(self.low, self.high)
        else:
            length = draw_time(draw, self.low, self.shape)
        return length if self.timed else max(1, round(length))


@dataclass(frozen=True)
class Short:
    """Flows that come by themselves, send so much or so long, and go."""

    per_s: float  # mean arrivals
    gap_shape: float | None  # Pareto of the times between them; None: a Poisson process
    length: Length
    from_s: float
    until_s: float
    reverse: bool  # the other way


@dataclass(frozen=True)
class ShortFlow:
    """One of them: what flow it is like, when it comes, and what it sends: one of the two."""

    index: int
    like: Flow
    start_s: float
    packets: int | None
    seconds: float | None


@dataclass(frozen=True)
class Udp:
    """Flows that do not respond: of a constant rate, or on and off for random times."""

    flows: int  # each on the path of a flow
    rate_bps: int  # of one that is on, as the shaper counts
    on_s: float | None  # mean; None: always
    off_s: float | None
    from_s: float
    until_s: float
    shape: float | None = None  # Pareto of these times; None: exponential


@dataclass(frozen=True)
class Stream:
    """One UDP flow: where to, and the seconds between which it sends."""

    index: int
    entry: int
    leave: int
    periods: tuple[tuple[float, float], ...]

    @property
    def path(self) -> str:
        """Its way by the routers' letters."""
        return path(self.entry, self.leave)


@dataclass(frozen=True)
class Scenario:
    """Everything that decides an experiment's outcome, apart from kernel and modules.

    Links join routers A, B, C... in a chain. A dumbbell is a chain of one link.
    """

    links: tuple[Link, ...]
    long: int  # flows over all links
    cross: int  # further flows over each link
    rtts_us: tuple[int, ...]  # base RTT of each flow: the long ones, then link by link
    mtu: int  # bytes of an IP packet
    ipv6: bool
    initcwnd: int | None  # packets; None: the kernel's
    window: int | None  # packets a flow may have in flight; None: no clamp
    duration_s: float  # from the first flow's start
    warmup_s: float  # not measured
    cc: tuple[str, ...]  # congestion controls, dealt round
    ecn: bool
    start_spread_s: float  # starts are drawn uniformly from this long a time
    traffic: str
    seed: int
    label: str = "none"  # where FIFA's labels come from
    rtt_error: float = 0.0  # 0..1, by which they are falsified at most
    reverse: int = 0  # flows the other way, each on the path of a flow
    quickack: bool = False  # each packet is acknowledged, not every other one
    groups: Groups | None = None
    web: Web | None = None
    udp: Udp | None = None
    short: Short | None = None
    observe_us: int | None = None  # the first flow is watched, so far from the queue, one way

    @property
    def frame_bytes(self) -> int:
        """A full packet as the shaper and the queue count it."""
        return self.mtu + HEADER_BYTES

    @property
    def max_segment(self) -> int:
        """Payload bytes of a full packet without TCP options."""
        return self.mtu - TCP_IP_HEADERS[self.ipv6]

    @property
    def full_segment(self) -> int:
        """Payload bytes of a full packet as it is sent, with timestamps."""
        return self.max_segment - TIMESTAMP_OPTION

    @property
    def queues(self) -> list[Queue]:
        """The queues under test, a link each; then, where flows go both ways, those back."""
        there = [Queue(link, near, near + 1) for near, link in enumerate(self.links)]
        back = [Queue(queue.link, queue.far, queue.near) for queue in there]
        return there + back if self.two_way else there

    @property
    def two_way(self) -> bool:
        """Whether data go both ways."""
        return bool(self.reverse or (self.short and self.short.reverse))

    def flow_list(self) -> list[Flow]:
        """The flows, then those the other way; starts are drawn, and count from the first."""
        ends = len(self.links)
        ways = [(0, ends, place) for place in range(self.long)]
        ways += [(near, near + 1, place) for near in range(ends) for place in range(self.cross)]
        plans = list(zip(ways, self.rtts_us, strict=True))
        dealt = (plans[index % len(plans)] for index in range(self.reverse))
        plans += [((leave, entry, place), rtt_us) for (entry, leave, place), rtt_us in dealt]
        draw = random.Random(self.seed)
        starts = [draw.uniform(0, self.start_spread_s) for _ in plans]
        first = min(starts)
        return [
            Flow(
                index,
                entry,
                leave,
                rtt_us,
                self.cc[index % len(self.cc)],
                self._joins_s(place) + start - first,
                self._leaves_s(place),
            )
            for index, (((entry, leave, place), rtt_us), start) in enumerate(
                zip(plans, starts, strict=True)
            )
        ]

    def _joins_s(self, place: int) -> float:
        """When the group comes of the flow at PLACE among those of its path."""
        return self.groups.join_s * (place // self.groups.size) if self.groups else 0.0

    def _leaves_s(self, place: int) -> float | None:
        if not self.groups or self.groups.leave_s is None:
            return None
        return self.groups.leave_s + self._joins_s(place)

    @property
    def stage_times_s(self) -> list[float]:
        """The beginning, when groups come or leave, and the end; nothing if there are none."""
        if not self.groups:
            return []
        places = range(max(self.long, self.cross))
        times = {self._joins_s(place) for place in places}
        times |= {leaves for place in places if (leaves := self._leaves_s(place)) is not None}
        return sorted(time_s for time_s in times if time_s < self.duration_s) + [self.duration_s]

    def session_list(self) -> list[Session]:
        """The web's sessions, dealt round the paths of the flows; starts are a Poisson process."""
        if not self.web:
            return []
        draw = random.Random(f"web {self.seed}")
        flows = self.flow_list()[: len(self.rtts_us)]
        return [
            Session(index, flows[index % len(flows)], draw.uniform(0, self.start_spread_s))
            for index in range(self.web.sessions)
        ]

    def _short_likes(self) -> list[Flow]:
        """The flows whose paths short flows take."""
        flows = self.flow_list()[: len(self.rtts_us)]
        if not self.short or not self.short.reverse:
            return flows
        return [replace(flow, entry=flow.leave, leave=flow.entry) for flow in flows]

    def end_to_end(self) -> list[Flow]:
        """Flows from and to every host that there must be."""
        return self.flow_list() + (self._short_likes() if self.short else [])

    def short_list(self) -> list[ShortFlow]:
        """The short flows, dealt round the paths of the flows, or back."""
        if not self.short:
            return []
        likes = self._short_likes()
        draw = random.Random(f"short {self.seed}")
        found: list[ShortFlow] = []
        now = self.short.from_s
        while True:
            now += draw_time(draw, 1 / self.short.per_s, self.short.gap_shape)
            if now >= self.short.until_s:
                return found
            length = self.short.length.draw(draw)
            what = (None, length) if self.short.length.timed else (int(length), None)
            found.append(ShortFlow(len(found), likes[len(found) % len(likes)], now, *what))

    def stream_list(self) -> list[Stream]:
        """The UDP flows, dealt round the paths of the flows."""
        if not self.udp:
            return []
        flows = self.flow_list()[: len(self.rtts_us)]
        return [
            Stream(index, flow.entry, flow.leave, self._periods(index, self.udp))
            for index in range(self.udp.flows)
            for flow in (flows[index % len(flows)],)
        ]

    def _periods(self, index: int, udp: Udp) -> tuple[tuple[float, float], ...]:
        """When UDP flow INDEX sends: not in step with the others."""
        draw = random.Random(f"udp {self.seed} {index}")
        if udp.on_s is None or udp.off_s is None:
            packet_s = 8 * self.frame_bytes / udp.rate_bps
            return ((udp.from_s + draw.uniform(0, packet_s), udp.until_s),)
        periods = []
        now = udp.from_s
        if draw.random() < udp.off_s / (udp.on_s + udp.off_s):
            now += draw_time(draw, udp.off_s, udp.shape)
        while now < udp.until_s:
            off = now + draw_time(draw, udp.on_s, udp.shape)
            periods.append((now, min(off, udp.until_s)))
            now = off + draw_time(draw, udp.off_s, udp.shape)
        return tuple(periods)


def _number(text: str, units: dict[str, float], example: str) -> float:
    """TEXT as a number times its unit; ValueError says what is expected."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", text.strip().lower())
    if not found or found[2] not in units:
        raise ValueError(f"{text!r} is not of the form {example}")
    return float(found[1]) * units[found[2]]


def _within(value: float, low: float, high: float, text: str, limits: str) -> float:
    if not low <= value <= high:
        raise ValueError(f"{text!r} is not within {limits}")
    return value


def parse_rate(text: str) -> int:
    """Bits/s of '64mbit'."""
    rate = _number(text, RATE_UNITS, "64mbit")
    return round(_within(rate, MIN_RATE, MAX_RATE, text, "100kbit to 10gbit"))


def parse_seconds(text: str) -> float:
    """Seconds of '100', '100s' or '500ms', 0 to 100000."""
    return _within(_number(text, TIME_UNITS, "100 or 500ms"), 0, MAX_TIME, text, "0 to 100000 s")


def parse_share(text: str) -> float:
    """0..0.5 of '1%'; without the sign the number is a share too: '0.01'."""
    percent = text.strip().endswith("%")
    share = _number(text.strip().removesuffix("%"), {"": 1.0}, "1%") / (100 if percent else 1)
    return _within(share, 0, MAX_LOSS, text, "0% to 50%")


def _sine(text: str) -> Sine:
    parts = text.split(",")
    if len(parts) not in (3, 5):
        raise ValueError(f"{text!r} is not of the form MEAN,AMPLITUDE,PERIOD[,FROM,UNTIL]")
    mean, amplitude = map(parse_share, parts[:2])
    period, begin, end = map(parse_seconds, (parts + ["0", f"{MAX_TIME:.0f}"])[2:5])
    if amplitude > mean or mean + amplitude > MAX_LOSS:
        raise ValueError(f"{text!r} is not within 0% to 50% all the time")
    if period < MIN_LOSS_PERIOD:
        raise ValueError(f"{parts[2]!r} is a period of less than 100ms")
    if begin >= end:
        raise ValueError(f"{text!r} ends before it begins")
    return Sine(mean, amplitude, period, begin, end)


def _steps(text: str) -> Steps:
    pairs = [step.partition("=") for step in text.split(",")]
    steps = tuple((parse_seconds(when), parse_share(share)) for when, _, share in pairs)
    times = [when for when, _ in steps]
    if times != sorted(set(times)):
        raise ValueError(f"the times of {text!r} do not increase")
    return Steps(steps)


def _state(text: str, states: int) -> State:
    share, stay, *rest = text.split("/") + [""]
    following = tuple(_number(part, {"": 1.0}, "0.7") for part in rest[:-1])
    if len(following) != states or not math.isclose(sum(following), 1, abs_tol=1e-6):
        raise ValueError(
            f"{text!r}: each of {states} states needs {states} probabilities, in all 1"
        )
    stay_s = parse_seconds(stay)
    if stay_s < MIN_LOSS_STAY:
        raise ValueError(f"{stay!r} is less than 1ms")
    return State(parse_share(share), stay_s, following)


def _markov(text: str) -> Markov:
    states = text.split(",")
    return Markov(tuple(_state(state, len(states)) for state in states))


LOSS_FORMS: dict[str, Callable[[str], Loss]] = {"sin": _sine, "step": _steps, "markov": _markov}


def parse_shape(text: str) -> float:
    """A shape of Pareto's distribution: '1.35'."""
    return _within(_number(text, {"": 1.0}, "1.35"), MIN_SHAPE, MAX_SHAPE, text, "1.01 to 100")


def parse_positive(text: str) -> float:
    """A number such as '30', 0.01 to 10000."""
    return _within(_number(text, {"": 1.0}, "30"), 0.01, 10_000, text, "0.01 to 10000")


def parse_length(text: str) -> Length:
    """'12' packets each, '5:50' evenly; '1s:2s' of time; 'pareto:12,1.35', 'pareto:1.5s,1.35'."""
    kind, colon, rest = text.partition(":")
    pareto = colon and kind == "pareto"
    first, _, second = rest.partition(",") if pareto else (kind, "", rest or kind)
    timed = first.endswith("s")
    read = _short_seconds if timed else _short_packets
    if pareto:
        return Length(read(first), read(first), parse_shape(second), timed)
    low, high = read(first), read(second)
    if low > high:
        raise ValueError(f"{text!r} is not of the form 5:50 or 1s:2s, shortest first")
    return Length(low, high, None, timed)


def _short_seconds(text: str) -> float:
    units = {unit: factor for unit, factor in TIME_UNITS.items() if unit}
    return _within(_number(text, units, "1.5s"), 0.01, 1e4, text, "10ms to 10000s")


def _short_packets(text: str) -> float:
    return _within(_number(text, {"": 1.0}, "12"), 1, 1e6, text, "1 to 1000000 packets")


def parse_loss(text: str) -> Loss:
    """'1%', 'sin:3%,2%,5s,10s,20s', 'step:0=1%,50=2%' or 'markov:0/50ms/0.9/0.1,20%/25ms/1/0'."""
    form, colon, rest = text.strip().partition(":")
    if not colon:
        return parse_share(text)
    if form not in LOSS_FORMS:
        raise ValueError(f"{text!r} is not of the form 1%, sin:..., step:... or markov:...")
    return LOSS_FORMS[form](rest)


def parse_losses(text: str) -> tuple[Loss, ...]:
    """One a link: '0,0,1%'; with ';' between them if a form has commas of its own."""
    return parse_list(parse_loss, ";" if ":" in text else ",")(text)


def _time_us(text: str, low: float, high: float, limits: str) -> int:
    seconds = _number(text, {k: v for k, v in TIME_UNITS.items() if k}, "80ms")
    return round(US_PER_S * _within(seconds, low, high, text, limits))


def _rtt_us(text: str) -> int:
    return _time_us(text, MIN_RTT, MAX_RTT, "1ms to 10s")


def parse_delay(text: str) -> int:
    """Microseconds of '5ms', one way, 0 to 5 s."""
    return _time_us(text, 0, MAX_DELAY, "0ms to 5s")


def _range(text: str, read: Callable[[str], int], example: str) -> tuple[int, int]:
    """The ends of EXAMPLE: '24ms:176ms'."""
    ends = tuple(read(part) for part in text.split(":"))
    if len(ends) != 2 or ends[0] > ends[1]:
        raise ValueError(f"{text!r} is not of the form {example}, shortest first")
    return ends[0], ends[1]


def parse_delays(text: str) -> tuple[int, int]:
    """The least and the most, in us, of '5ms:10ms'; of '5ms' they are the same."""
    return _range(text if ":" in text else f"{text}:{text}", parse_delay, "5ms:10ms")


Value = TypeVar("Value")


def parse_list(
    read: Callable[[str], Value], separator: str = ","
) -> Callable[[str], tuple[Value, ...]]:
    """A parser of lists of what READ reads."""
    return lambda text: tuple(read(part) for part in text.split(separator))


@dataclass(frozen=True)
class RttPlan:
    """How base RTTs are given to flows: `values` dealt round, or spread evenly over a range."""

    values: tuple[int, ...]  # us
    spread: bool

    def deal(self, flows: int) -> tuple[int, ...]:
        """The base RTT of each flow, in us."""
        if not self.spread:
            return tuple(self.values[i % len(self.values)] for i in range(flows))
        low, high = self.values
        steps = max(flows - 1, 1)
        return tuple(low + round((high - low) * i / steps) for i in range(flows))


def parse_rtt(text: str) -> RttPlan:
    """'80ms' for all, '24ms:176ms' spread evenly, '25ms,105ms' dealt round."""
    if ":" not in text:
        return RttPlan(tuple(_rtt_us(part) for part in text.split(",")), spread=False)
    return RttPlan(_range(text, _rtt_us, "24ms:176ms"), spread=True)


def parse_names(text: str) -> tuple[str, ...]:
    """The names of 'reno,cubic'."""
    names = tuple(text.split(","))
    if not all(re.fullmatch(r"\w+", name) for name in names):
        raise ValueError(f"{text!r} is not of the form reno or reno,cubic")
    return names


def parse_qdisc(text: str) -> str:
    """tc's words for a qdisc on one line, with single blanks."""
    words = text.split()
    if not words or "\n" in text:
        raise ValueError("a qdisc and its options as tc takes them: 'rem target 20'")
    return " ".join(words)
