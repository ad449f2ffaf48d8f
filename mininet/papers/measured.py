# SPDX-License-Identifier: GPL-2.0-or-later
"""The metrics of runs: what scripts print, and what the papers' models make of it."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab.metrics import MEGA
from aqmlab.scenario import HEADER_BYTES, TCP_IP_HEADERS, TIMESTAMP_OPTION
from models.fifa import exponents, fifa_null_jain
from models.lred import response_bound_s
from models.pert import response_probability
from models.predictors import PREDICTORS

from .result import Result

# Student's t for a two-sided interval of 95 %, by number of runs.
T_95 = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
COHORTS_S = (20, 30)  # after a join
TRANSFER_S = 6  # section 3.1 of FIFA's paper: its example of a transfer at a fair share
FULL, FULL_S = 0.95, 5  # of a link's capacity, in the mean of s, counts as all of it
PERT_DECREASE = 0.35
SHARES = {
    "efficiency": "losses foretold",
    "false_positives": "false positives",
    "false_negatives": "false negatives",
}
EPISODES = {"": "", "_episodes": ", losses of a round trip as one"}
SHORT_QUEUE = 0.5  # of the buffer: PERT's Figure 4


class NoMetricError(Exception):
    """There is no metric of that name in a run."""


@dataclass(frozen=True)
class Measure:
    """How a metric is called and written."""

    title: str
    unit: str = ""
    digits: int = 3
    scale: float = 1  # of the unit to that of JSON: 100 for percent

    def text(self, value: float) -> str:
        return f"{self.scale * value:.{self.digits}f}"

    @property
    def label(self) -> str:
        return f"{self.title}, {self.unit}" if self.unit else self.title


METRICS = {
    "jain": Measure("Jain's index"),
    "jain_1s": Measure("Jain's index over a second"),
    "null_model_jain": Measure("null model"),
    "fifa_null_jain": Measure("FIFA's null model"),
    "goodput_mbps": Measure("goodput", "Mb/s", 2),
    "goodput_share": Measure("goodput", "% of the capacity", 1, 100),
    "long_share": Measure("long flows' part of their fair share"),
    "least_share": Measure("least flow's part of the mean"),
    "utilization": Measure("utilization", "%", 1, 100),
    "mean_queue_pkts": Measure("mean queue", "packets", 1),
    "stddev_queue_pkts": Measure("queue's standard deviation", "packets", 1),
    "queue_delay_ms": Measure("mean queue", "ms", 2),
    "queue_share": Measure("mean queue", "% of the buffer", 1, 100),
    "drop_rate": Measure("dropped", "%", 3, 100),
    "overflow_rate": Measure("dropped for want of room", "%", 3, 100),
    "mark_rate": Measure("marked", "%", 3, 100),
    "line_loss": Measure("lost behind the queue", "%", 3, 100),
    "hidden_rate": Measure("losses hidden by copies", "%", 3, 100),
    "net_loss": Measure("dropped, less what is hidden", "%", 3, 100),
    "response_time_s": Measure("response time", "s", 1),
    "response_bound_s": Measure("the paper's bound of it", "s", 1),
    "pert_equilibrium_ms": Measure("steady state by the formula", "ms", 1),
    "first_cc_share": Measure("the first sender's part of its fair share"),
    **{
        f"cohorts_{join}": Measure(f"largest cohort over smallest, 20 to 30 s after join {join}")
        for join in range(1, 4)
    },
    "page_response_s": Measure("mean response time of web pages", "s", 3),
    **{
        f"{share}_{name}{ending}": Measure(f"{title}: {what}{how}", "%", 1, 100)
        for share, what in SHARES.items()
        for name, title in (
            *((name, one.title) for name, one in PREDICTORS.items()),
            ("own", "instantaneous RTT and the flow's own losses"),
        )
        for ending, how in EPISODES.items()
    },
    "false_positives_short_queue": Measure(
        "srtt .99: false positives at less than half of the buffer", "%", 1, 100
    ),
    "rtt_ratio": Measure("shortest round-trip time over the longest", digits=2),
    "transfer_s": Measure(f"transfer of {TRANSFER_S} s of a fair share", "s", 1),
    "recovery_s": Measure("until the link is full again", "s", 1),
    "unsent_mbit": Measure("not sent until then", "Mb", 0),
}
# Of a chain's link, and of the way back.
PLACED = re.compile(r"(reverse\.)?(?:links\.(\d+)\.)?(\w+)")


def known_metric(name: str) -> bool:
    """Whether NAME is one of METRICS, be it of a link (links.0.jain) or of the way back."""
    found = PLACED.fullmatch(name)
    return found is not None and (name in METRICS or found[3] in METRICS.keys() - DERIVED.keys())


def measure_of(name: str) -> Measure:
    """How metric NAME is written."""
    found = PLACED.fullmatch(name)
    assert found
    one = METRICS[found[3]]
    title = one.title
    if found[2]:
        near = ord("A") + int(found[2])
        title += f" at {chr(near)}{chr(near + 1)}"
    return replace(one, title=title + (", on the way back" if found[1] else ""))


def pert_equilibrium_ms(rtt_ms: float, flows: int, packets_s: float) -> float:
    """PERT's queueing delay in the steady state: p of its curve is 2 / (0.35 W^2).

    W = C (R + q) / N. By bisection: the curve rises with the queue, the right side falls.
    """

    def too_long(queue_ms: float) -> bool:
        window = packets_s * (rtt_ms + queue_ms) / 1000 / flows
        return response_probability(queue_ms) > 2 / (PERT_DECREASE * window**2)

    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if too_long(middle) else (middle, high)
    return low


def found_at(metrics: Any, path: str) -> float | None:
    """The metric at PATH: jain, or links.0.drop_rate; NoMetricError if there is none."""
    for step in path.split("."):
        try:
            metrics = metrics[int(step) if isinstance(metrics, list) else step]
        except (LookupError, ValueError, TypeError):
            raise NoMetricError(f"no {path} in these runs") from None
    number: float | None = metrics
    return number


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of the values, and half of its 95 % interval, which a single one has not."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None
    return mean, T_95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))


def found_metric(result: Result, name: str) -> float | None:
    """Metric NAME of a run; None where the run has no such number."""
    if name in DERIVED:
        return DERIVED[name](result)
    return found_at(result.metrics, name)


def _each(result: Result, key: str) -> list[Any]:
    """KEY of each flow."""
    return [flow[key] for flow in result.metrics["flows"] for _ in range(flow["flows"])]


def _least_share(result: Result) -> float | None:
    flows = result.metrics["flows"]
    mean = statistics.fmean(_each(result, "goodput_mbps"))
    least: float = min(flow.get("least_mbps", flow["goodput_mbps"]) for flow in flows)
    return least / mean if mean else None


def _first_cc_share(result: Result) -> float | None:
    """What the flows of the first congestion control get of what they would if all got alike."""
    pairs = list(zip(_each(result, "cc"), _each(result, "goodput_mbps"), strict=True))
    mine = [rate for cc, rate in pairs if cc == pairs[0][0]]
    mean = statistics.fmean(rate for _, rate in pairs)
    return statistics.fmean(mine) / mean if mean else None


def _equilibrium(result: Result) -> float | None:
    rtts = _each(result, "rtt_ms")
    if len(set(rtts)) > 1:
        return None
    link = result.scenario["links"][0]
    packets_s = link["rate_bps"] / 8 / result.scenario["frame_bytes"]
    return pert_equilibrium_ms(rtts[0], len(rtts), packets_s)


def buffer_pkts(result: Result) -> int | None:
    """The limit of the first link's queue."""
    found = re.search(r"\blimit (\d+)\b", result.qdisc)
    return int(found[1]) if found else None


