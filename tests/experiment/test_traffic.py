# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic besides flows that stay: web sessions, groups, UDP; in the lab, by both scripts."""

import math

import pytest

from conftest import SEGMENT, Lab, expect_refusal

LINK = "--rate 10mbit --rtt 60ms --start-spread 1"


def test_web_pages_take_two_round_trips_and_longer_through_a_queue(lab: Lab) -> None:
    web = f"{LINK} --flows 2 --duration 44 --warmup 4 --web 20 --web-think 2"
    idle = lab.dumbbell(f"{web} --window 2", "pfifo")
    assert idle.status == 0, idle.errors
    found = idle.metrics["web"]
    # A page asked for takes a connection's round trip and its own; few are larger than the
    # initial window.
    assert found["median_response_s"] == pytest.approx(0.120, abs=0.005)
    asked = 20 * 40 / (2 + found["mean_response_s"])
    assert found["pages"] == pytest.approx(asked, rel=0.15)
    pages = [row for row in lab.series("page_s") if 4 <= row[0] < 44]
    assert len(pages) == found["pages"]
    assert {session for _, session, _ in pages} == set(range(20))
    times = sorted(value for _, _, value in pages)
    assert sum(times) / len(times) == pytest.approx(found["mean_response_s"], abs=1e-5)
    assert times[-1] > 0.5  # Pareto's tail

    busy = lab.dumbbell(web, "pfifo limit 100")
    assert busy.status == 0, busy.errors
    waiting = busy.metrics["queue_delay_ms"] / 1000
    assert waiting > 0.02
    assert busy.metrics["web"]["median_response_s"] > 0.120 + 1.5 * waiting


def test_web_window_limits_what_a_session_has_in_flight(lab: Lab) -> None:
    """A window a round trip, but for what connecting and asking take."""
    web = "--web 20 --web-page 100 --web-think 0.01 --web-window 5"
    options = f"--rate 100mbit --rtt 60ms --flows 2 --window 2 --duration 64 --warmup 4 {web}"
    done = lab.dumbbell(options, "pfifo")
    assert done.status == 0, done.errors
    most = 20 * 5 * SEGMENT * 8 / 0.060 / 1e6
    assert most / 2 < done.metrics["web"]["goodput_mbps"] < most


def test_groups_come_and_leave(lab: Lab) -> None:
    options = "--rate 2mbit --rtt 10ms --flows 4 --duration 32 --warmup 1 --start-spread 0.5"
    done = lab.dumbbell(f"{options} --group 2 --join 8 --leave 16", "pfifo limit 20")
    assert done.status == 0, done.errors
    rates = lab.series("goodput_mbps")

    def mean(flows: range, first: int, last: int) -> float:
        """Of the sum of FLOWS over the seconds after FIRST, up to LAST."""
        return sum(v for t, flow, v in rates if flow in flows and first < t <= last) / (
            last - first
        )

    early, late = range(2), range(2, 4)
    full = 2 * SEGMENT / 1014
    assert mean(early, 2, 8) == pytest.approx(full, rel=0.03)
    assert mean(late, 0, 8) == 0
    assert mean(late, 10, 16) > full / 4
    assert mean(early, 10, 16) + mean(late, 10, 16) == pytest.approx(full, rel=0.03)
    assert mean(early, 17, 32) == 0
    assert mean(late, 18, 24) == pytest.approx(full, rel=0.03)
    assert mean(late, 25, 32) == 0
    stages = done.metrics["stages"]
    assert [(stage["from_s"], stage["until_s"]) for stage in stages] == [
        (0, 8),
        (8, 16),
        (16, 24),
        (24, 32),
    ]
    assert [sum(share["flows"] for share in stage["shares"]) for stage in stages] == [2, 4, 2, 0]
    for stage, (first, last) in zip(stages, ((0, 8), (8, 16), (16, 24), (24, 32)), strict=True):
        rate = sum(share["goodput_mbps"] for share in stage["shares"])
        assert rate == pytest.approx(mean(range(4), first, last), rel=0.01, abs=0.01)
    # What flows that have left had sent still counts.
    sent = [flow["goodput_mbps"] * 31 for flow in done.metrics["flows"]]
    assert sum(sent) == pytest.approx(sum(v for t, _, v in rates if t > 1), rel=1e-3)


