"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP: two centred totals and a count.

Squares are of centred values and centred again, so that one row moves their total by at most an
eighth of the squared range.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.build import call as apply
from dpsql.aggregates.build import clamp, not_null, real, whole
from dpsql.aggregates.statistic import Lowered, Rows, Total
from dpsql.sql.domain import numbers
from dpsql.sql.expressions import Aggregated, Column, Expression
from dpsql.sql.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """``E[(x - mid)^2] - E[x - mid]^2``, clamped to what the bounds allow."""
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    assert low is not None
    assert high is not None, "checks.bounded_values lets no other pass"
    middle, half = (low + high) / 2, (high - low) / 2
    offset = apply("subtract", value, real(middle))
    square = apply("multiply", offset, offset)
    quarter = half * half / 2

    def finish(columns: tuple[Column, ...]) -> Expression:
        total, squares, count = columns
        n = apply("greatest", count, whole(1))
        mean = apply("divide", total, n)
        spread = apply(
            "subtract",
            apply("add", real(quarter), apply("divide", squares, n)),
            apply("multiply", mean, mean),
        )
        population = clamp(spread, Fraction(0), half * half)
        return _finished(call.function, population, count)

    statistics = (
        Total(value, low, high, centre=middle, where=call.where),
        Total(square, Fraction(0), half * half, centre=quarter, where=call.where),
        Rows(not_null(value, call.where)),
    )
    return Lowered(statistics, finish)


def _finished(function: str, population: Expression, count: Column) -> Expression:
    """Bessel's correction for the sample forms, the root for standard deviations."""
    result = population
    if function.endswith("samp"):
        below = apply("greatest", apply("subtract", count, whole(1)), whole(1))
        n = apply("cast", apply("greatest", count, whole(2)), option="double")
        result = apply("multiply", population, apply("divide", n, below))
    return apply("sqrt", result) if function.startswith("stddev") else result
