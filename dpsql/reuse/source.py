"""Where the numbers of a piece come from: what each kind of source says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from dpsql.ledger.store import RecallKey
from dpsql.price.priced import Noise
from dpsql.release.rows import ColumnNoise
from dpsql.reuse.pieces import Piece

Wanted = Mapping[tuple[int, int], Noise | None]
"""What is measured: statistics by part and position, -1 for its groups; None is the plan's own noise."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Some released columns of one measurement, behind its keys."""

    table: pa.Table
    noise: tuple[ColumnNoise | None, ...]


class PieceSource(Protocol):
    """One source of one piece. Which one it is follows from statement, policy and released numbers."""

    @property
    def piece(self) -> Piece:
        """The piece that it is for."""

    def measures(self) -> Wanted:
        """What must be measured for it; nothing where its numbers are stored."""

    def merge(self, new: Sequence[Columns], /) -> tuple[Columns, ...]:
        """The released columns of each slot; ``new`` are those that were measured for it."""

    def recall_key(self) -> RecallKey | None:
        """Under which name they are kept from now on; None where nothing is measured."""

    def explain(self, names: str) -> str | None:
        """A line of EXPLAIN; None where nothing that is stored is used."""


def align_rows(like: pa.Table, table: pa.Table, keys: int) -> pa.Table:
    """The rows of ``table`` with the keys of ``like`` in its order: public groups are the same."""
    if like is table or all(like.column(i).equals(table.column(i)) for i in range(keys)):
        return table
    place = {key: row for row, key in enumerate(_keys(table, keys))}
    return table.take(pa.array([place[key] for key in _keys(like, keys)], pa.int64()))


def _keys(table: pa.Table, count: int) -> list[tuple[Any, ...]]:
    """The key of each row; NaN, which does not equal itself, as a word."""
    columns = (table.column(i).to_pylist() for i in range(count))
    return list(zip(*([v if v == v else "NaN" for v in c] for c in columns), strict=True))
