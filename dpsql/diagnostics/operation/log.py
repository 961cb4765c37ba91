"""The operator's log, which a thread of its own writes, so that no statement waits for a disk.

Claim: a log that cannot be written stops nothing and delays nobody. One message goes to standard
    error. The log is tried again with each event, and then records how many events were lost.
Assumes: nobody waits for the end of the process. There ``close`` waits for a disk, for at most
    twice ``PATIENCE``.
Argument: recording an event puts it into a queue without waiting. If the queue is full, the event
    is counted as lost. One thread writes, and catches every error of a sink.
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
"""The most events that may wait for a slow disk; further ones are lost, and counted."""
PATIENCE = 2.0
"""The seconds that ``close`` waits for the queue, and then for the thread."""
_IDLE = 30.0
"""The seconds without an event after which summaries of counted events are written."""
Layout = Callable[[Event, datetime], str]
LAYOUTS: dict[str, Layout] = {"plain": lines.plain, "json": lines.as_json}
_Item = tuple[Event, datetime]


class Sink(Protocol):
    """The destination of lines."""

    def write(self, line: str) -> object:
        """Write a line; raises an error if that is not possible."""
        ...

    def close(self) -> None:
        """Close the destination."""
        ...


class StandardError:
    """Standard error as a sink, for a container or systemd, which collect it."""

    def write(self, line: str) -> None:
        """Write a line."""
        sys.stderr.write(line)
        sys.stderr.flush()

    def close(self) -> None:
        """Do nothing: standard error stays open."""

    def __str__(self) -> str:
        return "standard error"


def complain(line: str) -> None:
    """Write a message to standard error, if there is one."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{line}\n")


class OperatorLog(logging.Handler):
    """The logging handler that writes events. Other records of the logger are not written."""

    def __init__(
        self, sink: Sink, layout: Layout = lines.plain, *,
        clock: Callable[[], float] = time.monotonic, complain: Callable[[str], None] = complain,
    ) -> None:  # fmt: skip
        """The thread starts with the first event."""
        super().__init__()
        self._sink, self._layout, self._clock, self._complain = sink, layout, clock, complain
        self._queue = Queue[_Item | None](WAITING)
        self._repeats, self._counting = Repeats(), threading.Lock()
        self._lost, self._failing = 0, False
        self._thread: threading.Thread | None = None

    @property
    def place(self) -> str:
        """The place of the log, for messages."""
        return str(self._sink)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue an event for the thread; a record without a known event is ignored."""
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
        """Complain about the first error; then not again until a line is written."""
        if not self._failing:
            self._failing = True
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._complain(f"the operator's log cannot be written: {why}; dpsql goes on without it")

    def close(self) -> None:
        """Write the waiting events within twice ``PATIENCE``, and close the sink."""
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
    """A context in which events are written to this log."""
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
