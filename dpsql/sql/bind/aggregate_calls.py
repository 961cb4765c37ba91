"""Aggregate calls of a SELECT: collected once each, typed, replaced by the column they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.catalog.functions.conditional import as_kind
from dpsql.policy.types import Kind, total_type
from dpsql.sql.bind.context import Context, refuse
from dpsql.sql.bind.grouping_calls import GroupingCalls
from dpsql.sql.bind.options import bounded
from dpsql.sql.bind.quantile_calls import (
    QUANTILES,
    ascending,
    bind_quantile,
    indexed,
    quantile_shape,
    separate,
)
from dpsql.sql.domain import ANYTHING, Domain, interval, numbers
from dpsql.sql.expressions import (
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Shape,
    Window,
    children,
)
from dpsql.sql.spans import span_of

if TYPE_CHECKING:
    from dpsql.sql.bind.scalars import Scalars

NAMES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.ApproxDistinct: "approx_count_distinct",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Min: "min",
    exp.Max: "max",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrCount: "regr_count",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Mode: "mode",
    exp.ArgMax: "arg_max",
    exp.ArgMin: "arg_min",
    exp.Median: "median",
    exp.WithinGroup: "within group",
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "approx_quantile",
    exp.ApproxQuantiles: "approx_quantiles",
}
"""Aggregate calls, by the name that a client sees."""
PAIRED = (
    "covar_pop",
    "covar_samp",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_count",
)
UNSTEADY = ("mode", "arg_max", "arg_min")
SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
WINDOWED = ("count", "sum", "avg", *SPREADS, "min", "max")
"""Those that may also stand in a window."""


@dataclass(slots=True)
class Calls:
    """The aggregate calls of one SELECT.

    ``rows`` bounds the rows of a group, where known; ``keys`` are the same in all rows of a group.
    """

    context: Context
    rows: int | None = None
    keys: tuple[Expression, ...] = ()
    levels: GroupingCalls | None = None
    found: list[tuple[Column, Aggregated]] = field(default_factory=list)

    def knows(self, node: exp.Expr) -> bool:
        """Whether the node is an aggregate call."""
        return type(node) in NAMES or isinstance(node, exp.Filter | exp.Bracket | exp.Grouping)

    def bind(self, scalars: Scalars, node: exp.Expr) -> Expression:
        """The column that stands for the call above the aggregation; a key for its own extremes.

        Several quantiles are a list of such columns.
        """
        if isinstance(node, exp.Bracket):
            return self.bind(scalars, indexed(node))
        if isinstance(node, exp.Grouping):
            assert self.levels is not None
            return self.levels.bind(scalars, node)
        parts = separate(node)
        if parts is not None:
            return self._several(scalars, parts, node)
        call = bind_call(scalars, node, self.rows)
        if call.function in ("min", "max") and call.where is None and call.args[0] in self.keys:
            return call.args[0]
        for column, known in self.found:
            if known == call:
                return column
        column = self.context.column(call.function, call.shape, identifier=identifies(call))
        self.found.append((column, call))
        return column

    def _several(self, scalars: Scalars, parts: list[exp.Expr], node: exp.Expr) -> Expression:
        if self.rows is not None:
            raise refuse(
                "DP110",
                node,
                "lists of quantiles are not taken over the rows of one unit",
                "A list is shown, and nothing is computed from it.",
                "Ask for each of its values: QUANTILE_CONT(x, 0.25), QUANTILE_CONT(x, 0.75).",
            )
        columns = tuple(self.bind(scalars, part) for part in parts)
        return scalars.call("array", columns, node, "sorted" if ascending(node) else "")


_COUNTS = frozenset({"count", "bool_and", "bool_or", "row_number", "rank", "dense_rank", "ntile"})


def identifies(call: Aggregated | Window) -> bool:
    """Whether the result may be an identifier: one of the values that it was taken of."""
    return call.function not in _COUNTS and any(map(_holds_identifier, call.args))


def _holds_identifier(node: Expression) -> bool:
    """Whether a value may be made of an identifier; what only decides between values is in none."""
    if isinstance(node, Column):
        return node.identifier
    if isinstance(node, Call) and node.shape.kind is Kind.BOOLEAN:
        return False
    parts = children(node)
    if isinstance(node, Case):
        parts = (*(value for _, value in node.whens), node.otherwise)
    return any(map(_holds_identifier, parts))


def bind_call(scalars: Scalars, node: exp.Expr, rows: int | None) -> Aggregated:
    """An aggregate call over the rows of ``scalars``' scope, within the bounds it names."""
    return bounded(_call(scalars, node, rows), node)


