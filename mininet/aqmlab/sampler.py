# SPDX-License-Identifier: GPL-2.0-or-later
"""What is read while an experiment runs: the queue every 10 ms, the flows every second."""

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

from .loop import Loop
from .metrics import NOT_STARTED, Counters, FlowState, QueueSample
from .netlink import (
    RTM_GETQDISC,
    RTM_GETTCLASS,
    TC_MESSAGE_BYTES,
    TCA_KIND,
    TCA_STATS2,
    Route,
    SocketDiag,
    attributes,
    tc_message,
)
from .tc import SHAPER_CLASS

QUEUE_PERIOD_NS = 10_000_000
FLOW_PERIOD_NS = 1_000_000_000

# linux/gen_stats.h
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8

# Statistics of aqmkit's own kinds: include/uapi/linux/pkt_sched_aqm.h.
AQMKIT_KINDS = frozenset({"avq", "csfq", "fifa", "fred", "lred", "rem", "xqm"})
AQM_STATS_PROB, AQM_STATS_PKTS_IN, AQM_STATS_OVERLIMIT, AQM_STATS_ECN_MARK = 2, 4, 5, 8

# linux/pkt_sched.h
TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS = 10, 8
FIFO_KINDS = frozenset({"bfifo", "pfifo", "pfifo_head_drop", "sfq"})


@dataclass(frozen=True)
class Split:
    """What a kind of qdisc tells of its packets; None where it does not."""

    overflow: int | None = None
    marks: int | None = None
    probability: float | None = None
    accepted: int | None = None


def _aqmkit(app: bytes) -> Split:
    stats = {kind: int.from_bytes(value, sys.byteorder) for kind, value in attributes(app).items()}
    return Split(
        stats[AQM_STATS_OVERLIMIT],
        stats[AQM_STATS_ECN_MARK],
        stats[AQM_STATS_PROB] / 2**32,
        stats[AQM_STATS_PKTS_IN],
    )


def _red(app: bytes) -> Split:
    _, overflow, _, marks = struct.unpack_from("=4L", app)
    return Split(overflow, marks)


def _pie(app: bytes) -> Split:
    probability, _, _, _, _, _, overflow, _, marks = struct.unpack_from("=Q8L", app)
    return Split(overflow, marks, probability / 2**64)


def _codel(app: bytes) -> Split:
    overflow, marks = struct.unpack_from("=2L", app, 20)
    return Split(overflow, marks)


def _fq_codel(app: bytes) -> Split:
    overflow, marks = struct.unpack_from("=2L", app, 8)
    return Split(overflow, marks)


def _cake(app: bytes) -> Split:
    tins = attributes(attributes(app)[TCA_CAKE_STATS_TIN_STATS])
    marks = [attributes(tin)[TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS] for tin in tins.values()]
    return Split(marks=sum(struct.unpack("=L", mark)[0] for mark in marks))


SPLITS: dict[str, Callable[[bytes], Split]] = {
    "cake": _cake,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "red": _red,
    **dict.fromkeys(AQMKIT_KINDS, _aqmkit),
}


def statistics(message: bytes) -> tuple[str, dict[int, bytes]]:
    """Kind, and statistics by TCA_STATS number, of a qdisc or class."""
    found = attributes(message, TC_MESSAGE_BYTES)
    return found[TCA_KIND].rstrip(b"\0").decode(), attributes(found[TCA_STATS2])


