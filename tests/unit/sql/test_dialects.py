"""Each dialect's words mean what its documentation says; what is not known there is refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

import duckdb
import pytest
from support.services import service

from dpsql.cli import arguments
from dpsql.diagnostics.refusal import Refused
from dpsql.service import Session
from dpsql.sql.allow import ALLOWED
from dpsql.sql.dialects.same import ALSO_SAME, SAME
from dpsql.sql.dialects.tables import DIALECTS, POSTGRES
from dpsql.sql.nodes import RECORDED

OTHERS = [d for d in DIALECTS.values() if d is not POSTGRES]
LINES = (Path(__file__).parent / "dialect_values.tsv").read_text(encoding="utf-8").splitlines()
VALUES = [tuple(line.split("\t")) for line in LINES]
"""Dialect, expression, and the value that its documentation gives or implies."""


@cache
def session(dialect: str) -> Session:
    opened = service("oracle", "shop").session()
    opened.execute(f"SET dpsql.dialect = '{dialect}'")
    return opened


def value(dialect: str, expression: str) -> object:
    reply = session(dialect).execute(f"SELECT {expression} AS v")
    return reply.table.column(0).to_pylist()[0]


@pytest.mark.parametrize(("dialect", "expression", "expected"), VALUES)
def test_an_expression_means_what_the_dialect_says(
    dialect: str, expression: str, expected: str
) -> None:
    wanted = eval(expected, {"date": date, "datetime": datetime, "NULL": None})
    found = value(dialect, expression)
    found = float(found) if isinstance(found, Decimal) else found
    assert type(found) is type(wanted)
    assert found == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)


@pytest.mark.parametrize("expression", [e for d, e, _ in VALUES if d == "duckdb"])
def test_duckdb_itself_agrees(expression: str) -> None:
    ((itself,),) = duckdb.sql(f"SELECT {expression}").fetchall()
    mine = value("duckdb", expression)
    assert mine == (float(itself) if isinstance(mine, float) else itself)


@pytest.mark.parametrize("dialect", OTHERS, ids=lambda d: d.name)
def test_every_listed_construct_is_the_same_or_changed(dialect: object) -> None:
    assert dialect in OTHERS
    name = dialect.name  # type: ignore[attr-defined]
    changes = set(DIALECTS[name].changes)
    recorded = {kind for kind, node in RECORDED.items() if name in node.dialects}
    assert set(ALLOWED) - SAME - ALSO_SAME[name] - recorded - changes == set()
    assert recorded & changes == set()
    assert SAME & changes == set()
    assert ALSO_SAME[name] & changes == set()
    assert SAME | ALSO_SAME[name] <= set(ALLOWED)
    for change in DIALECTS[name].changes.values():
        assert change.about


def test_the_command_line_offers_the_same_dialects() -> None:
    assert tuple(DIALECTS) == arguments.DIALECTS


@pytest.mark.parametrize(
    ("dialect", "sql", "code"),
    [
        ("bigquery", "SELECT DATE_BUCKET(placed, 1) FROM orders", "DP107"),
        ("bigquery", "SELECT COUNT(*) FROM orders, UNNEST([1, 2]) AS x", "DP107"),
        ("bigquery", "SELECT COUNT(*) FROM orders TABLESAMPLE SYSTEM (10 PERCENT)", "DP100"),
        ("bigquery", "SELECT * EXCEPT (name) FROM countries", "DP100"),
        ("bigquery", "SELECT SUM(placed - DATE '2024-01-01') FROM orders", "DP201"),
        ("bigquery", "SELECT CAST('a' AS STRING(3))", "DP100"),
        ("bigquery", "SELECT CAST(1 AS BIGNUMERIC)", "DP100"),
        ("bigquery", "SELECT 'a\\u00e9b'", "DP205"),
        ("bigquery", "SELECT CAST(TIMESTAMP '2024-01-01 00:00:00' AS STRING)", "DP201"),
        ("bigquery", "SELECT TIMESTAMP '2024-01-01 00:00:00' || 'x'", "DP201"),
        ("bigquery", "SELECT DIV(7.5, 2)", "DP201"),
        ("bigquery", "SELECT EXTRACT(MICROSECOND FROM DATE '2024-01-01')", "DP100"),
        ("bigquery", "SELECT DATE_DIFF(DATE '2024-01-01', DATE '2024-01-01', ISOYEAR)", "DP100"),
        (
            "bigquery",
            "SELECT TIMESTAMP_DIFF(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01', MICROSECOND)",
            "DP100",
        ),
        ("bigquery", "SELECT APPROX_QUANTILES(age, 4)[OFFSET(5)] FROM customers", "DP114"),
        ("bigquery", "SELECT APPROX_QUANTILES(age, 4)[OFFSET(age)] FROM customers", "DP114"),
        ("bigquery", "SELECT age[OFFSET(1)] FROM customers", "DP100"),
        ("bigquery", "SELECT LOG(8, 2)", "DP100"),
        ("bigquery", "SELECT LAST_DAY(DATE '2024-01-01', YEAR)", "DP100"),
        ("bigquery", "SELECT DATE(TIMESTAMP '2024-01-01', 'UTC')", "DP100"),
        ("bigquery", "SELECT TIMESTAMP('2024-01-01', 'UTC')", "DP100"),
        ("bigquery", "SELECT DATE(2024, 1 + 1, 1)", "DP100"),
        ("bigquery", "SELECT PARSE_DATE('%m-%d', '05-06')", "DP100"),
        ("bigquery", "SELECT TRIM('a', name) FROM countries", "DP114"),
        ("bigquery", "SELECT DATE_ADD(DATE '2024-01-31', INTERVAL 1 HOUR)", "DP100"),
        (
            "bigquery",
            "SELECT DATE_SUB(TIMESTAMP '2024-01-31 00:00:00', INTERVAL 1 MINUTE)",
            "DP100",
        ),
        ("bigquery", "SELECT ROUND(2.5, 0, 'ROUND_HALF_EVEN')", "DP100"),
        ("snowflake", "SELECT LEFT('abc', -1)", "DP114"),
        ("snowflake", "SELECT ROUND(2.5, 0, 'HALF_TO_EVEN')", "DP100"),
        ("snowflake", "SELECT COUNT(TO_CHAR(placed, '%Y')) FROM orders", "DP114"),
        ("snowflake", "SELECT 'abc'::VARCHAR(2)", "DP100"),
        ("snowflake", "SELECT '2024-01-01'::TIMESTAMP_LTZ", "DP201"),
        ("snowflake", "SELECT channel, COUNT(*) FROM orders GROUP BY ALL channel", "DP100"),
        ("snowflake", "SELECT ADD_MONTHS('2024-01-31'::DATE, 1)", "DP107"),
        ("snowflake", "SELECT DATE_PART(nanosecond, '2024-01-01'::DATE)", "DP100"),
        ("snowflake", "SELECT TO_CHAR('2024-01-01'::DATE, 'MON')", "DP114"),
        ("snowflake", "SELECT ('2024-01-01'::TIMESTAMP)::VARCHAR", "DP201"),
        ("duckdb", "SELECT 1.5::VARCHAR", "DP201"),
        ("duckdb", "SELECT concat('a', 1.5)", "DP201"),
        ("duckdb", "SELECT 1::FLOAT", "DP100"),
        ("duckdb", "SELECT 1::HUGEINT", "DP100"),
        ("duckdb", "SELECT 7.5 // 2", "DP201"),
        ("duckdb", "SELECT log2(8)", "DP100"),
        ("duckdb", "SELECT date_diff('week', DATE '2024-01-01', DATE '2024-01-09')", "DP100"),
        ("duckdb", "SELECT [1, 2]", "DP100"),
        ("duckdb", "FROM orders SELECT COUNT(*) LIMIT 10%", "DP100"),
    ],
)
def test_what_is_not_known_there_is_refused_at_its_place(dialect: str, sql: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        session(dialect).execute(sql)
    assert caught.value.code == code
    assert caught.value.text == sql
    span = caught.value.first.span
    assert span is not None
    assert 0 <= span.start < span.end <= len(sql)


NAMES = [
    ("postgres", ["channel", "total", "Total"]),
    ("bigquery", ["Channel", "Total", "Total"]),
    ("duckdb", ["Channel", "Total", "Total"]),
    ("snowflake", ["CHANNEL", "TOTAL", "Total"]),
]


@pytest.mark.parametrize(("dialect", "names"), NAMES)
def test_names_are_folded_as_the_dialect_folds_them(dialect: str, names: list[str]) -> None:
    quote = "`" if dialect == "bigquery" else '"'
    sql = f"SELECT Channel, COUNT(*) AS Total, COUNT(*) AS {quote}Total{quote} FROM Orders GROUP BY channel"
    found = session(dialect).execute(sql)
    assert [c.name for c in found.columns] == names


def test_a_dialect_is_part_of_what_a_plan_is_remembered_by() -> None:
    opened = service("oracle", "shop").session()
    halves = []
    for dialect in ("postgres", "bigquery", "postgres"):
        opened.execute(f"SET dpsql.dialect = '{dialect}'")
        halves.append(opened.execute("SELECT 7 / 2 AS v").table.column(0).to_pylist()[0])
    assert halves == [3, 3.5, 3]


def test_an_answer_is_recalled_in_any_dialect_that_means_the_same() -> None:
    opened = service("oracle", "shop").session()
    asked = {
        "postgres": "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
        "snowflake": "SELECT CHANNEL, COUNT(*) FROM ORDERS GROUP BY 1",
        "bigquery": "SELECT `channel`, COUNT(*) FROM `orders` GROUP BY channel",
    }
    recalled = []
    for dialect, sql in asked.items():
        opened.execute(f"SET dpsql.dialect = '{dialect}'")
        recalled.append(opened.execute(sql).recalled)
    assert recalled == [False, True, True]


@pytest.mark.parametrize("dialect", [d.name for d in OTHERS])
def test_bigquery_s_form_is_read_in_every_dialect(dialect: str) -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 7) channel,"
        " SUM(amount, contribution_bounds_per_group => (0, 100)) AS n FROM orders GROUP BY channel"
    )
    assert session(dialect).prepare(sql).cost.epsilon == 7
    with pytest.raises(Refused) as caught:
        session(dialect).execute('SELECT COUNT(*, report_format => "JSON") FROM orders')
    assert caught.value.code == "DP406"


def test_approximate_quantiles_are_quantiles() -> None:
    sql = "SELECT APPROX_QUANTILES(age, 4)[OFFSET(2)], APPROX_QUANTILES(age, 100)[SAFE_OFFSET(50)] FROM customers"
    ((one, other),) = (r.values() for r in session("bigquery").execute(sql).table.to_pylist())
    (median,) = (
        session("postgres")
        .execute("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) FROM customers")
        .table.to_pylist()[0]
        .values()
    )
    assert one == other == median


def test_an_argument_that_has_no_part_in_the_translation_is_refused() -> None:
    """Before, the zone was dropped in silence."""
    sql = (
        "SELECT TIMESTAMP_TRUNC(placed, DAY, 'Europe/Berlin') AS d, COUNT(*) FROM orders GROUP BY 1"
    )
    with pytest.raises(Refused, match="TIMESTAMP_TRUNC with zone"):
        session("bigquery").prepare(sql)


def test_rows_are_not_compared_where_null_is_equal_to_null() -> None:
    sql = "SELECT COUNT(*) FROM customers WHERE (country, age) IN (('de', 30))"
    assert session("postgres").prepare(sql)
    with pytest.raises(Refused, match="TUPLE"):
        session("duckdb").prepare(sql)
