"""Counts below zero are shown as zero where that is asked for, and nothing else is changed."""

from __future__ import annotations

import numpy as np
import pytest
from support.services import service

from dpsql.service import Session

COUNTS = (
    "SELECT country, COUNT(*) FROM customers WHERE age > 99 GROUP BY country",
    "SELECT country, COUNT(DISTINCT customer_id) FROM customers WHERE age > 99 GROUP BY country",
    (
        "SELECT a.country, a.n FROM (SELECT country, COUNT(*) AS n FROM customers WHERE age > 99"
        " GROUP BY 1) AS a JOIN (SELECT country, SUM(age) AS s FROM customers GROUP BY 1) AS b"
        " ON a.country = b.country ORDER BY 2 LIMIT 40"
    ),
    "SELECT country, COUNT(*) FROM customers WHERE age > 99 GROUP BY ROLLUP (country)",
    (
        "SELECT country, SUM(n) FROM (SELECT country, age, COUNT(*) AS n FROM customers WHERE age > 99"
        " GROUP BY 1, 2) AS t GROUP BY 1"
    ),
)
OTHERS = (
    (
        "SELECT country, COUNT(*) FROM customers WHERE age > 99 GROUP BY country"
        " UNION ALL SELECT a, b FROM (VALUES ('x', -5)) AS t (a, b)"
    ),
    "SELECT country, SUM(age - 59) FROM customers WHERE age > 99 GROUP BY country",
    "SELECT country, COUNT(*) - 100 FROM customers WHERE age > 99 GROUP BY country",
    (
        "SELECT country, MAX(n) FROM (SELECT country, age, COUNT(*) - 5000 AS n FROM customers"
        " GROUP BY 1, 2) AS t GROUP BY 1"
    ),
)


@pytest.fixture
def session() -> Session:
    made = service("shop", "shop").session("analyst")
    made.execute("SET dpsql.epsilon = 0.01")
    made.execute("SET dpsql.empty_groups = 'keep'")
    return made


def numbers(session: Session, sql: str) -> list[float]:
    return [float(v) for v in session.execute(sql).table.column(1).to_pylist()]


def below_zero(session: Session, sql: str) -> list[float]:
    """Numbers of a stored answer of which one is below zero: a few groups may all have noise above."""
    plain = numbers(session, sql)
    session.execute("SET dpsql.fresh = on")
    for _ in range(30):
        if min(plain) < 0:
            break
        plain = numbers(session, sql)
    session.execute("SET dpsql.fresh = off")
    assert min(plain) < 0
    return plain


@pytest.mark.parametrize("sql", COUNTS)
def test_counts_are_not_below_zero_and_no_farther_off(session: Session, sql: str) -> None:
    plain = below_zero(session, sql)
    session.execute("SET dpsql.nonnegative = on")
    assert numbers(session, sql) == [max(0.0, v) for v in plain], "the same release, raised"


@pytest.mark.parametrize("sql", OTHERS)
def test_what_may_be_negative_stays(session: Session, sql: str) -> None:
    plain = below_zero(session, sql)
    session.execute("SET dpsql.nonnegative = on")
    assert numbers(session, sql) == plain


def test_intervals_end_at_zero_and_hold_the_number(session: Session) -> None:
    session.execute("SET dpsql.nonnegative = on")
    reply = session.execute(COUNTS[0], intervals=True)
    low, high = (np.asarray(end) for end in reply.intervals[1])
    shown = np.asarray(reply.table.column(1))
    assert (low >= 0).all()
    assert (low == 0).any()
    assert ((low <= shown) & (shown <= high)).all()
    session.execute("SET dpsql.nonnegative = off")
    wide = session.execute(COUNTS[0], intervals=True)
    plain_low, plain_high = (np.asarray(end) for end in wide.intervals[1])
    assert (low == np.maximum(plain_low, 0)).all()
    assert (high == np.maximum(plain_high, 0)).all()
