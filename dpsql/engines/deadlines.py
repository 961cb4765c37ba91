"""Deadlines of running statements, kept by one thread instead of a timer for each."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Stop = Callable[[], None]


AGAIN = 0.05
"""Seconds until what still runs is stopped once more: it may not have begun when it was."""


class Deadlines:
    """Calls what stops a statement once its time is up.

    A statement that ends in time is only crossed out; the thread comes across it when its time
    would have been up, so that quick statements wake nobody.
    """

    def __init__(self) -> None:
        """No thread is started before there is something to watch."""
        self._due: list[tuple[float, int]] = []
        self._stops: dict[int, Stop] = {}
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._local = threading.local()

    @contextmanager
    def together(self, seconds: float) -> Iterator[None]:
        """All that this thread does inside, statement after statement, has these seconds."""
        outer = getattr(self._local, "due", None)
        self._local.due = time.monotonic() + seconds if outer is None else outer
        try:
            yield
        finally:
            self._local.due = outer

    @contextmanager
    def within(self, seconds: float, stop: Stop) -> Iterator[None]:
        """While this is open for longer than ``seconds``, ``stop`` is called, again and again.

        It ends earlier where it is done together with others, and fails where they have left
        nothing.
        """
        now, due = time.monotonic(), getattr(self._local, "due", None)
        if due is not None and due <= now:
            raise TimeoutError
        number = self._watch(now + seconds if due is None else min(due, now + seconds), stop)
        try:
            yield
        finally:
            with self._changed:
                self._stops.pop(number, None)

    def _watch(self, due: float, stop: Stop) -> int:
        with self._changed:
            number = next(self._numbers)
            self._stops[number] = stop
            first = not self._due or due < self._due[0][0]
            heapq.heappush(self._due, (due, number))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            elif first:
                self._changed.notify()
        return number

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
                    self._changed.wait(left)
                    continue
                heapq.heappop(self._due)
                stop = self._stops.get(number)
                if stop is not None:
                    heapq.heappush(self._due, (time.monotonic() + AGAIN, number))
                    stop()  # under the lock: what it stops cannot have ended meanwhile
            self._thread = None
