# SPDX-License-Identifier: GPL-2.0-or-later
"""The qdiscs under test: their options, what they take and refuse, and how tc shows it.

The numbers are those of include/uapi/linux/pkt_sched_*.h.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from netlink import TCA_OPTIONS, attribute, nest

US, MS, S = 1_000, 1_000_000, 1_000_000_000  # ns
KBIT, MBIT, GBIT = 125, 125_000, 125_000_000  # bytes/s
CERTAIN = 1 << 32  # probability
NO_DSCP = 0xFF


def real(value: float) -> int:
    """A real option as it travels."""
    return round(value * (1 << 48))


@dataclass(frozen=True)
class Option:
    """An option: its key in JSON, its netlink attribute and how many bytes that holds."""

    name: str
    attribute: int
    width: int


Settings = Mapping[Option, int]

LIMIT = Option("limit", 2, 4)
TARGET = Option("target", 3, 4)
ECN = Option("ecn", 4, 1)
BYTEMODE = Option("bytemode", 5, 1)
AVPKT = Option("avpkt", 6, 4)
PROTECT = Option("protect", 7, 1)
BANDWIDTH = Option("bandwidth", 8, 8)

INTERVAL = Option("interval", 32, 8)
ALPHA = Option("alpha", 33, 8)
GAMMA = Option("gamma", 34, 8)
PHI = Option("phi", 35, 8)
MEASURE = Option("measure", 36, 1)
AUTO, BACKLOG, QUEUE, RATE = range(4)  # of MEASURE

BETA = Option("beta", 32, 8)
PERIOD = Option("period", 33, 8)
PERIODS = Option("periods", 34, 4)
WEIGHT = Option("weight", 35, 8)

BASE = Option("base", 48, 1)
RED_BASE, PI_BASE, REM_BASE = range(3)  # of BASE
SCALE = Option("scale", 49, 1)
ROBUST = Option("exponent-robust", 50, 8)
FRAGILE = Option("exponent-fragile", 51, 8)
RTT_MIN = Option("rtt-min", 52, 8)
RTT_MAX = Option("rtt-max", 53, 8)
RTT_WEIGHT = Option("rtt-weight", 54, 8)
MIN = Option("min", 55, 4)
MAX = Option("max", 56, 4)
PROBABILITY = Option("probability", 57, 8)
QWEIGHT = Option("qweight", 58, 8)
GENTLE = Option("gentle", 59, 1)
COUNT = Option("count", 60, 1)
WAIT, CLASSIC = range(2)  # of COUNT
A = Option("a", 61, 8)
B = Option("b", 62, 8)
SAMPLING = Option("sampling", 63, 4)

CONTROL = Option("control", 32, 1)
ONOFF, PI_T, PI_TB = range(3)  # of CONTROL
CONTROL_PERIOD = Option("control-period", 33, 8)
MEASURE_PERIOD = Option("measure-period", 34, 8)
DELTA = Option("delta", 35, 8)
XQM_PHI = Option("phi", 36, 8)
FLOW = Option("flow", 37, 1)
FIVE_TUPLE, SRC_DST, RTT_CLASS = range(3)  # of FLOW
FLOWS = Option("flows", 38, 4)
SHORT = Option("short", 39, 4)
SHORT_SHARE = Option("short-share", 40, 8)
RTT = Option("rtt", 41, 1)
RTT_AUTO, RTT_LABEL, RTT_GIVEN = range(3)  # of RTT
RTT_TIME = Option("rtt time", 42, 8)
SHARE = Option("share", 43, 8)
HIDE = Option("hide", 44, 1)
HIDE_OFF, HIDE_ONOFF, HIDE_SMOOTH = range(3)  # of HIDE
HIDE_BY = Option("hide-by", 45, 1)
BY_DSCP, BY_COPY = range(2)  # of HIDE_BY
HIDE_DSCP = Option("hide-dscp", 46, 1)
WEIGHTS = Option("weights", 47, 32)


def weights(*values: int) -> int:
    """XQM's weights as they travel: 16 numbers of two bytes, the last ones 1."""
    every = (*values, *(1 for _ in range(16 - len(values))))
    return int.from_bytes(b"".join(value.to_bytes(2, "little") for value in every), "little")


class Stat(IntEnum):
    """Netlink attributes of the statistics that all kinds have."""

    PROB = 2
    DELAY = 3
    PKTS_IN = 4
    OVERLIMIT = 5
    DROPPED = 6
    MAXQ = 7
    ECN_MARK = 8
    PROTECTED = 9
    QUEUE = 10


PRICE, CAPACITY = 32, 33  # rem's own
LOSS_RATIO, ARRIVALS = 32, 33  # lred's own


class FifaStat(IntEnum):
    """fifa's own."""

    PROB_SCALED = 32
    RTT_AVG = 33
    RTT_FORMULA = 34
    LABELLED = 35
    UNLABELLED = 36
    ROBUST = 37
    FRAGILE = 38
    RED_AVG = 39
    REM_PRICE = 40


class XqmStat(IntEnum):
    """xqm's own."""

    FLOWS = 32
    SHARE = 33
    CAPACITY = 34
    RTT_AVG = 35
    IMPOSED = 36
    HIDDEN = 37
    EXEMPT = 38
    EVICTED = 39
    NOT_SHOWN = 40


class XqmFlow(IntEnum):
    """Of a class, which is a flow."""

    SHARE = 41
    THROUGHPUT = 42
    RTT = 43
    QUIESCENT = 44
    IMPOSED = 45
    EXOGENOUS = 46
    HIDDEN = 47
    WEIGHT = 48


def encode(settings: Settings) -> bytes:
    """Settings as the options of a netlink request."""
    return nest(
        TCA_OPTIONS,
        *(
            attribute(option.attribute, value.to_bytes(option.width, "little"))
            for option, value in settings.items()
        ),
    )


@dataclass(frozen=True)
class Echo:
    """What the user types, and what tc shows then: in human form, and what changed in JSON."""

    typed: str
    human: str
    json: Mapping[str, object]


@dataclass(frozen=True)
class Refusal:
    """Settings that the kernel refuses, each with this sentence."""

    sentence: str
    settings: tuple[Settings, ...]


