# SPDX-License-Identifier: GPL-2.0-or-later
"""The short form of the attack; and that it gets far, and would tell."""

import pytest

from fuzz import QDISCS, Outcome, attack, campaign, merge, ranges, replay, shrink, table

MESSAGES, SEED = 200_000, 1
# A rem's gamma of 1, that goes with others: a value of which a few messages of an epoch speak.
PLANT = "0c002200" + (1 << 48).to_bytes(8, "little").hex()
PLANTED = ("--seed", "1", "--plant", PLANT)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    made = campaign(MESSAGES, SEED, "6.12")
    print(*table(merge(made)), sep="\n")
    return made


def test_nothing_is_reported_leaks_or_hangs(outcomes: list[Outcome]) -> None:
    assert [outcome.words for outcome in outcomes if outcome.failed] == []
    assert sum(outcome.messages for outcome in outcomes) >= MESSAGES


@pytest.mark.parametrize("about", [*QDISCS, "filters"])
def test_much_is_accepted_and_much_refused(outcomes: list[Outcome], about: str) -> None:
    row = merge(outcomes)[about]
    assert 0.25 < row["accepted"] / row["messages"] < 0.9
    assert row["refused"]["EINVAL"] > row["messages"] / 20


def test_only_root_asks_for_actions(outcomes: list[Outcome]) -> None:
    nobody, root = (outcome.rows["rttlabel"] for outcome in outcomes)
    assert nobody["refused"]["EPERM"] > nobody["messages"] / 2
    assert root["accepted"] > root["messages"] / 4


def test_a_bug_is_found_and_traced_to_its_message() -> None:
    found = attack(*PLANTED, "--messages", "100000", flavour="fast")
    assert found.failed
    assert found.failure
    assert found.failure["failed"] == "planted"
    (message,) = replay(PLANTED, found.failure["epoch"], "6.12", "fast")
    assert PLANT in message["message"]


@pytest.mark.parametrize("needed", [{0}, {999}, {3, 500}, {10, 11, 12, 700}])
def test_shrinking_leaves_what_is_needed(needed: set[int]) -> None:
    assert shrink(list(range(1000)), needed.issubset) == sorted(needed)


def test_ranges() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
