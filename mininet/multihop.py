#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One experiment on a chain of routers A, B, C...: long flows over all links, cross flows over
one link each."""

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from aqmlab.cli import MIN_MEASURED_S, add_common_options, carry_out, scenario_of
from aqmlab.errors import ExperimentError
from aqmlab.experiment import Outcome, run
from aqmlab.options import Parser, checked, whole
from aqmlab.scenario import (
    MAX_FLOWS,
    MAX_LINKS,
    MIN_RTT,
    US_PER_S,
    Flow,
    Link,
    Scenario,
    parse_delay,
    parse_delays,
    parse_list,
    parse_qdisc,
    parse_rate,
    parse_share,
)


def arguments(argv: list[str] | None = None) -> tuple[Scenario, argparse.Namespace]:
    """The scenario and the other options; exits with status 2 if they make no sense."""
    parser = Parser(__doc__)
    add = parser.add_argument
    add(
        "--rates",
        required=True,
        type=checked(parse_list(parse_rate)),
        help="of the links, AB first: 100mbit,150mbit,150mbit",
    )
    add(
        "--qdiscs",
        required=True,
        type=checked(parse_list(parse_qdisc, ";")),
        help="as tc takes them, verbatim, one a link: 'rem target 20; red limit …; …'",
    )
    add("--long", required=True, type=whole(1, MAX_FLOWS), metavar="N", help="flows, all links")
    add("--cross", required=True, type=whole(0, MAX_FLOWS), metavar="N", help="flows, each link")
    add("--link-delay", required=True, type=checked(parse_delay), help="of a link, one way: 1ms")
    add(
        "--access-delay",
        required=True,
        type=checked(parse_delays),
        help="at each end of a flow, one way: 5ms, or drawn from 5ms:10ms",
    )
    add(
        "--equal-rtt",
        action="store_true",
        help="cross flows get the delay of the other links, too, and of the queues there: their"
        " mean length in a first run as long as twice --warmup",
    )
    add(
        "--loss",
        type=checked(parse_list(parse_share)),
        default=(0.0,),
        help="at random, behind the queues: 0,0,1%%, or one for all",
    )
    add_common_options(parser)
    args = parser.parse_args(argv)

    links = len(args.rates)
    if not 2 <= links <= MAX_LINKS:
        parser.error(
            f"--rates: 2 to {MAX_LINKS} links, not {links}; dumbbell.py is for a single one"
        )
    if len(args.qdiscs) != links:
        parser.error(f"--qdiscs: {len(args.qdiscs)} for {links} rates; give exactly one for each")
    if len(args.loss) not in (1, links):
        parser.error(f"--loss: {len(args.loss)} for {links} rates; give one for all or for each")
    if args.long + links * args.cross > MAX_FLOWS:
        parser.error(
            f"--cross: {args.long} long flows and {links} times {args.cross} are more than"
            f" {MAX_FLOWS} flows"
        )
    if args.equal_rtt and args.warmup < MIN_MEASURED_S:
        parser.error(f"--equal-rtt: needs a --warmup of {MIN_MEASURED_S:g} s or more")
    losses = args.loss if len(args.loss) > 1 else args.loss * links
    scenario = scenario_of(
        parser,
        args,
        links=tuple(map(Link, args.rates, args.qdiscs, losses)),
        long=args.long,
        cross=args.cross,
        rtts_us=base_rtts_us(args, links),
    )
    shortest = min(scenario.rtts_us) / US_PER_S
    if shortest < MIN_RTT:
        parser.error(f"--access-delay: an RTT is {1000 * shortest:g} ms; 1 ms is the least")
    return scenario, args


def base_rtts_us(args: argparse.Namespace, links: int) -> tuple[int, ...]:
    """The base RTT of each flow: the long ones first, then link by link."""
    draw = random.Random(f"delays {args.seed}")
    spans = [links] * args.long + [links if args.equal_rtt else 1] * args.cross * links
    return tuple(
        2 * (span * args.link_delay + sum(draw.randint(*args.access_delay) for _ in range(2)))
        for span in spans
    )


def with_queues_elsewhere(scenario: Scenario, delays_us: Sequence[float]) -> Scenario:
    """SCENARIO with each flow's RTT lengthened by the DELAYS of the queues it does not meet."""
    queues = list(zip(scenario.queues, delays_us, strict=True))

    def elsewhere_us(flow: Flow) -> int:
        return round(sum(delay for queue, delay in queues if not flow.crosses(queue)))

    flows = scenario.flow_list()[: len(scenario.rtts_us)]
    return replace(scenario, rtts_us=tuple(flow.rtt_us + elsewhere_us(flow) for flow in flows))


def run_equalized(scenario: Scenario, ready: Callable[[], None]) -> Outcome:
    """Run SCENARIO twice: first, for the queues' mean lengths, no longer than need be."""
    pilot = replace(scenario, duration_s=min(scenario.duration_s, 2 * scenario.warmup_s))
    first = run(pilot, ready)
    if first.reasons:
        raise ExperimentError(f"the first run is not to be trusted: {'; '.join(first.reasons)}.")
    delays_us = [1000 * link.queue_delay_ms for link in first.metrics.all_links]
    return run(with_queues_elsewhere(scenario, delays_us), ready)


def main() -> int:
    """Do the experiment; the exit status."""
    scenario, args = arguments()
    experiment = run_equalized if args.equal_rtt else run
    return carry_out("multihop.py", args, lambda ready: experiment(scenario, ready))


if __name__ == "__main__":
    sys.exit(main())