@dataclass(frozen=True)
class Kind:
    """A qdisc."""

    name: str
    defaults: Mapping[str, object]
    """As JSON shows them."""
    other: Settings
    """A value for each option that is not its default."""
    another: Settings
    """Once more; and any mixture of the two is valid."""
    taken: tuple[Settings, ...]
    """The ends of all ranges."""
    refused: tuple[Refusal, ...]
    mistyped: Mapping[str, str]
    """What a user may get wrong, and what tc says."""
    echoes: tuple[Echo, ...]
    certain: Settings
    """With these, a standing queue makes the law signal every packet, soon."""
    never: Settings
    """With these, the law signals no packet within seconds."""
    lesson: Settings | None = None
    """If nothing is signalled before something was lost: with these, a loss counts in 1.5 ms."""
    typed: str = ""
    """What must be typed to make one."""
    given: Settings = field(default_factory=dict)
    """The same, as it travels."""

    def __str__(self) -> str:
        return f"{self.name} {self.typed}".rstrip()


SHARED_REFUSED = (
    Refusal(
        "limit must be 2 to 1048576 packets",
        ({LIMIT: 0}, {LIMIT: 1}, {LIMIT: 1048577}, {LIMIT: 0xFFFFFFFF}),
    ),
    Refusal(
        "target must be at least 1 packet and below limit",
        ({TARGET: 0}, {LIMIT: 1048576, TARGET: 1048577}, {TARGET: 0xFFFFFFFF}),
    ),
    Refusal(
        "target must be below limit",
        ({LIMIT: 20, TARGET: 20}, {LIMIT: 2, TARGET: 2}, {LIMIT: 1048576, TARGET: 1048576}),
    ),
    Refusal("ecn must be 0 or 1", ({ECN: 2}, {ECN: 255})),
    Refusal("bytemode must be 0 or 1", ({BYTEMODE: 2, AVPKT: 1000}, {BYTEMODE: 255, AVPKT: 1000})),
    Refusal("bytemode needs avpkt, 64 to 65535 bytes", ({BYTEMODE: 1}, {BYTEMODE: 1, AVPKT: 0})),
    Refusal(
        "avpkt must be 64 to 65535 bytes, or 0 to measure",
        ({AVPKT: 1}, {AVPKT: 63}, {AVPKT: 65536}, {AVPKT: 0xFFFFFFFF}),
    ),
    Refusal(
        "protect must be a DSCP, 0 to 63, or none",
        ({PROTECT: 64}, {PROTECT: 254}),
    ),
    Refusal(
        "bandwidth must be 8kbit to 1tbit, or 0 if unknown",
        ({BANDWIDTH: 1}, {BANDWIDTH: 999}, {BANDWIDTH: 1000 * GBIT + 1}, {BANDWIDTH: 2**64 - 1}),
    ),
)

SHARED_TAKEN: tuple[Settings, ...] = (
    {},
    {LIMIT: 2, TARGET: 1},
    {LIMIT: 1048576, TARGET: 1048575},
    {ECN: 1},
    {AVPKT: 64},
    {AVPKT: 65535},
    {AVPKT: 65535, BYTEMODE: 1},
    {PROTECT: 0},
    {PROTECT: 63},
    {BANDWIDTH: 1000},
    {BANDWIDTH: 1000 * GBIT},
)

SHARED_MISTYPED = {
    "limit": 'Command line is not complete. Try option "help"',
    "limit x": 'Error: "limit" takes a whole number of packets, not "x".',
    "limit -1": 'Error: "limit" takes a whole number of packets, not "-1".',
    "limit 4294967296": 'Error: "limit" takes a whole number of packets, not "4294967296".',
    "limit 100p": 'Error: "limit" takes a whole number of packets, not "100p".',
    "limit 100 limit 100": 'Error: duplicate "limit": "100" is the second value.',
    "target 1.5": 'Error: "target" takes a whole number of packets, not "1.5".',
    "avpkt huge": 'Error: "avpkt" takes a size in bytes, not "huge".',
    "avpkt -1": 'Error: "avpkt" takes a size in bytes, not "-1".',
    "avpkt 4gb": 'Error: "avpkt" takes a size in bytes, not "4gb".',
    "protect 64": 'Error: "protect" takes a code point from 0 to 63, or none, not "64".',
    "protect ef": 'Error: "protect" takes a code point from 0 to 63, or none, not "ef".',
    "ecn noecn": 'Error: duplicate "ecn": "noecn" is the second value.',
    "bytemode bytemode": 'Error: duplicate "bytemode": "bytemode" is the second value.',
    "nolimit": 'What is "nolimit"?',
    "speed 3": 'What is "speed"?',
}

BANDWIDTH_MISTYPED = {
    "bandwidth fast": 'Error: "bandwidth" takes a rate such as 64mbit, not "fast".',
    "bandwidth -1mbit": 'Error: "bandwidth" takes a rate such as 64mbit, not "-1mbit".',
    "bandwidth 7bit": 'Error: "bandwidth" takes a rate such as 64mbit, not "7bit".',
    "bandwidth 1e30": 'Error: "bandwidth" takes a rate such as 64mbit, not "1e30".',
}

SHARED_OTHER: Settings = {
    LIMIT: 200,
    TARGET: 30,
    ECN: 1,
    AVPKT: 500,
    BYTEMODE: 1,
    PROTECT: 46,
    BANDWIDTH: 64 * MBIT,
}
SHARED_ANOTHER: Settings = {
    LIMIT: 150,
    TARGET: 25,
    ECN: 0,
    AVPKT: 600,
    BYTEMODE: 0,
    PROTECT: NO_DSCP,
    BANDWIDTH: 32 * MBIT,
}

