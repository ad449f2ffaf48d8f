# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: what the scripts have in common."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from . import results
from .errors import ExperimentError, RefusedError
from .experiment import Outcome
from .options import USAGE, Parser, checked, whole
from .scenario import (
    MAX_FLOWS,
    MAX_MTU,
    MIN_MTU,
    Groups,
    Scenario,
    Udp,
    Web,
    parse_names,
    parse_rate,
    parse_seconds,
    parse_share,
)
from .traffic import TRAFFIC

NOT_TRUSTED = 1  # exit status
MAX_PACKETS = 100_000  # of --initcwnd and --window
MIN_WINDOW = 2  # packets: Linux offers no less
MAX_SEED = 2**63 - 1
LABELS = ("none", "socket", "handshake", "timestamps")
MIN_MEASURED_S = 0.1


def add_common_options(parser: Parser) -> None:
    """The options of all scripts, but for what makes the network theirs."""
    add = parser.add_argument
    add("--mtu", type=whole(MIN_MTU[False], MAX_MTU), help="bytes of an IP packet (1000)")
    add("--ipv6", action="store_true", help="IPv6 instead of IPv4, MTU 1280 or more (1280)")
    add("--initcwnd", type=whole(1, MAX_PACKETS), metavar="N", help="initial window, packets")
    add(
        "--window",
        type=whole(MIN_WINDOW, MAX_PACKETS),
        metavar="PACKETS",
        help="most that a flow may have in flight: the receiver offers no larger window",
    )
    add("--duration", required=True, type=checked(parse_seconds), help="s, from the first start")
    add("--warmup", required=True, type=checked(parse_seconds), help="s of it not measured")
    add(
        "--cc",
        type=checked(parse_names),
        default="reno",
        help="congestion control (%(default)s); reno,cubic is dealt round the flows",
    )
    add("--ecn", action="store_true", help="the hosts negotiate ECN")
    add("--label", choices=LABELS, default="none", help="FIFA's labels: where from (%(default)s)")
    add(
        "--rtt-error",
        type=checked(parse_share),
        default=0.0,
        help="each flow's label is off by up to this: 50%%",
    )
    add(
        "--start-spread",
        type=checked(parse_seconds),
        default=5.0,
        help="s within which all flows start (%(default)g)",
    )
    add(
        "--reverse",
        type=whole(1, MAX_FLOWS),
        default=0,
        metavar="N",
        help="flows the other way: the links then have the same queues there",
    )
    add(
        "--group",
        type=whole(1, MAX_FLOWS),
        metavar="N",
        help="flows come in groups of N (of each path), one every --join",
    )
    add("--join", type=checked(parse_seconds), metavar="T", help="s between groups: 100")
    add(
        "--leave",
        type=checked(parse_seconds),
        metavar="T",
        help="when the first group leaves; the others follow as they came",
    )
    add(
        "--web",
        type=whole(1, MAX_FLOWS),
        metavar="N",
        help="web sessions that ask for pages, each on the path of a flow",
    )
    add(
        "--web-think",
        type=checked(parse_seconds),
        default=1.0,
        metavar="T",
        help="mean s, exponential, from a page to the next request (%(default)g)",
    )
    add(
        "--web-page",
        type=whole(1, MAX_PACKETS),
        default=12,
        metavar="PACKETS",
        help="mean size of a page, Pareto of shape 1.2 (%(default)s)",
    )
    add(
        "--web-window",
        type=whole(MIN_WINDOW, MAX_PACKETS),
        metavar="PACKETS",
        help="most that a session may have in flight; ns-2's have 20",
    )
    add(
        "--udp",
        type=whole(1, MAX_FLOWS),
        metavar="N",
        help="UDP flows, each on the path of a flow",
    )
    add("--udp-rate", type=checked(parse_rate), metavar="RATE", help="of each one: 1mbit")
    for name, what in (("on", "on"), ("off", "off")):
        add(
            f"--udp-{name}",
            type=checked(parse_seconds),
            metavar="T",
            help=f"mean s, exponential, that it is {what} (always on)",
        )
    add("--udp-from", type=checked(parse_seconds), metavar="T", help="s at which they come (0)")
    add("--udp-until", type=checked(parse_seconds), metavar="T", help="s at which they go (never)")
    add(
        "--traffic",
        choices=sorted(TRAFFIC),
        default="bulk",
        help="who sends (%(default)s); iperf3 is slow in the lab: best with --start-spread 0",
    )
    add(
        "--seed",
        type=whole(0, MAX_SEED),
        default=os.environ.get("AQM_SEED", "1"),
        help="of start times and drawn delays (the lab's, else 1)",
    )
    add("--out", required=True, type=Path, metavar="DIR", help="for run.json, series.csv.gz")
    add("--json", action="store_true", help="print one line of JSON instead of a table")


