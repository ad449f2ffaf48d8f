# SPDX-License-Identifier: GPL-2.0-or-later
"""dumbbell.py in the lab, from its command line to its files."""

import csv
import gzip
import json

import pytest

from conftest import DUMBBELL, PYTHON, ROOT, SABOTAGE, SEGMENT, Lab, expect_refusal

SHORT = "--rate 16mbit --rtt 40ms --flows 4 --duration 12 --warmup 4 --start-spread 1"
TEN_RTTS = "--rate 16mbit --rtt 24ms:96ms --flows 10 --duration 6 --warmup 2 --start-spread 1"

RED = "red limit 120000 min 20000 max 80000 avpkt 1000 burst 40 probability 0.1 bandwidth 16mbit"
QDISCS = {
    "pfifo": "pfifo limit 60",
    "red": RED,
    "pie": "pie limit 120",
    "codel": "codel",
    "fq_codel": "fq_codel",
    "cake": "cake",
    "sfq": "sfq",
    "rem": "rem target 20 bandwidth 16mbit",
}


@pytest.mark.parametrize("kind", QDISCS)
def test_any_qdisc_meets_traffic_to_be_trusted(lab: Lab, kind: str) -> None:
    done = lab.dumbbell(SHORT, QDISCS[kind])
    assert done.status == 0, done.errors
    metrics = done.metrics
    assert metrics["fidelity"] == {"ok": True, "reasons": []}
    # Four flows over eight seconds: which losses they meet is chance, and that they fill the link.
    assert 11 < metrics["goodput_mbps"] < 16 * SEGMENT / 1014 + 0.01
    assert 0.75 < metrics["utilization"] <= 1.001
    assert 0 < metrics["drop_rate"] < 0.05
    assert metrics["mark_rate"] == 0
    assert sum(flow["retransmits"] for flow in metrics["flows"]) > 0
    assert metrics["mean_queue_pkts"] < metrics["p99_queue_pkts"] <= 127
    (shown,) = [
        qdisc
        for qdisc in json.loads((lab.out / "run.json").read_text())["provenance"]["qdiscs"][0]
        if qdisc.get("parent") == "1:1"
    ]
    assert shown["kind"] == kind


def test_the_files_hold_what_was_done_and_seen(lab: Lab) -> None:
    done = lab.dumbbell(f"{SHORT} --cc cubic --initcwnd 4", QDISCS["rem"])
    assert done.status == 0, done.errors
    run = json.loads((lab.out / "run.json").read_text())
    assert run["metrics"] == done.metrics
    assert run["scenario"]["links"][0]["qdisc"] == QDISCS["rem"]
    assert run["scenario"]["rtts_us"] == [40_000] * 4
    assert run["scenario"]["cc"] == ["cubic"]
    made_of = run["provenance"]
    assert made_of["clock"] == "virtual"
    assert made_of["sysctls"]["net.ipv4.tcp_ecn"] == "0"
    assert {"kernel", "modules", "iproute2", "mininet", "python", "qdiscs"} <= set(made_of)
    assert made_of["modules"]["tcp_cubic"]["hystart"] == "0"
    with gzip.open(lab.out / "series.csv.gz", "rt") as stream:
        rows = list(csv.DictReader(stream))
    queue = [row for row in rows if row["series"] == "queue_pkts"]
    assert [row["time_s"] for row in queue[:3]] == ["0.000", "0.010", "0.020"]
    assert len(queue) == 12 * 100
    measured = [int(row["value"]) for row in queue if 4 <= float(row["time_s"]) < 12]
    assert sum(measured) / len(measured) == pytest.approx(done.metrics["mean_queue_pkts"], abs=1e-6)
    assert all(0 <= float(row["value"]) <= 1 for row in rows if row["series"] == "probability")
    for flow, result in enumerate(done.metrics["flows"]):
        rates = [
            float(row["value"])
            for row in rows
            if row["series"] == "goodput_mbps" and row["flow"] == str(flow)
        ]
        assert len(rates) == 12
        assert sum(rates[4:]) / 8 == pytest.approx(result["goodput_mbps"], rel=1e-4)


