"""The values that the parent and a process that answers catalog queries exchange."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from dpsql.engines.duckdb.allowlist import Listing


class Bounds(NamedTuple):
    """Limits on the size of an answer."""

    bytes: int = 32_000_000
    rows: int = 1_000_000
    value: int = 4_000_000
    """Bytes of one text."""
    elements: int = 200_000
    """Members of lists and structs, and numerics. They are read one by one, while others wait."""


class Effects(Protocol):
    """The effects of a statement beyond its rows, through functions that it calls."""

    def stop(self, process: int, *, ends: bool) -> bool:
        """Stop the statement of a session, or end the session; false if there is none."""
        ...

    def set(self, name: str, value: str, *, local: bool) -> str:
        """Change a setting of the session that asks. Returns the new value."""
        ...


Variable = str | int | Sequence[Sequence[str | None]]
"""A value that a statement may read about the session that asks it."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a catalog database.

    The statements ``before`` create the tables, ``tables`` has their rows by column name (as Arrow
    streams), and the statements ``after`` create the rest. ``listing`` has the names that
    statements may use.
    """

    before: Sequence[str]
    tables: Mapping[str, bytes]
    after: Sequence[str]
    listing: Listing
    number: int = field(default_factory=lambda: next(_numbers))
    """The number of this content among those of this process."""


NO_CONTENT = Content((), {}, (), Listing(*[frozenset()] * 5))


class CatalogFailed(Exception):
    """Raised for a statement that the catalog does not answer.

    ``kind`` says why, in one word. ``words`` is the engine's own message, which quotes nothing but
    the statement and the catalog.
    """

    def __init__(self, kind: str, words: str) -> None:
        """Hold both."""
        super().__init__(words)
        self.kind, self.words = kind, words


class CatalogRows(NamedTuple):
    """Names and engine types of the columns, and the rows."""

    columns: tuple[tuple[str, str], ...]
    table: pa.Table


def stream(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
