#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One experiment on a dumbbell: flows of given RTTs meet one qdisc at one bottleneck."""

import argparse
import sys
from functools import partial

from aqmlab.cli import LOSS_HELP, add_common_options, carry_out, scenario_of
from aqmlab.experiment import run
from aqmlab.options import Parser, checked, whole
from aqmlab.scenario import (
    MAX_FLOWS,
    Link,
    Scenario,
    parse_delay,
    parse_loss,
    parse_qdisc,
    parse_rate,
    parse_rtt,
)
from aqmlab.watch import SENDERS


def arguments(argv: list[str] | None = None) -> tuple[Scenario, argparse.Namespace]:
    """The scenario and the other options; exits with status 2 if they make no sense."""
    parser = Parser(__doc__)
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
    add("--loss", type=checked(parse_loss), default=0.0, help=f"behind the queue: 1%%; {LOSS_HELP}")
    add(
        "--observe",
        type=checked(parse_delay),
        metavar="DELAY",
        help="watch the first flow, of pert or pert_pi: its ACKs, its losses and the queue's into"
        " observed.csv.gz, as if the queue were so far, one way, from its sender: 5ms",
    )
    add_common_options(parser)
    args = parser.parse_args(argv)
    rtts_us = args.rtt.deal(args.flows)
    if args.observe is not None:
        if args.cc[0] not in SENDERS:
            parser.error(f"--observe: needs --cc {' or '.join(SENDERS)}, whose ACKs can be watched")
        if args.observe > rtts_us[0]:
            parser.error("--observe: more than the first flow's --rtt")
    scenario = scenario_of(
        parser,
        args,
        links=(Link(args.rate, args.qdisc, args.loss),),
        long=args.flows,
        cross=0,
        rtts_us=rtts_us,
        observe_us=args.observe,
    )
    return scenario, args


def main() -> int:
    """Do the experiment; the exit status."""
    scenario, args = arguments()
    return carry_out("dumbbell.py", args, partial(run, scenario))


if __name__ == "__main__":
    sys.exit(main())
