# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics and traces, as users read them."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bottleneck import Bottleneck
from conftest import Link, Tc
from frames import ECT0, frame
from kinds import CERTAIN, CERTAIN_KINDS, ECN, LIMIT, PROTECT, Kind, Stat
from netlink import Netlink
from shown import STOCK, differences

TRACING = Path("/sys/kernel/tracing")
DSCP = 46


@pytest.fixture
def busy(kernel: Netlink, link: Link, kind: Kind) -> Bottleneck:
    """A queue in which every statistic is something else than 0 and than all others."""
    queue = Bottleneck(kernel, link, kind, {**kind.never, LIMIT: 40, ECN: 1, PROTECT: DSCP})
    queue.congest(7)
    time.sleep(0.0234)
    queue.send(*[frame(ECT0, label=700)] * 11)
    queue.send(*[frame()] * 5)
    queue.send(*[frame(DSCP << 2)] * 25)
    return queue


@pytest.mark.parametrize("kind", CERTAIN_KINDS, ids=str, indirect=True)
def test_json_says_what_the_human_form_says(busy: Bottleneck, kind: Kind, tc: Tc) -> None:
    command = "qdisc show dev near"
    human = tc(command, options="-statistics").partition(f"qdisc {kind.name} ")[2]
    found = json.loads(tc(command, options="-statistics -json"))
    (shown,) = [qdisc for qdisc in found if qdisc["kind"] == kind.name]
    own = {key: value for key, value in shown.items() if key not in STOCK}
    lines = human.splitlines()
    # the options, two lines of tc's own, two of ours
    assert len(lines) == 5
    assert differences(" ".join(lines[3:]), own) == []

    stats = busy.read().stats
    assert {stat.name.lower() for stat in Stat} <= set(own)
    for stat in Stat:
        if stat is Stat.PROB:
            assert own["prob"] == stats[stat] / CERTAIN == 1
        else:
            assert own[stat.name.lower()] == stats[stat]
    assert (shown["qlen"], shown["drops"]) == (busy.read().qlen, busy.read().drops)


@pytest.fixture
def trace(kind: Kind) -> Iterator[Path]:
    enable = TRACING / f"events/{kind.name}/{kind.name}_decide/enable"
    (TRACING / "trace").write_text("")
    enable.write_text("1")
    yield TRACING / "trace"
    enable.write_text("0")


@pytest.mark.parametrize("kind", CERTAIN_KINDS, ids=str, indirect=True)
def test_every_decision_can_be_traced(trace: Path, busy: Bottleneck, kind: Kind) -> None:
    seen = re.findall(
        rf"{kind.name}_decide: ifindex=\d+ handle=2: len=(\d+) .*prob=(\d+) verdict=(\w+)",
        trace.read_text(),
    )
    if kind.lesson:
        assert seen.pop(7) == ("1000", "0", "overflow")
    verdicts = [verdict for _, _, verdict in seen]
    stats = busy.read().stats
    assert verdicts[:7] == ["pass"] * 7
    assert verdicts[7:23] == ["mark"] * 11 + ["drop"] * 5
    spared = stats[Stat.PROTECTED]
    assert verdicts[23:] == ["spare"] * spared + ["overflow"] * (25 - spared)
    assert {length for length, _, _ in seen} == {"1000"}
    assert [int(probability) for _, probability, _ in seen] == [0] * 7 + [CERTAIN] * 41
