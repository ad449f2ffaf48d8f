# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of an experiment, from what was counted and sampled. No I/O here.

All are over [warmup, duration], counted from the first flow's start.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

from .scenario import NS_PER_S, US_PER_S, Flow, Queue, Scenario

BITS = 8  # of a byte
MEAN_S, SETTLED_S, NEAR = 2.0, 10.0, 0.2  # when a queue is at its target
MEGA = 1_000_000
Number = TypeVar("Number", int, float)


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
    line_came: int = 0  # packets that came to the lossy line behind it
    line_lost: int = 0  # of these
    copies: int = 0  # packets it made itself: xqm hides flows by them

    @property
    def arrivals(self) -> int:
        """Packets that came."""
        return self.sent + self.queued + self.drops - self.copies


@dataclass(frozen=True)
class QueueSample:
    """The qdisc under test `time_ns` after the first flow's start."""

    time_ns: int
    packets: int
    sent_bytes: int  # so far, link headers included
    probability: float | None  # 0..1
    drops: int = 0  # so far


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

    path: str
    rtt_ms: float
    cc: str
    goodput_mbps: float
    retransmits: int


@dataclass(frozen=True)
class Share:
    """What flows of one path and RTT got, all together."""

    path: str
    rtt_ms: float
    flows: int
    goodput_mbps: float


@dataclass(frozen=True)
class Stage:
    """The time from one arrival or departure of a group to the next, whatever the warmup."""

    from_s: float
    until_s: float
    shares: list[Share]
    links: "list[LinkResult]"  # in the order of the scenario's queues


@dataclass(frozen=True)
class Page:
    """A web page that has come, or a short flow, `time_ns` after the first flow's start."""

    time_ns: int
    session: int  # or the short flow's number
    size: int  # bytes
    response_s: float  # from the moment it was asked for


@dataclass(frozen=True)
class WebResult:
    """The results of web sessions: of the pages that have come. None: there were none."""

    pages: int
    goodput_mbps: float
    mean_response_s: float | None
    median_response_s: float | None
    p99_response_s: float | None


@dataclass(frozen=True)
class ShortResult:
    """The results of short flows: of those that have ended. None: none had an end to reach."""

    started: int
    finished: int
    goodput_mbps: float
    mean_response_s: float | None
    median_response_s: float | None
    p95_response_s: float | None


@dataclass(frozen=True)
class UdpResult:
    """What came of one UDP flow, headers included, as the rate it was sent at."""

    path: str
    rate_mbps: float


@dataclass(frozen=True)
class LinkResult:
    """One bottleneck's results, by their keys in JSON. None: the qdisc does not tell."""

    utilization: float
    mean_queue_pkts: float
    stddev_queue_pkts: float
    p99_queue_pkts: int
    queue_delay_ms: float  # mean queue over the rate
    arrivals: int  # packets that came to the queue
    drop_rate: float
    mark_rate: float | None
    overflow_drops: int | None
    response_time_s: float | None  # until the queue is at its target, of qdiscs that have one
    line_loss: float | None = None  # share lost behind the queue; None: none was to be


@dataclass(frozen=True)
class Metrics:
    """The results of one direction, by their keys in JSON."""

    jain: float  # of the flows of the first link, as all here that is of no other link
    goodput_mbps: float
    null_model_jain: float
    long_share: float  # the long flows' mean goodput over their fair share
    links: list[LinkResult]
    flows: list[FlowResult]
    reverse: "Metrics | None" = None  # the other direction, where flows go both ways
    web: WebResult | None = None
    udp: list[UdpResult] = field(default_factory=list)
    short: ShortResult | None = None
    stages: list[Stage] = field(default_factory=list)  # where flows come in groups

    @property
    def all_links(self) -> list[LinkResult]:
        """In the order of the scenario's queues."""
        return self.links + (self.reverse.links if self.reverse else [])

    def as_dict(self) -> dict[str, object]:
        """For JSON, cut to what is read: six decimals. A lone link's results stand at the top."""
        found = asdict(self)
        if len(self.links) == 1:
            del found["long_share"]
            found |= found.pop("links")[0]
        found["reverse"] = self.reverse and self.reverse.as_dict()
        return {key: rounded(value) for key, value in found.items()}


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


