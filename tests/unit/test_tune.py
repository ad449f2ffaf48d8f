# SPDX-License-Identifier: GPL-2.0-or-later
"""aqm-tune: what it prints is within the theorems, and it refuses where nothing is."""

import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from models import lred, pert, rem, tune

MININET = Path(__file__).resolve().parents[2] / "mininet"
EXAMPLE = "--rate 10mbit --flows 300 --rtt 350ms --packet 500"
EXAMPLES = {
    "lred": EXAMPLE,
    "pi": EXAMPLE,
    "rem": EXAMPLE,
    "xqm": "--rate 16mbit --flows 20 --rtt 24ms,100ms,176ms --packet 1000 --loss 1%",
    "pert": "--rate 150mbit --flows 50 --rtt 75ms",
}
# rate in bits/s, flows, round-trip time in s; packets are of 1000 bytes
LINKS = [
    link
    for link in itertools.product((10**6, 10**7, 10**8, 10**9), (5, 50, 500), (0.005, 0.05, 0.5))
    if link[0] / 8000 / link[1] * link[2] > 2
]


def need(rate: int, flows: int, rtt: float, **more: Any) -> tune.Need:
    return tune.Need(rate, flows, (rtt,), 1000, **{"target": 50, "limit": 200} | more)


def option(setting: tune.Setting, name: str) -> float:
    found = re.search(rf"\b{name}[ =]([0-9.e-]+)", setting.words)
    assert found
    return float(found[1])


