# SPDX-License-Identifier: GPL-2.0-or-later
"""No memory: of each request, and of traffic, every allocation fails in turn."""

import gc
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bottleneck import KNOCK, OPEN, SHAPER, shaper
from conftest import Link, Tc, users
from frames import frame, label_of, received
from guest import CLONE_NEWNET, LIBC
from kinds import BY_COPY, FLOWS, HIDE_BY, VARIANTS, Kind, Settings, XqmStat, encode
from netlink import ADD, CHANGE, REPLACE, ROOT, Netlink, Refusal, nest
from test_rttlabel import CLEAR, FROM, HANDSHAKE, TCA_ACT_OPTIONS, flush, octet, parms, request
from test_rttlabel import users as actions
from test_xqm import Queue, data, hiding

FAILSLAB = Path("/sys/kernel/debug/failslab")
if not FAILSLAB.exists():
    pytest.skip("needs failslab: lab/run --flavour debug", allow_module_level=True)
MOST = 500  # allocations: more than any request makes
HANDLE, OTHER = 0x10000, 0x20000


@pytest.fixture(scope="module", autouse=True)
def failslab() -> Iterator[None]:
    """What may wait for memory fails like the rest, and nothing is said of it. Once the nth
    allocation has failed, so does all that is made for a thread that is to fail for good."""
    settings = {"ignore-gfp-wait": "N", "verbose": "0"}
    settings |= {"task-filter": "Y", "probability": "100", "times": "-1"}
    for name, value in settings.items():
        (FAILSLAB / name).write_text(value)
    gc.disable()
    yield
    gc.enable()
    (FAILSLAB / "probability").write_text("0")


class Failure:
    """The nth allocation that the kernel makes for this thread fails; for good: all later too."""

    def __init__(self, nth: int, for_good: bool) -> None:
        self._nth = nth
        self._for_good = for_good
        self.happened = False

    def __enter__(self) -> "Failure":
        self._files = [
            os.open(f"/proc/thread-self/{name}", os.O_RDWR) for name in ("fail-nth", "make-it-fail")
        ]
        # what is counted down comes before what is for good
        os.pwrite(self._files[0], b"%d" % self._nth, 0)
        os.pwrite(self._files[1], b"%d" % self._for_good, 0)
        return self

    def __exit__(self, *_: object) -> None:
        os.pwrite(self._files[1], b"0", 0)
        self.happened = int(os.pread(self._files[0], 16, 0)) == 0
        os.pwrite(self._files[0], b"0", 0)
        for file in self._files:
            os.close(file)


def failures(attempt: Callable[[Netlink], object], for_good: bool = False) -> Iterator[bool]:
    """Attempt it, another allocation failing each time, until there is no further one; yield each
    time whether nothing was said against it."""
    for nth in range(1, MOST):
        socket = Netlink()
        taken = False
        # an OSError if there was no room for the answer; a MemoryError if none for Python
        with suppress(Refusal, OSError, MemoryError), Failure(nth, for_good) as failure:
            attempt(socket)
            taken = True
        socket.close()
        if not failure.happened:
            assert taken
            assert nth > 1
            return
        yield taken
    pytest.fail(f"{MOST} allocations, and no end")


