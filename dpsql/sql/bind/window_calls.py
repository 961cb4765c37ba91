"""Window functions of a SELECT, collected like aggregates and computed after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.policy.types import Kind
from dpsql.sql.bind.aggregate_calls import NAMES, SPREADS
from dpsql.sql.bind.context import Context, refuse
from dpsql.sql.domain import interval
from dpsql.sql.expressions import Column, Expression, Literal, Shape, SortKey, Window
from dpsql.sql.spans import span_of

if TYPE_CHECKING:
    from dpsql.sql.bind.scalars import Scalars

_RANKS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
    exp.Ntile: "ntile",
}
_NEIGHBOURS: dict[type[exp.Expr], str] = {
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
}
_BOUNDS = ("UNBOUNDED", "CURRENT ROW")


@dataclass(slots=True)
class Windows:
    """The window calls of one SELECT."""

    context: Context
    found: list[tuple[Column, Window]] = field(default_factory=list)

    def bind(self, scalars: Scalars, node: exp.Window) -> Expression:
        """The column that stands for the window call."""
        inner = type(scalars)(scalars.context, scalars.scope, scalars.calls)
        partition = tuple(inner.bind(p) for p in node.args.get("partition_by") or ())
        order = sort_keys(inner, node.args.get("order"))
        call = _call(inner, node, partition, order)
        for column, known in self.found:
            if known == call:
                return column
        column = self.context.column(call.function, call.shape)
        self.found.append((column, call))
        return column


def sort_keys(scalars: Scalars, order: exp.Order | None) -> tuple[SortKey, ...]:
    """The keys of an ORDER BY over expressions."""
    if order is None:
        return ()
    return tuple(sort_key(scalars.bind(item.this), item) for item in order.expressions)


def sort_key(value: Expression, item: exp.Expr) -> SortKey:
    """One ORDER BY item; where nothing is said NULLs sort as the largest (PostgreSQL)."""
    descending = bool(item.args.get("desc"))
    return SortKey(value, descending, bool(item.args.get("nulls_first")))


def _call(
    scalars: Scalars,
    node: exp.Window,
    partition: tuple[Expression, ...],
    order: tuple[SortKey, ...],
) -> Window:
    inner, where, distinct = node.this, None, False
    if isinstance(inner, exp.Filter):
        where = scalars.condition(inner.expression.this)
        inner = inner.this
    name, args, shape = _function(scalars, inner)
    if isinstance(inner.this, exp.Distinct):
        raise refuse("DP100", node, "DISTINCT has no meaning in a window", "Engines refuse it.")
    frame = _frame(node)
    return Window(name, args, partition, order, frame, shape, distinct, where, span_of(node))


def _function(scalars: Scalars, node: exp.Expr) -> tuple[str, tuple[Expression, ...], Shape]:
    if type(node) in _RANKS:
        name = _RANKS[type(node)]
        args = tuple(scalars.bind(n) for n in ([node.this] if isinstance(node, exp.Ntile) else []))
        if not all(isinstance(a, Literal) for a in args):
            raise refuse("DP114", node, "ntile takes a literal", "Its buckets are fixed.")
        real = name in ("percent_rank", "cume_dist")
        shape = Shape(Kind.DOUBLE, False, interval(0, 1)) if real else Shape(Kind.INTEGER, False)
        return name, args, shape
    if type(node) in _NEIGHBOURS:
        parts = [node.args.get(key) for key in ("this", "offset", "default")]
        args = tuple(scalars.bind(part) for part in parts if part is not None)
        return _NEIGHBOURS[type(node)], args, args[0].shape.optional()
    if type(node) in NAMES and type(node) is not exp.CountIf:
        name = NAMES[type(node)]
        counted = [] if isinstance(node.this, exp.Star | None) else [node.this]
        args = tuple(scalars.bind(n) for n in counted)
        if name == "count":
            return name, args, Shape(Kind.INTEGER, False)
        real = name == "avg" or name in SPREADS
        return name, args, Shape(Kind.DOUBLE if real else args[0].shape.kind)
    raise refuse(
        "DP107", node, "this is not a window function that dpsql answers", "It is not listed."
    )


def _frame(node: exp.Window) -> str:
    """The frame as text made of words and whole numbers only."""
    spec = node.args.get("spec")
    if spec is None:
        return ""
    kind = str(spec.args.get("kind") or "ROWS").upper()
    start = _bound(node, spec.args.get("start"), spec.args.get("start_side"))
    end = _bound(node, spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    if kind not in ("ROWS", "RANGE", "GROUPS"):
        raise refuse("DP100", node, "this window frame is not answered", "It is not listed.")
    return f"{kind} BETWEEN {start} AND {end}"


def _bound(node: exp.Expr, value: object, side: object) -> str:
    direction = str(side or "").upper()
    if isinstance(value, str) and value.upper() in _BOUNDS:
        return f"{value.upper()} {direction}".strip()
    if isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit():
        return f"{value.this} {direction}"
    raise refuse(
        "DP114", node, "the ends of a window frame are literals", "They are fixed beforehand."
    )
