# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel takes and refuses, attribute by attribute: tc is not the only one who may ask."""

import os
import random
from collections.abc import Iterator

import pytest

from conftest import Link, users
from frames import ECT0, frame
from kinds import BASE, ECN, LIMIT, PROTECT, TARGET, VARIANTS, Kind, Option, Settings, encode
from netlink import (
    ADD,
    CHANGE,
    NLA_F_NESTED,
    REPLACE,
    ROOT,
    TCA_OPTIONS,
    Netlink,
    Qdisc,
    Refusal,
    attribute,
    nest,
)

HANDLE = 0x10000
UNUSED = (20, 47, 200)  # no option of any kind has these numbers


def name(settings: Settings) -> str:
    return " ".join(f"{option.name}={value}" for option, value in settings.items())


TAKEN = [
    pytest.param(kind, settings, id=f"{kind} {name(settings)}")
    for kind in VARIANTS
    for settings in kind.taken
]
REFUSED = [
    pytest.param(kind, settings, refusal.sentence, id=f"{kind} {name(settings)}")
    for kind in VARIANTS
    for refusal in kind.refused
    for settings in refusal.settings
]
OPTIONS = [
    pytest.param(kind, option, id=f"{kind} {option.name}")
    for kind in VARIANTS
    for option in kind.other
]


def malformed(kind: Kind) -> Iterator[bytes]:
    """Whole TCA_OPTIONS of which the kernel must take nothing."""
    good = encode({**kind.given, **kind.other})
    given = encode(kind.given)[4:]
    for option, value in kind.other.items():
        for width in {0, 1, option.width - 1, option.width + 1, 64} - {option.width}:
            bad = attribute(option.attribute, bytes([value & 0xFF]) * width)
            yield nest(TCA_OPTIONS, given, bad)
    for unused in UNUSED if TARGET in kind.other else (*UNUSED, TARGET.attribute):
        yield nest(TCA_OPTIONS, good[4:], attribute(unused, b"\0\0\0\0"))
    yield attribute(TCA_OPTIONS, good[4:])  # without the flag of a nest
    yield nest(TCA_OPTIONS, good[4:], b"\x08\0")  # cut within the last header
    yield nest(TCA_OPTIONS, good[4:], b"\xff\xff\x02\0")  # reaches beyond the message
    yield nest(TCA_OPTIONS, good[4:], b"\x03\0\x02\0")  # shorter than its header
    yield nest(TCA_OPTIONS, attribute(ECN.attribute | NLA_F_NESTED, b"\x01"))


class Root:
    """A kind's qdisc at the root of a device."""

    def __init__(self, kernel: Netlink, link: Link, kind: Kind) -> None:
        self._kernel = kernel
        self._link = link
        self._kind = kind

    def request(self, how: int, options: bytes | None) -> None:
        self._kernel.qdisc(how, self._link.index, self._kind.name, options, ROOT, HANDLE)

    def add(self, settings: Settings) -> None:
        self.request(ADD, encode({**self._kind.given, **settings}))

    def change(self, settings: Settings) -> None:
        self.request(CHANGE, encode(settings))

    def exists(self) -> bool:
        return any(q.kind == self._kind.name for q in self._kernel.qdiscs(self._link.index))

    def read(self) -> Qdisc:
        (qdisc,) = self._kernel.qdiscs(self._link.index)
        return qdisc

    def options(self) -> dict[int, int]:
        return self.read().options


