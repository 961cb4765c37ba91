"""Law: no expression that dpsql writes can fail on an engine, whatever the rows hold.

A failure would tell the analyst about the rows. Columns of a table are used, not constants, so
that nothing is folded away before it can fail; good and bad rows share vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scalar_expressions import (
    CONSTANTS,
    KINDS,
    SIGNATURES,
    World,
    call,
    case,
    expressions,
    single_calls,
    wild_world,
)

from dpsql.catalog.functions import FUNCTIONS
from dpsql.engines.duckdb.functions import WRITERS
from dpsql.engines.duckdb.types import engine_type
from dpsql.ir.expressions import NULL, Expression, Literal, Parameter, Shape
from dpsql.policy.types import Kind

WORLD = wild_world()
FLAG = WORLD.of(Kind.BOOLEAN)[0]
BATCH = 40


def failures(world: World, nodes: Iterable[Expression]) -> list[str]:
    """The SQL of the expressions that fail, or whose type is not their kind's."""
    found: list[str] = []
    batch: list[Expression] = []
    for node in nodes:
        batch.append(node)
        if len(batch) == BATCH:
            found += _failures(world, batch)
            batch = []
    return found + _failures(world, batch)


def _failures(world: World, batch: list[Expression]) -> list[str]:
    if not batch:
        return []
    try:
        wrong = _run(world, batch)
    except duckdb.Error as error:
        if len(batch) == 1:
            return [f"{world.write(batch[0])}: {error}"]
        half = len(batch) // 2
        return _failures(world, batch[:half]) + _failures(world, batch[half:])
    return wrong


def _run(world: World, batch: list[Expression]) -> list[str]:
    """Compute each expression for all rows, and inside a CASE and a WHERE."""
    texts = [world.write(node) for node in batch]
    plain = ", ".join(f"max(hash({t}))" for t in texts)
    flag = world.write(FLAG)
    guarded = ", ".join(f"max(hash(CASE WHEN {flag} THEN {t} END))" for t in texts)
    world.engine.execute(f"SELECT {plain}, {guarded} FROM w").fetchall()
    kept = [t for t, n in zip(texts, batch, strict=True) if n.shape.kind is Kind.BOOLEAN]
    if kept:
        world.engine.execute(f"SELECT count(*) FROM w WHERE {' AND '.join(kept)}").fetchall()
        world.engine.execute(f"SELECT count(*) FROM w WHERE {' OR '.join(kept)}").fetchall()
    types = world.engine.execute(f"DESCRIBE SELECT {', '.join(texts)} FROM w").fetchall()
    return [
        f"{text}: {row[1]} for {node.shape.kind}"
        for text, node, row in zip(texts, batch, types, strict=True)
        if node.shape.kind is not Kind.NULL and row[1] != engine_type(node.shape.kind)
    ]


def test_every_function_has_signatures() -> None:
    assert {s.function for s in SIGNATURES} == set(FUNCTIONS) - {"in_list"}


@pytest.mark.parametrize("kind", KINDS)
def test_no_list_fails(kind: Kind) -> None:
    """The list of ``in_list`` is a parameter: the values of a released or public result."""
    values = [c.value for c in CONSTANTS[kind] if isinstance(c, Literal)]
    given = [float(v) if isinstance(v, Fraction) else v for v in values]
    for column in (c for c in WORLD.columns if _compare(c.shape.kind, kind)):
        text = WORLD.write(call("in_list", column, Parameter("p", Shape(kind), many=True)))
        query = f"SELECT typeof(max({text})) FROM w WHERE {text} IS NOT TRUE"
        rows = WORLD.engine.execute(query, {"p": [*given, None]}).fetchall()
        assert rows == [("BOOLEAN",)]


def _compare(one: Kind, other: Kind) -> bool:
    return one is other or (one.numeric and other.numeric) or (one.temporal and other.temporal)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"in_list"}))
def test_no_call_fails(name: str) -> None:
    calls = list(single_calls(WORLD, name))
    assert calls
    assert failures(WORLD, calls) == []


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(expressions(WORLD), min_size=4, max_size=8))
def test_no_nested_expression_fails(nodes: list[Expression]) -> None:
    assert failures(WORLD, nodes) == []


@pytest.mark.slow
@settings(
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(expressions(WORLD, depth=5), min_size=4, max_size=8))
def test_no_nested_expression_fails_for_long(nodes: list[Expression]) -> None:
    assert failures(WORLD, nodes) == []


def test_the_law_catches_an_unguarded_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRITERS, "add", lambda t, _, __: f"({t[0]} + {t[1]})")
    one, two = WORLD.of(Kind.INTEGER)
    assert len(failures(WORLD, [call("add", one, two)])) == 1


def test_the_law_catches_a_wrong_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRITERS, "floor", lambda t, _, __: f"floor({t[0]})")
    assert len(failures(WORLD, [call("floor", WORLD.of(Kind.INTEGER)[0])])) == 1


def test_nested_text_stays_as_long_as_what_was_written() -> None:
    """Each function writes an argument once: else 60 levels would be 2 ** 60 characters."""
    for signature in SIGNATURES:
        for option in signature.options:
            texts = [f"<{n}>" for n in range(len(signature.args))]
            args = tuple(
                WORLD.of(part)[0] if isinstance(part, Kind) else part[0] for part in signature.args
            )
            written = WRITERS[signature.function](texts, args, option)
            for text, argument in zip(texts, args, strict=True):
                assert written.count(text) <= 1 or isinstance(argument, Literal), signature


def test_case_of_nulls() -> None:
    assert failures(WORLD, [case(((FLAG, NULL),), NULL)]) == []
