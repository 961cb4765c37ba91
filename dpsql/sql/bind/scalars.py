"""Scalar expressions: each listed node class has one handler. All other nodes are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

from sqlglot import exp

from dpsql.catalog.functions import FUNCTIONS, Mismatch
from dpsql.diagnostics.refusal import Refused
from dpsql.effort import step
from dpsql.ir.expressions import (
    NULL,
    Call,
    Expression,
    Literal,
    integer,
)
from dpsql.policy.types import INSTANT, Kind
from dpsql.sql.allow import LEAVE_OUT
from dpsql.sql.bind import cases, literals, operators, steps, times
from dpsql.sql.bind.aggregate_calls import Calls
from dpsql.sql.bind.casts import bind_at_time_zone, bind_cast
from dpsql.sql.bind.context import Context, refuse
from dpsql.sql.bind.copies import check_copy
from dpsql.sql.bind.decimals import exact
from dpsql.sql.bind.operators import align_types, word
from dpsql.sql.bind.row_values import bind_rows, compares_rows
from dpsql.sql.bind.scope import Scope
from dpsql.sql.bind.subqueries import bind_subquery
from dpsql.sql.bind.window_calls import Windows
from dpsql.sql.nodes import PLAIN_FUNCTIONS, is_aggregate_call
from dpsql.sql.spans import span_of


@dataclass(frozen=True, slots=True)
class Scalars:
    """Binds expressions in one scope.

    ``calls`` and ``windows`` collect aggregates and windows; None where these are not allowed.
    """

    context: Context
    scope: Scope
    calls: Calls | None = None
    windows: Windows | None = None

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression of a node."""
        step(10)
        if compares_rows(node):
            return bind_rows(self, node)
        simple = PLAIN_FUNCTIONS.get(type(node))
        if simple is not None:
            name, arguments = simple
            return self.call(name, self._arguments(node, arguments), node)
        if self.calls is not None and self.calls.knows(node):
            return self.calls.bind(self, node)
        handler = None if is_aggregate_call(node) else _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        if self.windows is not None and isinstance(node, exp.Window):
            return self.windows.bind(self, node)
        raise _misplaced(node)

    def condition(self, node: exp.Expr) -> Expression:
        """The typed expression of a condition; refused if it is not a truth value."""
        bound = self.bind(node)
        if bound.shape.kind not in (Kind.BOOLEAN, Kind.NULL):
            raise refuse(
                "DP201",
                node,
                f"a condition must be true or false, not {bound.shape.kind.value}",
                "Rows are kept where the condition is true.",
                "Compare it with a value.",
            )
        return bound

    def rowwise(self) -> Scalars:
        """A binder for the same names that takes neither aggregates nor windows."""
        scope, names = self.scope, self.scope.row_aliases
        return Scalars(self.context, scope if names is None else replace(scope, aliases=names))

    def without_windows(self) -> Scalars:
        """The same binder, without window functions."""
        return replace(self, windows=None)

    def within(self, scope: Scope) -> Scalars:
        """The same binder for other names."""
        return replace(self, scope=scope)

    def call(
        self, name: str, args: tuple[Expression, ...], node: exp.Expr, option: str = ""
    ) -> Expression:
        """A function call with typed arguments."""
        if name != "is_null" and any(a.shape.kind.element is not None for a in args):
            raise refuse(
                "DP201",
                node,
                "a list of quantiles can only be shown as it is",
                "Nothing is computed from a whole list.",
                "Ask for each of its values: QUANTILE_CONT(x, 0.25), QUANTILE_CONT(x, 0.75).",
            )
        constant = literals.fold_constants(name, args, node)
        if constant is not None:
            return constant
        args = align_types(args, node)
        if name == "divide" and self.calls is not None and self.windows is not None:
            args = self.windows.numeric(args)
        try:
            shape = FUNCTIONS[name].shape(args, option)
        except Mismatch as mismatch:
            code = "DP114" if "literal" in str(mismatch) else "DP201"
            raise refuse(
                code,
                node,
                str(mismatch),
                "Types are settled before any data is read, so that no row can make a query fail.",
                "Cast the argument, or write the constant out.",
            ) from None
        return exact(Call(name, args, shape, option, span_of(node)))

    def _arguments(self, node: exp.Expr, names: tuple[str, ...]) -> tuple[Expression, ...]:
        found: list[Expression] = []
        for name in names:
            value = node.args.get(name)
            if isinstance(value, list):
                found += [self.bind(item) for item in value]
            elif value is not None:
                found.append(self.bind(value))
        return tuple(found)

    def negated(self, node: exp.Expr, bound: Expression) -> Expression:
        """``NOT bound`` if the node has ``negate``, else ``bound``."""
        return self.call("not", (bound,), node) if node.args.get("negate") else bound


def _misplaced(node: exp.Expr) -> Refused:
    if is_aggregate_call(node) or isinstance(node, exp.AggFunc | exp.Filter | exp.Window):
        return refuse(
            "DP110",
            node,
            "an aggregate or window cannot stand here",
            "WHERE, GROUP BY and the arguments of aggregates are evaluated for single rows.",
            "Put the condition into HAVING, or the aggregate into a subquery.",
        )
    return refuse(
        "DP100",
        node,
        "this construct cannot stand here",
        "Only constructs whose effect on one person's privacy is known are run.",
        LEAVE_OUT,
    )


