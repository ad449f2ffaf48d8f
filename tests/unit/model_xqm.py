# SPDX-License-Identifier: GPL-2.0-or-later
"""XQM in floating point: every flow is controlled at every control instant (eqs. 16 to 20)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

BINS = 20
ONOFF, PI_T, PI_TB = range(3)


def quiescent(share: float, rtt: float) -> float:
    """Eq. (16), for packets a second and seconds."""
    return 2 / ((share * rtt) ** 2 + 2)


@dataclass
class Flow:
    """A flow; its RTT without queues, in s."""

    rtt: float
    weight: int
    responsive: bool
    start: int = 0
    last_bin: int | None = None
    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    throughput: float | None = None
    rate: float = 0.0
    quiescent: float = 0.0


@dataclass
class Xqm:
    """An XQM queue, its capacity in packets/s and its times in ns."""

    control: int
    smooth: bool
    target: float
    period: int
    bin: int
    """Control periods in a bin."""
    delta: float
    phi: float
    capacity: float
    flows: list[Flow]

    def seen(self, flow: Flow, bin: int) -> bool:
        """Whether a packet of the flow came within the measurement period."""
        return flow.last_bin is not None and bin - flow.last_bin <= BINS

    def share(self, bin: int) -> float:
        """Of a flow of weight 1."""
        weights = sum(flow.weight for flow in self.flows if self.seen(flow, bin))
        return self.capacity / max(weights, 1)

    def bound(self, flow: Flow, share: float) -> None:
        """The quiescent loss rate, at which a flow begins."""
        known = flow.quiescent > 0
        r = flow.rtt + self.target / self.capacity
        flow.quiescent = quiescent(share * flow.weight, r) if flow.responsive else 1.0
        if not known and flow.responsive:
            flow.rate = flow.quiescent
        flow.rate = self.limited(flow, flow.rate)

    def limited(self, flow: Flow, rate: float) -> float:
        """A loss rate within what may be imposed, or hidden."""
        floor = -flow.quiescent if self.smooth and flow.responsive else 0.0
        return min(max(rate, floor), flow.quiescent)

    def step(self, instant: int, backlog: float) -> None:
        """A control instant."""
        old_bin, new_bin = (instant - 1) // self.bin, instant // self.bin
        share, new_share = self.share(old_bin), self.share(new_bin)
        for flow in self.flows:
            if not self.seen(flow, old_bin):
                continue
            # unknown in its first bin
            x = share * flow.weight if flow.throughput is None else flow.throughput
            if new_bin > old_bin:
                window = sum(flow.counts[new_bin - 1 - i] for i in range(BINS))
                age = min(BINS * self.bin, new_bin * self.bin - flow.start)
                flow.throughput = window / (age * self.period / 1e9)
            if not self.seen(flow, new_bin):
                continue
            self.bound(flow, new_share)
            if self.control == ONOFF:
                over = (flow.throughput or 0.0) > new_share * flow.weight
                flow.rate = flow.quiescent if over else 0.0
                continue
            change = self.delta * (x - share * flow.weight)
            if self.control == PI_TB:
                change += self.phi * (backlog - self.target)
            flow.rate = self.limited(flow, flow.rate + change)

    def run(self, events: Iterable[tuple[int, int, float]]) -> Iterator[tuple[Flow, float]]:
        """The flow of each packet (time, flow, backlog after it) as it is then, and its share."""
        instant = 22 * self.bin  # no flow has been seen for long
        next_time, backlog = self.period, 0.0
        for time, number, after in events:
            while next_time <= time:
                instant += 1
                self.step(instant, backlog)
                next_time += self.period
            backlog = after
            flow = self.flows[number]
            bin = instant // self.bin
            if not self.seen(flow, bin):
                flow.start, flow.throughput = instant, None
                flow.rate = flow.quiescent = 0.0
                flow.counts.clear()
            flow.last_bin = bin
            share = self.share(bin)
            self.bound(flow, share)
            yield flow, share * flow.weight
            flow.counts[bin] += 1