def scenario_of(parser: Parser, args: argparse.Namespace, **network: Any) -> Scenario:
    """NETWORK and the common options together; exits with status 2 if these make no sense."""
    mtu = args.mtu or max(1000, MIN_MTU[args.ipv6])
    if mtu < MIN_MTU[args.ipv6]:
        parser.error(f"--mtu: IPv6 needs {MIN_MTU[True]} or more, not {mtu}")
    if args.web_window and not args.web:
        parser.error("--web-window: goes with --web only")
    for name in ("window", "group"):
        if getattr(args, name) and args.traffic != "bulk":
            parser.error(f"--{name}: goes with --traffic bulk only")
    if args.duration - args.warmup < MIN_MEASURED_S:
        parser.error(
            f"--warmup: {args.warmup:g} s leave less than {MIN_MEASURED_S:g} s of --duration"
        )
    if args.label != "none" and args.ipv6:
        parser.error("--label: IPv6 packets have no label")
    if args.rtt_error and args.label == "none":
        parser.error("--rtt-error: goes with a --label only")
    if not args.web_think:
        parser.error("--web-think: more than 0 s")
    if args.start_spread >= args.duration:
        parser.error(f"--start-spread: {args.start_spread:g} s are not less than --duration")
    scenario = Scenario(
        **network,
        mtu=mtu,
        ipv6=args.ipv6,
        initcwnd=args.initcwnd,
        window=args.window,
        duration_s=args.duration,
        warmup_s=args.warmup,
        cc=args.cc,
        ecn=args.ecn,
        start_spread_s=args.start_spread,
        traffic=args.traffic,
        seed=args.seed,
        label=args.label,
        rtt_error=args.rtt_error,
        udp=udp(parser, args),
        reverse=args.reverse,
        groups=groups(parser, args),
        web=Web(args.web, args.web_think, args.web_page, args.web_window) if args.web else None,
    )
    late = max(flow.start_s for flow in scenario.flow_list())
    if late >= args.duration:
        parser.error(f"--join: the last flow would come at {late:.0f} s, not within --duration")
    return scenario


def groups(parser: Parser, args: argparse.Namespace) -> Groups | None:
    """What --group, --join and --leave say."""
    if (args.group is None) != (args.join is None):
        parser.error("--group and --join: go together")
    if args.group is None:
        if args.leave is not None:
            parser.error("--leave: goes with --group only")
        return None
    if args.leave is not None and args.leave <= args.start_spread:
        parser.error(f"--leave: {args.leave:g} s are not more than --start-spread")
    return Groups(args.group, args.join, args.leave)


def udp(parser: Parser, args: argparse.Namespace) -> Udp | None:
    """What --udp and its relatives say."""
    relatives = ("rate", "on", "off", "from", "until")
    given = [name for name in relatives if getattr(args, f"udp_{name}") is not None]
    if args.udp is None:
        if given:
            parser.error(f"--udp-{given[0]}: goes with --udp only")
        return None
    if args.udp_rate is None:
        parser.error("--udp: needs a --udp-rate")
    if (args.udp_on is None) != (args.udp_off is None) or 0 in (args.udp_on, args.udp_off):
        parser.error("--udp-on and --udp-off: go together, and are more than 0 s")
    begin = args.udp_from or 0.0
    end_s = args.duration if args.udp_until is None else min(args.udp_until, args.duration)
    if begin >= end_s:
        parser.error(f"--udp-from: {begin:g} s are not less than --udp-until, or --duration")
    return Udp(args.udp, args.udp_rate, args.udp_on, args.udp_off, begin, end_s)


def make_folder(folder: Path) -> None:
    """Make FOLDER and see that it can be written to; ExperimentError if not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise ExperimentError(f"--out {folder}: {refused.strerror}.") from None
    if not os.access(folder, os.W_OK):
        raise ExperimentError(f"--out {folder}: cannot be written to.")


def end(number: int, _: FrameType | None) -> NoReturn:
    """Leave by the way on which everything is cleared away."""
    sys.exit(128 + number)


def carry_out(
    script: str, args: argparse.Namespace, experiment: Callable[[Callable[[], None]], Outcome]
) -> int:
    """Do EXPERIMENT, which calls back once it stands, and tell what came of it.

    Exit status: 0; 1 if it failed or cannot be trusted; 2 if refused.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        outcome = experiment(lambda: make_folder(args.out))
    except ExperimentError as failed:
        print(f"{script}: {failed}", file=sys.stderr)
        return USAGE if isinstance(failed, RefusedError) else NOT_TRUSTED
    results.write_files(outcome, args.out)
    print(json.dumps(results.metrics_dict(outcome)) if args.json else results.table(outcome))
    for reason in outcome.reasons:
        print(f"{script}: not to be trusted: {reason}.", file=sys.stderr)
    return NOT_TRUSTED if outcome.reasons else 0
