"""The names that generated statements over constants and released tables may use.

Their text is dpsql's own, made of typed expressions. They are checked all the same, so that a
mistake in a writer reaches no more than writers are known to need.
"""

from __future__ import annotations

from dpsql.engines.duckdb.allowlist.listing import JOINS, OPERATORS, PLAIN_TYPES, Listing

_SCALARS = frozenset({
    "abs", "cbrt", "ceil", "chr", "coalesce", "date_trunc", "epoch_us", "exp", "floor", "greatest", "isnan", "least",
    "left", "length", "list_sort", "ln", "log", "log10", "lower", "make_timestamp", "pow", "power",
    "regexp_replace", "replace", "right", "round", "sign", "sqrt", "starts_with", "strftime", "strpos",
    "timezone", "upper",
})  # fmt: skip
_AGGREGATES = frozenset({
    "arg_max", "arg_min", "avg", "bool_and", "bool_or", "corr", "count", "count_if", "count_star",
    "covar_pop", "covar_samp", "kurtosis", "max", "min", "mode", "quantile_cont", "quantile_disc", "regr_count",
    "regr_intercept", "regr_r2", "regr_slope", "skewness", "stddev_pop", "stddev_samp", "sum", "var_pop", "var_samp",
})  # fmt: skip
_WINDOWS = frozenset({
    "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value", "ntile",
    "percent_rank", "rank", "row_number",
})  # fmt: skip
GENERATED = Listing(
    relations=frozenset(),
    functions=OPERATORS | _SCALARS | _AGGREGATES,
    rows=frozenset({"generate_series", "range"}),
    windows=_AGGREGATES | _WINDOWS,
    types=PLAIN_TYPES,
    joins=JOINS | {"SEMI", "ANTI"},
)
"""Has no relations: these are given with each statement."""