@pytest.fixture(params=VARIANTS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    assert isinstance(request.param, Kind)
    return request.param


@pytest.fixture
def root(kernel: Netlink, link: Link, kind: Kind) -> Root:
    return Root(kernel, link, kind)


@pytest.mark.parametrize(("kind", "settings"), TAKEN, indirect=["kind"])
def test_ends_of_ranges_are_taken(root: Root, settings: Settings) -> None:
    root.add(settings)
    made = root.options()
    for option, value in settings.items():
        assert made[option.attribute] == value
    root.request(REPLACE, encode({}))
    assert root.options() == made


@pytest.mark.parametrize(("kind", "settings", "sentence"), REFUSED, indirect=["kind"])
def test_refusal_leaves_no_qdisc(root: Root, kind: Kind, settings: Settings, sentence: str) -> None:
    before = users(kind)
    with pytest.raises(Refusal) as refused:
        root.add(settings)
    assert refused.value.sentence == f"sch_{kind.name}: {sentence}"
    assert not root.exists()
    assert users(kind) == before


@pytest.mark.parametrize(("kind", "settings", "sentence"), REFUSED, indirect=["kind"])
def test_refused_change_changes_nothing(root: Root, settings: Settings, sentence: str) -> None:
    root.add({})
    before = root.options()
    with pytest.raises(Refusal, match=sentence):
        root.change({ECN: 1, PROTECT: 46, **settings})
    assert root.options() == before


@pytest.mark.parametrize(("kind", "option"), OPTIONS, indirect=["kind"])
def test_change_touches_one_option(root: Root, kind: Kind, option: Option) -> None:
    root.add(kind.other)
    before = root.options()
    root.change({option: kind.another[option]})
    assert root.options() == {**before, option.attribute: kind.another[option]}
    root.change({option: kind.other[option]})
    assert root.options() == before


def test_malformed_options_change_nothing(root: Root, kind: Kind) -> None:
    root.add(kind.another)
    before = root.options()
    for options in malformed(kind):
        with pytest.raises(Refusal):
            root.request(CHANGE, options)
        assert root.options() == before, options.hex()


def test_malformed_options_make_no_qdisc(root: Root, kind: Kind) -> None:
    before = users(kind)
    for options in malformed(kind):
        with pytest.raises(Refusal):
            root.request(ADD, options)
        assert not root.exists(), options.hex()
    assert users(kind) == before


def test_without_options_all_are_default(root: Root, kind: Kind) -> None:
    root.request(ADD, encode(kind.given) if kind.given else None)
    made = root.options()
    root.request(CHANGE, None)
    assert root.options() == made
    root.request(REPLACE, encode({}))
    assert root.options() == made


def test_of_an_attribute_that_comes_twice_the_last_counts(root: Root, kind: Kind) -> None:
    twice = encode(kind.given)[4:] + encode(kind.other)[4:] + encode(kind.another)[4:]
    root.request(ADD, nest(TCA_OPTIONS, twice))
    made = root.options()
    assert {option: made[option.attribute] for option in kind.another} == kind.another


def test_base_is_for_life(root: Root, kind: Kind) -> None:
    if BASE not in kind.given:
        with pytest.raises(Refusal):
            root.request(ADD, encode({BASE: 0}))
        return
    with pytest.raises(Refusal) as refused:
        root.request(ADD, None)
    assert refused.value.sentence == "sch_fifa: base must be given: red, pi or rem"
    for base in (3, 255):
        with pytest.raises(Refusal) as refused:
            root.request(ADD, encode({BASE: base}))
        assert refused.value.sentence == "sch_fifa: base must be red, pi or rem"
    assert not root.exists()
    root.add({})
    before = root.options()
    root.change({**kind.given, LIMIT: 500})
    assert root.options() == {**before, LIMIT.attribute: 500}
    with pytest.raises(Refusal) as refused:
        root.change({BASE: (kind.given[BASE] + 1) % 3, LIMIT: 400})
    sentence = "sch_fifa: base cannot be changed: delete the qdisc and add another"
    assert refused.value.sentence == sentence
    assert root.options() == {**before, LIMIT.attribute: 500}


def test_module_is_held_by_its_qdiscs_only(
    root: Root, kernel: Netlink, link: Link, kind: Kind
) -> None:
    before = users(kind)
    root.add({})
    assert users(kind) == before + 1
    kernel.delete_qdisc(link.index)
    assert users(kind) == before


def test_random_changes_under_load(root: Root, link: Link, kind: Kind) -> None:
    """Whatever is asked, the qdisc is changed as asked or not at all, and goes on."""
    chance = random.Random(os.environ.get("AQM_SEED"))
    root.add({})
    sent = taken = 0
    for _ in range(1000):
        asked = {option: _value(chance, kind, option) for option in _some(chance, kind)}
        before = root.options()
        try:
            root.change(asked)
            taken += 1
        except Refusal:
            assert root.options() == before
        sent += 3 - link.near.send(*[frame(chance.choice((0, ECT0)))] * 3)
    assert taken > 100
    assert root.read().packets == sent
    assert root.read().empty


def _some(chance: random.Random, kind: Kind) -> list[Option]:
    return chance.sample(list(kind.other), chance.randint(0, 4))


def _value(chance: random.Random, kind: Kind, option: Option) -> int:
    bits = 8 * option.width
    return chance.choice((
        kind.other[option],
        kind.another[option],
        chance.getrandbits(chance.randint(0, bits)),
        2**bits - 1,
    ))  # fmt: skip
