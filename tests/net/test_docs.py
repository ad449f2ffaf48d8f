# SPDX-License-Identifier: GPL-2.0-or-later
"""The man pages and the completion keep up with the code."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Tc
from kinds import VARIANTS, Kind
from netlink import Netlink
from shown import STOCK

ROOT = Path(__file__).resolve().parents[2]
TC_PATCHES = ROOT / "tc-patches"

# Prints what TAB offers after the words of its arguments.
COMPLETE = """
. /usr/share/bash-completion/bash_completion
. "$COMPLETION"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
for attempt in first again; do
    function=$(complete -p "$1")
    function=${function#*-F }
    ${function% "$1"} "$1" "${@: -1}" "${@: -2:1}"
    (($? == 124)) || break
done
echo "${COMPREPLY[@]}"
"""


PAGES = sorted(path.stem.removeprefix("tc-") for path in TC_PATCHES.glob("*.8"))
EVERY_PAGE = pytest.mark.parametrize("name", PAGES)


def page(name: str) -> str:
    return (TC_PATCHES / f"tc-{name}.8").read_text()


def words_explained(text: str) -> set[str]:
    return set(re.findall(r"^\.T[PQ]\n\.B[IR]* \"?([a-z_-]+)", text, flags=re.MULTILINE))


def offered(*words: str) -> set[str]:
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", *words],
        env={**os.environ, "COMPLETION": str(TC_PATCHES / "completion" / "aqmkit")},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("path", sorted(ROOT.glob("*/*.[178]")), ids=lambda path: path.name)
def test_man_page_is_set_without_complaint(path: Path) -> None:
    # as man does on a terminal of 80 columns, but for bold and underlined letters
    words = ["groff", "-ww", "-man", "-Tascii", "-rLL=78n", "-P-cbou"]
    text = path.read_text()
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.fixture
def router(kernel: Netlink) -> Iterator[None]:
    links = [kernel.add_veth("eth0", "eth1")[0], kernel.add_veth("eth2", "eth3")[0]]
    yield
    for link in links:
        kernel.delete_link(link)


@EVERY_PAGE
@pytest.mark.usefixtures("router")
def test_examples_of_the_man_page_run(name: str, tc: Tc) -> None:
    joined = page(name).replace("\\e\n", "").replace("\\-", "-")
    examples = re.findall(r"^# tc (.*)$", joined, flags=re.MULTILINE)
    assert examples
    for example in examples:
        options = re.match(r"(-\w+ )*", example)
        assert options
        # one example may be instead of another
        tc(example[options.end() :].replace(" add dev eth1", " replace dev eth1"),
           options=options[0])  # fmt: skip


@pytest.mark.parametrize("kind", VARIANTS, ids=str, indirect=True)
@pytest.mark.usefixtures("router")
def test_man_page_explains_every_word(kind: Kind, tc: Tc) -> None:
    tc(f"qdisc add dev eth0 root {kind}")
    (shown,) = json.loads(tc("qdisc show dev eth0", options="-statistics -json"))
    explained = words_explained(page(kind.name))
    # what all qdiscs have need be explained in one place only
    if "are explained in\n.BR tc\\-rem (8)" in page(kind.name):
        explained |= words_explained(page("rem"))
    assert set(shown["options"]) <= explained
    assert shown.keys() - STOCK <= explained


def test_man_page_explains_every_parameter_of_pert() -> None:
    """And tells the default that the module has."""
    subprocess.run(["modprobe", "tcp_pert"], check=True)
    text = (ROOT / "tcp_pert/tcp-pert.7").read_text()
    explained = dict(re.findall(r"^\.TP\n\.B (\w+)\n(.*?)(?=^\.TP|^\.S)", text, re.M | re.S))
    parameters = Path("/sys/module/tcp_pert/parameters").iterdir()
    defaults = {file.name: file.read_text().strip() for file in parameters}
    assert defaults.keys() == explained.keys()
    for name, default in defaults.items():
        said = explained[name].replace("\n", " ")
        assert re.search(rf"\b(default {default}|{default}, the default)\b", said), name


@pytest.mark.parametrize("kind", VARIANTS, ids=str, indirect=True)
def test_completion_offers_every_option(kind: Kind) -> None:
    line = ("tc", "qdisc", "add", "dev", "lo", "root")
    assert kind.name in offered(*line, kind.name[0])
    assert set(kind.defaults) <= {*kind.typed.split(), *offered(*line, *str(kind).split(), "")}
    # what is there is not offered again
    assert "limit" not in offered(*line, kind.name, "limit", "100", "")
    assert "ecn" not in offered(*line, kind.name, "noecn", "")
    # and others' completion is as it was
    assert "tupdate" in offered(*line, "pie", "")


def test_completion_knows_the_action() -> None:
    line = ("tc", "filter", "add", "dev", "lo", "egress", "matchall", "action")
    assert "rttlabel" in offered(*line, "r")
    assert {"from", "error", "index", "pipe", "pass"} <= offered(*line, "rttlabel", "")
    assert offered(*line, "rttlabel", "from", "") == {"socket", "handshake", "timestamps", "clear"}
    assert "from" not in offered(*line, "rttlabel", "from", "clear", "")
    assert "mirror" in offered(*line, "mirred", "")


def test_completion_knows_aqm_top() -> None:
    assert offered("aqm-top", "l") == {"lo"}
    assert "--prometheus" in offered("aqm-top", "lo", "--")
    assert offered("aqm-top", "lo", "--count", "") == set()
