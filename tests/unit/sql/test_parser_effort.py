"""The parser reads some things again and again. It ends all the same, after a number of steps."""

from __future__ import annotations

import contextlib
import random  # noqa: TID251 (draws for a test, the same each time)
import time

import pytest
from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token

from dpsql import effort
from dpsql.diagnostics.refusal import Refused
from dpsql.sql import parse as parsing
from dpsql.sql import parser
from dpsql.sql.dialects.tables import DIALECTS
from dpsql.sql.parse import Source, parse

DEEP = 40
AGAIN = {
    "arrays": f"SELECT {'ARRAY[' * DEEP}1{']' * DEEP}",
    "sizes": f"SELECT {'int[' * DEEP}1{']' * DEEP}",
    "subscripts of casts": f"SELECT {'int[CAST(' * DEEP}x{' AS INT)]' * DEEP}",
    "structs": f"SELECT {'STRUCT(' * DEEP}'a'{')' * DEEP}",
    "objects": f"SELECT 1 WHERE x::{'OBJECT(' * DEEP}1{')' * DEEP}",
    "types": f"SELECT CAST(1 AS {'date(' * DEEP}1{')' * DEEP})",
    "joins": f"SELECT 1 FROM {'t JOIN ' * DEEP}t",
    "joins and lists": f"SELECT 1 FROM {'t LEFT JOIN t, ' * DEEP}t",
    "joins in brackets": f"SELECT 1 FROM {'t JOIN t AS x(' * DEEP}t{')' * DEEP}",
    "joins named as others": f"SELECT 1 FROM {'t AS cross JOIN u.on JOIN ' * DEEP}t",
    "joins with values": f"SELECT 1 FROM {'t LEFT JOIN (VALUES (' * DEEP}t",
}


def steps(text: str, dialect: str = "postgres") -> int:
    """What reading a text takes."""
    with effort.limit_effort():
        counted = effort._CURRENT.effort
        assert counted is not None
        parse(Source(text, dialect))
        return effort.MOST_STEPS - counted.left


@pytest.mark.timeout(60)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", AGAIN)
def test_what_is_read_again_and_again_is_refused(name: str, dialect: str) -> None:
    with pytest.raises(Refused):
        steps(AGAIN[name], dialect)


PIECES = [
    "(..)",
    "[..]",
    "ARRAY[..]",
    "ARRAY(SELECT ..)",
    "{'a':..}",
    "MAP{..:1}",
    "STRUCT(..)",
    "ROW(..)",
    "CAST(..AS int)",
    "CAST(1 AS ..[])",
    "ARRAY<..>",
    "STRUCT<a ..>",
    "MAP(..)",
    "decimal(..)",
    "date(..)",
    "x->..",
    "(x,y)->..",
    "f(..)",
    "f(x,..,y)",
    "f(DISTINCT ..)",
    "CASE WHEN ..THEN 1 END",
    "CASE ..WHEN 1 THEN 2 END",
    "EXISTS(SELECT ..)",
    "(SELECT ..)",
    "(SELECT 1 FROM ..)",
    "(VALUES (..))",
    "x IN (..)",
    "1 BETWEEN ..AND 2",
    "x::..",
    "INTERVAL ..",
    "INTERVAL (..)",
    "date ..",
    "- ..",
    "NOT ..",
    "EXTRACT(YEAR FROM ..)",
    "x[..]",
    "int[..]",
    "x.y[..]",
    "a AND ..",
    "1 + ..",
    "1 || ..",
    "x IS DISTINCT FROM ..",
    "x AT TIME ZONE ..",
    "SUM(x) OVER (PARTITION BY ..)",
    "SUM(x) FILTER (WHERE ..)",
    "x COLLATE ..",
    "LATERAL ..",
    "UNNEST(..)",
    "ANY(..)",
    "DISTINCT ..",
    "TRIM(BOTH ..)",
    "SUBSTRING(x FROM ..)",
    "COLUMNS(..)",
    "* REPLACE (..AS x)",
    "[x FOR x IN ..]",
    "ARRAY AGG(x ORDER BY ..)",
    "OBJECT(..)",
    "t JOIN ..",
    "(t JOIN ..ON a)",
    "t,..",
    "t JOIN (..)",
    "t LEFT JOIN ..ON x",
    "t CROSS JOIN (..)",
    "t NATURAL JOIN ..",
    "t AS x(..)",
    "t AS cross JOIN ..",
    "a.on JOIN ..",
    "t STRAIGHT JOIN ..",
    "t JOIN t USING ..",
    "t JOIN t ON x JOIN ..",
    "t JOIN LATERAL ..",
    "t PIVOT(..)",
    "t TABLESAMPLE (..)",
    "ROWS FROM (..)",
    "ONLY (..)",
    "t JOIN SELECT 1 FROM ..",
]
HEADS = [
    "SELECT ",
    "SELECT 1 FROM ",
    "SELECT 1 WHERE ",
    "SELECT 1 GROUP BY ",
    "SELECT 1 ORDER BY ",
    "VALUES ",
    "SELECT CAST(1 AS ",
    "SELECT 1 WHERE x::",
    "SELECT 1 GROUP BY GROUPING SETS ",
    "SELECT DISTINCT ON ",
]
MIDDLES = ["1", "x", "t", "'a'", "SELECT 1", "int", "*", "1 2", ")", ""]


