# SPDX-License-Identifier: GPL-2.0-or-later
"""mininet/router.py on a router between namespaces, `ip netns exec` being its ssh."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import flent_data
from conftest import Tc

ROUTER = str(Path(__file__).resolve().parents[2] / "mininet" / "router.py")
SETUP = """\
netns add alice
netns add bob
link add name eth0 type veth peer name eth0 netns alice
link add name eth1 type veth peer name eth0 netns bob
address add 10.0.1.254/24 dev eth0
address add 10.0.2.254/24 dev eth1
link set eth0 up
link set eth1 up
-n alice address add 10.0.1.1/24 dev eth0
-n alice link set eth0 up
-n alice route add default via 10.0.1.254
-n bob address add 10.0.2.1/24 dev eth0
-n bob link set eth0 up
-n bob route add default via 10.0.2.254
"""
FLOWS = 2
COMMON = (
    *("--device", "eth1", "--in", "eth0", "--rate", "4mbit"),
    *("--qdisc", "rem bandwidth 4mbit target 10", "--flows", str(FLOWS), "--cc", "reno"),
    *("--client", "alice", "--server", "bob=10.0.2.1", "--ssh", "ip netns exec"),
    *("--duration", "12", "--warmup", "6"),
)


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


@pytest.fixture
def router(tc: Tc) -> Iterator[None]:
    """This machine, between alice and bob, who is 40 ms away."""
    for line in SETUP.splitlines():
        ip(line)
    tc("qdisc add dev eth0 root netem delay 40ms limit 10000", options="-n bob")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    yield
    for line in ("link delete eth0", "link delete eth1", "netns delete alice", "netns delete bob"):
        ip(line)


@pytest.fixture
def out(router: None) -> Path:
    return Path("/run/tmp/router")


def state() -> str:
    """What router.py must leave as it was."""
    words = [["tc", "qdisc", "show"], *(["ethtool", "-k", f"eth{n}"] for n in (0, 1))]
    return "".join(
        subprocess.run(one, capture_output=True, text=True, check=True).stdout for one in words
    )


def start(*options: str | Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, ROUTER, *COMMON, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_running() -> list[str]:
    """Programs of the hosts."""
    found = []
    for name in ("alice", "bob"):
        words = ["ip", "netns", "pids", name]
        pids = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        found += [Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids]
    return found


def test_an_experiment(out: Path) -> None:
    before = state()
    running = start("--out", out, "--json")
    said, complaint = running.communicate()
    assert (running.returncode, complaint) == (0, "")
    found = json.loads(said)
    assert found["fidelity"] == {"ok": True, "reasons": []}
    assert found["utilization"] == pytest.approx(1, abs=0.02)
    assert found["mean_queue_pkts"] == pytest.approx(10, abs=4)
    assert found["goodput_mbps"] == pytest.approx(4 * 1448 / 1514, rel=0.03)
    assert found["drop_rate"] > 0 == found["mark_rate"]
    assert [flow["rtt_ms"] for flow in found["flows"]] == pytest.approx([40] * FLOWS, abs=1)
    run = json.loads((out / "run.json").read_text())
    assert run["metrics"] == found
    assert run["scenario"]["links"][0]["qdisc"] == "rem bandwidth 4mbit target 10"
    assert run["provenance"]["qdiscs"][0][1]["kind"] == "rem"
    flent = flent_data.data_file(out)
    assert len(flent["results"]["TCP upload::2"]) == 12
    assert max(flent["results"]["qdisc_stats_AB"]) > 10
    assert (state(), left_running()) == (before, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_nothing(out: Path, number: signal.Signals) -> None:
    before = state()
    running = start("--out", out)
    while left_running().count("iperf3") < 2 * FLOWS:
        time.sleep(0.1)
    time.sleep(1)
    assert state() != before
    running.send_signal(number)
    running.communicate()
    assert running.returncode == 128 + number
    assert (state(), left_running()) == (before, [])


def test_a_dry_run_prints_what_would_be_done(out: Path) -> None:
    before = state()
    running = start("--out", out / "dry", "--dry-run")
    said, complaint = running.communicate()
    assert (running.returncode, complaint) == (0, "")
    lines = said.splitlines()
    assert lines[0].startswith("ip netns exec alice ping ")
    off, on = (line for line in lines if line.startswith("ethtool -K eth1 "))
    assert " tso off" in off and on == off.replace(" off", " on")
    assert shlex.join(["tc", "qdisc", "add", "dev", "eth1", "root", "handle", "1:", "htb",
                       "default", "1"]) in lines  # fmt: skip
    assert sum("iperf3 --server" in line for line in lines) == FLOWS
    assert (lines[-3], lines[-1]) == ("tc qdisc delete dev eth1 root", on)
    assert state() == before and not (out / "dry").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--server", "carol=10.0.3.1"), "ip netns exec alice ping"),
        (("--client", "nobody"), "Cannot open network namespace"),
        (("--qdisc", "rem target 0"), "target must be at least 1 packet"),
    ],
)
def test_what_fails_leaves_nothing(out: Path, options: Sequence[str], words: str) -> None:
    before = state()
    running = start("--out", out, *options)
    said, complaint = running.communicate()
    assert running.returncode in (1, 2) and said == ""
    assert words in complaint and "Traceback" not in complaint
    assert (state(), left_running()) == (before, [])


def test_a_qdisc_of_the_users_is_not_touched(out: Path, tc: Tc) -> None:
    tc("qdisc add dev eth1 root handle 7: pfifo")
    before = state()
    running = start("--out", out)
    _, complaint = running.communicate()
    assert running.returncode == 1
    assert "eth1 has a pfifo 7: of yours" in complaint
    assert state() == before


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--device", "eth9"), "there is no device 'eth9'"),
        (("--server", "bob"), "'bob' is not of the form bob=192.0.2.2"),
        (("--warmup", "11.5"), "--warmup: 11.5 s leave less than a second"),
        (("--cc", "reno,cubic"), "--cc: one for all"),
    ],
)
def test_refusals(options: Sequence[str], words: str) -> None:
    running = start("--out", "/run/tmp/none", *options)
    _, complaint = running.communicate()
    assert running.returncode == 2 and words in complaint and complaint.count("\n") == 1
