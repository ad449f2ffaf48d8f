#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure what a packet costs in each qdisc, inside the lab in real time; write cost.json to DIR.

All qdiscs are children of one parent (sch_standing), which keeps a queue standing in each and
gives them turns of a millisecond or so; pktgen sends, a dummy device swallows. The parameters
make each law drop a packet in a hundred, and keep at it:

red, fifa on red   the average queue is the standing one, in the middle of the slope. sch_red
                   drops after 1 to 1/p packets, fifa's count "wait" after 1/p to 2/p
rem, fifa on rem   the target is the standing queue, at which the price stays; that it has from
                   when the queue filled: gamma for each packet, 0.1005 * 100, and 1.001^-10.05
                   is 0.99
fifa on pi         likewise: b for each packet
lred               101 packets came to a queue with room for 100; the loss ratio, 1/101, then
                   stays for a period of 100 s, and the queue is at its target
xqm                each flow is to have 19.93 packets/s with a round-trip time of a second, which
                   is eq. (16)'s 0.00501, half of which comes from the count; no gain to speak of

fq_codel, which xqm is held against, drops nothing, and has as many flows. With a million flows a
packet of each comes once in some seconds, so xqm's flows are remembered for longer.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

STANDING = 100  # packets
LENGTH = 60  # bytes of a packet, pktgen's shortest
ROUNDS = 20  # each gives a pair of every qdisc and its rival
CYCLES = 25  # turns of each qdisc in a round
TURN = 5000  # packets
WARM_UP = 20  # cycles that do not count, at least: 0.2 s, in which FIFA's averages settle

PKTGEN = Path("/proc/net/pktgen")
PARAMETERS = Path("/sys/module/sch_standing/parameters")
BLOCKS = Path("/sys/kernel/debug/sch_standing/blocks")
DEVICE = "bench"

RED = "limit 200 min 50 max 150 probability 0.03"
PI = "limit 200 target 100 a 0.0001000001 b 0.0001"
REM = "limit 200 target 100 alpha 0.000001 gamma 0.1005"
XQM = (
    "limit 200 target 1 bandwidth 1gbit share 9567bit rtt 1s delta 0.00000000000001"
    " phi 0.00000000000001"
)
FLOWS = (1, 1000)
MILLION = 1_000_000


@dataclass(frozen=True)
class Contender:
    """A qdisc under test, and its options."""

    name: str
    options: str
    rival: str = "red"
    """What it is held against; its own name if nothing."""
    labelled: bool = False
    """Its packets carry an RTT label."""
    flows: int = 0
    """So many flows, of TCP; or else one, of UDP."""
    once_filled: str = ""
    """Options to change to once the queue stands."""


LAWS = (
    Contender(
        "red",
        f"red limit {200 * LENGTH} min {50 * LENGTH} max {150 * LENGTH} avpkt {LENGTH}"
        " burst 100 bandwidth 1gbit probability 0.01",
    ),
    Contender("rem", f"rem {REM}"),
    Contender(
        "lred",
        f"lred limit {STANDING} target {STANDING - 1} weight 0 period 100ms periods 64",
        once_filled=f"lred limit 200 target {STANDING} period 100s",
    ),
    *(
        Contender(
            f"fifa on {base}{', labelled' * labelled}",
            f"fifa base {base} {options}",
            labelled=labelled,
        )
        for labelled in (False, True)
        for base, options in (("red", RED), ("pi", PI), ("rem", REM))
    ),
)


def of(name: str, flows: int) -> str:
    return f"{name}, {flows} flow{'s' * (flows != 1)}"


PER_FLOW = tuple(
    Contender(of(name, flows), options, of("fq_codel", flows), flows=flows)
    for flows in FLOWS
    for name, options in (("fq_codel", "fq_codel limit 200"), ("xqm", f"xqm {XQM}"))
)

MANY = tuple(
    Contender(of(name, flows), options, of(name, FLOWS[-1]), flows=flows)
    for name, options in (
        ("fq_codel", "fq_codel limit 200 flows 65536"),
        ("xqm", f"xqm {XQM} flows 1048576 short 0 measure-period 100s"),
    )
    for flows in (FLOWS[-1], MILLION)
)

