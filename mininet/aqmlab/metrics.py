# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of an experiment, from what was counted and sampled. No I/O here.

All are over [warmup, duration], counted from the first flow's start.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .scenario import NS_PER_S, US_PER_S, Scenario

BITS = 8  # of a byte
MEAN_S, SETTLED_S, NEAR = 2.0, 10.0, 0.2  # when a queue is at its target
MEGA = 1_000_000


@dataclass(frozen=True)
class Counters:
    """A bottleneck's counters at one moment; None for what its qdisc does not tell."""

    shaped_bytes: int  # sent, as the shaper counts them
    sent: int  # packets that left the qdisc
    sent_bytes: int  # of these
    queued: int  # packets in it
    drops: int  # packets it dropped, for whatever reason
    overflow: int | None  # of these, for want of room
    marks: int | None  # packets it marked CE

    @property
    def arrivals(self) -> int:
        """Packets that came."""
        return self.sent + self.queued + self.drops


@dataclass(frozen=True)
class QueueSample:
    """The qdisc under test `time_ns` after the first flow's start."""

    time_ns: int
    packets: int
    sent_bytes: int  # so far, link headers included
    probability: float | None  # 0..1


@dataclass(frozen=True)
class FlowState:
    """A sender's TCP at one moment."""

    acked_bytes: int
    retransmits: int
    ecn: bool  # negotiated
    busy_us: int  # time it had data to send
    window_limited_us: int  # of this, held back by the receiver's window
    unsent_bytes: int  # in its buffer: always some, or the sender held itself back


NOT_STARTED = FlowState(0, 0, False, 0, 0, 0)


@dataclass(frozen=True)
class FlowResult:
    """One flow's share."""

    rtt_ms: float
    cc: str
    goodput_mbps: float
    retransmits: int


@dataclass(frozen=True)
class Metrics:
    """The results, by their keys in JSON. None: the qdisc does not tell."""

    jain: float
    goodput_mbps: float
    utilization: float
    mean_queue_pkts: float
    stddev_queue_pkts: float
    p99_queue_pkts: int
    queue_delay_ms: float  # mean queue over the rate
    arrivals: int  # packets that came to the queue
    drop_rate: float
    mark_rate: float | None
    overflow_drops: int | None
    null_model_jain: float
    response_time_s: float | None  # until the queue is at its target, of qdiscs that have one
    flows: list[FlowResult]

    def as_dict(self) -> dict[str, object]:
        """For JSON, cut to what is read: six decimals."""
        return {key: rounded(value) for key, value in asdict(self).items()}


def rounded(value: object) -> object:
    """VALUE with every float in it cut to six decimals."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index, 1/n to 1; of nothing but zeros, 1: all have the same."""
    squares = sum(x * x for x in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest value that at least SHARE (0..1) of the values do not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def queue_delay_s(packets: float, scenario: Scenario) -> float:
    """Seconds that a queue of full packets takes to drain."""
    return packets * scenario.frame_bytes * BITS / scenario.rate_bps


def null_model_jain(rtts_s: Sequence[float], delay_s: float) -> float:
    """Jain's index if all flows met one loss probability: share ~ 1/(base RTT + delay)."""
    return jain([1 / (rtt + delay_s) for rtt in rtts_s])


def response_time_s(samples: Sequence[QueueSample], target: int) -> float | None:
    """Start of the first SETTLED_S in which the mean over MEAN_S stays within 20 % of TARGET.

    SAMPLES are evenly spaced, from the first flow's start on; None if it never comes to that.
    """
    if len(samples) < 2:
        return None
    period = (samples[-1].time_ns - samples[0].time_ns) / (len(samples) - 1) / NS_PER_S
    if not period:
        return None
    window = max(round(MEAN_S / period), 1)
    needed = round((SETTLED_S - MEAN_S) / period)
    total = [0, *itertools.accumulate(sample.packets for sample in samples)]
    near = 0
    for first in range(len(samples) - window + 1):
        mean = (total[first + window] - total[first]) / window
        near = near + 1 if abs(mean - target) <= NEAR * target else 0
        if near > needed:
            return (samples[first - needed].time_ns - samples[0].time_ns) / NS_PER_S
    return None


def ratio(part: int, whole: int) -> float:
    """PART/WHOLE, 0 of nothing."""
    return part / whole if whole else 0.0


def flow_rates(
    before: Sequence[FlowState], after: Sequence[FlowState], seconds: float
) -> list[float]:
    """Each flow's goodput in Mb/s between two readings; 0 if they are of one moment."""
    if not seconds:
        return [0.0] * len(before)
    return [
        (b.acked_bytes - a.acked_bytes) * BITS / seconds / MEGA
        for a, b in zip(before, after, strict=True)
    ]


@dataclass(frozen=True)
class Reading:
    """Counters and flows at one moment, `time_ns` after the first flow's start."""

    time_ns: int
    counters: Counters
    flows: list[FlowState]


def measure(
    scenario: Scenario,
    samples: Sequence[QueueSample],
    warm: Reading,
    end: Reading,
    response_time: float | None,
) -> Metrics:
    """The metrics between the readings at warmup and at the end; SAMPLES are those between."""
    seconds = (end.time_ns - warm.time_ns) / NS_PER_S
    before, after = warm.counters, end.counters
    rates = flow_rates(warm.flows, end.flows, seconds)
    queue = [sample.packets for sample in samples]
    mean_queue = statistics.fmean(queue)
    delay_s = queue_delay_s(mean_queue, scenario)
    arrivals = after.arrivals - before.arrivals
    return Metrics(
        jain=jain(rates),
        goodput_mbps=sum(rates),
        utilization=(after.shaped_bytes - before.shaped_bytes)
        * BITS
        / (scenario.rate_bps * seconds),
        mean_queue_pkts=mean_queue,
        stddev_queue_pkts=statistics.pstdev(queue),
        p99_queue_pkts=percentile(queue, 0.99),
        queue_delay_ms=delay_s * 1000,
        arrivals=arrivals,
        drop_rate=ratio(after.drops - before.drops, arrivals),
        mark_rate=None
        if before.marks is None or after.marks is None
        else ratio(after.marks - before.marks, arrivals),
        overflow_drops=None
        if before.overflow is None or after.overflow is None
        else after.overflow - before.overflow,
        null_model_jain=null_model_jain([rtt / US_PER_S for rtt in scenario.rtts_us], delay_s),
        response_time_s=response_time,
        flows=[
            FlowResult(flow.rtt_us / 1000, flow.cc, rate, b.retransmits - a.retransmits)
            for flow, rate, a, b in zip(
                scenario.flow_list(), rates, warm.flows, end.flows, strict=True
            )
        ],
    )
