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
ROUNDS = 20  # each gives a pair of every qdisc and red
CYCLES = 25  # turns of each qdisc in a round
TURN = 5000  # packets
WARM_UP = 20  # cycles that do not count: 0.2 s and more, in which FIFA's averages settle

PKTGEN = Path("/proc/net/pktgen")
PARAMETERS = Path("/sys/module/sch_standing/parameters")
BLOCKS = Path("/sys/kernel/debug/sch_standing/blocks")
DEVICE = "bench"

RED = "limit 200 min 50 max 150 probability 0.03"
PI = "limit 200 target 100 a 0.0001000001 b 0.0001"
REM = "limit 200 target 100 alpha 0.000001 gamma 0.1005"


@dataclass(frozen=True)
class Contender:
    """A qdisc under test, and its options."""

    name: str
    options: str
    labelled: bool = False
    """Its packets carry an RTT label."""
    once_filled: str = ""
    """Options to change to once the queue stands."""


CONTENDERS = (
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
            f"fifa on {base}{', labelled' * labelled}", f"fifa base {base} {options}", labelled
        )
        for labelled in (False, True)
        for base, options in (("red", RED), ("pi", PI), ("rem", REM))
    ),
)


def pktgen(file: str, command: str) -> None:
    (PKTGEN / file).write_text(f"{command}\n")


def tc(*commands: str, options: str = "") -> str:
    words = ["tc", *options.split(), "-batch", "-"]
    text = "\n".join(commands)
    return subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def place(number: int) -> str:
    """Where a contender stands, as tc has it."""
    return f"dev {DEVICE} parent 1:{number + 1:x} handle {number + 0x10:x}:"


def set_up(module: Path) -> None:
    labelled = sum(1 << number for number, one in enumerate(CONTENDERS) if one.labelled)
    parameters = [f"stand={STANDING}", f"block={STANDING + 1}", f"labelled={labelled}"]
    subprocess.run(["insmod", str(module), *parameters], check=True)
    for words in (f"link add {DEVICE} type dummy", f"link set {DEVICE} up"):
        subprocess.run(["ip", *words.split()], check=True)
    adding = (f"qdisc add {place(at)} {one.options}" for at, one in enumerate(CONTENDERS))
    tc(f"qdisc add dev {DEVICE} root handle 1: standing", *adding)
    pktgen("kpktgend_0", f"add_device {DEVICE}")
    # pktgen waits for the last packet it shares with the queue, where that one stays
    for setting in ("flag !SHARED", "xmit_mode queue_xmit", f"pkt_size {LENGTH}", "dst 10.0.0.2"):
        pktgen(DEVICE, setting)


def send(packets: int) -> None:
    pktgen(DEVICE, f"count {packets}")
    pktgen("pgctrl", "start")


def counts() -> list[tuple[int, int]]:
    """For each contender: packets that left, packets that were dropped."""
    shown = json.loads(tc(f"qdisc show dev {DEVICE}", options="-s -j"))
    found = {one["handle"]: (one["packets"], one["drops"]) for one in shown}
    return [found[f"{number + 0x10:x}:"] for number in range(len(CONTENDERS))]


def share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Which share of the packets was dropped in between."""
    passed, dropped = (late - early for early, late in zip(before, after, strict=True))
    return dropped / (passed + dropped)


def undisturbed(turns: list[int]) -> float:
    """The time of a packet in these turns, ns: their lower quartile, as others' load only adds."""
    return statistics.quantiles(turns, n=4)[0] / TURN


def main(module: Path) -> None:
    set_up(module)
    send(len(CONTENDERS) * (STANDING + 1))
    time.sleep(0.2)  # longer than lred's first period
    changing = enumerate(one.once_filled for one in CONTENDERS)
    tc(*(f"qdisc change {place(at)} {options}" for at, options in changing if options))
    before = counts()

    (PARAMETERS / "block").write_text(str(TURN))
    cycles = WARM_UP + ROUNDS * CYCLES
    send(len(CONTENDERS) * cycles * TURN + 1)  # the last begins a turn, which ends the one before
    after = counts()

    blocks = [int(ns) for ns in BLOCKS.read_text().split()]
    start = len(CONTENDERS) * (1 + WARM_UP)
    result = {}
    for at, one in enumerate(CONTENDERS):
        own = blocks[start + at :: len(CONTENDERS)][: ROUNDS * CYCLES]
        rounds = [own[first : first + CYCLES] for first in range(0, len(own), CYCLES)]
        result[one.name] = {
            "labelled": one.labelled,
            "drop_share": share(before[at], after[at]),
            "ns": [undisturbed(turns) for turns in rounds],
        }
    (Path(os.environ["AQM_OUT"]) / "cost.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
