# SPDX-License-Identifier: GPL-2.0-or-later
"""aqm-top: the queues of devices as they are now, for a person, a collector or Prometheus.

Needs tc, and for a person Python's rich. Classes are asked of the kernel: tc 6.1 has no JSON
of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import ExperimentError, RefusedError
from .netlink import RTM_GETTCLASS, Route, attributes, tc_message
from .options import USAGE, Parser, checked, whole
from .sampler import AQMKIT_KINDS, TCA_STATS_APP, statistics
from .scenario import NS_PER_S, parse_positive
from .tc import ask

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Shown = dict[str, Any]  # a qdisc or class, as tc -j shows it

FAILED = 1  # exit status
MIN_INTERVAL_S = 0.1
MAX_COUNT = 1_000_000_000
TREND = 60  # readings
BARS = " ▁▂▃▄▅▆▇█"
NO_QUEUE, XQM = "noqueue", "xqm"
HANDLE_OFFSET = 8  # in struct tcmsg
NS = 1 / NS_PER_S


@dataclass(frozen=True)
class Stat:
    """A statistic: its metric, in base units, and what that says."""

    metric: str
    says: str
    scale: float = 1

    @property
    def counts(self) -> bool:
        """Whether it only ever grows."""
        return self.metric.endswith("_total")


# What all qdiscs have: names and words are those of node_exporter's collector `qdisc`, which
# tells of root qdiscs only.
STANDARD = {
    "bytes": Stat("node_qdisc_bytes_total", "Number of bytes sent."),
    "packets": Stat("node_qdisc_packets_total", "Number of packets sent."),
    "drops": Stat("node_qdisc_drops_total", "Number of packets dropped."),
    "requeues": Stat(
        "node_qdisc_requeues_total", "Number of packets dequeued, not transmitted, and requeued."
    ),
    "overlimits": Stat("node_qdisc_overlimits_total", "Number of overlimit packets."),
    "qlen": Stat(
        "node_qdisc_current_queue_length", "Number of packets currently in queue to be sent."
    ),
    "backlog": Stat("node_qdisc_backlog", "Number of bytes currently in queue to be sent."),
}
# What ours have besides; the man pages say it at length.
OWN = {
    "prob": Stat("aqm_probability", "Probability with which the law marks or drops."),
    "delay": Stat("aqm_delay_seconds", "How long the packet that left last had waited.", NS),
    "queue": Stat("aqm_queue_packets", "Packets that wait, segments counted."),
    "maxq": Stat("aqm_max_queue_packets", "The most packets that ever waited."),
    "pkts_in": Stat("aqm_accepted_packets_total", "Packets accepted into the queue."),
    "overlimit": Stat("aqm_overflow_packets_total", "Packets dropped for want of room."),
    "dropped": Stat("aqm_early_drops_total", "Packets dropped early, by the law."),
    "ecn_mark": Stat("aqm_marks_total", "Packets marked (CE)."),
    "protected": Stat("aqm_protected_packets_total", "Packets spared by their code point."),
    "price": Stat("aqm_price", "REM's price."),
    "capacity": Stat("aqm_capacity_packets_per_second", "Packets of mean length the link carries."),
    "loss_ratio": Stat("aqm_loss_ratio", "LRED's measured share of packets lost."),
    "arrivals": Stat("aqm_arrived_packets_total", "Packets that came, dropped or not."),
    "prob_scaled": Stat("aqm_scaled_probability", "FIFA's, for the last packet with a label."),
    "rtt_avg": Stat("aqm_rtt_average_seconds", "Mean round-trip time of flows.", NS),
    "rtt_formula": Stat("aqm_rtt_formula_seconds", "FIFA's time that scales to itself.", NS),
    "labelled": Stat("aqm_labelled_packets_total", "Packets that had a label."),
    "unlabelled": Stat("aqm_unlabelled_packets_total", "Packets that had none."),
    "hit_robust": Stat("aqm_robust_hits_total", "Early drops and marks of robust flows."),
    "hit_fragile": Stat("aqm_fragile_hits_total", "Early drops and marks of fragile flows."),
    "avg": Stat("aqm_average_queue_packets", "RED's average queue."),
    "flows": Stat("aqm_flows", "Flows that share the link now."),
    "share": Stat("aqm_share_packets_per_second", "XQM's share of a flow of weight 1."),
    "imposed": Stat("aqm_imposed_packets_total", "Early drops and marks of XQM's flows."),
    "hidden": Stat("aqm_hidden_packets_total", "Packets hidden from losses elsewhere."),
    "exempt": Stat("aqm_exempt_packets_total", "Packets of short flows, left alone."),
    "evicted": Stat("aqm_evicted_flows_total", "Flows forgotten for want of room."),
    "not_shown": Stat("aqm_flows_not_shown", "Flows too many to be shown as classes."),
    "virtual_capacity": Stat(
        "aqm_virtual_capacity_packets_per_second", "Of AVQ's link that is only thought of."
    ),
    "virtual_queue": Stat("aqm_virtual_queue_packets", "Its queue."),
    "fair_rate": Stat("aqm_fair_rate_bytes_per_second", "CSFQ's alpha."),
    "arrival_rate": Stat("aqm_arrival_rate_bytes_per_second", "At which packets come."),
    "accepted_rate": Stat("aqm_accepted_rate_bytes_per_second", "At which they are accepted."),
    "congested": Stat("aqm_congested", "1 while the link is."),
    "active": Stat("aqm_active_flows", "FRED's flows with packets queued."),
    "struck": Stat("aqm_strikes_total", "Packets that were strikes."),
}
# Those of xqm's classes, by tc's names: number in pkt_sched_xqm.h, and bits behind the point.
CLASS = {
    "share": (41, 8),
    "throughput": (42, 8),
    "rtt": (43, 0),
    "quiescent": (44, 32),
    "imposed_rate": (45, 32),
    "exogenous": (46, 32),
    "hidden_share": (47, 32),
    "weight": (48, 0),
}
NAMES = ("device", "kind", "handle", "parent")  # the metrics' labels
UNITS = {"seconds": "ms", "packets": "p", "second": "p/s"}  # by how a metric ends
FLOW_COLUMNS = (
    ("throughput", "throughput\np/s", ".1f"),
    ("share", "share\np/s", ".1f"),
    ("rtt", "RTT\nms", ".1f"),
    ("quiescent", "quiescent\nloss", ".2%"),
    ("imposed_rate", "imposed\nhere", ".2%"),
    ("exogenous", "lost\nelsewhere", ".2%"),
    ("hidden_share", "hidden", ".1%"),
    ("weight", "weight", "d"),
)


def statistics_of(kind: str) -> dict[str, Stat]:
    """What is known of the statistics of a kind of qdisc, by tc's names."""
    return STANDARD | OWN if kind in AQMKIT_KINDS else STANDARD


