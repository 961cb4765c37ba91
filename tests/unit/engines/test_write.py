"""The text of statements: each node is written, nothing is computed twice, and lines are short."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import get_args

import duckdb
import pytest
from support.corpus import CORPUS, SHOP
from support.measured import every_way, flat, plan_of, request, text_of

from dpsql.bound import UnitTotals
from dpsql.engines.duckdb import layout
from dpsql.engines.duckdb.layout import WIDTH, Clause, Text, lay_out
from dpsql.engines.duckdb.terms import Scope, bare, term
from dpsql.engines.duckdb.write import write, write_rows
from dpsql.ir import statements as s
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.relations import Values
from dpsql.policy.types import Kind
from dpsql.rewrite.statement import statement_of

AMOUNT = Column(1, "amount", Shape(Kind.DOUBLE))
N, V = s.Name("n"), s.Name("v0")
STEPS = s.Steps(AMOUNT, Fraction(0), Fraction(5), 2, 0, 20, 10)
ROWS = s.Read(Values((), ()), (("n", s.Number(1)),))
WRITTEN: dict[str, tuple[s.Term, str]] = {
    "Name": (s.Name("k0", "a"), "a.k0"),
    "StoredColumn": (s.StoredColumn('a "b"', "o0"), 'o0."a ""b"""'),
    "Number": (s.Number(-3), "-3"),
    "RowValue": (s.RowValue(AMOUNT), "x"),
    "KeyValue": (
        s.KeyValue(AMOUNT),
        "CASE WHEN isnan(x) THEN CAST('NaN' AS DOUBLE) ELSE x + 0.0e0 END",
    ),
    "Steps": (
        STEPS,
        (
            "CASE WHEN x >= 0.0e0 AND x <= 5.0e0 THEN CAST(floor(x * 4.0e0 + 0.5e0) AS BIGINT) - 10"
            " WHEN x < 0.0e0 THEN -10 WHEN x > 5.0e0 THEN 10 END"
        ),
    ),
    "Op": (
        s.Op("//", (s.Op("*", (V, s.Name("weight"))), s.Number(4))),
        "(v0 * weight) // 4",
    ),
    "Cast": (s.Cast(N, "hugeint"), "CAST(n AS HUGEINT)"),
    "CaseWhen": (
        s.CaseWhen(((s.Op("is not null", (V,)), V),), s.Number(0)),
        "CASE WHEN v0 IS NOT NULL THEN v0 ELSE 0 END",
    ),
    "Fold": (
        s.Fold("count", V, s.Name("f0"), distinct=True),
        "count(DISTINCT v0) FILTER (WHERE f0)",
    ),
    "Over": (s.Over(s.Fold("sum", N), (s.Name("u0"),)), "sum(n) OVER (PARTITION BY u0)"),
    "Rank": (
        s.Rank((s.Name("u0"),), (s.Name("k0"),), dense=True),
        "dense_rank() OVER (PARTITION BY u0 ORDER BY k0)",
    ),
    "Draw": (
        s.Draw((s.Name("u0"), s.Name("k0"))),
        "hash(u0 IS NULL, u0, k0 IS NULL, k0, $salt)",
    ),
    "DrawPart": (
        s.Op("<<", (s.Cast(s.Number(1), "hugeint"), s.DrawPart(s.Draw((N,)), 6))),
        "CAST(1 AS HUGEINT) << (hash(n IS NULL, n, $salt) >> 58)",
    ),
    "RowDigest": (
        s.RowDigest((V, N)),
        "md5_number_lower(CAST(row(v0, n) AS VARCHAR))",
    ),
    "Bin": (
        s.Bin(AMOUNT, Kind.INTEGER, 3, 9, Fraction(3), Fraction(2), 4),
        "CASE WHEN x >= 3 AND x <= 9 THEN (x - 3) // 2 WHEN x < 3 THEN 0 WHEN x > 9 THEN 3 END",
    ),
    "BinList": (
        s.BinList(s.Name("b"), N),
        (
            "list({'b': CAST(b AS BIGINT), 'n': CAST(least(n, 4611686018427387904) AS BIGINT)})"
            " FILTER (WHERE b IS NOT NULL AND n IS NOT NULL)"
        ),
    ),
}


def test_a_salt_may_be_a_constant() -> None:
    assert term(s.Draw((N,), 7), Scope()) == "hash(n IS NULL, n, 7)"


def test_rows_may_be_limited() -> None:
    rows = s.Select(s.Alias(ROWS, "b"), (("v", s.Number(1)),), limit=1)
    assert flat(write(rows)) == "SELECT 1 AS v FROM (SELECT 1 AS n) AS b LIMIT 1"