def test_the_same_seed_gives_the_same_bytes(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = Lab(tmp_path_factory.mktemp("elsewhere with another name"))
    first = lab.dumbbell(TEN_RTTS, QDISCS["rem"], seed=3)
    again = elsewhere.dumbbell(TEN_RTTS, QDISCS["rem"], seed=3, cwd=elsewhere.out)
    assert first.status == again.status == 0, first.errors + again.errors
    assert first.output == again.output
    files = [path.name for path in sorted(lab.out.iterdir())]
    assert files == ["run.json", "series.csv.gz"]
    for name in files:
        assert (lab.out / name).read_bytes() == (elsewhere.out / name).read_bytes()


def test_another_seed_gives_another_run(lab: Lab) -> None:
    """Of the script, whose default is the lab's, and of the lab alone."""
    outputs = {
        lab.dumbbell(TEN_RTTS + script, QDISCS["rem"], seed=seed).output
        for seed, script in ((3, ""), (4, ""), (4, " --seed 3"))
    }
    assert len(outputs) == 3


def test_a_clamped_flow_sends_its_window_each_round_trip(lab: Lab) -> None:
    """Which shows the base RTT too: all delays together are what --rtt says."""
    options = "--rate 100mbit --rtt 50ms,100ms --flows 2 --duration 12 --warmup 4 --window 64"
    for ipv6, segment in (("", SEGMENT), (" --ipv6", 1208)):
        done = lab.dumbbell(options + ipv6, "pfifo")
        assert done.status == 0, done.errors
        for flow in done.metrics["flows"]:
            sent = flow["goodput_mbps"] * 1e6 / 8 * flow["rtt_ms"] / 1000 / segment
            assert sent == pytest.approx(64, rel=0.02)


def test_quickack_answers_each_packet(lab: Lab) -> None:
    """Where flows go both ways, all ACKs meet a queue, and are counted there."""
    options = "--rate 10mbit --rtt 50ms --flows 4 --window 20 --reverse 1 --duration 9 --warmup 4"

    def back_per_packet(more: str) -> float:
        done = lab.dumbbell(options + more, "pfifo")
        assert done.status == 0, done.errors
        arrivals: float = done.metrics["reverse"]["arrivals"] / done.metrics["arrivals"]
        return arrivals

    assert back_per_packet(" --quickack") == pytest.approx(1, abs=0.01)
    assert back_per_packet("") < 0.7


def test_short_rtts_win_and_the_null_model_knows(lab: Lab) -> None:
    done = lab.dumbbell(
        "--rate 16mbit --rtt 20ms,160ms --flows 8 --duration 40 --warmup 10", "pie limit 120"
    )
    assert done.status == 0, done.errors
    flows = done.metrics["flows"]
    assert [flow["rtt_ms"] for flow in flows] == [20, 160] * 4
    near = sum(flow["goodput_mbps"] for flow in flows[::2])
    assert near > 2 * sum(flow["goodput_mbps"] for flow in flows[1::2])
    assert done.metrics["jain"] == pytest.approx(done.metrics["null_model_jain"], abs=0.2)


def test_congestion_controls_are_dealt_round_the_flows(lab: Lab) -> None:
    """CUBIC takes what Reno, on a long way, is too slow to take."""
    options = "--rate 10mbit --rtt 200ms --flows 2 --duration 62 --warmup 2 --start-spread 1"
    shares = dict[str, float]()
    for cc in ("reno,cubic", "cubic,reno"):
        done = lab.dumbbell(f"{options} --cc {cc}", "pfifo limit 20")
        assert done.status == 0, done.errors
        assert [flow["cc"] for flow in done.metrics["flows"]] == cc.split(",")
        for flow in done.metrics["flows"]:
            shares[flow["cc"]] = shares.get(flow["cc"], 0) + flow["goodput_mbps"]
    assert shares["cubic"] > 2 * shares["reno"]


def test_ecn_is_negotiated_and_marks_replace_drops(lab: Lab) -> None:
    done = lab.dumbbell(f"{SHORT} --ecn", "rem target 20 bandwidth 16mbit ecn")
    assert done.status == 0, done.errors
    assert done.metrics["mark_rate"] > 0
    assert done.metrics["drop_rate"] < done.metrics["mark_rate"] / 2


def test_loss_lies_behind_the_queue(lab: Lab) -> None:
    done = lab.dumbbell(f"{SHORT} --loss 1%", "pfifo limit 1000")
    assert done.status == 0, done.errors
    assert done.metrics["drop_rate"] == 0
    assert sum(flow["retransmits"] for flow in done.metrics["flows"]) > 20
    assert done.metrics["utilization"] < 0.9
    assert done.metrics["line_loss"] == pytest.approx(0.01, abs=0.004)


def test_copies_are_no_arrivals(lab: Lab) -> None:
    """What xqm sends twice, to hide a flow from losses behind it, came once."""
    options = "--rate 5mbit --rtt 40ms --flows 4 --duration 14 --warmup 4 --start-spread 1"
    done = lab.dumbbell(f"{options} --loss 5%", "xqm bandwidth 5mbit hide onoff hide-by copy")
    assert done.status == 0, done.errors
    flows = done.metrics["flows"]
    sent = sum(flow["goodput_mbps"] * 1e6 * 10 / 8 / SEGMENT for flow in flows)
    sent += sum(flow["retransmits"] for flow in flows)
    assert done.metrics["arrivals"] == pytest.approx(sent, rel=0.05)


def test_bulk_and_iperf3_find_the_same(lab: Lab) -> None:
    """iperf3 is slow in the lab, more so where it joins a queue: small, all start at once."""
    options = "--rate 2mbit --rtt 10ms --flows 3 --duration 32 --warmup 8 --start-spread 0"
    bulk, iperf3 = (
        lab.dumbbell(f"{options} --traffic {traffic}", "pfifo limit 20")
        for traffic in ("bulk", "iperf3")
    )
    assert bulk.status == iperf3.status == 0, bulk.errors + iperf3.errors
    for name, tolerance in (("goodput_mbps", 0.01), ("mean_queue_pkts", 0.1), ("drop_rate", 0.2)):
        assert iperf3.metrics[name] == pytest.approx(bulk.metrics[name], rel=tolerance), name
    assert iperf3.metrics["jain"] == pytest.approx(bulk.metrics["jain"], abs=0.1)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("short_delay_line", "the delay line of h1-eth0 dropped"),
        ("offloads", "had offloads on: "),
        ("joined_segments", "let TCP join up to 40 segments"),
        ("slow_shaper", "of its rate while packets waited"),
        ("hidden_loss", "packets were lost in r1"),
        ("small_windows", "the receiver's window held the flows back"),
        ("small_buffers", "flows had nothing left to send"),
    ],
)
def test_a_network_that_lies_is_not_trusted(lab: Lab, way: str, reason: str) -> None:
    out = str(lab.out)
    qdisc = ["--qdisc", "pfifo limit 60", *SHORT.split(), "--out", out, "--json"]
    done = lab.run(PYTHON, SABOTAGE, way, "dumbbell", *qdisc)
    assert done.status == 1
    verdict = done.metrics["fidelity"]
    assert not verdict["ok"]
    assert any(reason in found for found in verdict["reasons"])
    assert reason in done.errors
    assert json.loads((lab.out / "run.json").read_text())["metrics"]["fidelity"] == verdict


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--rate 1bit", "--rate: '1bit' is not within 100kbit to 10gbit"),
        ("--rtt 80", "--rtt: '80' is not of the form 80ms"),
        ("--rtt 176ms:24ms", "--rtt: '176ms:24ms' is not of the form 24ms:176ms"),
        ("--flows 0", "--flows: '0' is not a whole number from 1 to 2000"),
        ("--mtu 50", "--mtu: '50' is not a whole number from 100 to 9000"),
        ("--ipv6 --mtu 1000", "--mtu: IPv6 needs 1280 or more, not 1000"),
        ("--loss 60%", "--loss: '60%' is not within 0% to 50%"),
        ("--loss sin:1%,2%,3s", "--loss: '1%,2%,3s' is not within 0% to 50% all the time"),
        ("--warmup 12", "--warmup: 12 s leave less than 0.1 s of --duration"),
        ("--start-spread 12", "--start-spread: 12 s are not less than --duration"),
        ("--window 1", "--window: '1' is not a whole number from 2"),
        ("--window 9 --traffic iperf3", "--window: goes with --traffic bulk only"),
        ("--seed x", "--seed: 'x' is not a whole number"),
        ("--cc reno,", "--cc: 'reno,' is not of the form reno or reno,cubic"),
        ("--observe 5ms --cc reno,pert", "--observe: needs --cc pert or pert_pi, whose ACKs"),
        ("--observe 41ms --cc pert", "--observe: more than the first flow's --rtt"),
        ("--observe 5 --cc pert", "--observe: '5' is not of the form 80ms"),
    ],
)
def test_refusals_name_the_option_and_its_limits(options: str, words: str) -> None:
    expect_refusal("dumbbell", f"--qdisc pfifo {SHORT} --out x {options}", words)


