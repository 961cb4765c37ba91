"""The pool of processes that answer catalog queries, and their distribution among logins.

A login may have several processes, but only one of them for certain. If another login has none and
finds none free, the newest statement of a login with several gives way, and starts again when its
turn comes. The login with the fewest processes is served first, and among equals the one that waits
longest.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from dpsql.diagnostics.operation.events import WorkerKilled, record
from dpsql.diagnostics.operation.gauges import GAUGES
from dpsql.diagnostics.refusal import PolicyError
from dpsql.engines.catalog.content import NO_CONTENT, Bounds, CatalogFailed, CatalogRows, Content
from dpsql.engines.catalog.process import COMMAND, Died, Process, Statement
from dpsql.engines.duckdb.lockdown import NotLocked

SECONDS = 5.0
"""The most seconds of a statement, with its wait for a process."""
WAIT_SECONDS, LEAST_SECONDS = 5.0, 1.0
"""The most seconds of a wait for a process; the least seconds of a statement that has one."""
IDLE_SECONDS = 60.0
"""Seconds without work after which a process ends, unless it is the only one."""
CONTENDED_SECONDS = 10.0
"""Seconds after a login found none free for which one process is left for logins without one."""
SPARE_SECONDS = 0.2
"""If all processes run statements for so many seconds, another is started, if one more may be."""
BOUNDS = Bounds()
OWN, LEAST = 64_000_000, 160_000_000
"""Bytes that a process takes before it is asked anything, and the least that statements need."""


class State(NamedTuple):
    """The state of the processes, for metrics."""

    alive: int
    busy: int
    waiting: int
    killed: int
    """How many since the start did not stop in time, took too much memory, or died."""
    memory: int
    """Bytes of all processes, as each reported after its last statement."""


@dataclass(eq=False, slots=True)
class _Ticket:
    """The request of a statement that waits for a process, or has one."""

    owner: str
    thread: int
    content: Content
    stopped: bool = False
    displaced: bool = False
    """Whether its process is wanted for a login that has none."""
    since: float = 0.0
    due: float = 0.0

    def must_end(self) -> bool:
        """Whether the statement must end."""
        return self.stopped or self.displaced or time.monotonic() >= self.due


class Workers:
    """A pool of processes. Safe to use from several threads."""

    def __init__(
        self, most: int = 2, growth: int = LEAST,
        start: Callable[[int], Process] = Process,
    ) -> None:  # fmt: skip
        """No process is started before something is asked.

        ``growth`` is the memory that statements may take in a process, in bytes.
        """
        self._most, self._growth, self._start = most, growth, start
        self._changed = threading.Condition()
        self._idle: list[Process] = []
        self._busy: dict[_Ticket, Process | None] = {}
        self._waiting: list[_Ticket] = []
        self._lost: list[Sequence[Content]] = []
        self._starting = self._killed = self._closed = 0
        self._contended = 0.0
        self._keeper: threading.Thread | None = None
        self._called = threading.Event()

    def resize(self, most: int, memory: int) -> None:
        """Change the number of processes and their memory. Processes of another size end."""
        growth = max(LEAST, memory - OWN)
        with self._changed:
            changed = growth != self._growth
            self._most, self._growth = most, growth
            leaving, self._idle = (self._idle, []) if changed else ([], self._idle)
        for process in leaving:
            process.end()

    def check(self) -> None:
        """Have one process ready. Raise ``NotLocked`` if its engine can reach files or network."""
        try:
            ticket = _Ticket("", threading.get_ident(), NO_CONTENT)
            with self._process(ticket, time.monotonic() + WAIT_SECONDS):
                return
        except CatalogFailed:
            pass
        raise PolicyError(
            "a process that answers catalog queries does not start: "
            f"`{' '.join(COMMAND)} {self._growth}` must run here"
        )

    def run(self, owner: str, statement: Statement) -> CatalogRows:
        """Answer one statement of a login."""
        patience = time.monotonic() + WAIT_SECONDS
        while True:
            ticket = _Ticket(owner, threading.get_ident(), statement.content)
            found = self._try(ticket, statement, patience)
            if not isinstance(found, CatalogFailed):
                return found
            gave_way = ticket.displaced and not ticket.stopped and found.kind == "interrupted"
            if not gave_way:
                raise found
            if statement.effects is not None:  # its effects would be carried out again
                raise CatalogFailed("busy", "")

    def _try(
        self, ticket: _Ticket, statement: Statement, patience: float
    ) -> CatalogRows | CatalogFailed:
        try:
            with self._process(ticket, patience) as process:
                process.make(statement.content)
                ticket.since = time.monotonic()
                ends = max(patience, ticket.since + LEAST_SECONDS)
                ticket.due = min(ticket.since + SECONDS, ends)
                return process.ask(statement, BOUNDS, ticket.must_end)
        except CatalogFailed as failure:
            return failure
        except Died as died:
            return CatalogFailed(died.kind, "")

    def interrupt(self, thread: int) -> None:
        """Stop the statement that a thread asks or waits to ask, if there is one."""
        with self._changed:
            for ticket in (*self._waiting, *self._busy):
                if ticket.thread == thread:
                    ticket.stopped = True
            self._changed.notify_all()

    def gauges(self) -> State:
        """The state of the processes now."""
        with self._changed:
            busy = [p for p in self._busy.values() if p is not None]
            alive = [*self._idle, *busy]
            memory = sum(p.memory for p in alive)
            return State(len(alive), len(busy), len(self._waiting), self._killed, memory)

    def close(self) -> None:
        """End all processes; statements that run fail. The pool may be asked again later."""
        with self._changed:
            leaving, self._idle, self._lost = self._idle, [], []
            self._closed += 1
            for ticket in (*self._waiting, *self._busy):
                ticket.stopped = True
            self._changed.notify_all()
        for process in leaving:
            process.end()

    # -- who is given a process

    @contextmanager
    def _process(self, ticket: _Ticket, patience: float) -> Iterator[Process]:
        process = self._wait(ticket, patience)
        try:
            if process is None:
                process = self._start_process()
                with self._changed:
                    self._busy[ticket] = process
            yield process
        finally:
            self._take_back(ticket, process)

    def _wait(self, ticket: _Ticket, patience: float) -> Process | None:
        """A process that was idle; None if another is to be started."""
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._next() is not ticket:
                    self._claim(ticket)
                    left = patience - time.monotonic()
                    if ticket.stopped or left <= 0:
                        raise CatalogFailed("interrupted" if ticket.stopped else "busy", "")
                    self._changed.wait(min(left, 1.0))
                found = self._busy[ticket] = self._best(ticket.content)
                self._watch()
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        return found

    def _next(self) -> _Ticket | None:
        """The ticket that is served now; None if none can be."""
        free = self._most - len(self._busy)
        if free <= 0 or not (self._idle or self._alive < self._most):
            return None
        taken = Counter(ticket.owner for ticket in self._busy)
        first = min(self._waiting, key=lambda t: taken[t.owner], default=None)
        contended = time.monotonic() < self._contended
        if first is None or (contended and taken[first.owner] and free < _SECOND):
            return None
        return first

    def _claim(self, ticket: _Ticket) -> None:
        """Have a login with several processes give way to one that has none and finds none free."""
        taken = Counter(other.owner for other in self._busy)
        if taken[ticket.owner] or len(self._busy) < self._most:
            return
        self._contended = time.monotonic() + CONTENDED_SECONDS
        several = [other for other in self._busy if taken[other.owner] > 1]
        if several and not any(other.displaced for other in several):
            several[-1].displaced = True

    def _best(self, content: Content) -> Process | None:
        """An idle process, preferably with the catalog, and none that ended while it was idle."""
        for process in [p for p in self._idle if not p.alive]:
            self._idle.remove(process)
            process.end()
        if not self._idle:
            return None
        with_it = (p for p in self._idle if content.number in p.contents)
        found = next(with_it, self._idle[-1])
        self._idle.remove(found)
        return found

    @property
    def _alive(self) -> int:
        return len(self._idle) + len(self._busy) + self._starting

    def _start_process(self) -> Process:
        process = self._start(self._growth)
        try:
            process.start()
        except BaseException as error:
            process.end()
            if isinstance(error, Died):
                raise CatalogFailed("died", "") from None
            raise
        return process

    def _take_back(self, ticket: _Ticket, process: Process | None) -> None:
        """Take a process back for others, or have it replaced if it cannot be asked again."""
        with self._changed:
            del self._busy[ticket]
            kept = process is not None and self._fits(process)
            if process is not None and kept:
                process.idle_since = time.monotonic()
                self._idle.append(process)
            elif process is not None:
                if not process.settled:
                    self._killed += 1
                    record(WorkerKilled())
                self._lost.append(list(process.contents.values()))
                self._called.set()
            self._changed.notify_all()
        if process is not None and not kept:
            process.end()

    def _fits(self, process: Process) -> bool:
        """Whether a process may be asked again."""
        fresh = process.settled and not process.exhausted
        return fresh and process.growth == self._growth and self._alive < self._most

    # -- who looks after them

    def _watch(self) -> None:
        if self._keeper is None:
            atexit.register(self.close)
            keeper = threading.Thread(target=self._keep, name="catalog", daemon=True)
            self._keeper = keeper  # it checks whether it is still this one
            try:
                keeper.start()
            except RuntimeError:  # the system has no more threads: the next one tries
                self._keeper = None

    def _keep(self) -> None:
        """Replace lost processes and end idle ones, until no process is left."""
        while True:
            self._called.wait(SPARE_SECONDS)
            self._called.clear()
            with self._changed:
                leaving = self._leaving(time.monotonic())
                lost = self._lost.pop() if self._lost else self._spare(time.monotonic())
                if lost is not None and self._alive >= self._most:
                    lost = None
                self._starting += lost is not None
                if lost is None and not self._alive:
                    self._keeper = None
                    atexit.unregister(self.close)
            for process in leaving:
                process.end()
            if lost is not None:
                self._replace(lost)
            elif self._keeper is not threading.current_thread():
                return

    def _spare(self, now: float) -> Sequence[Content] | None:
        """The catalogs of a process to start in advance, if all others run long statements."""
        long = [t for t in self._busy if 0 < t.since < now - SPARE_SECONDS]
        if self._idle or self._starting or not long:
            return None
        return [long[0].content]

    def _leaving(self, now: float) -> list[Process]:
        """The processes that have been idle for too long."""
        found = list[Process]()
        for process in list(self._idle):
            if now - process.idle_since > IDLE_SECONDS and self._alive > 1:
                self._idle.remove(process)
                found.append(process)
        return found

    def _replace(self, contents: Sequence[Content]) -> None:
        """Start another process with the same catalogs, before a statement needs it."""
        process: Process | None = None
        closed = self._closed
        try:
            process = self._start_process()
            for content in contents:
                process.make(content)
        except (CatalogFailed, Died, NotLocked):
            if process is not None:
                process.end()
            process = None
        with self._changed:
            self._starting -= 1
            late = self._closed != closed or (process is not None and not self._fits(process))
            if process is not None and not late:
                process.idle_since = time.monotonic()
                self._idle.append(process)
            self._changed.notify_all()
        if process is not None and late:
            process.end()


def by_state(state: State) -> dict[tuple[str, ...], float]:
    """The numbers of idle and busy processes, as metrics show them."""
    return {("idle",): state.alive - state.busy, ("busy",): state.busy}


_SECOND = 2
"""So many must be free for a login to get a second one under contention: one of them stays free."""
WORKERS = Workers()
"""The pool of this process, which its faces, policies and roles share."""
GAUGES.add("dpsql_catalog_workers", lambda: by_state(WORKERS.gauges()))
