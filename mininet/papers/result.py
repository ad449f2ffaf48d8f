# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a run: its metrics, a short series, and what it was made of."""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aqmlab.metrics import jain, percentile, rounded
from aqmlab.scenario import HEADER_BYTES, US_PER_S
from models import predictors

BIN_S = 1.0  # of the series
LAW_MS = 100  # between samples of a law over all of its run


@dataclass(frozen=True)
class Result:
    """A run, as it is kept; one as Python's JSON has it."""

    command: str  # that makes it again, OUT being a folder
    laws: Mapping[str, str]  # by module: a digest of its sources
    scenario: Mapping[str, Any]  # what metrics need to know of it
    provenance: Mapping[str, Any]
    metrics: Mapping[str, Any]
    series: Mapping[str, Any]

    @property
    def qdisc(self) -> str:
        """Of the first link."""
        words: str = self.scenario["links"][0]["qdisc"]
        return words

    def packed(self) -> bytes:
        """As a file: the same bytes whenever the result is the same."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":")) + "\n"
        return gzip.compress(text.encode(), mtime=0)


def unpacked(data: bytes) -> Result:
    """The result of a file's bytes."""
    return Result(**json.loads(gzip.decompress(data)))


def from_folder(
    folder: Path,
    *,
    command: str = "",
    laws: Mapping[str, str] | None = None,
    course: bool = False,
    zoom: tuple[float, float] | None = None,
) -> Result:
    """The result of the run that left FOLDER, with its queues' COURSE over time.

    With ZOOM, its law's too: a sample every LAW_MS, and all between these seconds.
    """
    run = json.loads((folder / "run.json").read_text())
    scenario, made_of, metrics = run["scenario"], run["provenance"], run["metrics"]
    with gzip.open(folder / "series.csv.gz", "rt", newline="") as rows:
        seen = Seen(csv.DictReader(rows))
    series = dict(seen.short(scenario, course, zoom))
    if observed := predictors.read(folder):
        since, rtt_s = scenario["warmup_s"], scenario["rtts_us"][0] / US_PER_S
        metrics |= rounded(predictors.study(observed, since, rtt_s))
        series["false_positive_queue"] = predictors.false_positive_queue(observed, since).tolist()
    metrics["jain_1s"] = rounded(seen.jain_1s(len(metrics["flows"]), scenario["warmup_s"]))
    metrics["flows"] = alike(metrics["flows"])
    if metrics["reverse"]:
        metrics["reverse"]["flows"] = alike(metrics["reverse"]["flows"])
    del metrics["fidelity"]
    sysctls = json.dumps(made_of.pop("sysctls"), sort_keys=True)
    return Result(
        command=command,
        laws=laws or {},
        scenario={
            "links": scenario["links"],
            "frame_bytes": scenario["mtu"] + HEADER_BYTES,
            "duration_s": scenario["duration_s"],
            "warmup_s": scenario["warmup_s"],
            "groups": scenario["groups"],
        },
        provenance={
            **made_of,
            "modules": {name: m for name, m in made_of["modules"].items() if "srcversion" in m},
            "sysctls": hashlib.sha256(sysctls.encode()).hexdigest()[:12],
        },
        metrics=metrics,
        series=series,
    )


def alike(flows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The flows, those of one path, round-trip time and congestion control as one entry."""
    groups = defaultdict(list)
    for flow in flows:
        groups[flow["path"], flow["rtt_ms"], flow["cc"]].append(flow)
    found = []
    for (path, rtt_ms, cc), members in groups.items():
        rates = [flow["goodput_mbps"] for flow in members]
        entry = {
            "path": path,
            "rtt_ms": rtt_ms,
            "cc": cc,
            "flows": len(members),
            "goodput_mbps": statistics.fmean(rates),
            "retransmits": sum(flow["retransmits"] for flow in members),
        }
        if len(members) > 1:
            entry |= {"least_mbps": min(rates), "most_mbps": max(rates)}
        found.append({key: rounded(value) for key, value in entry.items()})
    return found


class Seen:
    """What series.csv.gz holds."""

    def __init__(self, rows: Iterable[Mapping[str, str]]) -> None:
        self.queues: dict[int, list[tuple[float, int]]] = defaultdict(list)  # by link
        self.laws: list[tuple[float, int, float]] = []  # of the first link: s, packets, probability
        self.rates: dict[float, dict[int, float]] = defaultdict(dict)  # by time, then by flow
        for row in rows:
            if row["series"] == "queue_pkts":
                self.queues[int(row["link"])].append((float(row["time_s"]), int(row["value"])))
            elif row["series"] == "probability" and row["link"] == "0":
                time_s, packets = self.queues[0][-1]  # told together
                self.laws.append((time_s, packets, float(row["value"])))
            elif row["series"] == "goodput_mbps":
                self.rates[float(row["time_s"])][int(row["flow"])] = float(row["value"])

    def jain_1s(self, flows: int, warmup_s: float) -> float:
        """Jain's index of the first FLOWS over a second, the mean of the seconds measured."""
        return statistics.fmean(
            jain([rate for flow, rate in rates.items() if flow < flows])
            for time_s, rates in self.rates.items()
            if time_s > warmup_s
        )

    def short(
        self, scenario: Mapping[str, Any], course: bool, zoom: tuple[float, float] | None
    ) -> Iterator[tuple[str, object]]:
        """Of each link the queue, and of the first the law, if asked for; of flows that come in
        groups each group's rate."""
        if course:
            yield "queue", [list(_binned(self.queues[link])) for link in sorted(self.queues)]
        if zoom:
            bins = itertools.groupby(self.laws, lambda sample: round(1000 * sample[0]) // LAW_MS)
            yield "law", [next(members) for _, members in bins]
            yield "law_zoomed", [one for one in self.laws if zoom[0] <= one[0] < zoom[1]]
        if scenario["groups"]:
            size, long = scenario["groups"]["size"], scenario["long"]
            cohorts = [range(first, min(first + size, long)) for first in range(0, long, size)]
            by_time = [self.rates[time_s] for time_s in sorted(self.rates)]
            yield (
                "cohorts",
                [[round(sum(now[flow] for flow in one), 3) for now in by_time] for one in cohorts],
            )


def _binned(samples: Sequence[tuple[float, int]]) -> Iterator[list[float]]:
    """Of each bin of BIN_S: mean, and 10 and 90 % points."""
    for _, members in itertools.groupby(samples, lambda sample: sample[0] // BIN_S):
        lengths = [length for _, length in members]
        mean = round(statistics.fmean(lengths), 1)
        yield [mean, percentile(lengths, 0.1), percentile(lengths, 0.9)]
