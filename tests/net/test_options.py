# SPDX-License-Identifier: GPL-2.0-or-later
"""What users type and read: tc with our plug-ins."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from conftest import Tc
from kinds import VARIANTS, Echo, Kind
from netlink import Netlink
from shown import differences

ECHOES = [
    pytest.param(kind, echo, id=f"{kind} {echo.typed}") for kind in VARIANTS for echo in kind.echoes
]
MISTYPED = [
    pytest.param(kind, typed, said, id=f"{kind} {typed}")
    for kind in VARIANTS
    for typed, said in kind.mistyped.items()
]
# tc gives up a whole batch on these
FATAL = ("Command line is not complete", "Error: duplicate")
FAILED = "Command failed -:"


@dataclass(frozen=True)
class Shown:
    """What `tc qdisc show` prints of one qdisc's options."""

    human: str
    json: dict[str, object]


@pytest.fixture(scope="module")
def device(kernel: Netlink) -> Iterator[str]:
    index, _ = kernel.add_veth("shown", "peer")
    yield "shown"
    kernel.delete_link(index)


@pytest.fixture(scope="module")
def shown(tc: Tc, device: str) -> dict[tuple[str, str], Shown]:
    """Every echo's options, shown in both forms; two starts of tc for all of them."""
    cases = [(str(kind), echo.typed) for kind in VARIANTS for echo in kind.echoes]
    commands = [
        command
        for name, typed in cases
        for command in (
            f"qdisc add dev {device} root {name} {typed}",
            f"qdisc show dev {device}",
            f"qdisc delete dev {device} root",
        )
    ]
    lines = tc(*commands).splitlines()
    objects = [json.loads(line)[0] for line in tc(*commands, options="-json").splitlines()]
    return {
        case: Shown(line.partition(" refcnt ")[2].partition(" ")[2], found["options"])
        for case, line, found in zip(cases, lines, objects, strict=True)
    }


@pytest.mark.parametrize(("kind", "echo"), ECHOES)
def test_echo(kind: Kind, echo: Echo, shown: dict[tuple[str, str], Shown]) -> None:
    seen = shown[str(kind), echo.typed]
    assert seen.json == {**kind.defaults, **echo.json}
    assert f" {echo.human} " in f" {seen.human} "
    assert differences(seen.human, seen.json) == []


@pytest.fixture(scope="module")
def said(device: str) -> dict[tuple[str, str], str]:
    """What tc says to each mistyped line."""
    cases = {
        (str(kind), typed): f"qdisc add dev {device} root {kind} {typed}"
        for kind in VARIANTS
        for typed, said in kind.mistyped.items()
        if not said.startswith(FATAL)
    }
    words = ["tc", "-force", "-batch", "-"]
    batch = "\n".join(cases.values())
    done = subprocess.run(words, input=batch, stderr=subprocess.PIPE, text=True)
    answers = dict[int, str]()
    answer: list[str] = []
    for line in done.stderr.splitlines():
        if line.startswith(FAILED):
            answers[int(line.removeprefix(FAILED))] = "\n".join(answer)
            answer = []
        else:
            answer.append(line)
    return {case: answers.get(number, "") for number, case in enumerate(cases, 1)}


@pytest.mark.parametrize(("kind", "typed", "sentence"), MISTYPED)
def test_refusal(
    kind: Kind, typed: str, sentence: str, said: dict[tuple[str, str], str], device: str
) -> None:
    if sentence.startswith(FATAL):
        words = ["tc", "qdisc", "add", "dev", device, "root", *f"{kind} {typed}".split()]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode
        answer = done.stderr
    else:
        answer = said[str(kind), typed]
    assert answer.startswith(sentence)


def test_help_names_every_option(kind: Kind, device: str) -> None:
    words = ["tc", "qdisc", "add", "dev", device, "root", kind.name, "help"]
    usage = subprocess.run(words, capture_output=True, text=True).stderr
    assert usage.startswith(f"Usage: ... {kind.name} ")
    assert set(kind.defaults) <= set(usage.split())
    assert max(map(len, usage.splitlines())) <= 80