@pytest.mark.parametrize("cc", ["nonesuch", "reno,nonesuch"])
def test_the_kernel_refuses_what_it_does_not_have(lab: Lab, cc: str) -> None:
    folder = lab.out / "new"
    given = ["--qdisc", "pfifo", *SHORT.split(), "--cc", cc, "--out", str(folder)]
    done = lab.run(DUMBBELL, *given)
    assert done.status == 2
    words = "--cc nonesuch: the kernel has no congestion control of that name"
    assert done.errors == f"dumbbell.py: {words}.\n"
    assert not folder.exists()


def test_tc_speaks_for_itself(lab: Lab) -> None:
    folder = lab.out / "new"
    for qdisc, words in (
        ("pfifo limit some", 'Illegal value for "limit": "some"'),
        ("nonesuch", "Specified qdisc kind is unknown"),
        ("rem phi 1", "phi must exceed 1"),
    ):
        done = lab.run(DUMBBELL, "--qdisc", qdisc, *SHORT.split(), "--out", str(folder))
        assert done.status == 2
        assert words in done.errors
        assert not folder.exists()


def test_the_table_fits_a_terminal(lab: Lab) -> None:
    done = lab.run(DUMBBELL, "--qdisc", RED, *SHORT.split(), "--out", str(lab.out))
    assert done.status == 0, done.errors
    assert max(map(len, done.output.splitlines())) < 80
    assert "mean" in done.output