GROUPS = {"laws": LAWS, "per flow": PER_FLOW, "many flows": MANY}
"""Contenders that take turns."""


def pktgen(file: str, command: str) -> None:
    (PKTGEN / file).write_text(f"{command}\n")


def tc(*commands: str, options: str = "") -> str:
    words = ["tc", *options.split(), "-batch", "-"]
    text = "\n".join(commands)
    return subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def place(number: int) -> str:
    """Where a contender stands, as tc has it."""
    return f"dev {DEVICE} parent 1:{number + 1:x} handle {number + 0x10:x}:"


def set_up(module: Path, contenders: tuple[Contender, ...]) -> None:
    labelled = sum(1 << number for number, one in enumerate(contenders) if one.labelled)
    parameters = [
        f"stand={STANDING}",
        f"block={STANDING + 1}",
        f"labelled={labelled}",
        f"flows={','.join(str(one.flows) for one in contenders)}",
    ]
    subprocess.run(["insmod", str(module), *parameters], check=True)
    for words in (f"link add {DEVICE} type dummy", f"link set {DEVICE} up"):
        subprocess.run(["ip", *words.split()], check=True)
    adding = (f"qdisc add {place(at)} {one.options}" for at, one in enumerate(contenders))
    tc(f"qdisc add dev {DEVICE} root handle 1: standing", *adding)
    pktgen("kpktgend_0", f"add_device {DEVICE}")
    # pktgen waits for the last packet it shares with the queue, where that one stays
    for setting in ("flag !SHARED", "xmit_mode queue_xmit", f"pkt_size {LENGTH}", "dst 10.0.0.2"):
        pktgen(DEVICE, setting)


def send(packets: int) -> None:
    pktgen(DEVICE, f"count {packets}")
    pktgen("pgctrl", "start")


def counts(contenders: tuple[Contender, ...]) -> list[tuple[int, int]]:
    """For each contender: packets that left, packets that were dropped."""
    shown = json.loads(tc(f"qdisc show dev {DEVICE}", options="-s -j"))
    found = {one["handle"]: (one["packets"], one["drops"]) for one in shown}
    return [found[f"{number + 0x10:x}:"] for number in range(len(contenders))]


def share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Which share of the packets was dropped in between."""
    passed, dropped = (late - early for early, late in zip(before, after, strict=True))
    return dropped / (passed + dropped)


def undisturbed(turns: list[int]) -> float:
    """The time of a packet in these turns, ns: their lower quartile, as others' load only adds."""
    return statistics.quantiles(turns, n=4)[0] / TURN


def main(module: Path, group: str) -> None:
    contenders = GROUPS[group]
    set_up(module, contenders)
    send(len(contenders) * (STANDING + 1))
    time.sleep(0.2)  # longer than lred's first period
    changing = enumerate(one.once_filled for one in contenders)
    tc(*(f"qdisc change {place(at)} {options}" for at, options in changing if options))
    before = counts(contenders)

    (PARAMETERS / "block").write_text(str(TURN))
    warm_up = max(WARM_UP, *(one.flows // TURN + 1 for one in contenders))  # all have come
    cycles = warm_up + ROUNDS * CYCLES
    send(len(contenders) * cycles * TURN + 1)  # the last begins a turn, which ends the one before
    after = counts(contenders)

    blocks = [int(ns) for ns in BLOCKS.read_text().split()]
    start = len(contenders) * (1 + warm_up)
    result = {}
    for at, one in enumerate(contenders):
        own = blocks[start + at :: len(contenders)][: ROUNDS * CYCLES]
        rounds = [own[first : first + CYCLES] for first in range(0, len(own), CYCLES)]
        result[one.name] = {
            "drop_share": share(before[at], after[at]),
            "ns": [undisturbed(turns) for turns in rounds],
        }
    (Path(os.environ["AQM_OUT"]) / "cost.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