def test_columns_of_a_table_have_names_of_their_own_and_its_rows_an_order() -> None:
    rows = s.TableRows(ROWS, (("n", 'a "b"'),), ("n",))
    assert flat(write_rows(rows)) == (
        'SELECT r.n AS "a ""b""" FROM (SELECT 1 AS n) AS r ORDER BY r.n ASC NULLS LAST'
    )
    assert "ORDER BY" not in write_rows(s.TableRows(ROWS, (("n", "a"),)))


@pytest.mark.parametrize("name", WRITTEN)
def test_each_term_is_written(name: str) -> None:
    node, text = WRITTEN[name]
    assert term(node, Scope({1: "x"})) == text


def test_no_term_is_left_out() -> None:
    assert WRITTEN.keys() == {kind.__name__ for kind in get_args(s.Term)}


def test_operands_are_in_brackets_where_the_order_matters() -> None:
    product = s.Op("*", (s.Op("-", (N, s.Number(-1))), s.Op("negative", (V,))))
    assert term(product, Scope()) == "(n - (-1)) * (-v0)"


QUESTIONS = (
    "SELECT channel, AVG(amount), SUM(amount * 2) FROM orders GROUP BY channel",
    "SELECT placed, MEDIAN(amount), COUNT(DISTINCT channel) FROM orders GROUP BY placed",
    "SELECT COUNT(*), SUM(seconds) FROM visits WHERE page = 'home'",
)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_what_is_clamped_or_put_in_a_bin_is_computed_once(sql: str) -> None:
    for part in every_way(plan_of(sql, SHOP), request(3, 1), ("laplace",)):
        text = text_of(part)
        for case in re.findall(r"CASE WHEN (\S+) >= \S+ AND (\S+) <=", text):
            assert all(map(bare, case)), text


@pytest.mark.parametrize("sql", QUESTIONS)
def test_lines_are_short_and_hold_the_same_words(sql: str) -> None:
    for part in every_way(plan_of(sql, SHOP), request(3, 1), ("laplace",)):
        lines = write(statement_of(part).relation).split("\n")
        assert all(len(line) <= WIDTH + 2 for line in lines), "but for a comma and a bracket"
        assert flat("\n".join(lines)) == text_of(part)


def test_a_mean_of_a_table_is_a_statement_that_can_be_read() -> None:
    for part in every_way(plan_of("SELECT AVG(amount) FROM orders", SHOP), request(3, 1)):
        if part.bounding.name == UnitTotals.name:
            lines = write(statement_of(part).relation).splitlines()
            assert len(lines) <= 12, "\n".join(lines)
            assert max(map(len, lines)) <= WIDTH
            assert not any("TRY_CAST" in line for line in lines), "the source has the types"
            return
    raise AssertionError("it may be bounded so")


def test_a_constant_keeps_its_white_space() -> None:
    clause = Clause("SELECT", tuple((f"'a  \n b {i}' AS c{i}",) for i in range(20)))
    laid = lay_out(Text((clause, Clause("FROM", (("t",),)))))
    assert laid.count("'a  \n b ") == 20
    assert duckdb.sql(laid.replace("FROM t", "")).fetchall()[0][0] == "a  \n b 0"


def test_what_fits_is_on_one_line() -> None:
    inner = Text((Clause("SELECT", (("a",),)), Clause("FROM", (("t",),))))
    query = Text((Clause("SELECT", (("a",),)), Clause("FROM", ((inner, " AS s"),))))
    assert lay_out(query) == "SELECT a FROM (SELECT a FROM t) AS s"


def test_a_query_that_does_not_fit_stands_in_lines_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layout, "WIDTH", 30)
    inner = Text((Clause("SELECT", (("a_long_name",),)), Clause("FROM", (("a_table",),))))
    query = Text((Clause("SELECT", (("a_long_name",),)), Clause("FROM", ((inner, " AS s"),))))
    assert lay_out(query) == (
        "SELECT a_long_name\nFROM (\n  SELECT a_long_name\n  FROM a_table\n) AS s"
    )


def test_the_corpus_has_every_kind_of_query() -> None:
    seen: set[str] = set()

    def see(node: object) -> None:
        seen.add(type(node).__name__)
        for name in ("query", "sums", "source", "left", "right", "rows", "groups"):
            inner = getattr(node, name, None)
            if inner is not None and not isinstance(inner, str):
                see(inner)
        for inner in getattr(node, "queries", ()):
            see(inner)

    for entry in [e for e in CORPUS if e.name.startswith(("trade", "dashboards", "distinct"))]:
        for part in every_way(plan_of(entry.sql, entry.world), request(3, 1), ("laplace",)):
            see(statement_of(part).relation)
    kinds = {kind.__name__ for union in (s.Query, s.From) for kind in get_args(union)}
    assert kinds <= seen
