"""Comparisons, logic, and tests for membership and patterns."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.policy.types import Kind
from dpsql.sql.domain import Domain, interval
from dpsql.sql.expressions import Expression, Literal, Shape
from dpsql.sql.functions.function import (
    Function,
    Mismatch,
    any_nullable,
    common_kind,
    constant,
    expect,
    expect_kind,
)

TRUTH = Domain(members=(False, True))


def _comparison(name: str, symbol: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        expect(args, 2, symbol)
        common_kind(args, symbol)
        return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)

    def write(texts: Sequence[str], _: tuple[Expression, ...], __: str) -> str:
        return f"({texts[0]} {symbol} {texts[1]})"

    return Function(name, shape, write, f"`a {symbol} b`")


def _distinctness(name: str, symbol: str) -> Function:
    plain = _comparison(name, symbol)

    def shape(args: tuple[Expression, ...], option: str) -> Shape:
        plain.shape(args, option)
        return Shape(Kind.BOOLEAN, False, TRUTH)

    return Function(name, shape, plain.write, f"`a {symbol} b`")


def _logic(name: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        for a in args:
            expect_kind(a, (Kind.BOOLEAN,), name)
        return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)

    def write(texts: Sequence[str], _: tuple[Expression, ...], __: str) -> str:
        return "(" + f" {name.upper()} ".join(texts) + ")"

    return Function(name, shape, write, f"`a {name.upper()} b`")


def _not_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 1, "NOT")
    expect_kind(args[0], (Kind.BOOLEAN,), "NOT")
    return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)


def _is_null_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 1, "IS NULL")
    return Shape(Kind.BOOLEAN, False, TRUTH)


def _in_shape(args: tuple[Expression, ...], _: str) -> Shape:
    common_kind(args, "IN")
    return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)


def _is_true_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect_kind(args[0], (Kind.BOOLEAN,), "IS TRUE")
    return Shape(Kind.BOOLEAN, False, TRUTH)


def _like_shape(args: tuple[Expression, ...], option: str) -> Shape:
    expect(args, 2, "LIKE")
    expect_kind(args[0], (Kind.TEXT,), "LIKE")
    pattern = constant(args[1], "the pattern of LIKE").value
    if not isinstance(pattern, str):
        raise Mismatch("LIKE takes a literal pattern")
    if len(option) > 1:
        raise Mismatch("ESCAPE takes one character")
    if option and _dangling(pattern, option):
        raise Mismatch("the pattern ends in its escape character")
    return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)


def _dangling(pattern: str, escape: str) -> bool:
    """Whether an escape has nothing behind it (engines fail on that, depending on rows)."""
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            if position + 1 == len(pattern):
                return True
            position += 1
        position += 1
    return False


def _like(name: str) -> Function:
    def write(texts: Sequence[str], _: tuple[Expression, ...], option: str) -> str:
        escape = " ESCAPE '" + option.replace("'", "''") + "'" if option else ""
        return f"({texts[0]} {name.upper()} {texts[1]}{escape})"

    return Function(name, _like_shape, write, f"`a {name.upper()} 'x%'`: a literal pattern")


def _width_bucket_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 4, "width_bucket")
    for a in args:
        expect_kind(a, (Kind.INTEGER, Kind.DOUBLE), "width_bucket")
    low, high, count = (constant(a, "bounds of width_bucket").value for a in args[1:])
    if not isinstance(count, int) or not 1 <= count <= 100_000 or low is None or low == high:
        raise Mismatch("width_bucket takes two different bounds and 1 to 100000 buckets")
    return Shape(Kind.INTEGER, any_nullable(args[:1]), interval(0, count + 1, integral=True))


def _width_bucket(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    assert isinstance(args[3], Literal)
    x, low, high, count = (f"CAST({t} AS DOUBLE)" for t in texts)
    inside = f"TRY_CAST(floor(({x} - {low}) / ({high} - {low}) * {count}) AS BIGINT) + 1"
    return (
        f"CASE WHEN {x} IS NULL OR isnan({x}) THEN NULL"
        f" ELSE least(greatest({inside}, 0), {texts[3]} + 1) END"
    )


FAMILY = (
    _comparison("eq", "="),
    _comparison("ne", "<>"),
    _comparison("lt", "<"),
    _comparison("le", "<="),
    _comparison("gt", ">"),
    _comparison("ge", ">="),
    _distinctness("distinct_from", "IS DISTINCT FROM"),
    _distinctness("not_distinct_from", "IS NOT DISTINCT FROM"),
    _logic("and"),
    _logic("or"),
    Function("not", _not_shape, lambda t, _, __: f"(NOT {t[0]})", "`NOT a`"),
    Function("is_null", _is_null_shape, lambda t, _, __: f"({t[0]} IS NULL)", "`a IS NULL`"),
    Function("is_true", _is_true_shape, lambda t, _, __: f"({t[0]} IS TRUE)", "`a IS TRUE`"),
    Function("is_false", _is_true_shape, lambda t, _, __: f"({t[0]} IS FALSE)", "`a IS FALSE`"),
    Function(
        "in",
        _in_shape,
        lambda t, _, __: f"({t[0]} IN ({', '.join(t[1:])}))",
        "`a IN (1, 2)`, also over a public subquery",
    ),
    _like("like"),
    _like("ilike"),
    Function("width_bucket", _width_bucket_shape, _width_bucket, "`WIDTH_BUCKET(a, 0, 100, 10)`"),
)
