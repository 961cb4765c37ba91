"""Values on their way out: noised, selected, decoded, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.execution import check
from dpsql.ir.expressions import Column, alias
from dpsql.policy.types import INSTANT, WIDE, Kind, digits_of
from dpsql.privacy.entropy import Randomness
from dpsql.privacy.mechanisms.noise_sum import NoiseSum

ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.NULL: pa.null(),
}
ARROW |= {kind: pa.list_(ARROW[kind.element]) for kind in Kind if kind.element is not None}
"""The type of every released column follows from the plan, never from the values."""
_NAMED = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "real": pa.float32(),
    INSTANT: pa.timestamp("us", "UTC"),
}
_DAYS = (date.min - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days
_DAY = 86_400_000_000
_YEARS = {
    pa.date32(): _DAYS,
    pa.timestamp("us"): (_DAYS[0] * _DAY, (_DAYS[1] + 1) * _DAY - 1),
}
"""The first and the last value of the years 1 to 9999, in units of the type."""


@dataclass(frozen=True, slots=True)
class ColumnNoise:
    """The noise that is in a released column: one for all rows, or ``of_row`` says which each has."""

    laws: tuple[NoiseSum, ...]
    of_row: npt.NDArray[np.int64] | None = None

    @property
    def even(self) -> bool:
        """Whether all rows have the same noise."""
        return len(self.laws) == 1

    def half_width(self) -> float:
        """Within this of the exact value in 19 of 20 answers, in whatever row."""
        return max(map(_half_width, self.laws))

    def half_widths(self, rows: int) -> npt.NDArray[np.float64]:
        """Within this of the exact value in 19 of 20 answers, row by row."""
        each = np.array([_half_width(law) for law in self.laws])
        return np.full(rows, each[0]) if self.of_row is None else each[self.of_row]

    def sample(self, entropy: Randomness, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Independent draws, one for each of ``rows``, which may be named more than once."""
        if self.of_row is None:
            return self.laws[0].sample(entropy, len(rows))
        which, drawn = self.of_row[rows], np.zeros(len(rows))
        for i in np.unique(which):
            check()
            mine = which == i
            drawn[mine] = self.laws[i].sample(entropy, int(mine.sum()))
        return drawn


def _half_width(law: NoiseSum) -> float:
    """Of one law; rows may have thousands of different ones."""
    check()
    return law.half_width()


@dataclass(frozen=True, slots=True)
class NoisyRows:
    """One measurement's released table, named as the plan names it; rows in key order.

    ``noise`` is what each column but the keys has; None for values that were chosen by rank.
    ``summed`` says that some of it was added up from finer groups, which may be in the answer too.
    """

    name: str
    table: pa.Table
    noise: tuple[ColumnNoise | None, ...]
    summed: bool = False


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of an answer: what the client calls it and what it holds.

    ``type_name`` is the type of a column that is shown as it is: see ``Shape``.
    """

    name: str
    kind: Kind
    type_name: str = ""

    @property
    def type(self) -> str:
        """Its type as a policy would name it."""
        return self.kind.value if self.type_name in ("", WIDE) else self.type_name

    @property
    def arrow(self) -> pa.DataType:
        """Its type in the tables of answers."""
        digits = digits_of(self.type_name)
        if digits is not None:
            return pa.decimal128(*digits)
        return _NAMED.get(self.type_name, ARROW[self.kind])

    def shown(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values of the kind in the column's own type; what that does not hold is NULL.

        Columns of the source hold no such value: their types are no wider than the policy's.
        """
        if column.type == self.arrow:
            return column
        if pa.types.is_float32(self.arrow) or pa.types.is_timestamp(self.arrow):
            return column.cast(self.arrow)
        digits = digits_of(self.type_name)
        if digits is not None:  # what would be rounded up to a digit more is none of them
            most = (10.0 ** digits[0] - 0.5) / 10.0 ** digits[1]
        else:
            most = 1 << (self.arrow.bit_width - 1)
        inside = pc.and_(pc.greater_equal(column, -most), pc.less(column, most))
        return pc.if_else(inside, column, pa.scalar(None, column.type)).cast(self.arrow, safe=False)


@dataclass(frozen=True, slots=True)
class Release:
    """What a face may show. ``intervals`` has a lower and an upper column by position."""

    columns: tuple[OutputColumn, ...]
    table: pa.Table
    intervals: Mapping[int, tuple[pa.Array, pa.Array]] = field(default_factory=dict)


def as_type(column: pa.ChunkedArray, wanted: pa.DataType, *, safe: bool = True) -> pa.ChunkedArray:
    """A column in the type that the plan says; engines give NULLs of no type some type of theirs.

    >>> as_type(pa.chunked_array([[None]], pa.int32()), pa.null()).type
    DataType(null)
    """
    if pa.types.is_null(wanted):
        return pa.chunked_array([pa.nulls(len(column))])
    return column if column.type == wanted else column.cast(wanted, safe=safe)


def in_years(table: pa.Table) -> pa.Table:
    """The table with dates and timestamps of the years 1 to 9999; others are NULL: programs hold none.

    >>> in_years(pa.table({"d": pa.array([0, 10**8, None], pa.date32())}))["d"].null_count
    2
    """
    for position, field_ in enumerate(table.schema):
        ends = _YEARS.get(field_.type)
        if ends is None:
            continue
        column = table.column(position)
        plain = column.cast(pa.int32() if pa.types.is_date32(field_.type) else pa.int64())
        inside = pc.and_(pc.greater_equal(plain, ends[0]), pc.less_equal(plain, ends[1]))
        if pc.all(inside).as_py() is False:
            kept = pc.if_else(inside, column, pa.scalar(None, field_.type))
            table = table.set_column(position, field_, kept)
    return table


def schema(fields: tuple[Column, ...]) -> pa.Schema:
    """The arrow schema of released fields under their generated names."""
    return pa.schema([(alias(f), ARROW[f.shape.kind]) for f in fields])