def percentile(values: Sequence[Number], share: float) -> Number:
    """The smallest value that at least SHARE (0..1) of the values do not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def queue_delay_s(packets: float, frame_bytes: int, rate_bps: int) -> float:
    """Seconds that a queue of full packets takes to drain."""
    return packets * frame_bytes * BITS / rate_bps


def null_model_jain(rtts_s: Sequence[float]) -> float:
    """Jain's index if all flows met one loss probability: share ~ 1/RTT, delays included."""
    return jain([1 / rtt for rtt in rtts_s])


def long_share(scenario: Scenario, rates: Sequence[float], flows: int) -> float:
    """Mean of RATES (Mb/s) in packets over the fair share of the first link among FLOWS.

    0 of none.
    """
    if not rates:
        return 0.0
    fair = scenario.links[0].rate_bps / scenario.frame_bytes / flows
    return statistics.fmean(rates) * MEGA / scenario.full_segment / fair


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


def rate_mbps(sent_bytes: int, seconds: float) -> float:
    """What was sent within so long; 0 between readings of one moment."""
    return sent_bytes * BITS / seconds / MEGA if seconds else 0.0


def flow_rates(
    before: Sequence[FlowState], after: Sequence[FlowState], seconds: float
) -> list[float]:
    """Each flow's goodput in Mb/s between two readings."""
    return [
        rate_mbps(b.acked_bytes - a.acked_bytes, seconds)
        for a, b in zip(before, after, strict=True)
    ]


@dataclass(frozen=True)
class Reading:
    """Counters and flows at one moment, `time_ns` after the first flow's start."""

    time_ns: int
    counters: list[Counters]  # of each queue
    flows: list[FlowState]
    udp: list[int] = field(default_factory=list)  # packets of each UDP flow that have come


def measure_web(pages: Sequence[Page], seconds: float) -> WebResult:
    """The results of PAGES, which came within SECONDS."""
    times = [page.response_s for page in pages]
    return WebResult(
        pages=len(pages),
        goodput_mbps=sum(page.size for page in pages) * BITS / seconds / MEGA,
        mean_response_s=statistics.fmean(times) if times else None,
        median_response_s=percentile(times, 0.5) if times else None,
        p99_response_s=percentile(times, 0.99) if times else None,
    )


def measure_short(scenario: Scenario, ended: Sequence[Page], seconds: float) -> ShortResult:
    """The results of the short flows that ENDED within SECONDS."""
    assert scenario.short
    times = [] if scenario.short.length.timed else [flow.response_s for flow in ended]
    starts = (flow.start_s for flow in scenario.short_list())
    return ShortResult(
        started=sum(1 for start_s in starts if scenario.warmup_s <= start_s < scenario.duration_s),
        finished=len(ended),
        goodput_mbps=sum(flow.size for flow in ended) * BITS / seconds / MEGA,
        mean_response_s=statistics.fmean(times) if times else None,
        median_response_s=percentile(times, 0.5) if times else None,
        p95_response_s=percentile(times, 0.95) if times else None,
    )


def measure_queue(
    queue: Queue,
    frame_bytes: int,
    seconds: float,
    samples: Sequence[QueueSample],
    counters: tuple[Counters, Counters],
    response_time: float | None,
) -> LinkResult:
    """The results of one queue over SECONDS, from its samples and its counters at either end."""
    before, after = counters
    lengths = [sample.packets for sample in samples]
    mean_queue = statistics.fmean(lengths)
    arrivals = after.arrivals - before.arrivals
    return LinkResult(
        utilization=(after.shaped_bytes - before.shaped_bytes)
        * BITS
        / (queue.link.rate_bps * seconds),
        mean_queue_pkts=mean_queue,
        stddev_queue_pkts=statistics.pstdev(lengths),
        p99_queue_pkts=percentile(lengths, 0.99),
        queue_delay_ms=queue_delay_s(mean_queue, frame_bytes, queue.link.rate_bps) * 1000,
        arrivals=arrivals,
        drop_rate=ratio(after.drops - before.drops, arrivals),
        mark_rate=None
        if before.marks is None or after.marks is None
        else ratio(after.marks - before.marks, arrivals),
        overflow_drops=None
        if before.overflow is None or after.overflow is None
        else after.overflow - before.overflow,
        response_time_s=response_time,
        line_loss=ratio(after.line_lost - before.line_lost, after.line_came - before.line_came)
        if after.line_came
        else None,
    )


