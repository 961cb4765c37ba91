"""The aggregates dpsql answers over private rows."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.aggregates import (
    average,
    count,
    extreme,
    quantile,
    sum,  # noqa: A004 (named as in SQL)
    variance,
)
from dpsql.aggregates.statistic import Lowered
from dpsql.sql.expressions import Aggregated
from dpsql.sql.relations import Private

AGGREGATES: dict[str, Callable[[Aggregated, Private], Lowered]] = {
    "count": count.lower,
    "sum": sum.lower,
    "avg": average.lower,
    "min": extreme.lower,
    "max": extreme.lower,
    "quantile_cont": quantile.lower,
    "quantile_disc": quantile.lower,
    "var_pop": variance.lower,
    "var_samp": variance.lower,
    "stddev_pop": variance.lower,
    "stddev_samp": variance.lower,
}
"""By the name that ``sql.bind`` gives them. What is not here has no private form."""
