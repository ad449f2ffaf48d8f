# SPDX-License-Identifier: GPL-2.0-or-later
"""Our qdiscs cost hardly more than the kernel's: RED, or fq_codel with as many flows."""

import pytest
from rich.console import Console

from bench import GROUPS, LAWS, PER_FLOW
from cost import Cost, measure, table

BOUND, BOUND_LABELLED, BOUND_PER_FLOW = 1.05, 1.15, 1.10
DROPPED = 0.01


@pytest.fixture(scope="module")
def costs() -> dict[str, Cost]:
    found: dict[str, Cost] = {}
    for group in GROUPS:
        measured = measure(group)
        Console().print(table(measured))  # shown with what fails
        if group != "many flows":  # a million flows' cost is told, and nothing demanded of it
            found.update({cost.contender.name: cost for cost in measured})
    return found


@pytest.mark.parametrize(
    "name", [one.name for one in (*LAWS, *PER_FLOW) if not one.name.startswith("fq_codel")]
)
def test_law_is_at_work(costs: dict[str, Cost], name: str) -> None:
    assert costs[name].drop_share == pytest.approx(DROPPED, rel=0.15)


@pytest.mark.parametrize("name", [one.name for one in LAWS if one.name != one.rival])
def test_costs_no_more_than_red(costs: dict[str, Cost], name: str) -> None:
    cost = costs[name]
    low, high = cost.interval
    bound = BOUND_LABELLED if cost.contender.labelled else BOUND
    assert low <= bound, f"{low:.3f} to {high:.3f}"


@pytest.mark.parametrize("name", [one.name for one in PER_FLOW if one.name != one.rival])
def test_costs_no_more_than_fq_codel(costs: dict[str, Cost], name: str) -> None:
    low, high = costs[name].interval
    assert low <= BOUND_PER_FLOW, f"{low:.3f} to {high:.3f}"
