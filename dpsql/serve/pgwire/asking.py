"""The requests of the protocol's machine and their results. Other code carries the requests out."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from dpsql.memory.pool import POOL, Hold, Use
from dpsql.memory.sizes import table_size
from dpsql.serve.pgwire import script
from dpsql.serve.pgwire.commands import Copy, Query
from dpsql.serve.pgwire.copy_out import encode_copied_rows
from dpsql.serve.pgwire.parameters import Value
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.serve.pgwire.rows import CHUNK, data_rows
from dpsql.serve.pgwire.scram import Verifier
from dpsql.serve.pgwire.script import Statements
from dpsql.serve.tokens import TOKEN
from dpsql.sql.parse import LONGEST_TEXT

_REMEMBERED = 20_000
"""The most bytes of an encoded answer that are kept for the next client."""
MOST_ENCODED = 2
"""The most encodings of an answer that are kept: drivers ask for text or for binary."""
PIECE = 1 << 20
"""The bytes of rows that are encoded at one time. A longer row is encoded alone."""
_HEAD, _FIELD = 7, 44
"""The most bytes of a row as a message, and of each of its fields, apart from texts."""


class Setting(NamedTuple):
    """A setting that ``set_config`` sets. If it is ``local``, it is for this transaction only."""

    name: str
    value: str
    local: bool


@dataclass(slots=True)
class Answer:
    """Rows that dpsql released or made itself, with notices, notes and warnings about them."""

    columns: tuple[WireColumn, ...]
    table: pa.Table
    tag: str = "SELECT"
    notice: str = ""
    encoded: dict[tuple[int, ...], bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    size: int = 0
    """The bytes of the rows; 0 before they are counted."""
    hold: Hold | None = None
    """The hold that counts the memory of the rows for as long as somebody reads them."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def counted(self) -> int:
        """The bytes of the rows, counted on the first call."""
        if not self.size:
            self.size = table_size(self.table)
        return self.size

    def bytes_of(self, start: int, stop: int) -> int:
        """About how many bytes the rows from ``start`` to ``stop`` take as messages."""
        part = self.table.slice(start, stop - start)
        return int(part.nbytes + part.num_rows * (_HEAD + 8 * part.num_columns))

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows, each of which takes about as many bytes as are sent at one time."""
        while start < stop:
            end = min(stop, start + CHUNK)
            while end - start > 1 and self.bytes_of(start, end) > PIECE:
                end = start + (end - start) // 2
            yield start, end
            start = end

    @property
    def most_encoded(self) -> int:
        """The most bytes that one kept encoding of all rows may take."""
        each = _HEAD + _FIELD * len(self.columns)
        return min(_REMEMBERED, self.count * each + int(self.table.nbytes))

    def rows(self, formats: tuple[int, ...]) -> bytes:
        """All rows as messages. A small encoding is kept."""
        known = self.encoded.get(formats)
        if known is None:
            known = data_rows(self.table, self.columns, formats)
            if len(known) <= _REMEMBERED and len(self.encoded) < MOST_ENCODED:
                self.encoded[formats] = known
        return known


@dataclass(frozen=True, slots=True)
class Description:
    """The columns and the parameter types of a statement, found without reading data."""

    columns: tuple[WireColumn, ...]
    oids: tuple[int, ...] = ()


class Backend(Protocol):
    """The operations of a role's session that the machine needs."""

    def describe(self, query: Query, oids: Sequence[int]) -> Description:
        """The columns and parameter types of a query, before its values are known."""
        ...

    def columns(
        self, query: Query, values: Sequence[Value], oids: Sequence[int]
    ) -> tuple[WireColumn, ...]:
        """The columns of a query with its values; no data is read."""
        ...

    def run(self, ask: Run) -> Answer:
        """Answer a query. This is the step in which it is charged."""
        ...

    def known(self, ask: Run) -> Answer | None:
        """The same answer if it is cached and free; else None."""
        ...

    def light(self, query: Query, *, at_once: bool) -> bool | None:
        """Whether a query reads no data, so that it must not wait behind long statements.

        None if ``at_once`` is set and the check would take long while other connections wait.
        """
        ...

    def interrupt(self, thread: int) -> None:
        """Stop the statement that another thread carries out. Its charge stays."""
        ...

    def own(self, text: str) -> Answer:
        """Run one of dpsql's own commands."""
        ...

    def become(self, role: str | None) -> None:
        """Take another role, or for None the one that logged in; refused unless it is granted."""
        ...

    @property
    def taken(self) -> str | None:
        """The role that was taken in place of the one that logged in."""
        ...

    def settings(self) -> object:
        """The current role and dpsql's current settings."""
        ...

    def take_back(self, own: Mapping[str, Any]) -> None:
        """Set each of the named settings of dpsql back to its value in an earlier ``settings``."""
        ...

    def restore(self, settings: object | None) -> None:
        """Go back to earlier settings; for None, to those that ``begin`` has noted."""
        ...

    def begin(self) -> None:
        """Make the current settings the ones to which ``restore(None)`` goes back."""
        ...


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """Ask for parameter types and columns."""

    query: Query
    oids: tuple[int, ...]

    def perform(self, backend: Backend) -> Description:
        """Carry out the request. It may take some time."""
        return backend.describe(self.query, self.oids)


