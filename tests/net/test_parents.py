# SPDX-License-Identifier: GPL-2.0-or-later
"""A kind's queue as the child of other qdiscs, which live on its counts being right."""

import time
from dataclasses import dataclass

import pytest

from conftest import Link, Tc
from frames import frame, super_packet
from kinds import COMPARATORS, KINDS, LIMIT, Kind, Settings, Stat, encode
from netlink import (
    ADD,
    CHANGE,
    REPLACE,
    Netlink,
    Qdisc,
)

LENGTH = 1000  # bytes of a frame
RATE = 125  # frames in a second, at 1 Mbit/s
HANDLE, OTHER, FIFO = 0x100000, 0x110000, 0x120000  # 10:, 11:, 12:
# its burst lets super-packets of ten frames through whole
TBF = "qdisc add dev near root handle 1: tbf rate 1mbit burst 11000 limit 10mb"
ALL_TO_FIRST = "filter add dev near parent 2: protocol all prio 1 matchall classid 2:1"


@dataclass(frozen=True)
class Parent:
    """A tree of qdiscs that lets 1 Mbit/s through, and the class under which ours goes."""

    commands: tuple[str, ...]
    leaf: int
    held: int = 0
    """Packets that a qdisc on the way may have taken out of ours without sending them."""


PARENTS = {
    "tbf": Parent((TBF,), 0x10001),
    "htb": Parent(
        (
            "qdisc add dev near root handle 1: htb default 1",
            "class add dev near parent 1: classid 1:1 htb rate 1mbit burst 2000 cburst 2000 "
            "quantum 1514",
        ),
        0x10001,
    ),
    "hfsc": Parent(
        (
            "qdisc add dev near root handle 1: hfsc default 1",
            "class add dev near parent 1: classid 1:1 hfsc sc rate 1mbit ul rate 1mbit",
        ),
        0x10001,
    ),
    "drr": Parent(
        (
            TBF,
            "qdisc add dev near parent 1:1 handle 2: drr",
            "class add dev near parent 2: classid 2:1 drr quantum 1514",
            ALL_TO_FIRST,
        ),
        0x20001,
        held=1,
    ),
    "qfq": Parent(
        (
            TBF,
            "qdisc add dev near parent 1:1 handle 2: qfq",
            "class add dev near parent 2: classid 2:1 qfq weight 1 maxpkt 2048",
            ALL_TO_FIRST,
        ),
        0x20001,
        held=1,
    ),
    "prio": Parent(
        (
            TBF,
            "qdisc add dev near parent 1:1 handle 2: prio bands 2 "
            "priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
        ),
        0x20001,
        held=1,
    ),
    "ets": Parent(
        (
            TBF,
            "qdisc add dev near parent 1:1 handle 2: ets bands 2 quanta 1514 1514 "
            "priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
        ),
        0x20001,
        held=1,
    ),
    "drr in qfq in htb": Parent(
        (
            "qdisc add dev near root handle 1: htb default 1",
            "class add dev near parent 1: classid 1:1 htb rate 1mbit burst 2000 cburst 2000 "
            "quantum 1514",
            "qdisc add dev near parent 1:1 handle 2: qfq",
            "class add dev near parent 2: classid 2:1 qfq weight 1 maxpkt 2048",
            ALL_TO_FIRST,
            "qdisc add dev near parent 2:1 handle 3: drr",
            "class add dev near parent 3: classid 3:1 drr quantum 1514",
            "filter add dev near parent 3: protocol all prio 1 matchall classid 3:1",
        ),
        0x30001,
        held=1,
    ),
}  # fmt: skip


class Tree:
    """Ours under a parent."""

    def __init__(self, kernel: Netlink, link: Link, kind: Kind, parent: Parent, tc: Tc) -> None:
        self._kernel = kernel
        self._link = link
        self._kind = kind
        self._parent = parent
        tc(*parent.commands)

    def request(self, how: int, settings: Settings, handle: int = HANDLE) -> None:
        options = encode({**self._kind.given, **self._kind.never, **settings})
        leaf = self._parent.leaf
        self._kernel.qdisc(how, self._link.index, self._kind.name, options, leaf, handle)

    def replace_by_fifo(self) -> None:
        """By a qdisc of Linux's own."""
        leaf = self._parent.leaf
        self._kernel.qdisc(REPLACE, self._link.index, "pfifo", None, leaf, FIFO)

    def delete(self) -> None:
        self._kernel.delete_qdisc(self._link.index, self._parent.leaf)

    def read(self) -> Qdisc:
        return next(q for q in self._kernel.qdiscs(self._link.index) if q.handle == HANDLE)

    def ancestors(self) -> list[Qdisc]:
        handles = (0x10000, 0x20000, 0x30000)
        return [q for q in self._kernel.qdiscs(self._link.index) if q.handle in handles]

    def agree(self) -> bool:
        """Whether what the ancestors count is what stands in ours, or was taken out of it."""
        own = self.read()
        above = self.ancestors()
        return all(
            0 <= q.qlen - own.qlen <= self._parent.held
            and q.backlog - own.backlog == LENGTH * (q.qlen - own.qlen)
            for q in above
        )

    def empty(self) -> bool:
        return all(q.empty for q in self._kernel.qdiscs(self._link.index))


