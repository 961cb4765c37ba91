"""Which conditions hold a column's values between the ends of its range."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import pytest

from dpsql.ir.domain import interval, members
from dpsql.ir.expressions import Call, Column, Expression, Literal, Shape
from dpsql.plan.covered import is_covered, is_within_ends
from dpsql.policy.types import Kind, Scalar

TRUTH = Shape(Kind.BOOLEAN, domain=members([False, True]))


def ranged(kind: Kind, low: Scalar, high: Scalar) -> Column:
    return Column(1, "a", Shape(kind, domain=interval(low, high)))


def test(sign: str, left: object, right: object) -> Expression:
    args = (a if isinstance(a, Column) else Literal(a, TRUTH) for a in (left, right))  # type: ignore[arg-type]
    return Call(sign, tuple(args), TRUTH)


test.__test__ = False  # type: ignore[attr-defined]
AGE = ranged(Kind.INTEGER, 18, 100)
DAY = ranged(Kind.DATE, date(2024, 1, 1), date(2024, 12, 31))
TIME = ranged(Kind.TIMESTAMP, datetime(2024, 1, 1), datetime(2024, 12, 31))  # noqa: DTZ001
OTHER = Column(2, "b", AGE.shape)


@pytest.mark.parametrize(
    ("column", "conditions", "held"),
    [
        (AGE, [test("ge", AGE, 18), test("le", AGE, 100)], True),
        (AGE, [test("le", 20, AGE), test("gt", Fraction(61, 2), AGE)], True),
        (AGE, [test("eq", AGE, 30)], True),
        (AGE, [test("eq", AGE, 17)], False),
        (AGE, [test("eq", AGE, None)], False),
        (AGE, [test("ge", AGE, 17), test("le", AGE, 100)], False),
        (AGE, [test("ge", AGE, 18)], False),
        (AGE, [test("le", AGE, 30)], False),
        (AGE, [test("eq", OTHER, 30)], False),
        (AGE, [test("eq", AGE, OTHER)], False),
        (AGE, [test("ne", AGE, 30), AGE], False),
        (DAY, [test("ge", DAY, date(2024, 1, 1)), test("lt", DAY, date(2024, 3, 1))], True),
        (DAY, [test("eq", DAY, datetime(2024, 3, 1))], False),  # noqa: DTZ001
        (TIME, [test("eq", TIME, datetime(2024, 3, 1))], True),  # noqa: DTZ001
        (TIME, [test("eq", TIME, date(2024, 3, 1))], False),
    ],
)
def test_only_conditions_hold_values(
    column: Column, conditions: list[Expression], held: bool
) -> None:
    assert is_within_ends(column, conditions) is held
    assert is_covered(column, conditions) is held
    assert is_covered(Call("negate", (column,), AGE.shape), conditions) is held


def test_listed_values_are_taken_at_their_word() -> None:
    assert is_covered(Column(1, "c", TRUTH), [])
    assert is_covered(test("gt", AGE, 3), [])
