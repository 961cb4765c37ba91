"""Which counts of groups are answered by counting combinations in the rows, and which are not."""

from __future__ import annotations

import pytest
from support.services import session

from dpsql.ir.relations import Aggregate, walk_relations

GROUPS = "SELECT city, age, COUNT(*) AS people FROM customers GROUP BY city, age"


def _keys(sql: str) -> list[int]:
    """How many keys each measurement has."""
    return [len(p.measurement.keys) for p in session("shop", "shop", "analyst").prepare(sql).parts]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM ({GROUPS}) AS x",
        f"SELECT COUNT(city), COUNT(DISTINCT age) FROM ({GROUPS}) AS x WHERE age > 30",
        f"SELECT COUNT(*) FILTER (WHERE y = 'b') FROM (SELECT city AS y, age FROM ({GROUPS}) AS z) AS x",
        "SELECT COUNT(*) FROM (SELECT DISTINCT city FROM customers ORDER BY city) AS x",
        f"SELECT COUNT(*) FROM (SELECT DISTINCT city FROM ({GROUPS}) AS z) AS x",
        f"SELECT COUNT(*) FROM (SELECT age / 10 AS a FROM ({GROUPS}) AS z GROUP BY a) AS x WHERE a > 2",
    ],
)
def test_combinations_are_counted_in_the_rows(sql: str) -> None:
    assert _keys(sql) == [0]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT SUM(age) FROM ({GROUPS}) AS x",
        f"SELECT COUNT(*) FROM ({GROUPS} HAVING COUNT(*) > 3) AS x",
        f"SELECT COUNT(people) FROM ({GROUPS}) AS x",
        f"SELECT COUNT(*) FROM ({GROUPS} LIMIT 10) AS x",
        f"SELECT COUNT(*) FROM (SELECT DISTINCT people FROM ({GROUPS}) AS z) AS x",
        f"SELECT COUNT(*), MAX(people) FROM ({GROUPS}) AS x",
        "SELECT COUNT(*) FROM (SELECT country FROM customers GROUP BY ROLLUP (country)) AS x",
    ],
)
def test_other_statements_are_about_groups_that_are_answered(sql: str) -> None:
    assert _keys(sql) != [0]


def test_groups_of_single_units_stay_rows_of_units() -> None:
    sql = "SELECT COUNT(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id) AS x"
    (part,) = session("shop", "shop", "analyst").prepare(sql).parts
    assert any(isinstance(r, Aggregate) for r in walk_relations(part.measurement.input))
