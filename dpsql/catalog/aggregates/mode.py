"""MODE: the most frequent value of a public list, chosen by the number of rows with each value.

Adding a unit raises counts and lowers none, so all utilities move in one direction. The error of
the choice is therefore half that of a choice by rank.
"""

from __future__ import annotations

from datetime import date

from dpsql.catalog.record import (
    ANY_KIND,
    EVERY_DIALECT,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
    Unanswered,
)
from dpsql.catalog.shapes import same_shape
from dpsql.catalog.statistic import Lowered, Mode
from dpsql.ir.domain import numbers
from dpsql.ir.expressions import Aggregated, Shape
from dpsql.ir.relations import Private
from dpsql.policy.types import Kind, Scalar

MOST_VALUES = 1 << 16


def lower(call: Aggregated, _: Private) -> Lowered:
    """A choice among all values that the argument can have."""
    value = call.args[0]
    shape, domain = value.shape, value.shape.domain
    members = list_values(shape)
    mode = Mode(value, domain.low, domain.high, members, shape.kind, call.where)
    return Lowered((mode,), lambda columns: columns[0])


def list_values(shape: Shape) -> tuple[Scalar, ...] | None:
    """The values of a shape in order, if they are listed one by one; else None.

    >>> list_values(Shape(Kind.BOOLEAN))
    (False, True)
    """
    return (False, True) if shape.kind is Kind.BOOLEAN else shape.domain.members


def few(shape: Shape) -> bool:
    """Whether the possible values of this shape are a public list of at most ``MOST_VALUES``.

    >>> from dpsql.ir.domain import interval
    >>> few(Shape(Kind.INTEGER, domain=interval(1, 5, integral=True)))
    True
    """
    domain = shape.domain
    if shape.kind is Kind.BOOLEAN:
        return True
    if domain.members is not None:
        return 0 < len(domain.members) <= MOST_VALUES
    low, high = domain.low, domain.high
    if shape.kind is Kind.DATE and isinstance(low, date) and isinstance(high, date):
        return (_day(high) - _day(low)).days < MOST_VALUES
    first, last = numbers(domain)
    whole = shape.kind is Kind.INTEGER or domain.integral
    return whole and first is not None and last is not None and last - first < MOST_VALUES


def _day(value: date) -> date:
    return date(value.year, value.month, value.day)


RECORDS = (
    AggregateRecord(
        name="mode",
        about="`MODE(x)` of a public list of values",
        nodes=(
            AggregateNode(
                name="Mode", spellings=(), arguments=("this",), form=Form.VALUES, output="mode",
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(1, 1),
        kinds=ANY_KIND,
        shape=same_shape,
        lower=lower,
        needs=Needs.LIST,
        distinct=Distinct.REFUSED,
        strict_timing=True,
        row_bounds=False,
        group_bounds=False,
        per_unit=Unanswered(
            "MODE is not taken over the rows of one unit",
            "Ties would be decided by the order in which an engine reads rows.",
            "Use MIN, MAX or MEDIAN.",
        ),
        steady=Steady.NEVER,
        chooses=False,
        windowed=False,
        correlated=False,
        gives_values=True,
        wider=False,
        examples=("MODE(kind)", "MODE(n)"),
    ),
)  # fmt: skip
