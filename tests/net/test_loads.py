# SPDX-License-Identifier: GPL-2.0-or-later
"""Each module comes, is used and goes; thirty times, or with --long a thousand times."""

import ctypes
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from frames import Port, frame
from guest import LIBC
from kinds import COMPARATORS, KINDS, encode
from netlink import ADD, ROOT, Netlink

MODULES = Path(f"/run/lab/kit/lib/modules/{os.uname().release}")
SYS_FINIT_MODULE, SYS_DELETE_MODULE = 313, 176
CONTROLS = {"tcp_pert": ("pert", "pert_pi"), "tcp_wreno": ("wreno",)}
KMEMLEAK = Path("/sys/kernel/debug/kmemleak")
WARM_UP = 10  # loads before memory is looked at
SLACK_KIB = 256  # what the kernel's caches come and go by
MEMORY = re.compile(r"^(SUnreclaim|VmallocUsed|Percpu): +(\d+) kB$", re.MULTILINE)
FRAMES = [frame(number=number) for number in range(20)]


def call(number: int, *arguments: int | bytes) -> None:
    if LIBC.syscall(number, *arguments):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def insert(module: str) -> None:
    file = os.open(MODULES / f"{module}.ko", os.O_RDONLY)
    try:
        call(SYS_FINIT_MODULE, file, b"", 0)
    finally:
        os.close(file)


def remove(module: str) -> None:
    call(SYS_DELETE_MODULE, module.encode(), os.O_NONBLOCK)


def queues(kernel: Netlink, index: int, module: str) -> None:
    """Use a qdisc: some packets pass."""
    kind = next(k for k in (*KINDS, *COMPARATORS) if module == f"sch_{k.name}")
    kernel.qdisc(ADD, index, kind.name, encode({**kind.given}), ROOT, 0x10000)
    port = Port("sink")
    assert port.send(*FRAMES) == 0
    port.close()
    kernel.delete_qdisc(index)


def controls(module: str) -> None:
    """Use congestion controls: connections are made and closed."""
    for name in CONTROLS[module]:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            # no waiting: with it, the end that closes first keeps its congestion control
            for end in (listener, sender):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sender.connect(listener.getsockname())
            with listener.accept()[0] as receiver:
                sender.sendall(bytes(20_000))
                assert len(receiver.recv(20_000, socket.MSG_WAITALL)) == 20_000


def memory() -> dict[str, int]:
    """What the kernel has for itself, KiB, once what was given up is free."""
    time.sleep(1)
    return {name: int(size) for name, size in MEMORY.findall(Path("/proc/meminfo").read_text())}


@pytest.mark.parametrize("module", sorted(file.stem for file in MODULES.glob("*.ko")))
def test_comes_and_goes(
    kernel: Netlink,
    module: str,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    loads = 1000 if pytestconfig.getoption("long") else 30
    index = kernel.add_link("dummy", "sink")
    if was_there := Path("/sys/module", module).exists():
        remove(module)
    before = memory()
    for load in range(WARM_UP + loads):
        if load == WARM_UP:
            before = memory()
        insert(module)
        if module.startswith("sch_"):
            queues(kernel, index, module)
        elif module in CONTROLS:
            controls(module)
        remove(module)
    kernel.delete_link(index)
    after = memory()
    if was_there:
        insert(module)
    record_property("times", loads)
    # the debug kernel keeps what was freed for a while, and looks for leaks itself, at the end
    if not KMEMLEAK.exists():
        grown = {name: after[name] - before[name] for name in before}
        assert max(grown.values()) < SLACK_KIB, grown
