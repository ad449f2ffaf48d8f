# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment is, as data: link, flows, queue, seed; and how its options are read."""

import random
import re
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Flow:
    """One TCP connection: its base RTT in us, and its start in seconds after the first one's."""

    index: int
    rtt_us: int
    cc: str  # congestion control
    start_s: float

    @property
    def port(self) -> int:
        """The sender's TCP port: how the flow is found among a host's sockets."""
        return FIRST_PORT + self.index


@dataclass(frozen=True)
class Scenario:
    """Everything that decides an experiment's outcome, apart from kernel and modules."""

    qdisc: str  # tc's words, verbatim
    rate_bps: int
    rtts_us: tuple[int, ...]  # base RTT of each flow
    mtu: int  # bytes of an IP packet
    ipv6: bool
    initcwnd: int | None  # packets; None: the kernel's
    window: int | None  # packets a flow may have in flight; None: no clamp
    duration_s: float  # from the first flow's start
    warmup_s: float  # not measured
    cc: tuple[str, ...]  # congestion controls, dealt round
    ecn: bool
    loss: float  # 0..1, on the receivers' access links
    start_spread_s: float  # starts are drawn uniformly from this long a time
    traffic: str
    seed: int
    label: str = "none"  # where FIFA's labels come from
    rtt_error: float = 0.0  # 0..1, by which they are falsified at most

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

    def flow_list(self) -> list[Flow]:
        """The flows, their starts drawn from the seed and counted from the first of them."""
        draw = random.Random(self.seed)
        starts = [draw.uniform(0, self.start_spread_s) for _ in self.rtts_us]
        first = min(starts)
        return [
            Flow(index, rtt_us, self.cc[index % len(self.cc)], start - first)
            for index, (rtt_us, start) in enumerate(zip(self.rtts_us, starts, strict=True))
        ]


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
    return _within(_number(text, TIME_UNITS, "100 or 500ms"), 0, 1e5, text, "0 to 100000 s")


def parse_share(text: str) -> float:
    """0..0.5 of '1%'; without the sign the number is a share too: '0.01'."""
    percent = text.strip().endswith("%")
    share = _number(text.strip().removesuffix("%"), {"": 1.0}, "1%") / (100 if percent else 1)
    return _within(share, 0, 0.5, text, "0% to 50%")


def _rtt_us(text: str) -> int:
    seconds = _number(text, {k: v for k, v in TIME_UNITS.items() if k}, "80ms")
    return round(US_PER_S * _within(seconds, MIN_RTT, MAX_RTT, text, "1ms to 10s"))


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
    ends = tuple(_rtt_us(part) for part in text.split(":"))
    if len(ends) != 2 or ends[0] > ends[1]:
        raise ValueError(f"{text!r} is not of the form 24ms:176ms, shortest first")
    return RttPlan(ends, spread=True)


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
