# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts with PERT keep a DropTail queue short, and share the link; with an option, with others."""

import csv
import gzip
from typing import Any

import pytest

from conftest import DUMBBELL, SEGMENT, Lab

# The paper's section 4.2 at 60 ms, in packets of 1500 bytes; the buffer is the BDP.
ALONE = "--flows 50 --rate 150mbit --rtt 60ms --mtu 1500 --duration 60 --warmup 25"
ALONE_BUFFER = "pfifo limit 743"
# Section 7: half of the flows are of another congestion control; the BDP again.
SHARED = "--flows 10 --rate 100mbit --rtt 60ms --mtu 1500 --duration 90 --warmup 30"
SHARED_BUFFER = "pfifo limit 495"


def run(
    lab: Lab, control: str, parameters: str = "", link: str = ALONE, buffer: str = ALONE_BUFFER
) -> dict[str, Any]:
    script = f'modprobe tcp_pert {parameters} && exec "$@"'
    options = ["--qdisc", buffer, *link.split(), "--cc", control, "--out", str(lab.out), "--json"]
    done = lab.run("sh", "-c", script, "sh", DUMBBELL, *options)
    assert done.status == 0, done.errors
    return done.metrics


def missed(metrics: dict[str, Any]) -> set[str]:
    """The gates that a run misses."""
    rates = [flow["goodput_mbps"] for flow in metrics["flows"]]
    gates = {
        "fairness": metrics["jain"] >= 0.98,
        "least share": min(rates) >= sum(rates) / len(rates) / 2,
        "loss": metrics["drop_rate"] == 0,
        "queue": 5 <= metrics["queue_delay_ms"] <= 8.5,
        "utilization": metrics["utilization"] >= 0.985,
    }
    return {name for name, met in gates.items() if not met}


def test_pert_at_60_ms(lab: Lab) -> None:
    assert missed(run(lab, "pert")) == set()


def test_pert_without_its_filter_of_delayed_acks(lab: Lab) -> None:
    """So that the test above is one that can fail."""
    assert {"fairness", "least share"} <= missed(run(lab, "pert", "delack_filter=0"))


def test_pert_pi_holds_its_target(lab: Lab) -> None:
    metrics = run(lab, "pert_pi")
    assert metrics["queue_delay_ms"] == pytest.approx(3, abs=0.3)
    assert metrics["drop_rate"] <= 1e-4


def test_a_flow_is_watched(lab: Lab) -> None:
    """Each ACK of the first flow, as late as if its queue were near; its losses, and the queue's.

    PERT whose thresholds are beyond all delay answers none: it is Reno, and fills the buffer.
    """
    link = "--flows 2 --rate 5mbit --rtt 40ms,60ms --quickack --duration 30 --warmup 10"
    never = "tmin=1000000 tmax=2000000"
    found = run(lab, "pert", never, link + " --observe 10ms", "pfifo limit 25")
    with gzip.open(lab.out / "observed.csv.gz", "rt") as rows:
        seen = list(csv.DictReader(rows))
    acks = [row for row in seen if row["event"] == "rtt_us"]
    delays = [int(row["value"]) / 1000 for row in acks]
    packet_ms = 1014 * 8 / 5000
    assert 40 <= min(delays) <= 40 + 2 * packet_ms
    assert 40 + 24 * packet_ms <= max(delays) <= 40 + 27 * packet_ms
    first, last = (float(acks[place]["time_s"]) for place in (0, -1))
    assert first > 0.1 and 30 < last < 30.1  # 30 ms late; the handshake has no sample
    measured = [row for row in acks if 10.03 < float(row["time_s"]) <= 30.03]
    goodput = len(measured) * SEGMENT * 8 / 20e6
    assert goodput == pytest.approx(found["flows"][0]["goodput_mbps"], rel=0.05)  # one each packet
    dropped = sum(int(row["value"]) for row in seen if row["event"] == "drops")
    lost = [row for row in seen if row["event"] == "retransmit"]
    assert dropped >= found["overflow_drops"] > 0
    assert 0 < len(lost) < dropped
    assert len([row for row in lost if float(row["time_s"]) > 10.03]) == pytest.approx(
        found["flows"][0]["retransmits"], abs=2
    )


def share_beside(lab: Lab, other: str, coexist: int) -> float:
    """What PERT's flows get beside OTHER's, of their fair share."""
    metrics = run(lab, f"pert,{other}", f"coexist={coexist}", SHARED, SHARED_BUFFER)
    rates = {"pert": 0.0, other: 0.0}
    for flow in metrics["flows"]:
        rates[flow["cc"]] += flow["goodput_mbps"]
    return 2 * rates["pert"] / sum(rates.values())


@pytest.mark.parametrize(("other", "least"), [("reno", 0.6), ("cubic", 0.35)])
def test_pert_beside_others(lab: Lab, other: str, least: float) -> None:
    assert share_beside(lab, other, coexist=1) >= least


def test_pert_beside_others_without_the_option(lab: Lab) -> None:
    """So that the tests above are ones that can fail."""
    assert share_beside(lab, "cubic", coexist=0) < 0.35
