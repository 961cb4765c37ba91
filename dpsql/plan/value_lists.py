"""Every value that a declared domain has, as a query over constants.

Claim: the values depend on the domain alone: on declarations, and on constants of the statement.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction

from dpsql.catalog.functions.time import truncate
from dpsql.ir.domain import Domain
from dpsql.ir.expressions import Shape
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.render import literal


def whole_ends(domain: Domain) -> tuple[int, int] | None:
    """The first and the last whole number of a range."""
    low, high = domain.low, domain.high
    if not isinstance(low, int | Fraction) or not isinstance(high, int | Fraction):
        return None
    return math.ceil(low), math.floor(high)


def values_sql(shape: Shape) -> str:
    """A query for the values of a listable shape in a column ``v``."""
    text = _present_sql(shape)
    return f"{text} UNION ALL SELECT NULL" if shape.nullable else text


def _present_sql(shape: Shape) -> str:
    domain, kind = shape.domain, shape.kind
    type_name = {Kind.INTEGER: "BIGINT", Kind.DOUBLE: "DOUBLE", Kind.TEXT: "VARCHAR"}.get(kind)
    if domain.members is not None:
        rows = ", ".join(f"({literal(v, kind)})" for v in domain.members)
        cast = f"CAST(v AS {type_name})" if type_name else "v"
        empty = f"SELECT CAST(NULL AS {type_name or kind.value}) AS v WHERE FALSE"
        return f"SELECT {cast} AS v FROM (VALUES {rows}) AS m(v)" if rows else empty
    low, high = domain.low, domain.high
    if isinstance(low, date) and isinstance(high, date):
        return _dates_sql(low, high, kind, domain.grain)
    ends = whole_ends(domain)
    assert ends is not None
    first, last = ends
    return f"SELECT CAST(v AS {type_name}) AS v FROM range({first}, {max(first, last + 1)}) AS r(v)"


def _dates_sql(low: date, high: date, kind: Kind, grain: str | None) -> str:
    """The starts of periods between two ends, which a condition may have put within a period."""
    unit = grain or "day"
    if kind is Kind.DATE and unit == "day":
        days = max(0, (_day(high) - _day(low)).days + 1)
        start = literal(_day(low), Kind.DATE)
        return f"SELECT {start} + CAST(v AS INTEGER) AS v FROM range(0, {days}) AS r(v)"
    value = "TRY_CAST(v AS DATE)" if kind is Kind.DATE else "v"
    ends = f"{_stamp(truncate(low, unit))}, {_stamp(high)}"
    series = f"SELECT {value} AS v FROM generate_series({ends}, INTERVAL '1 {unit}') AS r(v)"
    return series if truncate(low, unit) == _moment(low) else f"{series} WHERE v >= {_stamp(low)}"


def _moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001


def _day(value: date) -> date:
    return date(value.year, value.month, value.day)


def _stamp(value: Scalar) -> str:
    return f"CAST({literal(value, Kind.TIMESTAMP)} AS TIMESTAMP)"
