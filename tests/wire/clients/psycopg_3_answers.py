"""psycopg 3: what answers are, beyond how they travel: no rows, constants, errors."""

from __future__ import annotations

from typing import Any

import psycopg
from sides import Side, checks, shape

check = checks("psycopg 3")


def _open(side: Side, **more: Any) -> psycopg.Connection:
    return psycopg.connect(side.dsn, autocommit=True, **more)


@check
def aggregates_of_no_rows(side: Side) -> Any:
    """One row, unless there are groups or LIMIT 0."""
    with _open(side) as c:
        return [
            shape(c.execute(sql))
            for sql in (
                "SELECT count(*) FROM orders WHERE 1 = 0", "SELECT count(*) FROM orders WHERE false",
                "SELECT count(*), (count(*)) + 1 AS more FROM visits WHERE (1 = 0)",
                "SELECT count(*), sum(population) FROM countries WHERE 1 = 0",
                "SELECT 'all' AS what, max(country) FROM countries WHERE false",
                "SELECT count(*) FROM orders WHERE 1 = 0 LIMIT 0",
                "SELECT count(*) FROM orders LIMIT 0 OFFSET 1",
                "TABLE countries LIMIT 0", "SELECT 1 AS a UNION ALL SELECT 2 AS a WHERE 1 = 0",
            )
        ]  # fmt: skip


@check
def rows_of_no_rows(side: Side) -> Any:
    """Nothing, whatever is computed of them."""
    with _open(side) as c:
        return [
            shape(c.execute(sql))
            for sql in (
                "SELECT upper(country) FROM customers WHERE 1 = 0",
                "SELECT DISTINCT channel FROM orders WHERE 1 = 0",
                "SELECT country FROM countries WHERE false",
                "SELECT channel, count(*) FROM orders GROUP BY 1 LIMIT 0",
            )
        ]


@check
def sums_of_no_rows(side: Side) -> Any:
    with _open(side) as c:
        return shape(c.execute("SELECT count(*), sum(amount) FROM orders WHERE 1 = 0"))
