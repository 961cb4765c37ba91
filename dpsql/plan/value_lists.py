"""Every value that a declared domain has, as a list of constants.

Claim: the values depend on the domain alone: on declarations, and on constants of the statement.
Assumes: nothing about the data; rows with other values are in no group.
Argument: a list is made from the shape of a column alone, and no engine is asked for it.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction

from dpsql.catalog.functions.time import truncate
from dpsql.ir.domain import Domain
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.public_groups import Days, Members, Periods, ValueList, WholeNumbers
from dpsql.policy.types import Kind


def whole_ends(domain: Domain) -> tuple[int, int] | None:
    """The first and the last whole number of a range."""
    low, high = domain.low, domain.high
    if not isinstance(low, int | Fraction) or not isinstance(high, int | Fraction):
        return None
    return math.ceil(low), math.floor(high)


def list_values(column: Column) -> ValueList:
    """The values of a column whose shape is listable."""
    return ValueList(column, _present(column.shape), column.shape.nullable)


def _present(shape: Shape) -> Members | WholeNumbers | Days | Periods:
    domain, kind = shape.domain, shape.kind
    if domain.members is not None:
        return Members(kind, domain.members)
    low, high = domain.low, domain.high
    if isinstance(low, date) and isinstance(high, date):
        return _dates(low, high, kind, domain.grain)
    ends = whole_ends(domain)
    assert ends is not None
    return WholeNumbers(kind, *ends)


def _dates(low: date, high: date, kind: Kind, grain: str | None) -> Days | Periods:
    """The starts of periods between two ends. A condition may have set an end within a period."""
    unit = grain or "day"
    if kind is Kind.DATE and unit == "day":
        return Days(_day(low), _day(high))
    return Periods(kind, unit, truncate(low, unit), _moment(low), _moment(high))


def _moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001


def _day(value: date) -> date:
    return date(value.year, value.month, value.day)