def _queue_share(result: Result) -> float | None:
    buffer = buffer_pkts(result)
    mean: float = result.metrics["mean_queue_pkts"]
    return mean / buffer if buffer else None


def _most_goodput(result: Result) -> float:
    """Mb/s, if the first link is never idle and nothing is sent twice; IPv4."""
    frame = result.scenario["frame_bytes"]
    payload = frame - HEADER_BYTES - TCP_IP_HEADERS[False] - TIMESTAMP_OPTION
    most: float = result.scenario["links"][0]["rate_bps"] / frame * payload / MEGA
    return most


def _goodput_share(result: Result) -> float:
    """Packets that came for the first time, of those that the link can carry."""
    share: float = result.metrics["goodput_mbps"] / _most_goodput(result)
    return share


def _line_loss(result: Result) -> float:
    lost: float | None = result.metrics["line_loss"]
    return lost or 0.0


def _hidden_rate(result: Result) -> float:
    """Losses behind the queue that nobody sees, of the packets that came to it: xqm's by copy.

    What leaves beyond what was let in are copies, and of a packet with one, both must be lost.
    """
    metrics, scenario = result.metrics, result.scenario
    seconds = scenario["duration_s"] - scenario["warmup_s"]
    packets_s = scenario["links"][0]["rate_bps"] / 8 / scenario["frame_bytes"]
    sent = metrics["utilization"] * packets_s * seconds / metrics["arrivals"]
    lost = _line_loss(result)
    copies: float = sent - (1 - metrics["drop_rate"])
    return max(copies, 0.0) * lost * (1 - lost)


def _net_loss(result: Result) -> float:
    dropped: float = result.metrics["drop_rate"]
    return dropped - _hidden_rate(result)


