#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is checked of our modules inside the virtual machine: guest.py MODULES

inserts the modules of the folder MODULES, uses them with the system's tc, and writes to
$AQM_OUT/checks.json what failed and why. test_stock.py makes a test of each check.
Nothing but Debian's python3 is needed. A new qdisc needs one entry in QDISCS.
"""

import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

DUMBBELL = Path(__file__).resolve().parents[2] / "mininet" / "dumbbell.py"
TRACING = Path("/sys/kernel/tracing")
CLONE_NEWNET = 0x40000000
# The taint of any module that is built outside the kernel (O) and unsigned (E).
ALLOWED_TAINT = 1 << 12 | 1 << 13
# What our lines of the kernel log begin with, and what is a complaint in them.
BEGIN = "aqmkit: checks begin"
REPORT = re.compile(
    r"\bWARNING:|\bBUG\b|\bOops\b|Call Trace|UBSAN|KASAN|KCSAN|general protection fault|refcount_t:"
    r"|unregister_netdevice: waiting|lockup|blocked for more than|INFO: .*(detected|stall)"
    r"|scheduling while atomic|non[- ]work[- ]conserving|Modules linked in"
)
ETH_P_IP = 0x0800
ETHERNET, IPV4 = 14, 20  # bytes of a header
PORT = 5001
FLOWS = 4
LOAD_S = 3.0
# Both small: an emulated processor must fill the link, and the sockets drain within seconds.
SEND_BUFFER = 32 * 1024
RATE = "2mbit"

Options = dict[str, object]


@dataclass(frozen=True)
class Qdisc:
    """A qdisc of ours: options that make it feel a small load, and how tc -j echoes them."""

    kind: str
    given: str
    shown: Options
    changed: str
    changed_shown: Options
    refused: str
    complaint: str


QDISCS = (
    Qdisc(
        kind="rem",
        given="limit 60 target 10 gamma 0.01 phi 1.01",
        shown={"limit": 60, "target": 10},
        changed="limit 30 target 5 ecn",
        changed_shown={"limit": 30, "target": 5},
        refused="phi 1",
        complaint="phi",
    ),
    Qdisc(
        kind="lred",
        given="limit 40 target 10 period 100ms beta 0.1",
        shown={"limit": 40, "target": 10, "beta": 0.1},
        changed="limit 20 target 5 ecn",
        changed_shown={"limit": 20, "target": 5},
        refused="weight 1",
        complaint="weight",
    ),
    Qdisc(
        kind="fifa",
        given="base red limit 60 min 5 max 20 qweight 0.1 gentle",
        shown={"base": "red", "limit": 60, "min": 5, "max": 20},
        changed="limit 30 max 15 ecn",
        changed_shown={"base": "red", "limit": 30, "max": 15},
        refused="exponent-robust 5",
        complaint="exponent-robust",
    ),
    Qdisc(
        kind="xqm",
        given=f"bandwidth {RATE} limit 60 target 20 flows 1000",
        shown={"limit": 60, "target": 20, "flows": 1000},
        changed="limit 30 target 10 ecn",
        changed_shown={"limit": 30, "target": 10},
        refused="delta 2",
        complaint="delta",
    ),
    Qdisc(
        kind="avq",
        given=f"bandwidth {RATE} limit 60 gamma 0.9",
        shown={"limit": 60, "gamma": 0.9},
        changed="limit 30 ecn",
        changed_shown={"limit": 30},
        refused="gamma 2",
        complaint="gamma",
    ),
    Qdisc(
        kind="fred",
        given="limit 60 min 5 max 20 qweight 0.1",
        shown={"limit": 60, "min": 5, "max": 20},
        changed="limit 30 max 15 ecn",
        changed_shown={"limit": 30, "max": 15},
        refused="minq 0",
        complaint="minq",
    ),
    Qdisc(
        kind="csfq",
        given=f"bandwidth {RATE} limit 60 threshold 5",
        shown={"limit": 60, "threshold": 5},
        changed="limit 30 ecn",
        changed_shown={"limit": 30},
        refused="k 1ms",
        complaint="k must be",
    ),
)
ACTIONS = ("rttlabel",)
CONTROLS = ("pert", "pert_pi")  # of the module tcp_pert
BASELINE_CONTROL = "wreno"
TCP_CC_INFO = 26


class QdiscChecks:
    """The checks of one qdisc, in the order they run: each goes on from where the last ended."""

    def __init__(self, qdisc: Qdisc, modules: Path) -> None:
        self._qdisc = qdisc
        self._module = modules / f"sch_{qdisc.kind}.ko"

    def is_inserted(self) -> None:
        insert(self._module)
        assert self._module.stem in loaded()

    def is_configured_under_htb(self) -> None:
        tc("qdisc", "replace", "dev", "l0", "root", "handle", "1:", "htb", "default", "1")
        tc("class", "add", "dev", "l0", "parent", "1:", "classid", "1:1", "htb", "rate", RATE)
        self._set("add", self._qdisc.given)
        self._echoes(self._qdisc.shown)

    def carries_ipv4(self) -> None:
        carry(socket.AF_INET)

    def carries_ipv6(self) -> None:
        carry(socket.AF_INET6)

    def counts(self) -> None:
        seen = self._statistics()
        assert seen["pkts_in"] > 0, seen
        assert 0 <= seen["prob"] <= 1, seen
        assert 0 < seen["maxq"] <= self._qdisc.shown["limit"], seen
        assert seen["dropped"] > 0, f"no early drop: {seen}"
        assert seen["ecn_mark"] == 0, seen

    def refuses_and_keeps_its_options(self) -> None:
        try:
            self._set("change", self._qdisc.refused)
        except AssertionError as refusal:
            assert self._qdisc.complaint in str(refusal), refusal
        else:
            raise AssertionError(f"accepted: {self._qdisc.refused}")
        self._echoes(self._qdisc.shown)

    def changes_under_load(self) -> None:
        with loaded_link(socket.AF_INET):
            time.sleep(LOAD_S / 3)
            self._set("change", self._qdisc.changed)
            seen = self._statistics()
            assert seen["qlen"] <= self._qdisc.changed_shown["limit"], seen
        self._echoes(self._qdisc.changed_shown)

    def marks_where_hosts_agree(self) -> None:
        for name in ("left", "right"):
            with inside(name):
                Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1")
        carry(socket.AF_INET6)
        seen = self._statistics()
        assert seen["ecn_mark"] > 0, seen

    def is_traced(self) -> None:
        enable = TRACING / "events" / self._qdisc.kind / "enable"
        (TRACING / "trace").write_text("")
        enable.write_text("1")
        try:
            carry(socket.AF_INET, seconds=1)
        finally:
            enable.write_text("0")
        seen = (TRACING / "trace").read_text()
        assert re.search(rf" {self._qdisc.kind}_\w+: ", seen), f"no event of ours:\n{seen[-2000:]}"

    def drains(self) -> None:
        for qdisc in qdiscs():
            assert (qdisc["qlen"], qdisc["backlog"]) == (0, 0), qdisc

    def is_deleted_under_load(self) -> None:
        with loaded_link(socket.AF_INET):
            time.sleep(LOAD_S / 3)
            tc("qdisc", "del", "dev", "l0", "parent", "1:1")
            assert self._qdisc.kind not in [qdisc["kind"] for qdisc in qdiscs()]
        tc("qdisc", "del", "dev", "l0", "root")

    def is_removed(self) -> None:
        run("rmmod", self._module.stem)
        assert self._module.stem not in loaded()

    def comes_and_goes_again(self) -> None:
        for _ in range(3):
            insert(self._module)
            tc("qdisc", "add", "dev", "l0", "root", self._qdisc.kind, *self._qdisc.given.split())
            tc("qdisc", "replace", "dev", "l0", "root", "pfifo")
            run("rmmod", self._module.stem)

    def _set(self, verb: str, options: str) -> None:
        tc("qdisc", verb, "dev", "l0", "parent", "1:1", "handle", "10:",
           self._qdisc.kind, *options.split())

    def _statistics(self) -> dict[str, Any]:
        return next(qdisc for qdisc in qdiscs() if qdisc["kind"] == self._qdisc.kind)

    def _echoes(self, options: Options) -> None:
        shown = self._statistics()["options"]
        assert options.items() <= shown.items(), f"{options} set, {shown} shown"


class LabelChecks:
    """The checks of the action rttlabel, in the order they run."""

    def __init__(self, modules: Path) -> None:
        self._module = modules / "act_rttlabel.ko"

    def is_inserted(self) -> None:
        insert(self._module)
        assert self._module.stem in loaded()
        tc("qdisc", "add", "dev", "l0", "clsact")

    def writes_a_time(self) -> None:
        self._label("40ms")
        assert self._seen() == {400}
        self._unlabel()

    def clears(self) -> None:
        self._label("clear")
        assert self._seen() == {0}
        self._unlabel()

    def asks_the_socket(self) -> None:
        self._label("socket")
        seen = self._seen()
        # SYNs have none; a veth pair on an emulated processor is nearer than 100 ms
        assert seen & set(range(1, 1000)), seen
        assert max(seen) < 1000, seen
        self._unlabel()

    def asks_its_table(self) -> None:
        for source in ("handshake", "timestamps"):
            self._label(source)
            self._label(source, "ingress")
            seen = self._seen()
            assert 0 in seen and seen & set(range(1, 1000)), seen
            self._unlabel()

    def is_held_by_its_filters(self) -> None:
        self._label("40ms")
        for _ in range(3):
            try:
                run("rmmod", self._module.stem)
            except AssertionError as refusal:
                assert "in use" in str(refusal), refusal
            else:
                raise AssertionError("removed while it was used")
        self._unlabel()

    def is_removed_under_load(self) -> None:
        self._label("timestamps")
        self._label("timestamps", "ingress")
        with loaded_link(socket.AF_INET):
            time.sleep(LOAD_S / 3)
            tc("qdisc", "del", "dev", "l0", "clsact")
            time.sleep(0.5)  # filters go when nobody can be in them any more
            run("rmmod", self._module.stem)
        assert self._module.stem not in loaded()

    def _label(self, source: str, hook: str = "egress") -> None:
        tc("filter", "add", "dev", "l0", hook, "matchall", "action", "rttlabel", "from", source)

    def _unlabel(self) -> None:
        for hook in ("egress", "ingress"):
            tc("filter", "del", "dev", "l0", hook)

    def _seen(self) -> set[int]:
        """Labels of what comes to the right host while flows go there."""
        with inside("right"):
            tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        with tap:
            tap.bind(("r0", ETH_P_IP))
            carry(socket.AF_INET, seconds=1)
            tap.settimeout(0)
            seen = set[int]()
            with suppress(BlockingIOError):
                while True:
                    head = tap.recv(ETHERNET + IPV4)
                    seen.add(int.from_bytes(head[ETHERNET + 4 : ETHERNET + 6], "big"))
        return seen


class ControlChecks:
    """The checks of the congestion controls, in the order they run."""

    def __init__(self, modules: Path) -> None:
        self._module = modules / "tcp_pert.ko"

    def is_inserted(self) -> None:
        insert(self._module)
        assert self._module.stem in loaded()

    def is_chosen_by_host(self) -> None:
        for name in CONTROLS:
            with default_control(name):
                for family in ADDRESS:
                    carry(family, seconds=1)

    def is_chosen_by_route(self) -> None:
        for name in CONTROLS:
            route = ("ip", "-n", "left", "route")
            run(*route, "add", "10.0.0.2/32", "dev", "l0", "congctl", name)
            try:
                with connected() as (sender, _):
                    assert control(sender) == name
            finally:
                run(*route, "del", "10.0.0.2/32")

    def is_chosen_by_socket(self) -> None:
        for name in CONTROLS:
            with connected() as (sender, receiver):
                sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
                assert control(sender) == name
                sender.sendall(bytes(100_000))
                assert len(receiver.recv(100_000, socket.MSG_WAITALL)) == 100_000
                time.sleep(0.2)
                told = sender.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 16)
                enabled, _, average, base = struct.unpack("=4I", told)
                assert enabled == 1 and 0 < base <= average, (base, average)

    def changes_under_load(self) -> None:
        parameters = Path("/sys/module") / self._module.stem / "parameters"
        with default_control("pert"), loaded_link(socket.AF_INET):
            for value in ("0", "4294967295", "1000000", "5000"):
                for name in ("tmin", "tmax", "weight", "decrease"):
                    (parameters / name).write_text(value)
                time.sleep(LOAD_S / 6)

    def is_traced(self) -> None:
        enable = TRACING / "events" / "pert" / "enable"
        (TRACING / "trace").write_text("")
        enable.write_text("1")
        try:
            with default_control("pert_pi"):
                carry(socket.AF_INET, seconds=1)
        finally:
            enable.write_text("0")
        assert " pert_decide: " in (TRACING / "trace").read_text()

    def is_held_by_its_sockets(self) -> None:
        with default_control("pert"), connected():
            try:
                run("rmmod", self._module.stem)
            except AssertionError as refusal:
                assert "in use" in str(refusal), refusal
            else:
                raise AssertionError("removed while it was used")

    def comes_and_goes_again(self) -> None:
        for _ in range(3):
            run("rmmod", self._module.stem)
            assert self._module.stem not in loaded()
            insert(self._module)
            with default_control("pert"):
                carry(socket.AF_INET, seconds=0.5)
        run("rmmod", self._module.stem)


class BaselineChecks:
    """The checks of the congestion control that is there to be compared with."""

    def __init__(self, modules: Path) -> None:
        self._module = modules / f"tcp_{BASELINE_CONTROL}.ko"

    def is_inserted(self) -> None:
        insert(self._module)

    def is_chosen_by_host(self) -> None:
        with default_control(BASELINE_CONTROL):
            for family in ADDRESS:
                carry(family, seconds=1)

    def is_removed(self) -> None:
        run("rmmod", self._module.stem)
        assert self._module.stem not in loaded()


@contextmanager
def default_control(name: str) -> Iterator[None]:
    """New connections of the left host have this congestion control."""
    with inside("left"):
        setting = Path("/proc/sys/net/ipv4/tcp_congestion_control")
        before = setting.read_text()
        setting.write_text(name)
    try:
        yield
    finally:
        with inside("left"):
            setting.write_text(before)


@contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection from left to right: both its ends."""
    with inside("right"):
        listener = socket.create_server((ADDRESS[socket.AF_INET], PORT))
    with inside("left"):
        sender = socket.create_connection((ADDRESS[socket.AF_INET], PORT), timeout=60)
    with listener:
        receiver, _ = listener.accept()
    # the receiver first: the end that closes first keeps its congestion control for a while
    with sender, receiver:
        yield sender, receiver