@dataclass(frozen=True, slots=True)
class Columns:
    """Ask for columns, given the values of the parameters."""

    query: Query
    values: tuple[Value, ...]
    oids: tuple[int, ...]

    def perform(self, backend: Backend) -> tuple[WireColumn, ...]:
        """Carry out the request. It may take some time."""
        return backend.columns(self.query, self.values, self.oids)


@dataclass(frozen=True, slots=True)
class Run:
    """Ask for an answer."""

    query: Query
    values: tuple[Value, ...] = ()
    oids: tuple[int, ...] = ()
    notices: bool = True

    def perform(self, backend: Backend) -> Answer:
        """Carry out the request. It may take some time, and may be charged."""
        return backend.run(self)


@dataclass(frozen=True, slots=True)
class RunOwn:
    """Ask for one of dpsql's own commands."""

    text: str

    def perform(self, backend: Backend) -> Answer:
        """Carry out the request."""
        return backend.own(self.text)


@dataclass(frozen=True, slots=True)
class Encode:
    """Ask for a part of an answer as messages.

    The machine goes on once the client has taken what was sent before.
    """

    answer: Answer
    start: int
    stop: int
    formats: tuple[int, ...]

    def perform(self, backend: Backend) -> bytes:  # noqa: ARG002 (every request has this shape)
        """Carry out the request."""
        part = self.answer.table.slice(self.start, self.stop - self.start)
        return data_rows(part, self.answer.columns, self.formats)


@dataclass(frozen=True, slots=True)
class EncodeCopy:
    """Ask for a part of an answer as the lines of a COPY. It waits as ``Encode`` does."""

    copy: Copy
    answer: Answer
    start: int
    stop: int

    def perform(self, backend: Backend) -> bytes:  # noqa: ARG002 (every request has this shape)
        """Carry out the request."""
        return encode_copied_rows(
            self.copy, self.answer.columns, self.answer.table, self.start, self.stop
        )


@dataclass(frozen=True, slots=True)
class Read:
    """Ask for the statements of a long script."""

    text: str

    def perform(self, backend: Backend) -> Statements:  # noqa: ARG002 (as above)
        """Carry out the request. Only one statement at a time has tokens in memory."""
        hold = POOL.hold(Use.READING, TOKEN * min(len(self.text), LONGEST_TEXT))
        try:
            return script.read_script(self.text)
        finally:
            hold.release()


@dataclass(frozen=True, slots=True)
class Prove:
    """Ask whether a password is the right one, before the log-in. The check is slow on purpose."""

    verifier: Verifier
    password: str

    def perform(self, backend: Backend) -> bool:  # noqa: ARG002 (as above)
        """Carry out the request."""
        return self.verifier.fits(self.password)


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """Ask to go on after the turns of others, once the client has taken what was sent."""

    def perform(self, backend: Backend) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """Ask to go on after some seconds. No thread of a lane waits meanwhile."""

    seconds: float

    def perform(self, backend: Backend) -> None:
        """Do nothing."""


LARGE_RESULTS = (Encode, EncodeCopy)
"""Requests whose results wait until the client has taken what was sent."""
TIMED = (DescribeQuery, Columns, Run)
"""Requests that a statement timeout ends."""
Ask = DescribeQuery | Columns | Run | RunOwn | Encode | EncodeCopy | Read | Prove | Pause | Wait
Steps = Generator[Ask, Any, Any]
"""A generator that yields each request and is resumed with its result."""
