"""Where the data keeps what is declared, statements without weights give the same integers."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb
import pytest
from support.corpus import CORPUS, Entry, World
from support.corpus import SHOP as SHOP_WORLD
from support.daily import some
from support.datasets import in_memory
from support.measured import (
    alternatives,
    constants,
    every_way,
    exact,
    flat,
    instead,
    opened,
    plan_of,
    request,
    text_of,
    way,
)
from support.services import service

from dpsql.bound.rows import FEW, LARGEST
from dpsql.diagnostics.refusal import DataBreaksPolicy, EngineFailed
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.duckdb.write import write, write_rows
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.engines.statement_chooser import StatementChooser
from dpsql.engines.verify import look_up, verify
from dpsql.ir.alternatives import OverLimitRowsKept
from dpsql.ir.expressions import Call, Shape
from dpsql.ir.relations import Filter, Scan
from dpsql.ir.statements import Query, TableRows
from dpsql.policy.prepared_copies import OVER_LIMIT_CATALOG
from dpsql.policy.source import SourceDescription
from dpsql.policy.types import Kind
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.statement import statement_of

TABLES = {
    "shop": ("customers", "orders", "visits"),
    "trade": ("orders", "lineitem"),
    "ratings": ("ratings", "replies"),
}
MANY_ORDERS = "INSERT INTO orders SELECT o.* FROM orders AS o, range(3) WHERE customer_id = 97"
MANY_VISITS = "INSERT INTO visits SELECT v.* FROM visits AS v, range(3) WHERE customer_id = 199"
TWICE = "INSERT INTO customers SELECT * FROM customers WHERE customer_id % 2 = 0"
NOBODYS = "INSERT INTO orders SELECT * REPLACE (NULL AS customer_id) FROM orders LIMIT 5"
STRANGERS = "INSERT INTO orders SELECT * REPLACE (123456 AS customer_id) FROM orders LIMIT 5"
MANY_LINES = (
    "INSERT INTO lineitem SELECT l.* REPLACE ((line + 7 * i)::SMALLINT AS line)"
    " FROM lineitem AS l, range(1, 101) AS r(i) WHERE order_id = 7"
)
ORDER_TWICE = "INSERT INTO orders SELECT * FROM orders WHERE order_id = 7"
NO_ORDER = "INSERT INTO lineitem SELECT * REPLACE (-5 AS order_id) FROM lineitem LIMIT 4"
BEYOND = "UPDATE orders SET amount = amount * 1000 WHERE customer_id = 97"
BELOW = "UPDATE orders SET amount = -5 WHERE customer_id = 97"
NAN = "UPDATE orders SET amount = 'nan' WHERE customer_id = 97"
INFINITE = "UPDATE orders SET amount = 'infinity' WHERE customer_id = 97"
NO_CUSTOMER = "UPDATE orders SET customer_number = NULL WHERE order_id = 7"
MANY_RATINGS = "INSERT INTO ratings SELECT 100000 + i, 20, 'drama', 5, 20, DATE '2024-01-01' FROM range(100) AS r(i)"
RATING_TWICE = "INSERT INTO ratings SELECT rating, 21, course, stars, hours, day FROM ratings WHERE rating = 2000"
NO_STUDENT = "UPDATE ratings SET s = NULL WHERE s = 20"
CASES = [
    ("oracle", "shop", ""), ("oracle", "shop", MANY_ORDERS), ("oracle", "shop", MANY_VISITS),
    ("oracle", "shop", NOBODYS), ("oracle", "shop", STRANGERS),
    ("oracle", "shop", BEYOND), ("oracle", "shop", BELOW), ("oracle", "shop", NAN),
    ("oracle", "shop", INFINITE),
    ("far", "trade", ""), ("far", "trade", MANY_LINES), ("far", "trade", NO_ORDER),
    ("far", "trade", NO_CUSTOMER),
    ("ratings", "ratings", ""), ("ratings", "ratings", MANY_RATINGS),
    ("ratings", "ratings", NO_STUDENT),
]  # fmt: skip
REFUSED = [
    ("oracle", "shop", TWICE), ("far", "trade", ORDER_TWICE), ("ratings", "ratings", RATING_TWICE),
]  # fmt: skip
"""Data that breaks a declaration that is verified: no statement is chosen for it."""
FAULTS = [*REFUSED, *(case for case in CASES if case[2] not in ("", NOBODYS, STRANGERS))]
"""Rows whose unit is in the table itself are left out, or not, by both statements."""


class Rows:
    """What looks up declarations in a connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection, self.asked, self.kept = connection, list[str](), list[str]()

    def is_empty(self, query: Query | str) -> bool:
        self.asked.append(query if isinstance(query, str) else write(query))
        return not self.connection.execute(self.asked[-1]).fetchall()

    def largest(self, query: Query) -> int:
        self.asked.append(write(query))
        return int(self.connection.execute(self.asked[-1]).fetchall()[0][0])

    def keep(self, name: str, table: str, rows: TableRows) -> bool:
        self.connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {OVER_LIMIT_CATALOG}")
        self.connection.execute(f'CREATE TABLE {OVER_LIMIT_CATALOG}."{name}" AS {write_rows(rows)}')
        self.kept.append(name)
        return True


