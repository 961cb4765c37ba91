"""Window functions of a SELECT. They are collected like aggregates, and computed after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as Literal_

from sqlglot import exp

from dpsql.catalog.function import Mismatch, common_kind, name_of_type
from dpsql.catalog.functions import FUNCTIONS
from dpsql.catalog.record import AggregateRecord, Form
from dpsql.effort import step
from dpsql.ir.domain import interval
from dpsql.ir.expressions import (
    Call,
    Column,
    Expression,
    Frame,
    FrameEnd,
    Literal,
    Shape,
    SortKey,
    Window,
)
from dpsql.policy.types import Kind
from dpsql.sql.bind.aggregate_calls import check_number, identifies
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import Context, refuse
from dpsql.sql.nodes import aggregate_call, call_arguments
from dpsql.sql.spans import span_of

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


@dataclass(slots=True)
class Windows:
    """The window calls of one SELECT."""

    context: Context
    found: list[tuple[Column, Window]] = field(default_factory=list)

    def bind(self, scalars: Binder, node: exp.Window) -> Expression:
        """The result column of a window call."""
        inner = scalars.without_windows()
        partition = tuple(inner.bind(p) for p in node.args.get("partition_by") or ())
        order = sort_keys(inner, node.args.get("order"))
        call = _call(inner, node, partition, order)
        step(2 * len(self.found))
        for column, known in self.found:
            if known == call:
                return column
        column = self.context.column(call.function, call.shape, identifier=identifies(call))
        self.found.append((column, call))
        return column

    def numeric(self, args: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The arguments of a division, with window sums as doubles.

        Such a sum is ``numeric`` in PostgreSQL, so its quotients have a fraction.
        """
        sums = {c.number for c, w in self.found if w.function == "sum"}
        return tuple(as_real(a) if isinstance(a, Column) and a.number in sums else a for a in args)


def as_real(value: Expression) -> Expression:
    """The number cast to a double."""
    shape = FUNCTIONS["cast"].shape((value,), Kind.DOUBLE.value)
    return Call("cast", (value,), shape, Kind.DOUBLE.value, value.span)


def sort_keys(scalars: Binder, order: exp.Order | None) -> tuple[SortKey, ...]:
    """The keys of an ORDER BY over expressions."""
    if order is None:
        return ()
    return tuple(sort_key(scalars.bind(item.this), item) for item in order.expressions)


def sort_key(value: Expression, item: exp.Expr) -> SortKey:
    """One ORDER BY item. By default NULLs sort as the largest values (PostgreSQL)."""
    descending = bool(item.args.get("desc"))
    return SortKey(value, descending, bool(item.args.get("nulls_first")))


def _call(
    scalars: Binder,
    node: exp.Window,
    partition: tuple[Expression, ...],
    order: tuple[SortKey, ...],
) -> Window:
    inner, where, distinct = node.this, None, False
    if isinstance(inner, exp.Filter):
        where = scalars.condition(inner.expression.this)
        inner = inner.this
    if any(isinstance(part, exp.Distinct) for part in call_arguments(inner)):
        raise refuse("DP100", node, "DISTINCT has no meaning in a window", "Engines refuse it.")
    name, args, shape = _function(scalars, inner)
    frame = _frame(node, order)
    return Window(name, args, partition, order, frame, shape, distinct, where, span_of(node))


def _function(scalars: Binder, node: exp.Expr) -> tuple[str, tuple[Expression, ...], Shape]:
    if type(node) in _RANKS:
        return _rank(scalars, node)
    if type(node) in _NEIGHBOURS:
        return _neighbour(scalars, node)
    record, written = aggregate_call(node) or (None, None)
    plain = written is not None and written.form is Form.VALUES
    if record is not None and plain and record.windowed:
        return _aggregate(scalars, node, record)
    raise refuse(
        "DP107",
        node,
        "this is not a window function that dpsql answers",
        "It is not in the SQL that dpsql answers.",
    )


def _aggregate(
    scalars: Binder, node: exp.Expr, record: AggregateRecord
) -> tuple[str, tuple[Expression, ...], Shape]:
    values = (n for n in call_arguments(node) if not isinstance(n, exp.Star))
    args = tuple(scalars.bind(n) for n in values)
    check_number(node, record, record.name, args)
    for kind in (a.shape.kind for a in args):
        if kind not in record.kinds:
            raise refuse(
                "DP201",
                node,
                f"{record.name.upper()} takes numbers, not {kind.value}",
                "It adds or averages numbers.",
            )
    shape = record.shape(args, None)
    return record.name, args, Shape(shape.kind, shape.nullable, type_name=shape.type_name)