def nested(choice: random.Random) -> str:
    """A text of a few pieces within each other, again and again, and sometimes cut short."""
    pieces = [p.split("..") for p in choice.choices(PIECES, k=choice.choice([1, 1, 2, 3]))]
    within = (pieces * DEEP)[: choice.choice([20, DEEP])]
    head = choice.choice(HEADS)
    text = head + "".join(p[0] for p in within) + choice.choice(MIDDLES)
    text += "".join(p[1] for p in reversed(within))
    return text[: -choice.randint(1, 8)] if choice.random() < 0.3 else text


def _read_nested(seed: int, count: int) -> None:
    choice = random.Random(seed)
    for _ in range(count):
        text, dialect = nested(choice), choice.choice(sorted(DIALECTS))
        begun = time.thread_time()
        with contextlib.suppress(Refused):
            steps(text, dialect)
        assert time.thread_time() - begun < 30, (dialect, text)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(3))
def test_no_pieces_within_each_other_are_read_for_ever(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "MOST_STEPS", 100_000)
    _read_nested(seed, 150)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(100, 104))
def test_nor_are_many(seed: int) -> None:
    _read_nested(seed, 1_000)


def test_what_is_read_again_is_counted_again() -> None:
    twelve, fourteen = (steps(f"SELECT {'ARRAY[' * n}1{']' * n}") for n in (12, 14))
    assert fourteen > 3 * twelve


@pytest.mark.parametrize("name", ["arrays", "joins"])
def test_without_counting_each_level_takes_twice_as_long(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(tokens: list[Token], text: str, dialect: str) -> list[exp.Expr | None]:
        return (
            Dialect.get_or_raise(dialect).parser(error_level=ErrorLevel.RAISE).parse(tokens, text)
        )

    monkeypatch.setattr(parsing, "read_statements", read)
    monkeypatch.setattr(parser, "MOST_JOINS", DEEP)
    few = {
        "arrays": f"SELECT {'ARRAY[' * 14}1{']' * 14}",
        "joins": f"SELECT 1 FROM {'t JOIN ' * 14}t",
    }
    # 2 ** 14 operands or tables were read, and fewer steps than that are counted.
    assert steps(few[name]) < 2**14


@pytest.mark.parametrize(
    "text",
    [
        "SELECT date(timestamp(date(x))) FROM t",
        "SELECT ARRAY[ARRAY[ARRAY[1, 2], ARRAY[3, 4]]]",
        "SELECT 1 FROM a JOIN b JOIN c JOIN d ON e ON f ON g",
        f"SELECT 1 FROM a {'JOIN b ON c ' * 50} {'CROSS JOIN d ' * 50} {'NATURAL LEFT JOIN e ' * 50}",
        f"SELECT 1 FROM {'a JOIN (SELECT 1 FROM ' * 10} b {') AS t ON c' * 10}",
        f"SELECT 1 FROM a {'JOIN b USING (c) ' * 50}",
    ],
)
def test_what_is_read_once_takes_few_steps(text: str) -> None:
    tokens = Dialect.get_or_raise("postgres").tokenize(text)
    assert not parser.nests_joins(tokens)
    assert not parser.nests_types(tokens, "postgres")
    with effort.limit_effort():
        counted = effort._CURRENT.effort
        assert counted is not None
        assert parser.read_statements(tokens, text, "postgres")
        assert effort.MOST_STEPS - counted.left < effort.LIGHT


def test_settings_of_dialects_stay_what_they_are() -> None:
    for name in DIALECTS:
        given, counting = Dialect.get_or_raise(name), parser._dialect(name)
        for question in parser.QUESTIONS:
            assert getattr(given, question) == getattr(counting, question)
        assert Dialect.get_or_raise(name) is not counting
        assert Dialect.classes[name] is type(given)
