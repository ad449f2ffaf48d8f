# SPDX-License-Identifier: GPL-2.0-or-later
"""Web sessions: a client asks for pages, one after the other.

A page is one object of Pareto size, over a connection of its own; then the client thinks.
"""

import math
import random
from collections.abc import Callable, Mapping
from functools import partial

from .downloads import Download, Downloads
from .loop import Loop
from .metrics import Page
from .scenario import NS_PER_S, Flow, Scenario, Session
from .topology import NamespaceNode
from .traffic import ALL_SINKS_BYTES, SINK_BYTES

SERVER_PORT = 80


class WebTraffic:
    """All sessions of a scenario."""

    def __init__(
        self,
        loop: Loop,
        scenario: Scenario,
        host: Callable[[Flow], NamespaceNode],
        sinks: Mapping[int, NamespaceNode],
    ) -> None:
        self.pages: list[Page] = []
        self.sessions = scenario.session_list()
        self._loop = loop
        self._scenario = scenario
        self._draws = [random.Random(f"web {scenario.seed} {s.index}") for s in self.sessions]
        room = min(ALL_SINKS_BYTES // max(len(self.sessions), 1), SINK_BYTES)
        self._downloads = Downloads(loop, scenario, host, sinks, SERVER_PORT, room)
        if scenario.web and scenario.web.window:
            self._downloads.clamp(scenario.web.window)

    def begin(self, start: int) -> None:
        """Get the servers ready, and the clients' first requests due; times count from START."""
        self._start = start
        self._downloads.listen(session.like for session in self.sessions)
        for session in self.sessions:
            when = start + round(session.start_s * NS_PER_S)
            self._loop.at(when, partial(self._ask, session))

    def _ask(self, session: Session, now: int) -> None:
        assert self._scenario.web
        draw = self._draws[session.index]
        size = self._scenario.web.draw_packets(draw) * self._scenario.full_segment
        done = partial(self._read, session)
        self._downloads.ask(session.like, session.index, size, now, done)

    def _read(self, session: Session, download: Download) -> None:
        """A page is there: note it, and think."""
        assert self._scenario.web
        now = self._loop.now()
        response_s = (now - download.since) / NS_PER_S
        self.pages.append(Page(now - self._start, session.index, download.size, response_s))
        think_s = self._draws[session.index].expovariate(1 / self._scenario.web.think_s)
        self._loop.at(now + math.ceil(think_s * NS_PER_S), partial(self._ask, session))

    def stop(self) -> None:
        """End all sessions at once."""
        self._downloads.stop()