def _rank(scalars: Binder, node: exp.Expr) -> tuple[str, tuple[Expression, ...], Shape]:
    name = _RANKS[type(node)]
    args = tuple(scalars.bind(n) for n in ([node.this] if isinstance(node, exp.Ntile) else []))
    if not all(isinstance(a, Literal) and isinstance(a.value, int) and a.value > 0 for a in args):
        raise refuse(
            "DP114",
            node,
            "NTILE takes a positive whole literal",
            "The number of buckets must be fixed before data is read.",
        )
    real = name in ("percent_rank", "cume_dist")
    shape = Shape(Kind.DOUBLE, False, interval(0, 1)) if real else Shape(Kind.INTEGER, False)
    return name, args, shape


def _neighbour(scalars: Binder, node: exp.Expr) -> tuple[str, tuple[Expression, ...], Shape]:
    name = _NEIGHBOURS[type(node)]
    parts = [node.args.get(key) for key in ("this", "offset", "default")]
    args = tuple(scalars.bind(part) for part in parts if part is not None)
    if not all(isinstance(a, Literal) and isinstance(a.value, int) for a in args[1:2]):
        raise refuse(
            "DP114",
            node,
            f"the offset of {name.upper()} must be a literal whole number",
            "The offset must be fixed before data is read.",
        )
    try:
        kind = common_kind([args[0], *args[2:]], name.upper())
    except Mismatch as mismatch:
        raise refuse(
            "DP201", node, str(mismatch), "All values of a column have one type."
        ) from None
    return name, args, Shape(kind, type_name=name_of_type(kind, args))


def _frame(node: exp.Expr, order: tuple[SortKey, ...]) -> Frame | None:
    spec = node.args.get("spec")
    if spec is None:
        return None
    unit = _UNITS.get(str(spec.args.get("kind") or "ROWS").upper())
    start = _bound(node, spec.args.get("start"), spec.args.get("start_side"))
    end = _bound(node, spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    if unit is None:
        raise refuse(
            "DP100",
            node,
            "this window frame is not answered",
            "It is not in the SQL that dpsql answers.",
        )
    first, last = _place(start), _place(end)
    if first == _LAST or last == -_LAST or first > last:
        raise refuse(
            "DP102",
            node,
            "this window frame ends before it begins",
            "A frame that ends before it begins holds no row.",
        )
    if unit != "rows" and (start.distance is not None or end.distance is not None):
        _ordered(node, unit.upper(), order)
    return Frame(unit, start, end)


_UNITS: dict[str, Literal_["rows", "range", "groups"]] = {
    "ROWS": "rows", "RANGE": "range", "GROUPS": "groups",
}  # fmt: skip
_SIDES: dict[str, Literal_["preceding", "following"]] = {
    "PRECEDING": "preceding", "FOLLOWING": "following",
}  # fmt: skip
_MOST_DIGITS = 1_000
"""The most digits of a frame's distance: longer numbers take time to read."""
_LAST = 2


def _place(end: FrameEnd) -> int:
    """The order of a frame's end: -2 and 2 are unbounded, -1 and 1 at a distance, 0 the row."""
    if end.side == "current row":
        return 0
    far = 1 if end.distance is not None else _LAST
    return far if end.side == "following" else -far


def _ordered(node: exp.Expr, kind: str, order: tuple[SortKey, ...]) -> None:
    """Refuse a RANGE or GROUPS frame with a distance that has no fitting sort key.

    RANGE counts in values of one numeric sort key, GROUPS in groups of equal sort keys.
    """
    numeric = len(order) == 1 and order[0].value.shape.kind.numeric
    if not order or (kind == "RANGE" and not numeric):
        wanted = "one number" if kind == "RANGE" else "something"
        raise refuse(
            "DP201",
            node,
            f"a {kind} frame with a distance must be sorted by {wanted}",
            "The distance is measured along that order.",
            "ROWS counts rows, whatever they are sorted by.",
        )


def _bound(node: exp.Expr, value: object, side: object) -> FrameEnd:
    if isinstance(value, str) and value.upper() == "CURRENT ROW":
        return FrameEnd("current row")
    direction = _SIDES.get(str(side or "").upper())
    if direction is not None and isinstance(value, str) and value.upper() == "UNBOUNDED":
        return FrameEnd(direction)
    if direction is not None and isinstance(value, exp.Literal) and not value.is_string:
        digits = str(value.this)
        if digits.isdecimal() and len(digits) <= _MOST_DIGITS:
            return FrameEnd(direction, int(digits))
    raise refuse(
        "DP114",
        node,
        "the ends of a window frame must be literals",
        "They must be fixed before data is read.",
    )
