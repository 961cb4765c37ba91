# ruff: noqa: DTZ001 (timestamps are naive here)
"""What conditions tell about columns, value by value; that it holds is a law, this is how much."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import pytest

from dpsql.catalog.functions import FUNCTIONS
from dpsql.ir.domain import ANYTHING, Domain, interval, members
from dpsql.ir.expressions import NULL, Call, Column, Expression, Shape, conjuncts
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind.literals import literal
from dpsql.sql.narrow import narrow, narrow_else

WHOLE = Column(1, "whole", Shape(Kind.INTEGER, True, interval(0, 9, integral=True)))
RATIO = Column(2, "ratio", Shape(Kind.DOUBLE, False, interval(0, 9)))
DAY = Column(3, "day", Shape(Kind.DATE, False, interval(date(2024, 1, 1), date(2024, 12, 31))))
TIME = Column(4, "time", Shape(Kind.TIMESTAMP))
WORD = Column(5, "word", Shape(Kind.TEXT, True, members(["a", "b", "c"])))
STEPS = Column(6, "steps", Shape(Kind.DOUBLE, False, interval(0, 9, integral=True)))
OTHER = Column(7, "other", Shape(Kind.INTEGER))
FIELDS = (WHOLE, RATIO, DAY, TIME, WORD, STEPS, OTHER)
NOON, MIDNIGHT = datetime(2024, 6, 1, 12), datetime(2024, 6, 1)


def call(name: str, *args: Expression) -> Call:
    return Call(name, args, FUNCTIONS[name].shape(args, ""))


def after(condition: Expression, column: Column) -> Shape:
    return narrow(FIELDS, condition)[FIELDS.index(column)].shape


@pytest.mark.parametrize(
    ("sign", "column", "value", "low", "high"),
    [
        ("lt", WHOLE, 5, 0, 4),
        ("le", WHOLE, 5, 0, 5),
        ("gt", WHOLE, 5, 6, 9),
        ("ge", WHOLE, 5, 5, 9),
        ("lt", WHOLE, Fraction(5, 2), 0, 2),
        ("lt", WHOLE, Fraction(5), 0, 4),
        ("ge", WHOLE, Fraction(5, 2), 3, 9),
        ("eq", WHOLE, Fraction(5), 5, 5),
        ("eq", WHOLE, Fraction(2) ** 60, 0, 9),
        ("eq", WHOLE, Fraction(10) ** 400, 0, 9),
        ("lt", WHOLE, Fraction(10) ** 400, 0, 9),
        ("lt", RATIO, 5, 0, 5),
        ("gt", RATIO, Fraction(5, 2), Fraction(5, 2), 9),
        ("eq", RATIO, 5, 5, 5),
        ("eq", RATIO, Fraction(5, 2), Fraction(5, 2), Fraction(5, 2)),
        ("lt", STEPS, 5, 0, 4),
        ("gt", STEPS, Fraction(5, 2), 3, 9),
        ("lt", DAY, date(2024, 6, 1), date(2024, 1, 1), date(2024, 5, 31)),
        ("lt", DAY, NOON, date(2024, 1, 1), date(2024, 6, 1)),
        ("lt", DAY, MIDNIGHT, date(2024, 1, 1), date(2024, 5, 31)),
        ("ge", DAY, NOON, date(2024, 6, 2), date(2024, 12, 31)),
        ("ge", DAY, MIDNIGHT, date(2024, 6, 1), date(2024, 12, 31)),
        ("gt", DAY, MIDNIGHT, date(2024, 6, 2), date(2024, 12, 31)),
        ("eq", DAY, MIDNIGHT, date(2024, 6, 1), date(2024, 6, 1)),
        ("gt", TIME, date(2024, 6, 1), datetime(2024, 6, 1, 0, 0, 0, 1), None),
        ("ge", TIME, NOON, NOON, None),
        ("eq", TIME, date(2024, 6, 1), MIDNIGHT, MIDNIGHT),
        ("lt", DAY, date.min, date(2024, 1, 1), date.min),
        ("ne", WHOLE, 5, 0, 9),
    ],
)
def test_comparisons(
    sign: str, column: Column, value: Scalar, low: Scalar, high: Scalar | None
) -> None:
    flipped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(sign, sign)
    constant = literal(value)
    for condition in (call(sign, column, constant), call(flipped, constant, column)):
        shape = after(condition, column)
        assert (shape.domain.low, shape.domain.high) == (low, high)
        assert not shape.nullable


def test_what_cannot_be_is_empty() -> None:
    assert after(call("eq", WHOLE, literal(Fraction(5, 2))), WHOLE).domain.empty
    assert after(call("eq", DAY, literal(NOON)), DAY).domain.empty
    assert after(call("eq", WHOLE, literal(50)), WHOLE).domain.empty
    assert after(call("gt", WHOLE, literal(50)), WHOLE).domain.empty


def test_large_constants_are_no_sharp_bounds() -> None:
    """Several whole numbers are one double there."""
    wide = Column(1, "wide", Shape(Kind.INTEGER, False, interval(None, None, integral=True)))
    [field] = narrow((wide,), call("le", wide, literal(Fraction(2**60))))
    assert isinstance(field.shape.domain.high, int)
    assert field.shape.domain.high > 2**60 + 64
    real = Column(1, "real", Shape(Kind.DOUBLE))
    [field] = narrow((real,), call("eq", real, literal(2**60 + 1)))
    assert field.shape.domain.members == (2**60,)


def test_texts_and_lists() -> None:
    assert after(call("in", WORD, literal("a"), literal("z"), NULL), WORD).domain == members(["a"])
    assert after(call("ne", WORD, literal("a")), WORD).domain == members(["b", "c"])
    assert after(call("lt", WORD, literal("b")), WORD).domain == WORD.shape.domain
    assert after(call("in", WHOLE, literal(1), literal(3)), WHOLE).domain == members([1, 3])
    assert after(call("in", WHOLE, OTHER), WHOLE) == WHOLE.shape
    assert after(call("in", literal(1), WHOLE), WHOLE) == WHOLE.shape


def test_negations() -> None:
    present = after(call("not", call("is_null", WHOLE)), WHOLE)
    assert not present.nullable
    assert after(call("not", call("lt", WHOLE, literal(5))), WHOLE).domain.low == 5
    apart = call("not", call("in", WORD, literal("a"), literal("b")))
    assert after(apart, WORD).domain == members(["c"])
    assert after(call("not", call("and", NULL, NULL)), WHOLE) == WHOLE.shape
    flag = Column(8, "flag", Shape(Kind.BOOLEAN))
    assert narrow((flag,), call("not", flag)) == (flag,)


def test_alternatives_and_conjunctions() -> None:
    either = call("or", call("lt", WHOLE, literal(2)), call("eq", WHOLE, literal(5)))
    assert after(either, WHOLE).domain == interval(0, 5, integral=True)
    assert not after(either, WHOLE).nullable
    impossible = call("or", call("lt", WHOLE, literal(2)), call("eq", WHOLE, literal(50)))
    assert after(impossible, WHOLE).domain.high == 1
    assert after(call("or", call("lt", WHOLE, literal(2)), call("is_null", DAY)), WHOLE).nullable
    both = call("and", call("gt", WHOLE, literal(2)), call("lt", WHOLE, literal(5)))
    assert after(both, WHOLE).domain == interval(3, 4, integral=True)
    assert len(conjuncts(call("and", both, both))) == 4


def test_what_tells_nothing() -> None:
    assert after(call("eq", WHOLE, NULL), WHOLE) == WHOLE.shape
    assert narrow(FIELDS, literal(True)) == FIELDS
    assert narrow(FIELDS, call("is_true", call("eq", WHOLE, literal(1)))) == FIELDS
    assert narrow(FIELDS, call("eq", literal(1), literal(1))) == FIELDS
    assert narrow(FIELDS, call("eq", call("add", WHOLE, OTHER), WHOLE)) == FIELDS


def test_compared_columns_are_present() -> None:
    condition = call("eq", WHOLE, OTHER)
    assert not after(condition, WHOLE).nullable
    assert not after(condition, OTHER).nullable
    assert not after(call("eq", WHOLE, call("add", OTHER, literal(1))), WHOLE).nullable


def test_the_other_rows() -> None:
    sure = RATIO
    rest = narrow_else(FIELDS, call("lt", sure, literal(Fraction(5))))
    assert rest[1].shape.domain == interval(5, 9)
    assert narrow_else(FIELDS, call("lt", WHOLE, literal(5))) == FIELDS
    assert narrow_else(FIELDS, call("is_null", WHOLE)) == FIELDS
    far = Column(9, "far", Shape(Kind.DATE, False, ANYTHING))
    assert narrow_else((far,), call("lt", far, literal(NOON))) == (far,)
    assert narrow_else(FIELDS, literal(True)) == FIELDS


def test_grain_is_kept() -> None:
    months = Domain(datetime(2024, 1, 1), datetime(2024, 12, 1), grain="month")
    cut = Column(1, "cut", Shape(Kind.TIMESTAMP, False, months))
    [field] = narrow((cut,), call("lt", cut, literal(MIDNIGHT)))
    assert field.shape.domain.grain == "month"
    assert field.shape.domain.high == datetime(2024, 5, 31, 23, 59, 59, 999999)