def told(capsys: pytest.CaptureFixture[str], words: str) -> Any:
    assert tune.main([*words.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("scheme", tune.SCHEMES)
def test_words_fit_80_columns(scheme: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main([scheme, *EXAMPLES[scheme].split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    # what is folded is one command
    command = re.sub(r" \\\n +", " ", "\n".join(lines)).splitlines()[0]
    assert command == told(capsys, f"{scheme} {EXAMPLES[scheme]}")["commands"][0]


def test_check_values(capsys: pytest.CaptureFixture[str]) -> None:
    """LRED's own example, .001 in print; the quiescent loss rate of 100 packets/s at 100 ms."""
    lred_told = told(capsys, f"lred {EXAMPLE} --dev eth1")
    assert lred_told["commands"] == [
        "tc qdisc replace dev eth1 root lred limit 200 target 100 beta 0.00093"
    ]
    assert {row["name"]: row["value"] for row in lred_told["rows"]}["Lemma 5"] == pytest.approx(
        9.31e-4, abs=5e-7
    )
    xqm_told = told(capsys, f"xqm {EXAMPLES['xqm']}")
    rates = {row["name"]: row["value"] for row in xqm_told["rows"]}
    assert rates["q at 100 ms"] == pytest.approx(0.01961, abs=5e-6)


def test_pi_star_is_what_pi_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = told(capsys, "pi --rate 10mbit --flows 100 --rtt 450ms --packet 500")["words"]
    a, b = lred.pi_star(100, 0.45, 2500)
    assert words == (f"fifa base pi noscale limit 1000 target 50 a {a:.8g} b {b:.8g} sampling 170")


@pytest.mark.parametrize(("rate", "flows", "rtt"), LINKS)
def test_settings_are_within_the_theorems(rate: int, flows: int, rtt: float) -> None:
    """And stable with all delays; for more flows and shorter round trips too."""
    network = lred.Network(flows, rate / 8000, rtt)
    more = lred.Network(1.2 * flows, rate / 8000, 0.8 * rtt)
    asked = need(rate, flows, rtt)
    for scheme, make in tune.SCHEMES.items():
        try:
            setting = make(asked)
        except tune.NoSettingError as refused:
            # only the limits of the options stand in the way
            assert "no setting" in str(refused) or scheme == "pert"
            continue
        if scheme == "lred":
            beta = option(setting, "beta")
            assert beta <= min(lred.theorem_2(network))
            assert lred.growth(network, beta * network.slope, same=False, fixed_rtt=False) < 0
        elif scheme == "pi":
            a, b, hertz = (option(setting, name) for name in ("a", "b", "sampling"))
            gains = (a + b) / 2, (a - b) * hertz
            assert gains[1] <= lred.pi_gains(network)[1] * (1 + 1e-3) and b > 0
            assert lred.growth_pi(network, *gains) < 0
            if more.window > 2:
                assert lred.growth_pi(more, *gains) < 0
        elif scheme == "rem":
            alpha, gamma, phi = (option(setting, name) for name in ("alpha", "gamma", "phi"))
            interval = option(setting, "interval") * (1e-3 if "ms " in setting.words else 1e-6)
            omega = rem.one_link(flows, rate / 8000, rtt, interval, phi)
            assert 0 < alpha < 1 and gamma <= rem.greatest_gamma(omega)
            speed = gamma * math.log(phi) * (1 - network.loss_ratio)
            assert lred.growth_pi(network, speed, speed * alpha / interval) < 0
        elif scheme == "pert":
            names = ("tmin", "tmax", "pmax", "weight")
            low, high, p_max, weight = (1e-6 * option(setting, name) for name in names)
            curve = pert.Curve(low, high, p_max, weight, flows / (rate / 8000))
            link = pert.Network(rate / 8000, flows, rtt)
            assert pert.theorem_1(link, curve) >= 1
            assert 2 * link.response(0.35) <= p_max * (1 + 1e-5) or p_max == 0.05
            assert pert.growth(link, curve, 0.35, fixed_rtt=False) < 0


def test_gains_are_cut_where_delays_ask_for_it() -> None:
    """PI's rule at windows of 2.9 packets: unstable when all delays are counted."""
    network = lred.Network(300, 2500, 0.35)
    m, gain = lred.pi_gains(network)
    assert lred.growth_pi(network, gain / m, gain) > 0
    a, b = (option(tune.tune_pi(need(10**7 * 2, 300, 0.35)), name) for name in "ab")
    assert tune.critical(lambda k: lred.growth_pi(network, k * (a + b) / 2, k * (a - b) * 170)) == (
        pytest.approx(tune.MARGIN, rel=0.01)
    )


def test_pert_holds_the_queue_that_is_asked_for() -> None:
    setting = tune.tune_pert(need(150_000_000, 50, 0.075, queue_s=0.02))
    rows = {row.name: row.value for row in setting.rows}
    assert rows["queue"] == pytest.approx(20, rel=1e-3)
    short = {row.name: row.value for row in tune.tune_pert(need(150_000_000, 50, 0.075)).rows}
    assert short["averages over"] > 5 * rows["averages over"]


def test_losses_beyond_the_quiescent_rate_are_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    link = "xqm --rate 16mbit --flows 20 --packet 1000"
    assert "hide" not in told(capsys, f"{link} --rtt 100ms")["words"]
    assert "hide" not in told(capsys, f"{link} --rtt 100ms --loss 1.9%")["words"]
    assert told(capsys, f"{link} --rtt 100ms --loss 2%")["words"].endswith(" hide smooth")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("lred --rate 10mbit --flows 300 --rtt 35ms", "needs more than 1.22"),
        ("lred --rate 10gbit --flows 1 --rtt 1s", "tc's least is 1e-6"),
        ("pi --rate 10mbit --flows 300 --rtt 350ms", "PI's design rule needs more than 2"),
        ("pi --rate 10gbit --flows 1 --rtt 1s", "beyond tc's limits"),
        ("rem --rate 10mbit --flows 300 --rtt 350ms", "PI's design rule needs more than 2"),
        ("rem --rate 10gbit --flows 1 --rtt 1s", "beyond tc's limits"),
        ("xqm --rate 1mbit --flows 100 --rtt 50ms", "TCP cannot send less"),
        ("pert --rate 10mbit --flows 30 --rtt 40ms", "231 % of all ACKs"),
        ("pert --rate 1gbit --flows 1 --rtt 1s", "a longer --queue would help"),
    ],
)
def test_refuses_in_a_sentence(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(words.split()) == tune.REFUSED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("aqm-tune: no ") and captured.err.endswith(".\n")
    assert captured.err.count("\n") == 1 and says in captured.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "the following arguments are required"),
        ("red", "invalid choice: 'red'"),
        ("lred --rate 10", "'10' is not of the form 64mbit"),
        (f"lred {EXAMPLE} --target 200 --limit 200", "200 packets are not below --limit, 200"),
        (f"lred {EXAMPLE} --loss 1%", "goes with xqm only"),
        (f"lred {EXAMPLE} --queue 20ms", "goes with pert only"),
        (f"pert {EXAMPLE} --target 9", "pert has no queue of its own"),
        (f"pert {EXAMPLE} --queue 5ms", "more than 5ms, at most 1s"),
        ("lred --rate 10mbit --flows 0 --rtt 1s", "'0' is not a whole number from 1"),
    ],
)
def test_wrong_options(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        tune.main(words.split())
    assert ended.value.code == 2
    assert re.fullmatch(r"aqm-tune: .*\.\n", said := capsys.readouterr().err) and says in said


def test_limit_follows_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert "limit 200 target 40 " in told(capsys, f"lred {EXAMPLE} --target 40")["words"]
    assert "limit 600 target 300 " in told(capsys, f"lred {EXAMPLE} --target 300")["words"]


def test_man_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (MININET / "aqm-tune.1").read_text().replace("\\e\n", "\\\n")
    examples = re.findall(r"^\$ aqm-tune ((?:.*\\\n)*.*)\n((?:.+\n)+?)\.fi", page, re.M)
    assert len(examples) == 3
    for words, shown in examples:
        assert tune.main(words.replace("\\\n", " ").split()) == 0
        assert capsys.readouterr().out.startswith(shown)
    with pytest.raises(SystemExit):
        tune.main(["--help"])
    options = set(re.findall(r"--(\w+)", capsys.readouterr().out))
    explained = re.findall(r"^\.TP\n\.BI? \\-\\-(\w+)", page, re.M)
    assert set(explained) == options
    assert set(re.findall(r"^\.TP\n\.B (\w+)", page, re.M)) == set(tune.SCHEMES)


def test_program() -> None:
    words = [sys.executable, str(MININET / "aqm-tune"), "lred", *EXAMPLE.split()]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("tc qdisc replace dev eth0 root lred ")
    # and without SciPy
    bare = subprocess.run([words[0], "-S", *words[1:]], capture_output=True, text=True)
    assert bare.returncode == 1
    assert bare.stderr == "aqm-tune: needs Python's numpy: apt install python3-scipy.\n"
