# SPDX-License-Identifier: GPL-2.0-or-later
"""Losses that vary in time: what packets meet, and what is believed of them."""

import json
import statistics

import pytest

from conftest import PYTHON, SABOTAGE, Lab

LOSSES = {  # their share of the packets in each second
    "step:3=10%,6=0,8=50%": [0, 0, 0, 0.1, 0.1, 0.1, 0, 0, 0.5, 0.5],
    "sin:20%,20%,4s,2s,6s": [0.2, 0.2, 0.327, 0.327, 0.073, 0.073, 0.2, 0.2, 0.2, 0.2],
}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_vary_in_time(lab: Lab, loss: str) -> None:
    """Seen by packets that come at a steady rate, 2000 a second."""
    done = lab.dumbbell(
        "--rate 100mbit --rtt 20ms --flows 1 --window 2 --start-spread 0 --duration 10 --warmup 1"
        f" --udp 1 --udp-rate 16224kbit --loss {loss}",
        "pfifo",
    )
    assert done.status == 0, done.errors
    lost = [1 - value / 16.224 for _, _, value in lab.series("udp_mbps")]
    for found, share in zip(lost, LOSSES[loss], strict=True):
        # what is sent at the end of a second comes in the next one: 10 ms of it
        assert found == pytest.approx(share, abs=0.01 + 5 * (share / 2000) ** 0.5)
    assert done.metrics["line_loss"] == pytest.approx(sum(LOSSES[loss][1:]) / 9, abs=0.02)


def test_losses_come_in_bursts(lab: Lab) -> None:
    """In time, not packet by packet: the link's states are those of the seed."""
    loss = "markov:0/200ms/0.5/0.5,50%/100ms/1/0"
    done = lab.dumbbell(
        "--rate 100mbit --rtt 20ms --flows 1 --window 2 --start-spread 0 --duration 31 --warmup 1"
        f" --udp 1 --udp-rate 16224kbit --loss {loss}",
        "pfifo",
    )
    assert done.status == 0, done.errors
    # A visit of state 2 in every second of state 1, 0.1 s of 0.5 s.
    assert done.metrics["line_loss"] == pytest.approx(0.1, abs=0.03)
    lost = [1 - value / 16.224 for _, _, value in lab.series("udp_mbps")]
    # By the packet, the deviation of a second would be (0.1 * 0.9 / 2000)^0.5 = 0.007.
    assert statistics.pstdev(lost) > 0.02
    scenario = json.loads((lab.out / "run.json").read_text())["scenario"]
    assert scenario["links"][0]["loss"]["states"][1] == {
        "share": 0.5,
        "stay_s": 0.1,
        "next": [1, 0],
    }


def test_losses_that_do_not_follow_are_not_trusted(lab: Lab) -> None:
    options = "--rate 16mbit --rtt 40ms --flows 4 --duration 12 --warmup 4 --start-spread 1"
    given = [*options.split(), "--loss", "step:5=5%", "--out", str(lab.out), "--json"]
    done = lab.run(PYTHON, SABOTAGE, "stuck_loss", "dumbbell", "--qdisc", "pfifo", *given)
    assert done.status == 1
    (reason,) = done.metrics["fidelity"]["reasons"]
    assert "lost 0 of" in reason
    assert "packets, asked for" in reason


def test_bursts_on_a_chain_lie_behind_their_link(lab: Lab) -> None:
    options = "--rates 50mbit,50mbit --long 2 --cross 2 --link-delay 1ms --access-delay 10ms"
    options += " --duration 8 --warmup 2 --start-spread 1 --window 8"
    done = lab.multihop(f"{options} --loss markov:2%/10ms/1;0", "pfifo;pfifo")
    assert done.status == 0, done.errors
    first, second = done.metrics["links"]
    assert first["line_loss"] == pytest.approx(0.02, abs=0.008)
    assert second["line_loss"] is None
    for flow in done.metrics["flows"]:
        assert (flow["retransmits"] > 5) == (flow["path"] in ("AC", "AB")), flow
