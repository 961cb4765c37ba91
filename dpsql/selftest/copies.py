"""Synthetic copies of a policy's schema: many public cells, each a copy of one small scenario.

Nothing is read from the owner's data: columns, types, ranges and keys are the policy's, rows are
made up. Every cell holds its own people; in the neighbour, one of them is missing in every cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpsql.engines.duckdb.constants import literal, quoted
from dpsql.policy.model import (
    Allowance,
    Column,
    LedgerKeeping,
    Policy,
    QueryLimit,
    Role,
    Table,
)
from dpsql.policy.types import Kind, Scalar
from dpsql.selftest.probes import CELL, KINDS, LOOSE, PART, PARTS, TABLES, UNITS, WORD
from dpsql.selftest.scenarios import OTHERS_PART, Scenario

MOST_ROWS = 4
"""Rows of one unit that a copy declares at most: how bounds work does not depend on how many."""
MOST_PER_GROUP = 2
ROLE, WIDE, SEVERAL = "selftest", "selftest_wide", "selftest_several"
WIDE_DELTA = Fraction(1, 50)
"""A delta that can be seen to fail; that of ``ROLE`` is as small as those of real roles."""
TARGET = 100
"""The number of the person that is missing in the neighbour; with a group, of the first of it."""
_BEYOND: Mapping[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Kind.DOUBLE: (("'inf'", "'1e300'", "'nan'"), ("'-inf'", "'-1e300'", "NULL")),
    Kind.INTEGER: (("2000000000",), ("-2000000000", "NULL")),
    Kind.TEXT: (("'nobody lists this'",), ("NULL",)),
    Kind.DATE: (("'9999-12-31'",), ("'0001-01-01'", "NULL")),
    Kind.TIMESTAMP: (("'9999-12-31'",), ("'0001-01-01'", "NULL")),
    Kind.BOOLEAN: (("TRUE", "NULL"), ("NULL", "FALSE")),
}


def derive_policy(policy: Policy, place: Path, cells: int) -> Policy:
    """The policy over a synthetic file, with the probes, and budgets that are never used up."""
    first = next(iter(policy.roles.values()))
    private = {t.name: _table(t, cells) for t in policy.tables.values() if t.unit is not None}
    plenty = Allowance(Fraction(10**8), Fraction(9, 10), "basic", "day")
    roles = {}
    for name, delta, groups in (
        (ROLE, Fraction(1, 10**6), first.max_groups_per_unit),
        (WIDE, WIDE_DELTA, 1),
        (SEVERAL, WIDE_DELTA, 3),
    ):
        limit = QueryLimit(Fraction(1), delta)
        roles[name] = Role(name, plenty, plenty, limit, None, groups)
    return replace(
        policy, tables=private | {t.name: _celled(t, cells) for t in TABLES}, roles=roles,
        units={**policy.units, **UNITS}, dataset=plenty, views={}, latency=None,
        ledger=place / "ledger.db", ledger_server=None, ledger_keeping=LedgerKeeping(), version="selftest",
        source=replace(policy.source, path=place / "data.duckdb"),
        limits=replace(policy.limits, max_cells=2 * PARTS * cells, threads=1),
    )  # fmt: skip


def _table(table: Table, cells: int) -> Table:
    """With few rows of a unit, and without what is read from public tables."""
    columns = {
        name: replace(
            column, values_from=None,
            values=("a", "b") if column.values_from and column.kind is Kind.TEXT else column.values,
        )
        for name, column in table.columns.items()
    }  # fmt: skip
    most, fewer = min(table.max_rows_per_unit, MOST_ROWS), table.max_rows_per_group
    if fewer is not None:
        fewer = min(fewer, MOST_PER_GROUP if fewer < table.max_rows_per_unit else most)
    table = replace(table, columns=columns, account=None, max_rows_per_group=fewer)
    return _celled(replace(table, max_rows_per_unit=most), cells)


def _celled(table: Table, cells: int) -> Table:
    """With the columns that say which copy of the scenario a row is in."""
    if table.public:
        return table
    extra = {
        CELL: Column(CELL, "integer", Kind.INTEGER, range=(1, cells)),
        PART: Column(PART, "integer", Kind.INTEGER, range=(1, PARTS)),
        WORD: Column(WORD, "text", Kind.TEXT),
    }
    return replace(table, columns={**table.columns, **extra})


def statements(
    policy: Policy, scenario: Scenario, texts: Sequence[str], cells: int, *, without: bool
) -> Iterator[str]:
    """The tables of one side that these texts name, and those that lead from them to units."""
    named = [t for t in policy.tables.values() if any(t.name in text for text in texts)]
    names = {key.references for table in named for key in table.path} | {t.name for t in named}
    for table in policy.tables.values():
        if table.name not in names:
            continue
        if table.public:
            yield f"CREATE TABLE {quoted(table.name)} AS {KINDS}"
            continue
        assert table.unit is not None
        size = policy.units[table.unit].group_size
        yield _made(table, scenario, 1 if table.name == LOOSE else cells, 0 if without else size)


def _made(table: Table, scenario: Scenario, cells: int, targets: int) -> str:
    """A table: the rows of one cell are written once, and then copied to all cells."""
    rows = 2 * table.max_rows_per_unit if scenario.many and table.max_rows_per_unit > 1 else 1
    people = [(p, scenario.theirs, 1) for p in range(1, scenario.others + 1)]
    people += [(TARGET + i, scenario.value, rows) for i in range(targets)]
    listed = ", ".join(f"({p}, '{value}', {n})" for p, value, n in people or [(0, "middle", 0)])
    named = {name: _cellwise(table, c, scenario) for name, c in table.columns.items()}
    once = [
        f"{_typed(_values(c), c)} AS {quoted(name)}"
        for name, c in table.columns.items()
        if named[name] is None
    ]
    items = ", ".join(
        quoted(name) if text is None else f"{_typed(text, table.columns[name])} AS {quoted(name)}"
        for name, text in named.items()
    )
    return (
        f"CREATE TABLE {quoted(table.name)} AS WITH cell AS MATERIALIZED"
        f" (SELECT {', '.join(['p', 'j', *once])} FROM (VALUES {listed}) AS v(p, value, n),"
        f" range(0, {rows}) AS s(j) WHERE j < n)"
        f" SELECT {items} FROM range(1, {cells + 1}) AS r(c), cell"
        + (f" WHERE p < {TARGET} OR c % 2 = 1" if scenario.beside else "")
    )


def _typed(text: str, column: Column) -> str:
    return f"TRY_CAST({text} AS {column.declared.upper()})"


def _cellwise(table: Table, column: Column, scenario: Scenario) -> str | None:
    """What differs from cell to cell; None for the rest."""
    own = f"p >= {TARGET}"
    if column.name == CELL:
        return "c"
    if column.name == PART:
        return f"CASE WHEN {own} THEN {scenario.part('j')} ELSE {OTHERS_PART} END"
    if column.name == WORD:
        return f"CASE WHEN {own} THEN 'w' ELSE 'o' END || c" if scenario.apart else "'w' || c"
    referring = {c for key in table.foreign_keys for c in key.columns}
    if column.name not in {*table.key, *table.unit_columns, *referring}:
        return None
    if column.declared == "smallint":
        return "1"  # too small for a number of its own: another column of the key has one
    number = "c * 1000 + p"
    if column.name not in table.unit_columns:
        number = f"({number}) * {2 * MOST_ROWS} + j"
    elif scenario.keyless:
        number = f"CASE WHEN {own} THEN NULL ELSE {number} END"
    return f"'u' || ({number})" if column.kind is Kind.TEXT else number


def _values(column: Column) -> str:
    """A value by what the row's person has."""
    low, middle, top = (f"CAST({literal(v, column.kind)} AS VARCHAR)" for v in _ends(column))
    above, below = (_taking_turns(texts) for texts in _BEYOND[column.kind])
    return (
        f"CASE value WHEN 'top' THEN {top} WHEN 'low' THEN {low}"
        f" WHEN 'above' THEN {above} WHEN 'below' THEN {below} ELSE {middle} END"
    )


def _taking_turns(texts: tuple[str, ...]) -> str:
    whens = " ".join(f"WHEN {i} THEN CAST({t} AS VARCHAR)" for i, t in enumerate(texts))
    return f"CASE j % {len(texts)} {whens} END"


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
    if column.kind is Kind.BOOLEAN:
        return False, False, True
    value: Scalar = "x" if column.kind is Kind.TEXT else 1
    return value, value, value
