# SPDX-License-Identifier: GPL-2.0-or-later
"""One flow as its sender sees it, by the kernel's tracepoints: each ACK, each retransmission.

PERT's predictor study (section 2.2 of its paper) needs each round-trip time, unaveraged: module
tcp_pert tells them. Of a lone queue that is watched as well, the sampler knows the losses.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import ExperimentError, RefusedError
from .loop import Loop
from .scenario import NS_PER_S, US_PER_S, Flow

TRACING = Path("/sys/kernel/tracing")
INSTANCE = "aqmlab"
BUFFER_KIB = 8192
READ_NS = NS_PER_S  # how often the kernel's buffer is emptied
CHUNK = 1 << 16
EVENTS = ("pert/pert_sample", "tcp/tcp_retransmit_skb")
SENDERS = ("pert", "pert_pi")  # congestion controls that have the first of them
LINE = re.compile(
    r" (\d+)\.(\d{6}): (?:pert_sample: .* rtt=(\d+) acked=\d+ window=(\d+) |tcp_retransmit_skb: )"
)


@dataclass(frozen=True)
class Sight:
    """An ACK with a round-trip time or, without one, a retransmission."""

    time_ns: int  # after the first flow's start
    rtt_us: int | None
    window: int | None  # packets


class Watch:
    """Of FLOW, whose ACKs come so late as if the queue were QUEUE_US, one way, from its sender.

    All of a flow's base round-trip time lies before its queue, in its host, so an ACK comes as soon
    as its packet has left the queue. Where the queue is near the sender, sender and queue do the
    same, but the sender all of it later, by what then lies behind the queue.
    """

    def __init__(self, loop: Loop, flow: Flow, queue_us: int) -> None:
        self._loop = loop
        self._flow = flow
        self._later_ns = (flow.rtt_us - queue_us) * (NS_PER_S // US_PER_S)
        self._text = bytearray()
        self._folder = TRACING / "instances" / INSTANCE

    @contextlib.contextmanager
    def watching(self, start: int) -> Iterator[None]:
        """Watch for a while; times count from START."""
        self._start = start
        missing = [event for event in EVENTS if not (TRACING / "events" / event).exists()]
        if missing:
            raise RefusedError(f"--observe: the kernel has no tracepoint {missing[0]}.")
        self._folder.mkdir(exist_ok=True)
        try:
            self._put("trace", "")
            self._put("trace_clock", "mono")
            self._put("buffer_size_kb", f"{BUFFER_KIB}")
            for event in EVENTS:
                self._put(f"events/{event}/filter", f"sport == {self._flow.port}")
                self._put(f"events/{event}/enable", "1")
            self._pipe = os.open(self._folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
            try:
                self._loop.at(start, self._take)
                yield
                self._empty()
            finally:
                os.close(self._pipe)
                for event in EVENTS:
                    self._put(f"events/{event}/enable", "0")
        finally:
            self._folder.rmdir()

    def _put(self, file: str, words: str) -> None:
        (self._folder / file).write_text(words)

    def _take(self, now: int) -> None:
        self._empty()
        self._loop.at(now + READ_NS, self._take)

    def _empty(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._pipe, CHUNK):
                self._text += chunk

    def sights(self) -> list[Sight]:
        """What was seen of data; ExperimentError if the kernel could not keep it all."""
        text = self._text.decode()
        if "LOST" in text:
            raise ExperimentError("--observe: the kernel's trace buffer has overflowed.")
        found = [
            Sight(
                int(seconds) * NS_PER_S + int(micro) * 1000 - self._start + self._later_ns,
                int(rtt) if rtt else None,
                int(window) if window else None,
            )
            for seconds, micro, rtt, window in LINE.findall(text)
        ]
        syn = next((index for index, one in enumerate(found) if one.rtt_us is not None), -1)
        return found[syn + 1 :]