@dataclass(frozen=True)
class Reading:
    """The queues of a device at one time."""

    device: str
    time_s: float  # since 1970
    qdiscs: list[Shown]
    flows: list[Shown]  # xqm's classes

    def flows_of(self, qdisc: Shown) -> list[Shown]:
        """Those of QDISC, the fastest first."""
        its = [flow for flow in self.flows if flow["handle"].startswith(qdisc["handle"])]
        return sorted(its, key=lambda flow: -flow.get("throughput", 0))


def read(device: str) -> Reading:
    """Ask tc; ExperimentError in its words, or because they cannot be understood."""
    said = ask("-s", "-j", "qdisc", "show", "dev", device)
    try:
        found: list[Shown] = json.loads(said or "[]")
    except ValueError:
        raise ExperimentError(
            f"{device} has a queue that tc cannot show as JSON: does tc find aqmkit's plug-ins"
            " (TC_LIB_DIR)?"
        ) from None
    qdiscs = [qdisc for qdisc in found if qdisc["kind"] != NO_QUEUE]
    by_flow = any(qdisc["kind"] == XQM for qdisc in qdiscs)
    return Reading(device, time.time(), qdiscs, _classes(device) if by_flow else [])


def _classes(device: str) -> list[Shown]:
    """Those of xqm, as newer tc would show them."""
    with contextlib.closing(Route()) as route:
        messages = route.dump(RTM_GETTCLASS, tc_message(socket.if_nametoindex(device)))
    found = []
    for message in messages:
        kind, stats = statistics(message)
        if kind == XQM and TCA_STATS_APP in stats:
            (handle,) = struct.unpack_from("=L", message, HANDLE_OFFSET)
            app = attributes(stats[TCA_STATS_APP])
            values = {
                name: int.from_bytes(app[number], sys.byteorder) / (1 << bits)
                if bits
                else int.from_bytes(app[number], sys.byteorder)
                for name, (number, bits) in CLASS.items()
                if number in app
            }
            found.append({"handle": f"{handle >> 16:x}:{handle & 0xFFFF:x}", **values})
    return found


def rates(before: Shown, after: Shown, seconds: float) -> dict[str, float]:
    """What happened a second, by tc's names; nothing if it is no longer the same qdisc."""
    if before["kind"] != after["kind"] or seconds <= 0:
        return {}
    counters = [name for name, stat in statistics_of(after["kind"]).items() if stat.counts]
    grown = {name: after[name] - before[name] for name in counters if name in before.keys() & after}
    if any(amount < 0 for amount in grown.values()):  # it was replaced
        return {}
    return {name: amount / seconds for name, amount in grown.items()}