class Chooser:
    """What runs for measurements of a world over some data."""

    def __init__(self, world: World, rows: Rows) -> None:
        policy = opened(world).policy
        self.chooser = StatementChooser(policy, look_up(policy, rows))

    def statement(self, part: PricedMeasurement) -> str:
        statement = statement_of(part)
        chosen = self.chooser.choose(statement)
        return flat(write(statement.relation if chosen is None else chosen.relation))


def ways(entry: Entry) -> Iterator[PricedMeasurement]:
    yield from every_way(plan_of(entry.sql, entry.world), request(3, 1), ("laplace",))


@functools.cache
def shortened(policy: str) -> Sequence[tuple[Entry, PricedMeasurement]]:
    """What could be asked without weights, of all queries of the corpus."""
    mine = [e for e in CORPUS if e.world.policy == policy]
    return [(e, p) for e in mine for p in ways(e) if alternatives(p)]


def broken(data: str, change: str) -> duckdb.DuckDBPyConnection:
    """The data with a change that its constraints would not allow."""
    connection = in_memory(data)
    for table in TABLES[data]:
        connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM {table}")
    if change:
        connection.execute(change)
    return connection


HEAVY_UNITS = (MANY_ORDERS, MANY_VISITS, MANY_LINES, MANY_RATINGS)
"""Changes after which some units have more rows than declared, which are kept and weighed alone."""


def compared(
    policy: str, connection: duckdb.DuckDBPyConnection, *, trusting: bool
) -> tuple[int, int, bool]:
    """How many statements ran more lightly, how many of those gave something else, and if rows were kept."""
    light = other = 0
    rows = Rows(connection)
    chosen = Chooser(world_of(policy), rows)
    for entry, part in shortened(policy):
        cheapest = text_of(instead(part, alternatives(part)[0]))
        sql = cheapest if trusting else chosen.statement(part)
        if sql == text_of(part):
            continue
        light += 1
        values = constants(entry.sql, entry.world)
        try:
            one, two = exact(connection, [part, replace(way(part), sql=sql)], values)
        except duckdb.Error:  # what is no number is no sum either
            assert trusting
            other += 1
        else:
            other += one != two
    return light, other, bool(rows.kept)


@pytest.mark.parametrize(("policy", "data", "change"), CASES)
def test_both_statements_give_the_same_integers(policy: str, data: str, change: str) -> None:
    light, other, kept = compared(policy, broken(data, change), trusting=False)
    assert other == 0
    assert kept == (change in HEAVY_UNITS)
    if not change:
        assert light > len(shortened(policy)) / 2


@pytest.mark.parametrize(
    ("policy", "data", "change"), [case for case in CASES if case[2] in ("", *HEAVY_UNITS)]
)
def test_every_alternative_that_may_run_gives_the_same_integers(
    policy: str, data: str, change: str
) -> None:
    """Not only the first: which of them is first may change, what each requires holds."""
    connection = broken(data, change)
    chooser = Chooser(world_of(policy), Rows(connection)).chooser
    tried: set[tuple[type, ...]] = set()
    for entry, part in some(shortened(policy), 1, 2):
        allowed = [a for a in alternatives(part) if all(map(chooser._holds, a.requires))]
        ways = [way(part), *(instead(part, a) for a in allowed)]
        own, *others = exact(connection, ways, constants(entry.sql, entry.world))
        assert all(other == own for other in others), entry.sql
        tried |= {tuple(map(type, a.requires)) for a in allowed}
    assert len(tried) >= 3
    assert any(OverLimitRowsKept in kinds for kinds in tried) is (change in HEAVY_UNITS)


def world_of(policy: str) -> World:
    """The world of a policy's entries."""
    return shortened(policy)[0][0].world


