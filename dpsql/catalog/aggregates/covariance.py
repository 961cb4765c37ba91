"""COVAR_POP, COVAR_SAMP and CORR, from centred totals of two values and their product, and a count.

CORR also needs the centred totals of both squares.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import clamp
from dpsql.catalog.moments import Paired, centre_value, of_sample
from dpsql.catalog.pairs import TWO, pair_record
from dpsql.catalog.shapes import double_shape
from dpsql.catalog.statistic import Lowered
from dpsql.ir.expressions import Aggregated, Column, Expression
from dpsql.ir.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """``E[xy] - E[x] E[y]`` over the rows where neither value is NULL."""
    pair = Paired(centre_value(call.args[0]), centre_value(call.args[1]), call.where)

    def finish(columns: tuple[Column, ...]) -> Expression:
        products, x, y, count = columns
        population = pair.covariance(products, x, y, count)
        return of_sample(population, count) if call.function == "covar_samp" else population

    mean = (pair.products, pair.count)
    return Lowered((pair.products, *pair.totals, pair.count), finish, mean)


def correlation(call: Aggregated, _: Private) -> Lowered:
    """The covariance over the square root of the product of both variances, clamped to -1 .. 1.

    It is NULL where a variance is 0.
    """
    pair = Paired(centre_value(call.args[0]), centre_value(call.args[1]), call.where)
    statistics = (pair.products, *pair.totals, *pair.squares, pair.count)
    mean = (pair.products, pair.count)
    return Lowered(statistics, lambda columns: make_correlation(pair, columns), mean)


def make_correlation(pair: Paired, columns: tuple[Column, ...]) -> Expression:
    """The correlation as an expression over the totals of ``correlation``."""
    products, x, y, squares_x, squares_y, count = columns
    spreads = apply(
        "multiply",
        apply("sqrt", pair.first.spread(x, squares_x, count)),
        apply("sqrt", pair.second.spread(y, squares_y, count)),
    )
    found = apply("divide", pair.covariance(products, x, y, count), spreads)
    return clamp(found, Fraction(-1), Fraction(1))


RECORDS = (
    pair_record(
        "covar_pop", "`COVAR_POP(x, y)`", "CovarPop", double_shape, lower, "COVAR_POP(x, y)"
    ),
    pair_record(
        "covar_samp", "`COVAR_SAMP(x, y)`", "CovarSamp", double_shape, lower, "COVAR_SAMP(x, y)"
    ),
    pair_record(
        "corr",
        "`CORR(x, y)`",
        "Corr",
        double_shape,
        correlation,
        "CORR(x, y)",
        # The parser sets this argument for Snowflake only. dpsql gives NULL in every dialect.
        (*TWO, "null_on_zero_variance"),
    ),
)
