"""A parameter stands wherever a constant may, and nowhere else; text is text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlglot import exp
from support.services import service

from dpsql.diagnostics.refusal import Refused
from dpsql.service import Session
from dpsql.sql.parse import Source, parse

DIALECTS = ("postgres", "duckdb", "snowflake", "bigquery")


def found(sql: str, dialect: str) -> list[str]:
    """Parameters and constants in the order of the text, by what is in them."""
    tree = parse(Source(sql, dialect)).tree
    named = exp.Parameter, exp.Placeholder, exp.Literal
    nodes = [
        n
        for n in tree.find_all(*named)
        if not isinstance(n.parent, exp.Parameter | exp.Placeholder)
    ]
    return sorted(
        str(n.this) if isinstance(n, exp.Literal) else f"${n.name or n.this}" for n in nodes
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT COUNT(*) FROM t WHERE a IN ($1,$2,$3)", ["$1", "$2", "$3"]),
        ("SELECT COUNT(*) FROM t WHERE a IN($1,$2) OR b IN($1,$3)", ["$1", "$1", "$2", "$3"]),
        ("SELECT ABS($1)+ABS($2) AS v", ["$1", "$2"]),
        ("SELECT $1::int,$2::int", ["$1", "$2"]),
        ("SELECT '$1,$2' AS a,'it''s $1,$2' AS b,$1,$2", ["$1", "$1,$2", "$2", "it's $1,$2"]),
        ('SELECT $1 AS "$1,$2",$2', ["$1", "$2"]),
        ("SELECT $1,$2 -- $1,$3", ["$1", "$2"]),
        ("SELECT $1,/* $3,$3 */$2", ["$1", "$2"]),
    ],
)
def test_parameters_are_told_from_text(dialect: str, sql: str, wanted: list[str]) -> None:
    if dialect == "bigquery":
        sql = sql.replace("it''s", r"it\'s").replace('"$1,$2"', "`$1,$2`")
    assert found(sql, dialect) == wanted
    assert found(sql.replace(",$", ", $").replace("', $", "',$"), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_is_at_its_place(dialect: str) -> None:
    sql = "SELECT COUNT(*) FROM t WHERE a IN ($1,$2) AND nowhere(x) = $1"
    with pytest.raises(Refused) as caught:
        parse(Source(sql, dialect))
    span = caught.value.first.span
    assert span is not None
    assert sql[span.start :].startswith("nowhere")


@pytest.mark.parametrize("sql", [r"SELECT E'a\' ,$1,$2'", "SELECT /* /* */ ' */ $1,$2 --'"])
def test_where_quotes_are_hard_to_tell_nothing_is_moved(sql: str) -> None:
    """A blank in a constant would change it."""
    with pytest.raises(Refused):
        parse(Source(sql))


SAME: list[tuple[str, tuple[Any, ...], str]] = [
    ("SELECT date_trunc($1, started) m, COUNT(*) FROM visits GROUP BY date_trunc($2, started)",
     ("month", "month"),
     "SELECT date_trunc('month', started) m, COUNT(*) FROM visits GROUP BY 1"),
    ("SELECT date_trunc($1::VARCHAR, started) m, COUNT(*) FROM visits GROUP BY 1", ("month",),
     "SELECT date_trunc('month', started) m, COUNT(*) FROM visits GROUP BY 1"),
    ("SELECT to_char(started, $1) m, COUNT(*) FROM visits GROUP BY 1", ("YYYY-MM",),
     "SELECT to_char(started, 'YYYY-MM') m, COUNT(*) FROM visits GROUP BY 1"),
    ("SELECT extract($1 FROM started) m, COUNT(*) FROM visits GROUP BY 1", ("year",),
     "SELECT extract(year FROM started) m, COUNT(*) FROM visits GROUP BY 1"),
    ("SELECT date_part(?, started) m, COUNT(*) FROM visits GROUP BY 1", ("year",),
     "SELECT date_part('year', started) m, COUNT(*) FROM visits GROUP BY 1"),
    ("SELECT COUNT(*) n FROM visits WHERE started > TIMESTAMP '2025-01-01' - $1::interval",
     ("1 day, 12:00:00",),
     "SELECT COUNT(*) n FROM visits WHERE started > TIMESTAMP '2025-01-01' - INTERVAL '36 hours'"),
    ("SELECT COUNT(*) n FROM visits WHERE started > TIMESTAMP '2025-01-01' - CAST($1 AS interval)",
     ("2 months",),
     "SELECT COUNT(*) n FROM visits WHERE started > TIMESTAMP '2025-01-01' - INTERVAL '2 months'"),
    ("SELECT COUNT(*) n FROM visits WHERE started > TIMESTAMP '2025-01-01' - INTERVAL $1",
     ("2 months",),
     "SELECT COUNT(*) n FROM visits WHERE started > TIMESTAMP '2025-01-01' - INTERVAL '2 months'"),
    ("SELECT percentile_cont($1) WITHIN GROUP (ORDER BY seconds) n FROM visits", (0.5,),
     "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) n FROM visits"),
    ("SELECT COUNT(*) n FROM visits WHERE page LIKE $1 ESCAPE $2", ("a!_%", "!"),
     "SELECT COUNT(*) n FROM visits WHERE page LIKE 'a!_%' ESCAPE '!'"),
    ("SELECT channel, COUNT(*) n FROM orders GROUP BY 1 ORDER BY 1 LIMIT ? OFFSET ?", (2, 1),
     "SELECT channel, COUNT(*) n FROM orders GROUP BY 1 ORDER BY 1 LIMIT 2 OFFSET 1"),
    ("SELECT ROUND(AVG(amount), $1) n FROM orders", (2,),
     "SELECT ROUND(AVG(amount), 2) n FROM orders"),
    ("SELECT COUNT(*) n FROM customers WHERE age > - $1 AND age < $2", (-30, Decimal("50.5")),
     "SELECT COUNT(*) n FROM customers WHERE age > 30 AND age < 50.5"),
    ("SELECT COUNT(*) n FROM orders WHERE channel = $1 OR channel = $2", ("it's $1", "web"),
     "SELECT COUNT(*) n FROM orders WHERE channel = 'it''s $1' OR channel = 'web'"),
    ("SELECT $1 AS a, COUNT(*) n FROM orders GROUP BY $1 ORDER BY $1", (2,),
     "SELECT 2 AS a, COUNT(*) n FROM orders"),
    ("SELECT $1::int a, $2::int b, $3::int c", (2.5, Decimal("2.5"), 7),
     "SELECT CAST(2.5 AS double precision)::int a, 2.5::int b, 7 c"),
]  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with service("oracle", "shop") as here:
        yield here.session("oracle")


@pytest.mark.parametrize(("sql", "values", "written"), SAME)
def test_a_parameter_is_the_constant_of_its_value(
    session: Session, sql: str, values: tuple[Any, ...], written: str
) -> None:
    found, wanted = session.execute(sql, values), session.execute(written)
    assert found.table.to_pylist() == wanted.table.to_pylist()
    assert found.table.num_rows
    assert [c.name for c in found.columns] == [c.name for c in wanted.columns]


@pytest.mark.parametrize("value", ["orders", "customer_id", 1, 1.5, None, True])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM $1",
        "SELECT COUNT(*) FROM orders, $1",
        "SELECT COUNT(*) FROM orders $1",
        "SELECT COUNT(*) AS $1 FROM orders",
        "SELECT COUNT(*) $1 FROM orders",
        "SELECT 'a' $1",
        "SELECT $1 'a'",
        "WITH $1 AS (SELECT 1 AS x) SELECT x FROM orders",
        "SELECT COUNT($1.customer_id) FROM orders",
        "SELECT COUNT(orders.$1) FROM orders",
        "SELECT COUNT(*) FROM orders JOIN customers USING ($1)",
        "WITH a($1) AS (SELECT 1) SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) FROM (VALUES (1)) AS a($1)",
        "SELECT COUNT(*) OVER $1 FROM countries",
    ],
)
def test_a_parameter_is_no_name(session: Session, sql: str, value: object) -> None:
    with pytest.raises(Refused) as caught:
        session.prepare(sql, [value])
    assert caught.value.first.code in ("DP102", "DP113")


def test_a_value_is_no_position(session: Session) -> None:
    """``ORDER BY 2`` sorts by the second column; a value sorts by nothing, as in PostgreSQL."""
    sql = "SELECT country, population FROM countries ORDER BY {} DESC, 1"
    by_value = session.execute(sql.format("$1"), [2]).table.to_pylist()
    assert (
        by_value
        == session.execute(sql.format("country || 'x', 1").replace("DESC, 1", "")).table.to_pylist()
    )
    assert by_value != session.execute(sql.format("2")).table.to_pylist()


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("1 day 12:00:00", 36),
        ("1 day, 0:30:00", 24.5),
        ("-1 day 01:00", -23),
        ("90 minutes 30 min", 2),
    ],
)
def test_no_part_of_an_interval_is_dropped(session: Session, text: str, hours: float) -> None:
    sql = "SELECT TIMESTAMP '2025-01-01 00:00:00' + INTERVAL '{}' AS a"
    found = session.execute(sql.format(text)).table.column(0)[0].as_py()
    assert found == datetime(2025, 1, 1) + timedelta(hours=hours)  # noqa: DTZ001


@pytest.mark.parametrize("text", ["1 day nonsense", "1 month 1 day", "1 day 1.5 hours", "1 day '"])
def test_an_interval_that_is_not_read_whole_is_refused(session: Session, text: str) -> None:
    with pytest.raises(Refused) as caught:
        session.execute(
            "SELECT TIMESTAMP '2025-01-01' + INTERVAL '" + text.replace("'", "''") + "'"
        )
    assert caught.value.first.code == "DP205"