@pytest.mark.parametrize(("policy", "data", "change"), REFUSED)
def test_no_statement_is_chosen_where_keys_are_shared(policy: str, data: str, change: str) -> None:
    rows, there = Rows(broken(data, change)), opened(World(policy, data)).policy
    with pytest.raises(DataBreaksPolicy):
        verify(there, SourceDescription({}), rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(("policy", "data", "change"), FAULTS)
def test_who_trusts_what_is_declared_gets_other_integers(
    policy: str, data: str, change: str
) -> None:
    """The planted fault: nothing is looked up."""
    _, other, _ = compared(policy, broken(data, change), trusting=True)
    assert other > 0


def part_of(sql: str, world: World = SHOP_WORLD) -> PricedMeasurement:
    """The measurement of a query with row weights."""
    parts = every_way(plan_of(sql, world), request(3, 1), ("laplace",))
    return next(p for p in parts if p.bounding.name == "row weights")


def test_no_statement_is_chosen_by_a_look_at_the_data() -> None:
    rows = Rows(in_memory("shop"))
    chosen = Chooser(SHOP_WORLD, rows)
    assert len(rows.asked) == len(set(rows.asked)) > 5
    rows.asked.clear()
    first = chosen.statement(part_of("SELECT channel, COUNT(*) FROM orders GROUP BY 1"))
    second = chosen.statement(part_of("SELECT page, SUM(seconds) FROM visits GROUP BY 1"))
    assert "weight" not in first + second
    assert not rows.asked


@pytest.mark.parametrize(
    "rows",
    [
        "orders AS o JOIN visits AS v ON o.customer_id = v.customer_id",
        "(SELECT channel FROM orders UNION ALL SELECT page FROM visits) AS o",
    ],
)
def test_rows_that_multiply_are_weighed(rows: str) -> None:
    part = part_of(f"SELECT o.channel, COUNT(*) FROM {rows} WHERE o.channel IN ('web', 'shop') GROUP BY 1")  # fmt: skip
    assert not alternatives(part)


def test_units_are_not_told_apart_for_a_total() -> None:
    plan = plan_of("SELECT COUNT(*), SUM(amount) FROM orders", SHOP_WORLD)
    [part] = every_way(plan, request(3, 1), ("laplace",))
    assert part.bounding.name == "unit totals"
    assert "customer_id" in text_of(part)
    sql = Chooser(SHOP_WORLD, Rows(in_memory("shop"))).statement(part)
    assert "GROUP BY" not in sql


WEIGHED = "SELECT channel, COUNT(*), SUM(amount) FROM orders WHERE amount > 3 GROUP BY channel"


def test_whoever_is_above_the_limit_is_weighed_down_alone() -> None:
    rows, part = Rows(broken("shop", MANY_ORDERS)), part_of(WEIGHED)
    chosen = Chooser(SHOP_WORLD, rows)
    (name,) = rows.kept
    sql = chosen.statement(part)
    assert sql.count(f'{OVER_LIMIT_CATALOG}."{name}"') == 1
    read = sql.count('FROM "rows of units"')
    assert read == 2, "for who is above the limit, and what is too much"
    assert sql.count('FROM "orders"') == 1
    owners = rows.connection.execute(
        f'SELECT DISTINCT customer_id FROM {OVER_LIMIT_CATALOG}."{name}"'
    )
    assert owners.fetchall() == [(97,)]
    assert exact(rows.connection, [part], {}) == exact(
        rows.connection, [replace(way(part), sql=sql)], {}
    )
    assert chosen.statement(part_of("SELECT SUM(amount) FROM orders GROUP BY channel")) != sql
    assert rows.kept == [name], "they are kept once"


def test_who_forgets_those_above_the_limit_gets_other_integers() -> None:
    """The planted fault: nothing is kept of them."""
    rows, part = Rows(broken("shop", MANY_ORDERS)), part_of(WEIGHED)
    sql = Chooser(SHOP_WORLD, rows).statement(part)
    rows.connection.execute(f'DELETE FROM {OVER_LIMIT_CATALOG}."{rows.kept[0]}" WHERE amount > 50')
    assert exact(rows.connection, [part], {}) != exact(
        rows.connection, [replace(way(part), sql=sql)], {}
    )


@pytest.mark.parametrize("why", ["too many are heavy", "they cannot be kept", "groups are capped"])
def test_where_they_are_not_kept_all_rows_are_weighed(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, part = Rows(broken("shop", MANY_ORDERS)), part_of(WEIGHED)
    if why == "too many are heavy":
        monkeypatch.setattr("dpsql.declarations.queries.MOST_KEPT", 100)
    elif why == "they cannot be kept":
        monkeypatch.setattr(rows, "keep", lambda *_: False)
    else:
        parts = every_way(plan_of(WEIGHED, SHOP_WORLD), request(3, 1), ("laplace",))
        part = next(p for p in parts if p.bounding.name == "group caps")
    assert Chooser(SHOP_WORLD, rows).statement(part) == text_of(part)
    assert bool(rows.kept) is (why == "groups are capped")


def test_a_question_runs_the_cheapest_statement_and_looks_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, ran = list[str](), list[str]()
    with service("oracle", "shop") as here:
        real = DuckDB.measure

        def measure(self: DuckDB, sql: str, values: Mapping[str, Value]) -> ExactRows:
            ran.append(sql)
            return real(self, sql, values)

        monkeypatch.setattr(DuckDB, "measure", measure)
        monkeypatch.setattr(DuckDB, "is_empty", lambda _, query: asked.append(str(query)))
        monkeypatch.setattr(DuckDB, "keep", lambda _, name, *__: asked.append(name))
        for sql in (
            "SELECT channel, COUNT(*), SUM(amount) FROM orders GROUP BY 1",
            "SELECT page, AVG(seconds) FROM visits GROUP BY 1",
        ):
            here.session("oracle").execute(sql)
    assert len(ran) == 2
    assert not any("weight" in sql or "CASE" in sql for sql in ran)
    assert not asked


def test_under_strict_timing_rows_are_weighed() -> None:
    strict = World("oracle", "shop", lambda text: text + "strict_timing: on\n")
    assert not alternatives(part_of("SELECT channel, COUNT(*) FROM orders GROUP BY 1", strict))


def sums(sql: str, rows: Rows) -> str:
    """The sums of the statement that is chosen over such rows."""
    return Chooser(SHOP_WORLD, rows).statement(part_of(sql))


AMOUNTS = "SELECT channel, SUM(amount), AVG(amount) FROM orders GROUP BY channel"


def test_values_in_their_range_are_not_compared_with_it() -> None:
    assert "CASE" not in sums(AMOUNTS, Rows(in_memory("shop")))
    for change in (BEYOND, BELOW, NAN, INFINITE):
        assert "CASE" in sums(AMOUNTS, Rows(broken("shop", change)))
    narrower = "SELECT channel, SUM(GREATEST(amount, 10)) FROM orders GROUP BY channel"
    assert "CASE" in sums(narrower, Rows(in_memory("shop"))), "it has no range of its own"


def test_few_rows_are_added_up_as_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    doubles = sums(AMOUNTS, Rows(in_memory("shop")))
    assert "floor(" in doubles
    assert "CAST(floor(" not in doubles
    monkeypatch.setattr("dpsql.declarations.queries.FEW", 100)
    assert "CAST(floor(" in sums(AMOUNTS, Rows(in_memory("shop")))


def test_large_steps_are_added_up_as_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.bound.rows.LARGEST", 1)
    assert "CAST(floor(" in sums(AMOUNTS, Rows(in_memory("shop")))


def test_doubles_are_exact_up_to_the_largest_sum_of_steps_and_not_far_beyond() -> None:
    assert FEW * LARGEST < 2**53
    connection = duckdb.connect()
    add = "SELECT CAST(sum(x) AS HUGEINT) FROM (VALUES ({}::DOUBLE), (1), (1)) AS t(x)"
    for most, exactly in ((FEW * LARGEST, True), (2**53, False)):
        assert (connection.execute(add.format(most)).fetchone() == (most + 2,)) is exactly


def test_what_cannot_be_looked_up_is_not_relied_on() -> None:
    """As where the engine has no time for it: the statement that needs no look still runs."""

    def fails(_: Query | str) -> bool:
        raise EngineFailed("incident")

    rows, part = Rows(in_memory("shop")), part_of(WEIGHED)
    rows.is_empty = fails  # type: ignore[method-assign]
    chosen = Chooser(SHOP_WORLD, rows)
    assert chosen.statement(part) == text_of(part)
    assert chosen.statement(part_of("SELECT channel, COUNT(*) FROM orders GROUP BY 1"))
    with pytest.raises(EngineFailed):
        verify(opened(SHOP_WORLD).policy, SourceDescription({}), rows)  # type: ignore[arg-type]


def test_a_condition_on_what_only_the_path_leads_to_needs_the_path() -> None:
    part = next(
        p for _, p in shortened("far")
        if p.bounding.name == "row weights" and isinstance(p.measurement.input, Scan)
    )  # fmt: skip
    scan = part.measurement.input
    assert isinstance(scan, Scan)
    assert alternatives(part)
    hidden = scan.unit_fields[0]
    there = Call("is_not_null", (hidden,), Shape(Kind.BOOLEAN, nullable=False))
    asked = Filter(scan, there, scan.fields, scan.privacy)
    assert not alternatives(replace(part, measurement=replace(part.measurement, input=asked)))
