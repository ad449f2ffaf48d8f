# SPDX-License-Identifier: GPL-2.0-or-later
"""Congestion predictors, on what one flow saw: PERT's sections 2.2 to 2.4, Figures 2 to 4.

A predictor says from time to time whether delay is high. Between what it says and losses there are
three states, the paper's Figure 1: A, low delay; B, high delay; C, loss. Of the transitions, 2 is
from B to C, a loss foretold; 5 from B to A, a false positive; 4 from A to C, a false negative.
Times are in s, windows in packets.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from .dde import Numbers

THRESHOLD_S = 0.065  # section 2.2: 5 ms above the end-to-end delay of the flow observed
BUFFER = 750  # packets: section 2.4's moving average
VEGAS_BETA = 3.0  # packets in the queue: ns-2's
TRIS_LEAST = 0.5  # of the gradient with one packet in flight: Tri-S
CIM_FEW, CIM_MANY = 2, 20  # round-trip times
ROUNDING_S = 2e-6  # of an ACK's time less its round-trip time, both of whole microseconds

Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Acks:
    """What a sender saw: of each ACK its time, the round-trip time, the window."""

    time: Numbers
    rtt: Numbers
    window: Numbers

    def at(self, chosen: npt.NDArray[np.int64]) -> Acks:
        """Some of them."""
        return Acks(self.time[chosen], self.rtt[chosen], self.window[chosen])

    def rounds(self) -> Acks:
        """One a round trip: the first of a packet that was sent once the one before had come."""
        sent = self.time - self.rtt
        chosen: list[int] = []
        last = -np.inf
        for index, (came, left) in enumerate(zip(self.time.tolist(), sent.tolist(), strict=True)):
            if left >= last - ROUNDING_S:
                chosen.append(index)
                last = came
        return self.at(np.array(chosen, dtype=np.int64))


@dataclass(frozen=True)
class Opinions:
    """What a predictor said, and when: whether delay is high."""

    time: Numbers
    high: Truths


def ewma(values: Numbers, weight: float) -> Numbers:
    """Average with WEIGHT for the past, from the first value on: eq. (5)."""
    found, _ = lfilter([1 - weight], [1, -weight], values, zi=[weight * values[0]])
    averaged: Numbers = found
    return averaged


def moving_mean(values: Numbers, length: int) -> Numbers:
    """Mean of the last LENGTH values, or of those that there are."""
    total = np.concatenate(([0.0], np.cumsum(values)))
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - length, 0)
    means: Numbers = (total[last] - total[first]) / (last - first)
    return means


def held(known: Truths, values: Truths) -> Truths:
    """VALUES where they are KNOWN, elsewhere the last one known; at first false."""
    place = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return (place >= 0) & values[place]


def above(signal: Callable[[Numbers], Numbers]) -> Callable[[Acks], Opinions]:
    """High as long as SIGNAL of the round-trip times, an ACK each, is above the threshold."""
    return lambda acks: Opinions(acks.time, signal(acks.rtt) > THRESHOLD_S)


def card(acks: Acks) -> Opinions:
    """CARD [17]: the delay's gradient over the window is positive. A round trip without a change of
    window or delay is none of high delay."""
    seen = acks.rounds()
    product = np.diff(seen.window) * np.diff(seen.rtt)
    return Opinions(seen.time[1:], product > 0)


def tris(acks: Acks) -> Opinions:
    """TRI-S [29]: the throughput's gradient over the window is less than half of that of the first
    packet. Without a change of window it says what it said before."""
    seen = acks.rounds()
    more = np.diff(seen.window)
    gained = np.diff(seen.window / seen.rtt)
    with np.errstate(divide="ignore", invalid="ignore"):
        gradient = gained / more * seen.rtt[0]
    return Opinions(seen.time[1:], held(more != 0, gradient < TRIS_LEAST))


def dual(acks: Acks) -> Opinions:
    """DUAL [30]: above the mean of the least and the greatest so far."""
    seen = acks.rounds()
    middle = (np.minimum.accumulate(seen.rtt) + np.maximum.accumulate(seen.rtt)) / 2
    return Opinions(seen.time, seen.rtt > middle)


def vegas(acks: Acks) -> Opinions:
    """Vegas [7]: expected less actual throughput, times the least delay, is more than beta."""
    seen = acks.rounds()
    least = np.minimum.accumulate(seen.rtt)
    return Opinions(seen.time, seen.window * (1 - least / seen.rtt) > VEGAS_BETA)


def cim(acks: Acks) -> Opinions:
    """CIM [21]: the mean of few is above that of many."""
    rtt_us = np.rint(1e6 * acks.rtt)  # so that means of the same are the same
    few, many = moving_mean(rtt_us, CIM_FEW), moving_mean(rtt_us, CIM_MANY)
    return Opinions(acks.time, few > many)


@dataclass(frozen=True)
class Predictor:
    """How the paper calls it, and what it says."""

    title: str
    says: Callable[[Acks], Opinions]


PREDICTORS = {
    "card": Predictor("CARD", card),
    "tris": Predictor("TRI-S", tris),
    "dual": Predictor("DUAL", dual),
    "vegas": Predictor("Vegas", vegas),
    "cim": Predictor("CIM", cim),
    "rtt": Predictor("instantaneous RTT", above(lambda rtt: rtt)),
    "mean": Predictor(f"mean of {BUFFER}", above(lambda rtt: moving_mean(rtt, BUFFER))),
    "srtt_875": Predictor("srtt .875", above(lambda rtt: ewma(rtt, 0.875))),
    "srtt_99": Predictor("srtt .99", above(lambda rtt: ewma(rtt, 0.99))),
}

TRANSITIONS = {"AB": 1, "BC": 2, "CA": 3, "AC": 4, "BA": 5, "CB": 6}


@dataclass
class Walk:
    """How often each of the paper's transitions was made, and when its false positives were."""

    counts: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(1, 7), 0))
    false_positives_s: list[float] = field(default_factory=list)

    @property
    def efficiency(self) -> float | None:
        """Of the states of high delay those that ended with a loss; None if there were none."""
        return _share(self.counts[2], self.counts[5])

    @property
    def false_positives(self) -> float | None:
        """Those that did not."""
        return _share(self.counts[5], self.counts[2])

    @property
    def false_negatives(self) -> float | None:
        """Of the losses those at low delay."""
        return _share(self.counts[4], self.counts[2])


