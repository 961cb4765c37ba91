"""Writes expressions for DuckDB. It uses total functions only, and quotes names and literals.

No text of the client is copied: every token is written here or is a quoted literal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from dpsql.catalog.aggregates import AGGREGATES, names_where
from dpsql.effort import step
from dpsql.engines.duckdb.aggregates import call_form
from dpsql.engines.duckdb.constants import double, literal
from dpsql.engines.duckdb.functions import WRITERS
from dpsql.engines.duckdb.types import engine_type, write_coerced, write_typed
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Frame,
    FrameEnd,
    Interval,
    Literal,
    Parameter,
    Shape,
    SortKey,
    Subquery,
    Window,
)
from dpsql.ir.window_ties import Breaks, breaks
from dpsql.policy.types import Kind

Texts = Mapping[int, str]
"""The text of each column, by its number."""


def expression(node: Expression, names: Texts) -> str:
    """The SQL of an expression over columns that are written as ``names`` says.

    A computed value without a type is made of NULLs alone, so it is written as NULL.
    """
    step()
    if isinstance(node, Call | Case | Window | Parameter) and node.shape.kind is Kind.NULL:
        return "NULL"
    match node:
        case Column(number=number):
            return names[number]
        case Literal(value=value, shape=shape):
            return write_typed(literal(value, shape.kind), node, shape.kind)
        case Interval(count=count, unit=unit):
            return f"INTERVAL '{count} {unit}'"
        case Call(function=name, args=args, option=option):
            return WRITERS[name]([_argument(a, names) for a in args], args, option)
        case Case():
            return _case(node, names)
        case Window():
            return _window(node, names)
        case Parameter():
            return _parameter(node)
        case Subquery():
            raise AssertionError("plan.build replaces every subquery by a parameter")


def key_text(node: Expression, names: Texts) -> str:
    """The SQL of an expression whose equal values are grouped.

    An engine returns the first of several values that it takes for equal, from whichever unit's row
    it was. Here equal values have the same bytes: see ``canonical``.
    """
    text = expression(node, names)
    return text if isinstance(node, Literal) else canonical(text, node.shape.kind)


def canonical(text: str, kind: Kind) -> str:
    """The canonical form of a value: values that compare as equal have the same bytes.

    Doubles have two zeros, and NaN with either sign. Keys of all other kinds need no change: text
    is compared byte by byte, since columns with a collation are refused when a policy is opened.

    >>> canonical("t.x", Kind.DOUBLE)
    "CASE WHEN isnan(t.x) THEN CAST('NaN' AS DOUBLE) ELSE t.x + 0.0e0 END"
    >>> canonical("t.x", Kind.TEXT)
    't.x'
    """
    if kind is not Kind.DOUBLE:
        return text
    return f"CASE WHEN isnan({text}) THEN CAST('NaN' AS DOUBLE) ELSE {text} + 0.0e0 END"


def _parameter(node: Parameter) -> str:
    """A value that is known when the statement runs."""
    kind = engine_type(node.shape.kind)
    return (
        f"(SELECT unnest(${node.name}::{kind}[]))" if node.many else f"CAST(${node.name} AS {kind})"
    )


def _argument(node: Expression, names: Texts) -> str:
    """An argument of a function. Constants are written without a type: see ``write_typed``."""
    if isinstance(node, Literal):
        return literal(node.value, node.shape.kind)
    return expression(node, names)


def _case(node: Case, names: Texts) -> str:
    kind = node.shape.kind
    whens = " ".join(
        f"WHEN {_argument(c, names)} THEN {write_coerced(_argument(v, names), v, kind)}"
        for c, v in node.whens
    )
    last = write_coerced(_argument(node.otherwise, names), node.otherwise, kind)
    return f"CASE {whens} ELSE {last} END"


def _window(node: Window, names: Texts) -> str:
    parts = []
    if node.partition:
        parts.append("PARTITION BY " + ", ".join(expression(p, names) for p in node.partition))
    order = [sort_list(_reaching(node), names)] if node.order else []
    order += _ties(node, names) if breaks(node) is Breaks.IN_ORDER else []
    if order:
        parts.append("ORDER BY " + ", ".join(order))
    parts += [] if node.frame is None else [_frame(node.frame)]
    call = write_call(node, names)
    return as_planned(f"{call} OVER ({' '.join(parts)})", node)


def _frame(frame: Frame) -> str:
    return f"{frame.unit.upper()} BETWEEN {_end(frame.start)} AND {_end(frame.end)}"


def _end(end: FrameEnd) -> str:
    if end.side == "current row":
        return "CURRENT ROW"
    return f"{'UNBOUNDED' if end.distance is None else end.distance} {end.side.upper()}"


def _ties(node: Window, names: Texts) -> Iterator[str]:
    """Sort items for rows that are equal in the keys. They tell signs of zeros and NaN apart."""
    keys = {*node.partition, *(key.value for key in node.order)}
    for column in node.ties:
        text, real = names[column.number], column.shape.kind is Kind.DOUBLE
        if column not in keys:
            yield f"{text} ASC NULLS LAST"
        if real:
            yield f"signbit({text}) ASC NULLS LAST"


def _reaching(node: Window) -> tuple[SortKey, ...]:
    """The sort keys, as doubles if the frame has a distance, which otherwise might overflow."""
    frame = node.frame
    if frame is None or frame.unit != "range":
        return node.order
    if frame.start.distance is None and frame.end.distance is None:
        return node.order
    shape = Shape(Kind.DOUBLE)
    return tuple(
        replace(key, value=Call("cast", (key.value,), shape, Kind.DOUBLE.value))
        for key in node.order
    )


CHOOSING = frozenset(names_where(lambda record: record.chooses))
"""Functions that return one of several equal values. The choice must not be visible."""


def write_call(node: Window | Aggregated, names: Texts) -> str:
    """An aggregate or window function with its arguments and its FILTER."""
    write = key_text if node.function in CHOOSING else expression
    args = ", ".join(write(a, names) for a in node.args)
    if node.function == "count" and not args:
        args = "*"
    if isinstance(node, Aggregated) and node.option:
        args += f", {double(Fraction(node.option))}"
    if node.function == "count" and len(node.args) > 1:
        args = f"row({args})"
    if isinstance(node, Window) and node.ties and breaks(node) is Breaks.IN_CALL:
        keys = [sort_list(node.order, names)] if node.order else []
        args += " ORDER BY " + ", ".join((*keys, *_ties(node, names)))
    where = "" if node.where is None else f" FILTER (WHERE {_argument(node.where, names)})"
    distinct = "DISTINCT " if node.distinct else ""
    return call_form(node.function).format(
        name=node.function, distinct=distinct, args=args, where=where
    )


def as_planned(text: str, node: Window | Aggregated) -> str:
    """Casts sums and counts to the planned type: engines add them up in 128 bits."""
    record = AGGREGATES.get(node.function)
    if (
        record is None or not record.wider
    ):  # a window function that is no aggregate, or one that fits
        return text
    return f"TRY_CAST({text} AS {engine_type(node.shape.kind)})"


def sort_list(keys: tuple[SortKey, ...], names: Texts) -> str:
    """The items of an ORDER BY, with explicit directions and NULL orders."""
    return ", ".join(
        f"{_sorted(k.value, names)} {'DESC' if k.descending else 'ASC'}"
        f" NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in keys
    )


def _sorted(node: Expression, names: Texts) -> str:
    """A sort key. A constant is cast: alone it would be read as a position, or refused."""
    if not isinstance(node, Literal):
        text = expression(node, names)
        return "CAST(NULL AS BOOLEAN)" if text == "NULL" else text
    kind = node.shape.kind if node.shape.kind is not Kind.NULL else Kind.BOOLEAN
    return f"CAST({literal(node.value, kind)} AS {engine_type(kind)})"
