"""A unit's rows are put in one order, whoever else there is and wherever rows are stored.

Watched units have many rows that a window's ORDER BY takes for equal. What they add to an answer is
compared with all others there, gone, first, and with all rows in another order.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Iterator

import duckdb
import pytest
from support.corpus import SHOP
from support.measured import SALT, every_way, opened, plan_of, request, text_of

from dpsql.engines.duckdb import expressions
from dpsql.engines.duckdb.guard import Guard, Unsafe
from dpsql.engines.duckdb.parameters import parameters
from dpsql.plan import ties

OVER = "OVER (PARTITION BY customer_id ORDER BY placed{})"
FEW_ROWS = OVER.format(" ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")
SEEN = {
    "a row's number": (f"ROW_NUMBER() {OVER.format('')} AS v", "v <= 3"),
    "a row's number without an order": (
        "ROW_NUMBER() OVER (PARTITION BY customer_id) AS v",
        "v <= 3",
    ),
    "a row's part": (f"NTILE(2) {OVER.format(' DESC NULLS FIRST')} AS v", "v = 1"),
    "the row before": (f"LAG(amount) {OVER.format('')} AS v", "v > 40"),
    "the row after": (f"LEAD(amount, 2, 0) {OVER.format(' DESC')} AS v", "v > 40"),
    "the first row": (f"FIRST_VALUE(amount) {OVER.format('')} AS v", "v < amount"),
    "the last row": (f"LAST_VALUE(amount) {OVER.format('')} AS v", "v < amount"),
    "the last of two days": (
        f"LAST_VALUE(amount) {OVER.format(' GROUPS 1 PRECEDING')} AS v",
        "v < amount",
    ),
    "the last of all": (
        f"LAST_VALUE(amount) {OVER.format(' RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING')} AS v",
        "v < amount",
    ),
    "the first of few rows": (f"FIRST_VALUE(amount) {FEW_ROWS} AS v", "v < amount"),
    "a sum of few rows": (f"SUM(CAST(amount AS INTEGER)) {FEW_ROWS} AS v", "v > 90"),
    "the most of few rows": (f"MAX(amount) {FEW_ROWS} AS v", "v > amount"),
    "a row's number with a frame": (
        f"ROW_NUMBER() {OVER.format(' ROWS 1 PRECEDING')} AS v",
        "v <= 3",
    ),
    "two orders": (
        f"ROW_NUMBER() {OVER.format('')} AS v, LAG(amount) {OVER.format(' DESC')} AS w",
        "v <= 3 AND w > 40",
    ),
}
"""Windows that tell rows apart, with conditions that do."""
EQUAL = {
    "ranks": (f"RANK() {OVER.format('')} AS v, DENSE_RANK() {OVER.format('')} AS w", "v + w <= 3"),
    "shares": (
        f"PERCENT_RANK() {OVER.format('')} AS v, CUME_DIST() {OVER.format('')} AS w",
        "v + w > 0.5",
    ),
    "a sum of days": (f"SUM(CAST(amount AS INTEGER)) {OVER.format('')} AS v", "v > 90"),
    "a number of rows": (f"COUNT(*) {OVER.format(' GROUPS 1 PRECEDING')} AS v", "v > 3"),
}
"""Windows that do not."""
WATCHED, EACH = 40, 7
LAYOUTS = {
    "there": "ORDER BY mine, i",
    "gone": "AND mine ORDER BY i",
    "first": "ORDER BY NOT mine, i",
    "between": "ORDER BY i",
    "turned": "ORDER BY i DESC",
    "mixed": "ORDER BY hash(i)",
}


def question(window: str, condition: str) -> str:
    """What rows add that a condition on a window keeps: those of watched units are a group."""
    inner = f"SELECT customer_id, channel, amount, placed, {window} FROM orders"
    return f"SELECT channel, SUM(amount), COUNT(*) FROM ({inner}) AS t WHERE {condition} GROUP BY channel"


@functools.cache
def statements(sql: str) -> tuple[str, ...]:
    """All ways in which it may be asked."""
    plan = plan_of(sql, SHOP)
    return tuple({text_of(part) for part in every_way(plan, request(3, 1), ("laplace",))})


def filled(others: int, layout: str, threads: int) -> duckdb.DuckDBPyConnection:
    """The same watched rows, with others around them."""
    connection = duckdb.connect(":memory:", config={"threads": threads})
    connection.execute(
        "CREATE TABLE orders (customer_id BIGINT, amount DOUBLE, placed DATE, channel VARCHAR)"
    )
    rows = others + WATCHED * EACH
    every = max(1, rows // (WATCHED * EACH))
    watched = f"(i % {every} = 0 AND i // {every} < {WATCHED * EACH})"
    connection.execute(
        f"INSERT INTO orders SELECT"
        f" CASE WHEN mine THEN n // {EACH} ELSE 1000 + i // 5 END,"
        f" CASE WHEN mine AND n % {EACH} < 2 THEN 50 ELSE (i * 7919) % 97 END"
        f" * CASE WHEN n % {EACH} IN (3, 5) THEN -1 ELSE 1 END,"
        f" DATE '2025-01-01' + CAST(CASE WHEN mine THEN (n % {EACH}) // 4 ELSE i % 2 END AS INTEGER),"
        f" CASE WHEN mine THEN 'web' ELSE 'shop' END"
        f" FROM (SELECT i, {watched} AS mine, i // {every} AS n FROM range({rows}) AS r(i)) AS s"
        f" WHERE TRUE {LAYOUTS[layout]}"
    )
    return connection


def added(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    """What watched units add."""
    given = {"salt": SALT} if "salt" in parameters(sql) else None
    return [row for row in connection.execute(sql, given).fetchall() if row[0] == "web"]


def differing(
    asked: dict[str, str], others: int, layouts: tuple[str, ...], threads: tuple[int, ...]
) -> set[str]:
    """The questions in which watched units' rows depend on more than themselves."""
    found: dict[str, set[str]] = {name: set() for name in asked}
    for layout, number in itertools.product(layouts, threads):
        with filled(others, layout, number) as connection:
            for name, sql in asked.items():
                results = [added(connection, text) for text in statements(sql)]
                assert results[0]
                found[name].add(repr(results))
    return {name for name, results in found.items() if len(results) > 1}


