# SPDX-License-Identifier: GPL-2.0-or-later
"""aqm-top shows what is there, to people, collectors and Prometheus."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from aqmlab import top
from aqmlab.errors import RefusedError
from bottleneck import Bottleneck
from conftest import Link, Tc
from frames import frame
from kinds import (
    BANDWIDTH,
    CERTAIN_KINDS,
    LIMIT,
    MBIT,
    MS,
    RTT,
    RTT_GIVEN,
    RTT_TIME,
    SHORT,
    TARGET,
    VARIANTS,
    XQM,
    Kind,
)
from netlink import Netlink
from shown import STOCK, differences
from test_xqm import STILL, data

MININET = Path(__file__).resolve().parents[2] / "mininet"
AQM_TOP = str(MININET / "aqm-top")
SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")


def metrics(lines: Iterator[str]) -> dict[str, dict[str, float]]:
    """Values by metric and handle; each metric is told of once, in one block."""
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in found
            found[name] = {}
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert kind == ("counter" if name.endswith("_total") else "gauge")
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            labels = dict(pair.split("=") for pair in sample[2].split(","))
            assert sample[1] == name and labels["device"] == '"near"'
            found[name][labels["handle"].strip('"')] = float(sample[3])
    return found


@pytest.mark.parametrize("kind", CERTAIN_KINDS, ids=str, indirect=True)
def test_node_exporters_numbers_are_filled(kernel: Netlink, link: Link, kind: Kind) -> None:
    """It reads the qdisc's own TCA_STATS2, as Netlink does here; all are other than 0."""
    queue = Bottleneck(kernel, link, kind, {**kind.never, LIMIT: 40})
    queue.congest(7)
    assert queue.send(*[frame()] * 5) == 5
    queue.change({**kind.never, LIMIT: 9})
    queue.shape(1_000_000)
    queue.send(*[frame()] * 4)
    time.sleep(0.002)
    seen = queue.read()
    told = metrics(top.prometheus([top.read(link.name)]))
    names = {
        "bytes_total": seen.bytes,
        "packets_total": seen.packets,
        "drops_total": seen.drops,
        "requeues_total": seen.requeues,
        "overlimits_total": seen.overlimits,
        "current_queue_length": seen.qlen,
        "backlog": seen.backlog,
    }
    assert {name: told[f"node_qdisc_{name}"]["2:"] for name in names} == names
    assert seen.bytes == 1000 * seen.packets > 0
    assert seen.backlog == 1000 * seen.qlen > 0
    assert seen.drops >= 5
    # the shaper has them too, ours has more
    assert told["node_qdisc_packets_total"].keys() == {"1:", "2:"}
    assert told["aqm_queue_packets"] == {"2:": seen.qlen}
    assert told["aqm_early_drops_total"]["2:"] + told["aqm_overflow_packets_total"]["2:"] >= 5


@pytest.mark.parametrize("kind", VARIANTS, ids=str, indirect=True)
def test_every_statistic_is_known(link: Link, kind: Kind, tc: Tc) -> None:
    tc(f"qdisc add dev near root handle 2: {kind}")
    (shown,) = json.loads(tc("qdisc show dev near", options="-statistics -json"))
    assert shown.keys() - STOCK <= top.OWN.keys()
    told = metrics(top.prometheus([top.read(link.name)]))
    own = {stat.metric for name, stat in top.OWN.items() if name in shown}
    assert own | {stat.metric for stat in top.STANDARD.values()} == told.keys()


def test_no_metric_is_told_twice() -> None:
    both = [stat.metric for stat in (*top.STANDARD.values(), *top.OWN.values())]
    assert len(both) == len(set(both))


Act = Callable[[], object]


@pytest.fixture
def watch(link: Link) -> Callable[[Act], top.Watch]:
    """Two readings, a second apart, between which something is done."""

    def between(act: Act) -> top.Watch:
        watch = top.Watch(top.read(link.name))
        act()
        time.sleep(1)
        watch.update(top.read(link.name))
        return watch

    return between


def test_rates_and_flows(kernel: Netlink, link: Link, watch: Callable[[Act], top.Watch]) -> None:
    given = {**STILL, SHORT: 0, RTT: RTT_GIVEN, RTT_TIME: 50 * MS, BANDWIDTH: 8 * MBIT}
    queue = Bottleneck(kernel, link, XQM, {**given, LIMIT: 30, TARGET: 10})
    queue.shape(10_000)  # ten packets a second

    def load() -> None:
        queue.send(*[data(1)] * 30, *[data(2)] * 10)

    shaper, found = map(json.loads, top.json_lines(watch(load)))
    assert (shaper["kind"], shaper["device"]) == ("tbf", "near")
    assert found["kind"] == "xqm" and found["parent"] == "1:1"
    for name in ("packets", "drops"):
        assert found["per_s"][name] == pytest.approx(found[name], rel=0.01)
    assert found["drops"] >= 9 and 9 <= found["packets"] <= 12
    assert found["qlen"] + found["packets"] + found["drops"] == 40
    flows = found["classes"]
    assert len(flows) == found["flows"] == 2
    for flow in flows:
        assert flow["rtt"] == 50 * MS and flow["weight"] == 1
        assert flow["share"] == found["share"] > 0


