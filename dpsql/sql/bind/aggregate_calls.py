"""Aggregate calls of a SELECT: each is collected once, typed, and replaced by its result column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import CONDITIONS, AggregateRecord, Distinct, Form
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.domain import ANYTHING
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Shape,
    Window,
    child_expressions,
)
from dpsql.policy.types import Kind
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import Context, refuse
from dpsql.sql.bind.grouping_calls import GroupingCalls
from dpsql.sql.bind.options import clamp_call
from dpsql.sql.bind.quantile_calls import bind_quantile, is_ascending, pick_quantile, separate
from dpsql.sql.nodes import aggregate_call, call_arguments, is_aggregate_call
from dpsql.sql.spans import span_of


@dataclass(slots=True)
class Calls:
    """The aggregate calls of one SELECT.

    ``rows`` is the most rows of a group if each group is of one unit, else None. ``keys`` are
    expressions that are constant within a group.
    """

    context: Context
    rows: int | None = None
    keys: tuple[Expression, ...] = ()
    levels: GroupingCalls | None = None
    found: list[tuple[Column, Aggregated]] = field(default_factory=list)

    def knows(self, node: exp.Expr) -> bool:
        """Whether the node is an aggregate call."""
        return is_aggregate_call(node) or isinstance(node, exp.Filter | exp.Bracket | exp.Grouping)

    def bind(self, scalars: Binder, node: exp.Expr) -> Expression:
        """The result column of a call; MIN and MAX of a grouping key are the key itself.

        A call for several quantiles becomes an array of such columns.
        """
        if isinstance(node, exp.Bracket):
            return self.bind(scalars, pick_quantile(node))
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

    def _several(self, scalars: Binder, parts: list[exp.Expr], node: exp.Expr) -> Expression:
        if self.rows is not None:
            raise refuse(
                "DP110",
                node,
                "lists of quantiles are not taken over the rows of one unit",
                "A list can only be shown; nothing can be computed from it.",
                "Ask for each of its values: QUANTILE_CONT(x, 0.25), QUANTILE_CONT(x, 0.75).",
            )
        columns = tuple(self.bind(scalars, part) for part in parts)
        return scalars.call("array", columns, node, "sorted" if is_ascending(node) else "")


_PLACES = ("row_number", "rank", "dense_rank", "ntile")
"""Window functions whose result is a position among rows."""


def identifies(call: Aggregated | Window) -> bool:
    """Whether the result may be an identifier, because it may contain a value of an argument."""
    record = AGGREGATES.get(call.function)
    gives = call.function not in _PLACES if record is None else record.gives_values
    return gives and any(map(_holds_identifier, call.args))


def _holds_identifier(node: Expression) -> bool:
    """Whether a value may contain an identifier. Truth values and conditions of CASE do not."""
    if isinstance(node, Column):
        return node.identifier
    if isinstance(node, Call) and node.shape.kind is Kind.BOOLEAN:
        return False
    parts = child_expressions(node)
    if isinstance(node, Case):
        parts = (*(value for _, value in node.whens), node.otherwise)
    return any(map(_holds_identifier, parts))


def bind_call(scalars: Binder, node: exp.Expr, rows: int | None) -> Aggregated:
    """An aggregate call over the rows of ``scalars``' scope, clamped to the bounds it names."""
    return clamp_call(_call(scalars, node, rows), node)


def _call(scalars: Binder, node: exp.Expr, rows: int | None) -> Aggregated:
    where = None
    rowwise = scalars.rowwise()
    if isinstance(node, exp.Filter):
        where = rowwise.condition(node.expression.this)
        node = node.this
    if not is_aggregate_call(node):
        raise refuse(
            "DP110",
            node,
            "FILTER belongs to an aggregate",
            "It says which rows the aggregate is about.",
            "COUNT(*) FILTER (WHERE ...)",
        )
    if isinstance(node, exp.WithinGroup):
        if not isinstance(node.this, exp.Mode):
            return _rank(rowwise, node, where, rows)
        node = _mode(node)
    call = aggregate_call(node)
    assert call is not None
    record, written = call
    match written.form:
        case Form.RANK | Form.RANKS:
            return _rank(rowwise, node, where, rows)
        case Form.CONDITION:
            where = _counted_condition(rowwise, node, where, written.output)
            return _of_values(record, node, (), where, rows)
        case Form.DIFFERENT | Form.VALUES:
            distinct, args = _arguments(rowwise, node)
            name = record.name if written.form is Form.VALUES else written.output
            check_number(node, record, name, args, distinct=distinct)
            if len(args) > 1 and distinct:
                where = _present(rowwise, node, record, args, where)
            distinct = distinct or written.form is Form.DIFFERENT
            return _of_values(record, node, args, where, rows, distinct=distinct)


def _rank(
    scalars: Binder, node: exp.Expr, where: Expression | None, rows: int | None
) -> Aggregated:
    record, value, option = bind_quantile(scalars, node)
    shape = _result(record, (value,), rows)
    return Aggregated(record.name, (value,), shape, where=where, option=option, span=span_of(node))


