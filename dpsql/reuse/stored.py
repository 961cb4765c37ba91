"""A stored release that answers a piece unchanged, with no more noise than a new measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.execution import take
from dpsql.ledger.store import Kept
from dpsql.release.rows import ColumnNoise
from dpsql.reuse.encoding import StoredTable
from dpsql.reuse.pieces import Piece
from dpsql.reuse.source import Columns, Wanted
from dpsql.reuse.store import Store


@dataclass(frozen=True, slots=True)
class Stored:
    """Numbers that were released before, and paid for then."""

    piece: Piece
    kept: Kept
    columns: tuple[Columns, ...]

    def measures(self) -> Wanted:
        """No statistics: nothing is measured."""
        return {}

    def merge(self, _: Sequence[Columns], /) -> tuple[Columns, ...]:
        """The stored numbers, unchanged."""
        return self.columns

    def recall_key(self) -> None:
        """None: the numbers are stored already."""

    def explain(self, names: str) -> str:
        """A line with the time of the release."""
        return (
            f"recalled: {names}: {release_time(self.kept)}, which is at least as accurate; it "
            "costs nothing"
        )


def find_stored(store: Store, piece: Piece) -> Stored | None:
    """The release with the least noise, if it has little enough."""
    for kept in store.of_family(piece):
        if piece.served_by(kept.key.noise) and (tables := store.tables(kept)):
            return Stored(piece, kept, tuple(map(columns_of, tables)))
    return None


def columns_of(stored: StoredTable) -> Columns:
    """The columns of a stored table, whose rows all have the same noise.

    Its bytes are counted in the memory of the current execution.
    """
    take(stored.table.nbytes)
    noise = tuple(None if law is None else ColumnNoise((law,)) for law in stored.noise)
    return Columns(stored.table, noise)


def release_time(kept: Kept) -> str:
    """A stored answer by its time, as EXPLAIN names it."""
    return f"the answer of {kept.since:%Y-%m-%d %H:%M} UTC"
