"""Constructs that have the same meaning in every dialect, checked in each one's documentation.

A node class of the closed world must be listed here, in a dialect's table, or in the record of a
function with its dialects. A new class is refused in dialects other than PostgreSQL until its
meaning there has been looked up.
"""

from __future__ import annotations

from sqlglot import exp

SAME: frozenset[type[exp.Expr]] = frozenset([
    # queries, names, constants
    exp.Select, exp.Subquery, exp.Union, exp.Except, exp.Intersect, exp.With, exp.CTE, exp.From,
    exp.Join, exp.Table, exp.TableAlias, exp.Where, exp.Group, exp.Rollup, exp.Cube,
    exp.GroupingSets, exp.Grouping, exp.Having, exp.Qualify, exp.Order, exp.Limit, exp.Offset, exp.Distinct,
    exp.Filter,
    exp.Window, exp.WindowSpec, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Var,
    exp.Literal, exp.Boolean, exp.Null, exp.Placeholder, exp.Parameter, exp.DataType,
    exp.DataTypeParam, exp.Interval, exp.Tuple, exp.Paren, exp.ExplodingGenerateSeries,
    # the parser writes out the dialect's order of NULLs
    exp.Ordered,
    # operators and constants without a function record
    exp.Exists, exp.Between, exp.Escape, exp.Case, exp.If, exp.CurrentDate, exp.CurrentTimestamp,
    # aggregates with WITHIN GROUP; the dialects of others are in their records
    exp.WithinGroup,
    # lists of quantiles; the parser writes out the dialect's first index
    exp.Array, exp.Bracket,
    # window functions; the parser writes out the dialect's default frame
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag,
    exp.Lead, exp.FirstValue, exp.LastValue,
])  # fmt: skip

ALSO_SAME: dict[str, frozenset[type[exp.Expr]]] = {
    "duckdb": frozenset([exp.StrToDate, exp.StrToTime]),
    "bigquery": frozenset([exp.Values, exp.DateBin]),
    "snowflake": frozenset([exp.StrToDate, exp.StrToTime, exp.DateBin]),
}
"""Constructs with PostgreSQL's meaning in some dialects only."""
