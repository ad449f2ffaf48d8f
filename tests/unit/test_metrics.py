# SPDX-License-Identifier: GPL-2.0-or-later
"""What the experiments' numbers mean: options read, metrics computed, verdicts given."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqmlab import fidelity
from aqmlab.fidelity import DeviceState, Hop, Inspection
from aqmlab.metrics import (
    NOT_STARTED,
    Counters,
    FlowState,
    QueueSample,
    Reading,
    flow_rates,
    jain,
    measure,
    null_model_jain,
    percentile,
    queue_delay_s,
)
from aqmlab.netlink import attribute, attributes
from aqmlab.sampler import SPLITS, flow_state
from aqmlab.scenario import (
    Scenario,
    parse_names,
    parse_qdisc,
    parse_rate,
    parse_rtt,
    parse_seconds,
    parse_share,
)

MS = 1_000_000  # ns
S = 1_000_000_000  # ns
SCENARIO = Scenario(
    qdisc="pfifo limit 120",
    rate_bps=64_000_000,
    rtts_us=(80_000, 80_000),
    mtu=1000,
    ipv6=False,
    initcwnd=None,
    window=None,
    duration_s=30.0,
    warmup_s=10.0,
    cc=("reno", "cubic"),
    ecn=False,
    loss=0.0,
    start_spread_s=5.0,
    traffic="bulk",
    seed=1,
)
FLOW = FlowState(0, 0, ecn=False, busy_us=20 * 10**6, window_limited_us=0, unsent_bytes=9)


# Options


@pytest.mark.parametrize(
    ("text", "rate"),
    [("64mbit", 64_000_000), ("1.5Mbit", 1_500_000), ("1gbit", 10**9), ("200000bit", 200_000)],
)
def test_rates(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["64", "64mb", "-1mbit", "99kbit", "11gbit", "mbit", ""])
def test_refused_rates(text: str) -> None:
    with pytest.raises(ValueError, match=r"64mbit|100kbit to 10gbit"):
        parse_rate(text)


def test_times_and_shares() -> None:
    assert parse_seconds("100") == 100
    assert parse_seconds("250ms") == 0.25
    assert parse_share("1%") == 0.01
    assert parse_share("0.01") == 0.01
    for text in ("60%", "-1%", "one"):
        with pytest.raises(ValueError, match="%"):
            parse_share(text)


def test_rtts_for_all_spread_and_dealt() -> None:
    assert parse_rtt("80ms").deal(3) == (80_000,) * 3
    assert parse_rtt("24ms:176ms").deal(20) == tuple(range(24_000, 177_000, 8_000))
    assert parse_rtt("24ms:176ms").deal(1) == (24_000,)
    assert parse_rtt("25ms,105ms").deal(3) == (25_000, 105_000, 25_000)


@pytest.mark.parametrize("text", ["80", "176ms:24ms", "1ms:2ms:3ms", "0.1ms", "11s", "80ms,"])
def test_refused_rtts(text: str) -> None:
    with pytest.raises(ValueError, match="ms"):
        parse_rtt(text)


def test_congestion_controls_are_dealt_round() -> None:
    assert parse_names("reno") == ("reno",)
    assert parse_names("pert_pi,cubic") == ("pert_pi", "cubic")
    for text in ("", "reno,", "re no"):
        with pytest.raises(ValueError, match="reno,cubic"):
            parse_names(text)
    flows = replace(SCENARIO, rtts_us=(80_000,) * 5, cc=("reno", "cubic", "bbr")).flow_list()
    assert [flow.cc for flow in flows] == ["reno", "cubic", "bbr", "reno", "cubic"]


def test_a_qdisc_is_words_on_one_line() -> None:
    assert parse_qdisc(" rem  target 20 ") == "rem target 20"
    for text in ("", "  ", "pfifo\nqdisc del dev lo root"):
        with pytest.raises(ValueError, match="as tc takes them"):
            parse_qdisc(text)


def test_starts_are_the_seed_s_and_count_from_the_first() -> None:
    flows = replace(SCENARIO, rtts_us=(80_000,) * 50).flow_list()
    assert flows == replace(SCENARIO, rtts_us=(80_000,) * 50).flow_list()
    assert flows != replace(SCENARIO, rtts_us=(80_000,) * 50, seed=2).flow_list()
    assert min(flow.start_s for flow in flows) == 0
    assert 4 < max(flow.start_s for flow in flows) <= 5
    assert len({flow.port for flow in flows}) == 50


def test_segments() -> None:
    assert (SCENARIO.frame_bytes, SCENARIO.max_segment, SCENARIO.full_segment) == (1014, 960, 948)
    assert replace(SCENARIO, mtu=1280, ipv6=True).full_segment == 1208


# Metrics


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_jain_lies_between_one_nth_and_one(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9


def test_jain_of_known_shares() -> None:
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([0, 0]) == 1


@given(st.lists(st.integers(0, 1000), min_size=1), st.floats(0, 1))
def test_percentile_is_the_least_that_enough_do_not_exceed(values: list[int], share: float) -> None:
    found = percentile(values, share)
    assert sum(v <= found for v in values) >= share * len(values)
    assert found == min(values) or sum(v < found for v in values) < share * len(values)


def test_the_null_model() -> None:
    # A queue of 100 packets of 1014 bytes at 64 Mb/s is 12.675 ms.
    delay = queue_delay_s(100, SCENARIO)
    assert delay == pytest.approx(0.012675)
    assert null_model_jain([0.08, 0.08], delay) == pytest.approx(1)
    # Shares of 2 to 1.
    assert null_model_jain([0.05, 0.11], 0.01) == pytest.approx(9 / 10)


def reading(time_ns: int, **changes: int | list[FlowState] | None) -> Reading:
    flows = changes.pop("flows", None) or [FLOW, FLOW]
    assert isinstance(flows, list)
    counters = Counters(0, sent=0, sent_bytes=0, queued=0, drops=0, overflow=0, marks=0)
    return Reading(time_ns, replace(counters, **changes), flows)  # type: ignore[arg-type]


def test_metrics_between_two_readings() -> None:
    warm = reading(10 * S, sent=1000, queued=10, drops=5, overflow=1, marks=2)
    end = reading(
        30 * S,
        shaped_bytes=80_000_000,
        sent=80_000,
        queued=20,
        drops=1005,
        overflow=101,
        marks=102,
        flows=[
            replace(FLOW, acked_bytes=100_000_000, retransmits=70),
            replace(FLOW, acked_bytes=50_000_000, retransmits=30),
        ],
    )
    queue = [QueueSample(i * 10 * MS, packets, 0, None) for i, packets in enumerate([0, 10, 20])]
    found = measure(SCENARIO, queue, warm, end, None)
    arrivals = 79_000 + 1000 + 10
    assert found.goodput_mbps == pytest.approx(60)
    assert [flow.goodput_mbps for flow in found.flows] == pytest.approx([40, 20])
    assert [flow.retransmits for flow in found.flows] == [70, 30]
    assert [flow.rtt_ms for flow in found.flows] == [80, 80]
    assert [flow.cc for flow in found.flows] == ["reno", "cubic"]
    assert found.jain == pytest.approx(0.9)
    assert found.utilization == pytest.approx(0.5)
    assert found.mean_queue_pkts == 10
    assert found.stddev_queue_pkts == pytest.approx((200 / 3) ** 0.5)
    assert found.p99_queue_pkts == 20
    assert found.arrivals == arrivals
    assert found.drop_rate == pytest.approx(1000 / arrivals)
    assert found.mark_rate == pytest.approx(100 / arrivals)
    assert found.overflow_drops == 100
    assert found.null_model_jain == pytest.approx(1)


def test_what_a_qdisc_does_not_tell_stays_unknown() -> None:
    warm, end = reading(10 * S, marks=None), reading(30 * S, marks=None, overflow=None)
    found = measure(SCENARIO, [QueueSample(0, 0, 0, None)], warm, end, None)
    assert found.mark_rate is None
    assert found.overflow_drops is None
    assert found.drop_rate == 0


def test_a_flow_that_has_not_started_has_no_rate() -> None:
    assert flow_rates([NOT_STARTED], [replace(FLOW, acked_bytes=125_000)], 1) == [1]


# What the kernel's bytes mean


@given(st.dictionaries(st.integers(1, 0x3FFF), st.binary(max_size=20), max_size=8))
def test_attributes_come_back(content: dict[int, bytes]) -> None:
    packed = b"".join(attribute(kind, payload) for kind, payload in content.items())
    assert attributes(b"head" + packed, 4) == content


def test_the_statistics_of_each_kind() -> None:
    red = SPLITS["red"](struct.pack("=4L", 1, 2, 3, 4))
    assert (red.overflow, red.marks, red.probability) == (2, 4, None)
    pie = SPLITS["pie"](struct.pack("=Q8L", 1 << 62, 1, 2, 3, 4, 5, 6, 7, 8))
    assert (pie.overflow, pie.marks, pie.probability) == (6, 8, 0.25)
    codel = SPLITS["codel"](struct.pack("=4Ll4L", 1, 2, 3, 4, 5, 6, 7, 8, 9))
    assert (codel.overflow, codel.marks) == (6, 7)
    fq_codel = SPLITS["fq_codel"](struct.pack("=10L", *range(10)))
    assert (fq_codel.overflow, fq_codel.marks) == (2, 3)
    tins = b"".join(
        attribute(number, attribute(8, struct.pack("=L", marks)))
        for number, marks in ((1, 5), (2, 6))
    )
    assert SPLITS["cake"](attribute(10, tins)).marks == 11
    ours = {2: 1 << 31, 5: 70, 6: 80, 8: 90}
    rem = SPLITS["rem"](b"".join(attribute(k, struct.pack("=Q", v)) for k, v in ours.items()))
    assert (rem.overflow, rem.marks, rem.probability) == (70, 90, 0.5)


def test_tcp_info() -> None:
    info = bytearray(192)
    info[5] = 8 | 2
    struct.pack_into("=L", info, 100, 7)
    struct.pack_into("=Q", info, 120, 1 << 33)
    struct.pack_into("=L", info, 144, 3)
    struct.pack_into("=2Q", info, 168, 100, 20)
    assert flow_state(bytes(info)) == FlowState(1 << 33, 7, True, 100, 20, 3)


# Verdicts


def busy_link(share: float, queues: list[int], scenario: Scenario = SCENARIO) -> list[QueueSample]:
    """Samples of a link that delivers SHARE of its rate whenever packets wait."""
    samples, sent = [], 0.0
    for i, packets in enumerate(queues):
        samples.append(QueueSample(i * 10 * MS, packets, round(sent), None))
        sent += share * scenario.rate_bps / 8 / 100 * (1.0 if packets else 0.1)
    return samples


@given(st.lists(st.integers(0, 120), min_size=300, max_size=300), st.floats(0.5, 1.5))
def test_the_shaper_is_judged_by_what_left_while_packets_waited(
    queues: list[int], share: float
) -> None:
    found = fidelity.shaper_ratio(busy_link(share, queues), SCENARIO)
    assert found is None or found == pytest.approx(share, rel=1e-3)


def test_a_slow_or_a_fast_shaper_is_reported() -> None:
    waiting = [20] * 2000
    assert fidelity.check_shaper(busy_link(1.0, waiting), SCENARIO) == []
    for share in (0.95, 1.05):
        (reason,) = fidelity.check_shaper(busy_link(share, waiting), SCENARIO)
        assert f"{share:.1%} of its rate" in reason


def test_a_queue_that_runs_empty_between_samples_raises_no_alarm() -> None:
    # Never more than two packets at a sample: nothing shows that the link was busy.
    assert fidelity.shaper_ratio(busy_link(0.5, [2] * 2000), SCENARIO) is None
    # Mostly nearly empty, and sometimes long: only the long stretches are held to the rate.
    samples = busy_link(0.6, [3] * 3000)
    offset = samples[-1]
    samples += [
        QueueSample(
            offset.time_ns + 10 * MS + s.time_ns, s.packets, offset.sent_bytes + s.sent_bytes, None
        )
        for s in busy_link(1.0, [100] * 500)
    ]
    assert fidelity.shaper_ratio(samples, SCENARIO) == pytest.approx(1, abs=0.01)


def test_slow_links_are_judged_over_longer_windows() -> None:
    slow = replace(SCENARIO, rate_bps=2_000_000)
    assert fidelity.shaper_ratio(busy_link(0.9, [20] * 3000, slow), slow) == pytest.approx(
        0.9, rel=1e-3
    )


DEVICE = DeviceState(
    "h1-eth0",
    offloads=(),
    max_segments=1,
    sent=0,
    received=0,
    dropped=0,
    line_drops=0,
    lossy=False,
)


def verdict(loss: float = 0.0, **changes: object) -> list[str]:
    """Of a device that was DEVICE before and is changed after."""
    after = replace(DEVICE, **changes)  # type: ignore[arg-type]
    before = replace(DEVICE, lossy=after.lossy)
    stacks = {"h1": {"Ip:InDiscards": 1}}
    return fidelity.check_devices(
        Inspection({DEVICE.name: before}, stacks), Inspection({DEVICE.name: after}, stacks), loss
    )


def test_devices() -> None:
    assert verdict(sent=1000, received=1000) == []
    assert verdict(offloads=("gso",)) == ["h1-eth0 had offloads on: gso"]
    assert verdict(max_segments=40) == ["h1-eth0 let TCP join up to 40 segments"]
    assert verdict(dropped=3) == ["h1-eth0 dropped 3 packets"]
    assert verdict(line_drops=4) == ["the delay line of h1-eth0 dropped 4 packets"]


def test_a_lossy_line_must_lose_its_share() -> None:
    assert verdict(0.01, lossy=True, sent=99_000, line_drops=1000) == []
    assert verdict(0.01, lossy=True, sent=99_000, line_drops=1100) == []
    (reason,) = verdict(0.01, lossy=True, sent=98_000, line_drops=2000)
    assert reason == "h1-eth0 lost 2000 of 100000 packets, asked for 1.00%"


def test_losses_of_the_stack() -> None:
    before = Inspection({}, {"r1": {"Ip:OutNoRoutes": 2}})
    after = Inspection({}, {"r1": {"Ip:OutNoRoutes": 5, "TcpExt:RcvPruned": 0}})
    assert fidelity.check_devices(before, after, 0) == [
        "the network stack of r1 lost packets: Ip:OutNoRoutes 3"
    ]


def test_every_packet_is_accounted_for() -> None:
    assert fidelity.check_hops([Hop("on the way", 100, 100)]) == []
    assert fidelity.check_hops([Hop("on the way", 100, 98)]) == [
        "2 of 100 packets were lost on the way"
    ]
    assert fidelity.check_rest(reading(0).counters) == []
    assert fidelity.check_rest(reading(0, queued=2).counters) == [
        "the queue at rest says it holds 2 packets"
    ]


def test_joined_packets_are_seen_by_their_size() -> None:
    end = reading(30 * S, sent=1000, sent_bytes=1_014_000)
    assert fidelity.check_packets(reading(10 * S), end, SCENARIO) == []
    end = reading(30 * S, sent=500, sent_bytes=1_014_000)
    (reason,) = fidelity.check_packets(reading(10 * S), end, SCENARIO)
    assert "packets of 2028 bytes" in reason


def test_flows_are_held_back_by_the_network_alone() -> None:
    def reasons(scenario: Scenario = SCENARIO, **changes: object) -> list[str]:
        flow = replace(FLOW, acked_bytes=1, **changes)  # type: ignore[arg-type]
        return fidelity.check_flows([reading(30 * S, flows=[flow])] * 50, scenario)

    assert reasons() == []
    assert reasons(window_limited_us=10**6) == [
        "the receiver's window held the flows back for 5.0% of their time"
    ]
    assert reasons(replace(SCENARIO, window=10), window_limited_us=10**6) == []
    assert reasons(unsent_bytes=0) == [
        "flows had nothing left to send, 50 of 50 times they were looked at"
    ]
    assert reasons(replace(SCENARIO, ecn=True), ecn=True) == []
    assert reasons(replace(SCENARIO, ecn=True)) == ["1 flows did not negotiate ECN"]


def test_a_sampler_that_did_not_keep_up_is_reported() -> None:
    samples = busy_link(1.0, [1] * 950)
    assert fidelity.check_samples(samples, 950) == []
    assert "only 950 of 1000" in fidelity.check_samples(samples, 1000)[0]
