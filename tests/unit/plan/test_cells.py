"""Public groups: each is listed once, and nobody looks for equal ones where there are none."""

from __future__ import annotations

import duckdb
import pytest
from support.corpus import CORPUS, SHOP
from support.daily import some
from support.measured import plan_of

from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.groups import write_groups
from dpsql.plan.nodes import Cells


def _cells(sql: str) -> Cells:
    (measurement,) = plan_of(sql, SHOP).measurements
    assert measurement.cells is not None
    return measurement.cells


@pytest.mark.parametrize(
    ("keys", "table", "distinct", "count"),
    [
        ("age", "customers", False, 83),
        ("placed", "orders", False, 731),
        ("placed, amount_group", "(SELECT placed, 1 AS amount_group FROM orders) AS o", True, 731),
        ("age % 7", "customers", True, 7),
        ("age, age % 7", "customers", False, 83),
        ("channel", "orders", True, 4),
        ("DATE_TRUNC('day', started)", "visits", True, None),
    ],
)
def test_equal_groups_are_looked_for_only_where_there_may_be_some(
    keys: str, table: str, distinct: bool, count: int | None
) -> None:
    cells = _cells(f"SELECT {keys}, COUNT(*) FROM {table} GROUP BY {keys}")
    assert any(part.distinct for part in cells.groups.parts) == distinct
    assert count in (cells.count, None)


def test_no_group_of_any_plan_is_listed_twice() -> None:
    tried = 0
    with duckdb.connect() as connection:
        for entry in some(CORPUS, 0, 3):
            try:
                plan = plan_of(entry.sql, entry.world)
            except Refused:
                continue
            for measurement in plan.measurements:
                cells = measurement.cells
                if cells is not None and measurement.keys:
                    groups, tables = cells.beside()
                    for name, table in tables.items():
                        connection.register(name, table)
                    listed = connection.execute(write_groups(groups)).fetchall()
                    assert len(listed) == len(set(listed)) == cells.count, cells.groups
                    tried += not any(part.distinct for part in cells.groups.parts)
    assert tried > 10