def control(sock: socket.socket) -> str:
    told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return told.rstrip(b"\0").decode()


def runs_an_experiment(module: Path) -> None:
    """The same script as in the lab, in real time: small, as the processor is an emulated one."""
    insert(module)
    options = "--flows 2 --rate 2mbit --rtt 40ms --duration 5 --warmup 1 --start-spread 0.5 --json"
    out = str(Path(os.environ["AQM_OUT"], "dumbbell"))
    words = [str(DUMBBELL), "--qdisc", "rem target 5", "--out", out, *options.split()]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    # That an emulated processor now and then samples too late is no fault of the script's.
    faults = [words for words in result["fidelity"]["reasons"] if "too slow" not in words]
    assert not faults, faults
    assert result["utilization"] > 0.5, result
    run("rmmod", module.stem)


def kernel_is_content() -> None:
    """No report in the kernel's log since the first module came, and no taint but of its kind."""
    since = run("dmesg").partition(BEGIN)[2]
    assert not reports(since), since
    taint = int(Path("/proc/sys/kernel/tainted").read_text())
    assert not taint & ~ALLOWED_TAINT, f"tainted: {taint:#x}"


def reports(log: str) -> list[str]:
    """Return the lines of a kernel log in which the kernel complains."""
    return [line for line in log.splitlines() if REPORT.search(line)]