@pytest.fixture(params=VARIANTS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    assert isinstance(request.param, Kind)
    return request.param


FOR_GOOD = pytest.mark.parametrize("for_good", [False, True], ids=["one", "all"])


class Root:
    """The qdisc at the root of a device."""

    def __init__(self, kernel: Netlink, link: Link, kind: Kind) -> None:
        self._kernel = kernel
        self._device = link.index
        self._kind = kind

    def ask(self, by: Netlink, how: int, settings: Settings, handle: int = HANDLE) -> None:
        given = {} if how == CHANGE else self._kind.given
        options = encode({**given, **settings})
        by.qdisc(how, self._device, self._kind.name, options, ROOT, handle)

    def set(self, how: int, settings: Settings) -> dict[int, int]:
        """Without a failure; return its options then."""
        self.ask(self._kernel, how, settings)
        return self.read()[HANDLE]

    def read(self) -> dict[int, dict[int, int]]:
        """The options of those that are there, by handle."""
        found = self._kernel.qdiscs(self._device)
        return {q.handle: q.options for q in found if q.kind == self._kind.name}

    def delete(self) -> None:
        self._kernel.delete_qdisc(self._device)


@pytest.fixture
def root(kernel: Netlink, link: Link, kind: Kind) -> Root:
    made = Root(kernel, link, kind)
    made.set(ADD, {})  # its module is there
    made.delete()
    return made


@FOR_GOOD
def test_add(root: Root, kind: Kind, for_good: bool) -> None:
    before = users(kind)
    # a table of eight flows is of such pieces as failslab knows
    other = {**kind.other, FLOWS: 8} if FLOWS in kind.other else kind.other
    whole = root.set(ADD, other)
    root.delete()
    refused = 0
    for taken in failures(lambda by: root.ask(by, ADD, other), for_good):
        found = root.read()
        assert found in ({}, {HANDLE: whole})
        assert found or not taken
        assert users(kind) == before + len(found)
        if found:
            root.delete()
        refused += not found
    assert refused > 2
    assert root.read() == {HANDLE: whole}


@FOR_GOOD
def test_change(root: Root, kind: Kind, for_good: bool) -> None:
    after = root.set(ADD, kind.another)
    before = root.set(CHANGE, kind.other)
    for taken in failures(lambda by: root.ask(by, CHANGE, kind.another), for_good):
        found = root.read()
        assert found == {HANDLE: after} or (not taken and found == {HANDLE: before})
        root.set(CHANGE, kind.other)
    assert root.read() == {HANDLE: after}


@FOR_GOOD
def test_replacement_by_another(root: Root, kind: Kind, for_good: bool) -> None:
    holders = users(kind) + 1
    before = root.set(ADD, kind.other)
    kept = 0
    for taken in failures(lambda by: root.ask(by, REPLACE, kind.another, OTHER), for_good):
        found = root.read()
        assert set(found) == {OTHER} or (not taken and found == {HANDLE: before})
        assert users(kind) == holders
        kept += HANDLE in found
        root.delete()
        root.set(ADD, kind.other)
    assert kept > 2


@FOR_GOOD
def test_deletion(root: Root, link: Link, kind: Kind, for_good: bool) -> None:
    before = users(kind)
    whole = root.set(ADD, kind.other)
    for taken in failures(lambda by: by.delete_qdisc(link.index), for_good):
        found = root.read()
        assert found == {} or (not taken and found == {HANDLE: whole})
        assert users(kind) == before + len(found)
        if not found:
            root.set(ADD, kind.other)
    assert root.read() == {}


def test_what_is_shown(root: Root, link: Link, kind: Kind) -> None:
    whole = root.set(ADD, {**kind.other, **kind.never})
    link.near.send(*[frame(number=number) for number in range(20)])
    for _ in failures(lambda by: by.qdiscs(link.index)):
        assert root.read() == {HANDLE: whole}
    for _ in failures(lambda by: list(by.classes(link.index, HANDLE))):
        assert root.read() == {HANDLE: whole}


def test_traffic(root: Root, kernel: Netlink, link: Link, kind: Kind) -> None:
    root.set(ADD, kind.never)
    for _ in failures(lambda _: link.near.send(frame(number=1), frame(number=2))):
        link.far.received()
    assert link.far.received() == [frame(number=1), frame(number=2)]
    assert all(q.empty for q in kernel.qdiscs(link.index))


def test_copies_of_hidden_packets(kernel: Netlink, link: Link) -> None:
    """One that cannot be copied goes once, and once it is counted."""
    arrived = [data(1, tos) for tos in (4, 8, 12)]

    def make(settings: Settings) -> Queue:
        return Queue(kernel, link, settings)

    def prepare() -> Queue:
        queue = hiding(make, {HIDE_BY: BY_COPY})
        queue.send(*arrived)
        kernel.qdisc(CHANGE, link.index, "tbf", shaper(*OPEN), ROOT, SHAPER)
        return queue

    def check(queue: Queue) -> int:
        queue.send(KNOCK)  # if there was no room for the first
        came = queue.received()
        assert list(dict.fromkeys(came)) == [received(each) for each in (data(1), *arrived)]
        hidden = queue.stat(XqmStat.HIDDEN)
        assert len(came) == 1 + len(arrived) + hidden
        assert queue.read().empty and queue.parent().empty
        kernel.delete_qdisc(link.index)
        return hidden

    queue = prepare()
    hidden = []
    for _ in failures(lambda _: link.near.send(KNOCK)):
        hidden.append(check(queue))
        queue = prepare()
    assert check(queue) == len(arrived)
    assert set(hidden) == {len(arrived), len(arrived) - 1}


# The action


def options(source: int) -> bytes:
    return nest(TCA_ACT_OPTIONS, parms(7), octet(FROM, source))


@pytest.fixture
def elsewhere() -> Iterator[Callable[[], None]]:
    """What brings this thread into a network namespace in which there was no action yet."""

    def enter() -> None:
        assert LIBC.unshare(CLONE_NEWNET) == 0

    with Path("/proc/thread-self/ns/net").open() as home:
        yield enter
        assert LIBC.setns(home.fileno(), CLONE_NEWNET) == 0


def test_add_action(kernel: Netlink, elsewhere: Callable[[], None]) -> None:
    """The first one of a namespace brings the table of flows with it."""
    request(kernel, ADD, options(CLEAR))  # its module is there
    flush(kernel, 7)
    before = actions()
    refused = 0
    elsewhere()
    for taken in failures(lambda by: request(by, ADD, options(CLEAR))):
        found = actions() - before
        assert found in (0, 1)
        assert found or not taken
        if found:
            here = Netlink()
            flush(here, 7)
            here.close()
        assert actions() == before
        refused += not found
        elsewhere()
    assert refused > 2


def test_replace_and_delete_action(kernel: Netlink, tc: Tc) -> None:
    def source() -> str:
        (found,) = json.loads(tc("actions get action rttlabel index 7", options="-json"))[1:]
        return str(found["actions"][0]["from"])

    request(kernel, ADD, options(CLEAR))
    before = actions()
    for taken in failures(lambda by: request(by, REPLACE, options(HANDSHAKE))):
        assert source() == "handshake" or (not taken and source() == "clear")
        request(kernel, REPLACE, options(CLEAR))
    assert source() == "handshake"
    for taken in failures(lambda by: flush(by, 7)):
        found = actions() - before + 1
        assert found == 0 or (not taken and found == 1)
        if not found:
            request(kernel, ADD, options(CLEAR))
    assert actions() == before - 1


def test_labels_of_shared_packets(kernel: Netlink, tc: Tc, link: Link) -> None:
    """Of a packet that someone else holds too, a copy is labelled, or it goes as it is."""
    held = kernel.add_link("dummy", "held")
    tc(
        "qdisc add dev held root plug limit 10000000",
        "qdisc add dev near clsact",
        "filter add dev near egress prio 1 protocol all matchall action mirred egress mirror "
        "dev held pipe action rttlabel from 40ms",
    )
    came = list[int]()
    for _ in failures(lambda _: link.near.send(frame(label=7))):
        came += [label_of(data) for data in link.far.received()]
    assert [label_of(data) for data in link.far.received()] == [400]
    assert set(came) == {7, 400}
    shown = tc("actions list action rttlabel", options="-statistics")
    assert f"labelled {came.count(400) + 1} cleared 0" in shown
    kernel.delete_link(held)
