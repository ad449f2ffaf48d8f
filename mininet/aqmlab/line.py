# SPDX-License-Identifier: GPL-2.0-or-later
"""Delay lines and lossy ones: the netem of a device, and what it should have lost."""

import struct
from dataclasses import replace

from .fidelity import LineState
from .losses import Loss
from .netlink import RTM_GETQDISC, TC_H_ROOT, Route, tc_message
from .sampler import TCA_STATS_BASIC, TCA_STATS_QUEUE, statistics
from .tc import netem


class Line:
    """The netem of a device. A loss that varies is 0 until the first lose()."""

    def __init__(self, route: Route, index: int, delay_s: float, loss: Loss) -> None:
        self._route = route
        self._index = index
        self._delay_s = delay_s
        self._share = loss if isinstance(loss, float) else 0.0
        self._state = LineState(lossy=bool(loss))
        route.add_root_qdisc(index, "netem", netem(delay_s, self._share))

    def lose(self, share: float) -> None:
        """Lose that SHARE (0..1) from now on."""
        self.read()
        self._share = share
        self._route.change_root_qdisc(self._index, "netem", netem(self._delay_s, share))

    def read(self) -> LineState:
        """What has come and was lost so far."""
        request = tc_message(self._index, parent=TC_H_ROOT)
        _, stats = statistics(self._route.get(RTM_GETQDISC, request))
        lost = struct.unpack_from("=3L", stats[TCA_STATS_QUEUE])[2]
        came = lost + struct.unpack_from("=QL", stats[TCA_STATS_BASIC])[1]
        expected = (came - self._state.came) * self._share
        self._state = replace(
            self._state,
            came=came,
            lost=lost,
            expected=self._state.expected + expected,
            variance=self._state.variance + expected * (1 - self._share),
        )
        return self._state
