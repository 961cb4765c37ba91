"""Synthetic copies of a policy's schema: many public cells, each a copy of one small scenario.

Nothing is read from the owner's data: columns, types, ranges and keys are those of the policy, and
rows are synthetic. Every cell has its own people. In the neighbouring database, one person is
missing in every cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpsql.engines.duckdb.made_data import (
    CellNumber,
    CellWord,
    Content,
    KeyNumber,
    Level,
    MadeColumn,
    MadeLabels,
    MadeTable,
    One,
    PartNumber,
)
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
from dpsql.selftest.probes import CELL, LOOSE, PART, PARTS, TABLES, UNITS, WORD
from dpsql.selftest.scenarios import OTHERS_PART, Scenario

MOST_ROWS = 4
"""The most rows of one unit that a copy declares; bounding works the same for any number."""
MOST_PER_GROUP = 2
ROLE, WIDE, SEVERAL = "selftest", "selftest_wide", "selftest_several"
WIDE_DELTA = Fraction(1, 50)
"""A delta large enough that its violation can be measured; the delta of ``ROLE`` is realistic."""
TARGET = 100
"""The number of the person missing in the neighbour; for a group, of its first person."""


def derive_policy(policy: Policy, place: Path, cells: int) -> Policy:
    """The policy over a synthetic file, with the probe tables and practically unlimited budgets."""
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
    """The table with few rows of a unit, and without values from public tables."""
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
    """The table with the columns that say which copy of the scenario a row is in."""
    if table.public:
        return table
    extra = {
        CELL: Column(CELL, "integer", Kind.INTEGER, range=(1, cells)),
        PART: Column(PART, "integer", Kind.INTEGER, range=(1, PARTS)),
        WORD: Column(WORD, "text", Kind.TEXT),
    }
    return replace(table, columns={**table.columns, **extra})


def made_tables(
    policy: Policy, scenario: Scenario, texts: Sequence[str], cells: int, *, without: bool
) -> Iterator[MadeTable | MadeLabels]:
    """The tables of one side that the texts name, and the tables on their paths to units."""
    named = [t for t in policy.tables.values() if any(t.name in text for text in texts)]
    names = {key.references for table in named for key in table.path} | {t.name for t in named}
    for table in policy.tables.values():
        if table.name not in names:
            continue
        if table.public:
            yield MadeLabels(table.name, PARTS)
            continue
        assert table.unit is not None
        size = policy.units[table.unit].group_size
        yield _made(table, scenario, 1 if table.name == LOOSE else cells, 0 if without else size)


def _made(table: Table, scenario: Scenario, cells: int, targets: int) -> MadeTable:
    rows = 2 * table.max_rows_per_unit if scenario.many and table.max_rows_per_unit > 1 else 1
    people = [(p, scenario.theirs, 1) for p in range(1, scenario.others + 1)]
    people += [(TARGET + i, scenario.value, rows) for i in range(targets)]
    columns = tuple(
        MadeColumn(name, column.declared, _content(table, column, scenario))
        for name, column in table.columns.items()
    )
    there = tuple(people) or ((0, "middle", 0),)
    return MadeTable(table.name, columns, there, rows, cells, TARGET, scenario.beside)


def _content(table: Table, column: Column, scenario: Scenario) -> Content:
    if column.name == CELL:
        return CellNumber()
    if column.name == PART:
        return PartNumber(scenario.part, OTHERS_PART)
    if column.name == WORD:
        return CellWord(scenario.apart)
    referring = {c for key in table.foreign_keys for c in key.columns}
    if column.name not in {*table.key, *table.unit_columns, *referring}:
        return Level(column.kind, *_ends(column))
    if column.declared == "smallint":
        return One()
    of_unit = column.name in table.unit_columns
    return KeyNumber(column.kind, None if of_unit else 2 * MOST_ROWS, of_unit and scenario.keyless)


def _ends(column: Column) -> tuple[Scalar, Scalar, Scalar]:
    """The least value of a column, one in the middle, and the greatest."""
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
