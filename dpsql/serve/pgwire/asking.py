"""What the machine asks for, and what it is given. Each request is carried out elsewhere."""

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
"""Bytes of an encoded answer that are worth keeping for the next client."""
MOST_ENCODED = 2
"""Ways of encoding an answer that are kept: drivers ask for text, or for binary."""
PIECE = 1 << 20
"""Bytes of rows that are made into messages at one time; a longer row goes alone."""
_HEAD, _FIELD = 7, 44
"""Bytes of a row as a message, and of each of its fields, beside texts: at most."""


class Setting(NamedTuple):
    """What ``set_config`` was asked to set; ``local`` is for this transaction only."""

    name: str
    value: str
    local: bool


@dataclass(slots=True)
class Answer:
    """Rows that were released or made up by dpsql, with what to say about them."""

    columns: tuple[WireColumn, ...]
    table: pa.Table
    tag: str = "SELECT"
    notice: str = ""
    encoded: dict[tuple[int, ...], bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    size: int = 0
    """The bytes of its rows, once they were counted."""
    hold: Hold | None = None
    """Counts the memory of its rows for as long as somebody reads them."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def counted(self) -> int:
        """The bytes of its rows."""
        if not self.size:
            self.size = table_size(self.table)
        return self.size

    def bytes_of(self, start: int, stop: int) -> int:
        """About how many bytes so many rows are as messages."""
        part = self.table.slice(start, stop - start)
        return int(part.nbytes + part.num_rows * (_HEAD + 8 * part.num_columns))

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Where to cut rows, so that each piece is about as long as a client reads at a time."""
        while start < stop:
            end = min(stop, start + CHUNK)
            while end - start > 1 and self.bytes_of(start, end) > PIECE:
                end = start + (end - start) // 2
            yield start, end
            start = end

    @property
    def most_encoded(self) -> int:
        """Bytes that all rows may take as messages, where they are remembered."""
        each = _HEAD + _FIELD * len(self.columns)
        return min(_REMEMBERED, self.count * each + int(self.table.nbytes))

    def rows(self, formats: tuple[int, ...]) -> bytes:
        """Every row as messages, remembered while it is small."""
        known = self.encoded.get(formats)
        if known is None:
            known = data_rows(self.table, self.columns, formats)
            if len(known) <= _REMEMBERED and len(self.encoded) < MOST_ENCODED:
                self.encoded[formats] = known
        return known


@dataclass(frozen=True, slots=True)
class Description:
    """What a statement takes and returns, known without touching data."""

    columns: tuple[WireColumn, ...]
    oids: tuple[int, ...] = ()


class Backend(Protocol):
    """A role's session, as the machine sees it."""

    def describe(self, query: Query, oids: Sequence[int]) -> Description:
        """Columns and parameter types, before values are known."""
        ...

    def columns(
        self, query: Query, values: Sequence[Value], oids: Sequence[int]
    ) -> tuple[WireColumn, ...]:
        """The columns of a query with its values; no data is read."""
        ...

    def run(self, ask: Run) -> Answer:
        """The answer to a query: what is charged is charged here."""
        ...

    def known(self, ask: Run) -> Answer | None:
        """The same answer if it is at hand and free."""
        ...

    def light(self, query: Query, *, at_once: bool) -> bool | None:
        """Whether a query reads no data: no long work of others may keep it waiting.

        None where that cannot be seen ``at_once``, as others wait meanwhile.
        """
        ...

    def interrupt(self, thread: int) -> None:
        """Stop what is being carried out in another thread; what was charged stays charged."""
        ...

    def own(self, text: str) -> Answer:
        """One of dpsql's own commands."""
        ...

    def become(self, role: str | None) -> None:
        """Take another role, or (None) the one that logged in; refused unless the policy grants it."""
        ...

    @property
    def taken(self) -> str | None:
        """The role that was taken in place of the one that logged in."""
        ...

    def settings(self) -> object:
        """The role and dpsql's settings as they are now."""
        ...

    def take_back(self, own: Mapping[str, Any]) -> None:
        """Give each of dpsql's settings that is named the value of what ``settings`` gave."""
        ...

    def restore(self, settings: object | None) -> None:
        """Back to earlier settings, or to those that the session began with."""
        ...

    def begin(self) -> None:
        """The settings as they are now are what the session began with."""
        ...


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """Ask for parameter types and columns."""

    query: Query
    oids: tuple[int, ...]

    def perform(self, backend: Backend) -> Description:
        """Carry it out; may take a while."""
        return backend.describe(self.query, self.oids)


@dataclass(frozen=True, slots=True)
class Columns:
    """Ask for columns, with values at hand."""

    query: Query
    values: tuple[Value, ...]
    oids: tuple[int, ...]

    def perform(self, backend: Backend) -> tuple[WireColumn, ...]:
        """Carry it out; may take a while."""
        return backend.columns(self.query, self.values, self.oids)


@dataclass(frozen=True, slots=True)
class Run:
    """Ask for an answer."""

    query: Query
    values: tuple[Value, ...] = ()
    oids: tuple[int, ...] = ()
    notices: bool = True

    def perform(self, backend: Backend) -> Answer:
        """Carry it out; may take a while, and may be charged."""
        return backend.run(self)


@dataclass(frozen=True, slots=True)
class RunOwn:
    """Ask for one of dpsql's own commands."""

    text: str

    def perform(self, backend: Backend) -> Answer:
        """Carry it out."""
        return backend.own(self.text)


@dataclass(frozen=True, slots=True)
class Encode:
    """Ask for a part of an answer as messages; pauses until the client has taken what was sent."""

    answer: Answer
    start: int
    stop: int
    formats: tuple[int, ...]

    def perform(self, backend: Backend) -> bytes:  # noqa: ARG002 (every request has this shape)
        """Carry it out."""
        part = self.answer.table.slice(self.start, self.stop - self.start)
        return data_rows(part, self.answer.columns, self.formats)


@dataclass(frozen=True, slots=True)
class EncodeCopy:
    """Ask for a part of an answer as the lines of a COPY; pauses as ``Encode`` does."""

    copy: Copy
    answer: Answer
    start: int
    stop: int

    def perform(self, backend: Backend) -> bytes:  # noqa: ARG002 (every request has this shape)
        """Carry it out."""
        return encode_copied_rows(
            self.copy, self.answer.columns, self.answer.table, self.start, self.stop
        )


@dataclass(frozen=True, slots=True)
class Read:
    """Ask for the statements of a long script."""

    text: str

    def perform(self, backend: Backend) -> Statements:  # noqa: ARG002 (as above)
        """Carry it out. Only one statement at a time has tokens."""
        hold = POOL.hold(Use.READING, TOKEN * min(len(self.text), LONGEST_TEXT))
        try:
            return script.read_script(self.text)
        finally:
            hold.release()


@dataclass(frozen=True, slots=True)
class Prove:
    """Ask whether a password is the right one, which takes long on purpose. Nobody has entered yet."""

    verifier: Verifier
    password: str

    def perform(self, backend: Backend) -> bool:  # noqa: ARG002 (as above)
        """Carry it out."""
        return self.verifier.fits(self.password)


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """Ask to go on when others have had their turn and the client has taken what was sent."""

    def perform(self, backend: Backend) -> None:
        """There is nothing to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """Ask to go on after some seconds. No worker waits meanwhile."""

    seconds: float

    def perform(self, backend: Backend) -> None:
        """There is nothing to do."""


LARGE_RESULTS = (Encode, EncodeCopy)
"""Results that wait until the client has taken what was sent."""
TIMED = (DescribeQuery, Columns, Run)
"""What a statement timeout ends."""
Ask = DescribeQuery | Columns | Run | RunOwn | Encode | EncodeCopy | Read | Prove | Pause | Wait
Steps = Generator[Ask, Any, Any]
"""A conversation that pauses at each request and is resumed with its result."""
