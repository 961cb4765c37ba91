"""Queries that tell whether a table keeps its declarations, and for the rows of units that do not.

They are made of the policy alone. They read a table as plans do: with the same casts and the same
path to the unit, and without rows that have no unit. What they find is for
``engines.statement_chooser`` only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from dpsql.bound.copies import total_of
from dpsql.bound.grid import grid_ends
from dpsql.bound.rows import FEW, keep
from dpsql.ir.expressions import Call, Column, Expression, Literal, Shape, integer
from dpsql.ir.relations import Filter, Scan
from dpsql.ir.statements import (
    Alias,
    Cast,
    Fold,
    Items,
    JoinUsing,
    Name,
    Number,
    Op,
    Query,
    Read,
    RowValue,
    Select,
    TableRows,
    Term,
    UnionAll,
)
from dpsql.plan.table_scans import declared_columns, scan_all, scan_owned, stored_columns
from dpsql.policy.model import ForeignKey, Policy, Table
from dpsql.policy.types import Kind

MOST_KEPT = 1_000_000
"""The most rows of units above the limit on rows that an engine keeps of one table."""
ONE: Items = (("v", Number(1)),)
"""The columns of a query that only tells whether there is a row."""


def lookups(policy: Policy) -> Iterator[tuple[str, Query]]:
    """Every query that decides how statements are chosen, with its table."""
    for table in policy.tables.values():
        if table.public or table.computed or policy.limits.strict_timing:
            continue  # the rows of a computed table may be other ones when a statement reads them
        if table.max_rows_per_unit > 1:  # else it is verified, or a row is a unit
            yield table.name, units_over_limit(table)
        if table.path:
            yield table.name, has_unowned_rows(table)
        yield table.name, has_too_many_to_add(table)
        for column in table.columns.values():
            if total_of(column) is not None:
                yield table.name, values_out_of_range(table, column.name)


def units_over_limit(table: Table) -> Query:
    """Units with more rows than declared (``u0`` and so on), and their numbers of rows (``n``)."""
    scan = scan_owned(table)
    units = _units(scan)
    names = tuple(name for name, _ in units)
    return Select(
        Alias(Read(scan, units), "r"),
        (*keep(names), ("n", Fold("count"))),
        group=names,
        having=Op(">", (Fold("count"), Number(table.max_rows_per_unit))),
    )


def has_too_many_to_keep(table: Table) -> Query:
    """One row if units with more rows than declared have too many to be kept."""
    too_many = Op(">", (Fold("sum", Name("n")), Number(MOST_KEPT)))
    return Select(Alias(units_over_limit(table), "b"), ONE, having=too_many)


def over_limit_rows(table: Table) -> TableRows:
    """All rows of units with more rows than declared, as they are stored."""
    path = table.path[0].columns if table.path else table.unit_columns
    stored = stored_columns(dict.fromkeys([*table.columns, *path]), len(table.columns))
    scan = scan_owned(table, stored)
    columns = tuple((f"c{i}", RowValue(column)) for i, column in enumerate(stored))
    units = _units(scan)
    rows = JoinUsing(
        "semi",
        Alias(Read(scan, (*columns, *units)), "r"),
        Alias(units_over_limit(table), "b"),
        tuple(name for name, _ in units),
    )
    names = tuple(name for name, _ in columns)
    pairs = zip(names, (column.name for column in stored), strict=True)
    return TableRows(Select(rows, keep(names)), tuple(pairs))


def has_unowned_rows(table: Table) -> Query:
    """One row if the path leads some row to no unit."""
    some = Op("<>", (Name("n"), Number(0)))
    return Select(Alias(count_unowned_rows(table), "b"), ONE, where=(some,))


def count_unowned_rows(table: Table) -> Query:
    """The number of rows without a unit: all rows less those that have one."""
    everybody = count_rows(scan_all(table, ()))
    owned = count_rows(scan_owned(table))
    less = Select(Alias(owned, "b"), (("n", Op("negative", (Name("n"),))),))
    both = Alias(UnionAll((everybody, less)), "b")
    return Select(both, (("n", Cast(Fold("sum", Name("n")), "bigint")),))


def count_rows(scan: Scan) -> Query:
    """The number of rows that are scanned (``n``)."""
    return Select(Alias(Read(scan, ()), "r"), (("n", Fold("count")),))


def values_out_of_range(table: Table, column: str) -> Query:
    """A row for each value of the column that is not in its declared range."""
    declared = total_of(table.columns[column])
    assert declared is not None, "it has a range"
    low: Expression
    high: Expression
    if table.columns[column].kind is Kind.INTEGER:
        low, high = integer(math.ceil(declared.low)), integer(math.floor(declared.high))
    else:
        shape = Shape(Kind.DOUBLE, False)
        low, high = (Literal(Fraction(end), shape) for end in grid_ends(declared))
    scan = scan_all(table, declared_columns(table))
    (value,) = (field for field in scan.fields if field.name == column)
    inside = _truth("and", _truth("ge", value, low), _truth("le", value, high))
    outside = Filter(scan, _truth("not", inside), scan.fields, scan.privacy)
    return Read(outside, ONE)


def _truth(function: str, *args: Expression) -> Expression:
    return Call(function, args, Shape(Kind.BOOLEAN))


def has_too_many_to_add(table: Table) -> Query:
    """One row if the table has too many rows for their values to be added up as doubles."""
    too_many = Op(">", (Fold("count"), Number(FEW)))
    return Select(Alias(Read(scan_all(table, ()), ()), "r"), ONE, having=too_many)


def find_other_units(table: Table, key: ForeignKey, target: Table) -> Query:
    """The units of rows of ``table`` whose foreign key leads to a row of another unit."""
    own, other = _read_keys(table, key.columns), _read_keys(target, key.key)
    using = tuple(f"k{i}" for i in range(len(key.columns)))
    units = tuple(f"u{i}" for i in range(len(table.unit_columns)))
    differ = tuple(Op("<>", (Name(unit, "a"), Name(unit, "b"))) for unit in units)
    return Select(
        JoinUsing("inner", Alias(own, "a"), Alias(other, "b"), using),
        tuple((unit, Name(unit, "a")) for unit in units),
        where=(Op("or", differ),),
    )


def _read_keys(table: Table, columns: tuple[str, ...]) -> Query:
    """Columns of the rows of a table, with the key of their unit."""
    scan = scan_owned(table)
    return Read(scan, (*key_items(scan.fields, columns), *_units(scan)))


def key_items(fields: tuple[Column, ...], columns: tuple[str, ...]) -> Items:
    """Columns of a scan by their names, as ``k0`` and so on."""
    by_name = {field.name: field for field in fields}
    return tuple((f"k{i}", RowValue(by_name[name])) for i, name in enumerate(columns))


def _units(scan: Scan) -> Items:
    return tuple((f"u{i}", RowValue(field)) for i, field in enumerate(scan.unit_fields))


def sum_or_zero(name: str, where: Term | None = None) -> Term:
    """The sum of a column, zero where there are no rows."""
    return Cast(Op("coalesce", (Fold("sum", Name(name), where), Number(0))), "bigint")
