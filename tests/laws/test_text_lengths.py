"""Law: no text is longer than is said before, and nothing is cut in silence."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest
from scalar_expressions import SIGNATURES, WILD, call, single_calls, wild_world
from support.corpus import unlimited
from support.services import service, session

from dpsql.catalog.functions import FUNCTIONS
from dpsql.checks import text_lengths
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.expressions import Call, Expression, child_expressions
from dpsql.ir.lengths import Length, as_any
from dpsql.policy.types import Kind
from dpsql.service import Session

WORLD = wild_world()
STORED = 5 * 4000
"""Characters of the longest text in ``WILD``."""
NAMES = sorted({s.function for s in SIGNATURES})


def lengths(node: Expression) -> tuple[Length, text_lengths._Lengths]:
    """How long a text may get, in a table whose columns are all stored."""
    found = text_lengths._Lengths()
    for column in WORLD.columns:
        found.columns[column.number] = Length(1)
    return found.of(node), found


def longest(nodes: list[Call]) -> list[int]:
    """How long they get."""
    texts = ", ".join(
        f"coalesce(max({'len' if n.shape.kind.element else 'length'}({WORLD.write(n)})), 0)"
        for n in nodes
    )
    found = WORLD.engine.execute(f"SELECT {texts} FROM w").fetchone()
    assert found is not None
    return [int(n) for n in found]


def made_by(name: str) -> list[Call]:
    """Calls of a function that give a text or a list."""
    return [c for c in single_calls(WORLD, name) if text_lengths._is_long(c)]


def broken(name: str) -> list[str]:
    """Calls that give a longer text than was said, or one of unknown length."""
    calls = made_by(name)
    found = []
    for start in range(0, len(calls), 40):
        batch = calls[start : start + 40]
        for node, length in zip(batch, longest(batch), strict=True):
            said, state = lengths(node)
            if length > said.stored * STORED + said.fixed or state.unknown:
                found.append(WORLD.write(node))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_text_is_longer_than_is_said(name: str) -> None:
    assert broken(name) == []


def test_the_texts_of_these_tests_are_long_enough() -> None:
    assert "repeat('long ', 4000)" in WILD[Kind.TEXT]
    makers = {name for name in NAMES if made_by(name)}
    assert makers == {n for n, f in FUNCTIONS.items() if f.growth is not None}
    assert len(makers) > 12


def test_a_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, "concat", replace(FUNCTIONS["concat"], growth=as_any))
    assert broken("concat")
    monkeypatch.setitem(FUNCTIONS, "lower", replace(FUNCTIONS["lower"], growth=None))
    assert broken("lower")


# --- statements -----------------------------------------------------------------------------


def doubled(inner: str, levels: int, keep: str = "") -> str:
    """A text that is twice as long with each level of subqueries."""
    for level in range(levels):
        inner = f"SELECT {keep}c || c AS c FROM ({inner}) AS t{level}"
    return inner


CITIES = doubled("SELECT customer_id, city AS c FROM customers", 8, "customer_id, ")
LONG = "x" * 6_000
MIDDLE = f"'{'x' * 990}' || country"
ATTACKS = {
    "private": f"SELECT COUNT(DISTINCT c) FROM ({CITIES}) AS t",
    "not a text": f"SELECT SUM(CASE WHEN LENGTH(c) > 3 THEN 1 ELSE 0 END) FROM ({CITIES}) AS t",
    "condition": f"SELECT COUNT(*) FROM ({CITIES}) AS t WHERE c LIKE '%a%'",
    "public": doubled("SELECT country AS c FROM countries", 8),
    "released": doubled("SELECT city AS c FROM customers GROUP BY city", 8),
    "constants": doubled(f"SELECT '{'x' * 100}' AS c", 8),
    "rows of constants": doubled(f"SELECT c FROM (VALUES ('{'x' * 100}')) AS v(c)", 8),
    "literal": f"SELECT '{LONG}' || '{LONG}'",
    "set": f"SELECT c || c AS c FROM (SELECT country AS c FROM countries UNION ALL ({doubled('SELECT country AS c FROM countries', 6)})) AS t",
    "window": f"SELECT MIN(c) OVER () || c FROM ({doubled('SELECT country AS c FROM countries', 6)}) AS t",
    "aggregate": f"SELECT MAX(c) || MAX(c) FROM ({doubled('SELECT country AS c FROM countries', 6)}) AS t",
    "branch": f"SELECT CASE WHEN TRUE THEN c ELSE '' END || c FROM ({doubled('SELECT country AS c FROM countries', 6)}) AS t",
    "many parts": f"SELECT CONCAT({', '.join(['country'] * 65)}) FROM countries",
    "many columns": f"SELECT {', '.join(['country || country'] * 151)} FROM countries",
    "many literals": f"SELECT {', '.join([MIDDLE] * 31)} FROM countries",
    "scalar": f"SELECT (SELECT MAX(c) FROM ({doubled('SELECT country AS c FROM countries', 6)}) AS t) || country || country FROM countries",
    "correlated": f"SELECT COUNT(*) FROM (SELECT customer_id, {' || '.join(['city'] * 20)} AS c FROM customers) AS t WHERE c || c || c || c <> 'x'",
}


@pytest.fixture(scope="module")
def analyst() -> Session:
    return session("shop", "shop", "analyst")


@pytest.mark.parametrize("name", ATTACKS)
def test_what_grows_without_end_is_refused(name: str, analyst: Session) -> None:
    with pytest.raises(Refused) as caught:
        analyst.prepare(ATTACKS[name])
    assert caught.value.code == "DP116", caught.value
    assert caught.value.sqlstate == "54000"
    assert caught.value.instead


def test_without_the_rule_they_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that the tests above are for; a service of its own remembers what it has planned."""
    analyst = session("shop", "shop", "analyst")
    monkeypatch.setitem(text_lengths.__dict__, "LONGEST", Length(10**9, 10**9))
    monkeypatch.setitem(text_lengths.__dict__, "TOGETHER", Length(10**9, 10**9))
    for name in ("private", "constants", "many parts"):
        analyst.prepare(ATTACKS[name])


