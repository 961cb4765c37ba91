"""Scans of tables for the queries that the policy alone makes.

A column is read as a value of its declared type, as plans read it, or as it is stored. A scan has
all rows of a table, or only rows that belong to a unit, with the key of the unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dpsql.ir.expressions import Column, Shape
from dpsql.ir.relations import Private, Public, Scan
from dpsql.policy.model import Column as Declared
from dpsql.policy.model import Table
from dpsql.policy.types import Kind


def declared_columns(table: Table) -> tuple[Column, ...]:
    """The listed columns of a table as values of their declared types."""
    return tuple(declared_column(i, column) for i, column in enumerate(table.columns.values()))


def declared_column(number: int, column: Declared) -> Column:
    """A listed column as a value of its declared type."""
    return Column(number, column.name, Shape(column.kind, column.nullable))


def stored_columns(names: Iterable[str], first: int = 0) -> tuple[Column, ...]:
    """Columns as they are stored: no type, so no cast. ``first`` is the number of the first one."""
    return tuple(Column(first + i, name, Shape(Kind.NULL)) for i, name in enumerate(names))


def scan_all(table: Table, fields: tuple[Column, ...]) -> Scan:
    """All rows of a table, also those that belong to no unit."""
    privacy = Public() if table.unit is None else Private(table.unit, (), 1)
    return Scan(replace(table, path=(), unit_columns=()), fields, (), privacy)


def scan_owned(table: Table, others: tuple[Column, ...] = ()) -> Scan:
    """The rows of a private table that belong to a unit, with the key of the unit.

    Its fields are the listed columns and the ``others``, which have higher numbers.
    """
    fields = (*declared_columns(table), *others)
    own = {f.name: f for f in fields[: len(table.columns)]}
    units = tuple(
        Column(len(fields) + i, name, Shape(Kind.NULL, False)) if table.path else own[name]
        for i, name in enumerate(table.unit_columns)
    )
    assert table.unit is not None
    key = tuple(frozenset({f.number}) for f in units)
    return Scan(table, fields, units, Private(table.unit, key, 1))
