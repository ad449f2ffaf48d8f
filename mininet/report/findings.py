# SPDX-License-Identifier: GPL-2.0-or-later
"""What one sees in REM's Figure 2, put into words by the numbers themselves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from .measures import DROPS, GOODPUT, OVERFLOW, QUEUE, Grid, Measure
from .runs import Result
from .words import joined, span

STEADY = 12  # packets: a mean queue that moves by no more counts as staying where it is
ALIKE = 0.25  # loss rates that differ by no more than this share count as about the same
LARGE_WINDOW = 5  # packets: the paper's bound, section 4.1
SETTLING_BIN = 1.0  # s


@dataclass(frozen=True)
class Setting:
    """What the runs of the figure have in common."""

    flows: Sequence[int]
    limit: int  # packets that the buffer holds
    target: int  # packets, of REM
    reach: Sequence[int]  # packets: how far off counts as on target, for each number of flows
    pipe: float  # packets: bandwidth-delay product


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper beside what was measured."""

    paper: str
    here: str
    verdict: str


def rises(values: Sequence[float]) -> bool:
    return all(a < b for a, b in itertools.pairwise(values))


def course(values: Sequence[float]) -> str:
    """How a mean queue moves with the number of flows."""
    first, last = f"{values[0]:.0f}", f"{values[-1]:.0f}"
    if max(values) - min(values) <= STEADY:
        return f"stays between {min(values):.0f} and {max(values):.0f}"
    if rises(values):
        return f"grows from {first} to {last}"
    if rises(values[::-1]):
        return f"falls from {first} to {last}"
    return f"moves between {min(values):.0f} and {max(values):.0f}"


def verdict(flows: Sequence[int], holds: Sequence[bool]) -> str:
    """In which of the runs a claim holds."""
    if all(holds):
        return "holds"
    if not any(holds):
        return "does not hold"
    where = (number for number, held in zip(flows, holds, strict=True) if held)
    return f"holds only at {joined(where)} flows"


def on_target(grid: Grid, setting: Setting) -> list[bool]:
    pairs = zip(QUEUE.line(grid, "REM"), setting.reach, strict=True)
    return [abs(queue - setting.target) <= reach for queue, reach in pairs]


def within(setting: Setting) -> str:
    return f"give or take {joined(setting.reach)} packets"


def gains(grid: Grid) -> list[float]:
    """How much more goodput REM has than DropTail, in percent, for each number of flows."""
    pairs = zip(GOODPUT.line(grid, "REM"), GOODPUT.line(grid, "DropTail"), strict=True)
    return [100 * (rem / droptail - 1) for rem, droptail in pairs]


def settling(result: Result, setting: Setting, warmup_s: float) -> str:
    """How long REM's price takes at the most flows, RESULT being that run's."""
    bins = result.binned(SETTLING_BIN)
    rush = int(bins.mean.argmax())
    near = bins.mean[rush:] <= setting.target + setting.reach[-1]
    told = f"With {setting.flows[-1]} flows REM's price, which starts at zero,"
    uncounted = f"the first {warmup_s} s of each run do not count"
    if not near.any():
        return f"{told} never brings the queue down to its target; {uncounted}."
    seconds = bins.middle[rush + int(near.argmax())]
    short = "" if seconds <= warmup_s else ", too few for REM here"
    return f"{told} takes {seconds:.0f} s to bring the queue to its target; {uncounted}{short}."


def summary(grid: Grid, setting: Setting) -> str:
    """The paragraph that says what one sees."""
    flows = setting.flows
    queues = joined(f"{course(QUEUE.line(grid, queue))} under {queue}" for queue in grid)
    held = on_target(grid, setting)
    off = [
        f"at {number} flows with {queue:.0f}"
        for number, queue, good in zip(flows, QUEUE.line(grid, "REM"), held, strict=True)
        if not good
    ]
    fate = f"misses its target {joined(off)}" if off else "is on its target each time"
    differences = joined(f"{gain:+.1f} %" for gain in gains(grid))
    drops = {queue: span(DROPS.line(grid, queue), 1) for queue in ("REM", "DropTail")}
    overflow = {queue: max(OVERFLOW.line(grid, queue)) for queue in drops}
    return (
        f"With {flows[0]} to {flows[-1]} flows the mean queue {queues}; the buffer holds"
        f" {setting.limit} packets."
        f" REM {fate} (target {setting.target}, {within(setting)})."
        f" REM's goodput differs from DropTail's by {differences} at {joined(flows)} flows."
        f" REM drops {drops['REM']} % of the packets and DropTail {drops['DropTail']} %; for want"
        f" of room, at most {overflow['REM']:.2f} % and {overflow['DropTail']:.2f} %."
    ).replace(" %", "\N{NO-BREAK SPACE}%")


def claims(grid: Grid, setting: Setting) -> list[Claim]:
    """Section 4.1's sentences about dropping on one link, and what became of them."""
    flows = setting.flows

    def values(measure: Measure, *queues: str) -> str:
        rows = (f"{queue} {', '.join(measure.row(grid, queue, flows))}" for queue in queues)
        return f"{measure.name}, {measure.unit}: {'; '.join(rows)}."

    large = [setting.pipe / number > LARGE_WINDOW for number in flows]
    gained = [gain > 0 for gain in gains(grid)]
    overflow = {queue: OVERFLOW.line(grid, queue) for queue in ("DropTail", "RED", "REM")}
    per_flows = list(zip(*overflow.values(), strict=True))
    return [
        Claim(
            "As the number of sources grows, REM, either with dropping or with marking, stabilizes"
            f" the mean queue around the target b* = {setting.target} packets",
            f"{values(QUEUE, 'REM')} On target is {setting.target}, {within(setting)}.",
            verdict(flows, on_target(grid, setting)),
        ),
        Claim(
            "whereas the mean queue under DropTail steadily increases.",
            values(QUEUE, "DropTail"),
            verdict(flows, [rises(QUEUE.line(grid, "DropTail"))] * len(flows)),
        ),
        Claim(
            "The mean queue length under all these 5 schemes [DropTail and RED] steadily increases"
            " as the number of sources grows.",
            values(QUEUE, "RED"),
            verdict(flows, [rises(QUEUE.line(grid, "RED"))] * len(flows)),
        ),
        Claim(
            "REM with dropping has a higher goodput [than DropTail] only when the window size is"
            f" large (> {LARGE_WINDOW} pkts).",
            f"{values(GOODPUT, 'REM', 'DropTail')} The link holds"
            f" {joined(f'{setting.pipe / number:.0f}' for number in flows)} packets a flow.",
            verdict(flows, [a == b for a, b in zip(large, gained, strict=True)]),
        ),
        Claim(
            "the loss rate [by overflow] is about the same under REM with dropping as under"
            " DropTail.",
            values(OVERFLOW, "REM", "DropTail"),
            verdict(flows, [abs(rem - tail) <= ALIKE * tail for tail, _, rem in per_flows]),
        ),
        Claim(
            "The loss rate (due to buffer overflow) for RED is higher than that for DropTail and"
            " REM.",
            values(OVERFLOW, "RED", "DropTail", "REM"),
            verdict(flows, [red > max(tail, rem) for tail, red, rem in per_flows]),
        ),
    ]
