# SPDX-License-Identifier: GPL-2.0-or-later
"""The queue itself: its limit, its order, its books, and what happens when it is changed."""

import time
from collections.abc import Callable

import pytest

from bottleneck import CLASS, QUEUE, Bottleneck
from conftest import Link
from frames import CE, ECT0, frame
from kinds import CERTAIN_KINDS, ECN, LIMIT, MS, PROTECT, Kind, Settings, Stat
from netlink import ADD, REPLACE, TCA_OPTIONS, Netlink, Qdisc, attribute

LENGTH = 1000  # bytes of a frame
DSCP = 46

Make = Callable[[Settings], Bottleneck]


@pytest.fixture
def calm(kernel: Netlink, link: Link, kind: Kind) -> Make:
    """A bottleneck whose law keeps still."""
    return lambda settings: Bottleneck(kernel, link, kind, {**kind.never, **settings})


def frames(*numbers: int) -> list[bytes]:
    return [frame(number=number) for number in numbers]


def holds(queue: Bottleneck, packets: int) -> bool:
    """Whether queue and parent both hold so many packets, in every count."""
    own, parent = queue.read(), queue.parent()
    expected = (packets, packets * LENGTH)
    return (
        (own.qlen, own.backlog) == (parent.qlen, parent.backlog) == expected
        and own.stats[Stat.QUEUE] == packets
    )  # fmt: skip


def balanced(qdisc: Qdisc) -> bool:
    """Whether the counters of a queue that was never cut add up."""
    stats = qdisc.stats
    return (
        stats[Stat.PKTS_IN] == qdisc.packets + qdisc.qlen
        and qdisc.drops == stats[Stat.DROPPED] + stats[Stat.OVERLIMIT]
        and qdisc.overlimits == stats[Stat.DROPPED] + stats[Stat.ECN_MARK]
        and qdisc.qlen <= stats[Stat.MAXQ]
    )


def test_first_in_first_out(calm: Make) -> None:
    queue = calm({})
    queue.fill(40)
    assert holds(queue, 40)
    queue.open()
    assert queue.received() == frames(*range(40))
    assert holds(queue, 0)


@pytest.mark.parametrize("limit", [2, 3, 50])
def test_beyond_the_limit_everything_is_dropped(calm: Make, limit: int) -> None:
    queue = calm({LIMIT: limit, ECN: 1, PROTECT: DSCP})
    queue.fill(limit)
    late = [frame(), frame(ECT0), frame(CE), frame(DSCP << 2), frame(version=6)]
    assert queue.send(*late) == len(late)
    assert holds(queue, limit)
    stats = queue.read().stats
    assert stats[Stat.PKTS_IN] == stats[Stat.MAXQ] == limit
    assert stats[Stat.OVERLIMIT] == len(late)
    assert stats[Stat.DROPPED] == stats[Stat.ECN_MARK] == stats[Stat.PROTECTED] == 0
    assert balanced(queue.read())
    queue.open()
    assert queue.send(frame()) == 0
    assert queue.received() == [*frames(*range(limit)), frame()]
    assert holds(queue, 0)
    assert balanced(queue.read())
    assert queue.read().stats[Stat.MAXQ] == limit


@pytest.mark.parametrize("kind", CERTAIN_KINDS, ids=str, indirect=True)
def test_early_drops_and_marks_are_counted_apart(calm: Make) -> None:
    queue = calm({LIMIT: 60, ECN: 1, PROTECT: DSCP})
    before = queue.congest(5)
    assert queue.send(*[frame()] * 7) == 7
    assert queue.send(*[frame(ECT0)] * 11) == 0
    assert queue.send(*[frame(CE)] * 13) == 0
    assert queue.send(*[frame(DSCP << 2)] * 17) == 0
    assert queue.send(*[frame(ECT0)] * 20) == 6
    qdisc = queue.read()
    counted = {
        stat.name: qdisc.stats[stat] - before.stats[stat] for stat in Stat if stat > Stat.DELAY
    }
    assert counted == {
        "PKTS_IN": 55,
        "OVERLIMIT": 6,
        "DROPPED": 7,
        "MAXQ": 55,
        "ECN_MARK": 25,
        "PROTECTED": 17,
        "QUEUE": 55,
    }
    assert holds(queue, 60)
    assert balanced(qdisc)
    assert qdisc.overlimits == 32


# The clock is read for each of the first 64 packets of a millisecond, then for fewer.
@pytest.mark.parametrize("packets", [3, 100])
def test_delay_is_how_long_the_last_packet_waited(calm: Make, packets: int) -> None:
    queue = calm({LIMIT: packets})
    queue.fill(packets)
    time.sleep(0.25)
    assert queue.read().stats[Stat.DELAY] == 0
    queue.open()  # the queue is full: the packet that sets it going is dropped
    assert queue.read().stats[Stat.DELAY] == pytest.approx(250 * MS, rel=0.001)


