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
from typing import Any, NoReturn, TypeVar

from . import results
from .errors import ExperimentError, RefusedError
from .experiment import Outcome
from .scenario import MAX_FLOWS, MAX_MTU, MIN_MTU, parse_names, parse_seconds, parse_share
from .traffic import TRAFFIC

NOT_TRUSTED, USAGE = 1, 2
MAX_PACKETS = 100_000  # of --initcwnd and --window
MIN_WINDOW = 2  # packets: Linux offers no less
MAX_SEED = 2**63 - 1
LABELS = ("none", "socket", "handshake", "timestamps")
MIN_MEASURED_S = 0.1
Value = TypeVar("Value")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage lines."""

    def __init__(self, description: str | None) -> None:
        super().__init__(description=description, allow_abbrev=False)

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
    add("--traffic", choices=sorted(TRAFFIC), default="bulk", help="who sends (%(default)s)")
    add(
        "--seed",
        type=whole(0, MAX_SEED),
        default=os.environ.get("AQM_SEED", "1"),
        help="of start times and drawn delays (the lab's, else 1)",
    )
    add("--out", required=True, type=Path, metavar="DIR", help="for run.json, series.csv.gz")
    add("--json", action="store_true", help="print one line of JSON instead of a table")


def common_fields(parser: Parser, args: argparse.Namespace) -> dict[str, Any]:
    """What the common options say of a scenario; exits with status 2 if they make no sense."""
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
    return {
        "mtu": mtu,
        "ipv6": args.ipv6,
        "initcwnd": args.initcwnd,
        "window": args.window,
        "duration_s": args.duration,
        "warmup_s": args.warmup,
        "cc": args.cc,
        "ecn": args.ecn,
        "start_spread_s": args.start_spread,
        "traffic": args.traffic,
        "seed": args.seed,
        "label": args.label,
        "rtt_error": args.rtt_error,
        "reverse": args.reverse,
    }


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