REM = Kind(
    name="rem",
    defaults={
        "limit": 120,
        "target": 20,
        "interval": 2 * MS,
        "alpha": 0.1,
        "gamma": 0.001,
        "phi": 1.001,
        "measure": "queue",
        "bandwidth": 0,
        "avpkt": 0,
        "bytemode": False,
        "ecn": False,
        "protect": None,
    },
    other={
        **SHARED_OTHER,
        INTERVAL: 3 * MS,
        ALPHA: real(0.2),
        GAMMA: real(0.002),
        PHI: real(1.002),
        MEASURE: RATE,
    },
    another={
        **SHARED_ANOTHER,
        INTERVAL: 4 * MS,
        ALPHA: real(0.3),
        GAMMA: real(0.003),
        PHI: real(1.003),
        MEASURE: BACKLOG,
    },
    taken=(
        *SHARED_TAKEN,
        {INTERVAL: 10 * US},
        {INTERVAL: 10 * S},
        {ALPHA: real(0.000001)},
        {ALPHA: real(1) - 1},
        {GAMMA: real(0.000001)},
        {GAMMA: real(1)},
        {PHI: real(1.00001)},
        {PHI: real(1000)},
        {MEASURE: QUEUE},
        {MEASURE: BACKLOG, BANDWIDTH: 1000},
        {MEASURE: RATE, BANDWIDTH: 1000},
        {MEASURE: RATE, BANDWIDTH: 1000 * GBIT, BYTEMODE: 1, AVPKT: 64, INTERVAL: 10 * S},
    ),
    refused=(
        *SHARED_REFUSED,
        Refusal(
            "interval must be 10us to 10s",
            ({INTERVAL: 0}, {INTERVAL: 10 * US - 1}, {INTERVAL: 10 * S + 1}, {INTERVAL: 2**64 - 1}),
        ),
        Refusal(
            "alpha must be at least 0.000001 and below 1",
            ({ALPHA: 0}, {ALPHA: real(0.0000009)}, {ALPHA: real(1)}, {ALPHA: 2**64 - 1}),
        ),
        Refusal(
            "gamma must be 0.000001 to 1",
            ({GAMMA: 0}, {GAMMA: real(0.0000009)}, {GAMMA: real(1) + 1}, {GAMMA: 2**64 - 1}),
        ),
        Refusal(
            "phi must exceed 1: 1.00001 to 1000",
            (
                {PHI: 0},
                {PHI: real(1)},
                {PHI: real(1.000009)},
                {PHI: real(1000) + 1},
                {PHI: 2**64 - 1},
            ),
        ),
        Refusal("measure must be auto, backlog, queue or rate", ({MEASURE: 4}, {MEASURE: 255})),
        Refusal(
            "measure backlog and measure rate need bandwidth",
            ({MEASURE: BACKLOG}, {MEASURE: RATE}, {MEASURE: RATE, BANDWIDTH: 0}),
        ),
    ),
    mistyped={
        **SHARED_MISTYPED,
        **BANDWIDTH_MISTYPED,
        "limit 1": "Error: sch_rem: limit must be 2 to 1048576 packets.",
        "measure rate": "Error: sch_rem: measure backlog and measure rate need bandwidth.",
        "interval 2q": 'Error: "interval" takes a time such as 2ms, not "2q".',
        "interval -2ms": 'Error: "interval" takes a time such as 2ms, not "-2ms".',
        "interval 1e30s": 'Error: "interval" takes a time such as 2ms, not "1e30s".',
        "alpha -0.1": 'Error: "alpha" takes a number between 0 and 65536, not "-0.1".',
        "alpha nan": 'Error: "alpha" takes a number between 0 and 65536, not "nan".',
        "gamma 0.1x": 'Error: "gamma" takes a number between 0 and 65536, not "0.1x".',
        "gamma 1e-30": 'Error: "gamma" takes a number between 0 and 65536, not "1e-30".',
        "phi 65536": 'Error: "phi" takes a number between 0 and 65536, not "65536".',
        "measure price": 'Error: "measure" takes auto|backlog|queue|rate, not "price".',
        "measure rat": 'Error: "measure" takes auto|backlog|queue|rate, not "rat".',
    },
    echoes=(
        Echo(
            "",
            "limit 120p target 20p interval 2ms alpha 0.1 gamma 0.001 phi 1.001 measure queue",
            {},
        ),
        Echo(
            "limit 300 target 50 interval 5ms alpha 0.25 gamma 0.05 phi 1.2 measure rate "
            "bandwidth 64mbit avpkt 1000 bytemode ecn protect 46",
            "limit 300p target 50p interval 5ms alpha 0.25 gamma 0.05 phi 1.2 measure rate "
            "bandwidth 64Mbit avpkt 1000b bytemode ecn protect 46",
            {
                "limit": 300,
                "target": 50,
                "interval": 5 * MS,
                "alpha": 0.25,
                "gamma": 0.05,
                "phi": 1.2,
                "measure": "rate",
                "bandwidth": 64 * MBIT,
                "avpkt": 1000,
                "bytemode": True,
                "ecn": True,
                "protect": 46,
            },
        ),
        Echo("interval 10us", "interval 10us", {"interval": 10 * US}),
        Echo("interval 10s", "interval 10s", {"interval": 10 * S}),
        Echo("interval 1500us", "interval 1.5ms", {"interval": 1500 * US}),
        Echo("interval 12345us", "interval 12345000ns", {"interval": 12345 * US}),
        Echo("interval 3000", "interval 3ms", {"interval": 3 * MS}),
        Echo("alpha 0.000001", "alpha 1e-06", {"alpha": 1e-6}),
        Echo("alpha 0.999999999", "alpha 0.999999999", {"alpha": 0.999999999}),
        Echo("gamma 1", "gamma 1", {"gamma": 1}),
        Echo("gamma 0.0123456789", "gamma 0.0123456789", {"gamma": 0.0123456789}),
        Echo("phi 1.00001", "phi 1.00001", {"phi": 1.00001}),
        Echo("phi 1.00012345", "phi 1.00012345", {"phi": 1.00012345}),
        Echo("phi 999.999999999", "phi 999.999999999", {"phi": 999.999999999}),
        Echo(
            "bandwidth 8kbit",
            "measure backlog bandwidth 8Kbit",
            {"bandwidth": 8 * KBIT, "measure": "backlog"},
        ),
        Echo(
            "bandwidth 1tbit measure auto",
            "measure backlog bandwidth 1Tbit",
            {"bandwidth": 1000 * GBIT, "measure": "backlog"},
        ),
        Echo(
            "bandwidth 50%",
            "measure backlog bandwidth 5Gbit",
            {"bandwidth": 5 * GBIT, "measure": "backlog"},
        ),
        Echo(
            "measure queue bandwidth 1500kbit",
            "measure queue bandwidth 1500Kbit",
            {"bandwidth": 1500 * KBIT, "measure": "queue"},
        ),
        Echo("avpkt 1kb", "avpkt 1024b", {"avpkt": 1024}),
        Echo("noecn nobytemode protect none avpkt 0 bandwidth 0", "measure queue", {}),
        Echo("protect 0", "protect 0", {"protect": 0}),
        Echo("protect 0x3f", "protect 63", {"protect": 63}),
    ),
    certain={TARGET: 1, INTERVAL: 1 * MS, ALPHA: real(0.9), GAMMA: real(1), PHI: real(1000)},
    never={INTERVAL: 10 * S},
)