def test_a_lower_limit_drops_the_oldest(calm: Make) -> None:
    queue = calm({LIMIT: 60})
    queue.fill(50)
    queue.change({LIMIT: 10})
    assert holds(queue, 10)
    qdisc = queue.read()
    assert qdisc.stats[Stat.OVERLIMIT] == qdisc.drops == 40
    queue.change({LIMIT: 12})
    assert queue.send(*frames(50, 51, 52)) == 1
    queue.change({LIMIT: 2})
    assert holds(queue, 2)
    queue.open()
    assert queue.received() == frames(50, 51)
    assert holds(queue, 0)


def test_a_refused_change_leaves_the_packets(calm: Make) -> None:
    queue = calm({LIMIT: 60})
    queue.fill(50)
    for settings in ({LIMIT: 1}, {LIMIT: 10, PROTECT: 64}, {LIMIT: 2, ECN: 2}):
        with pytest.raises(Exception, match="must be"):
            queue.change(settings)
        assert holds(queue, 50)


def test_every_change_leaves_the_packets(calm: Make, kind: Kind) -> None:
    queue = calm({LIMIT: 200})
    queue.fill(50)
    for settings in (kind.other, kind.another):
        for option, value in settings.items():
            queue.change({**kind.another, option: value})
            assert holds(queue, 50)
    queue.open()
    assert queue.received() == frames(*range(50))
    assert holds(queue, 0)


def test_replaced_options_leave_the_packets(calm: Make) -> None:
    queue = calm({LIMIT: 200})
    queue.fill(50)
    queue.request(REPLACE, {LIMIT: 100, ECN: 1})
    assert holds(queue, 50)


def test_another_queue_starts_empty(calm: Make, kernel: Netlink, link: Link, kind: Kind) -> None:
    queue = calm({})
    queue.fill(50)
    packets = 7
    # of another kind, and back
    fifo = attribute(TCA_OPTIONS, (1000).to_bytes(4, "little"))
    kernel.qdisc(REPLACE, link.index, "pfifo", fifo, CLASS, 0x30000)
    assert queue.parent().empty
    queue.fill(packets)
    assert (queue.parent().qlen, queue.parent().backlog) == (packets, packets * LENGTH)
    queue.request(REPLACE, {})
    assert holds(queue, 0)
    queue.fill(packets)
    assert holds(queue, packets)
    assert queue.read().stats[Stat.PKTS_IN] == packets


def test_deleted_with_packets_in_it(calm: Make, kernel: Netlink, link: Link) -> None:
    queue = calm({})
    queue.fill(50)
    kernel.delete_qdisc(link.index, CLASS)
    assert queue.parent().empty
    queue.request(ADD, {})
    queue.fill(50)
    kernel.delete_qdisc(link.index)
    assert not [q for q in kernel.qdiscs(link.index) if q.handle in (QUEUE, QUEUE | CLASS)]
    queue.send(frame(number=3))
    assert queue.received() == frames(3)


@pytest.mark.parametrize("kind", CERTAIN_KINDS, ids=str, indirect=True)
def test_a_link_that_goes_down_empties_the_queue(calm: Make, kernel: Netlink, link: Link) -> None:
    queue = calm({})
    assert queue.congest(50).stats[Stat.PROB] > 0
    kernel.set_link(link.index, up=False)
    assert holds(queue, 0)
    # the law starts anew, too: nothing is signalled
    assert queue.read().stats[Stat.PROB] == 0
    kernel.set_link(link.index, up=True)
    link.near.recover()
    time.sleep(2)  # the kernel takes up to a second to notice that a link is up
    queue.open()
    queue.send(*frames(1, 2, 3))
    assert queue.received() == frames(1, 2, 3)
    assert holds(queue, 0)


def test_changes_under_load(calm: Make, kind: Kind) -> None:
    """A queue that packets go through, at half the rate at which they come, while it is changed."""
    queue = calm({})
    queue.shape(LENGTH * 1000)
    offered = refused = 0
    for settings in (*kind.taken, *kind.taken):
        options = {**kind.another, **settings}
        queue.change(options)
        for _ in range(5):
            refused += queue.send(*frames(*range(10)))
            offered += 10
            time.sleep(0.005)
            own, parent = queue.read(), queue.parent()
            assert own.qlen == own.stats[Stat.QUEUE] <= options[LIMIT]
            assert own.backlog == LENGTH * own.qlen
            # the shaper keeps no packet of its own
            assert (parent.qlen, parent.backlog) == (own.qlen, own.backlog)
    queue.open()
    qdisc = queue.read()
    stats = qdisc.stats
    assert holds(queue, 0)
    entered = offered - refused
    # the packet that set it going may have been let in
    assert stats[Stat.PKTS_IN] - entered in (0, 1)
    # what came in and did not go out was cut off
    cut = stats[Stat.PKTS_IN] - qdisc.packets
    assert 0 < cut <= stats[Stat.OVERLIMIT]
    assert qdisc.drops == stats[Stat.OVERLIMIT] + stats[Stat.DROPPED]
