"""Answers as rows, and whether two of them are the same."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal

import pyarrow as pa

Row = tuple[object, ...]
RELATIVE, ABSOLUTE = 2e-6, 1e-3
"""What rounding to the grid and noise at epsilon 1e9 may do to a number that is not whole."""
_WHOLE_UP_TO = 10**9


def rows(table: pa.Table) -> list[Row]:
    """The rows with whole numbers as int and all others as float."""
    return [
        tuple(_plain(v) for v in row)
        for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
    ]


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def kind(column: pa.DataType) -> str:
    """A type as far as it is promised: whole, real, text, date, time, truth; lists of these."""
    if pa.types.is_dictionary(column):  # an enumeration, which is read as text
        return kind(column.value_type)
    if pa.types.is_list(column):
        return f"list of {kind(column.value_type)}"
    if pa.types.is_integer(column) or (pa.types.is_decimal(column) and column.scale == 0):
        return "whole"
    if pa.types.is_floating(column) or pa.types.is_decimal(column):
        return "real"
    if pa.types.is_string(column) or pa.types.is_large_string(column):
        return "text"
    return "time" if pa.types.is_timestamp(column) else str(column)


def close(mine: object, other: object) -> bool:
    """Whether two values are one, up to what the grid and tiny noise do."""
    if isinstance(mine, bool) or isinstance(other, bool):
        return mine is other
    if isinstance(mine, int) and isinstance(other, int) and abs(other) < _WHOLE_UP_TO:
        return mine == other
    if isinstance(mine, int | float) and isinstance(other, int | float):
        return math.isclose(mine, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return mine == other


def _approximate(value: object) -> bool:
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _WHOLE_UP_TO
    )


def _by_exact(found: Iterable[Row]) -> dict[Row, list[Row]]:
    """Rows by the values that must agree exactly."""
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in found:
        groups[tuple("?" if _approximate(v) else v for v in row)].append(row)
    return groups


def difference(mine: Sequence[Row], other: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows that only one of the two has: mine, then the other's."""
    theirs = _by_exact(other)
    extra: list[Row] = []
    for row in sorted(mine, key=repr):
        key = tuple("?" if _approximate(v) else v for v in row)
        same = next((r for r in theirs[key] if _all_close(row, r)), None)
        if same is None:
            extra.append(row)
        else:
            theirs[key].remove(same)
    return extra, [r for group in theirs.values() for r in group]


def _all_close(mine: Row, other: Row) -> bool:
    return len(mine) == len(other) and all(map(close, mine, other))
