"""Statements that create tables of made-up rows: many cells, each a copy of the same few rows.

The rows of one cell are written once: the rows ``j`` of persons ``p``, each with a level of values.
Then they are copied to all cells ``c``. Nothing here comes from data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from dpsql.engines.duckdb.constants import literal, quote_name
from dpsql.policy.types import Kind, Scalar

_BEYOND: Mapping[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Kind.DOUBLE: (("'inf'", "'1e300'", "'nan'"), ("'-inf'", "'-1e300'", "NULL")),
    Kind.INTEGER: (("2000000000",), ("-2000000000", "NULL")),
    Kind.TEXT: (("'nobody lists this'",), ("NULL",)),
    Kind.DATE: (("'9999-12-31'",), ("'0001-01-01'", "NULL")),
    Kind.TIMESTAMP: (("'9999-12-31'",), ("'0001-01-01'", "NULL")),
    Kind.BOOLEAN: (("TRUE", "NULL"), ("NULL", "FALSE")),
}
"""For each kind, values above all declared values, and values below them."""
_UNLISTED: Mapping[Kind, str] = {
    Kind.DOUBLE: "j + 1000000.5",
    Kind.INTEGER: "j + 2000000000",
    Kind.TEXT: "'nobody lists ' || j",
    Kind.DATE: "DATE '9000-01-01' + CAST(j AS INTEGER)",
    Kind.TIMESTAMP: "DATE '9000-01-01' + CAST(j AS INTEGER)",
    Kind.BOOLEAN: "j % 2 = 0",
}
"""For each kind, a value that differs from row to row; only truth values are always declared."""


@dataclass(frozen=True, slots=True)
class CellNumber:
    """The number of the row's cell."""


@dataclass(frozen=True, slots=True)
class PartNumber:
    """The part of the cell.

    It is ``own`` in the missing persons' rows (1 to 4 in turn if that is None), else ``others``.
    """

    own: int | None
    others: int


@dataclass(frozen=True, slots=True)
class CellWord:
    """A word for each cell. If ``apart``, the missing persons' rows have another word."""

    apart: bool


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """A number for each person and cell, or with ``rows`` for each of the person's so many rows.

    If ``keyless``, the missing persons' rows have NULL. A key of kind text is a word with the
    number.
    """

    kind: Kind
    rows: int | None
    keyless: bool


@dataclass(frozen=True, slots=True)
class One:
    """The constant 1, for a key column whose type is too small. Another column has the number."""


@dataclass(frozen=True, slots=True)
class Level:
    """A value by the level of the row's person.

    It is ``low``, ``middle``, ``top``, beyond an end, or in each row another one.
    """

    kind: Kind
    low: Scalar
    middle: Scalar
    top: Scalar


Content = CellNumber | PartNumber | CellWord | KeyNumber | One | Level


@dataclass(frozen=True, slots=True)
class MadeColumn:
    """A column of a declared type."""

    name: str
    declared: str
    content: Content


@dataclass(frozen=True, slots=True)
class MadeTable:
    """A table of ``cells`` cells. Each of ``people`` has a number, a level, and a number of rows.

    ``rows`` is the most rows of a person. Persons from ``target`` on are missing in the
    neighbouring table. If ``alternating``, every second cell is without them.
    """

    name: str
    columns: tuple[MadeColumn, ...]
    people: tuple[tuple[int, str, int], ...]
    rows: int
    cells: int
    target: int
    alternating: bool


@dataclass(frozen=True, slots=True)
class MadeLabels:
    """A public table of the numbers up to ``parts``, each with a label."""

    name: str
    parts: int


def write_table(table: MadeTable | MadeLabels) -> str:
    """The statement that creates a table."""
    match table:
        case MadeLabels(name=name, parts=parts):
            return (
                f"CREATE TABLE {quote_name(name)} AS SELECT CAST(i AS INTEGER) AS part,"
                f" 'part ' || i AS label FROM range(1, {parts + 1}) AS r(i)"
            )
        case MadeTable():
            return _copied(table)
        case _:
            assert_never(table)


def _copied(table: MadeTable) -> str:
    """The rows of one cell, copied to all cells."""
    listed = ", ".join(f"({p}, '{level}', {n})" for p, level, n in table.people)
    once = [
        f"{_cast(_level(c.content), c)} AS {quote_name(c.name)}"
        for c in table.columns
        if isinstance(c.content, Level)
    ]
    items = ", ".join(
        quote_name(c.name)
        if isinstance(c.content, Level)
        else f"{_cast(_of_cell(c.content, table.target), c)} AS {quote_name(c.name)}"
        for c in table.columns
    )
    return (
        f"CREATE TABLE {quote_name(table.name)} AS WITH cell AS MATERIALIZED"
        f" (SELECT {', '.join(['p', 'j', *once])} FROM (VALUES {listed}) AS v(p, value, n),"
        f" range(0, {table.rows}) AS s(j) WHERE j < n)"
        f" SELECT {items} FROM range(1, {table.cells + 1}) AS r(c), cell"
        + (f" WHERE p < {table.target} OR c % 2 = 1" if table.alternating else "")
    )


def _cast(text: str, column: MadeColumn) -> str:
    return f"TRY_CAST({text} AS {column.declared.upper()})"


def _of_cell(content: CellNumber | PartNumber | CellWord | KeyNumber | One, target: int) -> str:
    """The text of a column that differs from cell to cell."""
    own = f"p >= {target}"
    match content:
        case CellNumber():
            return "c"
        case PartNumber(own=part, others=others):
            return f"CASE WHEN {own} THEN {'1 + j % 4' if part is None else part} ELSE {others} END"
        case CellWord(apart=apart):
            return f"CASE WHEN {own} THEN 'w' ELSE 'o' END || c" if apart else "'w' || c"
        case One():
            return "1"
        case KeyNumber(kind=kind, rows=rows, keyless=keyless):
            number = "c * 1000 + p"
            if rows is not None:
                number = f"({number}) * {rows} + j"
            elif keyless:
                number = f"CASE WHEN {own} THEN NULL ELSE {number} END"
            return f"'u' || ({number})" if kind is Kind.TEXT else number
        case _:
            assert_never(content)


def _level(content: Level) -> str:
    ends = (content.low, content.middle, content.top)
    low, middle, top = (f"CAST({literal(v, content.kind)} AS VARCHAR)" for v in ends)
    above, below = (_taking_turns(texts) for texts in _BEYOND[content.kind])
    return (
        f"CASE value WHEN 'top' THEN {top} WHEN 'low' THEN {low}"
        f" WHEN 'above' THEN {above} WHEN 'below' THEN {below}"
        f" WHEN 'unlisted' THEN CAST({_UNLISTED[content.kind]} AS VARCHAR) ELSE {middle} END"
    )


def _taking_turns(texts: tuple[str, ...]) -> str:
    whens = " ".join(f"WHEN {i} THEN CAST({t} AS VARCHAR)" for i, t in enumerate(texts))
    return f"CASE j % {len(texts)} {whens} END"