def _rtt_ratio(result: Result) -> float:
    rtts: list[float] = _each(result, "rtt_ms")
    return min(rtts) / max(rtts)


def _last_cohort(result: Result) -> tuple[list[float], int] | None:
    """Mb/s in each second of the flows that came last, and when the first group left."""
    groups = result.scenario["groups"]
    cohorts = result.series.get("cohorts", [])
    if not groups or groups["leave_s"] is None or len(cohorts) < 2:
        return None
    return cohorts[-1], round(groups["leave_s"])


def _transfer_s(result: Result) -> float | None:
    """How long the last group takes, from when it comes, for TRANSFER_S of a fair share's data."""
    if not (found := _last_cohort(result)):
        return None
    join = round(result.scenario["groups"]["join_s"]) * (len(result.series["cohorts"]) - 1)
    fair = _most_goodput(result) / len(_each(result, "rtt_ms"))
    left = fair * TRANSFER_S
    for second, rate in enumerate(found[0][join : found[1]]):
        if rate >= left:
            return second + left / rate
        left -= rate
    return None


def _recovery_s(result: Result) -> int | None:
    """From when the first group left to the first FULL_S in which the last one fills the link."""
    if not (found := _last_cohort(result)):
        return None
    rates, most = found[0][found[1] :], _most_goodput(result)
    for second in range(len(rates) - FULL_S + 1):
        if statistics.fmean(rates[second : second + FULL_S]) >= FULL * most:
            return second
    return None


def _unsent_mbit(result: Result) -> float | None:
    """What the last group could have sent more until then: the area above Figure 3's lines."""
    if (found := _last_cohort(result)) is None or (until := _recovery_s(result)) is None:
        return None
    rates, most = found[0][found[1] :], _most_goodput(result)
    return sum(most - rate for rate in rates[:until])


def _overflow_rate(result: Result) -> float | None:
    drops, arrivals = result.metrics["overflow_drops"], result.metrics["arrivals"]
    if drops is None and result.qdisc.startswith("pfifo"):  # has no other drops
        return found_at(result.metrics, "drop_rate")
    return None if drops is None else drops / max(arrivals, 1)


def _page_response(result: Result) -> float | None:
    web = result.metrics["web"]
    return found_at(web, "mean_response_s") if web else None


def _predictor(share: str, name: str, ending: str) -> Callable[[Result], float | None]:
    """How well a predictor did on the flow that was watched."""

    def found(result: Result) -> float | None:
        at = "own_losses" if name == "own" else f"predictors.{name}"
        return found_at(result.metrics, f"{at}{ending.replace('_', '.')}.{share}")

    return found


def _short_queue(result: Result) -> float | None:
    buffer, lengths = buffer_pkts(result), result.series.get("false_positive_queue")
    if not buffer or not lengths:
        return None
    return statistics.fmean(length < SHORT_QUEUE * buffer for length in lengths)


def _cohorts(join: int) -> Callable[[Result], float | None]:
    """Of the groups that are there after a JOIN (the first is number 1)."""

    def spread(result: Result) -> float | None:
        groups = result.scenario["groups"]
        cohorts = result.series.get("cohorts", [])
        if not groups or len(cohorts) <= join:
            return None
        begin = round(groups["join_s"] * join) + COHORTS_S[0]
        end = begin + COHORTS_S[1] - COHORTS_S[0]
        means = [statistics.fmean(rates[begin:end]) for rates in cohorts[: join + 1]]
        return max(means) / min(means) if min(means) else None

    return spread


DERIVED: dict[str, Callable[[Result], float | None]] = {
    "fifa_null_jain": lambda result: fifa_null_jain(
        _each(result, "rtt_ms"), result.metrics["queue_delay_ms"], *exponents(result.qdisc)
    ),
    "response_bound_s": lambda result: response_bound_s(result.qdisc, result.metrics["drop_rate"]),
    "least_share": _least_share,
    "first_cc_share": _first_cc_share,
    "pert_equilibrium_ms": _equilibrium,
    "goodput_share": _goodput_share,
    "queue_share": _queue_share,
    "overflow_rate": _overflow_rate,
    "page_response_s": _page_response,
    "line_loss": _line_loss,
    "hidden_rate": _hidden_rate,
    "net_loss": _net_loss,
    "rtt_ratio": _rtt_ratio,
    "transfer_s": _transfer_s,
    "recovery_s": _recovery_s,
    "unsent_mbit": _unsent_mbit,
    **{f"cohorts_{join}": _cohorts(join) for join in range(1, 4)},
    **{
        f"{share}_{name}{ending}": _predictor(share, name, ending)
        for share in SHARES
        for name in (*PREDICTORS, "own")
        for ending in EPISODES
    },
    "false_positives_short_queue": _short_queue,
}
