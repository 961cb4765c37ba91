# ruff: noqa: DTZ001, DTZ901 (timestamps are naive here)
"""Law: what an engine computes from rows inside their declared domains is inside the computed one.

Also for what conditions tell: the rows that satisfy a condition are inside the fields that
``narrow`` gives, the others inside those of ``narrow_else``. There is no slack: ends of doubles
are the doubles that engines reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scalar_expressions import (
    CONSTANTS,
    KINDS,
    World,
    call,
    case,
    expressions,
    optional,
    single_calls,
    tame_world,
)

from dpsql.catalog.function import Function, common_kind
from dpsql.catalog.functions import FUNCTIONS
from dpsql.engines.duckdb.constants import literal as written
from dpsql.engines.duckdb.types import engine_type
from dpsql.ir.domain import interval, numbers
from dpsql.ir.expressions import Column, Expression, Shape
from dpsql.policy.types import Kind, Scalar
from dpsql.sql import narrow as narrowing
from dpsql.sql.bind.literals import literal
from dpsql.sql.narrow import narrow, narrow_else

WORLD = tame_world()
BY_NAME = {c.name: c for c in WORLD.columns}
BATCH = 25
PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large]


def wrong(shape: Shape, name: str) -> list[str]:
    """The conditions under which a value of ``name`` is not of the shape."""
    kind, domain = shape.kind, shape.domain
    found = [] if shape.nullable else [f"{name} IS NULL"]
    if kind is Kind.NULL:
        return [f"{name} IS NOT NULL"]
    if domain.members is not None:
        listed = ", ".join(_constant(m, kind) for m in domain.members) or "NULL"
        found.append(f"({name} IS NOT NULL AND {name} NOT IN ({listed})) IS NOT FALSE")
    found += [
        f"{name} {sign} {_constant(end, kind)}"
        for sign, end in (("<", domain.low), (">", domain.high))
        if end is not None and not isinstance(end, bool)
    ]
    if domain.integral and kind is Kind.DOUBLE:
        found.append(f"{name} <> floor({name})")
    if domain.grain is not None:
        found.append(f"TRY(date_trunc('{domain.grain}', {name})) <> {name}")
    return found


def _constant(value: Scalar, kind: Kind) -> str:
    """The constant in the column's own type: an end of another type fails the law."""
    own = {Kind.DATE: date, Kind.TIMESTAMP: datetime, Kind.INTEGER: int}.get(kind, object)
    assert isinstance(value, own), (value, kind)
    assert not (kind is Kind.DATE and isinstance(value, datetime)), value
    if kind is Kind.INTEGER and isinstance(value, int) and abs(value) >= 2**63:
        return written(Fraction(value), Kind.DOUBLE)
    return written(value, kind)


def outside(world: World, nodes: Iterable[Expression], where: str = "TRUE") -> list[str]:
    """Which expressions have values, in rows ``where`` it holds, that their shapes exclude."""
    found: list[str] = []
    batch: list[Expression] = []
    for node in nodes:
        batch.append(node)
        if len(batch) == BATCH:
            found += _outside(world, batch, where)
            batch = []
    return found + (_outside(world, batch, where) if batch else [])


def _outside(world: World, batch: Sequence[Expression], where: str) -> list[str]:
    texts = [world.write(node) for node in batch]
    inner = ", ".join(f"{t} AS v{n}" for n, t in enumerate(texts))
    checks = [
        (text, node.shape, condition)
        for n, (text, node) in enumerate(zip(texts, batch, strict=True))
        for condition in wrong(node.shape, f"v{n}")
    ]
    types = world.engine.execute(f"DESCRIBE SELECT {inner} FROM w").fetchall()
    found = [
        f"{text}: {row[1]} for {node.shape.kind}"
        for text, node, row in zip(texts, batch, types, strict=True)
        if node.shape.kind is not Kind.NULL and row[1] != engine_type(node.shape.kind)
    ]
    if not checks:
        return found
    counts = ", ".join(f"count_if({condition})" for _, _, condition in checks)
    query = f"SELECT {counts} FROM (SELECT {inner} FROM w WHERE {where})"
    [row] = world.engine.execute(query).fetchall()
    return found + [
        f"{count} rows of {text} have {condition}, against {shape}"
        for (text, shape, condition), count in zip(checks, row, strict=True)
        if count
    ]


