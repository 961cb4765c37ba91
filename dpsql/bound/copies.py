"""What a prepared copy of a private table is, and the query that makes it."""

from __future__ import annotations

from dpsql.bound.grid import clamped, grid
from dpsql.catalog.statistic import Total
from dpsql.ir.domain import Domain, numbers
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.relations import Private, Scan
from dpsql.policy.companion import RANK, Companion, Steps, owners
from dpsql.policy.model import Column as Declared
from dpsql.policy.model import Table
from dpsql.policy.types import Kind
from dpsql.sql.blocks import Block, Writer
from dpsql.sql.render import quoted

MOST_IN_FOUR_BYTES = 2**31 - 1


def companion(table: Table) -> Companion:
    """What a copy of a table has beside its columns."""
    steps = {}
    for column in table.columns.values():
        total = total_of(column)
        if total is not None:
            at = grid(total)
            steps[column.name] = Steps(f"dpsql steps {column.name}", at.shift, at.low, at.high)
    return Companion(owners(table), steps)


def copy_of(table: Table, salt: int) -> str:
    """The query that makes a copy, over the tables of the source.

    Claim: the numbers of a unit's rows depend on the salt and on the unit's own rows only.
    Argument: rows are ordered within their unit by a hash of the salt and all columns that the copy
        has, and then by these columns, with the signs of doubles, as both zeros are equal. Rows that
        agree in all of them are the same, so that which comes first changes nothing that can be read.
    """
    fields = tuple(_field(i, c) for i, c in enumerate(table.columns.values()))
    units = _units(table, fields)
    key = tuple(frozenset({f.number}) for f in units)
    assert table.unit is not None
    block = Writer().open(Scan(table, fields, units, Private(table.unit, key, 1)))
    rows = f"SELECT {', '.join(_items(table, block, fields, units))}{block.tail()}"
    if not units:
        return rows
    owned = ", ".join(quoted(name) for name in owners(table))
    columns = [quoted(f.name) for f in fields]
    signs = [f"signbit({quoted(f.name)})" for f in fields if f.shape.kind is Kind.DOUBLE]
    tagged = ", ".join(f"{column} IS NULL, {column}" for column in columns + signs)
    order = ", ".join(("h", *columns, *signs))
    ranked = f"row_number() OVER (PARTITION BY {owned} ORDER BY {order})"
    return (
        f"SELECT * EXCLUDE (h), CAST({ranked} AS INTEGER) AS {quoted(RANK)}"
        f" FROM (SELECT *, hash({tagged}, {salt}) AS h FROM ({rows}) AS r) AS q"
        f" ORDER BY {owned}, {quoted(RANK)}"
    )


def _items(
    table: Table, block: Block, fields: tuple[Column, ...], units: tuple[Column, ...]
) -> list[str]:
    """The columns of the table, then the key of the unit where it is elsewhere, then steps."""
    items = [f"{block.items[f.number]} AS {quoted(f.name)}" for f in fields]
    if table.path:
        held = zip(units, owners(table), strict=True)
        items += [f"{block.items[f.number]} AS {quoted(name)}" for f, name in held]
    for field, steps in _stepped(table, fields):
        total = total_of(table.columns[field.name])
        assert total is not None
        narrow = max(abs(steps.low), abs(steps.high)) <= MOST_IN_FOUR_BYTES
        text = clamped(block.items[field.number], total, grid(total))
        held_as = "INTEGER" if narrow else "BIGINT"
        items.append(f"CAST({text} AS {held_as}) AS {quoted(steps.name)}")
    return items


def _stepped(table: Table, fields: tuple[Column, ...]) -> list[tuple[Column, Steps]]:
    steps = companion(table).steps
    return [(f, steps[f.name]) for f in fields if f.name in steps]


def _units(table: Table, fields: tuple[Column, ...]) -> tuple[Column, ...]:
    own = {f.name: f for f in fields}
    if not table.path:
        return tuple(own[name] for name in table.unit_columns)
    return tuple(
        Column(len(fields) + i, name, Shape(Kind.NULL, False))
        for i, name in enumerate(table.unit_columns)
    )


def total_of(column: Declared) -> Total | None:
    """A total over a column with a range, as means and sums beside counts have it.

    Its clamped values are what the copy holds.
    """
    if column.kind not in (Kind.INTEGER, Kind.DOUBLE) or column.range is None:
        return None
    low, high = numbers(Domain(*column.range))
    assert low is not None
    assert high is not None, "a range has both ends"
    return Total(_field(0, column), low, high)


def _field(number: int, column: Declared) -> Column:
    return Column(number, column.name, Shape(column.kind, column.nullable))
