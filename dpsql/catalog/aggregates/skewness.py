"""SKEWNESS: the skewness of a sample, from the first three powers of centred values.

The powers are taken of the offset from the middle of the range, divided by half the range, as for
KURTOSIS.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import clamp, not_null, real, whole
from dpsql.catalog.moments import centre_value, mean_powers, product, scaled_variance
from dpsql.catalog.record import (
    EVERY_DIALECT,
    NUMBERS,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
    Unanswered,
)
from dpsql.catalog.shapes import double_shape
from dpsql.catalog.statistic import Lowered, Rows
from dpsql.ir.expressions import Aggregated, Column, Expression
from dpsql.ir.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """``sqrt(n(n-1))/(n-2) m3 / m2^(3/2)``; NULL for at most two rows, or where no value varies."""
    value, where = centre_value(call.args[0]), call.where
    powers = tuple(value.power(exponent, where) for exponent in (1, 2, 3))
    count = Rows(not_null(value.value, where))
    mean = (powers[-1], count)
    return Lowered((*powers, count), lambda columns: _skewness(columns[:-1], columns[-1]), mean)


def _skewness(totals: tuple[Column, ...], count: Column) -> Expression:
    first, second, third = mean_powers(totals, count)
    variance = scaled_variance(first, second)
    # E[(u - a)^3] = E[u^3] - 3 a E[u^2] + 2 a^3, where a = E[u]
    falls = product(real(Fraction(3)), first, second)
    rises = product(real(Fraction(2)), first, first, first)
    lean = apply("add", apply("subtract", third, falls), rises)
    lean = clamp(lean, Fraction(-8), Fraction(8))
    ratio = apply("divide", lean, product(variance, apply("sqrt", variance)))
    n = apply("cast", count, option="double")
    pairs = product(n, apply("greatest", apply("subtract", n, whole(1)), whole(0)))
    two_less = apply("greatest", apply("subtract", n, whole(2)), whole(0))
    return apply("divide", product(apply("sqrt", pairs), ratio), two_less)


RECORDS = (
    AggregateRecord(
        name="skewness",
        about="`SKEWNESS(x)`: of a sample, 0 for a symmetric distribution",
        nodes=(
            AggregateNode(
                name="Skewness", spellings=(), arguments=("this",), form=Form.VALUES,
                output="skewness", dialects=EVERY_DIALECT,
            ),
        ),
        values=(1, 1),
        kinds=NUMBERS,
        shape=double_shape,
        lower=lower,
        needs=Needs.BOUNDS,
        distinct=Distinct.REFUSED,
        strict_timing=True,
        row_bounds=True,
        group_bounds=False,
        per_unit=Unanswered(
            "SKEWNESS is not taken over the rows of one unit",
            "Engines fail on some rows here, and such a failure would reveal something about "
            "those rows.",
            "Use AVG, SUM, MIN, MAX or MEDIAN.",
        ),
        steady=Steady.NEVER,
        chooses=False,
        windowed=False,
        correlated=False,
        gives_values=True,
        wider=False,
        examples=("SKEWNESS(x)",),
    ),
)  # fmt: skip
