"""Deadlines of running statements, watched by one thread instead of a timer for each."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Stop = Callable[[], None]


AGAIN = 0.05
"""Seconds after which a statement that still runs is stopped again.

The first stop may have come too early.
"""

LONGEST = 1.0
"""The most seconds between two looks at the clock, as the machine may be suspended meanwhile."""


class Deadlines:
    """Stops statements whose time is up, by calling their ``stop`` functions.

    A statement that ends in time is only removed from ``_stops``. Its entry in ``_due`` stays until
    its time would have been up, so that quick statements do not wake the thread.
    """

    def __init__(self) -> None:
        """The thread is started with the first deadline."""
        self._due: list[tuple[float, int]] = []
        self._stops: dict[int, Stop] = {}
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def within(self, seconds: float, stop: Stop) -> Iterator[None]:
        """Call ``stop`` repeatedly if the ``with`` block takes longer than ``seconds``."""
        number = self.watch(time.monotonic() + seconds, stop)
        try:
            yield
        finally:
            self.forget(number)

    def watch(self, due: float, stop: Stop) -> int:
        """Call ``stop`` repeatedly from a time on, until ``forget``; returns a number for it."""
        with self._changed:
            number = next(self._numbers)
            self._stops[number] = stop
            self._push(due, number)
        return number

    def sooner(self, number: int, due: float) -> None:
        """Move the deadline with this number to an earlier time."""
        with self._changed:
            self._push(due, number)

    def forget(self, number: int) -> None:
        """Remove the deadline with this number: the statement has ended."""
        with self._changed:
            self._stops.pop(number, None)

    def _push(self, due: float, number: int) -> None:
        first = not self._due or due < self._due[0][0]
        heapq.heappush(self._due, (due, number))
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
            thread.start()
            self._thread = (
                thread  # set after the start: if the system has no thread left, the next call tries
            )
        elif first:
            self._changed.notify()

    def close(self) -> None:
        """Remove all deadlines; the thread ends."""
        with self._changed:
            self._due.clear()
            self._stops.clear()
            self._changed.notify()

    def _run(self) -> None:
        """Watch deadlines until there are none."""
        with self._changed:
            while self._due:
                due, number = self._due[0]
                left = due - time.monotonic()
                if left > 0:
                    self._changed.wait(min(left, LONGEST))
                    continue
                heapq.heappop(self._due)
                stop = self._stops.get(number)
                if stop is not None:
                    heapq.heappush(self._due, (time.monotonic() + AGAIN, number))
                    with suppress(Exception):  # other statements must still be stopped
                        stop()  # under the lock, so that the statement cannot end meanwhile
            self._thread = None
