"""What one thread does for one statement: until when, how others stop it, how much it may hold.

Claim: whatever a statement does in any engine, and whatever Python computes for it step by step,
    ends at the deadline of the statement, or soon after it was interrupted.
    Where answers leave at multiples of a time (``service.pace``), an interrupt takes effect at the
    next multiple. So when a client interrupts tells it nothing that waiting would not have told.
Assumes: an engine ends soon after it is told to stop.
Argument: every engine runs inside ``stoppable``; steps in Python call ``check``. At a multiple, a
    statement is seen to have ended or not: that is what the pace tells already. An interrupt that
    took effect at once would tell whether the statement had ended by then: its answer would be
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
"""Fewest bytes that are counted for a value: in a row of an answer it takes more than in a column."""

PATIENCE, TICK = 2.0, 0.01
"""Seconds to wait until others give back memory, and between two looks at whether they have."""


class Room:
    """Bytes that the results of several executions may take together."""

    def __init__(self, most: int) -> None:
        """All of them are free."""
        self.most, self.taken = most, 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take some, if there are so many left."""
        with self._lock:
            if self.taken + size > self.most:
                return False
            self.taken += size
            return True

    def give_back(self, size: int) -> None:
        """They are free again."""
        with self._lock:
            self.taken -= size


class Execution:
    """The execution of one statement."""

    def __init__(self, seconds: float, step: float = 0.0, room: Room | None = None) -> None:
        """``step``: an interrupt takes effect at the next multiple of it; 0 for at once."""
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
        """Raise ``Stopped`` once it has ended."""
        if self.ended:
            raise Stopped

    def interrupt(self, *, at_once: bool = False) -> None:
        """End it; called from another thread, more than once does no harm."""
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
        """What is done inside depends on released values alone, or waits for who measures them.

        Where all of its time passes before they may be seen, it has as much beyond that.
        """
        self._due += self._more
        try:
            yield
        finally:
            self._due -= self._more

    @contextmanager
    def stoppable(self, stop: Stop, seconds: float) -> Iterator[None]:
        """While this is open, ``stop`` is called again and again from the end on."""
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
        """Wait, unless it is interrupted; its deadline does not matter."""
        end = time.monotonic() + seconds
        with self._changed:
            while (left := min(end, self._interrupted) - time.monotonic()) > 0:
                self._changed.wait(left)

    def take(self, size: int) -> None:
        """Hold so many bytes of results until the end; others of the same room may have to end first."""
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
        """Nothing is held any more."""
        if self._room is not None:
            self._room.give_back(self._size)


_RUNNING: dict[int, Execution] = {}
"""By thread."""

_STOPPED: set[int] = set()
"""Threads whose client does not want anything any more."""


@contextmanager
def execution(seconds: float, step: float = 0.0, room: Room | None = None) -> Iterator[Execution]:
    """The execution of a statement by this thread; inside another one it is part of that."""
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
    """End what a thread executes, if it executes something."""
    found = _RUNNING.get(thread)
    if found is not None:
        found.interrupt(at_once=at_once)


def begin_nothing(thread: int) -> None:
    """What a thread executes from here on ends before it begins, and so before it is charged."""
    _STOPPED.add(thread)


def begin_again(thread: int) -> None:
    """What a thread executes from here on is for somebody else."""
    _STOPPED.discard(thread)


def interrupt_all() -> None:
    """End everything at once: the service ends."""
    for found in tuple(_RUNNING.values()):
        found.interrupt(at_once=True)


def check() -> None:
    """Between two steps that may take long: raise ``Stopped`` when this thread is to end."""
    found = _RUNNING.get(threading.get_ident())
    if found is not None:
        found.check()


def has_ended() -> bool:
    """Whether this thread's execution is to end."""
    found = _RUNNING.get(threading.get_ident())
    return found is not None and found.ended


def take(size: int, rows: int = 0, columns: int = 0) -> None:
    """``check``, and count a part of a result before it is kept."""
    found = _RUNNING.get(threading.get_ident())
    if found is not None:
        found.check()
        found.take(max(size, rows * columns * LEAST_VALUE))


@contextmanager
def stoppable(stop: Stop, seconds: float = math.inf) -> Iterator[None]:
    """Run something that ``stop`` ends, for as long as this thread's execution may, or ``seconds``."""
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
    """What this thread does inside depends on released values alone: see ``Execution.released``."""
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
