"""GEOMETRIC_MEAN: the exponential of the mean of the logarithms of values above 0.

Values are clamped to their bounds before the logarithm is taken, so every value has a logarithm.
Engines have no aggregate of this name that takes DISTINCT and FILTER, so they compute its parts.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import clamp, not_null, real, whole
from dpsql.catalog.record import (
    EVERY_DIALECT,
    NUMBERS,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
)
from dpsql.catalog.shapes import double_shape
from dpsql.catalog.statistic import Lowered, Rows, Total
from dpsql.ir.domain import numbers
from dpsql.ir.expressions import Aggregated, Column, Expression
from dpsql.ir.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """``exp(mid + total / max(1, count))``, clamped to the bounds."""
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    assert low is not None
    assert high is not None, "checks.bounded_values lets no other pass"
    there = not_null(value, call.where)
    logarithm = apply("ln", clamp(value, low, high))
    least, most = numbers(logarithm.shape.domain)
    assert least is not None
    assert most is not None, "checks.bounded_values lets only positive bounds pass"
    middle = (least + most) / 2

    def finish(columns: tuple[Column, ...]) -> Expression:
        total, count = columns
        mean = apply("divide", total, apply("greatest", count, whole(1)))
        return clamp(apply("exp", apply("add", real(middle), mean)), low, high)

    total = Total(logarithm, least, most, centre=Fraction(middle), where=there)
    count = Rows(there)
    return Lowered((total, count), finish, (total, count))


RECORDS = (
    AggregateRecord(
        name="geometric_mean",
        about="`GEOMETRIC_MEAN(x)`, `GEOMEAN(x)` of values above 0",
        nodes=(
            AggregateNode(
                name="Anonymous", spellings=("GEOMETRIC_MEAN", "GEOMEAN"),
                arguments=("this", "expressions"), form=Form.VALUES, output="geometric_mean",
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(1, 1),
        kinds=NUMBERS,
        shape=double_shape,
        lower=lower,
        needs=Needs.POSITIVE_BOUNDS,
        distinct=Distinct.REFUSED,
        strict_timing=True,
        row_bounds=True,
        group_bounds=False,
        per_unit=None,
        steady=Steady.NEVER,
        chooses=False,
        windowed=False,
        correlated=False,
        gives_values=True,
        wider=False,
        examples=("GEOMETRIC_MEAN(y + 1)",),
    ),
)  # fmt: skip
