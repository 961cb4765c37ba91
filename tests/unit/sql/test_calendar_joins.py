"""LEFT JOIN from public rows to private ones: which are answered, as what, and which are refused."""

from __future__ import annotations

import pytest
from laws.scalar_expressions import single_calls, wild_world
from support.measured import text_of
from support.shop import priced, refusal

from dpsql.diagnostics.refusal import Refused
from dpsql.ir.expressions import Call, Literal
from dpsql.sql.bind.calendar_joins import STRICT

WORLD = wild_world()
DAYS = "(VALUES (DATE '2024-01-01'), (DATE '2024-01-02')) AS d(day)"
SPINE = (
    f"SELECT d.day, {{}} FROM {DAYS} LEFT JOIN orders AS o ON o.placed = d.day{{}} GROUP BY d.day"
)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("", True),
        ("d.day > DATE '2020-01-01'", True),
        ("o.amount > 10", False),
        ("d.day > DATE '2020-01-01' AND o.channel = 'web'", False),
    ],
)
def test_days_without_orders_stay_unless_a_condition_leaves_them_out(
    condition: str, *, kept: bool
) -> None:
    """Plain SQL has no day without orders where WHERE asks something of the order."""
    where = f" WHERE {condition}" if condition else ""
    plan = priced(SPINE.format("COUNT(o.amount)", where)).plan
    assert plan.notes == (
        () if kept else ("day: all public groups are shown, those without rows too",)
    )


@pytest.mark.parametrize(
    "condition", ["o.amount > 10 OR d.day > DATE '2020-01-01'", "o.amount IS NULL OR o.amount > 10"]
)
def test_a_condition_that_rows_without_a_partner_may_meet_is_refused(condition: str) -> None:
    """A day whose orders all fail it is not there in SQL, and a day without orders is."""
    with pytest.raises(Refused) as refused:
        priced(SPINE.format("COUNT(o.amount)", f" WHERE {condition}"))
    assert refused.value.code == "DP303"


@pytest.mark.parametrize("name", sorted(STRICT))
def test_strict_functions_are_null_where_an_argument_is(name: str) -> None:
    seen = 0
    for node in single_calls(WORLD, name):
        assert isinstance(node, Call)
        args = [a for a in node.args if not isinstance(a, Literal) or a.value is None]
        absent = " OR ".join(f"{WORLD.write(a)} IS NULL" for a in args)
        if absent:
            seen += 1
            query = f"SELECT count(*) FROM w WHERE ({absent}) AND {WORLD.write(node)} IS NOT NULL"
            assert WORLD.engine.execute(query).fetchall() == [(0,)], query
    assert seen


@pytest.mark.parametrize(
    "call",
    [
        "COUNT(o.amount)",
        "COUNT(DISTINCT o.channel)",
        "SUM(o.amount + 1)",
        "AVG(CAST(o.amount AS INTEGER))",
        "MAX(o.amount)",
        "COUNT(*) FILTER (WHERE o.amount > 10)",
        "COUNT(*) FILTER (WHERE o.amount > 10 AND d.day IS NOT NULL)",
        "COUNT(*) FILTER (WHERE o.amount > 10 OR NOT o.channel = 'web')",
        "COUNT(*) FILTER (WHERE o.amount IS NOT NULL)",
        "COUNT(CASE WHEN o.amount > 10 THEN 1 END)",
        "SUM(CASE WHEN o.amount > 10 THEN 1 ELSE 0 END)",
    ],
)
def test_what_passes_over_days_without_orders_is_an_inner_join(call: str) -> None:
    left = priced(SPINE.format(call, ""))
    inner = priced(SPINE.replace("LEFT JOIN", "JOIN").format(call, ""))
    assert text_of(left.parts[0]) == text_of(inner.parts[0])
    cells = left.parts[0].measurement.cells
    assert cells is not None
    assert cells.count == 2


