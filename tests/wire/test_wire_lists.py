"""Lists as drivers write them, and what else is read from tokens alone."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from endpoint import Endpoint
from sqlglot import exp

from dpsql.diagnostics.refusal import Refused
from dpsql.serve.catalog.names import column_names
from dpsql.serve.lists import constant, with_lists
from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.errors import WireError, wire_error
from dpsql.serve.pgwire.probing import MOST_WORK, infer_parameters
from dpsql.serve.tokens import tokens
from dpsql.serve.uses import tables
from dpsql.sql.dialects.tables import DIALECTS
from dpsql.sql.parse import Source, parse


@pytest.mark.parametrize(
    ("sql", "values", "text", "left"),
    [
        ("a = ANY($1)", [["x", None]], "a IN ('x', NULL)", []),
        ("a = some ($2) AND b > $1", [5, [1, 2]], "a IN (1, 2) AND b > $1", [5]),
        ("a <> ALL($1) OR a = $2", [[], 7], "a NOT IN (NULL) IS NOT FALSE OR a = $1", [7]),
        ("a = ANY($1)", [[]], "a IN (NULL) IS TRUE", []),
        ("a = ANY($1)", ['{p,"q,r",NULL}'], "a IN ('p', 'q,r', NULL)", []),
        ("a = ANY($1)", [None], "a IN (NULL)", []),
        ("a = ANY('{1,2}'::int[])", [], "a IN ('1', '2')", []),
        ("a != ALL(ARRAY[1, -2, 'x'])", [], "a NOT IN (1, - 2, 'x')", []),
        ("a = ANY(ARRAY[b + 1])", [], "a = ANY(ARRAY[b + 1])", []),
        ("a = ANY(SELECT b FROM t)", [], "a = ANY(SELECT b FROM t)", []),
        ("a = ANY($1", [[1]], "a = ANY($1", [[1]]),
        ("a < ANY($1)", [[1]], "a < ANY($1)", [[1]]),
    ],
)
def test_lists_become_constants(sql: str, values: list[Any], text: str, left: list[Any]) -> None:
    found = with_lists(sql, tokens(sql), values)
    assert (found[0], found[2]) == (text, left)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "TRUE"), (3, "3"), (0.5, "0.5"), (Decimal("1.50"), "1.50"), ("it's", "'it''s'"),
        (dt.datetime(2024, 1, 2, 3), "TIMESTAMP '2024-01-02 03:00:00'"),  # noqa: DTZ001
        (dt.date(2024, 1, 2), "DATE '2024-01-02'"), (uuid.UUID(int=1), f"'{uuid.UUID(int=1)}'"),
    ],
)  # fmt: skip
def test_constants(value: Any, text: str) -> None:
    assert constant(value) == text


@pytest.mark.parametrize("value", [b"x", dt.time(3), float("nan"), Decimal("Infinity"), [1]])
def test_what_no_constant_is_read_as_is_refused_and_not_left_out(value: Any) -> None:
    with pytest.raises(WireError, match="of this type"):
        with_lists("a = ANY($1)", tokens("a = ANY($1)"), [[value]])


EVIL = [r"\', 'web') OR channel IN ('shop", r"a\\' b", "it's", "\\", "\n'"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("value", EVIL)
def test_a_text_in_a_list_is_one_constant_in_every_dialect(dialect: str, value: str) -> None:
    """A program that hands on what its users type must not hand on SQL."""
    sql = "SELECT COUNT(*) FROM orders WHERE channel = ANY($1)"
    escapes = DIALECTS[dialect].escapes
    text, _, left = with_lists(sql, tokens(sql), [[value]], escapes=escapes)
    found = parse(Source(text, dialect)).tree
    assert left == []
    assert [str(node.this) for node in found.find_all(exp.Literal)] == [value]
    if escapes and "\\" in value:
        naive, _, _ = with_lists(sql, tokens(sql), [[value]])
        try:
            read = [str(n.this) for n in parse(Source(naive, dialect)).tree.find_all(exp.Literal)]
        except Refused:
            read = []
        assert read != [value], "else the test would show nothing"


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("channel = ANY(%s)", ["web", "shop"]), ("placed = ANY(%s)", [dt.date(2024, 5, 1)]),
        ("customer_id <> ALL(%s)", [1, 2, 3]), ("channel = ANY(%s)", []),
    ],
)  # fmt: skip
def test_lists_are_answered_as_constants_are(shop: Endpoint, condition: str, value: Any) -> None:
    with psycopg.connect(shop.dsn(), autocommit=True) as c:
        found = c.execute(f"SELECT count(*) FROM orders WHERE {condition}", (value,)).fetchall()
        assert len(found) == 1
        if value:
            word = "IN" if "ANY" in condition else "NOT IN"
            listed = ", ".join(map(constant, value))
            left = condition.split()[0]
            sql = f"SELECT count(*) FROM orders WHERE {left} {word} ({listed})"
            assert c.execute(sql).fetchall() == found


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("TABLE orders", ["orders"]), ("SELECT * FROM (TABLE a) x UNION TABLE b", ["a", "b"]),
        ("SELECT a.table FROM t AS a", ["t"]), ("FROM a b JOIN c USING (x)", ["a", "c"]),
    ],
)  # fmt: skip
def test_tables_that_a_statement_names(sql: str, named: list[str]) -> None:
    assert [n.name for n in tables(tokens(sql))] == named


def test_a_table_by_itself_is_its_rows(shop: Endpoint) -> None:
    with psycopg.connect(shop.dsn(), autocommit=True) as c:
        assert len(c.execute("TABLE countries").fetchall()) == 9
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            c.execute("TABLE customers")
        with pytest.raises(psycopg.errors.SyntaxError):
            c.execute("TABLE")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("VALUES (1, (2)), (3, 4)", ["column1", "column2"]), ("SELECT true, NULL", ["?column?"] * 2),
        ("SELECT TIMESTAMP '2024-01-01', 'x'", ["timestamp", "?column?"]), ("SELECT x[1]", ["x"]),
        ("(SELECT a b)", ["b"]), ("SELECT EXISTS (SELECT 1), (SELECT max(y) FROM t)", ["exists", "max"]),
        ("SELECT CAST(1 + 1 AS bigint), CAST(NULL AS pg_catalog.text), CAST(f(x) AS date)", ["int8", "text", "f"]),
        ("SHOW x", []), ("SELECT ARRAY[1], CAST(a AS int), 1::pg_catalog.int4", ["array", "a", "int4"]),
    ],
)  # fmt: skip
def test_names_of_columns(sql: str, names: list[str]) -> None:
    assert column_names(tokens(sql)) == names


def test_a_defect_is_told_by_its_number_only(caplog: pytest.LogCaptureFixture) -> None:
    told = wire_error(ZeroDivisionError("secret"))
    assert told.sqlstate == "XX000"
    assert "secret" not in told.message
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text


def test_types_are_looked_for_so_long() -> None:
    """Each try plans the statement: a thousand parameters are not a thousand times a thousand."""
    sql = f"SELECT count(*) FROM orders WHERE customer_id IN ({', '.join(f'${i}' for i in range(1, 1001))})"
    tries: list[int] = []

    def accepts(values: Sequence[Any]) -> bool:
        tries.append(len(values))
        return not set(map(str, values)) & {"x", "t", "1.5"}

    found = infer_parameters(tokens(sql), [0] * 1000, accepts).oids
    assert sum(tries) <= MOST_WORK
    assert found[0] == oids.INT8
    assert found[-1] == oids.TEXT
    few = infer_parameters(tokens("SELECT $1 + $2"), [0, 0], accepts).oids
    assert few == (oids.INT8, oids.INT8)