@dataclass
class Watch:
    """What is remembered of a device from one reading to the next."""

    now: Reading
    before: Reading | None = None
    trends: dict[str, deque[int]] = field(default_factory=dict)  # queue lengths, by handle

    def __post_init__(self) -> None:
        self._note()

    def update(self, reading: Reading) -> None:
        """Take the next READING."""
        self.before, self.now = self.now, reading
        self._note()

    def _note(self) -> None:
        for qdisc in self.now.qdiscs:
            trend = self.trends.setdefault(_place(qdisc), deque(maxlen=TREND))
            trend.append(qdisc["qlen"])

    def rates(self, qdisc: Shown) -> dict[str, float]:
        """What QDISC did a second since the reading before."""
        if not self.before:
            return {}
        seconds = self.now.time_s - self.before.time_s
        same = [other for other in self.before.qdiscs if _place(other) == _place(qdisc)]
        return rates(same[0], qdisc, seconds) if same else {}


def _parent(qdisc: Shown) -> str:
    return "root" if qdisc.get("root") else str(qdisc.get("parent", ""))


def _place(qdisc: Shown) -> str:
    return f"{qdisc['handle']} {_parent(qdisc)}"


def json_lines(watch: Watch) -> Iterator[str]:
    """One object for each qdisc of the reading, all in tc's names and units."""
    for qdisc in watch.now.qdiscs:
        line = {"time": round(watch.now.time_s, 3), "device": watch.now.device, **qdisc}
        if found := watch.rates(qdisc):
            line["per_s"] = {name: round(rate, 3) for name, rate in found.items()}
        if qdisc["kind"] == XQM:
            line["classes"] = watch.now.flows_of(qdisc)
        yield json.dumps(line)


def prometheus(readings: Sequence[Reading]) -> Iterator[str]:
    """Lines of Prometheus's text format: each metric of all queues together."""
    for name, stat in (STANDARD | OWN).items():
        having = [
            (reading.device, qdisc)
            for reading in readings
            for qdisc in reading.qdiscs
            if name in statistics_of(qdisc["kind"]) and name in qdisc
        ]
        if having:
            yield f"# HELP {stat.metric} {stat.says}"
            yield f"# TYPE {stat.metric} {'counter' if stat.counts else 'gauge'}"
        for device, qdisc in having:
            values = (device, qdisc["kind"], qdisc["handle"], _parent(qdisc))
            labels = ",".join(f'{key}="{value}"' for key, value in zip(NAMES, values, strict=True))
            yield f"{stat.metric}{{{labels}}} {qdisc[name] * stat.scale:.15g}"


