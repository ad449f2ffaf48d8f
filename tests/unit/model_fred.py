# SPDX-License-Identifier: GPL-2.0-or-later
"""FRED in floating point: the paper's listing, with ns-2's first packet of a random mode."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Flow:
    """What is known of a flow that has packets queued."""

    qlen: int = 0
    strike: int = 0


@dataclass
class Fred:
    """A FRED queue, in packets; times in ns."""

    min_th: float
    max_th: float
    max_p: float
    w_q: float
    minq: int
    send_time: float
    avg: float = 0.0
    count: int = 0
    above: bool = False
    idle_from: int | None = 0
    flows: dict[int, Flow] = field(default_factory=lambda: defaultdict(Flow))

    def _avgcq(self) -> float:
        active = sum(flow.qlen > 0 for flow in self.flows.values())
        return max(self.avg / active if active else self.avg, 1.0)

    def _step(self, queue: int) -> None:
        self.avg = (1 - self.w_q) * self.avg + self.w_q * queue

    def arrive(self, time: int, number: int, random: float) -> tuple[float, bool]:
        """The probability with which a packet is dropped, and whether it is."""
        queue = sum(flow.qlen for flow in self.flows.values())
        if not queue:
            if self.idle_from is not None and time > self.idle_from:
                self.avg *= (1 - self.w_q) ** ((time - self.idle_from) / self.send_time)
                self.idle_from = time
            self._step(0)
        flow = self.flows[number]
        p = self._decide(flow)
        hit = random < p
        if not hit:
            if queue:
                self._step(queue)
            self.idle_from = None
            flow.qlen += 1
        return p, hit

    def _decide(self, flow: Flow) -> float:
        avgcq = self._avgcq()
        if (
            flow.qlen >= self.min_th  # maxq
            or (self.avg >= self.max_th and flow.qlen > 2 * avgcq)
            or (flow.qlen >= avgcq and flow.strike > 1)
        ):
            flow.strike += 1
            return 1.0
        if self.avg < self.min_th:
            self.above = False
            return 0.0
        if self.avg >= self.max_th:
            return 1.0
        if not self.above:
            self.above, self.count = True, 1
            return 0.0
        self.count += 1
        if flow.qlen < max(self.minq, avgcq):
            return 0.0
        p_b = self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th)
        return min(1.0, p_b / (1 - self.count * p_b)) if self.count * p_b < 1 else 1.0

    def dropped_at_random(self) -> None:
        self.count = 0

    def depart(self, time: int, number: int) -> None:
        flow = self.flows[number]
        flow.qlen -= 1
        if not flow.qlen:
            del self.flows[number]
        queue = sum(flow.qlen for flow in self.flows.values())
        self._step(queue)
        if not queue:
            self.idle_from = time


@dataclass(frozen=True)
class Event:
    """A packet of a flow comes, or the oldest one goes if there is no flow."""

    time: int
    flow: int | None
    random: float


def replay(fred: Fred, events: Sequence[Event]) -> list[tuple[float, float, float]]:
    """At each event: the probability (0 for a departure), and avg and avgcq after it."""
    queue: list[int] = []
    seen = []
    for event in events:
        p = 0.0
        if event.flow is None:
            if queue:
                fred.depart(event.time, queue.pop(0))
        else:
            strikes = fred.flows[event.flow].strike
            p, hit = fred.arrive(event.time, event.flow, event.random)
            if not hit:
                queue.append(event.flow)
            elif fred.flows[event.flow].strike == strikes:
                fred.dropped_at_random()
        seen.append((p, fred.avg, fred._avgcq()))
    return seen
