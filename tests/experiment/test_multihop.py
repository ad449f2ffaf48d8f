# SPDX-License-Identifier: GPL-2.0-or-later
"""multihop.py in the lab, from its command line to its files."""

import csv
import gzip
import json

import pytest

from conftest import MULTIHOP, PYTHON, ROOT, SABOTAGE, SEGMENT, Lab, expect_refusal

CHAIN = "--rates 10mbit,15mbit,15mbit --long 3 --cross 3 --link-delay 1ms"
SHORT = f"{CHAIN} --access-delay 5ms:10ms --duration 12 --warmup 4 --start-spread 1"
RED = "fifa base red noscale min 5 max 15 probability 0.1 limit 40"


def test_flows_over_many_links_get_less_and_the_files_say_so(lab: Lab) -> None:
    """The paper's experiment 2 of XQM, small."""
    done = lab.multihop(
        f"{CHAIN} --access-delay 5ms:10ms --duration 60 --warmup 10", f"{RED};" * 2 + RED
    )
    assert done.status == 0, done.errors
    metrics = done.metrics
    assert metrics["fidelity"] == {"ok": True, "reasons": []}
    assert metrics["long_share"] < 0.8
    flows = metrics["flows"]
    assert [flow["path"] for flow in flows] == ["AD"] * 3 + ["AB"] * 3 + ["BC"] * 3 + ["CD"] * 3
    long = sum(flow["goodput_mbps"] for flow in flows[:3])
    assert metrics["goodput_mbps"] == pytest.approx(
        long + sum(f["goodput_mbps"] for f in flows[3:6]), abs=1e-5
    )
    fair = 10e6 / (8 * 1014) / 6
    assert metrics["long_share"] == pytest.approx(long / 3 * 1e6 / 8 / SEGMENT / fair, rel=1e-4)
    first, *others = metrics["links"]
    assert first["utilization"] > 0.85
    for link in others:
        assert link["arrivals"] > 1.2 * first["arrivals"]
        assert 0 < link["drop_rate"] < 0.05
        assert link["mark_rate"] == 0

    run = json.loads((lab.out / "run.json").read_text())
    assert run["metrics"] == metrics
    assert [link["rate_bps"] for link in run["scenario"]["links"]] == [
        10**7,
        15 * 10**6,
        15 * 10**6,
    ]
    assert [[q["kind"] for q in shown] for shown in run["provenance"]["qdiscs"]] == [
        ["htb", "fifa"]
    ] * 3
    with gzip.open(lab.out / "series.csv.gz", "rt") as stream:
        rows = list(csv.DictReader(stream))
    for number, link in enumerate(metrics["links"]):
        queue = [
            int(row["value"])
            for row in rows
            if (row["series"], row["link"]) == ("queue_pkts", str(number))
            and 10 <= float(row["time_s"]) < 60
        ]
        assert sum(queue) / len(queue) == pytest.approx(link["mean_queue_pkts"], abs=1e-6)


def test_a_clamped_flow_sends_its_window_each_round_trip(lab: Lab) -> None:
    """Which shows the base RTT of every path: nothing waits anywhere."""
    done = lab.multihop(
        "--rates 100mbit,100mbit,100mbit --long 2 --cross 1 --link-delay 5ms"
        " --access-delay 5ms:20ms --window 32 --duration 8 --warmup 3 --start-spread 1 --reverse 2",
        "pfifo;pfifo;pfifo",
    )
    assert done.status == 0, done.errors
    flows = done.metrics["flows"]
    for flow in flows + done.metrics["reverse"]["flows"]:
        sent = flow["goodput_mbps"] * 1e6 / 8 * flow["rtt_ms"] / 1000 / SEGMENT
        assert sent == pytest.approx(32, rel=0.03)
    rtts = [flow["rtt_ms"] for flow in flows]
    assert all(2 * (15 + 10) <= rtt <= 2 * (15 + 40) for rtt in rtts[:2])
    assert all(2 * (5 + 10) <= rtt <= 2 * (5 + 40) for rtt in rtts[2:])
    assert len(set(rtts)) == 5


def test_equal_rtts_count_the_other_links_and_their_queues(lab: Lab) -> None:
    options = f"{CHAIN} --access-delay 7ms --duration 90 --warmup 30 --equal-rtt"
    # Held at targets, for those of the first run to be those of the second, whatever the RTTs.
    rem = "rem target {} bandwidth {} limit 100"
    qdiscs = [rem.format(20, "10mbit"), rem.format(20, "15mbit"), rem.format(30, "15mbit")]
    done = lab.multihop(options, ";".join(qdiscs))
    assert done.status == 0, done.errors
    metrics = done.metrics
    queues = [link["queue_delay_ms"] for link in metrics["links"]]
    assert min(queues) > 3
    whole = 2 * (7 + 7 + 3)
    for number, path in enumerate(("AB", "BC", "CD")):
        elsewhere = sum(queues) - queues[number]
        (rtt,) = {flow["rtt_ms"] for flow in metrics["flows"] if flow["path"] == path}
        # The queues of the first run are not quite those of the second.
        assert rtt == pytest.approx(whole + elsewhere, abs=0.3 * elsewhere)
    assert {flow["rtt_ms"] for flow in metrics["flows"] if flow["path"] == "AD"} == {whole}
    assert metrics["null_model_jain"] > 0.99


def test_loss_lies_behind_its_link_s_queue(lab: Lab) -> None:
    for loss, lossy in (("0,2%,0", ("AD", "BC")), ("0,0,2%", ("AD", "CD"))):
        done = lab.multihop(f"{SHORT} --window 8 --loss {loss}", "pfifo;pfifo;pfifo")
        assert done.status == 0, done.errors
        assert all(link["drop_rate"] == 0 for link in done.metrics["links"])
        for flow in done.metrics["flows"]:
            assert (flow["retransmits"] > 5) == (flow["path"] in lossy), flow


