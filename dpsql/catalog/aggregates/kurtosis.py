"""KURTOSIS: the excess kurtosis of a sample, from the first four powers of centred values.

The powers are taken of the offset from the middle of the range, divided by half the range. So one
row changes each total by at most 1, and no precision is lost where values are far from 0. The
result does not depend on the scale of the values, so no power is scaled back.
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
    """``(n-1)/((n-2)(n-3)) ((n+1) m4 / m2^2 - 3(n-1))``.

    It is NULL for three rows or fewer, or where the values do not vary.
    """
    value, where = centre_value(call.args[0]), call.where
    powers = tuple(value.power(exponent, where) for exponent in (1, 2, 3, 4))
    count = Rows(not_null(value.value, where))
    mean = (powers[-1], count)
    return Lowered((*powers, count), lambda columns: _kurtosis(columns[:-1], columns[-1]), mean)


def _kurtosis(totals: tuple[Column, ...], count: Column) -> Expression:
    first, second, third, fourth = mean_powers(totals, count)
    square = product(first, first)
    variance = scaled_variance(first, second)
    # E[(u - a)^4] = E[u^4] - 4 a E[u^3] + 6 a^2 E[u^2] - 3 a^4, where a = E[u]
    falls = product(real(Fraction(4)), first, third)
    rises = product(real(Fraction(6)), square, second)
    last = product(real(Fraction(3)), square, square)
    tails = apply("subtract", apply("add", apply("subtract", fourth, falls), rises), last)
    ratio = apply("divide", clamp(tails, Fraction(0), Fraction(16)), product(variance, variance))
    n = apply("cast", count, option="double")
    one_less, two_less = (apply("subtract", n, whole(less)) for less in (1, 2))
    three_less = apply("greatest", apply("subtract", n, whole(3)), whole(0))
    excess = apply(
        "subtract",
        product(apply("add", n, whole(1)), ratio),
        product(real(Fraction(3)), one_less),
    )
    return apply("divide", product(one_less, excess), product(two_less, three_less))


RECORDS = (
    AggregateRecord(
        name="kurtosis",
        about="`KURTOSIS(x)`: of a sample, 0 for a normal distribution",
        nodes=(
            AggregateNode(
                name="Kurtosis", spellings=(), arguments=("this",), form=Form.VALUES,
                output="kurtosis", dialects=EVERY_DIALECT,
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
            "KURTOSIS is not taken over the rows of one unit",
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
        examples=("KURTOSIS(x)",),
    ),
)  # fmt: skip