LRED = Kind(
    name="lred",
    defaults={
        "limit": 200,
        "target": 100,
        "beta": 0.001,
        "period": 1 * S,
        "periods": 4,
        "weight": 0.1,
        "avpkt": 0,
        "bytemode": False,
        "ecn": False,
        "protect": None,
    },
    other={
        **SHARED_OTHER,
        LIMIT: 220,
        BETA: real(0.002),
        PERIOD: 2 * S,
        PERIODS: 8,
        WEIGHT: real(0.2),
    },
    another={
        **SHARED_ANOTHER,
        BETA: real(0.003),
        PERIOD: 3 * S,
        PERIODS: 2,
        WEIGHT: real(0.3),
    },
    taken=(
        *SHARED_TAKEN,
        {BETA: real(0.000001)},
        {BETA: real(1000)},
        {PERIOD: 1 * MS},
        {PERIOD: 100 * S},
        {PERIODS: 1},
        {PERIODS: 64},
        {WEIGHT: 0},
        {WEIGHT: real(0.99)},
    ),
    refused=(
        *SHARED_REFUSED,
        Refusal(
            "beta must be 0.000001 to 1000",
            ({BETA: 0}, {BETA: real(0.0000009)}, {BETA: real(1000) + 1}, {BETA: 2**64 - 1}),
        ),
        Refusal(
            "period must be 1ms to 100s",
            ({PERIOD: 0}, {PERIOD: MS - 1}, {PERIOD: 100 * S + 1}, {PERIOD: 2**64 - 1}),
        ),
        Refusal(
            "periods must be 1 to 64",
            ({PERIODS: 0}, {PERIODS: 65}, {PERIODS: 2**32 - 1}),
        ),
        Refusal(
            "weight must be 0 to 0.99",
            ({WEIGHT: real(0.9900001)}, {WEIGHT: real(1)}, {WEIGHT: 2**64 - 1}),
        ),
    ),
    mistyped={
        **SHARED_MISTYPED,
        "limit 1": "Error: sch_lred: limit must be 2 to 1048576 packets.",
        "bandwidth 1mbit": 'What is "bandwidth"?',
        "beta 0": "Error: sch_lred: beta must be 0.000001 to 1000.",
        "beta -1": 'Error: "beta" takes a number between 0 and 65536, not "-1".',
        "period 100us": "Error: sch_lred: period must be 1ms to 100s.",
        "period soon": 'Error: "period" takes a time such as 2ms, not "soon".',
        "periods 65": "Error: sch_lred: periods must be 1 to 64.",
        "periods 1.5": 'Error: "periods" takes a whole number, not "1.5".',
        "weight 1": "Error: sch_lred: weight must be 0 to 0.99.",
        "weight x": 'Error: "weight" takes a number between 0 and 65536, not "x".',
    },
    echoes=(
        Echo("", "limit 200p target 100p beta 0.001 period 1s periods 4 weight 0.1", {}),
        Echo(
            "limit 300 target 50 beta 0.02 period 100ms periods 8 weight 0.5 "
            "avpkt 1000 bytemode ecn protect 46",
            "limit 300p target 50p beta 0.02 period 100ms periods 8 weight 0.5 "
            "avpkt 1000b bytemode ecn protect 46",
            {
                "limit": 300,
                "target": 50,
                "beta": 0.02,
                "period": 100 * MS,
                "periods": 8,
                "weight": 0.5,
                "avpkt": 1000,
                "bytemode": True,
                "ecn": True,
                "protect": 46,
            },
        ),
        Echo("beta 0.000001", "beta 1e-06", {"beta": 1e-6}),
        Echo("beta 1000", "beta 1000", {"beta": 1000}),
        Echo("period 1ms", "period 1ms", {"period": MS}),
        Echo("period 100s", "period 100s", {"period": 100 * S}),
        Echo("period 1234567us", "period 1234567000ns", {"period": 1234567 * US}),
        Echo("periods 1", "periods 1", {"periods": 1}),
        Echo("periods 64", "periods 64", {"periods": 64}),
        Echo("weight 0", "weight 0", {"weight": 0}),
        Echo("weight 0.99", "weight 0.99", {"weight": 0.99}),
        Echo("noecn nobytemode protect none avpkt 0", "weight 0.1", {}),
    ),
    certain={TARGET: 1, PERIOD: 100 * S, BETA: real(1000)},
    never={TARGET: 1, PERIOD: 100 * S},
    lesson={TARGET: 1, PERIOD: 1 * MS},
)