PLACES = [
    *((kind, name) for kind in KINDS for name in PARENTS),
    # comparators have the same queue: two parents that count what it holds will do
    *((kind, name) for kind in COMPARATORS for name in ("htb", "drr")),
]


@pytest.fixture(params=PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
def place(request: pytest.FixtureRequest) -> tuple[Kind, str]:
    kind, name = request.param
    return kind, name


@pytest.fixture
def kind(place: tuple[Kind, str]) -> Kind:
    return place[0]


@pytest.fixture
def parent(place: tuple[Kind, str]) -> Parent:
    return PARENTS[place[1]]


@pytest.fixture
def tree(kernel: Netlink, link: Link, kind: Kind, parent: Parent, tc: Tc) -> Tree:
    return Tree(kernel, link, kind, parent, tc)


def goes_on(tree: Tree, link: Link) -> None:
    """What is sent arrives, and nothing is left behind."""
    link.far.received()
    link.near.send(frame(number=1), frame(number=2))
    time.sleep(3 / RATE)
    assert link.far.received() == [frame(number=1), frame(number=2)]
    assert tree.empty()


def test_all_that_enters_leaves_at_the_parents_rate(tree: Tree, link: Link) -> None:
    tree.request(ADD, {LIMIT: 30})
    arrived = [frame(number=number) for number in range(100)]
    refused = link.near.send(*arrived)
    assert refused > 50
    assert tree.agree()
    time.sleep(20 / RATE)
    assert tree.agree()
    assert 15 <= tree.read().packets <= 35
    time.sleep(40 / RATE)
    assert tree.empty()
    own = tree.read()
    assert own.packets == own.stats[Stat.PKTS_IN] == len(arrived) - refused
    assert own.drops == own.stats[Stat.OVERLIMIT] == refused
    assert link.far.received() == arrived[: own.packets]
    # and once more, from empty
    link.near.send(*arrived[:3])
    time.sleep(3 / RATE)
    assert link.far.received() == arrived[:3]
    assert tree.empty()


def test_parent_follows_every_cut(tree: Tree, link: Link) -> None:
    tree.request(ADD, {LIMIT: 100})
    link.near.send(*[frame()] * 100)
    for limit in (60, 30, 10, 2):
        tree.request(CHANGE, {LIMIT: limit})
        assert tree.read().qlen == limit
        assert tree.agree()
        time.sleep(1 / RATE)
    time.sleep(5 / RATE)
    assert tree.empty()
    link.near.send(*[frame()] * 3)
    time.sleep(3 / RATE)
    assert tree.empty()


def test_parent_forgets_what_is_replaced_or_deleted(tree: Tree, link: Link) -> None:
    tree.request(ADD, {})
    link.near.send(*[frame()] * 50)
    tree.delete()
    assert all(q.qlen <= 1 for q in tree.ancestors())
    tree.request(ADD, {})
    link.near.send(*[frame()] * 50)
    assert tree.agree()
    time.sleep(10 / RATE)
    assert tree.agree()
    time.sleep(50 / RATE)
    assert tree.empty()


def test_tree_is_deleted_with_packets_in_it(tree: Tree, kernel: Netlink, link: Link) -> None:
    tree.request(ADD, {})
    link.near.send(*[frame()] * 50)
    kernel.delete_qdisc(link.index)
    link.far.received()
    link.near.send(frame(number=1))
    assert link.far.received() == [frame(number=1)]


def test_a_class_that_a_cut_empties_goes_idle(tree: Tree, link: Link, parent: Parent) -> None:
    """What CVE-2024-46800 and its kin are about: a change, not a departure, empties a class."""
    tree.request(ADD, {LIMIT: 100})
    for _ in range(5):
        link.near.send(*[frame()] * 20)
        while not tree.empty():
            time.sleep(0.5 / RATE)
        # the parent's tokens are spent: one of these may pass or be held above, not more
        link.near.send_super(*[super_packet(0, segments=10)] * 3)
        assert tree.read().qlen > 0
        tree.request(CHANGE, {LIMIT: 2})
        assert tree.read().qlen == 0
        assert all(q.qlen <= parent.held for q in tree.ancestors())
        tree.request(CHANGE, {LIMIT: 100})
        time.sleep(30 / RATE)
        assert tree.empty()
    goes_on(tree, link)


def test_graft_and_delete_under_load(tree: Tree, link: Link, parent: Parent) -> None:
    """Whatever stood in the queue that goes, its ancestors forget; the link goes on."""
    tree.request(ADD, {})
    for turn in range(20):
        link.near.send(*[frame(number=number) for number in range(15)])
        time.sleep(2 / RATE)
        match turn % 5:
            case 0:
                tree.request(REPLACE, {}, OTHER)
            case 1:
                tree.replace_by_fifo()
            case 2:
                tree.request(REPLACE, {})
            case 3:
                tree.delete()
            case _:
                tree.request(ADD, {})
        assert all(q.qlen <= parent.held for q in tree.ancestors())
    time.sleep(20 / RATE)
    assert tree.empty()
    goes_on(tree, link)
