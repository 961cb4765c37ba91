"""What the parent gives a process that answers catalog queries, and what it is given back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from dpsql.engines.duckdb.allowlist import Listing


class Bounds(NamedTuple):
    """How large an answer may be."""

    bytes: int = 32_000_000
    rows: int = 1_000_000
    value: int = 4_000_000
    """Bytes of one text."""
    elements: int = 200_000
    """Members of lists and structs, and numerics: they are read one by one, while others wait."""


class Effects(Protocol):
    """What a statement does beyond its rows, by functions that it calls."""

    def stop(self, process: int, *, ends: bool) -> bool:
        """Stop a session, or end it; false when there is none."""
        ...

    def set(self, name: str, value: str, *, local: bool) -> str:
        """Change a setting of the session that asks; what it is then."""
        ...


Variable = str | int | Sequence[Sequence[str | None]]
"""What a statement may be told of the session it is asked in."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Content:
    """What such a database is made of: ``before`` makes the tables that ``tables`` fill by column
    name (Arrow streams); ``after`` makes the rest. ``listing`` is what statements may name.
    """

    before: Sequence[str]
    tables: Mapping[str, bytes]
    after: Sequence[str]
    listing: Listing
    number: int = field(default_factory=lambda: next(_numbers))
    """Which content of this process this is."""


NO_CONTENT = Content((), {}, (), Listing(*[frozenset()] * 5))


class CatalogFailed(Exception):
    """A statement that the catalog does not answer.

    ``kind`` says why, in one word; ``words`` are the engine's own, which quote nothing but the
    statement and the catalog.
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
