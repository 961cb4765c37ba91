"""The execution of one statement by one thread: its deadline, its interruption, its memory.

Claim: all work of a statement, in any engine and in Python code that runs step by step, ends at the
    deadline of the statement, or soon after it was interrupted. Where answers leave at multiples of
    a time (``service.pace``), an interrupt takes effect at the next multiple. So interrupting at
    any moment reveals nothing to a client that waiting would not have revealed.
Assumes: an engine ends soon after it is told to stop.
Argument: every engine runs inside ``stoppable``; steps in Python call ``check``. At a multiple, a
    client sees whether the statement has ended, which the pace reveals anyway. An interrupt that
    took effect at once would reveal whether the statement had ended by then: its answer would be
    stored and free, or would be charged once more.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dpsql.deadlines import Deadlines, Stop
from dpsql.diagnostics.refusal import Stopped, TooLarge

_DEADLINES = Deadlines()
LEAST_VALUE = 8
"""The fewest bytes that are counted for a value, which takes more in a row than in a column."""

PATIENCE, TICK = 2.0, 0.01
"""Seconds to wait for others to free memory, and seconds between two looks."""


class Room:
    """Bytes that the results of several executions may take together."""

    def __init__(self, most: int) -> None:
        """A room of ``most`` bytes, all of them free."""
        self.most, self.taken = most, 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take bytes; returns False if too few are left."""
        with self._lock:
            if self.taken + size > self.most:
                return False
            self.taken += size
            return True

    def give_back(self, size: int) -> None:
        """Free bytes that were taken."""
        with self._lock:
            self.taken -= size


class Execution:
    """The execution of one statement."""

    def __init__(self, seconds: float, step: float = 0.0, room: Room | None = None) -> None:
        """``step``: an interrupt takes effect at the next multiple of it; 0 means at once."""
        self._begun = time.monotonic()
        self._due, self._step = self._begun + seconds, step
        self._more = seconds if step >= seconds else 0.0
        self._interrupted = math.inf
        self._watched: set[int] = set()
        self._room, self._size = room, 0
        self._changed = threading.Condition()

    @property
    def ended(self) -> bool:
        """Whether the deadline has passed, or an interrupt has taken effect."""
        return time.monotonic() >= min(self._due, self._interrupted)

    def check(self) -> None:
        """Raise ``Stopped`` if the execution has ended."""
        if self.ended:
            raise Stopped

    def interrupt(self, *, at_once: bool = False) -> None:
        """End the execution; called from another thread, possibly several times."""
        with self._changed:
            when = time.monotonic()
            if self._step and not at_once:
                steps = math.ceil((when - self._begun) / self._step)
                when = self._begun + steps * self._step
            if when < self._interrupted:
                self._interrupted = when
                for number in self._watched:
                    _DEADLINES.sooner(number, when)
                self._changed.notify_all()

    @contextmanager
    def released(self) -> Iterator[None]:
        """In the ``with`` block, work depends on released values alone, or waits for them.

        If answers may leave only once all of its time has passed (``step``), it gets as much time
        again for this work.
        """
        self._due += self._more
        try:
            yield
        finally:
            self._due -= self._more

    @contextmanager
    def stoppable(self, stop: Stop, seconds: float) -> Iterator[None]:
        """In the ``with`` block, call ``stop`` repeatedly once the execution has ended."""
        self.check()
        with self._changed:
            due = min(self._due, self._interrupted, time.monotonic() + seconds)
            number = _DEADLINES.watch(due, stop)
            self._watched.add(number)
        try:
            yield
        finally:
            with self._changed:
                self._watched.discard(number)
            _DEADLINES.forget(number)

    def rest(self, seconds: float) -> None:
        """Wait, unless the execution is interrupted; its deadline does not end the wait."""
        end = time.monotonic() + seconds
        with self._changed:
            while (left := min(end, self._interrupted) - time.monotonic()) > 0:
                self._changed.wait(left)

    def take(self, size: int) -> None:
        """Hold bytes of results until the end; waits until others of the same room free theirs."""
        if self._room is None:
            return
        patience = time.monotonic() + PATIENCE
        while not self._room.take(size):
            if self._size + size > self._room.most or time.monotonic() > patience:
                raise TooLarge
            self.check()
            time.sleep(TICK)
        self._size += size

    def end(self) -> None:
        """Free all held bytes."""
        if self._room is not None:
            self._room.give_back(self._size)


_RUNNING: dict[int, Execution] = {}
"""The running execution of each thread."""

_STOPPED: set[int] = set()
"""Threads whose client wants no more answers."""


@contextmanager
def execution(seconds: float, step: float = 0.0, room: Room | None = None) -> Iterator[Execution]:
    """The execution of a statement by this thread; a nested one is part of the outer one."""
    thread = threading.get_ident()
    outer = _RUNNING.get(thread)
    if outer is not None:
        yield outer
        return
    found = _RUNNING[thread] = Execution(seconds, step, room)
    if thread in _STOPPED:
        found.interrupt(at_once=True)
    try:
        yield found
    finally:
        del _RUNNING[thread]
        found.end()


def interrupt(thread: int, *, at_once: bool = False) -> None:
    """End the execution of a thread, if it has one."""
    found = _RUNNING.get(thread)
    if found is not None:
        found.interrupt(at_once=at_once)


def begin_nothing(thread: int) -> None:
    """Let every further execution of a thread end before it begins, and so before it is charged."""
    _STOPPED.add(thread)


def begin_again(thread: int) -> None:
    """Undo ``begin_nothing``: further executions of the thread are for another client."""
    _STOPPED.discard(thread)


def interrupt_all() -> None:
    """End all executions at once, because the service ends."""
    for found in tuple(_RUNNING.values()):
        found.interrupt(at_once=True)


def check() -> None:
    """Raise ``Stopped`` if this thread's execution is to end; called between long steps."""
    found = _RUNNING.get(threading.get_ident())
    if found is not None:
        found.check()


def has_ended() -> bool:
    """Whether this thread's execution is to end."""
    found = _RUNNING.get(threading.get_ident())
    return found is not None and found.ended


def take(size: int, rows: int = 0, columns: int = 0) -> None:
    """``check``, and count the bytes of a part of a result before it is stored."""
    found = _RUNNING.get(threading.get_ident())
    if found is not None:
        found.check()
        found.take(max(size, rows * columns * LEAST_VALUE))


@contextmanager
def stoppable(stop: Stop, seconds: float = math.inf) -> Iterator[None]:
    """Call ``stop`` if the ``with`` block outlasts this thread's execution, or ``seconds``."""
    found = _RUNNING.get(threading.get_ident())
    if found is not None:
        with found.stoppable(stop, seconds):
            yield
    elif seconds < math.inf:
        with _DEADLINES.within(seconds, stop):
            yield
    else:
        yield


@contextmanager
def on_released_values() -> Iterator[None]:
    """In the ``with`` block, work depends on released values alone: see ``Execution.released``."""
    found = _RUNNING.get(threading.get_ident())
    if found is None:
        yield
    else:
        with found.released():
            yield


def rest(seconds: float) -> None:
    """Wait, unless this thread's execution is interrupted."""
    found = _RUNNING.get(threading.get_ident())
    if found is None:
        time.sleep(seconds)
    else:
        found.rest(seconds)
