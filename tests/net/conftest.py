# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the qdiscs in a running kernel share. They run inside the lab only."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from frames import Port
from kinds import COMPARATORS, KINDS, Kind
from netlink import IFLA_MASTER, Netlink, number

if "AQM_LAB" not in os.environ:
    pytest.exit("tests/net runs inside the lab: lab/run -- python -m pytest tests/net", 2)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="days, loads and packets by the thousand")
    parser.addoption("--smoke", action="store_true", help="each test once with each kind")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("smoke"):
        return
    first = dict[tuple[str, str], pytest.Item]()
    for item in items:
        asked = getattr(item, "callspec", None)
        kind = str(asked.params.get("kind")) if asked else ""
        first.setdefault((item.nodeid.partition("[")[0], kind), item)
    kept = set(first.values())
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.fixture(scope="session")
def kernel() -> Iterator[Netlink]:
    # no packets but the tests' own
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    netlink = Netlink()
    yield netlink
    netlink.close()


@pytest.fixture(params=(*KINDS, *COMPARATORS), ids=str, scope="session")
def kind(request: pytest.FixtureRequest) -> Kind:
    assert isinstance(request.param, Kind)
    return request.param


@dataclass(frozen=True)
class Link:
    """A pair of devices; frames go from `near`, whose qdisc is under test, to `far`."""

    index: int
    far_index: int
    name: str
    near: Port
    far: Port


@pytest.fixture
def link(kernel: Netlink) -> Iterator[Link]:
    index, far_index = kernel.add_veth("near", "far", queues=4)
    ends = Port("near"), Port("far")
    yield Link(index, far_index, "near", *ends)
    for end in ends:
        end.close()
    kernel.delete_link(index)


@pytest.fixture
def bridged(kernel: Netlink, link: Link) -> Iterator[Link]:
    """A link whose packets come through a bridge to the queue, not from a socket."""
    bridge = kernel.add_link("bridge", "bridge")
    out, sink = kernel.add_veth("out", "sink")
    for port in (link.far_index, out):
        kernel.set_link(port, number(IFLA_MASTER, bridge), up=True)
    time.sleep(1)  # until the bridge knows that they are up
    far = Port("sink")
    yield Link(out, sink, "out", link.near, far)
    far.close()
    kernel.delete_link(out)
    kernel.delete_link(bridge)


def users(kind: Kind) -> int:
    """How many qdiscs hold the kind's module."""
    return int(Path(f"/sys/module/sch_{kind.name}/refcnt").read_text())


Tc = Callable[..., str]


@pytest.fixture(scope="session")
def tc() -> Tc:
    """Run tc on a batch of commands, all of which must succeed; return what it prints."""

    def run(*commands: str, options: str = "") -> str:
        words = ["tc", *options.split(), "-batch", "-"]
        done = subprocess.run(words, input="\n".join(commands), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
