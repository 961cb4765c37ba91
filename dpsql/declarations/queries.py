"""Queries about what a table keeps of its policy, and for the rows that are kept where it does not.

They are made of the policy alone, and read a table as plans do: with the same casts, the same path to
the unit, and nothing of rows without one. What they find is for ``engines.upheld`` only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from dpsql.bound.copies import total_of
from dpsql.bound.grid import ends
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.relations import Private, Scan
from dpsql.policy.model import ForeignKey, Policy, Table
from dpsql.policy.types import Kind
from dpsql.policy.version import digest
from dpsql.sql.blocks import Block, Writer
from dpsql.sql.render import double, quoted

FEW = 130_000_000
"""The most rows whose values are added up as doubles: see ``rewrite.shortcut``."""
MOST_KEPT = 1_000_000
"""Rows of units with more of them than declared, that an engine keeps of a table."""


def lookups(policy: Policy) -> Iterator[tuple[str, str]]:
    """Every query that decides how statements are chosen, with its table: the policy alone makes them."""
    for table in policy.tables.values():
        if table.public or policy.limits.strict_timing:
            continue
        if table.max_rows_per_unit > 1:  # else it is verified, or a row is a unit
            yield table.name, too_many(table)
        if table.path:
            yield table.name, unowned(table)
        yield table.name, many(table)
        for column in table.columns.values():
            if total_of(column) is not None:
                yield table.name, beyond(table, column.name)


def too_many(table: Table) -> str:
    """A query that has a row if a unit has more rows than declared."""
    return f"SELECT 1 AS v FROM ({over_limit(table)}) AS b LIMIT 1"


def crowded(table: Table) -> str:
    """A query that has a row if units with more rows than declared have too many to be kept."""
    return f"SELECT 1 AS v FROM ({over_limit(table)}) AS b HAVING sum(n) > {MOST_KEPT}"


def unowned(table: Table) -> str:
    """A query that has a row if the path leads some row to no unit."""
    return (
        f"SELECT 1 AS v FROM ({owned(table)}) AS b"
        f" WHERE n <> (SELECT count(*) FROM {quoted(table.name)})"
    )


def owned(table: Table) -> str:
    """A query whose one row is the number of rows that have a unit."""
    block, _ = _rows(table)
    return f"SELECT count(*) AS n{block.tail()}"


def heavy(table: Table) -> tuple[str, str]:
    """A name, and a query for all rows of units with more rows than declared."""
    block, units = _rows(table)
    key = [block.items[f.number] for f in units]
    own, other = ", ".join(key), ", ".join(f"u{i}" for i in range(len(key)))
    if len(key) > 1:
        own, other = f"row({own})", f"row({other})"
    path = table.path[0].columns if table.path else table.unit_columns
    names = dict.fromkeys([*table.columns, *path])
    sql = (
        f"SELECT {', '.join(f't1.{quoted(n)}' for n in names)}{block.tail()}"
        f" AND {own} IN (SELECT {other} FROM ({over_limit(table)}) AS b)"
    )
    return f"{table.name} {digest([sql])}", sql


def over_limit(table: Table) -> str:
    """Units with more rows than declared, and how many."""
    block, units = _rows(table)
    key = [block.items[f.number] for f in units]
    named = ", ".join(f"{text} AS u{i}" for i, text in enumerate(key))
    return (
        f"SELECT {named}, count(*) AS n{block.tail()} GROUP BY {', '.join(key)}"
        f" HAVING count(*) > {table.max_rows_per_unit}"
    )


def find_other_units(table: Table, key: ForeignKey, target: Table) -> str:
    """The units of rows that a foreign key pairs, where they are different ones."""
    own, other = _keyed(table, key.columns), _keyed(target, key.key)
    paired = " AND ".join(f"a.k{i} = b.k{i}" for i in range(len(key.columns)))
    differ = " OR ".join(f"a.u{i} <> b.u{i}" for i in range(len(table.unit_columns)))
    units = ", ".join(f"a.u{i} AS u{i}" for i in range(len(table.unit_columns)))
    return f"SELECT {units} FROM ({own}) AS a JOIN ({other}) AS b ON {paired} WHERE {differ}"


def _keyed(table: Table, columns: tuple[str, ...]) -> str:
    """Columns of the rows of a table, with the key of their unit."""
    block, units = _rows(table)
    numbers = {f.name: f.number for f in _fields(table)}
    items = [f"{block.items[numbers[name]]} AS k{i}" for i, name in enumerate(columns)]
    items += [f"{block.items[f.number]} AS u{i}" for i, f in enumerate(units)]
    return f"SELECT {', '.join(items)}{block.tail()}"


def beyond(table: Table, column: str) -> str:
    """A query that has a row if a value of the column is outside its declared range."""
    declared = total_of(table.columns[column])
    assert declared is not None, "it has a range"
    if table.columns[column].kind is Kind.INTEGER:
        low, high = str(math.ceil(declared.low)), str(math.floor(declared.high))
    else:
        low, high = (double(Fraction(end)) for end in ends(declared))
    items, tail = _alone(table)
    value = items[column]
    return f"SELECT 1 AS v{tail} WHERE NOT ({value} >= {low} AND {value} <= {high}) LIMIT 1"


def many(table: Table) -> str:
    """A query that has a row if the table has more rows than are added up as doubles."""
    return f"SELECT 1 AS v FROM {quoted(table.name)} HAVING count(*) > {FEW}"


def _alone(table: Table) -> tuple[Mapping[str, str], str]:
    """All rows of a table, with those that nobody owns: its columns, and where they are from."""
    block, _ = _rows(replace(table, path=(), unit_columns=()))
    return {f.name: block.items[f.number] for f in _fields(table)}, block.tail()


def _rows(table: Table) -> tuple[Block, tuple[Column, ...]]:
    """The rows of a table with the key of their unit, as plans read them."""
    fields = _fields(table)
    own = {f.name: f for f in fields}
    units = tuple(
        Column(len(fields) + i, name, Shape(Kind.NULL, False)) if table.path else own[name]
        for i, name in enumerate(table.unit_columns)
    )
    assert table.unit is not None
    key = tuple(frozenset({f.number}) for f in units)
    return Writer().open(Scan(table, fields, units, Private(table.unit, key, 1))), units


def _fields(table: Table) -> tuple[Column, ...]:
    return tuple(
        Column(i, c.name, Shape(c.kind, c.nullable)) for i, c in enumerate(table.columns.values())
    )
