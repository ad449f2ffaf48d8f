# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls that Python 3.11 lacks, and the kernel's switches: namespaces, sysctls, offloads."""

import array
import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from .errors import ExperimentError
from .scenario import NS_PER_S

CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
MNT_DETACH = 2
TFD_TIMER_ABSTIME = 1
CLOCK_MONOTONIC = 1

NETNS_DIR = Path("/run/netns")
NETNS_PREFIX = "aqm-"
LOCK_FILE = Path("/run/aqmlab.lock")
SYSCTL_DIR = Path("/proc/sys")

SIOCETHTOOL = 0x8946
# linux/ethtool.h: the legacy commands that read and set one offload each.
OFFLOADS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args: object) -> int:
    """Call libc's NAME; OSError if it returns less than 0."""
    result = int(getattr(_libc, name)(*args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


class NetNamespace:
    """A network namespace that lives until close(), named /run/netns/aqm-NAME for `ip netns`.

    `with namespace:` moves this process into it; such blocks do not nest.
    """

    _home: int | None = None  # descriptor of the namespace the process started in

    def __init__(self, name: str) -> None:
        if NetNamespace._home is None:
            NetNamespace._home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.path = NETNS_DIR / f"{NETNS_PREFIX}{name}"
        self.path.touch()
        _call("unshare", CLONE_NEWNET)
        try:
            self._fd = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            _call("mount", b"/proc/self/ns/net", bytes(self.path), b"none", MS_BIND, None)
        finally:
            _call("setns", NetNamespace._home, CLONE_NEWNET)

    def fileno(self) -> int:
        """The descriptor by which netlink names this namespace."""
        return self._fd

    def __enter__(self) -> None:
        _call("setns", self._fd, CLONE_NEWNET)

    def __exit__(self, *_: object) -> None:
        _call("setns", NetNamespace._home, CLONE_NEWNET)

    def close(self) -> None:
        """Give up name and descriptor: with its last process and socket the namespace goes."""
        os.close(self._fd)
        _remove_name(self.path)


def _remove_name(path: Path) -> None:
    with contextlib.suppress(OSError):  # nothing was mounted yet
        _call("umount2", bytes(path), MNT_DETACH)
    path.unlink()


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """Claim this kernel for one experiment, and clear away what a killed one left.

    Raises ExperimentError if another experiment runs: the two would disturb each other.
    """
    if os.geteuid() != 0:
        raise ExperimentError("namespaces need root: run this under sudo, or under lab/run.")
    with LOCK_FILE.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(
                "another experiment runs on this machine: wait for it to end."
            ) from None
        NETNS_DIR.mkdir(exist_ok=True)
        for path in NETNS_DIR.glob(f"{NETNS_PREFIX}*"):
            _remove_name(path)
        yield


def sysctl_path(name: str) -> Path:
    """The file of a sysctl 'net.ipv4.tcp_ecn', in the present network namespace."""
    return SYSCTL_DIR.joinpath(*name.split("."))


def read_sysctl(name: str) -> str | None:
    """The value, numbers parted by single blanks; None where this kernel has no such sysctl."""
    try:
        return " ".join(sysctl_path(name).read_text().split())
    except FileNotFoundError:
        return None


def write_sysctls(values: dict[str, str]) -> None:
    """Set sysctls of the present namespace; those that this kernel lacks are passed over."""
    for name, value in values.items():
        with contextlib.suppress(FileNotFoundError):
            sysctl_path(name).write_text(value)


@contextlib.contextmanager
def held(path: Path, value: str) -> Iterator[None]:
    """Keep VALUE in one of the kernel's machine-wide files meanwhile, if it has that file."""
    if not path.exists():
        yield
        return
    before = path.read_text()
    path.write_text(value)
    try:
        yield
    finally:
        path.write_text(before)


def _ethtool(sock: socket.socket, device: str, command: int, value: int) -> int:
    data = array.array("I", [command, value])
    request = struct.pack("=16sQ", device.encode(), data.buffer_info()[0])
    fcntl.ioctl(sock, SIOCETHTOOL, request)
    return data[1]


def switch_offloads_off(sock: socket.socket, device: str) -> None:
    """Have every packet of DEVICE, in SOCK's namespace, go alone."""
    for _, set_command in OFFLOADS.values():
        _ethtool(sock, device, set_command, 0)


def offloads_on(sock: socket.socket, device: str) -> list[str]:
    """The names of DEVICE's offloads that join packets and are on."""
    return [
        name
        for name, (get_command, _) in OFFLOADS.items()
        if _ethtool(sock, device, get_command, 0)
    ]


class Timer:
    """A timer on the monotonic clock that epoll can wait for, exact to the nanosecond."""

    def __init__(self) -> None:
        self._fd = _call("timerfd_create", CLOCK_MONOTONIC, os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        """The descriptor: readable from the set time on, until it is set anew."""
        return self._fd

    def set(self, when_ns: int | None) -> None:
        """Go off at WHEN_NS, at once if that is past; with None, never."""
        seconds, nanoseconds = divmod(max(when_ns or 0, 1 if when_ns is not None else 0), NS_PER_S)
        spec = (ctypes.c_long * 4)(0, 0, seconds, nanoseconds)
        _call("timerfd_settime", self._fd, TFD_TIMER_ABSTIME, ctypes.byref(spec), None)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)