def claims(world: World, condition: Expression) -> list[str]:
    """What no row may be: kept, or left over, and outside a field that the condition narrowed."""
    text = world.write(condition)
    said = [(f, f"({text})") for f in narrow(world.columns, condition)]
    said += [(f, f"({text}) IS NOT TRUE") for f in narrow_else(world.columns, condition)]
    declared = {c.number: c.shape for c in world.columns}
    return [
        f"({where}) AND ({problem})"
        for field, where in said
        if field.shape != declared[field.number]
        for problem in wrong(field.shape, world.write(field))
    ]


def misled(world: World, *conditions: Expression) -> list[str]:
    """The claims of the conditions that some row breaks."""
    checks = [claim for condition in conditions for claim in claims(world, condition)]
    if not checks:
        return []
    counts = ", ".join(f"count_if({check})" for check in checks)
    [row] = world.engine.execute(f"SELECT {counts} FROM w").fetchall()
    return [check for check, count in zip(checks, row, strict=True) if count]


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"in_list"}))
def test_calls_stay_in_their_domains(name: str) -> None:
    assert outside(WORLD, single_calls(WORLD, name)) == []


@settings(max_examples=50, deadline=None, suppress_health_check=PATIENT)
@given(st.lists(expressions(WORLD), min_size=4, max_size=8))
def test_nested_expressions_stay_in_their_domains(nodes: list[Expression]) -> None:
    assert outside(WORLD, nodes) == []


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=PATIENT)
@given(st.lists(expressions(WORLD, depth=5), min_size=4, max_size=8))
def test_nested_expressions_stay_in_their_domains_for_long(nodes: list[Expression]) -> None:
    assert outside(WORLD, nodes) == []


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_MORE = {
    Kind.INTEGER: (0, 5, 7, 8, 100, 2**53 + 1, 2**62, 2**63 - 1, -(2**62)),
    Kind.DOUBLE: (
        Fraction(0), Fraction(1, 10), Fraction(5), Fraction(49, 10), Fraction(-3), Fraction(37, 10),
        Fraction(2**53), Fraction(2**53 + 2), Fraction(2**62), Fraction(10) ** 300, Fraction(3) - Fraction(1, 10**20),
    ),
    Kind.DATE: (date(2024, 1, 15), date(2024, 12, 31), date.min, date.max),
    Kind.TIMESTAMP: (
        datetime(2024, 1, 15), datetime(2024, 2, 29, 12), datetime(2024, 12, 31, 0, 0, 1), datetime.min, datetime.max,
    ),
    Kind.TEXT: ("", "web", "shop"),
    Kind.BOOLEAN: (True, False),
}  # fmt: skip


def _literals(kind: Kind) -> list[Expression]:
    near = {
        Kind.INTEGER: (Kind.INTEGER, Kind.DOUBLE),
        Kind.DOUBLE: (Kind.INTEGER, Kind.DOUBLE),
        Kind.DATE: (Kind.DATE, Kind.TIMESTAMP),
        Kind.TIMESTAMP: (Kind.DATE, Kind.TIMESTAMP),
    }.get(kind, (kind,))
    return [literal(None)] + [literal(v) for k in near for v in _MORE[k]]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> Expression:
    """What a WHERE is made of: columns beside constants, lists, logic, and anything else."""
    way = draw(st.integers(0, 9)) if depth else 0
    if way in (1, 2):
        return call(
            draw(st.sampled_from(("and", "or"))), *(draw(conditions(depth - 1)) for _ in "12")
        )
    if way == 3:
        return call("not", draw(conditions(depth - 1)))
    if way == 4:
        return draw(expressions(WORLD, Kind.BOOLEAN, depth=2))
    column = draw(st.sampled_from(WORLD.columns))
    if way == 5:
        return call("is_null", column)
    constant = st.sampled_from(_literals(column.shape.kind))
    if way in (6, 7):
        return call("in", column, *draw(st.lists(constant, min_size=1, max_size=3)))
    other = draw(st.sampled_from(WORLD.of(column.shape.kind))) if way == 8 else draw(constant)
    pair = (column, other) if draw(st.booleans()) else (other, column)
    return call(draw(st.sampled_from(COMPARISONS)), *pair)