def _column(self: Scalars, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        raise _misplaced(node)
    return self.scope.resolve(node)


def _literal(_: Scalars, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Literal)
    return literals.literal(str(node.this), node) if node.is_string else literals.number(node)


def _negate(self: Scalars, node: exp.Expr) -> Expression:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        value = literals.number(node.this).value
        assert isinstance(value, int) or value is not None
        return literals.literal(-value, node)  # type: ignore[operator]
    return self.call("negate", (self.bind(node.this),), node)


def _is(self: Scalars, node: exp.Expr) -> Expression:
    subject, what = self.bind(node.this), node.expression
    if isinstance(what, exp.Null):
        bound = self.call("is_null", (subject,), node)
    elif isinstance(what, exp.Boolean):
        bound = self.call("is_true" if what.this else "is_false", (subject,), node)
    else:
        raise _misplaced(node)
    return self.negated(node, bound)


def _in(self: Scalars, node: exp.Expr) -> Expression:
    if node.args.get("query") is not None:
        return bind_subquery(self, node)
    options = tuple(self.bind(item) for item in node.expressions)
    if not options:
        raise refuse(
            "DP102",
            node,
            "the list of IN is empty",
            "A list needs at least one value.",
            "a IN (1, 2)",
        )
    return self.negated(node, self.call("in", (self.bind(node.this), *options), node))


def _between(self: Scalars, node: exp.Expr) -> Expression:
    subject = check_copy(self.bind(node.this), node)
    low, high = self.bind(node.args["low"]), self.bind(node.args["high"])
    above = self.call("ge", (subject, low), node)
    below = self.call("le", (subject, high), node)
    return self.negated(node, self.call("and", (above, below), node))


def _like(self: Scalars, node: exp.Expr) -> Expression:
    """LIKE and ILIKE. A backslash in the pattern is the escape character, as in PostgreSQL."""
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    pattern = self.bind(node.expression)
    escapes = isinstance(pattern, Literal) and "\\" in str(pattern.value)
    args = (self.bind(node.this), pattern)
    return self.negated(node, self.call(name, args, node, "\\" if escapes else ""))


def _escape(self: Scalars, node: exp.Expr) -> Expression:
    pattern, escape = node.this, node.expression
    if not isinstance(pattern, exp.Like | exp.ILike) or not isinstance(escape, exp.Literal):
        raise _misplaced(node)
    name = "ilike" if isinstance(pattern, exp.ILike) else "like"
    args = (self.bind(pattern.this), self.bind(pattern.expression))
    return self.negated(pattern, self.call(name, args, node, str(escape.this)))


def _extract(self: Scalars, node: exp.Expr) -> Expression:
    return self.call("extract", (self.bind(node.expression),), node, word(node.this))


def _today(self: Scalars, node: exp.Expr) -> Expression:
    now = self.context.catalog.now.replace(tzinfo=None, microsecond=0)
    if isinstance(node, exp.CurrentDate):
        return literals.literal(date(now.year, now.month, now.day), node)
    found = literals.literal(now, node)
    return replace(found, shape=replace(found.shape, type_name=INSTANT))


_HANDLERS: dict[type[exp.Expr], Callable[[Scalars, exp.Expr], Expression]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda _, node: literals.literal(bool(node.this), node),
    exp.Null: lambda _, node: replace(NULL, span=span_of(node)),
    exp.Placeholder: lambda self, node: literals.parameter(node, self.context),
    exp.Parameter: lambda self, node: literals.parameter(node, self.context),
    exp.Interval: lambda _, node: literals.interval(node),  # type: ignore[arg-type]
    exp.Paren: lambda self, node: self.bind(node.this),
    exp.Anonymous: operators.interval_end,
    exp.Subquery: bind_subquery,
    exp.Exists: bind_subquery,
    exp.Neg: _negate,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Add: operators.add,
    exp.Sub: operators.add,
    exp.Div: operators.divide,
    exp.DPipe: operators.pipe,
    exp.Case: cases.bind_case,
    exp.If: cases.bind_if,
    exp.Cast: bind_cast,
    exp.TryCast: bind_cast,
    exp.AtTimeZone: bind_at_time_zone,
    exp.Trim: operators.trim,
    exp.WidthBucket: steps.width_bucket,
    exp.Concat: operators.concat,
    exp.TimestampTrunc: operators.date_trunc,
    exp.DateTrunc: operators.date_trunc,
    exp.Extract: _extract,
    exp.CurrentDate: _today,
    exp.CurrentTimestamp: _today,
    exp.StrToDate: times.from_text,
    exp.StrToTime: times.from_text,
    exp.TimeToStr: times.to_char,
    exp.UnixToTime: times.from_epoch,
    exp.DateBin: times.date_bin,
}

__all__ = ["Scalars", "integer"]
