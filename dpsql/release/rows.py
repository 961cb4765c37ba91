"""Released values and their types: noised, selected and decoded values only."""

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
    """The noise of a released column: one law for all rows, or ``of_row`` gives the law of each."""

    laws: tuple[NoiseSum, ...]
    of_row: npt.NDArray[np.int64] | None = None

    @property
    def even(self) -> bool:
        """Whether all rows have the same noise."""
        return len(self.laws) == 1

    def half_width(self) -> float:
        """The width within which a value of any row is of its exact value in 19 of 20 answers."""
        return max(map(_half_width, self.laws))

    def deviation(self) -> float:
        """The largest standard deviation of the noise of any row."""
        return max(law.standard_deviation() for law in self.laws)

    def half_widths(self, rows: int) -> npt.NDArray[np.float64]:
        """The width within which each row's value is of the exact one in 19 of 20 answers."""
        each = np.array([_half_width(law) for law in self.laws])
        return np.full(rows, each[0]) if self.of_row is None else each[self.of_row]

    def sample(self, entropy: Randomness, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Independent draws, one for each entry of ``rows``; a row may be listed more than once."""
        if self.of_row is None:
            return self.laws[0].sample(entropy, len(rows))
        which, drawn = self.of_row[rows], np.zeros(len(rows))
        for i in np.unique(which):
            check()
            mine = which == i
            drawn[mine] = self.laws[i].sample(entropy, int(mine.sum()))
        return drawn


def _half_width(law: NoiseSum) -> float:
    """The half width of one law. It can be stopped, as rows may have thousands of laws."""
    check()
    return law.half_width()


@dataclass(frozen=True, slots=True)
class NoisyRows:
    """The released table of one measurement, under its name in the plan; rows are in key order.

    ``noise`` has the noise of each column after the keys; None for values that were chosen by rank.
    ``summed``: some numbers were added up from finer groups, which may be in the answer too.
    """

    name: str
    table: pa.Table
    noise: tuple[ColumnNoise | None, ...]
    summed: bool = False


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of an answer: its name for the client, and the kind of its values.

    ``type_name`` is the exact type of a column that is shown unchanged: see ``Shape``.
    """

    name: str
    kind: Kind
    type_name: str = ""

    @property
    def type(self) -> str:
        """The type, as a policy would name it."""
        return self.kind.value if self.type_name in ("", WIDE) else self.type_name

    @property
    def arrow(self) -> pa.DataType:
        """The type in the tables of answers."""
        digits = digits_of(self.type_name)
        if digits is not None:
            return pa.decimal128(*digits)
        return _NAMED.get(self.type_name, ARROW[self.kind])

    def shown(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values of the kind, cast to the column's own type; values outside that type become NULL.

        Columns of the source have no such values, since their types are no wider than the policy's.
        """
        if column.type == self.arrow:
            return column
        if pa.types.is_float32(self.arrow) or pa.types.is_timestamp(self.arrow):
            return column.cast(self.arrow)
        digits = digits_of(self.type_name)
        if digits is not None:  # a value that rounds to one digit more is outside
            most = (10.0 ** digits[0] - 0.5) / 10.0 ** digits[1]
        else:
            most = 1 << (self.arrow.bit_width - 1)
        inside = pc.and_(pc.greater_equal(column, -most), pc.less(column, most))
        return pc.if_else(inside, column, pa.scalar(None, column.type)).cast(self.arrow, safe=False)


@dataclass(frozen=True, slots=True)
class Release:
    """The answer that a face may show; ``intervals`` has both ends, by position of the column.

    ``notes`` follow from released numbers.
    """

    columns: tuple[OutputColumn, ...]
    table: pa.Table
    intervals: Mapping[int, tuple[pa.Array, pa.Array]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def as_type(column: pa.ChunkedArray, wanted: pa.DataType, *, safe: bool = True) -> pa.ChunkedArray:
    """A column in the type that the plan says; engines give untyped NULLs some type of their own.

    >>> as_type(pa.chunked_array([[None]], pa.int32()), pa.null()).type
    DataType(null)
    """
    if pa.types.is_null(wanted):
        return pa.chunked_array([pa.nulls(len(column))])
    return column if column.type == wanted else column.cast(wanted, safe=safe)


def in_years(table: pa.Table) -> pa.Table:
    """The table with dates and timestamps outside the years 1 to 9999 as NULL.

    Clients cannot represent them.

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
