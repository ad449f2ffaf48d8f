# SPDX-License-Identifier: GPL-2.0-or-later
"""Our qdiscs cost hardly more than the kernel's RED, or fq_codel with as many flows; our
congestion controls than Reno.
"""

import pytest
from rich.console import Console

from bench import GROUPS, LAWS, PER_FLOW
from cost import (
    RIVAL_SENDER,
    Cost,
    QdiscCost,
    measure_qdiscs,
    measure_senders,
    qdisc_table,
    sender_table,
)
from senders import CONTROLS, SEGMENTS

BOUND, BOUND_LABELLED, BOUND_PER_FLOW, BOUND_SENDER = 1.05, 1.15, 1.10, 1.02
DROPPED = 0.01


@pytest.fixture(scope="module")
def costs() -> dict[str, QdiscCost]:
    """But what a million flows cost, which is shown, and nothing demanded of it."""
    every = {group: measure_qdiscs(group) for group in GROUPS}
    for measured in every.values():
        Console().print(qdisc_table(measured))  # shown with what fails
    return {cost.name: cost for group in ("laws", "per flow") for cost in every[group]}


@pytest.mark.parametrize(
    "name", [one.name for one in (*LAWS, *PER_FLOW) if not one.name.startswith("fq_codel")]
)
def test_law_is_at_work(costs: dict[str, QdiscCost], name: str) -> None:
    assert costs[name].drop_share == pytest.approx(DROPPED, rel=0.15)


@pytest.mark.parametrize("name", [one.name for one in LAWS if one.name != one.rival])
def test_costs_no_more_than_red(costs: dict[str, QdiscCost], name: str) -> None:
    cost = costs[name]
    low, high = cost.interval
    bound = BOUND_LABELLED if cost.contender.labelled else BOUND
    assert low <= bound, f"{low:.3f} to {high:.3f}"


@pytest.mark.parametrize("name", [one.name for one in PER_FLOW if one.name != one.rival])
def test_costs_no_more_than_fq_codel(costs: dict[str, QdiscCost], name: str) -> None:
    low, high = costs[name].interval
    assert low <= BOUND_PER_FLOW, f"{low:.3f} to {high:.3f}"


@pytest.fixture(scope="module")
def senders() -> dict[str, dict[str, Cost]]:
    measured = measure_senders()
    Console().print(sender_table(measured))
    return {how: {cost.name: cost for cost in costs} for how, costs in measured.items()}


@pytest.mark.parametrize("how", SEGMENTS)
@pytest.mark.parametrize("name", [name for name in CONTROLS if name != RIVAL_SENDER])
def test_costs_no_more_than_reno(senders: dict[str, dict[str, Cost]], name: str, how: str) -> None:
    low, high = senders[how][name].interval
    assert low <= BOUND_SENDER, f"{low:.3f} to {high:.3f}"