FIFA_DEFAULTS = {
    "limit": 1000,
    "target": 50,
    "scale": True,
    "rtt-min": 100 * US,
    "rtt-max": 65535 * 100 * US,
    "rtt-weight": 0.1,
    "bandwidth": 0,
    "avpkt": 0,
    "bytemode": False,
    "ecn": False,
    "protect": None,
}
FIFA_OTHER: Settings = {
    **SHARED_OTHER,
    SCALE: 0,
    ROBUST: real(1.5),
    FRAGILE: real(2.5),
    RTT_MIN: 10 * MS,
    RTT_MAX: 500 * MS,
    RTT_WEIGHT: real(0.02),
}
FIFA_ANOTHER: Settings = {
    **SHARED_ANOTHER,
    SCALE: 1,
    ROBUST: 0,
    FRAGILE: real(4),
    RTT_MIN: 100 * US,
    RTT_MAX: 65535 * 100 * US,
    RTT_WEIGHT: real(0.3),
}
FIFA_TAKEN: tuple[Settings, ...] = (
    {SCALE: 0},
    {ROBUST: 0},
    {ROBUST: real(4)},
    {FRAGILE: 0},
    {FRAGILE: real(4)},
    {RTT_MIN: 100 * US, RTT_MAX: 100 * US},
    {RTT_MIN: 65535 * 100 * US},
    {RTT_MAX: 65535 * 100 * US},
    {RTT_WEIGHT: real(0.000001)},
    {RTT_WEIGHT: real(1)},
)
NO_RTT = (0, 100 * US - 1, 65535 * 100 * US + 1, 2**64 - 1)  # ns
FIFA_REFUSED = (
    Refusal("scale must be 0 or 1", ({SCALE: 2}, {SCALE: 255})),
    Refusal("exponent-robust must be 0 to 4", ({ROBUST: real(4) + 1}, {ROBUST: 2**64 - 1})),
    Refusal("exponent-fragile must be 0 to 4", ({FRAGILE: real(4) + 1}, {FRAGILE: 2**64 - 1})),
    Refusal("rtt-min must be 0.1ms to 6553.5ms", tuple({RTT_MIN: no} for no in NO_RTT)),
    Refusal("rtt-max must be 0.1ms to 6553.5ms", tuple({RTT_MAX: no} for no in NO_RTT)),
    Refusal("rtt-min must not exceed rtt-max", ({RTT_MIN: 20 * MS, RTT_MAX: 20 * MS - 1},)),
    Refusal(
        "rtt-weight must be 0.000001 to 1",
        (
            {RTT_WEIGHT: 0},
            {RTT_WEIGHT: real(0.0000009)},
            {RTT_WEIGHT: real(1) + 1},
            {RTT_WEIGHT: 2**64 - 1},
        ),
    ),
)
NEEDS_RED = "min, max, probability, qweight, gentle and count need base red"
NEEDS_PI = "a, b and sampling need base pi"
NEEDS_REM = "interval, alpha, gamma, phi and measure need base rem"
FOR_RED = Refusal(
    NEEDS_RED,
    ({MIN: 100}, {MAX: 300}, {PROBABILITY: real(0.1)}, {QWEIGHT: real(0.1)}, {GENTLE: 0},
     {COUNT: WAIT}),
)  # fmt: skip
FOR_PI = Refusal(NEEDS_PI, ({A: real(0.1)}, {B: 0}, {SAMPLING: 170}))
FOR_REM = Refusal(
    NEEDS_REM,
    ({INTERVAL: 2 * MS}, {ALPHA: real(0.1)}, {GAMMA: real(0.1)}, {PHI: real(2)}, {MEASURE: AUTO}),
)

FIFA = Kind(
    name="fifa",
    typed="base pi",
    given={BASE: PI_BASE},
    defaults={**FIFA_DEFAULTS, "base": "pi", "a": 1.822e-5, "b": 1.816e-5, "sampling": 170},
    other={**FIFA_OTHER, A: real(2e-5), B: real(1e-5), SAMPLING: 100},
    another={**FIFA_ANOTHER, A: real(3e-5), B: real(1.5e-5), SAMPLING: 500},
    taken=(
        *SHARED_TAKEN,
        *FIFA_TAKEN,
        {A: 1, B: 0},
        {A: real(2), B: real(2) - 1},
        {SAMPLING: 1},
        {SAMPLING: 100_000},
    ),
    refused=(
        *SHARED_REFUSED,
        *FIFA_REFUSED,
        FOR_RED,
        FOR_REM,
        Refusal("a must be above b and at most 2", ({A: 0}, {A: real(2) + 1}, {A: 2**64 - 1})),
        Refusal("b must be at least 0 and below a", ({B: real(2) + 1}, {B: 2**64 - 1})),
        Refusal("b must be below a", ({A: 1, B: 1}, {B: real(1)}, {A: real(1), B: real(1)})),
        Refusal(
            "sampling must be 1 to 100000 Hz",
            ({SAMPLING: 0}, {SAMPLING: 100_001}, {SAMPLING: 2**32 - 1}),
        ),
    ),
    mistyped={
        **SHARED_MISTYPED,
        **BANDWIDTH_MISTYPED,
        "limit 1": "Error: sch_fifa: limit must be 2 to 1048576 packets.",
        "min 10": f"Error: sch_fifa: {NEEDS_RED}.",
        "phi 1.1": f"Error: sch_fifa: {NEEDS_REM}.",
        "base pi": 'Error: duplicate "base": "pi" is the second value.',
        "a 1e-5": "Error: sch_fifa: b must be below a.",
        "sampling 0": "Error: sch_fifa: sampling must be 1 to 100000 Hz.",
        "sampling 170hz": 'Error: "sampling" takes a whole number, not "170hz".',
        "exponent-robust 4.1": "Error: sch_fifa: exponent-robust must be 0 to 4.",
        "exponent-fragile -1": 'Error: "exponent-fragile" takes a number between 0 and 65536, '
        'not "-1".',
        "rtt-min 7s": "Error: sch_fifa: rtt-min must be 0.1ms to 6553.5ms.",
        "rtt-min 2ms rtt-max 1ms": "Error: sch_fifa: rtt-min must not exceed rtt-max.",
        "rtt-max long": 'Error: "rtt-max" takes a time such as 2ms, not "long".',
        "rtt-weight 0": "Error: sch_fifa: rtt-weight must be 0.000001 to 1.",
    },
    echoes=(
        Echo(
            "",
            "base pi limit 1000p target 50p a 1.822e-05 b 1.816e-05 sampling 170 scale "
            "rtt-min 100us rtt-max 6553500000ns rtt-weight 0.1",
            {},
        ),
        Echo(
            "limit 300 target 20 a 0.0002 b 0.0001 sampling 1000 exponent-robust 1.6 "
            "exponent-fragile 1.25 noscale rtt-min 5ms rtt-max 400ms rtt-weight 0.01 "
            "bandwidth 28mbit avpkt 1000 bytemode ecn protect 46",
            "limit 300p target 20p a 0.0002 b 0.0001 sampling 1000 exponent-robust 1.6 "
            "exponent-fragile 1.25 noscale rtt-min 5ms rtt-max 400ms rtt-weight 0.01 "
            "bandwidth 28Mbit avpkt 1000b bytemode ecn protect 46",
            {
                "limit": 300,
                "target": 20,
                "a": 0.0002,
                "b": 0.0001,
                "sampling": 1000,
                "exponent-robust": 1.6,
                "exponent-fragile": 1.25,
                "scale": False,
                "rtt-min": 5 * MS,
                "rtt-max": 400 * MS,
                "rtt-weight": 0.01,
                "bandwidth": 28 * MBIT,
                "avpkt": 1000,
                "bytemode": True,
                "ecn": True,
                "protect": 46,
            },
        ),
        Echo("b 0", "b 0", {"b": 0}),
        Echo("a 2", "a 2", {"a": 2}),
        Echo("exponent-robust 0", "exponent-robust 0", {"exponent-robust": 0}),
        Echo("exponent-fragile 4", "exponent-fragile 4", {"exponent-fragile": 4}),
        Echo("rtt-weight 1", "rtt-weight 1", {"rtt-weight": 1}),
        Echo("rtt-max 100us", "rtt-max 100us", {"rtt-max": 100 * US}),
        Echo("scale", "scale", {}),
    ),
    certain={TARGET: 1, A: real(1), B: 0, SAMPLING: 1000},
    never={TARGET: 1, A: 1, B: 0, SAMPLING: 1},
)


