# SPDX-License-Identifier: GPL-2.0-or-later
"""An outcome as files, as JSON, and as a table for the terminal."""

import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from .experiment import Outcome
from .metrics import MEGA, LinkResult, Metrics, flow_rates, rate_mbps
from .scenario import NS_PER_S, path

RUN_FILE = "run.json"
SERIES_FILE = "series.csv.gz"
SERIES_HEADER = "time_s,series,link,flow,value"
OBSERVED_FILE = "observed.csv.gz"
OBSERVED_HEADER = "time_s,event,value,window"
WIDTH = 79  # columns of the table


def metrics_dict(outcome: Outcome) -> dict[str, object]:
    """The metrics and the verdict, by their JSON keys."""
    verdict = {"ok": not outcome.reasons, "reasons": outcome.reasons}
    return {**outcome.metrics.as_dict(), "fidelity": verdict}


def run_dict(outcome: Outcome) -> dict[str, object]:
    """All that run.json holds."""
    return {
        "scenario": asdict(outcome.scenario),
        "provenance": asdict(outcome.provenance),
        "metrics": metrics_dict(outcome),
    }


def _series(outcome: Outcome) -> Iterator[str]:
    """Rows: queue and probability at each sample, each flow's rate over the second before."""
    yield SERIES_HEADER
    for link, samples in enumerate(outcome.samples):
        for sample in samples:
            time_s = sample.time_ns / NS_PER_S
            yield f"{time_s:.3f},queue_pkts,{link},,{sample.packets}"
            if sample.probability is not None:
                yield f"{time_s:.3f},probability,{link},,{sample.probability:.6g}"
    for before, after in pairwise(outcome.readings):
        time_s = after.time_ns / NS_PER_S
        seconds = time_s - before.time_ns / NS_PER_S
        rates = flow_rates(before.flows, after.flows, seconds)
        for index, rate in enumerate(rates):
            yield f"{time_s:.3f},goodput_mbps,,{index},{rate:.6g}"
        for index, (a, b) in enumerate(zip(before.udp, after.udp, strict=True)):
            rate = rate_mbps((b - a) * outcome.scenario.frame_bytes, seconds)
            yield f"{time_s:.3f},udp_mbps,,{index},{rate:.6g}"
    for name, ended in (("page_s", outcome.pages), ("short_s", outcome.short)):
        for page in ended:
            yield f"{page.time_ns / NS_PER_S:.3f},{name},,{page.session},{page.response_s:.6f}"


def _observed(outcome: Outcome) -> Iterator[str]:
    """Rows: what the watched flow's sender saw, then how many packets its queue has dropped."""
    yield OBSERVED_HEADER
    for sight in outcome.sights:
        time_s = sight.time_ns / NS_PER_S
        if sight.rtt_us is None:
            yield f"{time_s:.6f},retransmit,,"
        else:
            yield f"{time_s:.6f},rtt_us,{sight.rtt_us},{sight.window}"
    for before, after in pairwise(outcome.samples[0]):
        if lost := after.drops - before.drops:
            yield f"{after.time_ns / NS_PER_S:.6f},drops,{lost},"


def write_files(outcome: Outcome, folder: Path) -> None:
    """Write run.json and the series: the same bytes whenever the outcome is the same."""
    text = json.dumps(run_dict(outcome), indent=1, sort_keys=True) + "\n"
    (folder / RUN_FILE).write_text(text)
    _write_rows(folder / SERIES_FILE, _series(outcome))
    if outcome.scenario.observe_us is not None:
        _write_rows(folder / OBSERVED_FILE, _observed(outcome))


def _write_rows(file: Path, rows: Iterator[str]) -> None:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream:
        stream.write("".join(f"{row}\n" for row in rows).encode())
    file.write_bytes(packed.getvalue())


def _known(value: float | None, form: str) -> str:
    return "not told by this qdisc" if value is None else format(value, form)


