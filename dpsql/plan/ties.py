"""Windows order the rows of one unit in one way, whatever other rows exist and how they are stored.

The order in which an engine reads two equal rows depends on all rows of the table, and on its
threads. If a window told them apart, removing a unit could change what others add to an answer. So
each window that can tell equal rows apart orders them by all columns that are read of them
(``Window.ties``).

Claim: the rows of the relation, as far as the measurement reads them, are a function of the rows
    below its windows: as a multiset they do not depend on the order in which an engine reads rows.
Assumes: windows of one SELECT with the same PARTITION BY and ORDER BY use the same order of rows.
Argument: rows that are still equal have the same bytes in every column that is read (``_ties``
    distinguishes the signs of doubles, since both zeros are equal, and so are all NaN), so they
    are interchangeable. Windows of another order are computed later, in a SELECT of their own, and have
    the results of the earlier windows among their columns. Otherwise one of two equal rows could be
    the first of both orders, or each row the first of one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dpsql.catalog.statistic import Rows, Statistic, Units, Values
from dpsql.ir.expressions import Column, Expression, Window, columns
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Private,
    Project,
    Relation,
    Union,
    Windowed,
    expressions,
    inputs,
    walk_relations,
    with_inputs,
    written_columns,
)
from dpsql.ir.window_ties import OF_PLACES, Breaks, breaks
from dpsql.plan.nodes import Measurement
from dpsql.policy.types import Kind

Numbers = frozenset[int]


def break_ties(relation: Relation, measurement: Measurement) -> Relation:
    """The rows that a measurement reads, with ties broken in all windows."""
    if not any(isinstance(part, Windowed) for part in walk_relations(relation)):
        return relation
    return _break(relation, _read(measurement))


def _read(measurement: Measurement) -> Numbers:
    """The columns that the statement reads of its rows."""
    own = [e for s in measurement.statistics for e in _expressions(s)]
    kept = None if measurement.lifted is None else measurement.lifted.kept
    own += [*measurement.keys, *([] if kept is None else [kept])]
    return _named(own).union(*measurement.privacy.key)


def _expressions(statistic: Statistic) -> Iterator[Expression]:
    if statistic.where is not None:
        yield statistic.where
    if isinstance(statistic, Values):
        yield from statistic.values
    elif not isinstance(statistic, Rows | Units):
        yield statistic.value


def _named(nodes: Iterable[Expression]) -> Numbers:
    return frozenset(c.number for c in columns(*nodes))


def _break(relation: Relation, read: Numbers) -> Relation:
    """The relation with ties broken; ``read`` are the columns that are read of it."""
    match relation:
        case Project(values=values, fields=fields):
            pairs = [(f, v) for f, v in zip(fields, values, strict=True) if f.number in read]
            fields, values = tuple(f for f, _ in pairs), tuple(v for _, v in pairs)
            inner = _break(relation.input, read | _named(values))
            return replace(relation, input=inner, values=values, fields=fields)
        case Aggregate() | Distinct():
            below = _named((*expressions(relation), *relation.fields))
        case Union():
            return _united(relation)
        case Windowed():
            return _windowed(relation, read | _named(relation.windows))
        case _:
            below = read | _named(expressions(relation))
    return with_inputs(relation, tuple(_break(r, below) for r in inputs(relation)))


def _united(union: Union) -> Relation:
    """A set operation with ties broken in its sides.

    Sides are read by position, so their columns are listed before the sides are changed.
    """
    width = len(union.fields)
    sides = union.columns or tuple(side.fields[:width] for side in union.inputs)
    pairs = zip(union.inputs, sides, strict=True)
    return replace(union, columns=sides, inputs=tuple(_break(r, _named(s)) for r, s in pairs))


def _windowed(windowed: Windowed, read: Numbers) -> Relation:
    """Windows with their ties. Windows of one order are in one SELECT."""
    relation = _break(windowed.input, read)
    new = windowed.fields[len(windowed.input.fields) :]
    pairs = list(zip(new, windowed.windows, strict=True))
    orders = list(dict.fromkeys(_order(w) for _, w in pairs if breaks(w) is not Breaks.NOWHERE))
    for position, order in enumerate(orders or [None]):
        group = [(c, w) for c, w in pairs if breaks(w) is not Breaks.NOWHERE and _order(w) == order]
        if position == 0:
            group += [(c, w) for c, w in pairs if breaks(w) is Breaks.NOWHERE]
        relation = _ordered(windowed, relation, group, read)
    return relation


def _order(window: Window) -> tuple[object, object]:
    return window.partition, window.order


def _ordered(
    windowed: Windowed, below: Relation, group: list[tuple[Column, Window]], read: Numbers
) -> Relation:
    ties = tuple(_ties(windowed, below, read))
    windows = tuple(_tied(w, ties) for _, w in group)
    fields = (*below.fields, *(c for c, _ in group))
    return replace(windowed, input=below, windows=windows, fields=fields, read=read)


def _tied(window: Window, ties: tuple[Column, ...]) -> Window:
    """A window with its ties.

    Functions of places lose their frame: it means nothing to them, and RANGE allows no further key.
    """
    if breaks(window) is Breaks.NOWHERE:
        return window
    frame = None if window.function in OF_PLACES else window.frame
    return replace(window, ties=ties, frame=frame)


def _ties(windowed: Windowed, below: Relation, read: Numbers) -> Iterator[Column]:
    """The columns that are read of a relation, without the unit's key: a window has one unit."""
    privacy = windowed.privacy
    unit = frozenset().union(*privacy.key) if isinstance(privacy, Private) else frozenset()
    for number, column in sorted(written_columns(below).items()):
        if number in read - unit and column.shape.kind is not Kind.NULL:
            yield column
