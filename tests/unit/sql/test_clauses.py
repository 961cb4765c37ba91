"""BigQuery's form: what is cut out of the tokens finds its node again, or is refused."""

from __future__ import annotations

import pytest
import sqlglot
from shop import priced, refusal
from sqlglot import exp

from dpsql.diagnostics.refusal import Refused
from dpsql.sql.clauses import attach_clauses, bounds_of, clause_of, take
from dpsql.sql.parse import Source, parse

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5) "


def test_spans_point_into_the_text_behind_a_clause() -> None:
    text = CLAUSE + "SUM(nothing, contribution_bounds_per_row => (0, 1)) FROM orders"
    refused = refusal(text)
    assert refused is not None
    span = refused.first.span
    assert span is not None
    assert text[span.start : span.end] == "nothing"


def test_each_select_keeps_its_own_clause() -> None:
    text = (
        "WITH a AS (SELECT 1 AS n), b AS ("
        + CLAUSE
        + "NULL AS x, COUNT(*) AS n FROM orders) SELECT * FROM b"
    )
    found = {
        select.expressions[0].sql(): clause_of(select)
        for select in parse(Source(text)).tree.find_all(exp.Select)
    }
    assert found["1 AS n"] is None
    assert found["*"] is None
    clause = found["NULL AS x"]
    assert clause is not None
    assert clause.terms.epsilon == 0.5


def test_each_call_keeps_its_own_bounds() -> None:
    text = (
        "SELECT SUM((amount), contribution_bounds_per_row => (0, 1)) + SUM(amount),"
        " COUNT(*, contribution_bounds_per_group => (+0, 3e0))::text FROM orders"
    )
    calls = list(parse(Source(text)).tree.find_all(exp.AggFunc))
    rows = [b.row if (b := bounds_of(call)) else None for call in calls]
    groups = [b.group if (b := bounds_of(call)) else None for call in calls]
    assert sorted(map(str, rows)).count("None") == 2
    assert (0, 1) in rows
    assert (0, 3) in groups


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SHOW SELECT WITH DIFFERENTIAL_PRIVACY", "DP100"),
        ("(1, x => 2)", "DP406"),
        ("(1, contribution_bounds_per_row => (1, 2))", "DP406"),
        (", x => 2", "DP102"),
        ("SELECT SUM(amount, contribution_bounds_per_row => (1..2, 3)) FROM orders", "DP406"),
        (CLAUSE.replace("0.5", "0.5, privacy_unit_column = a + b") + "1", "DP406"),
        (CLAUSE.replace("0.5", "0.5, privacy_unit_column = a.b.c") + "1", "DP406"),
        (CLAUSE.replace("0.5", "0.5, privacy_unit_column = 1") + "1", "DP406"),
        (CLAUSE.replace("epsilon = 0.5", "epsilon") + "1", "DP102"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(", "DP102"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY", "DP102"),
        ("SELECT SUM(amount, contribution_bounds_per_row =>", "DP102"),
        ("SELECT SUM(amount, contribution_bounds_per_row =>) FROM orders", "DP102"),
        ("WITH DIFFERENTIAL_PRIVACY SELECT 1", "DP102"),
    ],
)
def test_what_finds_no_node_is_refused(text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        priced(text)
    assert caught.value.code == code
    assert caught.value.text == text


def test_a_clause_that_finds_no_select_is_refused() -> None:
    tokens = sqlglot.tokenize(CLAUSE + "1", read="postgres")
    with pytest.raises(Refused) as caught:
        attach_clauses(exp.select("1"), take(tokens, CLAUSE + "1"))
    assert caught.value.code == "DP406"


def test_hints_do_not_pass_for_clauses() -> None:
    text = CLAUSE + "COUNT(*) FROM orders UNION ALL SELECT /*+ dpsql_clause_0 */ 1"
    with pytest.raises(Refused) as caught:
        take(sqlglot.tokenize(text, read="mysql"), text)
    assert caught.value.code == "DP100"


def test_names_and_types_may_be_asked_for_without_noise() -> None:
    assert priced(CLAUSE + "COUNT(*) AS n FROM orders LIMIT 0").parts == ()


def test_distinct_groups_are_an_answer_too() -> None:
    assert priced(CLAUSE + "DISTINCT country FROM customers").cost.epsilon == 0
    assert priced(CLAUSE + "DISTINCT city FROM customers").cost.epsilon == 0.5


@pytest.mark.parametrize("name", ["customer_id", "o.customer_id", '"customer_id"', "c.CUSTOMER_ID"])
def test_the_unit_may_be_named_by_any_column_that_equals_it(name: str) -> None:
    clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = {name}) COUNT(*)"
    if "." in name:
        assert priced(
            clause + " FROM orders o JOIN customers c ON o.customer_id = c.customer_id"
        ).parts
    else:
        assert priced(clause + " FROM orders").parts


@pytest.mark.parametrize("dialect", ["postgres"])
def test_the_report_is_refused_in_either_quote(dialect: str) -> None:
    for quoted in ("'JSON'", '"JSON"'):
        text = f"SELECT COUNT(*, report_format => {quoted}) FROM orders"
        with pytest.raises(Refused) as caught:
            parse(Source(text, dialect))
        assert caught.value.code == "DP406"