def test_udp_keeps_its_rate_whatever_the_queue_does(lab: Lab) -> None:
    options = f"{LINK} --flows 2 --duration 20 --warmup 5 --udp 2 --udp-rate 3mbit"
    free = lab.dumbbell(f"{options} --window 2", "pfifo")
    assert free.status == 0, free.errors
    assert [stream["rate_mbps"] for stream in free.metrics["udp"]] == pytest.approx(
        [3, 3], rel=2e-3
    )
    assert free.metrics["p99_queue_pkts"] <= 3  # evenly spaced: no bursts
    assert [stream["path"] for stream in free.metrics["udp"]] == ["AB", "AB"]

    held = lab.dumbbell(f"{options} --udp-rate 8mbit", "fq_codel")
    assert held.status == 0, held.errors
    assert [stream["rate_mbps"] for stream in held.metrics["udp"]] == pytest.approx(
        [2.5, 2.5], rel=0.1
    )
    assert held.metrics["drop_rate"] > 0.2


def test_udp_comes_and_goes(lab: Lab) -> None:
    done = lab.dumbbell(
        f"{LINK} --flows 1 --window 2 --duration 60 --warmup 10 --udp 20 --udp-rate 400kbit"
        " --udp-on 1 --udp-off 1 --udp-from 10 --udp-until 50",
        "pfifo",
    )
    assert done.status == 0, done.errors
    rows = lab.series("udp_mbps")
    assert all(value == 0 for time, _, value in rows if not 10 < time <= 50)
    sums = [sum(v for t, _, v in rows if t == second) for second in range(12, 50)]
    assert sum(sums) / len(sums) == pytest.approx(20 * 0.4 / 2, rel=0.1)
    assert max(sums) - min(sums) > 1
    assert all(value <= 0.41 for _, _, value in rows)


def test_udp_s_density_is_its_share_of_the_link(lab: Lab) -> None:
    """As in LRED's experiment 4, where a flow that is on sends a packet every 80 ms."""
    options = "--rate 10mbit --rtt 105ms --flows 2 --window 2 --mtu 500 --start-spread 1"
    done = lab.dumbbell(
        f"{options} --duration 40 --warmup 10 --udp 100 --udp-density 0.5 --udp-on 1 --udp-off 1",
        "pfifo limit 200",
    )
    assert done.status == 0, done.errors
    rates = [stream["rate_mbps"] for stream in done.metrics["udp"]]
    assert sum(rates) == pytest.approx(10 * 0.5 / 2, rel=0.1)
    assert max(rates) < 0.05


def test_short_flows_send_what_they_are_to(lab: Lab) -> None:
    """Each of 12 packets: its connection's round trip, that of the first ten, and of the rest."""
    options = f"{LINK} --flows 1 --duration 22 --warmup 2"
    done = lab.dumbbell(f"{options} --short 20 --short-length 12", "fq_codel")
    assert done.status == 0, done.errors
    found = done.metrics["short"]
    assert found["finished"] == pytest.approx(found["started"], abs=10)
    assert found["started"] == pytest.approx(20 * 20, abs=4 * 20)
    assert found["goodput_mbps"] == pytest.approx(
        found["finished"] * 12 * SEGMENT * 8 / 20 / 1e6, rel=1e-4
    )
    assert found["median_response_s"] == pytest.approx(0.180, abs=0.03)
    assert found["median_response_s"] <= found["mean_response_s"] <= found["p95_response_s"]
    ended = [row for row in lab.series("short_s") if 2 <= row[0] < 22]
    assert len(ended) == found["finished"]
    times = sorted(value for _, _, value in ended)
    assert times[math.ceil(0.95 * len(times)) - 1] == pytest.approx(
        found["p95_response_s"], abs=1e-5
    )


def test_short_flows_last_as_long_as_they_are_to(lab: Lab) -> None:
    """Those of LRED's experiment 5, a few of them: then they are gone, whatever was under way."""
    options = "--rate 10mbit --rtt 25ms,105ms,205ms --flows 3 --mtu 500 --start-spread 1"
    done = lab.dumbbell(
        f"{options} --duration 30 --warmup 2"
        " --short 10 --short-length 1s:2s --short-from 5 --short-until 20",
        "pfifo limit 60",
    )
    assert done.status == 0, done.errors
    found = done.metrics["short"]
    assert found["started"] == found["finished"]
    assert found["started"] == pytest.approx(150, abs=4 * 150**0.5)
    assert found["mean_response_s"] is None
    ended = lab.series("short_s")
    assert all(1 - 1e-3 < value < 2 + 1e-3 for _, _, value in ended)
    assert all(6 < time < 22 for time, _, _ in ended)
    # Some 15 at a time beside three others: most of the link, and no more than all.
    share = found["goodput_mbps"] * 28 / 15 / (10 * 448 / 514)
    assert 0.5 < share < 1


def test_short_flows_alone_go_the_other_way(lab: Lab) -> None:
    options = f"{LINK} --flows 2 --duration 12 --warmup 2 --cc reno,cubic"
    done = lab.dumbbell(
        f"{options} --short 60 --short-length pareto:20,1.35 --short-reverse", "pfifo limit 50"
    )
    assert done.status == 0, done.errors
    back = done.metrics["reverse"]
    assert back["flows"] == []
    assert back["utilization"] > 0.7
    assert done.metrics["utilization"] > 0.7
    assert done.metrics["short"]["finished"] > 300
    assert done.metrics["short"]["mean_response_s"] > 0.12


