#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One experiment on a dumbbell: flows of given RTTs meet one qdisc at one bottleneck."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from aqmlab import results
from aqmlab.errors import ExperimentError, RefusedError
from aqmlab.experiment import run
from aqmlab.scenario import (
    MAX_FLOWS,
    MAX_MTU,
    MIN_MTU,
    Scenario,
    parse_names,
    parse_qdisc,
    parse_rate,
    parse_rtt,
    parse_seconds,
    parse_share,
)
from aqmlab.traffic import TRAFFIC

NOT_TRUSTED, USAGE = 1, 2
MAX_PACKETS = 100_000  # of --initcwnd and --window
MIN_WINDOW = 2  # packets: Linux offers no less
MAX_SEED = 2**63 - 1
LABELS = ("none", "socket", "handshake", "timestamps")
MIN_MEASURED_S = 0.1
Value = TypeVar("Value")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage lines."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}.\n")


def checked(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """PARSE for argparse: its ValueError's words become the message."""

    def convert(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as wrong:
            raise argparse.ArgumentTypeError(str(wrong)) from None

    return convert


def whole(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers from LOW to HIGH."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return checked(parse)


def arguments(argv: list[str] | None = None) -> tuple[Scenario, argparse.Namespace]:
    """The scenario and the other options; exits with status 2 if they make no sense."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--qdisc", required=True, type=checked(parse_qdisc), help="as tc takes it, verbatim")
    add("--flows", required=True, type=whole(1, MAX_FLOWS), metavar="N", help="TCP flows")
    add("--rate", required=True, type=checked(parse_rate), help="of the bottleneck: 64mbit")
    add(
        "--rtt",
        required=True,
        type=checked(parse_rtt),
        help="base RTT: 80ms for all; 24ms:176ms spread evenly; 25ms,105ms dealt round",
    )
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
    add("--loss", type=checked(parse_share), default=0.0, help="at random, after the queue: 1%%")
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
    add("--traffic", choices=sorted(TRAFFIC), default="bulk", help="who sends (%(default)s)")
    add(
        "--seed",
        type=whole(0, MAX_SEED),
        default=os.environ.get("AQM_SEED", "1"),
        help="of the start times (the lab's, else 1)",
    )
    add("--out", required=True, type=Path, metavar="DIR", help="for run.json, series.csv.gz")
    add("--json", action="store_true", help="print one line of JSON instead of a table")
    args = parser.parse_args(argv)

    mtu = args.mtu or max(1000, MIN_MTU[args.ipv6])
    if mtu < MIN_MTU[args.ipv6]:
        parser.error(f"--mtu: IPv6 needs {MIN_MTU[True]} or more, not {mtu}")
    if args.window and args.traffic != "bulk":
        parser.error("--window: goes with --traffic bulk only")
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
        qdisc=args.qdisc,
        rate_bps=args.rate,
        rtts_us=args.rtt.deal(args.flows),
        mtu=mtu,
        ipv6=args.ipv6,
        initcwnd=args.initcwnd,
        window=args.window,
        duration_s=args.duration,
        warmup_s=args.warmup,
        cc=args.cc,
        ecn=args.ecn,
        loss=args.loss,
        start_spread_s=args.start_spread,
        traffic=args.traffic,
        seed=args.seed,
        label=args.label,
        rtt_error=args.rtt_error,
    )
    return scenario, args


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


def main() -> int:
    """Do the experiment. Exit status: 0; 1 if it failed or cannot be trusted; 2 if refused."""
    scenario, args = arguments()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        outcome = run(scenario, ready=lambda: make_folder(args.out))
    except ExperimentError as failed:
        print(f"dumbbell.py: {failed}", file=sys.stderr)
        return USAGE if isinstance(failed, RefusedError) else NOT_TRUSTED
    results.write_files(outcome, args.out)
    print(json.dumps(results.metrics_dict(outcome)) if args.json else results.table(outcome))
    for reason in outcome.reasons:
        print(f"dumbbell.py: not to be trusted: {reason}.", file=sys.stderr)
    return NOT_TRUSTED if outcome.reasons else 0


if __name__ == "__main__":
    sys.exit(main())
