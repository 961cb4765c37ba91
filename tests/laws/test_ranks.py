"""What is read from prepared copies keeps its claim, and the law notices when it does not.

A neighbour has copies of its own, made from its own rows under the same salt.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace

import duckdb
import pytest
from support.corpus import CORPUS, Entry, World
from support.datasets import in_memory
from support.measured import (
    broken,
    constants,
    every_way,
    exact,
    flat,
    opened,
    plan_of,
    request,
    text_of,
    way,
)
from support.neighbours import DIRTY, neighbours

from dpsql.bound import Bounding, PreparedRows, sensitivity
from dpsql.bound.copies import companion, copy_of
from dpsql.catalog.statistic import Values
from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.write import write_rows
from dpsql.policy.model import Policy, Table
from dpsql.policy.prepared_copies import CATALOG, RANK, PreparedCopies, declared_key
from dpsql.price.priced import PricedMeasurement

SALT = 7_001
MARKS = "SELECT school, COUNT(*), AVG(points) FROM marks GROUP BY school"
ORDERS = "SELECT channel, COUNT(*), SUM(amount), AVG(amount) FROM orders GROUP BY channel"
VISITS = "SELECT page, SUM(seconds), MEDIAN(seconds) FROM visits GROUP BY page"


def private(policy: Policy) -> list[Table]:
    return [t for t in policy.tables.values() if not t.public]


def shared(connection: duckdb.DuckDBPyConnection, table: Table) -> bool:
    """Whether two rows have one key."""
    key = ", ".join(map(quote_name, declared_key(table)))
    sql = f"SELECT 1 FROM {quote_name(table.name)} GROUP BY {key} HAVING count(*) > 1"
    return not key or connection.execute(sql).fetchone() is not None


def text_of_copy(table: Table) -> str:
    return flat(write_rows(copy_of(table, SALT)))


@functools.cache
def copied(
    world: World, deleted: tuple[str, ...], change: Callable[[str], str] = str
) -> duckdb.DuckDBPyConnection:
    """The data without some units, beside copies of it; what makes a copy may be changed."""
    connection = in_memory(DIRTY.get(world.data, world.data))
    for deletion in deleted:
        connection.execute(deletion)
    connection.execute(f"ATTACH ':memory:' AS {CATALOG}")
    for table in private(opened(world).policy):
        text = change(text_of_copy(table))
        connection.execute(f"CREATE TABLE {CATALOG}.main.{quote_name(table.name)} AS {text}")
    return connection


@functools.cache
def shelf(world: World) -> PreparedCopies:
    """Copies of everything; keys are those that are unique in data whose declarations are broken."""
    tables = private(opened(world).policy)
    connection = in_memory(DIRTY.get(world.data, world.data))
    keyed = frozenset(t.name for t in tables if not shared(connection, t))
    return PreparedCopies({t.name: companion(t) for t in tables}, keyed)


def ways(sql: str, world: World, groups: int = 3) -> list[PricedMeasurement]:
    wanted = replace(request(groups, 1), shelf=shelf(world))
    return list(every_way(plan_of(sql, world), wanted, ("gaussian",)))


def law(
    parts: list[PricedMeasurement], sql: str, world: World, change: Callable[[str], str] = str
) -> list[str]:
    """Every claim that some neighbour breaks."""
    values = constants(sql, world)
    before = exact(copied(world, (), change), parts, values)
    found = []
    for deleted in neighbours(world, sql):
        after = exact(copied(world, deleted, change), parts, values)
        for part, one, other in zip(parts, before, after, strict=True):
            found += [
                f"{part.bounding.name}: {b}\n{text_of(part)}" for b in broken(part, one, other)
            ]
    return found


READ = [
    e for e in CORPUS if re.search("visits|orders|lineitem|returns", e.sql) and e.world.policy != "rows"
]  # fmt: skip


RATED = [e for e in CORPUS if e.world.policy == "ratings"]
"""Of units without a table."""


@pytest.mark.parametrize("entry", READ[::2] + RATED[::3], ids=str)
def test_a_unit_moves_what_is_read_from_copies_within_its_price(entry: Entry) -> None:
    found = law(ways(entry.sql, entry.world), entry.sql, entry.world)
    assert not found, found[0]


def test_many_statements_are_bounded_by_what_they_read() -> None:
    ranked = [p for e in READ for p in ways(e.sql, e.world) if isinstance(p.bounding, PreparedRows)]
    assert len(ranked) >= 40
    assert all(f"{quote_name(RANK)} <= " in text_of(p) for p in ranked)


def _swap(pattern: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        return re.sub(pattern, new, text)

    return change


STATEMENTS = {
    "no limit on ranks": _swap(r'WHERE t1\."dpsql rank" <= \d+', "WHERE TRUE"),
    "twice the limit": _swap(r'("dpsql rank") <= (\d+)', r"\1 <= 2 * \2"),
}
COPIES = {
    "ranks of all units together": _swap(
        r"row_number\(\) OVER \(PARTITION BY .*? (ORDER BY h, .*?)\) AS INTEGER\)",
        r"row_number() OVER (\1) // 70 AS INTEGER)",
    ),
    "equal ranks": _swap(r"row_number\(\) OVER \(.*?\) AS INTEGER\)", "1 AS INTEGER)"),
    "steps that are finer than said": _swap(r"\* 131072\.0|\* 131072e0", "* 1048576.0"),
}


@pytest.mark.parametrize("fault", STATEMENTS)
def test_a_fault_in_a_statement_is_noticed(fault: str) -> None:
    world = READ[0].world
    parts = [p for p in ways(VISITS, world) if isinstance(p.bounding, PreparedRows)]
    assert law(parts, VISITS, world) == []
    faulty = [replace(way(p), sql=STATEMENTS[fault](text_of(p))) for p in parts]
    assert [text_of(p) for p in faulty] != [text_of(p) for p in parts]
    assert law(faulty, VISITS, world)


@pytest.mark.parametrize("fault", ["ranks of all units together", "equal ranks"])
def test_a_fault_in_a_copy_of_units_without_a_table_is_noticed(fault: str) -> None:
    world = RATED[0].world
    table = opened(world).policy.tables["marks"]
    assert COPIES[fault](text_of_copy(table)) != text_of_copy(table)
    parts = [p for p in ways(MARKS, world) if isinstance(p.bounding, PreparedRows)]
    assert law(parts, MARKS, world) == []
    assert law(parts, MARKS, world, COPIES[fault])


@pytest.mark.parametrize("fault", COPIES)
def test_a_fault_in_a_copy_is_noticed(fault: str) -> None:
    world = READ[0].world
    table = opened(world).policy.tables["orders"]
    assert COPIES[fault](text_of_copy(table)) != text_of_copy(table)
    parts = [p for p in ways(ORDERS, world) if isinstance(p.bounding, PreparedRows)]
    assert law(parts, ORDERS, world) == []
    assert law(parts, ORDERS, world, COPIES[fault])


STRANGE = (
    "INSERT INTO orders BY NAME SELECT 101 AS customer_id, DATE '2024-01-05' AS placed, 5.0 AS amount,"
    " 'channel ' || i AS channel FROM range(70) r(i)"
)
"""A unit with more different values than a list has, none of which is in it."""
DIFFERENT = (
    "SELECT COUNT(DISTINCT channel) FROM orders",
    "SELECT COUNT(DISTINCT channel) FROM orders WHERE channel <> 'web'",
    "SELECT COUNT(DISTINCT (channel, placed)) FROM orders",
    "SELECT COUNT(*) FROM (SELECT DISTINCT channel FROM orders) AS t",
    "SELECT placed, COUNT(DISTINCT channel) FROM orders GROUP BY placed",
    "SELECT amount > 3 AS much, COUNT(DISTINCT channel) FROM orders GROUP BY 1",
)


def strange(sql: str, world: World) -> list[str]:
    """Every claim that such a unit breaks, read from a copy."""
    parts = ways(sql, world)
    assert any(isinstance(part.bounding, PreparedRows) for part in parts)
    gone = "DELETE FROM orders WHERE customer_id = 101"
    before, after = (exact(copied(world, change), parts) for change in ((gone, STRANGE), (gone,)))
    return [
        f"{part.bounding.name}: {said}"
        for part, one, other in zip(parts, before, after, strict=True)
        for said in broken(part, one, other)
    ]


@pytest.mark.parametrize("sql", DIFFERENT)
def test_values_that_nobody_lists_move_no_more_than_is_priced(sql: str) -> None:
    assert strange(sql, READ[0].world) == []


def test_a_copy_that_is_priced_by_listed_values_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: what is declared is taken for all that a unit of a copy can have."""
    real = sensitivity.count_pairs

    def few(statistic: Values, bounding: Bounding) -> int:
        return min(real(statistic, bounding), sensitivity._options(statistic) * bounding.groups)

    monkeypatch.setattr(sensitivity, "count_pairs", few)
    found = [said for sql in DIFFERENT for said in strange(sql, READ[0].world)]
    assert len(found) >= 3
    assert all(said.startswith("prepared rows") for said in found)


def test_others_keep_their_rows_when_a_unit_leaves() -> None:
    """So that a copy is a function of each unit's rows alone, for every salt."""
    world = READ[0].world
    most = opened(world).policy.tables["visits"].max_rows_per_unit
    sql = (
        f'SELECT customer_id, started, seconds, page, "{RANK}" FROM {CATALOG}.visits'
        f' WHERE customer_id <> 104 AND "{RANK}" <= {most} ORDER BY ALL'
    )
    without = copied(world, ("DELETE FROM visits WHERE customer_id = 104",))
    assert copied(world, ()).execute(sql).fetchall() == without.execute(sql).fetchall()