def _of_values(
    record: AggregateRecord, node: exp.Expr, args: tuple[Expression, ...],
    where: Expression | None, rows: int | None, *, distinct: bool = False,
) -> Aggregated:  # fmt: skip
    check_kinds(node, record.name, record.kinds, args)
    if record.per_unit is not None and rows is not None:
        reason = record.per_unit
        raise refuse("DP110", node, reason.headline, reason.why, reason.instead)
    shape = _result(record, args, rows)
    return Aggregated(record.name, args, shape, distinct, where, span=span_of(node))


def _counted_condition(
    scalars: Binder, node: exp.Expr, where: Expression | None, name: str
) -> Expression:
    """The FILTER of the COUNT(*) that is equal to a COUNT_IF: its argument, and its own FILTER."""
    distinct, args = _arguments(scalars, node)
    if not args:
        raise _no_values(node, name, 1)
    check_kinds(node, name, CONDITIONS, args)
    if distinct:
        raise refuse(
            "DP110",
            node,
            "COUNT_IF(DISTINCT ...) is not answered",
            "With DISTINCT it would only say whether the condition holds for any row.",
            "Write BOOL_OR(x > 5).",
        )
    return args[0] if where is None else scalars.call("and", (where, args[0]), node)


def check_number(
    node: exp.Expr, record: AggregateRecord, name: str, args: tuple[Expression, ...], *,
    distinct: bool = False,
) -> None:  # fmt: skip
    """Refuse a call with a wrong number of arguments. Only a count of rows takes none."""
    needed = record.values[0]
    if name != record.name or distinct:  # these count different values, so they need an argument
        needed = max(1, needed)
    if len(args) < needed:
        raise _no_values(node, name, needed)
    if len(args) > record.values[1] and not distinct:
        raise refuse(
            "DP201",
            node,
            f"{name.upper()} takes {'one value' if record.values[1] == 1 else 'two values'}",
            "The meaning of another argument is not known.",
            f"Write it as {record.about}.",
        )


def _no_values(node: exp.Expr, name: str, needed: int) -> Refused:
    return refuse(
        "DP201",
        node,
        f"{name.upper()} takes {'a value' if needed == 1 else 'two values'}",
        "Only COUNT(*) takes no value.",
        "COUNT(*)",
    )


def _mode(node: exp.WithinGroup) -> exp.Mode:
    """MODE() WITHIN GROUP (ORDER BY x) as MODE(x)."""
    call = exp.Mode(this=node.expression.expressions[0].this.copy())
    call.meta.update(node.meta)
    return call


def _arguments(scalars: Binder, node: exp.Expr) -> tuple[bool, tuple[Expression, ...]]:
    written = call_arguments(node)
    if not written or isinstance(written[0], exp.Star):
        return False, ()
    if isinstance(written[0], exp.Distinct):
        parts = written[0].expressions
        if len(parts) == 1 and isinstance(parts[0], exp.Tuple):
            parts = parts[0].expressions
        return True, tuple(scalars.bind(item) for item in parts)
    return False, tuple(scalars.bind(part) for part in written)


def _present(
    scalars: Binder, node: exp.Expr, record: AggregateRecord, args: tuple[Expression, ...],
    where: Expression | None,
) -> Expression | None:  # fmt: skip
    """The FILTER of ``COUNT(DISTINCT a, b)``: no value may be NULL. A row ``(a, b)`` never is."""
    if record.distinct is not Distinct.COUNTS:
        raise refuse(
            "DP110",
            node,
            f"{record.name.upper()}(DISTINCT ...) takes one value",
            "Combinations of several values can only be counted.",
            "COUNT(DISTINCT a, b)",
        )
    if isinstance(node.this.expressions[0], exp.Tuple):
        return where
    for arg in (a for a in args if a.shape.nullable):
        there = scalars.call("not", (scalars.call("is_null", (arg,), node),), node)
        where = there if where is None else scalars.call("and", (where, there), node)
    return where


def check_kinds(
    node: exp.Expr, name: str, kinds: frozenset[Kind], args: tuple[Expression, ...]
) -> None:
    """Refuse arguments of other kinds than the aggregate takes."""
    truth = kinds == CONDITIONS
    for arg in args:
        if arg.shape.kind not in (*kinds, Kind.NULL):
            raise refuse(
                "DP201",
                node,
                f"{name.upper()} takes {'conditions' if truth else 'numbers'}, "
                f"not {arg.shape.kind.value}",
                "It is computed from conditions that are true or false."
                if truth
                else "Sums and averages are over numbers.",
                "COUNT(*) counts rows of any type.",
            )


def _result(record: AggregateRecord, args: tuple[Expression, ...], rows: int | None) -> Shape:
    """The type of the result, and its bounds if it is over one unit's rows.

    A noised result has no bounds: a noised count may be negative, and a noised sum may leave the
    bounds of the sum.
    """
    shape = record.shape(args, rows)
    return shape if rows is not None else replace(shape, domain=ANYTHING)
