# ruff: noqa: DTZ001 (timestamps are naive here)
"""Constants and dates as BI tools write them."""

from __future__ import annotations

from datetime import datetime

import pytest
from support.measured import text_of
from support.services import session
from support.shop import priced, refusal

SAME = (
    ("placed >= TO_DATE('2025-01-01', 'YYYY-MM-DD')", "placed >= DATE '2025-01-01'"),
    (
        "placed < TO_TIMESTAMP('2025-01-01 10:30:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')",
        "placed < TIMESTAMP '2025-01-01 10:30:00'",
    ),
    ("placed >= TIMESTAMP '2025-01-01T00:00:00Z'", "placed >= TIMESTAMP '2025-01-01 00:00:00'"),
    (
        "placed < DATE '2025-06-01' + -3 * INTERVAL '1 MONTH'",
        "placed < DATE '2025-06-01' + INTERVAL '-3 months'",
    ),
    ("amount <= 0.06 + 0.01", "amount <= 0.07"),
    ("amount <= 0.7 - 0.6", "amount <= 0.1"),
    ("amount <= 1.1 * 3", "amount <= 3.3"),
)


@pytest.mark.parametrize(("written", "meant"), SAME)
def test_constants_are_read_before_any_row(written: str, meant: str) -> None:
    first, second = (priced(f"SELECT COUNT(*) FROM orders WHERE {w}") for w in (written, meant))
    assert [text_of(p) for p in first.parts] == [text_of(p) for p in second.parts]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("TO_DATE(channel, 'YYYY-MM-DD') IS NULL", "DP114"),
        ("TO_DATE('2025-13-01', 'YYYY-MM-DD') IS NULL", "DP205"),
        ("TO_CHAR(placed, 'Day') = 'Monday'", "DP114"),
        ("TO_CHAR(placed, channel) = '2025'", "DP114"),
        ("DATE_BIN('1 month', placed, DATE '2024-01-01') IS NULL", "DP205"),
        ("placed >= TIMESTAMP '2025-01-01T00:00:00+02:00'", "DP205"),
    ],
)
def test_what_depends_on_rows_or_settings_is_refused(call: str, code: str) -> None:
    refused = refusal(f"SELECT COUNT(*) FROM orders WHERE {call}")
    assert refused is not None
    assert refused.code == code


def test_no_row_is_read_for_no_row() -> None:
    plan = priced("SELECT * FROM (SELECT country, age FROM customers) AS t LIMIT 0")
    assert not plan.parts
    assert not plan.plan.publics


def test_one_column_under_two_names() -> None:
    reply = session("oracle", "shop").execute(
        "SELECT country AS a, country AS b FROM countries ORDER BY 1 LIMIT 1"
    )
    assert reply.table.to_pylist() == [{"o0": "at", "o1": "at"}]


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("1, 3", [1, 2, 3]),
        ("1, 6, 2", [1, 3, 5]),
        ("3, 1, -1", [3, 2, 1]),
        ("3, 1", []),
        (
            "DATE '2024-01-31', DATE '2024-03-30', INTERVAL '1 month'",
            [datetime(2024, 1, 31), datetime(2024, 2, 29), datetime(2024, 3, 29)],
        ),
        (
            "TIMESTAMP '2024-01-01 02:00:00', TIMESTAMP '2024-01-01', INTERVAL '-1 hour'",
            [datetime(2024, 1, 1, h) for h in (2, 1, 0)],
        ),
    ],
)
def test_a_series_of_constants(call: str, values: list[object]) -> None:
    reply = session("oracle", "shop").execute(f"SELECT v FROM GENERATE_SERIES({call}) AS s(v)")
    assert reply.table.column(0).to_pylist() == values


@pytest.mark.parametrize(
    "call", ["1, age", "1, 100000", "1, 5, 0", "0.5, 2", "DATE '2024-01-01', 5"]
)
def test_a_series_is_of_literals(call: str) -> None:
    refused = refusal(f"SELECT COUNT(*) FROM GENERATE_SERIES({call}) AS s(v)")
    assert refused is not None
    assert refused.code in ("DP105", "DP114")


def test_shares_of_a_total_have_a_fraction() -> None:
    sql = "SELECT page, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY page"
    shares = session("oracle", "shop").execute(sql).table.column(1).to_pylist()
    assert sum(shares) == pytest.approx(1)
    assert 0 < min(shares) < 1