def test_what_was_replaced_has_no_rates(
    link: Link, tc: Tc, watch: Callable[[Act], top.Watch]
) -> None:
    def replace(kind: str) -> None:
        tc("qdisc delete dev near root", f"qdisc add dev near root handle 2: {kind}")

    tc("qdisc add dev near root handle 2: rem")
    link.near.send(*[frame()] * 9)
    for kind in ("lred", "lred limit 199"):
        seen = watch(lambda kind=kind: replace(kind))  # type: ignore[misc]
        assert seen.before and seen.before.qdiscs[0]["packets"] == 9
        assert seen.rates(seen.now.qdiscs[0]) == {}
        link.near.send(*[frame()] * 9)


def test_classes_are_as_tc_shows_them(flowing: str, tc: Tc) -> None:
    human = [
        line.split()
        for line in tc(f"class show dev {flowing}", options="-statistics").splitlines()
        if "quiescent" in line
    ]
    flows = top.read(flowing).flows
    assert [flow["handle"] for flow in flows] == ["2:1", "2:2"] and len(human) == 2
    for words, flow in zip(human, flows, strict=True):
        assert words[::2] == [name for name in top.CLASS if name != "throughput" or flow[name]]
        assert differences(" ".join(words), {k: v for k, v in flow.items() if k != "handle"}) == []


def test_trend() -> None:
    assert top.trend([0, 1, 4, 8]) == " ▁▄█"
    assert top.trend([0]) == " "


def test_no_device() -> None:
    with pytest.raises(RefusedError, match="Cannot find device"):
        top.read("nowhere")


def run(*options: str, python: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *python, AQM_TOP, *options]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@pytest.fixture
def flowing(kernel: Netlink, link: Link) -> str:
    """A device with an xqm below a shaper, and two flows."""
    given = {**STILL, SHORT: 0, RTT: RTT_GIVEN, RTT_TIME: 50 * MS, BANDWIDTH: 8 * MBIT}
    Bottleneck(kernel, link, XQM, given).send(data(1), data(2))
    return link.name


def test_for_people(flowing: str) -> None:
    done = run(flowing, "--count", "2", "--interval", "0.2")
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("xqm 2: 1:1", "queue 2 packets, 2000 bytes", "sent 0.000 Mb/s", "prob 0"):
        assert words in re.sub(r" +", " ", done.stdout), words
    assert len(re.findall(r" 2:[12] +[\d.]+ +500.0 +50.0 ", done.stdout)) == 2 * 2


def test_on_a_terminal_until_it_is_told_to_stop(flowing: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", COLUMNS="100", LINES="40")
        os.execv(sys.executable, [sys.executable, AQM_TOP, flowing, "--interval", "0.2"])
    seen = b""
    while seen.count(b"xqm 2:") < 3:
        seen += os.read(terminal, 1 << 16)
    os.kill(pid, signal.SIGINT)
    try:
        while more := os.read(terminal, 1 << 16):
            seen += more
    except OSError:  # a terminal that nobody writes to any more
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    # it took the alternate screen and gave it back
    assert b"\x1b[?1049h" in seen and b"\x1b[?1049l" in seen.partition(b"\x1b[?1049h")[2]


def test_lines_for_collectors(flowing: str) -> None:
    done = run(flowing, "--json", "--count", "3", "--interval", "0.5")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["tbf", "xqm"] * 3
    times = [line["time"] for line in lines[::2]]
    assert times[2] - times[0] == pytest.approx(1, abs=0.1)
    assert "per_s" not in lines[0] and "per_s" in lines[2]


def test_needs_nothing_but_python_for_machines(flowing: str) -> None:
    """Debian's Python, which has no rich unless it is asked for."""
    isolated = ("-S",)
    assert "node_qdisc_backlog" in run(flowing, "--prometheus", python=isolated).stdout
    refused = run(flowing, python=isolated)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "apt install python3-rich" in refused.stderr


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("nowhere",), 2, 'aqm-top: tc: Cannot find device "nowhere"'),
        (("lo", "--count", "0"), 2, "aqm-top: argument --count: '0' is not a whole number"),
        (("lo", "--interval", "0.05"), 2, "aqm-top: --interval: 0.1 s or more, not 0.05."),
        (("lo", "--prometheus", "--count", "2"), 2, "aqm-top: --count: does not go with"),
    ],
)
def test_refusals(options: Sequence[str], status: int, words: str) -> None:
    done = run(*options)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(words) and done.stderr.count("\n") == 1
