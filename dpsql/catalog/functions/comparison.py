"""Comparisons, logic, and tests for membership and patterns."""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.ends import ends_as
from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    Mismatch,
    any_nullable,
    common_kind,
    constant,
    expect,
    expect_kind,
)
from dpsql.catalog.functions.conditional import optional_as
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.ir.domain import Domain, interval
from dpsql.ir.expressions import Expression, Shape
from dpsql.policy.types import Kind

TRUTH = Domain(members=(False, True))


def _comparison(name: str, symbol: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        expect(args, 2, symbol)
        common_kind(args, symbol)
        return Shape(Kind.BOOLEAN, _unsure(args), TRUTH)

    return Function(name, shape, f"`a {symbol} b`")


def _unsure(args: tuple[Expression, ...]) -> bool:
    """Whether a comparison of the arguments may be NULL."""
    return any(optional_as(a, common_kind(args, "a comparison")) for a in args)


def _distinctness(name: str, symbol: str) -> Function:
    plain = _comparison(name, symbol)

    def shape(args: tuple[Expression, ...], option: str) -> Shape:
        plain.shape(args, option)
        return Shape(Kind.BOOLEAN, False, TRUTH)

    return Function(name, shape, f"`a {symbol} b`")


def _logic(name: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        for a in args:
            expect_kind(a, (Kind.BOOLEAN,), name)
        return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)

    return Function(name, shape, f"`a {name.upper()} b`")


def _not_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 1, "NOT")
    expect_kind(args[0], (Kind.BOOLEAN,), "NOT")
    return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)


def _is_null_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 1, "IS NULL")
    return Shape(Kind.BOOLEAN, False, TRUTH)


def _in_shape(args: tuple[Expression, ...], _: str) -> Shape:
    common_kind(args, "IN")
    return Shape(Kind.BOOLEAN, _unsure(args), TRUTH)


def _is_true_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect_kind(args[0], (Kind.BOOLEAN,), "IS TRUE")
    return Shape(Kind.BOOLEAN, False, TRUTH)


def _like_shape(args: tuple[Expression, ...], option: str) -> Shape:
    expect(args, 2, "LIKE")
    expect_kind(args[0], (Kind.TEXT,), "LIKE")
    pattern = constant(args[1], "the pattern of LIKE").value
    if not isinstance(pattern, str):
        raise Mismatch("LIKE takes a literal pattern")
    if len(option) > 1 or option.isalpha():
        raise Mismatch("ESCAPE takes one character that is not a letter")
    if option and _dangling(pattern, option):
        raise Mismatch("the literal pattern ends in its escape character")
    return Shape(Kind.BOOLEAN, any_nullable(args), TRUTH)


def _dangling(pattern: str, escape: str) -> bool:
    """Whether the pattern ends in an escape character (engines fail on that, depending on rows)."""
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            if position + 1 == len(pattern):
                return True
            position += 1
        position += 1
    return False


def _like(name: str) -> Function:
    """LIKE or ILIKE. ``option`` is the escape character.

    There is no default here: ``sql.bind`` passes PostgreSQL's default explicitly.
    """
    return Function(name, _like_shape, f"`a {name.upper()} 'x%'`: a literal pattern")


def _width_bucket_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 4, "width_bucket")
    for a in args:
        expect_kind(a, (Kind.INTEGER, Kind.DOUBLE), "width_bucket")
    count = [constant(a, "bounds of width_bucket").value for a in args[1:]][-1]
    first, last = (ends_as(a, Kind.DOUBLE)[0] for a in args[1:3])
    if (
        isinstance(count, bool)
        or not isinstance(count, int)
        or not 1 <= count <= 100_000
        or first is None
        or last is None
        or not _WIDEST > abs(last - first) > 1 / _WIDEST
    ):
        raise Mismatch("width_bucket takes two different literal bounds and 1 to 100000 buckets")
    sure = None not in ends_as(args[0], Kind.DOUBLE)
    return Shape(
        Kind.INTEGER,
        any_nullable(args[:1]) or not sure,
        interval(0, count + 1, integral=True),
    )


_WIDEST = Fraction(10) ** 300