Check = tuple[str, Callable[[], None]]


def checks(modules: Path) -> Iterator[Check]:
    """Yield all checks in their order, by name."""
    for qdisc in QDISCS:
        for name, method in vars(QdiscChecks).items():
            if not name.startswith("_"):
                yield f"{qdisc.kind}-{name}", method.__get__(QdiscChecks(qdisc, modules))
    for name, method in vars(LabelChecks).items():
        if not name.startswith("_"):
            yield f"rttlabel-{name}", method.__get__(LabelChecks(modules))
    for name, method in vars(ControlChecks).items():
        if not name.startswith("_"):
            yield f"pert-{name}", method.__get__(ControlChecks(modules))
    for name, method in vars(BaselineChecks).items():
        if not name.startswith("_"):
            yield f"{BASELINE_CONTROL}-{name}", method.__get__(BaselineChecks(modules))
    yield "runs_an_experiment", partial(runs_an_experiment, modules / "sch_rem.ko")
    yield "kernel_is_content", kernel_is_content


def run(*words: str) -> str:
    """Run a program; its refusal is an AssertionError with its words."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: status {done.returncode}: {done.stdout}"
    return done.stdout


def tc(*words: str) -> str:
    return run("tc", "-n", "left", *words)


def qdiscs() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(tc("-s", "-j", "qdisc", "show", "dev", "l0"))
    return found


def loaded() -> set[str]:
    return {line.split()[0] for line in Path("/proc/modules").read_text().splitlines()}


def insert(module: Path) -> None:
    assert module.exists(), f"{module.name} was not built"
    run("insmod", str(module))


LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Be in a network namespace, with this thread."""
    with Path("/proc/thread-self/ns/net").open() as old, Path("/run/netns", name).open() as new:
        assert LIBC.setns(new.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert LIBC.setns(old.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


def build_link() -> None:
    """Two hosts, left and right, joined by a veth pair l0-r0."""
    batch = """\
netns add left
netns add right
link add l0 netns left type veth peer name r0 netns right
-n left address add 10.0.0.1/24 dev l0
-n left address add fd00::1/64 dev l0 nodad
-n left link set l0 up
-n right address add 10.0.0.2/24 dev r0
-n right address add fd00::2/64 dev r0 nodad
-n right link set r0 up
"""
    for line in batch.splitlines():
        run("ip", *line.split())


ADDRESS = {socket.AF_INET: "10.0.0.2", socket.AF_INET6: "fd00::2"}


def carry(family: socket.AddressFamily, seconds: float = LOAD_S) -> None:
    """Load the link with TCP for a while; all that was sent must arrive."""
    with loaded_link(family, seconds):
        pass


@contextmanager
def loaded_link(family: socket.AddressFamily, seconds: float = LOAD_S) -> Iterator[None]:
    """TCP flows from left to right while the block runs, and at least for the time given."""
    sent, received = [0] * FLOWS, [0] * FLOWS

    def send(flow: int, sender: socket.socket) -> None:
        with sender:
            block = bytes(SEND_BUFFER)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                sent[flow] += sender.send(block)

    def receive(flow: int, receiver: socket.socket) -> None:
        with receiver:
            while count := len(receiver.recv(1 << 16)):
                received[flow] += count

    threads = []
    with inside("right"):
        listener = socket.create_server((ADDRESS[family], PORT), family=family)
    with listener, inside("left"):
        for flow in range(FLOWS):
            sender = socket.socket(family)
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            sender.connect((ADDRESS[family], PORT))
            receiver, _ = listener.accept()
            for part in (receiver, sender):
                part.settimeout(60)
            threads.append(threading.Thread(target=send, args=(flow, sender)))
            threads.append(threading.Thread(target=receive, args=(flow, receiver)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
    assert sent == received and min(sent) > 0, f"bytes sent {sent}, received {received}"


def main() -> None:
    modules, out = Path(sys.argv[1]), Path(os.environ["AQM_OUT"])
    Path("/dev/kmsg").write_text(BEGIN)
    build_link()
    results: dict[str, str] = {}
    for name, check in checks(modules):
        started = time.monotonic()
        try:
            check()
        except Exception:
            results[name] = traceback.format_exc()
        else:
            results[name] = ""
        print(f"{time.monotonic() - started:5.1f} s  {name}", flush=True)
        # Each time, so that a kernel that dies leaves what went before.
        (out / "checks.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
