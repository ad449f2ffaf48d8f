#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything at once on several processors, inside the virtual machine: smp.py MODULES SECONDS

Packets come from all processors while options are changed, qdiscs replaced, devices deleted,
actions and modules taken away, and all of it is looked at. Each of the jobs below is a process.
At the end all queues must run empty and all modules be free to go.
"""

import ctypes
import errno
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "net"))

import guest
from frames import ECT0, Port, frame
from kinds import FLOWS, VARIANTS, Kind, Settings, encode
from netlink import ADD, CHANGE, REPLACE, ROOT, Netlink, Refusal

PROCESSORS = len(os.sched_getaffinity(0))
SYS_FINIT_MODULE, SYS_DELETE_MODULE = 313, 176
PKTGEN = Path("/proc/net/pktgen")
# To an address that nobody has: what comes out at the other end is thrown away.
STREAM = """\
count 0
clone_skb 0
pkt_size 400
delay 400000
xmit_mode queue_xmit
dst 192.0.2.2
src_min 192.0.2.1
src_max 192.0.2.1
dst_mac 02:a0:00:00:00:02
flag UDPSRC_RND
udp_src_min 1000
udp_src_max 1063
"""
RATE = "8mbit"  # less than comes, so that queues stand
CLASS, QUEUE, OTHER = 0x10001, 0x20000, 0x30000
FLOWS_MOST = 4096  # of a table that is made again and again
CONTROLS = (*guest.CONTROLS, guest.BASELINE_CONTROL, "cubic")
BLOCK = bytes(16384)
DRAINED_S = 30
# What may be said to one who comes too late, or too early.
LATE = {errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENETDOWN, errno.EAGAIN, errno.EBUSY,
        errno.EEXIST, errno.EINVAL, errno.ERANGE}  # fmt: skip
# An emulated processor may wait for its turn on this machine: what is stuck is so for longer, s.
PATIENCE = {
    "/proc/sys/kernel/watchdog_thresh": 60,
    "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout": 120,
}
LABELS = ("from 40ms", "from socket", "from handshake", "from timestamps", "from clear")

Done = Counter[str]
Job = Callable[[random.Random, float], Done]


def settings_of(kind: Kind) -> list[Settings]:
    """What may be asked of a kind, and some of what it refuses."""
    asked = [{}, kind.other, kind.another, kind.never, *kind.taken]
    asked += [refusal.settings[0] for refusal in kind.refused]
    return [settings for settings in asked if settings.get(FLOWS, 0) <= FLOWS_MOST]


def churn(device: str, parent: int, host: str | None = None) -> Job:
    """Make, change, replace and delete the queue of a device, under a parent."""

    def job(dice: random.Random, end: float) -> Done:
        done = Done()
        kernel, index = open_netlink(host, device)
        kind = VARIANTS[0]
        while time.monotonic() < end:
            act = dice.choice(("change", "change", "change", "replace", "replace", "delete"))
            try:
                if act == "delete":
                    kernel.delete_qdisc(index, parent)
                else:
                    if act == "replace":
                        kind = dice.choice(VARIANTS)
                    how = REPLACE if act == "replace" else CHANGE
                    handle = dice.choice((QUEUE, OTHER)) if act == "replace" else 0
                    asked = {**kind.given, **dice.choice(settings_of(kind))}
                    kernel.qdisc(how, index, kind.name, encode(asked), parent, handle)
                done[act] += 1
            except Refusal as refusal:
                late(refusal)
                done["refusals"] += 1
        return done

    return job


def look(dice: random.Random, end: float) -> Done:
    """Ask for all that is to be seen of qdiscs and classes."""
    done = Done()
    kernel, index = open_netlink(None, "p0")
    while time.monotonic() < end:
        for qdisc in kernel.qdiscs(index):
            with suppress(Refusal):
                done["classes shown"] += sum(1 for _ in kernel.classes(index, qdisc.handle))
            done["qdiscs shown"] += 1
    return done


def vanish(dice: random.Random, end: float) -> Done:
    """Make devices with queues, and delete them while they are sent to."""
    done = Done()
    kernel = Netlink()
    while time.monotonic() < end:
        index, _ = kernel.add_veth("v0", "v1", queues=2)
        kind = dice.choice(VARIANTS)
        try:
            kernel.qdisc(ADD, index, kind.name, encode({**kind.given}), ROOT, QUEUE)
        except Refusal as refusal:
            late(refusal)
        time.sleep(dice.uniform(0, 0.1))
        kernel.delete_link(index)
        done["devices deleted"] += 1
    return done


def harass(dice: random.Random, end: float) -> Done:
    """Send to a device that comes and goes."""
    done = Done()
    packets = [frame(ECT0 * (number % 2), number=number, size=300) for number in range(64)]
    while time.monotonic() < end:
        try:
            port = Port("v0")
        except OSError as problem:
            late(problem)
            time.sleep(0.002)
            continue
        try:
            while time.monotonic() < end:
                port.send(*packets)
                done["frames to vanishing devices"] += len(packets)
        except OSError as problem:
            late(problem)
        port.close()
    return done


def connect(dice: random.Random, end: float) -> Done:
    """Make connections, change their congestion control under way, and break them off."""
    done = Done()
    with guest.inside("left"):
        while time.monotonic() < end:
            with socket.socket() as sender:
                sender.settimeout(5)
                control(sender, dice)
                try:
                    sender.connect((guest.ADDRESS[socket.AF_INET], guest.PORT))
                    until = time.monotonic() + dice.uniform(0.1, 1.5)
                    while time.monotonic() < until:
                        sender.send(BLOCK)
                        if dice.random() < 0.1:
                            control(sender, dice)
                except (TimeoutError, ConnectionError):
                    done["connections lost"] += 1
                if dice.random() < 0.3:
                    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                done["connections"] += 1
    return done


def control(sender: socket.socket, dice: random.Random) -> None:
    with suppress(FileNotFoundError):  # its module has gone
        name = dice.choice(CONTROLS).encode()
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)


def tune(dice: random.Random, end: float) -> Done:
    """Turn the congestion controls' parameters."""
    done = Done()
    files = sorted(Path("/sys/module/tcp_pert/parameters").iterdir())
    while time.monotonic() < end:
        file = dice.choice(files)
        most = 1 if file.read_text().strip() in "YN" else 2**32 - 1
        file.write_text(str(dice.choice((0, 1, dice.randint(0, most), most))))
        done["parameters set"] += 1
        time.sleep(0.01)
    return done


