#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's folder as a data file of flent, which its plots and its --gui open.

    mininet/flent_data.py out/p run.flent.gz
    flent -i run.flent.gz -p upload -o upload.png

To flent it is a `tcp_nup`: each flow is an upload, the queue of each link a `qdisc_stats_AB`. No
ping was sent: what stands for it is the shortest base round-trip time and the queues' delay.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab.metrics import jain, queue_delay_s
from aqmlab.scenario import HEADER_BYTES, path
from papers.result import Seen

VERSION = 4  # of flent's format
START, START_S = "2027-01-15T08:00:00.000000Z", 1_800_000_000  # of the lab's clock, as of all runs
SUFFIX = ".flent.gz"


def data_file(folder: Path, title: str = "") -> dict[str, Any]:
    """The content of the data file."""
    run = json.loads((folder / "run.json").read_text())
    scenario, made_of = run["scenario"], run["provenance"]
    frame = scenario["mtu"] + HEADER_BYTES
    with gzip.open(folder / "series.csv.gz", "rt", newline="") as rows:
        seen = Seen(csv.DictReader(rows))
    times = sorted(seen.rates)
    links = {path(near, near + 1): near for near in range(len(scenario["links"]))}
    delays = {
        name: queue_at(seen.queues[near], times, frame, scenario["links"][near]["rate_bps"])
        for name, near in links.items()
    }
    by_time = [list(seen.rates[time].values()) for time in times]
    uploads = {
        f"TCP upload::{flow + 1}": [seen.rates[time][flow] for time in times]
        for flow in sorted(seen.rates[times[0]])
    }
    shortest_ms = min(scenario["rtts_us"]) / 1000
    results: dict[str, list[float]] = {
        "TCP upload avg": [statistics.fmean(now) for now in by_time],
        "TCP upload sum": [sum(now) for now in by_time],
        "TCP upload fairness": [jain(now) for now in by_time],
        "Ping (ms) ICMP": [shortest_ms + sum(now) for now in zip(*delays.values(), strict=True)],
        **uploads,
        **{f"qdisc_stats_{name}": found for name, found in delays.items()},
    }
    raw: dict[str, list[dict[str, float]]] = {
        name: [{"t": START_S + time, "val": rate} for time, rate in zip(times, of_one, strict=True)]
        for name, of_one in uploads.items()
    }
    for name, near in links.items():
        rate = scenario["links"][near]["rate_bps"]
        raw[f"qdisc_stats_{name}"] = [
            {
                "t": START_S + time,
                "backlog_pkts": packets,
                "backlog_bytes": packets * frame,
                "delay": 1000 * queue_delay_s(packets, frame, rate),
            }
            for time, packets in seen.queues[near]
        ]
    parameters = {
        "upload_streams": len(uploads),
        "qdisc_stats_hosts": ",".join(links),
        "qdisc_stats_interfaces": ",".join("bottleneck" for _ in links),
    }
    return {
        "version": VERSION,
        "x_values": times,
        "results": results,
        "raw_values": raw,
        "metadata": metadata(scenario, made_of, parameters, title),
    }


def metadata(
    scenario: Mapping[str, Any],
    made_of: Mapping[str, Any],
    parameters: Mapping[str, object],
    title: str,
) -> dict[str, object]:
    """What flent asks to know."""
    qdiscs = "; ".join(link["qdisc"] for link in scenario["links"])
    return {
        "NAME": "tcp_nup",
        "TITLE": title or qdiscs,
        "NOTE": f"aqmkit, {made_of['clock']} time, seed {scenario['seed']}: {qdiscs}",
        "TIME": START,
        "T0": START,
        "LENGTH": scenario["duration_s"],
        "TOTAL_LENGTH": scenario["duration_s"],
        "STEP_SIZE": 1.0,
        "HOST": "sink",
        "HOSTS": ["sink"],
        "LOCAL_HOST": "source",
        "IP_VERSION": 6 if scenario["ipv6"] else 4,
        "TEST_PARAMETERS": parameters,
        "DATA_FILENAME": None,
        "KERNEL_RELEASE": made_of["kernel"],
        "MODULE_VERSIONS": made_of["modules"],
        "SYSCTLS": made_of["sysctls"],
    }


def queue_at(
    samples: list[tuple[float, int]], times: list[float], frame: int, rate_bps: int
) -> list[float]:
    """The mean delay, in ms, of a queue in the second before each of TIMES."""
    bins: dict[int, list[int]] = defaultdict(list)
    for time, packets in samples:
        bins[int(time)].append(packets)
    return [
        1000 * queue_delay_s(statistics.fmean(bins[int(time) - 1] or [0]), frame, rate_bps)
        for time in times
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="mininet/flent_data.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, help="that dumbbell.py or multihop.py wrote")
    parser.add_argument("file", type=Path, help=f"to write: its name ends with {SUFFIX}")
    parser.add_argument("--title", default="", help="in the plots (the qdiscs)")
    args = parser.parse_args()
    if not args.file.name.endswith(SUFFIX):
        parser.error(f"{args.file}: its name must end with {SUFFIX}, or flent does not know it")
    try:
        found = data_file(args.folder, args.title)
    except FileNotFoundError as missing:
        parser.error(f"{missing.filename}: there is no such run")
    text = json.dumps({**found, "metadata": {**found["metadata"], "DATA_FILENAME": args.file.name}})
    args.file.write_bytes(gzip.compress(text.encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
