"""What queries about declarations find in data that keeps them, and in data that does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.declared import NOBODYS, written

from dpsql.declarations import queries
from dpsql.declarations.left_out import left_out
from dpsql.engines.duckdb.write import write, write_rows
from dpsql.engines.lookups import one_row
from dpsql.ir.statements import Query, TableRows
from dpsql.policy.load import load
from dpsql.policy.model import Policy

MANY = "INSERT INTO orders SELECT 5000 + i, 7, 'm' || i, i FROM range(3) AS r(i)"
OUTSIDE = ("100.5", "-1", "'nan'::DOUBLE", "'infinity'::DOUBLE", "'-infinity'::DOUBLE")


def opened(folder: Path, *changes: str) -> tuple[Policy, duckdb.DuckDBPyConnection]:
    path = written(folder, *changes)
    return load(path), duckdb.connect(str(folder / "small.duckdb"), read_only=True)


def found(connection: duckdb.DuckDBPyConnection, query: Query | TableRows) -> list[tuple[Any, ...]]:
    text = write_rows(query) if isinstance(query, TableRows) else write(query)
    return connection.execute(text).fetchall()


def test_units_over_the_limit_are_found_and_all_their_rows_as_they_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, data = opened(tmp_path, MANY, NOBODYS)
    orders, items = policy.tables["orders"], policy.tables["items"]
    assert found(data, queries.units_over_limit(orders)) == [(7, 6)]
    rows = found(data, queries.over_limit_rows(orders))
    assert [column[0] for column in data.description or ()] == [*orders.columns]
    kept = data.execute("SELECT * FROM orders WHERE person_id = 7 ORDER BY order_id").fetchall()
    assert sorted(rows) == kept
    assert len(kept) == 6
    assert found(data, queries.has_too_many_to_keep(orders)) == []
    monkeypatch.setattr(queries, "MOST_KEPT", 5)
    assert found(data, queries.has_too_many_to_keep(orders)) == [(1,)]
    assert found(data, queries.units_over_limit(items)) == []
    assert found(data, queries.over_limit_rows(items)) == []
    assert found(data, queries.has_too_many_to_keep(items)) == []


def test_nothing_is_looked_up_of_a_view_that_may_hold_other_rows_later(tmp_path: Path) -> None:
    """What one reading of a computed table finds says nothing of the rows that a statement reads."""
    policy, _ = opened(tmp_path)
    asked = {name for name, _ in queries.lookups(policy)}
    assert {"orders", "items"} <= asked
    orders = replace(policy.tables["orders"], computed=True)
    changed = replace(policy, tables={**policy.tables, "orders": orders})
    assert {name for name, _ in queries.lookups(changed)} == asked - {"orders"}


@pytest.mark.parametrize("table", ["orders", "items", "profiles", "notes", "refunds"])
def test_rows_of_nobody_are_found_and_counted(table: str, tmp_path: Path) -> None:
    kept, broken = opened(tmp_path / "kept"), opened(tmp_path / "broken", NOBODYS)
    counts = {"orders": 1, "items": 3, "profiles": 2, "notes": 4, "refunds": 1}
    for (policy, data), count in ((kept, 0), (broken, counts[table])):
        of = policy.tables[table]
        assert found(data, queries.count_unowned_rows(of)) == [(count,)]
        assert bool(found(data, queries.has_unowned_rows(of))) is bool(count)


def test_rows_that_lead_nowhere_are_counted(tmp_path: Path) -> None:
    policy, data = opened(tmp_path, NOBODYS)
    told = {one.said.split(":")[0]: found(data, one.count)[0][0] for one in left_out(policy)}
    assert told["{0} rows of orders have a (person_id) that people lacks"] == 1
    assert told["{0} rows of refunds have a (order_id) that orders lacks"] == 1
    assert told["{0} rows of items have a (country) that countries lacks"] == 0


@pytest.mark.parametrize("value", OUTSIDE)
def test_values_out_of_their_range_are_found(value: str, tmp_path: Path) -> None:
    policy, data = opened(tmp_path, f"UPDATE orders SET amount = {value} WHERE order_id = 10")
    query = queries.values_out_of_range(policy.tables["orders"], "amount")
    assert found(data, query) == [(1,)]


@pytest.mark.parametrize("value", ["0", "100", "NULL", "-0.0::DOUBLE"])
def test_ends_of_a_range_and_null_are_inside(value: str, tmp_path: Path) -> None:
    policy, data = opened(tmp_path, f"UPDATE orders SET amount = {value}, person_id = NULL")
    query = queries.values_out_of_range(policy.tables["orders"], "amount")
    assert found(data, query) == []


def test_values_of_rows_that_nobody_owns_are_looked_at_too(tmp_path: Path) -> None:
    change = "INSERT INTO items VALUES ('nowhere', 'de', 11)"
    policy, data = opened(tmp_path, change)
    query = queries.values_out_of_range(policy.tables["items"], "price")
    assert found(data, query) == [(1,)]


def test_tables_of_many_rows_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, data = opened(tmp_path)
    assert found(data, queries.has_too_many_to_add(policy.tables["people"])) == []
    monkeypatch.setattr(queries, "FEW", 39)
    assert found(data, queries.has_too_many_to_add(policy.tables["people"])) == [(1,)]


def test_of_what_is_found_one_row_is_read(tmp_path: Path) -> None:
    policy, data = opened(tmp_path, "UPDATE orders SET amount = 101")
    query = queries.values_out_of_range(policy.tables["orders"], "amount")
    assert len(found(data, query)) == 120
    assert found(data, one_row(query)) == [(1,)]
