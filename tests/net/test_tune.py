# SPDX-License-Identifier: GPL-2.0-or-later
"""tc, and the module, take what aqm-tune prints, and hold the values that it computed."""

import itertools
import json
import subprocess
from pathlib import Path

import pytest

from aqmlab.scenario import parse_rate, parse_seconds
from conftest import Link, Tc
from models import tune

PARAMETERS = Path("/sys/module/tcp_pert/parameters")
# wide windows and narrow ones, a fast link and a slow one
NEEDS = [
    tune.Need(10_000_000, 300, (0.35,), 500, 50, 200),
    tune.Need(1_000_000_000, 40, (0.02,), 1500, 100, 1000, loss=0.4),
    tune.Need(1_001_000, 2, (0.06,), 1000, 10, 60),
]


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: str(need.rate_bps))
@pytest.mark.parametrize("scheme", tune.SCHEMES.keys() - {"pert"})
def test_tc_takes_the_line(scheme: str, need: tune.Need, link: Link, tc: Tc) -> None:
    setting = tune.SCHEMES[scheme](need)
    (command,) = tune.commands(scheme, setting, link.name)
    tc(command.removeprefix("tc "))
    (shown,) = json.loads(tc(f"qdisc show dev {link.name}", options="-json"))
    words = setting.words.split()
    assert shown["kind"] == words[0]
    options = shown["options"]
    if scheme == "pi":
        assert options["base"] == "pi" and options["scale"] is False
    for name, text in itertools.pairwise(words):
        if name in ("interval", "bandwidth"):
            ns_or_bytes = parse_seconds(text) * 1e9 if name == "interval" else parse_rate(text) / 8
            assert options[name] == ns_or_bytes
        elif text[0].isdecimal():
            assert options[name] == pytest.approx(float(text), rel=1e-6)
    assert (options.get("hide") == "smooth") == ("hide smooth" in setting.words)


@pytest.mark.parametrize("need", NEEDS[1:], ids=lambda need: str(need.rate_bps))
def test_the_module_takes_the_parameters(need: tune.Need) -> None:
    subprocess.run(["modprobe", "tcp_pert"], check=True)
    before = {file.name: file.read_text() for file in PARAMETERS.iterdir()}
    setting = tune.tune_pert(need)
    load, *_ = commands = tune.commands("pert", setting, "eth0")
    try:
        for command in commands[1:]:
            subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL)
        for word in load.split()[2:]:
            name, value = word.split("=")
            assert (PARAMETERS / name).read_text().strip() == value
    finally:
        subprocess.run(["sysctl", "-q", "net.ipv4.tcp_congestion_control=reno"], check=True)
        for name, value in before.items():
            (PARAMETERS / name).write_text(value)
