"""Constructs that mean the same in every dialect, held against each one's documentation.

A node class that the closed world lists must be here, in a dialect's table, or in the record of a
function that says so; a new one is
refused in other dialects than PostgreSQL until somebody has looked it up.
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
    # where NULLs are sorted is written out by the parser, as each dialect has it
    exp.Ordered,
    # operators and constants that are no function of their own
    exp.Exists, exp.Between, exp.Escape, exp.Case, exp.If, exp.CurrentDate, exp.CurrentTimestamp,
    # aggregates whose order is apart; records say it of the others
    exp.WithinGroup,
    # lists of quantiles, whose first place is written out by the parser
    exp.Array, exp.Bracket,
    # window functions: the frame that a dialect takes is written out by the parser
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag,
    exp.Lead, exp.FirstValue, exp.LastValue,
])  # fmt: skip

ALSO_SAME: dict[str, frozenset[type[exp.Expr]]] = {
    "duckdb": frozenset([exp.StrToDate, exp.StrToTime]),
    "bigquery": frozenset([exp.Values, exp.DateBin]),
    "snowflake": frozenset([exp.StrToDate, exp.StrToTime, exp.DateBin]),
}
"""What one dialect shares with PostgreSQL, and another does not."""
