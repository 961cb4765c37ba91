"""The range of a value that follows from the statement alone; what is not known of it may be anything."""

from __future__ import annotations

from dpsql.ir.domain import ANYTHING
from dpsql.ir.expressions import Call, Column, Shape, integer
from dpsql.plan.clamped import _Ranges
from dpsql.policy.types import Kind


def test_a_call_that_has_no_shape_may_be_anything() -> None:
    text, number = Column(1, "t", Shape(Kind.TEXT)), Column(2, "n", Shape(Kind.INTEGER))
    unbound = Call("substring", (text, number), Shape(Kind.TEXT))
    assert _Ranges({}, {}).domain(unbound) == ANYTHING


def test_a_call_over_what_nobody_declares_has_the_range_of_its_function() -> None:
    remainder = Call(
        "modulo", (Column(1, "n", Shape(Kind.INTEGER)), integer(7)), Shape(Kind.INTEGER)
    )
    found = _Ranges({}, {}).domain(remainder)
    assert (found.low, found.high) == (-6, 6)
