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
    MAX_SHORT,
    MIN_MTU,
    PARETO_SHAPE,
    Groups,
    Scenario,
    Short,
    Udp,
    Web,
    parse_length,
    parse_names,
    parse_positive,
    parse_rate,
    parse_seconds,
    parse_shape,
    parse_share,
)
from .traffic import TRAFFIC

NOT_TRUSTED = 1  # exit status
MAX_PACKETS = 100_000  # of --initcwnd and --window
MIN_WINDOW = 2  # packets: Linux offers no less
MAX_SEED = 2**63 - 1
LABELS = ("none", "socket", "handshake", "timestamps")
MIN_MEASURED_S = 0.1
WEB_THINK_S, WEB_PAGE = 1.0, 12  # of ns-2's example
LOSS_HELP = (
    "a share varies as sin:MEAN,AMPLITUDE,PERIOD[,FROM,UNTIL], step:T=SHARE,T=SHARE... or"
    " markov:SHARE/STAY/P1/P2...,... (of each state: what it loses, how long, what comes then)"
)


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
    add("--quickack", action="store_true", help="each packet is acknowledged at once, as in ns-2")
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
        metavar="T",
        help=f"mean s, exponential, from a page to the next request ({WEB_THINK_S:g})",
    )
    add(
        "--web-page",
        type=whole(1, MAX_PACKETS),
        metavar="PACKETS",
        help=f"mean size of a page, Pareto ({WEB_PAGE})",
    )
    add(
        "--web-window",
        type=whole(MIN_WINDOW, MAX_PACKETS),
        metavar="PACKETS",
        help="most that a session may have in flight; ns-2's have 20",
    )
    add(
        "--web-shape",
        type=checked(parse_shape),
        metavar="SHAPE",
        help=f"Pareto's, of pages' sizes ({PARETO_SHAPE})",
    )
    add(
        "--short",
        type=checked(parse_positive),
        metavar="PER_S",
        help="short flows that come every second, each on the path of a flow",
    )
    add(
        "--short-length",
        type=checked(parse_length),
        metavar="LENGTH",
        help="of each one: 12 packets, 5:50 evenly, 1s:2s of time, pareto:MEAN,SHAPE of either",
    )
    add(
        "--short-gap-shape",
        type=checked(parse_shape),
        metavar="SHAPE",
        help="the times between them are Pareto's (exponential: a Poisson process)",
    )
    add("--short-from", type=checked(parse_seconds), metavar="T", help="s at which they begin (0)")
    add("--short-until", type=checked(parse_seconds), metavar="T", help="s from which none comes")
    add("--short-reverse", action="store_true", help="short flows go the other way, as --reverse")
    add(
        "--udp",
        type=whole(1, MAX_FLOWS),
        metavar="N",
        help="UDP flows, each on the path of a flow",
    )
    add("--udp-rate", type=checked(parse_rate), metavar="RATE", help="of each one: 1mbit")
    add(
        "--udp-density",
        type=checked(parse_positive),
        metavar="SHARE",
        help="of the first link, all of them if on: 0.9, instead of --udp-rate",
    )
    for name, what in (("on", "on"), ("off", "off")):
        add(
            f"--udp-{name}",
            type=checked(parse_seconds),
            metavar="T",
            help=f"mean s, exponential, that it is {what} (always on)",
        )
    add(
        "--udp-shape",
        type=checked(parse_shape),
        metavar="SHAPE",
        help="these times are Pareto's (exponential)",
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
    if args.start_spread >= args.duration:
        parser.error(f"--start-spread: {args.start_spread:g} s are not less than --duration")
    scenario = Scenario(
        **network,
        mtu=mtu,
        ipv6=args.ipv6,
        initcwnd=args.initcwnd,
        window=args.window,
        quickack=args.quickack,
        duration_s=args.duration,
        warmup_s=args.warmup,
        cc=args.cc,
        ecn=args.ecn,
        start_spread_s=args.start_spread,
        traffic=args.traffic,
        seed=args.seed,
        label=args.label,
        rtt_error=args.rtt_error,
        udp=udp(parser, args, network["links"][0].rate_bps),
        reverse=args.reverse,
        groups=groups(parser, args),
        web=web(parser, args),
        short=short(parser, args),
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


def alone(parser: Parser, args: argparse.Namespace, option: str) -> None:
    """Refuse what goes with OPTION only: options that begin with its name."""
    for name, value in vars(args).items():
        if name.startswith(f"{option}_") and value not in (None, False):
            parser.error(f"--{name.replace('_', '-')}: goes with --{option} only")


def span(parser: Parser, args: argparse.Namespace, option: str) -> tuple[float, float]:
    """What --OPTION-from and --OPTION-until say."""
    begin, end = (getattr(args, f"{option}_{name}") for name in ("from", "until"))
    begin, end = begin or 0.0, min(args.duration if end is None else end, args.duration)
    if begin >= end:
        parser.error(
            f"--{option}-from: {begin:g} s are not less than --{option}-until, or --duration"
        )
    return begin, end


def web(parser: Parser, args: argparse.Namespace) -> Web | None:
    """What --web and its relatives say."""
    if args.web is None:
        alone(parser, args, "web")
        return None
    if args.web_think == 0:
        parser.error("--web-think: more than 0 s")
    return Web(
        args.web,
        WEB_THINK_S if args.web_think is None else args.web_think,
        args.web_page or WEB_PAGE,
        args.web_window,
        args.web_shape or PARETO_SHAPE,
    )


def short(parser: Parser, args: argparse.Namespace) -> Short | None:
    """What --short and its relatives say."""
    if args.short is None:
        alone(parser, args, "short")
        return None
    if args.short_length is None:
        parser.error("--short: needs a --short-length")
    begin, end = span(parser, args, "short")
    if args.short * (end - begin) > MAX_SHORT:
        parser.error(f"--short: more than {MAX_SHORT} flows until --short-until, or --duration")
    length, reverse = args.short_length, args.short_reverse
    return Short(args.short, args.short_gap_shape, length, begin, end, reverse)


def udp(parser: Parser, args: argparse.Namespace, link_bps: int) -> Udp | None:
    """What --udp and its relatives say, the first link having so many bits/s."""
    if args.udp is None:
        alone(parser, args, "udp")
        return None
    if (args.udp_rate is None) == (args.udp_density is None):
        parser.error("--udp: needs a --udp-rate, or a --udp-density")
    if (args.udp_on is None) != (args.udp_off is None) or 0 in (args.udp_on, args.udp_off):
        parser.error("--udp-on and --udp-off: go together, and are more than 0 s")
    if args.udp_shape and args.udp_on is None:
        parser.error("--udp-shape: goes with --udp-on only")
    rate_bps = args.udp_rate or max(round(args.udp_density * link_bps / args.udp), 1)
    times = args.udp_on, args.udp_off, *span(parser, args, "udp")
    return Udp(args.udp, rate_bps, *times, args.udp_shape)


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