def test_a_function_without_a_rule_is_not_answered(
    analyst: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "SELECT COUNT(*) FROM customers WHERE LOWER(city) <> 'x' -- {}"
    analyst.prepare(asked.format("with a rule"))
    monkeypatch.setitem(FUNCTIONS, "lower", replace(FUNCTIONS["lower"], growth=None))
    with pytest.raises(Refused, match="DP116"):
        analyst.prepare(asked.format("without"))


ASKED = (
    "SELECT COUNT(*) FROM customers WHERE EXISTS (SELECT 1 FROM countries WHERE country = 'at')",
    "SELECT COUNT(*) FROM orders WHERE placed > DATE '2025-01-01' + INTERVAL '1 day'",
    "SELECT CONCAT(city, ', ', country, ' (', age, ')') AS c, COUNT(*) AS n FROM customers GROUP BY 1",
    f"SELECT LENGTH({' || '.join(['country'] * 20)}) FROM countries",
    f"SELECT '{'x' * 9_000}' || country FROM countries",
    f"SELECT {', '.join(f'LEFT(country || country, {n + 1}) AS c{n}' for n in range(40))} FROM countries",
)


@pytest.mark.parametrize("sql", ASKED)
def test_what_people_ask_is_answered(sql: str, analyst: Session) -> None:
    analyst.prepare(sql)


def test_nothing_is_cut() -> None:
    """An answer is what plain SQL says, however long its texts are; before they ended after 10,000."""
    with service("oracle", "shop", unlimited) as opened, duckdb.connect() as plain:
        asked = f"SELECT LENGTH('{'x' * 2_000}' || name || '{'y' * 7_000}') FROM (VALUES ('{'z' * 5_000}')) AS v(name)"
        with pytest.raises(Refused, match="DP116"):
            opened.session("oracle").execute(asked)
        shorter = asked.replace("z" * 5_000, "z" * 900)
        answer = opened.session("oracle").execute(shorter).table.column(0).to_pylist()
        assert answer == [row[0] for row in plain.execute(shorter).fetchall()] == [9_900]


def test_nothing_is_in_a_list_without_its_length() -> None:
    """A column that no rule names is refused, whatever reads it."""
    node = call("lower", replace(WORLD.of(Kind.TEXT)[0], number=10**6))
    assert lengths(node)[1].unknown
    assert child_expressions(node)
