"""A session after its log-in: names, variables, transaction, and what is waiting to be sent."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.serve.memory import HELD
from dpsql.serve.pgwire import asking, replies, setting
from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire.asking import Answer, Backend, Steps
from dpsql.serve.pgwire.errors import WireError
from dpsql.serve.pgwire.oids import TEXT, column
from dpsql.serve.pgwire.parameters import Value, spread
from dpsql.serve.pgwire.portals import Names, Portal
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.serve.pgwire.rows import CHUNK
from dpsql.serve.pgwire.transaction import Saved, Transaction
from dpsql.serve.pgwire.variables import Variables

TURN, MESSAGE, READ = 200_000, 1_000, 10
"""A turn, and what a message and each of its bytes count in it: some milliseconds of work."""
MOST_CELLS = 2_000
"""Of an answer that is encoded at once, and not by a worker."""
PLAN = (column("plan", TEXT),)


class Session:
    """Everything that a connection remembers."""

    def __init__(self, backend: Backend, variables: Variables, process: int = 0) -> None:
        """Fresh: nothing named, no transaction. ``process`` is the number of the connection."""
        self.backend, self.variables, self.process = backend, variables, process
        self.names, self.transaction = Names(), Transaction()
        self.out: list[bytes] = []
        self.turn = 0
        """What was done since others had their turn: about one for each byte that is sent."""
        self.asked = ""
        """What was asked for last, in the client's words."""
        self._reported = variables.reported()

    def send(self, data: bytes) -> None:
        """Queue a message."""
        self.out.append(data)
        self.turn += len(data)

    @property
    def tired(self) -> bool:
        """Whether it is time to let others have their turn."""
        return self.turn > TURN

    def saved(self) -> Saved:
        """What a rollback would go back to."""
        return Saved(self.variables.all(), self.backend.settings(), self.names.newest)

    def restore(self, saved: Saved) -> None:
        """Back to what was saved."""
        self.variables.restore(saved.variables)
        self.backend.restore(saved.settings)

    def become(self, role: str | None) -> None:
        """Take another role, or (None) the one that logged in."""
        self.backend.become(role)
        self.variables.become(role)

    def report(self) -> None:
        """Tell the client of every followed setting that has changed."""
        now = self.variables.reported()
        if now != self._reported:
            for name, value in now.items():
                if self._reported[name] != value:
                    self.send(replies.parameter_status(name, value))
            self._reported = now

    def answer(
        self, query: c.Query, values: Sequence[Value] = (), oids: Sequence[int] = ()
    ) -> Steps:
        """The answer to a query: at hand, or asked for. Its notice is sent once, here."""
        ask = asking.Run(query, tuple(values), tuple(oids), self.variables.notices)
        found: Answer | None = self.backend.known(ask)
        if found is None:
            found = yield ask
        for given in found.settings:
            yield from setting.taken(self, given)
        for words in filter(None, (*found.notes, found.notice) if self.variables.notices else ()):
            self.send(replies.notice(words))
        for words in found.warnings:
            self.send(replies.notice(words, severity="WARNING", sqlstate="01000"))
        return found

    def open(self, portal: Portal) -> Steps:
        """The answer of a portal of a query, asked for once."""
        if portal.answer is None:
            assert isinstance(portal.command, c.Query)
            if portal.done:
                raise WireError("55000", "portal cannot be run: it failed before")
            self.names.check_room()
            portal.done = True
            portal.answer = yield from self.answer(portal.command, portal.values, portal.oids)
            portal.columns = portal.answer.columns
            HELD.hold(portal, portal.answer.table.nbytes)
        return portal.answer

    def columns(self, portal: Portal) -> Steps:
        """The columns of a portal of a query under the settings as they are; no data is read."""
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
        """Announce rows."""
        self.send(replies.row_description(columns, spread(formats, len(columns))))

    def rows(self, answer: Answer, start: int, stop: int, formats: Sequence[int]) -> Steps:
        """Rows ``start`` (from zero) up to ``stop``; large answers go in parts."""
        codes = spread(formats, len(answer.columns))
        quick = codes in answer.encoded or answer.count * len(codes) <= MOST_CELLS
        if start == 0 and stop == answer.count and quick:
            self.send(answer.rows(codes))
            return
        for at in range(start, stop, CHUNK):
            part = yield asking.Encode(answer, at, min(stop, at + CHUNK), codes)
            self.send(part)