RECORDS = (
    FunctionRecord(
        function=_comparison("eq", "="),
        nodes=(FunctionNode("EQ", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("n = 1",),
    ),
    FunctionRecord(
        function=_comparison("ne", "<>"),
        nodes=(FunctionNode("NEQ", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("n <> 1",),
    ),
    FunctionRecord(
        function=_comparison("lt", "<"),
        nodes=(FunctionNode("LT", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("x < 1",),
    ),
    FunctionRecord(
        function=_comparison("le", "<="),
        nodes=(FunctionNode("LTE", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("x <= 1",),
    ),
    FunctionRecord(
        function=_comparison("gt", ">"),
        nodes=(FunctionNode("GT", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("x > 1",),
    ),
    FunctionRecord(
        function=_comparison("ge", ">="),
        nodes=(FunctionNode("GTE", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("x >= 1",),
    ),
    FunctionRecord(
        function=_distinctness("distinct_from", "IS DISTINCT FROM"),
        nodes=(
            FunctionNode(
                "NullSafeNEQ", ("this", "expression"), ("this", "expression"), EVERY_DIALECT
            ),
        ),
        strict=False,
        examples=("n IS DISTINCT FROM 1",),
    ),
    FunctionRecord(
        function=_distinctness("not_distinct_from", "IS NOT DISTINCT FROM"),
        nodes=(
            FunctionNode(
                "NullSafeEQ", ("this", "expression"), ("this", "expression"), EVERY_DIALECT
            ),
        ),
        strict=False,
        examples=("n IS NOT DISTINCT FROM 1",),
    ),
    FunctionRecord(
        function=_logic("and"),
        nodes=(FunctionNode("And", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=False,
        examples=("flag AND x > 1",),
    ),
    FunctionRecord(
        function=_logic("or"),
        nodes=(FunctionNode("Or", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=False,
        examples=("flag OR x > 1",),
    ),
    FunctionRecord(
        function=Function("not", _not_shape, "`NOT a`"),
        nodes=(FunctionNode("Not", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("NOT flag",),
    ),
    FunctionRecord(
        function=Function("is_null", _is_null_shape, "`a IS NULL`"),
        nodes=(FunctionNode("Is", ("this", "expression", "negate"), None, EVERY_DIALECT),),
        strict=False,
        examples=("x IS NULL",),
    ),
    FunctionRecord(
        function=Function(
            "in_list",
            _in_shape,
            "`a IN (SELECT b ...)` over a query whose result is public or released",
        ),
        nodes=(),
        strict=False,
        examples=(),
    ),
    FunctionRecord(
        function=Function("is_true", _is_true_shape, "`a IS TRUE`"),
        nodes=(),
        strict=False,
        examples=("flag IS TRUE",),
    ),
    FunctionRecord(
        function=Function("is_false", _is_true_shape, "`a IS FALSE`"),
        nodes=(),
        strict=False,
        examples=("flag IS FALSE",),
    ),
    FunctionRecord(
        function=Function("in", _in_shape, "`a IN (1, 2)`, also over a public subquery"),
        nodes=(FunctionNode("In", ("this", "expressions", "query"), None, EVERY_DIALECT),),
        strict=False,
        examples=("n IN (1, 2)",),
    ),
    FunctionRecord(
        function=_like("like"),
        nodes=(FunctionNode("Like", ("this", "expression", "negate"), None, ("bigquery",)),),
        strict=True,
        examples=("kind LIKE 'a%'",),
    ),
    FunctionRecord(
        function=_like("ilike"),
        nodes=(FunctionNode("ILike", ("this", "expression", "negate"), None, ("bigquery",)),),
        strict=False,
        examples=("kind ILIKE 'a%'",),
    ),
    FunctionRecord(
        function=Function(
            "width_bucket",
            _width_bucket_shape,
            "`WIDTH_BUCKET(a, 0, 100, 10)`, `WIDTH_BUCKET(a, ARRAY[10, 20])`",
        ),
        nodes=(
            FunctionNode(
                "WidthBucket",
                ("this", "min_value", "max_value", "num_buckets", "threshold"),
                None,
                EVERY_DIALECT,
            ),
        ),
        strict=False,
        examples=("WIDTH_BUCKET(x, 0, 2, 4)",),
    ),
)