NUMBERED = "SELECT customer_id, channel, amount, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed) AS v FROM orders"
ABOVE = {
    "both sides of a union": f"SELECT channel, COUNT(DISTINCT amount) FROM ({NUMBERED} UNION ALL {NUMBERED}) AS t WHERE v = 2 GROUP BY channel",
    "different rows": f"SELECT channel, COUNT(*) FROM (SELECT DISTINCT customer_id, channel, v, amount FROM ({NUMBERED}) AS n) AS t WHERE v * 20 < amount GROUP BY channel",
    "a unit's groups": f"SELECT channel, SUM(s) FROM (SELECT customer_id, channel, MAX(amount) AS s FROM ({NUMBERED}) AS n WHERE v <= 3 GROUP BY customer_id, channel) AS t GROUP BY channel",
    "what is counted": f"SELECT channel, COUNT(*) FILTER (WHERE v <= 3 AND amount > 30) FROM ({NUMBERED}) AS t GROUP BY channel",
}
"""What reads such rows."""
FEW = ("there", "gone", "mixed")
TOLD = {name: question(*window) for name, window in SEEN.items()}
TOLD |= ABOVE
ALL = TOLD | {name: question(*window) for name, window in EQUAL.items()}
ZEROS = (
    "SELECT channel, COUNT(*) FROM (SELECT customer_id, channel, zero, ROW_NUMBER() OVER (PARTITION BY customer_id) AS v"
    " FROM (SELECT customer_id, channel, amount * 0 AS zero FROM orders) AS z) AS t"
    " WHERE v <= 3 AND CAST(zero AS TEXT) = '0' GROUP BY channel"
)
"""Rows that differ by nothing but the sign of a zero."""
TWINS = (
    "SELECT channel, COUNT(*) FROM (SELECT customer_id, channel, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY channel) AS v,"
    " ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY channel DESC) AS w FROM orders) AS t WHERE v = w GROUP BY channel"
)
"""Rows that differ by nothing, in two orders: which of them is the first of both?"""


@pytest.fixture
def afresh() -> Iterator[None]:
    """Statements as a planted fault writes them."""
    statements.cache_clear()
    yield
    statements.cache_clear()


def test_a_window_sees_the_same_of_a_unit_whoever_else_there_is() -> None:
    asked = ALL | {"zeros": ZEROS, "twins": TWINS}
    assert differing(asked, 900, FEW, (1,)) == set()


MANY = 250_000
"""Rows that several threads share: an engine hands them out in parts of 122,880."""


def test_threads_do_not_decide() -> None:
    """Watched rows stay in one order among themselves; others are behind them, or between."""
    some = {name: TOLD[name] for name in ("a row's number", "the row before")}
    assert differing(some, MANY, ("first", "between"), (2,)) == set()


@pytest.mark.slow
def test_nor_do_they_for_any_window() -> None:
    asked = ALL | {"zeros": ZEROS, "twins": TWINS}
    assert differing(asked, 400_000, tuple(LAYOUTS), (1, 2, 4)) == set()


def unchecked(sql: str) -> list[str]:
    """The statements of a question that the second check lets pass."""
    passed = []
    for text in statements(sql):
        with contextlib.suppress(Unsafe):
            Guard(opened(SHOP).policy).check(text)
            passed.append(text)
    return passed


@pytest.mark.usefixtures("afresh")
def test_windows_that_go_by_the_analysts_keys_alone_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: no ties are broken. Each window that tells rows apart is found here, and refused."""
    monkeypatch.setattr(ties, "_ties", lambda *_: ())
    assert differing(ALL, 900, ("there", "mixed"), (1,)) == TOLD.keys()
    assert {name: found for name, sql in TOLD.items() if (found := unchecked(sql))} == {}


@pytest.mark.slow
@pytest.mark.usefixtures("afresh")
def test_others_alone_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the same, where watched rows stay in one order; threads race, so it is tried often."""
    monkeypatch.setattr(ties, "_ties", lambda *_: ())
    rank = {"n": TOLD["a row's number"]}
    assert any(differing(rank, MANY, ("first", "between"), (2, 4)) for _ in range(40))


@pytest.mark.usefixtures("afresh")
def test_signs_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: both zeros are one value to an ORDER BY."""
    written = expressions._ties
    signs = re.compile("signbit")
    monkeypatch.setattr(
        expressions, "_ties", lambda *a: [t for t in written(*a) if not signs.match(t)]
    )
    assert differing({"zeros": ZEROS}, 900, FEW, (1,)) == {"zeros"}
    assert unchecked(ZEROS) == []


@pytest.mark.usefixtures("afresh")
def test_two_orders_in_one_select_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the second window does not know what the first said of equal rows."""
    monkeypatch.setattr(ties, "_order", lambda _: ())
    assert unchecked(TWINS) == []
