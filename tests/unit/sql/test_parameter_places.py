"""Parameters without a blank between them are parameters, and text is text."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dpsql.diagnostics.refusal import Refused
from dpsql.sql.parse import Source, parse

DIALECTS = ("postgres", "duckdb", "snowflake", "bigquery")


def found(sql: str, dialect: str) -> list[str]:
    """Parameters and constants in the order of the text, by what is in them."""
    tree = parse(Source(sql, dialect, (1, 2, 3))).tree
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
        parse(Source(sql, dialect, (1, 2)))
    span = caught.value.first.span
    assert span is not None
    assert sql[span.start :].startswith("nowhere")


@pytest.mark.parametrize("sql", [r"SELECT E'a\' ,$1,$2'", "SELECT /* /* */ ' */ $1,$2 --'"])
def test_where_quotes_are_hard_to_tell_nothing_is_moved(sql: str) -> None:
    """A blank in a constant would change it."""
    with pytest.raises(Refused):
        parse(Source(sql, "postgres", (1, 2)))