def _without_target(settings: Settings) -> Settings:
    return {option: value for option, value in settings.items() if option is not TARGET}


FIFA_RED = Kind(
    name="fifa",
    typed="base red",
    given={BASE: RED_BASE},
    defaults={
        **{key: value for key, value in FIFA_DEFAULTS.items() if key != "target"},
        "base": "red",
        "min": 100,
        "max": 300,
        "probability": 0.1,
        "qweight": 0.002,
        "gentle": False,
        "count": "wait",
    },
    other={
        **_without_target(FIFA_OTHER),
        MIN: 20,
        MAX: 100,
        PROBABILITY: real(0.2),
        QWEIGHT: real(0.01),
        GENTLE: 1,
        COUNT: CLASSIC,
    },
    another={
        **_without_target(FIFA_ANOTHER),
        MIN: 30,
        MAX: 110,
        PROBABILITY: real(0.3),
        QWEIGHT: real(0.02),
        GENTLE: 0,
        COUNT: WAIT,
    },
    taken=(
        {},
        {LIMIT: 2, MIN: 1, MAX: 2},
        {LIMIT: 1048576, MAX: 1048576},
        {MIN: 299},
        {MIN: 1, MAX: 2},
        {MAX: 1000},
        {PROBABILITY: real(0.000001)},
        {PROBABILITY: real(1)},
        {QWEIGHT: real(0.000001)},
        {QWEIGHT: real(0.99)},
        {GENTLE: 1},
        {COUNT: CLASSIC},
    ),
    refused=(
        *FIFA_REFUSED,
        FOR_PI,
        FOR_REM,
        Refusal("target needs base pi or rem", ({TARGET: 50},)),
        Refusal(
            "min must be at least 1 packet and below max",
            ({MIN: 0}, {MIN: 1048577}, {MIN: 2**32 - 1}),
        ),
        Refusal(
            "max must be above min and at most limit",
            ({MAX: 0}, {MAX: 1}, {MAX: 1048577}, {MAX: 2**32 - 1}),
        ),
        Refusal(
            "min must be below max, and max at most limit",
            ({MIN: 300}, {MIN: 2, MAX: 2}, {MAX: 1001}, {LIMIT: 299}),
        ),
        Refusal(
            "probability must be 0.000001 to 1",
            (
                {PROBABILITY: 0},
                {PROBABILITY: real(0.0000009)},
                {PROBABILITY: real(1) + 1},
                {PROBABILITY: 2**64 - 1},
            ),
        ),
        Refusal(
            "qweight must be 0.000001 to 0.99",
            (
                {QWEIGHT: 0},
                {QWEIGHT: real(0.0000009)},
                {QWEIGHT: real(0.9900001)},
                {QWEIGHT: real(1)},
                {QWEIGHT: 2**64 - 1},
            ),
        ),
        Refusal("gentle must be 0 or 1", ({GENTLE: 2}, {GENTLE: 255})),
        Refusal("count must be wait or classic", ({COUNT: 2}, {COUNT: 255})),
    ),
    mistyped={
        "target 50": "Error: sch_fifa: target needs base pi or rem.",
        "min 0": "Error: sch_fifa: min must be at least 1 packet and below max.",
        "min 300": "Error: sch_fifa: min must be below max, and max at most limit.",
        "limit 200": "Error: sch_fifa: min must be below max, and max at most limit.",
        "max x": 'Error: "max" takes a whole number of packets, not "x".',
        "probability 1.1": "Error: sch_fifa: probability must be 0.000001 to 1.",
        "qweight 1": "Error: sch_fifa: qweight must be 0.000001 to 0.99.",
        "count ns": 'Error: "count" takes wait|classic, not "ns".',
        "gentle nogentle": 'Error: duplicate "gentle": "nogentle" is the second value.',
        "a 1": f"Error: sch_fifa: {NEEDS_PI}.",
        "interval 2ms": f"Error: sch_fifa: {NEEDS_REM}.",
    },
    echoes=(
        Echo("", "base red limit 1000p min 100p max 300p probability 0.1 "
                 "qweight 0.002 count wait scale", {}),
        Echo(
            "min 20 max 60 probability 0.02 qweight 0.1 gentle count classic limit 100",
            "limit 100p min 20p max 60p probability 0.02 qweight 0.1 gentle "
            "count classic scale",
            {
                "min": 20,
                "max": 60,
                "probability": 0.02,
                "qweight": 0.1,
                "gentle": True,
                "count": "classic",
                "limit": 100,
            },
        ),
        Echo("nogentle count wait", "count wait", {}),
    ),
    certain={},
    never={},
)  # fmt: skip

FIFA_REM = Kind(
    name="fifa",
    typed="base rem",
    given={BASE: REM_BASE},
    defaults={**FIFA_DEFAULTS, **REM.defaults, "limit": 1000, "base": "rem"},
    other={**FIFA_OTHER, **REM.other},
    another={**FIFA_ANOTHER, **REM.another},
    taken=REM.taken[len(SHARED_TAKEN) :],
    refused=(*REM.refused[len(SHARED_REFUSED) :], *FIFA_REFUSED, FOR_RED, FOR_PI),
    mistyped={
        "measure rate": "Error: sch_fifa: measure backlog and measure rate need bandwidth.",
        "measure price": 'Error: "measure" takes auto|backlog|queue|rate, not "price".',
        "min 1": f"Error: sch_fifa: {NEEDS_RED}.",
        "sampling 1": f"Error: sch_fifa: {NEEDS_PI}.",
    },
    echoes=(
        Echo(
            "",
            "base rem limit 1000p target 20p interval 2ms alpha 0.1 gamma 0.001 phi 1.001 "
            "measure queue scale",
            {},
        ),
        Echo(
            "interval 5ms alpha 0.25 gamma 0.05 phi 1.2 bandwidth 64mbit",
            "interval 5ms alpha 0.25 gamma 0.05 phi 1.2 measure backlog",
            {
                "interval": 5 * MS,
                "alpha": 0.25,
                "gamma": 0.05,
                "phi": 1.2,
                "measure": "backlog",
                "bandwidth": 64 * MBIT,
            },
        ),
    ),
    certain=REM.certain,
    never=REM.never,
)

