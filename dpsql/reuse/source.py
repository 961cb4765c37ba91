"""The interface of the sources from which the numbers of a piece come."""

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
"""Statistics to measure, by part and position, with their noise.

Position -1 stands for the groups of the part; None stands for the noise of the plan.
"""


@dataclass(frozen=True, slots=True)
class Columns:
    """The keys and some released columns of one measurement."""

    table: pa.Table
    noise: tuple[ColumnNoise | None, ...]


class PieceSource(Protocol):
    """The source of one piece. Its kind depends on statement, policy and released numbers only."""

    @property
    def piece(self) -> Piece:
        """The piece that the source is for."""

    def measures(self) -> Wanted:
        """The statistics that must be measured; none if the numbers are stored."""

    def merge(self, new: Sequence[Columns], /) -> tuple[Columns, ...]:
        """The released columns of each slot; ``new`` are the columns measured for this source."""

    def recall_key(self) -> RecallKey | None:
        """The key under which the result is stored; None if nothing is measured."""

    def explain(self, names: str) -> str | None:
        """A line of EXPLAIN; None if no stored number is used."""


def align_rows(like: pa.Table, table: pa.Table, keys: int) -> pa.Table:
    """The rows of ``table`` in the order of the keys of ``like``, which are the same groups."""
    if like is table or all(like.column(i).equals(table.column(i)) for i in range(keys)):
        return table
    place = {key: row for row, key in enumerate(_keys(table, keys))}
    return table.take(pa.array([place[key] for key in _keys(like, keys)], pa.int64()))


def _keys(table: pa.Table, count: int) -> list[tuple[Any, ...]]:
    """The key of each row; NaN, which does not equal itself, is replaced by a text."""
    columns = (table.column(i).to_pylist() for i in range(count))
    return list(zip(*([v if v == v else "NaN" for v in c] for c in columns), strict=True))