STAND = """
import sys, time
start = time.monotonic()
sys.path.insert(0, sys.argv[1])
from aqmlab.experiment import prepared_machine, standing
from aqmlab.scenario import parse_rtt
from aqmlab.topology import Chain
from {script} import arguments
scenario, _ = arguments(sys.argv[2:])
with prepared_machine(), standing(Chain(scenario)) as net:
    took = time.monotonic() - start
    print(len(net.hosts), took)
    print(net.get("h1").cmd("ping -c 1 " + net.get("{last}").IP() + " | grep -c ttl=").strip())
    print(net["r1"].popen(["cat", "/proc/sys/net/ipv4/ip_forward"]).communicate()[0].decode())
"""


@pytest.mark.parametrize(
    ("script", "last", "options"),
    [
        ("dumbbell", "d1", "--qdisc pfifo --flows 39 --rate 16mbit --rtt 24ms:176ms"),
        (
            "multihop",
            "d3",
            "--qdiscs pfifo;pfifo;pfifo --rates 9mbit,9mbit,9mbit --long 8 --cross 9"
            " --link-delay 1ms --access-delay 5ms:10ms",
        ),
    ],
)
def test_42_nodes_stand_in_five_seconds(lab: Lab, script: str, last: str, options: str) -> None:
    """And Mininet's API works on them. With --realtime the guest's clock is the wall's."""
    code = STAND.format(script=script, last=last)
    words = [*options.split(), "--duration", "9", "--warmup", "1", "--out", "x"]
    done = lab.run(PYTHON, "-c", code, str(ROOT / "mininet"), *words, options="--realtime")
    assert done.status == 0, done.errors
    nodes, took, pings, forwards = done.output.split()
    assert int(nodes) == 42
    assert float(took) < 5
    assert (pings, forwards) == ("1", "1")


INTERRUPT = """
import os, signal, subprocess, sys, time
run = subprocess.Popen(sys.argv[2:])
time.sleep(6)
print(sorted(os.listdir("/run/netns")))
run.send_signal(getattr(signal, sys.argv[1]))
print(run.wait(), os.listdir("/run/netns"), subprocess.getoutput("pgrep iperf3"))
"""


@pytest.mark.parametrize(("signal", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("traffic", ["bulk", "iperf3"])
def test_an_interrupted_run_leaves_nothing(
    lab: Lab, traffic: str, signal: str, status: int
) -> None:
    options = f"--rate 2mbit --rtt 2ms --flows 2 --duration 12 --warmup 4 --traffic {traffic}"
    dumbbell = [DUMBBELL, "--qdisc", "pfifo", *options.split(), "--out", str(lab.out)]
    done = lab.run(PYTHON, "-c", INTERRUPT, signal, *dumbbell)
    during, after = done.output.splitlines()
    assert during == "['aqm-d1', 'aqm-h1', 'aqm-r1', 'aqm-r2']"
    assert after.split() == [f"{status}", "[]"]
    assert not list(lab.out.iterdir())
