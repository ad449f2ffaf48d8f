# SPDX-License-Identifier: GPL-2.0-or-later
"""Our qdiscs cost hardly more than the kernel's RED."""

import pytest
from rich.console import Console

from bench import CONTENDERS
from cost import RIVAL, Cost, measure, table

BOUND, BOUND_LABELLED = 1.05, 1.15
DROPPED = 0.01
OURS = [one.name for one in CONTENDERS if one.name != RIVAL]


@pytest.fixture(scope="module")
def costs() -> dict[str, Cost]:
    measured = measure()
    Console().print(table(measured))  # shown with what fails
    return {cost.name: cost for cost in measured}


@pytest.mark.parametrize("name", [RIVAL, *OURS])
def test_law_is_at_work(costs: dict[str, Cost], name: str) -> None:
    assert costs[name].drop_share == pytest.approx(DROPPED, rel=0.15)


@pytest.mark.parametrize("name", OURS)
def test_costs_no_more_than_red(costs: dict[str, Cost], name: str) -> None:
    cost = costs[name]
    low, high = cost.interval
    assert low <= (BOUND_LABELLED if cost.labelled else BOUND), f"{low:.3f} to {high:.3f}"
