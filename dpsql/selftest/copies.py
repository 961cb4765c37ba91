"""Synthetic copies of a policy's schema: many public cells, each a copy of one small scenario.

Nothing is read from the owner's data: columns, types, ranges and keys are the policy's, rows are
made up. Every cell holds its own people; in the neighbour, one of them is missing in every cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dpsql.policy.model import Allowance, Column, Policy, QueryLimit, Role, Table
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.render import literal, quoted

CELLS = 1_000
PARTS = 8
MOST_ROWS = 10
"""Rows of one unit that a copy declares at most: how bounds work does not depend on how many."""
CELL, PART, WORD = "dpsql_cell", "dpsql_part", "dpsql_word"
ROLE, WIDE = "selftest", "selftest_wide"
WIDE_DELTA = 0.02
"""The delta under which groups of unknown keys are tested: a smaller one is never seen to fail."""
_EXTRA = {
    CELL: Column(CELL, "integer", Kind.INTEGER, range=(1, CELLS)),
    PART: Column(PART, "integer", Kind.INTEGER, range=(1, PARTS)),
    WORD: Column(WORD, "text", Kind.TEXT),
}
_BEYOND = {
    Kind.DOUBLE: ("'inf'", "'-inf'", "'nan'", "NULL", "'1e300'", "'-1e300'"),
    Kind.INTEGER: ("2000000000", "-2000000000", "NULL"),
    Kind.TEXT: ("'nobody lists this'", "NULL"),
    Kind.DATE: ("'9999-12-31'", "'0001-01-01'", "NULL"),
    Kind.TIMESTAMP: ("'9999-12-31'", "'0001-01-01'", "NULL"),
    Kind.BOOLEAN: ("NULL", "TRUE"),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one person has in a cell, and how many others are there.

    ``value`` is ``top``, ``low``, or ``beyond`` every declaration; ``many`` rows are twice what
    the policy declares.
    """

    name: str
    value: str
    many: bool
    others: int


SCENARIOS = (
    Scenario("twice the rows allowed", "top", many=True, others=2),
    Scenario("alone in the group", "top", many=False, others=0),
    Scenario("values beyond every bound", "beyond", many=True, others=2),
    Scenario("the lowest values", "low", many=False, others=2),
)


def derived(policy: Policy, place: Path, table: str) -> Policy:
    """The policy over a synthetic file, with budgets that are never used up."""
    tables = {t.name: _table(t) for t in policy.tables.values() if t.unit is not None}
    first = next(iter(policy.roles.values()))
    plenty = Allowance(Fraction(10**8), Fraction(9, 10), "basic")
    pure = all(role.query.delta == 0 for role in policy.roles.values())
    roles = {}
    for name, delta in ((ROLE, Fraction(1, 10**6)), (WIDE, Fraction(WIDE_DELTA))):
        limit = QueryLimit(Fraction(1), Fraction(0) if pure else delta)
        groups = first.max_groups_per_unit if name == ROLE else 1
        roles[name] = Role(name, plenty, plenty, limit, None, groups)
    return replace(
        policy, tables=tables, roles=roles, dataset=plenty, views={}, ledger=place / "ledger.db",
        ledger_server=None, version=f"selftest of {table}",
        source=replace(policy.source, path=place / "data.duckdb"),
        limits=replace(policy.limits, max_cells=100_000),
    )  # fmt: skip


def _table(table: Table) -> Table:
    """With the cell, and without what is read from public tables."""
    columns = {
        name: replace(
            column, values_from=None,
            values=("a", "b") if column.values_from and column.kind is Kind.TEXT else column.values,
        )
        for name, column in table.columns.items()
    }  # fmt: skip
    most = min(table.max_rows_per_unit, MOST_ROWS)
    return replace(
        table, columns=columns | _EXTRA, account=None, max_rows_per_unit=most,
        max_rows_per_group=None if table.max_rows_per_group is None
        else min(table.max_rows_per_group, most),
    )  # fmt: skip


def statements(
    policy: Policy, tested: Table, scenario: Scenario, *, without: bool
) -> Iterator[str]:
    """The tables of one side: the tested one with its scenario, a row for each person in others."""
    rows = 2 * tested.max_rows_per_unit if scenario.many and tested.max_rows_per_unit > 1 else 1
    people = [(p, "mid", 2) for p in range(1, scenario.others + 1)]
    people += [] if without else [(9, scenario.value, rows)]
    listed = ", ".join(f"({p}, '{kind}', {count})" for p, kind, count in people)
    for table in policy.tables.values():
        counts = "n" if table.name == tested.name else "1"
        items = ", ".join(_item(table, c) for c in table.columns.values())
        listing = listed or "(0, 'mid', 0)"
        yield (
            f"CREATE TABLE {quoted(table.name)} AS SELECT {items}"
            f" FROM range(1, {CELLS + 1}) AS r(c), (VALUES {listing}) AS v(p, kind, n),"
            f" range(0, {2 * MOST_ROWS}) AS s(j) WHERE j < least(n, {counts})"
        )


def _item(table: Table, column: Column) -> str:
    """One column of a person's rows."""
    extra = {CELL: "c", PART: f"1 + j % {PARTS}", WORD: "'w' || c"}.get(column.name)
    keys = {*table.key, *table.unit_columns, *(c for k in table.foreign_keys for c in k.columns)}
    if extra is None and column.name in keys:
        number = "c * 1000 + p"
        extra = f"'u' || ({number})" if column.kind is Kind.TEXT else number
    text = extra or _values(column)
    return f"TRY_CAST({text} AS {column.declared.upper()}) AS {quoted(column.name)}"


def _values(column: Column) -> str:
    """A value by the row's kind."""
    low, middle, top = (literal(v, column.kind) for v in _ends(column))
    beyond = _BEYOND[column.kind]
    options = " ".join(f"WHEN {i} THEN CAST({v} AS VARCHAR)" for i, v in enumerate(beyond))
    return (
        f"CASE kind WHEN 'beyond' THEN CASE j % {len(beyond)} {options} END"
        f" WHEN 'top' THEN CAST({top} AS VARCHAR) WHEN 'low' THEN CAST({low} AS VARCHAR)"
        f" ELSE CAST({middle} AS VARCHAR) END"
    )


def _ends(column: Column) -> tuple[Scalar, Scalar, Scalar]:
    """The least value, one between, and the greatest."""
    if column.values:
        return column.values[0], column.values[0], column.values[-1]
    if column.range is not None:
        low, high = column.range
        if isinstance(low, int | Fraction) and isinstance(high, int | Fraction):
            middle = (Fraction(low) + Fraction(high)) / 2
            return low, int(middle) if column.kind is Kind.INTEGER else middle, high
        return low, low, high
    plain: dict[Kind, Scalar] = {Kind.TEXT: "x", Kind.BOOLEAN: True}
    value = plain.get(column.kind, 1)
    return value, value, value
