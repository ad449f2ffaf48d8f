# SPDX-License-Identifier: GPL-2.0-or-later
"""Our qdiscs cost hardly more than the kernel's RED, our congestion controls than Reno."""

import pytest
from rich.console import Console

from bench import CONTENDERS
from cost import (
    RIVAL,
    RIVAL_SENDER,
    Cost,
    QdiscCost,
    measure_qdiscs,
    measure_senders,
    qdisc_table,
    sender_table,
)
from senders import CONTROLS, SEGMENTS

BOUND, BOUND_LABELLED, BOUND_SENDER = 1.05, 1.15, 1.02
DROPPED = 0.01
OURS = [one.name for one in CONTENDERS if one.name != RIVAL]


@pytest.fixture(scope="module")
def costs() -> dict[str, QdiscCost]:
    measured = measure_qdiscs()
    Console().print(qdisc_table(measured))  # shown with what fails
    return {cost.name: cost for cost in measured}


@pytest.mark.parametrize("name", [RIVAL, *OURS])
def test_law_is_at_work(costs: dict[str, QdiscCost], name: str) -> None:
    assert costs[name].drop_share == pytest.approx(DROPPED, rel=0.15)


@pytest.mark.parametrize("name", OURS)
def test_costs_no_more_than_red(costs: dict[str, QdiscCost], name: str) -> None:
    cost = costs[name]
    low, high = cost.interval
    assert low <= (BOUND_LABELLED if cost.labelled else BOUND), f"{low:.3f} to {high:.3f}"


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