@pytest.mark.parametrize("ipv6", ["", " --ipv6"])
def test_flows_go_both_ways(lab: Lab, ipv6: str) -> None:
    """Each direction has its queues; ACKs wait in those of the other."""
    # Long enough for windows in which such short queues were never empty.
    options = f"{SHORT} --duration 34 --loss 0,0.1%,0 --reverse 12{ipv6}"
    done = lab.multihop(options, f"{RED};" * 2 + RED)
    assert done.status == 0, done.errors
    there, back = done.metrics, done.metrics["reverse"]
    assert [flow["path"] for flow in back["flows"]] == [f["path"][::-1] for f in there["flows"]]
    assert back["reverse"] is None
    for metrics in (there, back):
        assert 0.5 < metrics["jain"] < 1
        for link in metrics["links"]:
            assert link["utilization"] > 0.6
            assert link["drop_rate"] > 0
            assert link["mean_queue_pkts"] > 1


LABELLED = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from aqmlab.experiment import prepared_machine, standing
from aqmlab.topology import Chain
from multihop import arguments
scenario, _ = arguments(sys.argv[2:])
with prepared_machine(), standing(Chain(scenario)) as net:
    for node in net.hosts:
        for device in node.intfList():
            with node.namespace:
                show = ["tc", "filter", "show", "dev", device.name, "egress"]
                if "rttlabel" in subprocess.check_output(show, text=True):
                    print(device.name)
"""


@pytest.mark.parametrize(
    ("label", "labelling"),
    [
        # The ACKs of each way meet the queues of the other.
        ("socket", "d0 d1 d2 d3 h1 h2 h3 h4 h5 h6"),
        ("handshake", "r1 r2 r2 r3 r3 r4"),
    ],
)
def test_whoever_sends_into_a_queue_is_labelled(lab: Lab, label: str, labelling: str) -> None:
    options = f"--qdiscs pfifo;pfifo;pfifo {CHAIN} --access-delay 5ms --duration 9 --warmup 1"
    options += f" --label {label} --reverse 12 --out {lab.out}"
    done = lab.run(PYTHON, "-c", LABELLED, str(ROOT / "mininet"), *options.split())
    assert done.status == 0, done.errors
    assert " ".join(name.split("-")[0] for name in done.output.split()) == labelling


def test_the_same_seed_gives_the_same_bytes(lab: Lab) -> None:
    written = []
    for seed in (5, 5, 6):
        done = lab.multihop(f"{SHORT} --loss 1%", "rem;pie;fq_codel", seed=seed)
        assert done.status == 0, done.errors
        files = [(lab.out / name).read_bytes() for name in ("run.json", "series.csv.gz")]
        written.append((done.output, *files))
    assert written[0] == written[1]
    assert all(one != other for one, other in zip(written[1], written[2], strict=True))


def test_a_chain_that_lies_is_not_trusted(lab: Lab) -> None:
    options = ["--qdiscs", f"{RED};{RED};{RED}", *SHORT.split(), "--out", str(lab.out), "--json"]
    for way, reasons in (
        ("slow_shaper", [f"the shaper of r{router}-eth" for router in (1, 2, 3)]),
        ("hidden_loss", ["packets were lost in r1"]),
    ):
        done = lab.run(PYTHON, SABOTAGE, way, "multihop", *options)
        assert done.status == 1
        for told, reason in zip(done.metrics["fidelity"]["reasons"], reasons, strict=True):
            assert reason in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--rates 9mbit", "--rates: 2 to 25 links, not 1; dumbbell.py is for a single one"),
        ("--rates 9mbit,9mbit", "--qdiscs: 3 for 2 rates; give exactly one for each"),
        ("--rates 9mbit,x", "--rates: 'x' is not of the form 64mbit"),
        ("--loss 1%,1%", "--loss: 2 for 3 rates; give one for all or for each"),
        ("--long 0", "--long: '0' is not a whole number from 1 to 2000"),
        ("--cross 700", "--cross: 3 long flows and 3 times 700 are more than 2000 flows"),
        ("--access-delay 9ms:5ms", "--access-delay: '9ms:5ms' is not of the form 5ms:10ms"),
        ("--link-delay 6s", "--link-delay: '6s' is not within 0ms to 5s"),
        (
            "--access-delay 0ms --link-delay 0ms",
            "--access-delay: an RTT is 0 ms; 1 ms is the least",
        ),
        ("--equal-rtt --warmup 0", "--equal-rtt: needs a --warmup of 0.1 s or more"),
        ("--reverse 0", "--reverse: '0' is not a whole number from 1 to 2000"),
    ],
)
def test_refusals_name_the_option_and_its_limits(options: str, words: str) -> None:
    given = f"--qdiscs pfifo;pfifo;pfifo {SHORT} --out x {options}"
    expect_refusal("multihop", given, words)


def test_tc_speaks_for_the_qdisc_it_refuses(lab: Lab) -> None:
    done = lab.run(
        MULTIHOP, "--qdiscs", "pfifo;rem phi 1;pfifo", *SHORT.split(), "--out", str(lab.out)
    )
    assert done.status == 2
    assert "'rem phi 1'" in done.errors
    assert "phi must exceed 1" in done.errors


def test_the_table_fits_a_terminal(lab: Lab) -> None:
    done = lab.run(
        *(MULTIHOP, "--qdiscs", "fq_codel;pfifo;pfifo", *SHORT.split(), "--out", str(lab.out))
    )
    assert done.status == 0, done.errors
    assert max(map(len, done.output.splitlines())) < 80
    assert "of their share of the first link" in done.output
    assert "link CD" in done.output