@pytest.mark.parametrize(
    "call",
    [
        "COUNT(*)",
        "COUNT(1)",
        "COUNT(d.day)",
        "COUNT(o.amount), COUNT(*)",
        "COUNT(COALESCE(o.amount, 0))",
        "COUNT(*) FILTER (WHERE o.amount IS NULL)",
        "COUNT(*) FILTER (WHERE o.amount > 10 OR d.day IS NOT NULL)",
        "COUNT(*) FILTER (WHERE 5 IN (5, o.amount))",
        "COUNT(DISTINCT (o.channel, o.amount))",
        "SUM(CASE WHEN o.amount > 10 THEN 0 ELSE 1 END)",
        "SUM(CASE WHEN o.amount IS NULL THEN 1 ELSE 0 END)",
        "AVG(CASE WHEN o.amount > 10 THEN 1 ELSE 0 END)",
        "COUNT(CASE WHEN o.amount > 10 THEN 1 ELSE 0 END)",
    ],
)
def test_what_counts_them_is_refused(call: str) -> None:
    refused = refusal(SPINE.format(call, ""))
    assert refused is not None
    assert refused.code == "DP303"


@pytest.mark.parametrize(
    "sql",
    [
        SPINE.format("COUNT(o.amount)", "").replace("GROUP BY d.day", "GROUP BY d.day, o.channel"),
        SPINE.format("COUNT(o.amount)", "").replace("LEFT JOIN", "FULL JOIN"),
        f"SELECT d.day FROM {DAYS} LEFT JOIN orders AS o ON o.placed = d.day",
        SPINE.format("COUNT(o.amount)", "")
        .replace("d.day, ", "")
        .replace("BY d.day", "BY o.customer_id"),
    ],
)
def test_rows_of_no_unit_are_never_shown(sql: str) -> None:
    refused = refusal(sql)
    assert refused is not None
    assert refused.code in ("DP303", "DP101")


def test_days_that_a_condition_of_the_join_drops_stay() -> None:
    plan = priced(SPINE.format("COUNT(o.amount)", " AND d.day > DATE '2024-01-01'"))
    cells = plan.parts[0].measurement.cells
    assert cells is not None
    assert cells.count == 2


def test_groups_that_are_not_public_cannot_be_kept_whole() -> None:
    regions = "SELECT n.continent, COUNT(c.age) FROM (SELECT * FROM countries LIMIT 3) AS n LEFT JOIN customers AS c ON c.country = n.country GROUP BY 1"
    keyed = "policies/unsteady.yaml"
    refused = refusal(regions, policy=keyed)
    assert refused is not None
    assert "are not public" in refused.first.headline
    assert refusal(regions.replace("continent", "country"), policy=keyed) is None
    assert refusal(regions.replace("LEFT JOIN", "JOIN"), policy=keyed) is None
    with_terms = SPINE.format("COUNT(o.amount)", "").replace(
        "SELECT",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(group_selection_strategy=LAPLACE_THRESHOLD)",
    )
    assert refusal(with_terms) is not None


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ("(DATE '2024-01-01'), (DATE '2024-01-02')", 1),
        ("(TIMESTAMP '2024-01-01'), (TIMESTAMP '2024-01-02')", 1),
        ("(TIMESTAMP '2024-01-01'), (NULL)", 1),
        ("(NULL), (NULL), (TIMESTAMP '2024-01-01')", 3),
        ("(DATE '2024-01-01'), (DATE '2024-01-01')", 2),
    ],
)
def test_constants_that_differ_meet_a_row_once(values: str, rows: int) -> None:
    of_orders, of_pairs = (
        priced(sql).parts[0].measurement.privacy.max_rows
        for sql in (
            "SELECT COUNT(*) FROM orders",
            f"SELECT COUNT(*) FROM (VALUES {values}) AS d(day) JOIN orders AS o ON o.placed = d.day",
        )
    )
    assert of_pairs == rows * of_orders
