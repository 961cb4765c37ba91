"""GENERATE_SERIES in FROM: constant rows between literals, for filling gaps."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from sqlglot import exp

from dpsql.catalog.function import name_of_type
from dpsql.catalog.functions.time import add_interval
from dpsql.ir import domain as d
from dpsql.ir.expressions import Expression, Interval, Literal, Shape
from dpsql.ir.relations import Values
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind.context import Context, refuse
from dpsql.sql.bind.scalars import Scalars
from dpsql.sql.bind.scope import Scope
from dpsql.sql.spans import span_of

MOST_SERIES_ROWS = 10_000


def series(node: exp.Expr, context: Context, ctes: Scope, name: str) -> Values:
    """The rows from ``start`` to ``end`` by ``step``, in a column called ``name``."""
    scalars = Scalars(context, replace(ctes, sources=()))
    start, end = (scalars.bind(node.args[part]) for part in ("start", "end"))
    step = node.args.get("step")
    by: Expression = Literal(1, Shape(Kind.INTEGER, False)) if step is None else scalars.bind(step)
    found = _values(start, end, by)
    if found is None or len(found) > MOST_SERIES_ROWS:
        raise refuse(
            "DP114",
            node,
            f"GENERATE_SERIES takes literals, and makes at most {MOST_SERIES_ROWS} rows",
            "Its rows must be known before any data is read.",
            "GENERATE_SERIES(DATE '2025-01-01', DATE '2025-12-01', INTERVAL '1 month')",
        )
    kind = Kind.INTEGER if isinstance(start.shape.domain.low, int) else Kind.TIMESTAMP
    shape = Shape(kind, False, d.members(found), name_of_type(kind, (start, end)))
    field = context.column(name, shape)
    return Values((field,), tuple((value,) for value in found), span=span_of(node))


def _values(start: Expression, end: Expression, step: Expression) -> list[Scalar] | None:
    """The values; None if the arguments are not constants, or the step is 0."""
    if not isinstance(start, Literal) or not isinstance(end, Literal):
        return None
    first, last = start.value, end.value
    if isinstance(step, Literal):
        whole = [v for v in (first, last, step.value) if isinstance(v, int)]
        if len(whole) < 3 or step.value == 0:
            return None
        ends = range(whole[0], whole[1] + (1 if whole[2] > 0 else -1), whole[2])
        return list(ends[: MOST_SERIES_ROWS + 1])
    if not isinstance(first, dt.date) or not isinstance(last, dt.date):
        return None
    return _times(first, last, step) if isinstance(step, Interval) else None


def _times(first: dt.date, last: dt.date, step: Interval) -> list[Scalar] | None:
    at, limit = (
        add_interval(first, replace(step, count=0), 1),
        add_interval(last, replace(step, count=0), 1),
    )
    if step.count == 0 or at is None or limit is None:
        return None
    found: list[Scalar] = []
    while at is not None and (at <= limit if step.count > 0 else at >= limit):
        found.append(at)
        if len(found) > MOST_SERIES_ROWS:
            break
        at = add_interval(at, step, 1)
    return found
