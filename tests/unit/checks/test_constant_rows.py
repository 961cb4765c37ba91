"""Rows that are made out of nothing: bounded before an engine makes them."""

from __future__ import annotations

import pytest
from support.services import session
from support.shop import bound, refusal

from dpsql import effort
from dpsql.checks import constant_rows
from dpsql.diagnostics.refusal import Refused

SERIES = "GENERATE_SERIES(1, 10000) AS {0}({0})"
A, B, C = (SERIES.format(name) for name in "abc")
LISTED = f"(VALUES {', '.join(f'({n})' for n in range(220))}) AS {{0}}({{0}})"
LARGE = (
    f"SELECT COUNT(*) FROM {A}, {B}",
    f"SELECT COUNT(*) FROM {A} JOIN {B} ON a = b",
    f"SELECT COUNT(*) FROM {A} LEFT JOIN {B} ON a = b",
    f"SELECT COUNT(*) FROM {LISTED.format('a')}, {LISTED.format('b')}, {LISTED.format('c')}",
    f"SELECT COUNT(*) FROM (SELECT a FROM {A} WHERE a > 5 ORDER BY a) AS t, {B}",
    f"SELECT COUNT(*) FROM (SELECT a, COUNT(*) AS n FROM {A} GROUP BY a) AS t, {B}",
    f"SELECT COUNT(*) FROM (SELECT a FROM {A} UNION ALL SELECT b FROM {B}) AS t, {C}",
    f"SELECT COUNT(*) FROM countries WHERE country IN (SELECT 'x' FROM {A}, {B})",
    f"SELECT COUNT(*) FROM countries, (SELECT MAX(a + b) AS m FROM {A}, {B}) AS t",
    f"SELECT COUNT(*) FROM customers WHERE age > (SELECT COUNT(*) FROM {A}, {B})",
    f"WITH t AS (SELECT a FROM {A}) SELECT COUNT(*) FROM t AS one, t AS two",
    f"SELECT COUNT(*) FROM (SELECT a FROM {A} LIMIT 5000) AS t, {B}",
)
FEW = (
    f"SELECT COUNT(*) FROM {A}",
    f"SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM {A}) AS t, {B}",
    f"SELECT COUNT(*) FROM (SELECT a FROM {A} LIMIT 5) AS t, {B}",
    f"SELECT COUNT(*) FROM (SELECT a FROM {A} OFFSET 5) AS t",
    f"SELECT COUNT(*) FROM countries, {A}",
    f"SELECT COUNT(*) FROM {LISTED.format('a')}, {LISTED.format('b')}",
)


@pytest.mark.parametrize("sql", LARGE)
def test_too_many_rows_of_constants_are_refused(sql: str) -> None:
    found = refusal(sql)
    assert found is not None
    assert "rows of constants" in found.headline
    assert (found.code, found.position is not None) == ("DP115", True)


@pytest.mark.parametrize("sql", FEW)
def test_others_are_not(sql: str) -> None:
    assert list(constant_rows.check(bound(sql))) == []


def test_without_the_rule_they_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that the tests above are for; planned, they run for as long as a statement may."""
    monkeypatch.setattr(constant_rows, "MOST_CONSTANT_ROWS", 10**30)
    assert refusal(LARGE[0]) is None


def test_groups_to_be_counted_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    analyst = session("shop", "shop", "analyst")
    asked = (
        "SELECT (age * 1000 + EXTRACT(DOY FROM placed) + {}) % 7, COUNT(*)"
        " FROM customers JOIN orders USING (customer_id) GROUP BY 1"
    )
    monkeypatch.setattr(effort, "MOST_STEPS", 60_000)
    analyst.prepare(asked.format("1"))
    with pytest.raises(Refused, match="DP115"):
        analyst.prepare(asked.format("LENGTH(channel)"))
