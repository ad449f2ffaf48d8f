# SPDX-License-Identifier: GPL-2.0-or-later
"""A qdisc under test behind a shaper that lets nothing through until it is opened."""

import struct
import time

from conftest import Link
from frames import DESTINATION, SOURCE, frame
from kinds import LIMIT, Kind, Settings, encode
from netlink import ADD, CHANGE, ROOT, TCA_OPTIONS, Netlink, Qdisc, attribute, nest

SHAPER, QUEUE = 0x10000, 0x20000  # handles 1: and 2:
CLASS = SHAPER | 1

TCA_TBF_PARMS, TCA_TBF_BURST = 1, 6
LINKLAYER_ETHERNET = 1
ETH_P_802_EX1 = 0x88B5  # for experiments
LONGEST = 1514  # bytes of a frame
BURST = 11  # of the longest frames: more than a super-packet of ours, which it would cut
# bytes/s and bytes at once: a frame in twenty minutes, or thousands now
SHUT, OPEN = (1, BURST * LONGEST), (4_000_000_000, 100_000_000)
STANDING = 5  # packets that keep a law sure of congestion
KNOCK = (DESTINATION + SOURCE + ETH_P_802_EX1.to_bytes(2, "big")).ljust(60, b"\0")


def shaper(rate: int, burst: int) -> bytes:
    """Options of a tbf."""
    ratespec = struct.pack("=BBHhHI", 0, LINKLAYER_ETHERNET, 0, 0, 0, rate)
    parameters = ratespec + bytes(len(ratespec)) + struct.pack("=III", 1 << 20, 0, 0)
    return nest(
        TCA_OPTIONS,
        attribute(TCA_TBF_PARMS, parameters),
        attribute(TCA_TBF_BURST, struct.pack("=I", burst)),
    )


class Bottleneck:
    """A queue whose packets wait."""

    def __init__(self, kernel: Netlink, link: Link, kind: Kind, settings: Settings) -> None:
        self._kernel = kernel
        self._link = link
        self._kind = kind
        kernel.qdisc(ADD, link.index, "tbf", shaper(*SHUT), ROOT, SHAPER)
        # take the tokens that the shaper begins with
        link.near.send(*[frame(size=LONGEST)] * BURST)
        link.far.received()
        self.request(ADD, settings)

    def request(self, how: int, settings: Settings) -> None:
        options = encode({**self._kind.given, **settings})
        self._kernel.qdisc(how, self._link.index, self._kind.name, options, CLASS, QUEUE)

    def change(self, settings: Settings) -> None:
        self.request(CHANGE, settings)

    def send(self, *frames: bytes) -> int:
        """Send frames; return how many were refused."""
        return self._link.near.send(*frames)

    def fill(self, count: int) -> None:
        """Let this many more packets stand in the queue."""
        assert self.send(*[frame(number=number) for number in range(count)]) == 0

    def congest(self, packets: int = STANDING) -> Qdisc:
        """Let so many packets stand, and the law then be sure that it must signal every other.

        It kept still before. Return how the queue is then.
        """
        assert self._kind.certain
        self.fill(packets)
        limit = self.read().options[LIMIT.attribute]
        if self._kind.lesson:
            self.change({**self._kind.lesson, LIMIT: packets})
            self.send(frame())
            time.sleep(0.0015)
        self.change({**self._kind.certain, LIMIT: limit})
        time.sleep(0.1)
        return self.read()

    def shape(self, rate: int) -> None:
        """Let this many bytes through in a second."""
        self._kernel.qdisc(CHANGE, self._link.index, "tbf", shaper(rate, LONGEST), ROOT, SHAPER)

    def open(self) -> None:
        """Let everything through, now: a further packet, which is no IP, sets it going."""
        self._kernel.qdisc(CHANGE, self._link.index, "tbf", shaper(*OPEN), ROOT, SHAPER)
        self.send(KNOCK)

    def read(self) -> Qdisc:
        return next(q for q in self._kernel.qdiscs(self._link.index) if q.handle == QUEUE)

    def parent(self) -> Qdisc:
        return next(q for q in self._kernel.qdiscs(self._link.index) if q.handle == SHAPER)

    def received(self) -> list[bytes]:
        """The frames that came out, but for that of open()."""
        return [data for data in self._link.far.received() if data != KNOCK]
