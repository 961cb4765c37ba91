"""REGR_SLOPE, REGR_INTERCEPT, REGR_R2 and REGR_COUNT of (y, x), from the totals of a covariance."""

from __future__ import annotations

from dpsql.catalog.aggregates.covariance import make_correlation
from dpsql.catalog.build import call as apply
from dpsql.catalog.moments import Paired, centre_value
from dpsql.catalog.pairs import pair_record
from dpsql.catalog.shapes import count_shape, double_shape
from dpsql.catalog.statistic import Lowered
from dpsql.ir.expressions import Aggregated, Column, Expression
from dpsql.ir.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """A parameter of the least-squares line through the rows where neither value is NULL.

    Slope and intercept are NULL where x does not vary.
    """
    pair = Paired(centre_value(call.args[0]), centre_value(call.args[1]), call.where)
    if call.function == "regr_count":
        return Lowered((pair.count,), lambda columns: columns[0])
    mean = (pair.products, pair.count)
    if call.function == "regr_r2":
        statistics = (pair.products, *pair.totals, *pair.squares, pair.count)
        return Lowered(statistics, lambda columns: _squared(make_correlation(pair, columns)), mean)

    def finish(columns: tuple[Column, ...]) -> Expression:
        products, y, x, squares, count = columns
        covariance = pair.covariance(products, y, x, count)
        slope = apply("divide", covariance, pair.second.spread(x, squares, count))
        if call.function == "regr_slope":
            return slope
        below = apply("multiply", slope, pair.second.mean(x, count))
        return apply("subtract", pair.first.mean(y, count), below)

    return Lowered((pair.products, *pair.totals, pair.squares[1], pair.count), finish, mean)


def _squared(value: Expression) -> Expression:
    return apply("multiply", value, value)


RECORDS = (
    pair_record(
        "regr_slope", "`REGR_SLOPE(y, x)`", "RegrSlope", double_shape, lower, "REGR_SLOPE(y, x)"
    ),
    pair_record(
        "regr_intercept", "`REGR_INTERCEPT(y, x)`", "RegrIntercept", double_shape, lower,
        "REGR_INTERCEPT(y, x)",
    ),
    pair_record("regr_r2", "`REGR_R2(y, x)`", "RegrR2", double_shape, lower, "REGR_R2(y, x)"),
    pair_record(
        "regr_count", "`REGR_COUNT(y, x)`", "RegrCount", count_shape, lower, "REGR_COUNT(y, x)"
    ),
)  # fmt: skip
