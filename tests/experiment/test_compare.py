# SPDX-License-Identifier: GPL-2.0-or-later
"""compare.py runs what dumbbell.py and multihop.py would, once for each case and seed."""

import subprocess
import sys

import pytest

from conftest import ROOT, Done, Lab

SHORT = "--duration 6 --warmup 3 --start-spread 1"
DUMBBELL = f"--flows 2 --rate 5mbit --rtt 20ms {SHORT}"
CHAIN = f"--rates 5mbit,8mbit --long 1 --cross 1 --link-delay 1ms --access-delay 5ms {SHORT}"


def compare(*words: str) -> Done:
    command = [sys.executable, str(ROOT / "mininet" / "compare.py"), *words]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_cases_are_run_with_their_own_options_and_those_of_all(lab: Lab) -> None:
    metrics = "jain,goodput_mbps,fifa_null_jain,mean_queue_pkts"
    done = compare(
        *("--seeds", "2", "--metrics", metrics, "--json"),
        *("--case", "short", "pfifo limit 5"),
        *("--case", "long", "pfifo limit 50", "--mtu", "500"),
        *("--", *DUMBBELL.split()),
    )
    assert done.status == 0, done.errors
    found = done.metrics
    assert list(found) == ["short", "long"]
    for seed in (1, 2):
        alone = lab.dumbbell(f"{DUMBBELL} --mtu 500", "pfifo limit 50", seed).metrics
        for name in ("jain", "goodput_mbps", "mean_queue_pkts"):
            assert found["long"][name][seed - 1] == alone[name]
    assert max(found["short"]["mean_queue_pkts"]) < 5
    assert "±" in done.output


def test_chains_are_compared_as_well(lab: Lab) -> None:
    qdiscs = "pfifo limit 20; pfifo limit 20"
    figure = lab.out / "share.svg"
    done = compare(
        *("--metrics", "long_share,links.1.arrivals", "--seeds", "2", "--json"),
        *("--figure", str(figure), "--title", "the long flow's share"),
        *("--case", "tail", qdiscs, "--", *CHAIN.split()),
    )
    assert done.status == 0, done.errors
    alone = lab.multihop(CHAIN, qdiscs).metrics
    assert done.metrics["tail"]["long_share"][0] == alone["long_share"]
    assert done.metrics["tail"]["links.1.arrivals"][0] == alone["links"][1]["arrivals"]
    mean = sum(done.metrics["tail"]["long_share"]) / 2
    assert f"the long flow&#x27;s share: tail {mean:.3f}." in figure.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--case tail pfifo", "needs cases, and options for all"),
        ("-- --flows 1", "needs cases, and options for all"),
        ("--seeds 1 --case tail pfifo -- --flows 1", "not a whole number from 2 to 10"),
        ("--case tail -- --flows 1", "--case: needs a name and a qdisc"),
        ("--case a pfifo --case a bfifo -- --flows 1", "two of the name a"),
        ("--label socket --case a pfifo -- --flows 1", "--label stands before the first --case"),
    ],
)
def test_nonsense_is_refused(words: str, said: str) -> None:
    done = compare(*words.split())
    assert done.status == 2
    assert said in done.errors
    assert not done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"--seeds 2 --case tail pfifo -- {DUMBBELL} --flows none", "not a whole number"),
        (f"--seeds 2 --metrics links.7.jain --case tail pfifo -- {DUMBBELL}", "no links.7.jain"),
    ],
)
def test_the_first_run_that_fails_ends_all(words: str, said: str) -> None:
    done = compare(*words.split())
    assert done.status == 1
    assert said in done.errors
    assert not done.output