def _call(scalars: Scalars, node: exp.Expr, rows: int | None) -> Aggregated:
    where = None
    rowwise = type(scalars)(scalars.context, scalars.scope)
    if isinstance(node, exp.Filter):
        where = rowwise.condition(node.expression.this)
        node = node.this
    name = NAMES.get(type(node))
    if name is None:
        raise refuse(
            "DP110",
            node,
            "FILTER belongs to an aggregate",
            "It says which rows the aggregate is about.",
            "COUNT(*) FILTER (WHERE ...)",
        )
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode):
        name, node = "mode", _mode(node)
    if isinstance(node, exp.WithinGroup) or type(node) in QUANTILES:
        function, value, option = bind_quantile(rowwise, node)
        shape = _known(quantile_shape(function, value), rows)
        return Aggregated(function, (value,), shape, where=where, option=option, span=span_of(node))
    distinct, args = _arguments(rowwise, node)
    check_number(node, name, args, distinct=distinct)
    if len(args) > 1 and distinct:
        where = _present(rowwise, node, name, args, where)
    if name == "count_if":
        where = _counted_condition(rowwise, node, args, where, distinct=distinct)
        name, args = "count", ()
    if name == "approx_count_distinct":
        name, distinct = "count", True
    _check_kinds(node, name, args)
    if name in UNSTEADY and rows is not None:
        raise refuse(
            "DP110",
            node,
            f"{name.upper()} is not taken over the rows of one unit",
            "Ties are decided by the order in which an engine happens to read rows.",
            "MIN, MAX and MEDIAN are.",
        )
    if name in PAIRED and rows is not None:
        raise refuse(
            "DP110",
            node,
            f"{name.upper()} is not taken over the rows of one unit",
            "Engines fail on some rows here, and whether they do must not be seen.",
            "AVG, SUM, MIN, MAX and MEDIAN are.",
        )
    return Aggregated(name, args, _shape(name, args, rows), distinct, where, span=span_of(node))


def _counted_condition(
    scalars: Scalars, node: exp.Expr, args: tuple[Expression, ...], where: Expression | None, *,
    distinct: bool,
) -> Expression:  # fmt: skip
    """The FILTER of a COUNT(*) that is COUNT_IF: its condition, and the one that it has already."""
    _check_kinds(node, "count_if", args)
    if distinct:
        raise refuse(
            "DP110",
            node,
            "COUNT_IF(DISTINCT ...) is not answered",
            "There are two truth values: it would say whether any row has the one.",
            "BOOL_OR(x > 5)",
        )
    return args[0] if where is None else scalars.call("and", (where, args[0]), node)


def check_number(
    node: exp.Expr, name: str, args: tuple[Expression, ...], *, distinct: bool = False
) -> None:
    """A call is of as many values as its function takes; only rows are counted without any."""
    needed = 2 if name in (*PAIRED, "arg_max", "arg_min") else 1
    if name == "count" and not distinct:
        needed = 0
    if len(args) < needed:
        raise refuse(
            "DP201",
            node,
            f"{name.upper()} takes {'a value' if needed == 1 else 'two values'}",
            "Only COUNT(*) is about rows as they are.",
            "COUNT(*)",
        )


def _mode(node: exp.WithinGroup) -> exp.Mode:
    """MODE() WITHIN GROUP (ORDER BY x) as MODE(x)."""
    call = exp.Mode(this=node.expression.expressions[0].this.copy())
    call.meta.update(node.meta)
    return call


def _arguments(scalars: Scalars, node: exp.Expr) -> tuple[bool, tuple[Expression, ...]]:
    inner = node.this
    if inner is None or isinstance(inner, exp.Star):
        return False, ()
    if isinstance(inner, exp.Distinct):
        parts = inner.expressions
        if len(parts) == 1 and isinstance(parts[0], exp.Tuple):
            parts = parts[0].expressions
        return True, tuple(scalars.bind(item) for item in parts)
    second = node.args.get("expression")
    return False, tuple(scalars.bind(n) for n in (inner, second) if n is not None)