def _share(part: int, rest: int) -> float | None:
    return part / (part + rest) if part + rest else None


def walk(
    opinions: Opinions, losses: Numbers, *, since: float = -np.inf, quiet_s: float = 0.0
) -> Walk:
    """The states, from opinions and the times of LOSSES; counted from SINCE on.

    State C ends with the first opinion that comes QUIET_S or more after the last loss: with 0 each
    loss between two opinions is a transition, with a round trip each time of losses is one.
    """
    found = Walk()
    times = np.concatenate((losses, opinions.time))
    names = np.concatenate((np.full(len(losses), "C"), np.where(opinions.high, "B", "A")))
    order = np.argsort(times, kind="stable")
    state, last_loss = "", -np.inf
    for time, name in zip(times[order].tolist(), names[order].tolist(), strict=True):
        if name == "C":
            last_loss = time
        elif state == "C" and time < last_loss + quiet_s:
            continue
        if state and state != name and time >= since:
            number = TRANSITIONS[state + name]
            found.counts[number] += 1
            if number == 5:
                found.false_positives_s.append(time)
        state = name
    return found


@dataclass(frozen=True)
class Observed:
    """What a run with --observe has left: of the flow, and of its queue."""

    acks: Acks
    retransmitted: Numbers
    dropped: Numbers  # when the queue dropped, to 10 ms
    queue: tuple[Numbers, Numbers]  # when, how many packets

    def queue_at(self, times: npt.ArrayLike) -> Numbers:
        """The queue's last sample before each of the times."""
        when, packets = self.queue
        places = np.searchsorted(when, np.asarray(times, np.float64), side="right") - 1
        found: Numbers = packets[np.maximum(places, 0)]
        return found


def read(folder: Path) -> Observed | None:
    """What a run has left in FOLDER; None if it observed no flow."""
    if not (folder / "observed.csv.gz").exists():
        return None
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    with gzip.open(folder / "observed.csv.gz", "rt", newline="") as stream:
        for row in csv.DictReader(stream):
            cells = (row["time_s"], row["value"], row["window"])
            rows[row["event"]].append(tuple(float(cell or "nan") for cell in cells))
    with gzip.open(folder / "series.csv.gz", "rt", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["series"] == "queue_pkts" and row["link"] == "0":
                rows["queue"].append((float(row["time_s"]), float(row["value"])))

    def columns(name: str, count: int) -> list[Numbers]:
        return list(np.array(rows[name], dtype=np.float64).reshape(-1, count).T)

    time, rtt_us, window = columns("rtt_us", 3)
    when, packets = columns("queue", 2)
    period = (when[-1] - when[0]) / (len(when) - 1)
    return Observed(
        Acks(time, rtt_us / 1e6, window),
        columns("retransmit", 3)[0],
        columns("drops", 3)[0] - period / 2,  # some time since the sample before
        (when, packets),
    )


def _shares(found: Walk) -> dict[str, Any]:
    return {
        "efficiency": found.efficiency,
        "false_positives": found.false_positives,
        "false_negatives": found.false_negatives,
        "transitions": [found.counts[number] for number in sorted(found.counts)],
    }


def study(observed: Observed, since: float, rtt_s: float) -> dict[str, Any]:
    """Each predictor's results by its name, and those of the instantaneous round-trip time held
    against the losses of its own flow; `episodes`: losses within RTT_S of each other are one."""
    found: dict[str, Any] = {}
    said = {name: one.says(observed.acks) for name, one in PREDICTORS.items()}
    for name, opinions in said.items():
        apart, together = (
            _shares(walk(opinions, observed.dropped, since=since, quiet_s=quiet_s))
            for quiet_s in (0.0, rtt_s)
        )
        found[name] = {**apart, "episodes": together}
    own, its = (
        _shares(walk(said["rtt"], observed.retransmitted, since=since, quiet_s=quiet_s))
        for quiet_s in (0.0, rtt_s)
    )
    return {"predictors": found, "own_losses": {**own, "episodes": its}}


def false_positive_queue(observed: Observed, since: float) -> Numbers:
    """The queue's length at each false positive of srtt .99: Figure 4."""
    opinions = PREDICTORS["srtt_99"].says(observed.acks)
    return observed.queue_at(walk(opinions, observed.dropped, since=since).false_positives_s)