def label(dice: random.Random, end: float) -> Done:
    """Put labels into packets in one way after the other, in both directions."""
    done = Done()
    while time.monotonic() < end:
        guest.tc("qdisc", "replace", "dev", "l0", "clsact")
        for hook in ("egress", "ingress"):
            words = dice.choice(LABELS).split()
            guest.tc("filter", "replace", "dev", "l0", hook, "prio", "1", "protocol", "all",
                     "handle", "1", "matchall", "action", "rttlabel", *words)
            done["filters replaced"] += 1
        if dice.random() < 0.3:
            guest.tc("qdisc", "del", "dev", "l0", "clsact")
    return done


def unload(modules: Path) -> Job:
    """Take away modules that nobody uses at the moment, and bring them back."""

    def job(dice: random.Random, end: float) -> Done:
        done = Done()
        files = sorted(modules.glob("sch_*.ko"))
        while time.monotonic() < end:
            file = dice.choice(files)
            try:
                remove(file)
            except OSError as problem:
                late(problem)
                continue
            insert(file)
            done["modules reloaded"] += 1
            time.sleep(0.05)
        return done

    return job


def call(number: int, *arguments: int | bytes) -> None:
    if guest.LIBC.syscall(number, *arguments):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def insert(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        call(SYS_FINIT_MODULE, descriptor, b"", 0)
    finally:
        os.close(descriptor)


def remove(file: Path) -> None:
    call(SYS_DELETE_MODULE, file.stem.encode(), os.O_NONBLOCK)


def late(problem: Refusal | OSError) -> None:
    """Go on only if this is what one hears who comes too late."""
    if problem.errno not in LATE:
        raise problem


def open_netlink(host: str | None, device: str) -> tuple[Netlink, int]:
    """A socket for the device of a host, and the device's index there."""
    if not host:
        return Netlink(), socket.if_nametoindex(device)
    with guest.inside(host):
        return Netlink(), socket.if_nametoindex(device)


class Worker:
    """A process with a job."""

    def __init__(self, name: str, job: Job, seed: int, end: float) -> None:
        self._name = name
        self._from, to = os.pipe()
        self._process = os.fork()
        if self._process:
            os.close(to)
            return
        try:
            told: object = job(random.Random(seed), end)
        except BaseException:
            told = traceback.format_exc()
        os.write(to, json.dumps(told).encode())
        os._exit(0)

    def result(self) -> Done:
        """What it did; an AssertionError if it failed."""
        with os.fdopen(self._from) as told:
            text = told.read()
        os.waitpid(self._process, 0)
        result = json.loads(text) if text else "it was killed"
        assert isinstance(result, dict), f"{self._name}: {result}"
        return Done(result)

    def end(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


class Stream:
    """Packets from the kernel, sent on all processors to one device."""

    def __init__(self, device: str) -> None:
        guest.run("modprobe", "pktgen")
        for processor in range(PROCESSORS):
            (PKTGEN / f"kpktgend_{processor}").write_text(f"add_device {device}@{processor}")
            for line in STREAM.splitlines():
                (PKTGEN / f"{device}@{processor}").write_text(line)
        self._files = [PKTGEN / f"{device}@{processor}" for processor in range(PROCESSORS)]
        self._thread = threading.Thread(target=self._command, args=("start",))
        self._thread.start()

    def _command(self, word: str) -> None:
        (PKTGEN / "pgctrl").write_text(f"{word}\n")

    def stop(self) -> int:
        """Return how many packets were sent."""
        self._command("stop")
        self._thread.join()
        shown = " ".join(file.read_text() for file in self._files).split()
        sent = [int(value) for key, value in pairwise(shown) if key == "pkts-sofar:"]
        assert len(sent) == PROCESSORS, shown
        for processor in range(PROCESSORS):
            (PKTGEN / f"kpktgend_{processor}").write_text("rem_device_all")
        return sum(sent)


def serve(listener: socket.socket) -> Job:
    """Take connections, and read what comes, for good."""

    def read(receiver: socket.socket) -> None:
        with receiver, suppress(OSError):
            while receiver.recv(1 << 16):
                pass

    def job(_dice: random.Random, _end: float) -> Done:
        while True:
            receiver, _ = listener.accept()
            threading.Thread(target=read, args=(receiver,), daemon=True).start()

    return job


def limit(device: str, host: str | None, rate: str) -> None:
    where = ("-n", host) if host else ()
    guest.run("tc", *where, "class", "replace", "dev", device, "parent", "1:", "classid", "1:1",
              "htb", "rate", rate)


def shape(device: str, host: str | None = None) -> None:
    """A class of htb for the queue of a device."""
    where = ("-n", host) if host else ()
    guest.run("tc", *where, "qdisc", "replace", "dev", device, "root", "handle", "1:", "htb",
              "default", "1")
    limit(device, host, RATE)


def drain(device: str, host: str | None = None) -> None:
    """Let all queues of a device run empty; fail if they do not, or their counts say so."""
    limit(device, host, "10gbit")
    kernel, index = open_netlink(host, device)
    end = time.monotonic() + DRAINED_S
    while not all(qdisc.empty for qdisc in kernel.qdiscs(index)):
        assert time.monotonic() < end, f"not empty: {kernel.qdiscs(index)}"
        time.sleep(0.2)


def stand(modules: Path, seconds: float, seed: int = 1) -> Done:
    """Do all jobs at once, so many seconds; return what was done, by kind of thing."""
    files = sorted(modules.glob("*.ko"))
    for file in files:
        insert(file)
    kernel = Netlink()
    index, _ = kernel.add_veth("p0", "p1")
    shape("p0")
    shape("l0", "left")
    jobs: Sequence[tuple[str, Job]] = (
        ("churn", churn("p0", CLASS)),
        ("churn", churn("p0", CLASS)),
        ("churn", churn("l0", CLASS, "left")),
        ("look", look),
        ("vanish", vanish),
        ("harass", harass),
        ("connect", connect),
        ("connect", connect),
        ("connect", connect),
        ("tune", tune),
        ("label", label),
        ("unload", unload(modules)),
    )
    with guest.inside("right"):
        listener = socket.create_server((guest.ADDRESS[socket.AF_INET], guest.PORT), backlog=64)
    with listener:
        server = Worker("serve", serve(listener), seed, 0)
    end = time.monotonic() + seconds
    workers = [Worker(name, job, seed + at, end) for at, (name, job) in enumerate(jobs)]
    stream = Stream("p0")
    done, failures = Done(), []
    for worker in workers:
        try:
            done += worker.result()
        except AssertionError as failure:
            failures.append(str(failure))
    done["packets of all processors"] += stream.stop()
    server.end()
    assert not failures, "\n".join(failures)
    drain("p0")
    drain("l0", "left")
    kernel.delete_link(index)
    guest.run("tc", "-n", "left", "qdisc", "del", "dev", "l0", "root")
    with suppress(AssertionError):
        guest.tc("qdisc", "del", "dev", "l0", "clsact")
    end = time.monotonic() + DRAINED_S
    for file in files:
        while True:
            try:
                remove(file)
                break
            except OSError as problem:
                # sockets that were closed, and filters, go a little later
                assert time.monotonic() < end, f"{file.stem}: {problem}"
                time.sleep(0.2)
    return done


def main() -> int:
    """Print what was done, as JSON; the kernel's complaints are an error."""
    modules, seconds = Path(sys.argv[1]), float(sys.argv[2])
    Path("/dev/kmsg").write_text(guest.BEGIN)
    for file, seconds_stuck in PATIENCE.items():
        if Path(file).exists():
            Path(file).write_text(str(seconds_stuck))
    if not Path("/run/netns/left").exists():
        guest.build_link()
    done = stand(modules, seconds)
    guest.kernel_is_content()
    print(json.dumps(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