def _present(
    scalars: Scalars, node: exp.Expr, name: str, args: tuple[Expression, ...],
    where: Expression | None,
) -> Expression | None:  # fmt: skip
    """The FILTER of ``COUNT(DISTINCT a, b)``: rows that have all; ``(a, b)`` is there always."""
    if name != "count":
        raise refuse(
            "DP110",
            node,
            f"{name.upper()}(DISTINCT ...) is of one value",
            "Combinations of values are counted, and nothing else.",
            "COUNT(DISTINCT a, b)",
        )
    if isinstance(node.this.expressions[0], exp.Tuple):
        return where
    for arg in (a for a in args if a.shape.nullable):
        there = scalars.call("not", (scalars.call("is_null", (arg,), node),), node)
        where = there if where is None else scalars.call("and", (where, there), node)
    return where


def _check_kinds(node: exp.Expr, name: str, args: tuple[Expression, ...]) -> None:
    """Sums are of numbers, conjunctions of truth values; anything is counted or compared."""
    if name in ("count", "min", "max", *UNSTEADY):
        return
    truth = name in ("bool_and", "bool_or", "count_if")
    kinds = (Kind.BOOLEAN,) if truth else (Kind.INTEGER, Kind.DOUBLE)
    for arg in args:
        if arg.shape.kind not in (*kinds, Kind.NULL):
            raise refuse(
                "DP201",
                node,
                f"{name.upper()} takes {'conditions' if truth else 'numbers'}, "
                f"not {arg.shape.kind.value}",
                "It is about what is true." if truth else "Sums and averages are over numbers.",
                "COUNT(*) counts rows of any type.",
            )


def _shape(name: str, args: tuple[Expression, ...], rows: int | None) -> Shape:
    return _known(_SHAPES.get(name, _spread)(args, rows), rows)


def _known(shape: Shape, rows: int | None) -> Shape:
    # A noised count may be negative and a noised sum beyond its bounds: nothing is known of them.
    return shape if rows is not None else replace(shape, domain=ANYTHING)


def _count(_: tuple[Expression, ...], rows: int | None) -> Shape:
    return Shape(Kind.INTEGER, False, interval(0, rows, integral=True))


def _sum(args: tuple[Expression, ...], rows: int | None) -> Shape:
    shape = args[0].shape
    if shape.kind is Kind.NULL:  # a sum is a number even of nothing
        return Shape(Kind.INTEGER)
    low, high = numbers(shape.domain)
    name = total_type(shape.type_name)
    if rows is None or low is None or high is None:
        return Shape(shape.kind, type_name=name)
    ends = min(low, low * rows), max(high, high * rows)
    return Shape(shape.kind, True, _numeric(ends, shape.kind), name)


def _avg(args: tuple[Expression, ...], _: int | None) -> Shape:
    return Shape(Kind.DOUBLE, True, _numeric(numbers(args[0].shape.domain), Kind.DOUBLE))


def _same(args: tuple[Expression, ...], _: int | None) -> Shape:
    return args[0].shape.optional()


def _truth(_: tuple[Expression, ...], __: int | None) -> Shape:
    return Shape(Kind.BOOLEAN)


def _real(_: tuple[Expression, ...], __: int | None) -> Shape:
    return Shape(Kind.DOUBLE)


def _spread(args: tuple[Expression, ...], _: int | None) -> Shape:
    low, high = numbers(args[0].shape.domain)
    if low is None or high is None:
        return Shape(Kind.DOUBLE)
    return Shape(Kind.DOUBLE, True, interval(Fraction(0), max((high - low) ** 2, high - low)))


def _numeric(ends: tuple[Fraction | None, Fraction | None], kind: Kind) -> Domain:
    low, high = ends
    if low is None or high is None:
        return ANYTHING
    if kind is Kind.INTEGER:
        return interval(int(low), int(high), integral=True)
    return as_kind(interval(low, high), kind)


_SHAPES: dict[str, Callable[[tuple[Expression, ...], int | None], Shape]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _same,
    "max": _same,
    "mode": _same,
    "arg_max": _same,
    "arg_min": _same,
    "bool_and": _truth,
    "bool_or": _truth,
    "regr_count": _count,
    **dict.fromkeys(("covar_pop", "covar_samp", "corr"), _real),
    **dict.fromkeys(("regr_slope", "regr_intercept", "regr_r2"), _real),
}