def trend(lengths: Sequence[int]) -> str:
    """Queue lengths as bars, the greatest of them the highest."""
    top = max(*lengths, 1)
    return "".join(BARS[-(-length * (len(BARS) - 1) // top)] for length in lengths)


def _number(value: object, stat: Stat | None) -> str:
    """VALUE for a person, with its unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    unit = UNITS.get(stat.metric.rpartition("_")[2], "") if stat else ""
    scaled = value * (stat.scale if stat else 1) * (1000 if unit == "ms" else 1)
    return f"{scaled:.5g} {unit}".rstrip()


def _panel(watch: Watch, qdisc: Shown, room: int) -> RenderableType:
    """One qdisc, and of its flows as many as there is ROOM for."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    known = statistics_of(qdisc["kind"])
    per_s = watch.rates(qdisc)
    options = qdisc.get("options", {})
    bounds = [f"{name} {options[name]}" for name in ("target", "limit") if options.get(name)]
    head = Table.grid(padding=(0, 2))
    queue = f"{qdisc['qlen']} packets, {qdisc['backlog']} bytes"
    head.add_row("queue", ", ".join([queue, *bounds]))
    head.add_row("", Text(trend(watch.trends[_place(qdisc)]), style="cyan"))
    if per_s:
        sent = f"{per_s['bytes'] * 8 / 1e6:.3f} Mb/s, {per_s['packets']:.0f} packets/s"
        head.add_row("sent", f"{sent}; {per_s['drops']:.1f} drops/s")

    stands = [
        f"{name} [bold]{_number(value, known.get(name))}[/]"
        for name, value in qdisc.items()
        if name not in STANDARD and name not in (*NAMES, "root", "refcnt", "options")
        if not (name in known and known[name].counts)
    ]
    happens = [
        f"{name} [bold]{qdisc[name]}[/] ({per_s[name]:.1f}/s)"
        if name in per_s
        else f"{name} [bold]{qdisc[name]}[/]"
        for name, stat in known.items()
        if stat.counts and name in qdisc and name not in ("bytes", "packets", "drops")
    ]
    parts: list[RenderableType] = [head]
    parts += [Columns(words, padding=(0, 3)) for words in (stands, happens) if words]
    if flows := watch.now.flows_of(qdisc):
        parts.append(_flow_table(flows, room))
    title = f"{qdisc['kind']} {qdisc['handle']} {_parent(qdisc)}"
    return Panel(Group(*parts), title=title, title_align="left")


def _flow_table(flows: Sequence[Shown], room: int) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), caption_justify="left")
    for title in ("flow", *(title for _, title, _ in FLOW_COLUMNS)):
        table.add_column(title, justify="right")
    for flow in flows[:room]:
        seen: Mapping[str, Any] = flow | {"rtt": flow.get("rtt", 0) / 1e6}
        cells = [format(seen.get(name, 0), form) for name, _, form in FLOW_COLUMNS]
        table.add_row(flow["handle"], *cells)
    if len(flows) > room:
        table.caption = f"and {len(flows) - room} more"
    return table


def screen(watches: Sequence[Watch], console: Console) -> RenderableType:
    """All queues, for a person."""
    from rich.console import Group
    from rich.text import Text

    count = sum(len(watch.now.qdiscs) for watch in watches)
    room = max(console.height - 12 * max(count, 1), 5) if console.is_terminal else MAX_COUNT
    parts: list[RenderableType] = []
    for watch in watches:
        clock = time.strftime("%H:%M:%S", time.localtime(watch.now.time_s))
        parts.append(Text(f"{watch.now.device}  {clock}", style="bold"))
        parts += [_panel(watch, qdisc, room) for qdisc in watch.now.qdiscs]
        if not watch.now.qdiscs:
            parts.append(Text("no queue"))
    return Group(*parts)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The options; exits with status 2 if they make no sense."""
    parser = Parser("The queues of a device as they are now: see man aqm-top.")
    add = parser.add_argument
    add("device", nargs="+", metavar="DEVICE", help="such as eth0")
    add("--interval", type=checked(parse_positive), default=1.0, metavar="S",
        help="s from one reading to the next (%(default)g)")  # fmt: skip
    add("--count", type=whole(1, MAX_COUNT), metavar="N", help="readings (until Ctrl-C)")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="a line for each queue and reading")
    forms.add_argument("--prometheus", action="store_true", help="one reading, as metrics")
    args = parser.parse_args(argv)
    if args.interval < MIN_INTERVAL_S:
        parser.error(f"--interval: {MIN_INTERVAL_S:g} s or more, not {args.interval:g}")
    if args.prometheus and args.count:
        parser.error("--count: does not go with --prometheus, which is one reading")
    return args


def readings(args: argparse.Namespace) -> Iterator[list[Watch]]:
    """The devices, as often as is asked for, at even times."""
    watches = [Watch(read(device)) for device in args.device]
    yield watches
    due = time.monotonic()
    done = 1
    while done != args.count:
        # a machine that overslept goes on at the next point of the same grid
        due += args.interval * ((time.monotonic() - due) // args.interval + 1)
        time.sleep(max(due - time.monotonic(), 0))
        for watch in watches:
            watch.update(read(watch.now.device))
        done += 1
        yield watches


def show(args: argparse.Namespace) -> None:
    """For a person: in place on a terminal, else one below the other."""
    try:
        from rich.console import Console
        from rich.live import Live
    except ModuleNotFoundError as missing:
        raise ExperimentError(
            f"needs Python's {missing.name} (apt install python3-rich), but for --json and"
            " --prometheus."
        ) from None
    console = Console(highlight=False)
    if not console.is_terminal:
        for watches in readings(args):
            console.print(screen(watches, console))
        return
    with Live(console=console, screen=args.count is None, auto_refresh=False) as live:
        for watches in readings(args):
            live.update(screen(watches, console), refresh=True)


def main() -> int:
    """Do what the command line says; the exit status."""
    args = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        # Ctrl-C is the way to end it
        with contextlib.suppress(KeyboardInterrupt):
            if args.prometheus:
                print("\n".join(prometheus([read(device) for device in args.device])))
            elif args.json:
                for watches in readings(args):
                    for watch in watches:
                        print(*json_lines(watch), sep="\n", flush=True)
            else:
                show(args)
    except BrokenPipeError:  # whoever reads has seen enough
        sys.stderr.close()
        return 0
    except ExperimentError as failed:
        print(f"aqm-top: {failed}", file=sys.stderr)
        return USAGE if isinstance(failed, RefusedError) else FAILED
    return 0
