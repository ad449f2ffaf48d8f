# SPDX-License-Identifier: GPL-2.0-or-later
"""The wireless Reno of REM's section 5: what losses, marks and timeouts do to its window."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from aqmlab.kernel import write_sysctls
from test_pert import BASE_MS, SSTHRESH, STEP_S, WINDOW, Flow, Way

RETRANSMITS = 100  # offset in struct tcp_info, linux/tcp.h
NO_THRESHOLD = 0x7FFFFFFF
ROUND_TRIP_S = BASE_MS / 1000


@pytest.fixture
def way() -> Iterator[Way]:
    with contextlib.ExitStack() as ends:
        yield Way(ends)
    time.sleep(1)  # until the namespaces have gone


def small_packets(flow: Flow, count: int) -> None:
    for _ in range(count):
        flow.send(100)


def grown(way: Way, control: str) -> tuple[Flow, int]:
    """A flow in congestion avoidance at rest, its packets small from now on; and its window."""
    flow = way.connect(control)
    flow.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    flow.run(0.3)
    while flow.info(WINDOW) > 60:  # so that no buffer is what limits it
        with way.marking():
            small_packets(flow, 1)
            time.sleep(ROUND_TRIP_S)
        small_packets(flow, 8)
        flow.run(0)
    flow.run(0.3)
    window = flow.info(WINDOW)
    assert window > 16
    assert flow.info(SSTHRESH) < window
    return flow, window


def lose_one(way: Way, flow: Flow) -> None:
    """Lose one packet and none of four that follow it."""
    with way.dropping():
        small_packets(flow, 1)
        time.sleep(ROUND_TRIP_S + STEP_S)
    small_packets(flow, 4)


@pytest.mark.parametrize(("control", "part"), [("reno", 2), ("wreno", 1)])
def test_a_loss_takes_nothing(way: Way, control: str, part: int) -> None:
    flow, window = grown(way, control)
    threshold = flow.info(SSTHRESH)
    before = flow.info(RETRANSMITS)
    lose_one(way, flow)
    flow.run(0)
    assert flow.info(RETRANSMITS) > before
    assert window // part <= flow.info(WINDOW) <= window // part + 1
    assert flow.info(SSTHRESH) == (threshold if part == 1 else window // 2)


def test_slow_start_goes_on_after_a_loss(way: Way) -> None:
    flow = way.connect("wreno")
    flow.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(2):
        lose_one(way, flow)
        flow.run(0)
        assert flow.info(SSTHRESH) == NO_THRESHOLD
    assert flow.info(RETRANSMITS) >= 2
    before = flow.info(WINDOW)
    flow.run(3 * ROUND_TRIP_S)
    assert flow.info(WINDOW) > 3 * before


@pytest.mark.parametrize("control", ["reno", "wreno"])
def test_marks_halve_once_a_round_trip(way: Way, control: str) -> None:
    """As often as Reno's, which are Linux's own."""
    flow, window = grown(way, control)
    with way.marking():
        for _ in range(4):
            small_packets(flow, 2)
            time.sleep(STEP_S / 2)
    flow.run(0)
    assert flow.info(SSTHRESH) == window // 2
    small_packets(flow, 8)
    flow.run(0)
    assert flow.info(SSTHRESH) == window // 2  # the receiver's echo has ended
    halved = flow.info(WINDOW)
    with way.marking():
        small_packets(flow, 1)
        time.sleep(ROUND_TRIP_S)
    small_packets(flow, 8)
    flow.run(0)
    assert flow.info(SSTHRESH) == halved // 2


@pytest.mark.parametrize("when", ["before", "meanwhile", "long before the end"])
def test_a_mark_beside_a_loss_halves_once(way: Way, when: str) -> None:
    """It comes before the loss is known, or while it is made up for, once or twice."""
    flow, window = grown(way, "wreno")
    with way.dropping():
        small_packets(flow, 1)
        time.sleep(ROUND_TRIP_S + STEP_S)
    if when != "before":
        small_packets(flow, 4)
        time.sleep(STEP_S)  # before the packet sent anew arrives, after they are known to have
    with way.marking():
        small_packets(flow, 1)
    if when == "before":
        small_packets(flow, 4)
    if when == "long before the end":
        time.sleep(ROUND_TRIP_S + STEP_S / 2)
        small_packets(flow, 1)  # the receiver must not think that it tells of a smaller window
        time.sleep(STEP_S)
        with way.dropping():  # the packet sent anew
            time.sleep(2 * STEP_S)
    time.sleep(3 * ROUND_TRIP_S)
    assert flow.info(SSTHRESH) == window // 2
    small_packets(flow, 8)
    flow.run(0)
    assert flow.info(SSTHRESH) == window // 2
    halved = flow.info(WINDOW)
    assert window // 2 <= halved <= window // 2 + 1
    with way.marking():
        small_packets(flow, 1)
        time.sleep(ROUND_TRIP_S)
    small_packets(flow, 8)
    flow.run(0)
    assert flow.info(SSTHRESH) == halved // 2


@pytest.mark.parametrize("after_a_loss", [True, False])
def test_a_timeout_halves(way: Way, after_a_loss: bool) -> None:
    """Of a lost packet that was sent anew, too: its first loss took nothing."""
    flow, window = grown(way, "wreno")
    with way.dropping():
        small_packets(flow, 1)
        time.sleep(ROUND_TRIP_S + STEP_S)
    if after_a_loss:
        small_packets(flow, 4)
        time.sleep(ROUND_TRIP_S + STEP_S / 2)
        assert flow.info(SSTHRESH) == window  # for as long as the loss is being made up for
    with way.dropping():
        if not after_a_loss:
            small_packets(flow, 4)
        time.sleep(1)
    flow.run(0)
    assert flow.info(SSTHRESH) == window // 2


def test_without_ecn_it_is_reno(way: Way) -> None:
    with way.hosts["sender"]:
        write_sysctls({"net.ipv4.tcp_ecn": "0"})
    flow = way.connect("wreno")
    flow.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    flow.run(0.3)
    window = flow.info(WINDOW)
    lose_one(way, flow)
    flow.run(0)
    assert flow.info(SSTHRESH) == window // 2
