"""The operator's log: a thread of its own writes it, so that nobody waits for a disk.

Claim: a log that cannot be written stops nothing and delays nobody. Standard error is told once, the log is
    tried again with each event, and says itself how many events it lost.
Assumes: the end of the process is nobody's wait: there ``close`` waits for a disk, twice ``PATIENCE`` at most.
Argument: whoever records an event puts it into a queue and goes on; where the queue is full the event is counted
    as lost. One thread writes, and catches whatever a sink raises.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from typing import Protocol

from dpsql.diagnostics.operation import events, lines
from dpsql.diagnostics.operation.events import EVENTS, Event, LogResumed
from dpsql.diagnostics.operation.file import LogFile
from dpsql.diagnostics.operation.repeats import Repeats

WAITING = 10_000
"""Events that may wait for a slow disk; further ones are lost, and counted."""
PATIENCE = 2.0
"""Seconds that the end of the process waits for a disk."""
_IDLE = 30.0
"""Seconds after which counted events are looked through though nothing happens."""
Layout = Callable[[Event, datetime], str]
LAYOUTS: dict[str, Layout] = {"plain": lines.plain, "json": lines.as_json}
_Item = tuple[Event, datetime]


class Sink(Protocol):
    """Where lines go."""

    def write(self, line: str) -> object:
        """One line more; raises where that is not possible."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class StandardError:
    """For whoever collects what a service says: a container, systemd."""

    def write(self, line: str) -> None:
        """One line more."""
        sys.stderr.write(line)
        sys.stderr.flush()

    def close(self) -> None:
        """It stays open."""

    def __str__(self) -> str:
        return "standard error"


def complain(line: str) -> None:
    """Tell standard error, where there is one."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{line}\n")


class OperatorLog(logging.Handler):
    """Writes events, and nothing else that may come to the logger."""

    def __init__(
        self, sink: Sink, layout: Layout = lines.plain, *,
        clock: Callable[[], float] = time.monotonic, complain: Callable[[str], None] = complain,
    ) -> None:  # fmt: skip
        """The thread begins with the first event."""
        super().__init__()
        self._sink, self._layout, self._clock, self._complain = sink, layout, clock, complain
        self._queue = Queue[_Item | None](WAITING)
        self._repeats, self._counting = Repeats(), threading.Lock()
        self._lost, self._failing = 0, False
        self._thread: threading.Thread | None = None

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return str(self._sink)

    def emit(self, record: logging.LogRecord) -> None:
        """Take an event over; what is none is not written."""
        event = getattr(record, "event", None)
        if not isinstance(event, Event) or EVENTS.get(event.name()) is not type(event):
            return
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="dpsql-log", daemon=True)
                thread.start()
                self._thread = thread
            self._queue.put_nowait((event, datetime.fromtimestamp(record.created, UTC)))
        except (Full, RuntimeError):  # too many wait, or the system has no more threads
            self._lose(1)

    def _lose(self, count: int) -> None:
        with self._counting:
            self._lost += count

    def _work(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=_IDLE)
            except Empty:
                self._write_all(self._summaries(last=False))
                continue
            if item is None:
                self._write_all(self._summaries(last=True))
                return
            if self._repeats.admit(item[0], self._clock()):
                self._write(*item)
            self._write_all(self._summaries(last=False))

    def _summaries(self, *, last: bool) -> Iterator[_Item]:
        moment = datetime.now(UTC)
        for event in self._repeats.take_summaries(self._clock(), last=last):
            yield event, moment

    def _write_all(self, items: Iterable[_Item]) -> None:
        for item in items:
            self._write(*item)

    def _write(self, event: Event, moment: datetime) -> None:
        try:
            if self._lost:
                lost, resumed = self._lost, LogResumed(self._lost)
                self._sink.write(self._layout(resumed, moment))
                self._lose(-lost)
            self._sink.write(self._layout(event, moment))
            self._failing = False
        except Exception as error:  # noqa: BLE001 (whatever it is, the next event must find the thread)
            self._lose(1)
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        """Once, until it works again."""
        if not self._failing:
            self._failing = True
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._complain(f"the operator's log cannot be written: {why}; dpsql goes on without it")

    def close(self) -> None:
        """Write what waits, for as long as a disk may take, and let go of the file."""
        super().close()
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                self._queue.put(None, timeout=PATIENCE)
            except Full:
                return
            thread.join(PATIENCE)
            if thread.is_alive():
                return
        self._sink.close()


@contextmanager
def keep_log(log: OperatorLog, *, comments: bool = False) -> Iterator[None]:
    """Events are written into this log while the block lasts."""
    before = events.log.level
    events.log.addHandler(log)
    events.log.setLevel(logging.DEBUG if comments else logging.INFO)
    try:
        yield
    finally:
        events.log.removeHandler(log)
        events.log.setLevel(before)
        log.close()


__all__ = ["LAYOUTS", "LogFile", "OperatorLog", "StandardError", "keep_log"]
