"""Which statements are bounded by what they read of prepared copies."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from support.corpus import WORLDS, World
from support.measured import flat, opened, plan_of, request, text_of

from dpsql.bound import OneRow, PreparedRows
from dpsql.bound.copies import companion, copy_of
from dpsql.bound.found_limits import FoundLimits
from dpsql.bound.reading import match_copies
from dpsql.engines.duckdb.write import write_rows
from dpsql.policy.model import Column, Table
from dpsql.policy.prepared_copies import PreparedCopies, declared_key, facts
from dpsql.policy.types import Kind
from dpsql.price.price import price
from dpsql.price.priced import PricedMeasurement

FAR = WORLDS["trade"]
GROUPED = replace(FAR, change=str)
"""With its `max_rows_per_group`, and roles that do not see everything."""
ROWS = WORLDS["rows"]
LINES = "lineitem JOIN orders USING (order_id)"


def shelf(world: World, *without: str) -> PreparedCopies:
    """Copies of all private tables; all keys are unique but those of some."""
    private = {t.name: t for t in opened(world).policy.tables.values() if not t.public}
    keyed = frozenset(
        name for name, t in private.items() if declared_key(t) and name not in without
    )
    return PreparedCopies({name: companion(t) for name, t in private.items()}, keyed)


def text_of_copy(table: Table) -> str:
    return flat(write_rows(copy_of(table, 1)))


def ranked(sql: str, world: World = FAR, *without: str) -> str | None:
    """The table whose ranks bound the first measurement."""
    found = match_copies(plan_of(sql, world).measurements[0], shelf(world, *without))
    assert found is not None
    return None if found.ranked is None else found.ranked.table.name


@pytest.mark.parametrize(("table", "sql"), [
    ("lineitem", "SELECT COUNT(*) FROM lineitem"),
    ("lineitem", "SELECT COUNT(*) FROM lineitem WHERE quantity > 5"),
    ("lineitem", "SELECT COUNT(*) FROM (SELECT quantity + 1 AS q FROM lineitem) AS x WHERE q > 5"),
    ("lineitem", f"SELECT COUNT(*) FROM {LINES}"),
    ("lineitem", "SELECT COUNT(*) FROM orders JOIN lineitem USING (order_id)"),
    ("lineitem", f"SELECT COUNT(*) FROM {LINES} JOIN customer c ON c.number = customer_number AND c.region = customer_region"),
    ("lineitem", "SELECT COUNT(*) FROM customer c JOIN orders o ON c.number = o.customer_number AND c.region = o.customer_region JOIN lineitem USING (order_id)"),
    ("lineitem", "SELECT COUNT(*) FROM lineitem JOIN part USING (part_id) WHERE brand = 'x'"),
    ("lineitem", "SELECT COUNT(*) FROM lineitem LEFT JOIN part USING (part_id)"),
    ("orders", "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM lineitem l WHERE l.order_id = orders.order_id)"),
    ("lineitem", "SELECT COUNT(*) FROM lineitem l WHERE NOT EXISTS (SELECT 1 FROM returns r WHERE r.order_id = l.order_id AND r.line = l.line)"),
    (None, "SELECT COUNT(*) FROM customer"),
    (None, "SELECT COUNT(*) FROM lineitem CROSS JOIN (VALUES (1), (2)) AS v(x)"),
    (None, "SELECT COUNT(*) FROM (SELECT order_id FROM lineitem UNION ALL SELECT order_id FROM lineitem) AS u"),
    (None, "SELECT AVG(n) FROM (SELECT customer_region, customer_number, COUNT(*) AS n FROM orders GROUP BY 1, 2) AS x"),
])  # fmt: skip
def test_each_row_is_one_of_the_copied_table(table: str | None, sql: str) -> None:
    assert ranked(sql) == table


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_statement_without_any_public_group_is_bounded_as_with_one(mechanism: str) -> None:
    """Its condition leaves no group. It catches a unit that is in no group, whose noise has no scale."""
    plan = plan_of("SELECT priority, COUNT(*) FROM orders WHERE priority = 'x' GROUP BY 1", FAR)
    assert plan.measurements[0].cells is not None
    assert plan.measurements[0].cells.count == 0
    wanted = replace(request(3, 1), shelf=shelf(FAR), mechanism=mechanism)  # type: ignore[arg-type]
    [part] = price(plan, replace(wanted, delta=Fraction(1, 10**6))).parts
    assert part.bounding == PreparedRows(30, 1)


def test_a_join_on_a_key_that_was_not_seen_to_be_unique_bounds_nothing() -> None:
    assert ranked(f"SELECT COUNT(*) FROM {LINES}", FAR, "orders") is None
    assert ranked("SELECT COUNT(*) FROM lineitem", FAR, "orders") == "lineitem"
    three = f"SELECT COUNT(*) FROM {LINES} JOIN customer c ON c.number = customer_number AND c.region = customer_region"
    assert ranked(three, FAR, "customer") is None


def test_a_join_that_is_not_on_the_key_bounds_nothing() -> None:
    twice = "SELECT COUNT(*) FROM lineitem a JOIN lineitem b ON a.order_id = b.order_id"
    assert ranked(twice) is None
    assert ranked(f"{twice} AND a.line = b.line") == "lineitem"


def test_nested_joins_keep_keys() -> None:
    parents = (
        "SELECT o.order_id FROM orders o JOIN customer c ON c.number = o.customer_number"
        " AND c.region = o.customer_region"
    )
    assert ranked(f"SELECT COUNT(*) FROM lineitem l JOIN ({parents}) p ON p.order_id = l.order_id")
    around = (
        "SELECT o.order_id FROM customer c JOIN orders o ON c.number = o.customer_number"
        " AND c.region = o.customer_region WHERE o.priority = 'low'"
    )
    assert ranked(
        f"SELECT COUNT(*) FROM lineitem l LEFT JOIN ({around}) p ON p.order_id = l.order_id"
    )
    lines = "SELECT l.order_id, l.line FROM orders o JOIN lineitem l ON l.order_id = o.order_id"
    same = "p.order_id = a.order_id AND p.line = a.line"
    assert ranked(f"SELECT COUNT(*) FROM lineitem a JOIN ({lines}) p ON {same}") == "lineitem"
    unit = "customer_region, customer_number"
    sums = f"SELECT {unit}, COUNT(*) AS n FROM orders GROUP BY {unit}"
    assert ranked(f"SELECT COUNT(*) FROM orders JOIN ({sums}) p USING ({unit})") == "orders"
    twice = f"SELECT {unit} FROM customer UNION ALL SELECT {unit} FROM orders"
    twice = twice.replace(
        "customer_region, customer_number FROM customer",
        "region AS customer_region, number AS customer_number FROM customer",
    )
    assert ranked(f"SELECT COUNT(*) FROM orders JOIN ({twice}) p USING ({unit})") is None
    kept = "SELECT order_id FROM orders o WHERE EXISTS (SELECT 1 FROM lineitem x WHERE x.order_id = o.order_id)"
    joined = "SELECT COUNT(*) FROM lineitem l JOIN ({}) p ON p.order_id = l.order_id"
    assert ranked(joined.format(kept)) == "lineitem"


def test_without_copies_nothing_is_read_from_them() -> None:
    measurement = plan_of("SELECT COUNT(*) FROM lineitem", FAR).measurements[0]
    assert match_copies(measurement, PreparedCopies()) is None
    other = PreparedCopies({"orders": companion(opened(FAR).policy.tables["orders"])})
    assert match_copies(measurement, other) is None


def priced(
    sql: str, world: World = FAR, groups: int = 7, found: FoundLimits | None = None
) -> PricedMeasurement:
    wanted = replace(request(groups, 1), shelf=shelf(world))
    plan = plan_of(sql, world)
    if found is not None:
        wanted = replace(wanted, found={m.name: found for m in plan.measurements})
    return price(plan, wanted).parts[0]


def test_ranks_bound_a_table_below_a_join() -> None:
    part = priced(f"SELECT SUM(price) FROM {LINES}")
    assert isinstance(part.bounding, PreparedRows)
    assert '"dpsql rank" <= 150' in text_of(part)


def test_what_is_grouped_by_unit_first_has_no_steps() -> None:
    each = "SELECT customer_region, customer_number, SUM(line) AS n FROM lineitem JOIN orders USING (order_id) GROUP BY 1, 2"
    part = priced(f"SELECT SUM(CASE WHEN n > 100 THEN 100 ELSE n END) FROM ({each}) AS x")
    assert "dpsql_prepared" in text_of(part)
    assert "steps" not in text_of(part)


def test_a_limit_below_the_declared_one_is_kept_by_weights() -> None:
    """What is read is chosen before WHERE: fewer rows than declared would lose what WHERE wants."""
    sql = "SELECT quantity, COUNT(*) FROM lineitem GROUP BY quantity"
    whole = priced(sql, GROUPED, groups=8)
    assert isinstance(whole.bounding, PreparedRows)
    assert whole.bounding.rows == 150
    few = priced(sql, GROUPED, found=FoundLimits((("rows", 1, Fraction(10)),)))
    assert not isinstance(few.bounding, PreparedRows)
    assert "dpsql_prepared" in text_of(few)


def test_rows_that_are_units_have_steps_but_no_ranks() -> None:
    part = priced("SELECT SUM(seconds), COUNT(*) FROM visits", ROWS)
    assert isinstance(part.bounding, OneRow)
    assert '"dpsql steps seconds"' in text_of(part)
    assert "rank" not in text_of(part)
    assert "row_number" not in text_of_copy(opened(ROWS).policy.tables["visits"])


def test_steps_are_used_where_they_are_the_very_values() -> None:
    same = priced("SELECT SUM(price), AVG(price) FROM lineitem", groups=150)
    assert "CASE" not in text_of(same)
    assert '"dpsql steps price"' in text_of(same)
    assert "CASE" in text_of(priced("SELECT SUM(price) FROM lineitem WHERE price > 5"))
    assert "CASE" in text_of(priced("SELECT SUM(price * 2) FROM lineitem"))


def test_what_a_copy_holds_follows_from_declarations() -> None:
    policy = opened(FAR).policy
    table = policy.tables["lineitem"]
    assert set(companion(table).steps) == {"line", "quantity", "price"}
    assert "END AS INTEGER) AS s2" in text_of_copy(table)
    assert 's2 AS "dpsql steps price"' in text_of_copy(table)
    wide = replace(
        table.columns["price"], range=(Fraction(10**9), Fraction(10**9 + 1)), kind=Kind.INTEGER
    )
    changed = replace(table, columns={**table.columns, "price": wide})
    assert "END AS BIGINT) AS s2" in text_of_copy(changed)
    assert facts(policy, table) != facts(policy, changed)
    assert facts(policy, table) == facts(policy, replace(table, max_rows_per_unit=7))


def test_the_key_of_a_unit_is_copied_where_it_is_elsewhere() -> None:
    tables = opened(FAR).policy.tables
    assert '"dpsql unit key 1"' in text_of_copy(tables["lineitem"])
    assert "dpsql unit key" not in text_of_copy(tables["orders"])


def test_a_table_without_a_key_has_none() -> None:
    columns = {"a": Column("a", "bigint", Kind.INTEGER)}
    assert declared_key(Table("t", columns, "u", max_rows_per_unit=3, unit_columns=("a",))) == ()
    assert declared_key(Table("t", columns, "u", unit_columns=("a",))) == ("a",)
