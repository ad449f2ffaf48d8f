# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases, in tc-testing's format: those written for one kind, and generic ones for each kind."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template

Case = Mapping[str, str | Sequence[object] | Mapping[str, object]]

FOLDER = Path(__file__).parent
WRITTEN = ("rem", "lred", "fifa", "xqm", "rttlabel")
# What stands for each in generic.json. NEW is what must be typed to make one, DEFAULTS what is
# shown then from the limit on; a case's number gets a letter, for it must be of one case only.
KINDS: Sequence[Mapping[str, str]] = (
    {
        "KIND": "rem",
        "LETTER": "e",
        "NEW": "rem",
        "DEFAULTS": "limit 120p target 20p interval 2ms alpha 0.1 gamma 0.001 phi 1.001 "
        "measure queue",
    },
    {
        "KIND": "lred",
        "LETTER": "d",
        "NEW": "lred",
        "DEFAULTS": "limit 200p target 100p beta 0.001 period 1s periods 4 weight 0.1",
    },
    {
        "KIND": "fifa",
        "LETTER": "f",
        "NEW": "fifa base pi",
        "DEFAULTS": "limit 1000p target 50p a 1.822e-05 b 1.816e-05 sampling 170 scale "
        "rtt-min 100us rtt-max 6553500000ns rtt-weight 0.1",
    },
    {
        "KIND": "xqm",
        "LETTER": "c",
        "NEW": "xqm bandwidth 10mbit",
        "DEFAULTS": "limit 250p target 50p control-period 10ms measure-period 10s delta 1e-05 "
        "phi 4e-05 flow 5tuple flows 65536 short 10p rtt auto hide off hide-by dscp hide-dscp 33",
    },
)  # fmt: skip


def every() -> Iterator[Case]:
    for name in WRITTEN:
        yield from json.loads((FOLDER / f"{name}.json").read_text())
    generic = Template((FOLDER / "generic.json").read_text())
    for kind in KINDS:
        yield from json.loads(generic.safe_substitute(kind))