def measure_stages(
    scenario: Scenario, samples: Sequence[Sequence[QueueSample]], borders: Sequence[Reading]
) -> list[Stage]:
    """The stages between readings at their BORDERS; SAMPLES, of each queue, are of all times."""
    flows = scenario.flow_list()

    def stage(from_s: float, until_s: float, begin: Reading, end: Reading) -> Stage:
        seconds = (end.time_ns - begin.time_ns) / NS_PER_S
        shares: dict[tuple[str, float], list[float]] = {}
        for flow, rate in zip(flows, flow_rates(begin.flows, end.flows, seconds), strict=True):
            if flow.start_s < until_s and (flow.stop_s is None or flow.stop_s > from_s):
                shares.setdefault((flow.path, flow.rtt_us / 1000), []).append(rate)
        links = [
            measure_queue(
                queue,
                scenario.frame_bytes,
                seconds,
                [sample for sample in of_one if begin.time_ns <= sample.time_ns < end.time_ns],
                (before, after),
                None,
            )
            for queue, of_one, before, after in zip(
                scenario.queues, samples, begin.counters, end.counters, strict=True
            )
        ]
        found = [Share(*kind, len(rates), sum(rates)) for kind, rates in shares.items()]
        return Stage(from_s, until_s, found, links)

    spans = zip(pairwise(scenario.stage_times_s), pairwise(borders), strict=True)
    return [stage(*times, *readings) for times, readings in spans]


def measure(
    scenario: Scenario,
    samples: Sequence[Sequence[QueueSample]],
    warm: Reading,
    end: Reading,
    response_times: Sequence[float | None],
    pages: Sequence[Page] = (),
    short: Sequence[Page] = (),
) -> Metrics:
    """The metrics between the readings at warmup and at the end.

    SAMPLES, of each queue, PAGES and SHORT flows are those between; RESPONSE_TIMES are the
    queues', too.
    """
    seconds = (end.time_ns - warm.time_ns) / NS_PER_S
    queues, flows = scenario.queues, scenario.flow_list()
    links = [
        measure_queue(queue, scenario.frame_bytes, seconds, of_one, (before, after), response)
        for queue, of_one, before, after, response in zip(
            queues, samples, warm.counters, end.counters, response_times, strict=True
        )
    ]
    rates = flow_rates(warm.flows, end.flows, seconds)
    results = [
        FlowResult(flow.path, flow.rtt_us / 1000, flow.cc, rate, b.retransmits - a.retransmits)
        for flow, rate, a, b in zip(flows, rates, warm.flows, end.flows, strict=True)
    ]

    def rtt_s(flow: Flow) -> float:
        waits = (
            link.queue_delay_ms for link, q in zip(links, queues, strict=True) if flow.crosses(q)
        )
        return flow.rtt_us / US_PER_S + sum(waits) / 1000

    def direction(flow_part: slice, link_part: slice) -> Metrics:
        pairs = list(zip(flows, rates, strict=True))[flow_part]
        first = [(flow, rate) for flow, rate in pairs if flow.crosses(queues[0])]
        long = [rate for flow, rate in pairs if abs(flow.leave - flow.entry) == len(scenario.links)]
        return Metrics(
            jain=jain([rate for _, rate in first]),
            goodput_mbps=sum(rate for _, rate in first),
            null_model_jain=null_model_jain([rtt_s(flow) for flow, _ in first]),
            long_share=long_share(scenario, long, len(first)),
            links=links[link_part],
            flows=results[flow_part],
        )

    there, ends = len(scenario.rtts_us), len(scenario.links)
    return replace(
        direction(slice(there), slice(ends)),
        reverse=direction(slice(there, None), slice(ends, None)) if scenario.two_way else None,
        web=measure_web(pages, seconds) if scenario.web else None,
        short=measure_short(scenario, short, seconds) if scenario.short else None,
        udp=[
            UdpResult(stream.path, (b - a) * scenario.frame_bytes * BITS / seconds / MEGA)
            for stream, a, b in zip(scenario.stream_list(), warm.udp, end.udp, strict=True)
        ],
    )
