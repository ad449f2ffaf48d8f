# SPDX-License-Identifier: GPL-2.0-or-later
"""Short flows: they come by themselves, send so many packets or for so long, and go."""

from collections.abc import Callable, Mapping
from functools import partial

from .downloads import Download, Downloads
from .loop import Loop
from .metrics import Page
from .scenario import NS_PER_S, Flow, Scenario, ShortFlow
from .topology import NamespaceNode
from .traffic import SINK_BYTES

SERVER_PORT = 81
ENDLESS = 1 << 62  # bytes: what a flow asks for that lasts for a time


class ShortTraffic:
    """All short flows of a scenario."""

    def __init__(
        self,
        loop: Loop,
        scenario: Scenario,
        host: Callable[[Flow], NamespaceNode],
        sinks: Mapping[int, NamespaceNode],
    ) -> None:
        self.finished: list[Page] = []
        self._flows = scenario.short_list()
        self._loop = loop
        self._segment = scenario.full_segment
        self._downloads = Downloads(loop, scenario, host, sinks, SERVER_PORT, SINK_BYTES)

    def begin(self, start: int) -> None:
        """Get the servers ready, and the flows due; times count from START."""
        self._start = start
        self._downloads.listen(flow.like for flow in self._flows)
        for flow in self._flows:
            self._loop.at(start + round(flow.start_s * NS_PER_S), partial(self._ask, flow))

    def _ask(self, flow: ShortFlow, now: int) -> None:
        size = flow.packets * self._segment if flow.packets else ENDLESS
        download = self._downloads.ask(flow.like, flow.index, size, now, self._note)
        if flow.seconds:
            end = now + round(flow.seconds * NS_PER_S)
            self._loop.at(end, lambda _: self._break_off(download))

    def _break_off(self, download: Download) -> None:
        self._downloads.break_off(download)
        self._note(download)

    def _note(self, download: Download) -> None:
        now = self._loop.now()
        response_s = (now - download.since) / NS_PER_S
        came = download.size - download.missing
        self.finished.append(Page(now - self._start, download.number, came, response_s))

    def stop(self) -> None:
        """End all flows at once."""
        self._downloads.stop()
