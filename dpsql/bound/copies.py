"""The contents of a prepared copy of a private table, and the query for its rows."""

from __future__ import annotations

from dataclasses import replace

from dpsql.bound.grid import grid
from dpsql.bound.rows import keep, steps_of
from dpsql.catalog.statistic import Total
from dpsql.ir.domain import Domain, numbers
from dpsql.ir.expressions import Column
from dpsql.ir.relations import Scan
from dpsql.ir.statements import (
    Alias,
    Cast,
    Draw,
    Name,
    Op,
    Rank,
    Read,
    RowValue,
    Select,
    TableRows,
    Term,
)
from dpsql.plan.table_scans import declared_column, scan_owned
from dpsql.policy.model import Column as Declared
from dpsql.policy.model import Table
from dpsql.policy.prepared_copies import RANK, PreparedCopy, Steps, owners
from dpsql.policy.types import Kind

MOST_IN_FOUR_BYTES = 2**31 - 1


def companion(table: Table) -> PreparedCopy:
    """The columns that a copy adds to those of its table: the unit's key and clamped values."""
    steps = {}
    for column in table.columns.values():
        total = total_of(column)
        if total is not None:
            at = grid(total)
            steps[column.name] = Steps(f"dpsql steps {column.name}", at.shift, at.low, at.high)
    return PreparedCopy(owners(table), steps)


def copy_of(table: Table, salt: int) -> TableRows:
    """The rows of a copy, over the tables of the source.

    Claim: the numbers of a unit's rows depend on the salt and on the unit's own rows only.
    Assumes: the hash of the engine is a function of its arguments.
    Argument: rows are ordered within their unit by a hash of the salt and of all columns of the
        copy, and then by these columns and the signs of doubles, since both zeros compare as equal.
        Rows that agree in all of these are identical, so which of them comes first changes nothing
        that can be read.
    """
    scan = scan_owned(table)
    columns = _columns(table, scan)
    rows = Read(scan, tuple((name, term) for name, _, term in columns))
    called = tuple((name, column) for name, column, _ in columns)
    if not scan.unit_fields:
        return TableRows(rows, called)
    names = {column: name for name, column in called}
    owned = tuple(names[name] for name in owners(table))
    doubles = (f for f in scan.fields if f.shape.kind is Kind.DOUBLE)
    order: tuple[Term, ...] = (
        *(Name(names[f.name]) for f in scan.fields),
        *(Op("signbit", (Name(names[f.name]),)) for f in doubles),
    )
    kept = keep(tuple(name for name, _ in called))
    hashed = Select(Alias(rows, "r"), (*kept, ("h", Draw(order, salt))))
    rank = Cast(Rank(tuple(map(Name, owned)), (Name("h"), *order)), "integer")
    ranked = Select(Alias(hashed, "q"), (*kept, ("n", rank)))
    return TableRows(ranked, (*called, ("n", RANK)), (*owned, "n"))


def _columns(table: Table, scan: Scan) -> list[tuple[str, str, Term]]:
    """The columns of the table, the unit's key where another table holds it, and values in steps.

    Each entry has the name in the query, the name in the copy, and the term.
    """
    columns: list[tuple[str, str, Term]] = [
        (f"c{i}", field.name, RowValue(field)) for i, field in enumerate(scan.fields)
    ]
    if table.path:
        held = zip(scan.unit_fields, owners(table), strict=True)
        columns += [(f"u{i}", name, RowValue(field)) for i, (field, name) in enumerate(held)]
    for i, (field, steps) in enumerate(_stepped(table, scan)):
        total = total_of(table.columns[field.name])
        assert total is not None
        narrow = max(abs(steps.low), abs(steps.high)) <= MOST_IN_FOUR_BYTES
        value = replace(steps_of(replace(total, value=field), grid(total)), centre=0)
        columns.append((f"s{i}", steps.name, Cast(value, "integer" if narrow else "bigint")))
    return columns


def _stepped(table: Table, scan: Scan) -> list[tuple[Column, Steps]]:
    steps = companion(table).steps
    return [(f, steps[f.name]) for f in scan.fields if f.name in steps]


def total_of(column: Declared) -> Total | None:
    """The total over a column with a range that means, and sums beside counts, compute.

    The copy holds its clamped values.
    """
    if column.kind not in (Kind.INTEGER, Kind.DOUBLE) or column.range is None:
        return None
    low, high = numbers(Domain(*column.range))
    assert low is not None
    assert high is not None, "a range has both ends"
    return Total(declared_column(0, column), low, high)
