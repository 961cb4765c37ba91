"""A session after its log-in: its names, variables, transaction, and unsent messages."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from sys import getsizeof

from dpsql.memory.pool import POOL, Full, Hold, Use
from dpsql.serve.pgwire import asking, replies, setting
from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire.asking import Answer, Backend, Steps
from dpsql.serve.pgwire.crowd import LONGEST_SHOWN
from dpsql.serve.pgwire.errors import WireError, no_memory
from dpsql.serve.pgwire.oids import TEXT, column
from dpsql.serve.pgwire.parameters import Value, spread
from dpsql.serve.pgwire.portals import Names, Portal
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.serve.pgwire.transaction import Saved, Transaction
from dpsql.serve.pgwire.variables import Variables

TURN, MESSAGE, READ = 200_000, 1_000, 10
"""The work of a turn (some milliseconds), and the work of a message and of each of its bytes."""
MOST_CELLS = 2_000
"""The most cells of an answer that is encoded in the event loop and not in a lane."""
PLAN = (column("plan", TEXT),)
LARGE_BYTES = 16_000
"""The bytes from which the rows of an answer are counted while they are read."""
LONG_PIECE, COPIES = 2 << 20, 4
"""The bytes from which encoding rows is counted, and the number of copies that it makes."""
_LATER = (
    "Try again when fewer clients read, or ask for fewer rows: if it was charged, its answer is stored, "
    "and asking again is free."
)


class Session:
    """The state of a connection after its log-in."""

    def __init__(
        self, backend: Backend, variables: Variables, process: int = 0, owner: Hashable = None
    ) -> None:
        """A fresh session has no names and no transaction.

        ``process`` is the number of the connection. Its memory is counted for ``owner``.
        """
        self.backend, self.variables, self.process = backend, variables, process
        self.names, self.transaction = Names(owner=owner), Transaction()
        self.owner = owner
        self.out: list[bytes] = []
        self.turn = 0
        """The work since others had their turn: about one for each byte that is sent."""
        self.asked = ""
        """The beginning of the last statement, in the client's words, for pg_stat_activity."""
        self._reported = variables.reported()

    def send(self, data: bytes) -> None:
        """Queue a message."""
        self.out.append(data)
        self.turn += len(data)

    def hold_message(self, received: int, text: str) -> Hold:
        """Count a long message until it is carried out: its bytes, and the text read from them."""
        return POOL.hold(Use.RECEIVED, received + max(getsizeof(text), received), self.owner)

    def note(self, text: str) -> None:
        """Keep the beginning of the statement that is asked for now."""
        self.asked = text[:LONGEST_SHOWN]

    @property
    def tired(self) -> bool:
        """Whether others should have their turn now."""
        return self.turn > TURN

    def saved(self) -> Saved:
        """The state to which a rollback would go back."""
        return Saved(self.variables.all(), self.backend.settings(), self.names.newest)

    def restore(self, saved: Saved) -> None:
        """Go back to a saved state."""
        self.variables.restore(saved.variables)
        self.backend.restore(saved.settings)

    def become(self, role: str | None) -> None:
        """Take another role, or for None the one that logged in."""
        self.backend.become(role)
        self.variables.become(role)

    def report(self) -> None:
        """Tell the client the new values of followed settings that have changed."""
        now = self.variables.reported()
        if now != self._reported:
            for name, value in now.items():
                if self._reported[name] != value:
                    self.send(replies.parameter_status(name, value))
            self._reported = now

    def answer(
        self, query: c.Query, values: Sequence[Value] = (), oids: Sequence[int] = ()
    ) -> Steps:
        """The answer to a query, from the cache or by a request. Its notices are sent here."""
        ask = asking.Run(query, tuple(values), tuple(oids), self.variables.notices)
        known = self.backend.known(ask)
        found = self._held((yield ask) if known is None else known)
        for given in found.settings:
            yield from setting.apply_setting(self, given)
        for words in filter(None, (*found.notes, found.notice) if self.variables.notices else ()):
            self.send(replies.notice(words))
        for words in found.warnings:
            self.send(replies.notice(words, severity="WARNING", sqlstate="01000"))
        return found

    def open(self, portal: Portal) -> Steps:
        """The answer of a portal of a query. It is asked for once."""
        if portal.answer is None:
            assert isinstance(portal.command, c.Query)
            if portal.done:
                raise WireError("55000", "portal cannot be run: it failed before")
            portal.done = True
            answer = yield from self.answer(portal.command, portal.values, portal.oids)
            if portal.memory is not None and answer.hold is None:
                try:
                    portal.memory.resize(portal.memory.bytes + answer.counted())
                except Full as error:
                    raise no_memory(error, _LATER) from None
            portal.answer, portal.columns = answer, answer.columns
        return portal.answer

    def _held(self, answer: Answer) -> Answer:
        """The answer, with its memory counted if it is large.

        An answer that was charged is stored before this step, so nothing is lost if memory is full.
        """
        size = answer.counted()
        if size < LARGE_BYTES:
            return answer
        try:
            hold = POOL.hold(Use.ANSWERS, size, self.owner, answer.table)
        except Full as error:
            raise no_memory(error, _LATER) from None
        return replace(answer, hold=hold)

    def columns(self, portal: Portal) -> Steps:
        """The columns of a portal of a query under the current settings. No data is read."""
        now = self.backend.settings()
        if portal.answer is None and portal.settings != now:
            portal.columns, portal.settings = None, now
        if portal.columns is None:
            assert isinstance(portal.command, c.Query)
            run = asking.Run(portal.command, portal.values, portal.oids, notices=False)
            known = self.backend.known(run)
            if known is not None:
                portal.columns = known.columns
            else:
                ask = asking.Columns(portal.command, portal.values, portal.oids)
                portal.columns = yield ask
        return portal.columns

    def describe(self, columns: Sequence[WireColumn], formats: Sequence[int] = ()) -> None:
        """Announce the columns of the rows that follow."""
        self.send(replies.row_description(columns, spread(formats, len(columns))))

    def rows(self, answer: Answer, start: int, stop: int, formats: Sequence[int]) -> Steps:
        """Send the rows from ``start`` (counted from zero) to ``stop``; large answers in parts."""
        codes = spread(formats, len(answer.columns))
        few = answer.count * len(codes) <= MOST_CELLS and answer.hold is None
        if start == 0 and stop == answer.count and (few or codes in answer.encoded):
            self.send(answer.rows(codes))
            return
        for first, last in answer.pieces(start, stop):
            with self.encoding(answer, first, last):
                part = yield asking.Encode(answer, first, last, codes)
            self.send(part)

    @contextmanager
    def encoding(self, answer: Answer, start: int, stop: int) -> Iterator[None]:
        """Count the memory for encoding long rows, whose values are copied several times."""
        size = answer.bytes_of(start, stop)
        if size < LONG_PIECE:
            yield
            return
        hold = POOL.hold(Use.UNSENT, COPIES * size, self.owner)
        try:
            yield
        finally:
            hold.release()