def test_no_connection_gives_up(lab: Lab) -> None:
    """Fifty times what the link carries keeps the SYNs out for longer than Linux would try."""
    done = lab.dumbbell(
        "--rate 100kbit --rtt 60ms --flows 1 --start-spread 1 --duration 280 --warmup 140"
        " --udp 1 --udp-rate 5mbit --udp-until 150",
        "pfifo limit 2",
    )
    assert done.status == 0, done.errors
    rows = lab.series("goodput_mbps")
    assert all(value == 0 for time, _, value in rows if time <= 150)
    assert all(flow["goodput_mbps"] > 0 for flow in done.metrics["flows"])


@pytest.mark.parametrize("ipv6", ["", " --ipv6"])
def test_all_at_once_on_a_chain_is_the_same_for_the_same_seed(lab: Lab, ipv6: str) -> None:
    options = "--rates 10mbit,10mbit --long 2 --cross 2 --link-delay 1ms --access-delay 5ms:20ms"
    options += " --reverse 6 --web 12 --udp 6 --udp-rate 200kbit --udp-on 1 --udp-off 1"
    options += " --group 1 --join 3 --leave 8 --duration 12 --warmup 2 --start-spread 1"
    options += " --short 20 --short-length 1s:2s --short-gap-shape 1.5 --short-reverse"
    options += " --loss markov:1%/50ms/0.5/0.5,5%/20ms/1/0;0"
    runs = [lab.multihop(f"{options}{ipv6}", "rem;fq_codel") for _ in range(2)]
    for done in runs:
        assert done.status == 0, done.errors
    assert runs[0].output == runs[1].output
    metrics = runs[0].metrics
    assert metrics["web"]["pages"] > 50
    paths = ["AC", "AC", "AB", "AB", "BC", "BC"]
    assert [stream["path"] for stream in metrics["udp"]] == paths
    assert all(0 < stream["rate_mbps"] < 0.2 for stream in metrics["udp"])
    assert [flow["path"] for flow in metrics["reverse"]["flows"]] == [p[::-1] for p in paths]
    assert all(flow["goodput_mbps"] > 0 for flow in metrics["flows"] + metrics["reverse"]["flows"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--web 0", "--web: '0' is not a whole number from 1 to 2000"),
        ("--web 9 --web-think 0", "--web-think: more than 0 s"),
        ("--web-shape 1.5", "--web-shape: goes with --web only"),
        ("--web 9 --web-shape 1", "--web-shape: '1' is not within 1.01 to 100"),
        ("--short 9", "--short: needs a --short-length"),
        ("--short 0 --short-length 9", "--short: '0' is not within 0.01 to 10000"),
        ("--short 9 --short-length 0", "--short-length: '0' is not within 1 to 1000000 packets"),
        ("--short-length 9", "--short-length: goes with --short only"),
        ("--short-reverse", "--short-reverse: goes with --short only"),
        ("--short 9 --short-length 9 --short-from 9", "--short-from: 9 s are not less than"),
        ("--udp 3 --udp-density 0", "--udp-density: '0' is not within 0.01 to 10000"),
        ("--udp 3 --udp-density 1 --udp-rate 1mbit", "--udp: needs a --udp-rate, or a --udp-dens"),
        ("--udp 3 --udp-rate 1mbit --udp-shape 2", "--udp-shape: goes with --udp-on only"),
        ("--web-window 9", "--web-window: goes with --web only"),
        ("--group 1", "--group and --join: go together"),
        ("--join 3", "--group and --join: go together"),
        ("--leave 3", "--leave: goes with --group only"),
        ("--group 1 --join 1 --leave 1", "--leave: 1 s are not more than --start-spread"),
        ("--group 1 --join 1 --traffic iperf3", "--group: goes with --traffic bulk only"),
        ("--group 1 --join 9", "--join: the last flow would come at 10 s, not within --duration"),
        ("--udp 3", "--udp: needs a --udp-rate"),
        ("--udp-rate 1mbit", "--udp-rate: goes with --udp only"),
        ("--udp 1 --udp-rate 1mbit --udp-on 1", "--udp-on and --udp-off: go together, and are"),
        ("--udp 1 --udp-rate 1mbit --udp-from 9", "--udp-from: 9 s are not less than --udp-until"),
    ],
)
def test_refusals_name_the_option(options: str, words: str) -> None:
    given = f"--qdisc pfifo {LINK} --flows 2 --duration 9 --warmup 1 --out x {options}"
    expect_refusal("dumbbell", given, words)
