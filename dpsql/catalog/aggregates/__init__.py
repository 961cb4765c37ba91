"""The aggregates dpsql answers over private rows."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.catalog.aggregates import (
    average,
    count,
    covariance,
    extreme,
    mode,
    quantile,
    regression,
    sum,  # noqa: A004 (named as in SQL)
    truth,
    variance,
)
from dpsql.catalog.statistic import Lowered
from dpsql.sql.expressions import Aggregated
from dpsql.sql.relations import Private

AGGREGATES: dict[str, Callable[[Aggregated, Private], Lowered]] = {
    "count": count.lower,
    "sum": sum.lower,
    "avg": average.lower,
    "min": extreme.lower,
    "max": extreme.lower,
    "mode": mode.lower,
    "quantile_cont": quantile.lower,
    "quantile_disc": quantile.lower,
    "var_pop": variance.lower,
    "var_samp": variance.lower,
    "stddev_pop": variance.lower,
    "stddev_samp": variance.lower,
    "covar_pop": covariance.lower,
    "covar_samp": covariance.lower,
    "corr": covariance.correlation,
    "regr_slope": regression.lower,
    "regr_intercept": regression.lower,
    "regr_r2": regression.lower,
    "regr_count": regression.lower,
    "bool_and": truth.lower,
    "bool_or": truth.lower,
}
"""By the name that ``sql.bind`` gives them. What is not here has no private form."""
