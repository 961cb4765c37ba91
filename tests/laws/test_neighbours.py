"""Removing a unit moves every exact measurement by no more than its priced sensitivity.

For each query of the corpus, each way to bound it, and each family of noise; on data where
declarations are broken in every way that a table can break them. By day every other query.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace

import duckdb
import pytest
from support.corpus import CORPUS, Entry, World, unlimited
from support.corpus import SHOP as SHOP_WORLD
from support.daily import some
from support.datasets import in_memory
from support.measured import broken, constants, every_way, exact, plan_of, removed, request, text_of
from support.neighbours import DIRTY, SHOP, neighbours, shop_units, students

from dpsql.engines.duckdb import relations
from dpsql.engines.engine import Value
from dpsql.ir.relations import Scan
from dpsql.policy import unit_columns
from dpsql.policy.listing import Listing
from dpsql.policy.model import Table, Unit
from dpsql.price.priced import PricedMeasurement


@functools.cache
def _data(name: str) -> duckdb.DuckDBPyConnection:
    return in_memory(name)


def ways(
    sql: str, world: World, groups: int, size: int = 1, family: str = "gaussian"
) -> list[PricedMeasurement]:
    """Both norms are claimed whatever the noise, which decides on the grid alone."""
    return list(every_way(plan_of(sql, world), request(groups, size), (family,)))


@functools.cache
def sound(sql: str, world: World) -> list[PricedMeasurement]:
    """The same of three groups, which several laws are about; no fault is planted where it is planned."""
    return ways(sql, world, 3)


def law(
    parts: list[PricedMeasurement], data: str, deletions: list[tuple[str, ...]],
    values: Mapping[str, Value] | None = None,
) -> list[str]:  # fmt: skip
    """Every claim that some neighbour breaks."""
    connection = _data(data)
    before = exact(connection, parts, values)
    found = []
    for deleted in deletions:
        after = removed(connection, deleted, parts, values)
        for part, one, other in zip(parts, before, after, strict=True):
            found += [
                f"{part.bounding.name} {part.noised[0].noise if part.noised else ''}: {said}"
                f" without {deleted[-1][-40:]}\n{text_of(part)}"
                for said in broken(part, one, other)
            ]
    return found


PRIVATE = [e for e in CORPUS if not e.name.startswith("public")]


@pytest.mark.parametrize("entry", some(PRIVATE, 0, 2), ids=str)
def test_a_unit_moves_measurements_within_their_price(entry: Entry) -> None:
    parts = sound(entry.sql, entry.world)
    data = DIRTY.get(entry.world.data, entry.world.data)
    found = law(parts, data, neighbours(entry.world, entry.sql), constants(entry.sql, entry.world))
    assert not found, found[0]


PAIRED = (
    "SELECT channel, COUNT(*), SUM(amount), AVG(amount) FROM orders GROUP BY channel",
    "SELECT country, COUNT(*), SUM(age), STDDEV(age) FROM customers GROUP BY country",
    "SELECT city, COUNT(*), SUM(age) FROM customers GROUP BY city",
    "SELECT page, COUNT(DISTINCT customer_id) FROM visits GROUP BY page",
    "SELECT placed, COUNT(DISTINCT customer_id), SUM(amount) FROM orders GROUP BY placed",
    "SELECT COUNT(*), SUM(seconds - 3000), AVG(seconds) FROM visits",
    "SELECT COUNT(DISTINCT placed) FROM orders",
    (
        "SELECT channel, SUM(amount, contribution_bounds_per_group => (60, 90)),"
        " AVG(amount, contribution_bounds_per_group => (60, 90)) FROM orders GROUP BY channel"
    ),
    "SELECT COUNT(*, contribution_bounds_per_group => (2, 3)) FROM visits",
    "SELECT SUM(age, contribution_bounds_per_group => (60, 90)) FROM customers",
)


@pytest.mark.parametrize("sql", PAIRED)
def test_a_group_of_two_units_moves_measurements_within_their_price(sql: str) -> None:
    pairs = [shop_units(*p) for p in ((101, 106), (101, 104), (104, 106), (103, 107), (900, 101))]
    found = law(ways(sql, SHOP_WORLD, 2, size=2), "dirty", pairs)
    assert not found, found[0]


@pytest.mark.parametrize("sql", PAIRED)
def test_two_units_move_more_than_one_may(sql: str) -> None:
    """So the law would notice a forgotten group size."""
    pairs = [shop_units(*p) for p in ((101, 106), (104, 105), (1, 2, 3, 4, 5, 106))]
    assert law(ways(sql, SHOP_WORLD, 2), "dirty", pairs)


@pytest.mark.parametrize("entry", some(PRIVATE[::4], 0, 2), ids=str)
def test_so_it_does_where_units_keep_one_group(entry: Entry) -> None:
    parts = ways(entry.sql, entry.world, 1, family="laplace")
    data = DIRTY.get(entry.world.data, entry.world.data)
    found = law(
        parts, data, neighbours(entry.world, entry.sql)[:4], constants(entry.sql, entry.world)
    )
    assert not found, found[0]


@pytest.mark.no_cover  # plans what the first law plans
@pytest.mark.parametrize("entry", PRIVATE[::3], ids=str)
def test_an_empty_table_and_one_unit_are_neighbours(entry: Entry) -> None:
    if entry.world.data != "shop" or entry.world.policy == "rows":
        return
    parts = sound(entry.sql, entry.world)
    connection, values = _data("dirty"), constants(entry.sql, entry.world)
    everyone = tuple(f"DELETE FROM {table}" for table in SHOP)
    none = removed(connection, everyone, parts, values)
    for unit in (101, 104, 106):
        others = tuple(f"{d} WHERE customer_id IS DISTINCT FROM {unit}" for d in everyone)
        alone = removed(connection, others, parts, values)
        for part, before, after in zip(parts, none, alone, strict=True):
            assert list(broken(part, before, after)) == []


@pytest.mark.no_cover  # plans what the first law plans
def test_rows_of_nobody_are_in_no_measurement() -> None:
    """A unit key that is NULL, in the table itself or behind its foreign key, is no unit."""
    connection = _data("dirty")
    nobody = tuple(f"DELETE FROM {table} WHERE customer_id IS NULL" for table in SHOP)
    for entry in PRIVATE[::4]:
        if entry.world.data == "shop" and entry.world.policy != "rows":
            parts, values = sound(entry.sql, entry.world), constants(entry.sql, entry.world)
            without = removed(connection, nobody, parts, values)
            assert without == exact(connection, parts, values), entry.sql


RATED_PAIRS = (
    "SELECT COUNT(*), COUNT(DISTINCT s), AVG(stars) FROM ratings",
    "SELECT device, COUNT(*), SUM(minutes) FROM logins GROUP BY device",
    "SELECT p.year, COUNT(*) FROM ratings AS r JOIN profiles AS p ON p.s = r.s GROUP BY p.year",
)


@pytest.mark.parametrize("sql", RATED_PAIRS)
def test_two_units_without_a_table_are_a_group(sql: str) -> None:
    world = next(e.world for e in CORPUS if e.world.policy == "ratings")
    pairs = [students(*p) for p in ((901, 60), (901, 902), (-1, 20), (55, 56))]
    found = law(ways(sql, world, 2, size=2), "ratings_dirty", pairs)
    assert not found, found[0]


KEYS = {
    "ratings": ("s",), "logins": ("who",), "profiles": ("s",),
    "marks": ("school", "number"), "absences": ("place", "pupil"),
}  # fmt: skip


def nobody() -> tuple[str, ...]:
    """Deletes rows without a key, or with half of one, and replies to them."""
    theirs = "DELETE FROM replies WHERE rating IN (SELECT rating FROM ratings WHERE s IS NULL)"
    return theirs, *(
        f"DELETE FROM {table} WHERE " + " OR ".join(f"{column} IS NULL" for column in key)
        for table, key in KEYS.items()
    )


RATED = [e for e in PRIVATE if e.world.policy == "ratings"]


@pytest.mark.no_cover  # plans what the first law plans
@pytest.mark.parametrize("entry", RATED[::2], ids=str)
def test_so_it_is_where_the_key_stands_on_the_tables(entry: Entry) -> None:
    connection = _data("ratings_dirty")
    parts, values = sound(entry.sql, entry.world), constants(entry.sql, entry.world)
    assert removed(connection, nobody(), parts, values) == exact(connection, parts, values)


def test_rows_of_nobody_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault where statements are written: the condition on the key is left out."""
    plain = relations.Writer._scan

    def forgetful(self: relations.Writer, scan: Scan) -> relations.Block:
        return replace(plain(self, scan), where=())

    connection, (sql, world) = _data("ratings_dirty"), (RATED[0].sql, RATED[0].world)
    monkeypatch.setattr(relations.Writer, "_scan", forgetful)
    parts = ways(sql, world, 3)
    assert removed(connection, nobody(), parts) != exact(connection, parts)


OTHERS = {"ratings": "rating", "logins": "minutes"}


@pytest.mark.parametrize("table", OTHERS)
def test_a_unit_that_is_told_by_another_column_in_one_table_is_noticed(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the law sees a key that is left out of who a unit is, in one of its tables."""
    plain = unit_columns._columns
    sql = f"SELECT COUNT(*) FROM {table}"
    assert not law(ways(sql, RATED[0].world, 3), "ratings_dirty", [students(901)])

    def faulty(where: Table, unit: Unit, listing: Listing) -> tuple[str, ...]:
        return (OTHERS[table],) if where.name == table else plain(where, unit, listing)

    monkeypatch.setattr(unit_columns, "_columns", faulty)
    replies = re.compile(r"  replies:.*?(?=  marks:)", re.DOTALL)
    world = World("ratings", "ratings", lambda text: replies.sub("", unlimited(text)))
    assert law(ways(sql, world, 3), "ratings_dirty", [students(901)])