class Bottleneck:
    """The shaper and the qdisc under test of one device."""

    def __init__(self, route: Route, index: int) -> None:
        self._route = route
        self._queue_request = tc_message(index, parent=SHAPER_CLASS)
        self._class_request = tc_message(index, handle=SHAPER_CLASS)

    def sample(self) -> tuple[int, int, float | None, int]:
        """Packets queued, bytes sent so far, the qdisc's probability if it has one, and drops."""
        kind, stats = statistics(self._route.get(RTM_GETQDISC, self._queue_request))
        packets, _, drops = struct.unpack_from("=3L", stats[TCA_STATS_QUEUE])
        sent = struct.unpack_from("=Q", stats[TCA_STATS_BASIC])[0]
        split = SPLITS.get(kind)
        probability = split(stats[TCA_STATS_APP]).probability if split else None
        return packets, sent, probability, drops

    def counters(self) -> Counters:
        """What was sent, dropped and marked so far."""
        kind, stats = statistics(self._route.get(RTM_GETQDISC, self._queue_request))
        queued, _, drops = struct.unpack_from("=3L", stats[TCA_STATS_QUEUE])
        sent_bytes, sent = struct.unpack_from("=QL", stats[TCA_STATS_BASIC])
        if TCA_STATS_PKT64 in stats:
            sent = struct.unpack("=Q", stats[TCA_STATS_PKT64])[0]
        if kind in FIFO_KINDS:
            split = Split(overflow=drops, marks=0)
        else:
            split = SPLITS[kind](stats[TCA_STATS_APP]) if kind in SPLITS else Split()
        _, shaped = statistics(self._route.get(RTM_GETTCLASS, self._class_request))
        shaped_bytes = struct.unpack_from("=Q", shaped[TCA_STATS_BASIC])[0]
        copies = 0 if split.accepted is None else max(0, sent + queued - split.accepted)
        return Counters(
            shaped_bytes,
            sent,
            sent_bytes,
            queued,
            drops,
            split.overflow,
            split.marks,
            copies=copies,
        )


class QueueSampler:
    """Samples bottlenecks every 10 ms from `start_ns` on."""

    def __init__(self, loop: Loop, bottlenecks: list[Bottleneck], start_ns: int) -> None:
        self.samples: list[list[QueueSample]] = [[] for _ in bottlenecks]
        self._loop = loop
        self._bottlenecks = bottlenecks
        self._start = start_ns
        self._next = start_ns
        loop.at(start_ns, self._sample)

    def _sample(self, now: int) -> None:
        for bottleneck, samples in zip(self._bottlenecks, self.samples, strict=True):
            samples.append(QueueSample(now - self._start, *bottleneck.sample()))
        # A machine that overslept goes on at the next point of the same grid.
        self._next += QUEUE_PERIOD_NS * ((now - self._next) // QUEUE_PERIOD_NS + 1)
        self._loop.at(self._next, self._sample)


# Offsets in struct tcp_info, linux/tcp.h
_OPTIONS, _RETRANS, _ACKED, _UNSENT, _BUSY = 5, 100, 120, 144, 168
TCPI_OPT_ECN = 8


def flow_state(info: bytes) -> FlowState:
    """What we want of a struct tcp_info."""
    busy, by_window = struct.unpack_from("=2Q", info, _BUSY)
    return FlowState(
        acked_bytes=struct.unpack_from("=Q", info, _ACKED)[0],
        retransmits=struct.unpack_from("=L", info, _RETRANS)[0],
        ecn=bool(info[_OPTIONS] & TCPI_OPT_ECN),
        busy_us=busy,
        window_limited_us=by_window,
        unsent_bytes=struct.unpack_from("=L", info, _UNSENT)[0],
    )


class FlowReader:
    """Reads the state of flows out of their hosts' kernels, whatever program they belong to."""

    def __init__(self, hosts: list[SocketDiag], ports: list[int], family: int) -> None:
        self._hosts = hosts
        self._ports = ports
        self._family = family
        self._last: dict[int, FlowState] = {}

    def close(self) -> None:
        """Give the sockets back."""
        for host in self._hosts:
            host.close()

    def read(self) -> list[FlowState]:
        """The state of each flow; of one that has left, that at the last reading before."""
        infos = {port: info for host in self._hosts for port, info in host.tcp_info(self._family)}
        self._last |= {port: flow_state(infos[port]) for port in self._ports if port in infos}
        return [self._last.get(port, NOT_STARTED) for port in self._ports]
