# SPDX-License-Identifier: GPL-2.0-or-later
"""An event loop whose timers are exact: epoll's own timeout is rounded to a millisecond."""

import heapq
import itertools
import select
import time
from collections.abc import Callable

from .kernel import Timer


class Loop:
    """Calls back at times of the monotonic clock (ns) and when descriptors are ready."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._timer = Timer()
        self._epoll.register(self._timer.fileno(), select.EPOLLIN)
        self._ready: dict[int, Callable[[], None]] = {}
        self._due: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = itertools.count()  # what is due at one time runs in the order it was set
        self._running = False

    @staticmethod
    def now() -> int:
        """The time, ns."""
        return time.monotonic_ns()

    def at(self, when_ns: int, callback: Callable[[int], None]) -> None:
        """Call CALLBACK(the time in ns) once, at WHEN_NS or as soon after as may be."""
        heapq.heappush(self._due, (when_ns, next(self._order), callback))

    def watch(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        """Call CALLBACK whenever FD has EVENTS (select.EPOLL*), until forget()."""
        self._ready[fd] = callback
        self._epoll.register(fd, events)

    def watches(self, fd: int) -> bool:
        """Whether FD is watched."""
        return fd in self._ready

    def forget(self, fd: int) -> None:
        """End a watch()."""
        del self._ready[fd]
        self._epoll.unregister(fd)

    def run(self) -> None:
        """Serve until stop() or until nothing is due any more."""
        timer = self._timer.fileno()
        armed = None
        self._running = True
        while self._running and self._due:
            if self._due[0][0] != armed:
                armed = self._due[0][0]
                self._timer.set(armed)
            for fd, _ in self._epoll.poll():
                if fd == timer:
                    armed = None
                    self._run_due()
                elif fd in self._ready:  # a callback before this one may have ended it
                    self._ready[fd]()

    def _run_due(self) -> None:
        now = self.now()
        while self._running and self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2](now)

    def stop(self, _: int = 0) -> None:
        """Have run() return; can itself be what is due."""
        self._running = False

    def close(self) -> None:
        """Give the descriptors back."""
        self._timer.close()
        self._epoll.close()
