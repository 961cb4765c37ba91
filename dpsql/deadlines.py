"""Deadlines of running statements, kept by one thread instead of a timer for each."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Stop = Callable[[], None]


AGAIN = 0.05
"""Seconds after which a statement that still runs is stopped again: the first stop may have come too early."""

LONGEST = 1.0
"""Most seconds between two looks at the clock: the machine may have slept meanwhile."""


class Deadlines:
    """Calls what stops a statement once its time is up.

    A statement that ends in time is only removed from ``_stops``. Its entry in ``_due`` stays until
    its time would have been up, so that quick statements do not wake the thread.
    """

    def __init__(self) -> None:
        """No thread is started before there is something to watch."""
        self._due: list[tuple[float, int]] = []
        self._stops: dict[int, Stop] = {}
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def within(self, seconds: float, stop: Stop) -> Iterator[None]:
        """While this is open for longer than ``seconds``, ``stop`` is called, again and again."""
        number = self.watch(time.monotonic() + seconds, stop)
        try:
            yield
        finally:
            self.forget(number)

    def watch(self, due: float, stop: Stop) -> int:
        """Call ``stop`` from a time on, again and again, until it is forgotten."""
        with self._changed:
            number = next(self._numbers)
            self._stops[number] = stop
            self._push(due, number)
        return number

    def sooner(self, number: int, due: float) -> None:
        """Stop from an earlier time on what is watched under a number."""
        with self._changed:
            self._push(due, number)

    def forget(self, number: int) -> None:
        """It has ended, and is not stopped any more."""
        with self._changed:
            self._stops.pop(number, None)

    def _push(self, due: float, number: int) -> None:
        first = not self._due or due < self._due[0][0]
        heapq.heappush(self._due, (due, number))
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
            thread.start()
            self._thread = (
                thread  # not before: where the system has no more threads, the next one tries
            )
        elif first:
            self._changed.notify()

    def close(self) -> None:
        """Forget every deadline; the thread ends."""
        with self._changed:
            self._due.clear()
            self._stops.clear()
            self._changed.notify()

    def _run(self) -> None:
        """Until nothing is due any more."""
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
                    with suppress(Exception):  # others are still to be stopped, and this one again
                        stop()  # under the lock: what it stops cannot have ended meanwhile
            self._thread = None