XQM = Kind(
    name="xqm",
    typed="bandwidth 10mbit",
    given={BANDWIDTH: 10 * MBIT},
    defaults={
        "bandwidth": 10 * MBIT,
        "control": "pi-tb",
        "limit": 250,
        "target": 50,
        "control-period": 10 * MS,
        "measure-period": 10 * S,
        "delta": 1e-5,
        "phi": 4e-5,
        "flow": "5tuple",
        "flows": 65536,
        "short": 10,
        "short-share": 0,
        "rtt": "auto",
        "share": 0,
        "hide": "off",
        "hide-by": "dscp",
        "hide-dscp": 33,
        "weights": [],
        "avpkt": 0,
        "bytemode": False,
        "ecn": False,
        "protect": None,
    },
    other={
        **SHARED_OTHER,
        CONTROL: PI_T,
        CONTROL_PERIOD: 20 * MS,
        MEASURE_PERIOD: 5 * S,
        DELTA: real(1e-6),
        XQM_PHI: real(4e-6),
        FLOW: SRC_DST,
        FLOWS: 1024,
        SHORT: 20,
        SHORT_SHARE: 1 * MBIT,
        RTT: RTT_LABEL,
        RTT_TIME: 50 * MS,
        SHARE: 2 * MBIT,
        HIDE: HIDE_ONOFF,
        HIDE_BY: BY_COPY,
        HIDE_DSCP: 1,
        WEIGHTS: weights(1, 2),
    },
    another={
        **SHARED_ANOTHER,
        CONTROL: PI_TB,
        CONTROL_PERIOD: 5 * MS,
        MEASURE_PERIOD: 20 * S,
        DELTA: real(1e-4),
        XQM_PHI: real(1e-4),
        FLOW: RTT_CLASS,
        FLOWS: 100,
        SHORT: 0,
        SHORT_SHARE: 0,
        RTT: RTT_GIVEN,
        RTT_TIME: 70 * MS,
        SHARE: 0,
        HIDE: HIDE_SMOOTH,
        HIDE_BY: BY_DSCP,
        HIDE_DSCP: 63,
        WEIGHTS: weights(1000, 999, 3),
    },
    taken=(
        *SHARED_TAKEN,
        {CONTROL: ONOFF, HIDE: HIDE_OFF},
        {CONTROL_PERIOD: MS, MEASURE_PERIOD: 20 * MS},
        {CONTROL_PERIOD: S, MEASURE_PERIOD: 100 * S},
        {DELTA: 0},
        {DELTA: real(1)},
        {XQM_PHI: 0},
        {XQM_PHI: real(1)},
        {FLOW: RTT_CLASS},
        {FLOWS: 8},
        {FLOWS: 1048576},
        {SHORT: 0},
        {SHORT: 1_000_000},
        {SHORT_SHARE: 10 * MBIT - 1},
        {RTT: RTT_GIVEN},
        {RTT: RTT_GIVEN, RTT_TIME: US},
        {RTT: RTT_GIVEN, RTT_TIME: 60 * S},
        {SHARE: 1000},
        {SHARE: 10 * MBIT},
        {HIDE: HIDE_ONOFF, CONTROL: ONOFF},
        {HIDE: HIDE_SMOOTH, CONTROL: PI_T},
        {HIDE_BY: BY_COPY},
        {HIDE_DSCP: 1},
        {HIDE_DSCP: 63},
        {WEIGHTS: weights(*[1000] * 16)},
    ),
    refused=(
        *SHARED_REFUSED,
        Refusal("bandwidth must be given: 8kbit to 1tbit", ({BANDWIDTH: 0},)),
        Refusal("control must be onoff, pi-t or pi-tb", ({CONTROL: 3}, {CONTROL: 255})),
        Refusal(
            "control-period must be 1ms to 1s",
            (
                {CONTROL_PERIOD: 0},
                {CONTROL_PERIOD: MS - 1},
                {CONTROL_PERIOD: S + 1},
                {CONTROL_PERIOD: 2**64 - 1},
            ),
        ),
        Refusal(
            "measure-period must be 20ms to 100s",
            (
                {MEASURE_PERIOD: 0},
                {MEASURE_PERIOD: 20 * MS - 1},
                {MEASURE_PERIOD: 100 * S + 1},
                {MEASURE_PERIOD: 2**64 - 1},
            ),
        ),
        Refusal(
            "measure-period must be at least 20 times control-period",
            ({MEASURE_PERIOD: 199 * MS}, {CONTROL_PERIOD: 501 * MS}),
        ),
        Refusal("delta must be 0 to 1", ({DELTA: real(1) + 1}, {DELTA: 2**64 - 1})),
        Refusal("phi must be 0 to 1", ({XQM_PHI: real(1) + 1}, {XQM_PHI: 2**64 - 1})),
        Refusal("flow must be 5tuple, src-dst or rtt-class", ({FLOW: 3}, {FLOW: 255})),
        Refusal(
            "flows must be 8 to 1048576",
            ({FLOWS: 0}, {FLOWS: 7}, {FLOWS: 1048577}, {FLOWS: 2**32 - 1}),
        ),
        Refusal("short must be 0 to 1000000 packets", ({SHORT: 1_000_001}, {SHORT: 2**32 - 1})),
        Refusal(
            "short-share must be below bandwidth",
            ({SHORT_SHARE: 10 * MBIT}, {SHORT_SHARE: 2**64 - 1}),
        ),
        Refusal("rtt must be auto, label or a time", ({RTT: 3}, {RTT: 255})),
        Refusal(
            "rtt must be 1us to 60s, if it is a time",
            ({RTT_TIME: 0}, {RTT_TIME: US - 1}, {RTT_TIME: 60 * S + 1}, {RTT_TIME: 2**64 - 1}),
        ),
        Refusal(
            "share must be 8kbit to bandwidth, or 0 for the fair one",
            ({SHARE: 1}, {SHARE: 999}, {SHARE: 10 * MBIT + 1}, {SHARE: 2**64 - 1}),
        ),
        Refusal("hide must be off, onoff or smooth", ({HIDE: 3}, {HIDE: 255})),
        Refusal("hide-by must be dscp or copy", ({HIDE_BY: 2}, {HIDE_BY: 255})),
        Refusal("hide smooth needs control pi-t or pi-tb", ({HIDE: HIDE_SMOOTH, CONTROL: ONOFF},)),
        Refusal(
            "hide-dscp must be a DSCP, 1 to 63", ({HIDE_DSCP: 0}, {HIDE_DSCP: 64}, {HIDE_DSCP: 255})
        ),
        Refusal(
            "weights must be 1 to 1000, of 16 priorities",
            ({WEIGHTS: weights(0)}, {WEIGHTS: weights(1001)}, {WEIGHTS: 0}),
        ),
    ),
    mistyped={
        **SHARED_MISTYPED,
        "limit 1": "Error: sch_xqm: limit must be 2 to 1048576 packets.",
        "control pi": 'Error: "control" takes onoff|pi-t|pi-tb, not "pi".',
        "hide smooth control onoff": "Error: sch_xqm: hide smooth needs control pi-t or pi-tb.",
        "measure-period 100ms": "Error: sch_xqm: measure-period must be at least 20 times "
        "control-period.",
        "control-period 100us": "Error: sch_xqm: control-period must be 1ms to 1s.",
        "delta 2": "Error: sch_xqm: delta must be 0 to 1.",
        "phi -1": 'Error: "phi" takes a number between 0 and 65536, not "-1".',
        "flow 3tuple": 'Error: "flow" takes 5tuple|src-dst|rtt-class, not "3tuple".',
        "flows 7": "Error: sch_xqm: flows must be 8 to 1048576.",
        "flows many": 'Error: "flows" takes a whole number, not "many".',
        "short 2000000": "Error: sch_xqm: short must be 0 to 1000000 packets.",
        "short-share 10mbit": "Error: sch_xqm: short-share must be below bandwidth.",
        "rtt soon": 'Error: "rtt" takes auto|label or a time such as 2ms, not "soon".',
        "rtt 61s": "Error: sch_xqm: rtt must be 1us to 60s, if it is a time.",
        "share 11mbit": "Error: sch_xqm: share must be 8kbit to bandwidth, or 0 for the fair one.",
        "share half": 'Error: "share" takes a rate such as 64mbit or auto, not "half".',
        "hide all": 'Error: "hide" takes off|onoff|smooth, not "all".',
        "hide-by fec": 'Error: "hide-by" takes dscp|copy, not "fec".',
        "hide-dscp 0": "Error: sch_xqm: hide-dscp must be a DSCP, 1 to 63.",
        "weights x": 'Error: "weights" takes 1 to 16 whole numbers, not "x".',
        "weights 70000": 'Error: "weights" takes 1 to 16 whole numbers, not "70000".',
        "weights 1 0": "Error: sch_xqm: weights must be 1 to 1000, of 16 priorities.",
        "weights 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1":
            'Error: "weights" takes 1 to 16 whole numbers, not "1".',
    },
    echoes=(
        Echo(
            "",
            "bandwidth 10Mbit control pi-tb limit 250p target 50p control-period 10ms "
            "measure-period 10s delta 1e-05 phi 4e-05 flow 5tuple flows 65536 short 10p rtt auto "
            "hide off hide-by dscp hide-dscp 33",
            {},
        ),
        Echo(
            "control pi-t limit 300 target 20 control-period 5ms measure-period 2s delta 0.0002 "
            "phi 0.0001 flow src-dst flows 1000 short 3 short-share 1mbit rtt label share 500kbit "
            "hide smooth hide-by copy hide-dscp 44 weights 1 2 3 avpkt 1000 bytemode ecn "
            "protect 46",
            "control pi-t limit 300p target 20p control-period 5ms measure-period 2s delta 0.0002 "
            "phi 0.0001 flow src-dst flows 1000 short 3p short-share 1Mbit rtt label "
            "share 500Kbit hide smooth hide-by copy hide-dscp 44 weights 1 2 3 avpkt 1000b "
            "bytemode ecn protect 46",
            {
                "control": "pi-t",
                "limit": 300,
                "target": 20,
                "control-period": 5 * MS,
                "measure-period": 2 * S,
                "delta": 0.0002,
                "phi": 0.0001,
                "flow": "src-dst",
                "flows": 1000,
                "short": 3,
                "short-share": 1 * MBIT,
                "rtt": "label",
                "share": 500 * KBIT,
                "hide": "smooth",
                "hide-by": "copy",
                "hide-dscp": 44,
                "weights": [1, 2, 3],
                "avpkt": 1000,
                "bytemode": True,
                "ecn": True,
                "protect": 46,
            },
        ),
        Echo("rtt 80ms", "rtt 80ms", {"rtt": 80 * MS}),
        Echo("rtt 1us", "rtt 1us", {"rtt": US}),
        Echo("rtt 60s", "rtt 60s", {"rtt": 60 * S}),
        Echo("rtt 12345us", "rtt 12345000ns", {"rtt": 12345 * US}),
        Echo("weights 3 limit 300", "hide-dscp 33 weights 3", {"weights": [3], "limit": 300}),
        Echo("weights 1 2 1 1", "weights 1 2", {"weights": [1, 2]}),
        Echo("weights 1 1", "hide-dscp 33", {}),
        Echo(
            f"weights {' '.join('1000' for _ in range(16))}",
            f"weights {' '.join('1000' for _ in range(16))}",
            {"weights": [1000] * 16},
        ),
        Echo("share auto short-share 0", "rtt auto hide off", {}),
        Echo("control onoff hide onoff", "control onoff", {"control": "onoff", "hide": "onoff"}),
        Echo("flow rtt-class", "flow rtt-class", {"flow": "rtt-class"}),
    ),
    # of all flows one that does not slow down, and of TCP's one that may do nothing
    certain={
        TARGET: 1,
        SHORT: 0,
        DELTA: 0,
        XQM_PHI: real(1),
        BANDWIDTH: 1000 * GBIT,
        SHARE: 1000,
        RTT: RTT_GIVEN,
        RTT_TIME: US,
    },
    never={FLOW: RTT_CLASS, TARGET: 1, DELTA: 0, XQM_PHI: 0},
)

KINDS = (REM, LRED, FIFA, XQM)
VARIANTS = (*KINDS, FIFA_RED, FIFA_REM)
"""With fifa's other bases, which have other options."""