def test_every_comparison_with_a_constant_narrows_rightly() -> None:
    for column in WORLD.columns:
        for constant in _literals(column.shape.kind):
            pairs = ((column, constant), (constant, column))
            plain = [call(sign, *pair) for sign in COMPARISONS for pair in pairs]
            assert misled(WORLD, *plain, *(call("not", c) for c in plain[::3])) == []


@settings(max_examples=100, deadline=None, suppress_health_check=PATIENT)
@given(conditions())
def test_conditions_narrow_rightly(condition: Expression) -> None:
    assert misled(WORLD, condition) == []


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=PATIENT)
@given(conditions(4))
def test_conditions_narrow_rightly_for_long(condition: Expression) -> None:
    assert misled(WORLD, condition) == []


def _planted(monkeypatch: pytest.MonkeyPatch, name: str, shape: object) -> None:
    assert callable(shape)
    monkeypatch.setitem(FUNCTIONS, name, Function(name, shape, ""))


def test_the_law_catches_two_of_four_products(monkeypatch: pytest.MonkeyPatch) -> None:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        (a, b), (c, d) = (numbers(arg.shape.domain) for arg in args)
        if a is None or b is None or c is None or d is None:
            return Shape(common_kind(args, "*"))
        whole = common_kind(args, "*") is Kind.INTEGER
        low, high = min(a * c, b * d), max(a * c, b * d)
        return Shape(
            common_kind(args, "*"),
            True,
            interval(int(low) if whole else low, int(high) if whole else high),
        )

    _planted(monkeypatch, "multiply", shape)
    assert outside(WORLD, single_calls(WORLD, "multiply"))


def test_the_law_catches_a_divisor_that_may_be_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = FUNCTIONS["divide"].shape
    _planted(monkeypatch, "divide", lambda args, o: replace(sound(args, o), nullable=False))
    assert outside(WORLD, [call("divide", BY_NAME["price"], BY_NAME["tenth"])])


def test_the_law_catches_a_forgotten_null(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = FUNCTIONS["negate"].shape
    _planted(monkeypatch, "negate", lambda args, o: replace(sound(args, o), nullable=False))
    assert outside(WORLD, [call("negate", BY_NAME["least"])])


def test_the_law_catches_a_wrong_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = narrowing._number_bound

    def late(shape: Shape, value: int | Fraction, side: int, *, strict: bool) -> Scalar:
        bound = sound(shape, value, side, strict=strict)
        assert isinstance(bound, int | Fraction)
        return bound + side  # one too far inside

    monkeypatch.setattr(narrowing, "_number_bound", late)
    assert misled(WORLD, call("lt", BY_NAME["small"], literal(5)))


def test_the_law_catches_nulls_in_the_else_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = call("lt", BY_NAME["some"], literal(50))
    assert misled(WORLD, condition) == []
    sure = replace(condition, shape=replace(condition.shape, nullable=False))
    columns = tuple(replace(c, shape=replace(c.shape, nullable=False)) for c in WORLD.columns)
    forgot = replace(sure, args=(columns[WORLD.columns.index(BY_NAME["some"])], sure.args[1]))
    rest = narrow_else(WORLD.columns, forgot)
    assert outside(WORLD, rest, f"({WORLD.write(condition)}) IS NOT TRUE")


def test_optional_columns_and_cases() -> None:
    some = optional(BY_NAME["small"])
    flag = BY_NAME["flag"]
    nodes: list[Expression] = [
        case(((flag, some),), literal(100)),
        case(((flag, BY_NAME["ever"]),), BY_NAME["seen"]),
    ]
    assert outside(WORLD, nodes) == []
    assert nodes[1].shape.nullable


def test_worlds_are_inside_their_declarations() -> None:
    assert outside(WORLD, WORLD.columns) == []
    assert {c.shape.kind for c in WORLD.columns} == set(KINDS) == set(CONSTANTS)
    assert isinstance(WORLD.columns[0], Column)
