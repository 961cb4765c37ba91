"""Equal measurements of one query are one, whatever their columns are called; others are not."""

from __future__ import annotations

import pytest
from support.corpus import SHOP
from support.measured import plan_of

FROM = "FROM orders WHERE amount > 5"
PEOPLE = "customers AS c JOIN orders AS o ON c.customer_id = o.customer_id"


def _measured(first: str, second: str) -> int:
    sql = f"SELECT a.n, b.n FROM ({first}) AS a CROSS JOIN ({second}) AS b"
    return len(plan_of(sql, SHOP).measurements)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"SELECT COUNT(*) AS n {FROM}", f"SELECT COUNT(*) AS n {FROM}"),
        (f"SELECT COUNT(*) AS n {FROM}", "SELECT COUNT(*) AS n FROM (SELECT amount FROM orders) AS o WHERE amount > 5"),
        (f"SELECT SUM(amount) AS n {FROM}", f"SELECT SUM(x) AS n FROM (SELECT amount AS x {FROM}) AS o"),
        (f"SELECT AVG(o.amount) AS n FROM {PEOPLE}", f"SELECT AVG(y.amount) AS n FROM {PEOPLE.replace('o.', 'y.').replace('AS o', 'AS y')}"),
        (
            "SELECT COUNT(*) AS n FROM (SELECT customer_id, SUM(amount) AS s FROM orders GROUP BY 1) AS t WHERE s > 9",
            "SELECT COUNT(*) AS n FROM (SELECT customer_id AS c, SUM(amount) AS r FROM orders GROUP BY 1) AS t WHERE r > 9",
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT customer_id, channel FROM orders) AS t",
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT customer_id AS c, channel AS d FROM orders) AS t",
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed) AS r FROM orders) AS t WHERE r < 3",
            "SELECT COUNT(*) AS n FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed) AS p FROM orders) AS t WHERE p < 3",
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT amount FROM orders UNION ALL SELECT amount + 1 FROM orders) AS t",
            "SELECT COUNT(*) AS n FROM (SELECT amount AS b FROM orders UNION ALL SELECT amount + 1 FROM orders) AS t",
        ),
    ],
)  # fmt: skip
def test_the_same_under_other_names_is_measured_once(first: str, second: str) -> None:
    assert _measured(first, second) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"SELECT COUNT(*) AS n {FROM}", f"SELECT COUNT(*) AS n {FROM.replace('5', '6')}"),
        (f"SELECT COUNT(*) AS n {FROM}", f"SELECT SUM(amount) AS n {FROM}"),
        (f"SELECT COUNT(*) AS n {FROM}", f"SELECT COUNT(*) FILTER (WHERE amount > 7) AS n {FROM}"),
        (f"SELECT SUM(amount) AS n {FROM}", f"SELECT SUM(-amount) AS n {FROM}"),
        ("SELECT COUNT(*) AS n FROM orders", "SELECT COUNT(*) AS n FROM customers"),
        (
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT customer_id, channel FROM orders) AS t",
            "SELECT COUNT(*) AS n FROM (SELECT customer_id, channel FROM orders) AS t",
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT amount FROM orders UNION ALL SELECT amount + 1 FROM orders) AS t",
            "SELECT COUNT(*) AS n FROM (SELECT amount FROM orders UNION ALL SELECT amount + 2 FROM orders) AS t",
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed) AS r FROM orders) AS t WHERE r < 3",
            "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY amount) AS r FROM orders) AS t WHERE r < 3",
        ),
        (
            "SELECT COUNT(*) AS n FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.customer_id = o.customer_id)",
            "SELECT COUNT(*) AS n FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.customer_id = o.customer_id)",
        ),
    ],
)  # fmt: skip
def test_what_differs_is_measured_apart(first: str, second: str) -> None:
    assert _measured(first, second) == 2