def _link_rows(found: LinkResult) -> list[tuple[str, str]]:
    """What a person wants to know of one link."""
    return [
        ("utilization", f"{found.utilization:.2%}"),
        (
            "queue",
            f"mean {found.mean_queue_pkts:.1f} packets ({found.queue_delay_ms:.1f} ms),"
            f" std dev {found.stddev_queue_pkts:.1f}, 99% {found.p99_queue_pkts}",
        ),
        ("drops", f"{found.drop_rate:.3%} of arrivals"),
        ("overflow drops", _known(found.overflow_drops, "d")),
        ("marks", _known(found.mark_rate, ".3%")),
        *([("lost behind it", f"{found.line_loss:.3%}")] if found.line_loss is not None else []),
    ]


def _flow_rows(metrics: Metrics) -> list[tuple[str, str]]:
    """What a person wants to know of the flows of one direction."""
    retransmits = sum(flow.retransmits for flow in metrics.flows)
    rates = sorted(flow.goodput_mbps for flow in metrics.flows)
    return [
        ("goodput", f"{metrics.goodput_mbps:.2f} Mb/s"),
        ("fairness (Jain)", f"{metrics.jain:.3f}; null model {metrics.null_model_jain:.3f}"),
        ("flows", f"{len(rates)}, {rates[0]:.3f} to {rates[-1]:.3f} Mb/s"),
        ("retransmits", f"{retransmits}"),
    ]


def table(outcome: Outcome) -> str:
    """The main numbers for a person to read."""
    metrics, scenario = outcome.metrics, outcome.scenario
    rows = _flow_rows(metrics)
    if len(scenario.links) > 1:
        rows.append(("long flows", f"{metrics.long_share:.1%} of their share of the first link"))
    if metrics.reverse and metrics.reverse.flows:
        rows += [(f"back: {name}", value) for name, value in _flow_rows(metrics.reverse)]
    if metrics.udp:
        rates = sorted(stream.rate_mbps for stream in metrics.udp)
        rows.append(("UDP flows", f"{len(rates)}, {rates[0]:.3f} to {rates[-1]:.3f} Mb/s"))
    if metrics.web and metrics.web.mean_response_s is not None:
        rows.append(("web pages", f"{metrics.web.pages}, {metrics.web.goodput_mbps:.2f} Mb/s"))
        mean, p99 = metrics.web.mean_response_s, metrics.web.p99_response_s
        rows.append(("response times", f"mean {mean:.3f} s, 99% {p99:.3f} s"))
    if metrics.short:
        short = metrics.short
        rows.append(("short flows", f"{short.finished} finished, {short.goodput_mbps:.2f} Mb/s"))
        if short.mean_response_s is not None:
            mean, p95 = short.mean_response_s, short.p95_response_s
            rows.append(("their response times", f"mean {mean:.3f} s, 95% {p95:.3f} s"))
    for queue, found in zip(scenario.queues, metrics.all_links, strict=True):
        name = path(queue.near, queue.far)
        rows.append((f"link {name}", f"{queue.link.rate_bps / MEGA:g} Mb/s, {queue.link.qdisc}"))
        rows += _link_rows(found)
    for stage in metrics.stages:
        flows = sum(share.flows for share in stage.shares)
        rate = sum(share.goodput_mbps for share in stage.shares)
        queues = ", ".join(f"{link.mean_queue_pkts:.1f}" for link in stage.links)
        rows.append(
            (
                f"{stage.from_s:g} to {stage.until_s:g} s",
                f"{flows} flows, {rate:.2f} Mb/s, mean queue {queues}",
            )
        )
    rows.append(("fidelity", "ok" if not outcome.reasons else "NOT TO BE TRUSTED"))
    title = f"{scenario.warmup_s:g} to {scenario.duration_s:g} s"
    lines = [title] + [f"  {name:<22}{value}"[:WIDTH] for name, value in rows]
    return "\n".join(lines + [f"  - {reason}" for reason in outcome.reasons])
