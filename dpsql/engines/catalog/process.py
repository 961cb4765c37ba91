"""A process that answers catalog queries, as the parent sees it."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from dpsql.engines.catalog.content import (
    Bounds,
    CatalogFailed,
    CatalogRows,
    Content,
    Effects,
    Variable,
)
from dpsql.engines.catalog.frames import Channel, Closed
from dpsql.engines.catalog.worker import MOST_CONTENTS
from dpsql.engines.duckdb.lockdown import NotLocked

COMMAND = (sys.executable, "-P", "-s", "-m", "dpsql.engines.catalog.worker")
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
"""The only environment variables that a process is given. Others may hold passwords."""
_SMALL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
START_SECONDS = 30.0
GRACE = 0.5
"""Seconds that a statement has to end after an interrupt."""
_LARGER, _LARGEST_PART = 2, 1 << 24
"""The most times that an Arrow stream is larger than its rows, and the most bytes of a part."""


class Statement(NamedTuple):
    """A statement to a catalog."""

    content: Content
    sql: str
    parameters: Sequence[Any] = ()
    variables: Mapping[str, Variable] = {}
    effects: Effects | None = None


class Died(Exception):
    """Raised if the process has ended or was ended; ``kind`` is the failure of its statement."""

    def __init__(self, kind: str) -> None:
        """Hold the kind."""
        super().__init__(kind)
        self.kind = kind


class Process:
    """One process. Only one thread at a time may ask it."""

    def __init__(self, growth: int, command: Sequence[str] = COMMAND) -> None:
        """Start it without waiting. ``growth`` is the memory its statements may take, in bytes."""
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(p for p in sys.path if p)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        with theirs:
            self._popen = subprocess.Popen(  # noqa: S603 (our own interpreter)
                [*command, str(growth)], stdin=theirs.fileno(), stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, close_fds=True, cwd="/",
                env={**_SMALL, **kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            )  # fmt: skip
        self._channel = Channel(ours, self._wait)
        self._wait_now: Callable[[], None] = lambda: None
        self._number = 0
        self.growth = growth
        self.settled = False
        """Whether every message has its reply. Only then can it be asked again."""
        self.contents: OrderedDict[int, Content] = OrderedDict()
        self.memory = 0
        self.exhausted = False
        """Whether a statement has left so much memory in use that the next one could fail."""
        self.idle_since = 0.0

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._popen.poll() is None

    def start(self) -> None:
        """Wait until it is ready. Raise ``NotLocked`` if its engine can reach files or network."""
        self._ready(_deadline(time.monotonic() + START_SECONDS))

    def make(self, content: Content) -> None:
        """Give it a catalog. It replaces the least recently used one if there are too many."""
        if content.number in self.contents:
            self.contents.move_to_end(content.number)
            return
        self.settled = False
        while len(self.contents) >= MOST_CONTENTS:
            self.contents.popitem(last=False)
        due = _deadline(time.monotonic() + START_SECONDS)
        self._send({"do": "make", "number": content.number}, pickle.dumps(content), due)
        self._ready(due)
        self.contents[content.number] = content

    def _ready(self, wait: Callable[[], None]) -> None:
        head, _ = self._receive(0, wait)
        if "broken" in head:
            raise NotLocked(str(head["broken"]))
        self.settled = True

    def ask(self, statement: Statement, bounds: Bounds, over: Callable[[], bool]) -> CatalogRows:
        """The rows. When ``over`` is true, the statement is interrupted, then the process ended."""
        self._number += 1
        self.settled = False
        wait = _Waiting(over, lambda: self._interrupt(self._number, wait))
        body = pickle.dumps((statement.sql, statement.parameters, statement.variables, bounds))
        head = {
            "do": "run", "number": self._number, "content": statement.content.number,
            "effects": statement.effects is not None,
        }  # fmt: skip
        self._send(head, body, wait.check)
        failure: Exception | None = None
        rows = bytearray()
        while True:
            head, part = self._receive(_LARGEST_PART, wait)
            rows += part
            if len(rows) > bounds.bytes * _LARGER + _LARGEST_PART:
                raise Died("died")
            if "effect" in head:
                failure = self._effect(head, statement.effects, wait) or failure
            elif "part" not in head:
                break
        found = _read_reply(head, rows, bounds)
        self.settled = not (isinstance(found, CatalogFailed) and found.kind == "died")
        if isinstance(found, CatalogFailed):
            raise failure or found
        return found

    def _effect(
        self, head: Mapping[str, Any], effects: Effects | None, wait: _Waiting
    ) -> Exception | None:
        """Carry out an effect. Its error is returned, and raised when the statement has ended."""
        reply: dict[str, Any] = {"do": "reply", "refused": True}
        failure: Exception | None = None
        try:
            if effects is not None:
                reply = {"do": "reply", "done": _carry_out(head, effects)}
        except Exception as error:  # noqa: BLE001 (see above)
            failure = error
        self._send(reply, b"", wait.check)
        return failure

    def end(self) -> None:
        """End the process at once, whatever it does."""
        self._channel.close()
        with contextlib.suppress(OSError):
            self._popen.kill()
        self._popen.wait()

    def _interrupt(self, number: int, wait: _Waiting) -> None:
        """Interrupt a statement. It is called between messages, so that none is half sent."""
        self._send({"do": "interrupt", "number": number}, b"", wait.check)
        self._wait_now = wait

    def _wait(self) -> None:
        self._wait_now()

    def _send(self, head: dict[str, Any], body: bytes, wait: Callable[[], None]) -> None:
        self._wait_now = wait
        try:
            self._channel.send(head, body)
        except Closed:
            raise Died("died") from None

    def _receive(self, largest: int, wait: Callable[[], None]) -> tuple[dict[str, Any], bytes]:
        self._wait_now = wait
        try:
            head, body = self._channel.receive(largest)
            self.memory = int(head.get("memory", self.memory))
        except (Closed, TypeError, ValueError, OverflowError):
            raise Died("died") from None
        self.exhausted = bool(head.get("exhausted", self.exhausted))
        return head, body


class _Waiting:
    """Called while a statement runs. Interrupts it when its time is up, and soon after gives up."""

    def __init__(self, over: Callable[[], bool], interrupt: Callable[[], None]) -> None:
        self._over, self._interrupt = over, interrupt
        self._since: float | None = None

    def __call__(self) -> None:
        self.check()
        if self._since is not None:
            self._interrupt()

    def check(self) -> None:
        """Check the time. It sends no message, because another one may be half sent."""
        if self._since is None and self._over():
            self._since = time.monotonic()
        if self._since is not None and time.monotonic() - self._since >= GRACE:
            raise Died("interrupted")


def _deadline(due: float) -> Callable[[], None]:
    def wait() -> None:
        if time.monotonic() >= due:
            raise Died("died")

    return wait


def _carry_out(head: Mapping[str, Any], effects: Effects) -> bool | str:
    if head["effect"] == "stop":
        return effects.stop(int(head["process"]), ends=bool(head["ends"]))
    return effects.set(str(head["name"]), str(head["value"]), local=bool(head["local"]))


def _read_reply(
    head: Mapping[str, Any], rows: bytearray, bounds: Bounds
) -> CatalogRows | CatalogFailed:
    if "failed" in head:
        return CatalogFailed(str(head["failed"]), str(head.get("words", "")))
    try:
        table = pa.ipc.open_stream(pa.py_buffer(rows)).read_all()
        table.validate(full=True)
        columns = tuple((str(name), str(kind)) for name, kind in head["columns"])
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError):
        raise Died("died") from None
    if table.num_rows > bounds.rows or table.num_columns != len(columns):  # NULLs take no bytes
        raise Died("died")
    return CatalogRows(columns, table)
