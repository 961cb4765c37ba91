"""Functions of dates and timestamps.

Parts and units are constants. Arithmetic that overflows gives NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction

from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    Mismatch,
    any_nullable,
    expect,
    expect_kind,
    name_of_type,
)
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.ir.domain import ANYTHING, Domain, interval
from dpsql.ir.expressions import Expression, Interval, Shape
from dpsql.ir.lengths import Length
from dpsql.ir.zones import ZONES
from dpsql.policy.types import INSTANT, Kind, Scalar

TEMPORAL = (Kind.DATE, Kind.TIMESTAMP)
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""The units to which a timestamp can be truncated, from the smallest to the largest."""

_PARTS: dict[str, tuple[int, int]] = {
    "second": (0, 60),
    "minute": (0, 59),
    "hour": (0, 23),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "doy": (1, 366),
    "week": (1, 53),
    "month": (1, 12),
    "quarter": (1, 4),
}
_CONTINUOUS = ("second", "epoch")
"""Parts with a fraction, as in PostgreSQL."""
PARTS = (*_PARTS, "year", "isoyear", "epoch")
_DAYS = {"day": 1, "week": 7}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}


def truncate(value: date | datetime, unit: str) -> datetime:
    """The start of the period of ``unit`` that holds the value.

    >>> truncate(date(2025, 8, 20), "quarter")
    datetime.datetime(2025, 7, 1, 0, 0)
    """
    at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = {
        "second": at.replace(microsecond=0),
        "minute": at.replace(second=0, microsecond=0),
        "hour": at.replace(minute=0, second=0, microsecond=0),
        "day": midnight,
        "week": midnight - timedelta(days=at.weekday()),
        "month": midnight.replace(day=1),
        "quarter": midnight.replace(day=1, month=(at.month - 1) // 3 * 3 + 1),
        "year": midnight.replace(day=1, month=1),
    }
    return starts[unit]


def _truncate_shape(args: tuple[Expression, ...], option: str) -> Shape:
    expect(args, 1, "date_trunc")
    expect_kind(args[0], TEMPORAL, "date_trunc")
    if option not in UNITS:
        raise Mismatch(f"date_trunc takes one of {', '.join(UNITS)}")
    domain = args[0].shape.domain
    name = name_of_type(Kind.TIMESTAMP, args)
    if not isinstance(domain.low, date) or not isinstance(domain.high, date):
        return Shape(Kind.TIMESTAMP, True, type_name=name)
    ends = truncate(domain.low, option), truncate(domain.high, option)
    return Shape(Kind.TIMESTAMP, any_nullable(args), Domain(*ends, grain=option), name)


def _extract_shape(args: tuple[Expression, ...], option: str) -> Shape:
    expect(args, 1, "extract")
    expect_kind(args[0], TEMPORAL, "extract")
    if option not in PARTS:
        raise Mismatch(f"extract takes one of {', '.join(PARTS)}")
    domain = args[0].shape.domain
    nullable = any_nullable(args) or not domain.bounded  # infinite dates have no parts
    return Shape(part_kind(option), nullable, _part_domain(domain, option))


def _part_domain(domain: Domain, part: str) -> Domain:
    if part in _PARTS:
        return interval(*_PARTS[part], integral=part not in _CONTINUOUS)
    low, high = domain.low, domain.high
    if not isinstance(low, date) or not isinstance(high, date):
        return interval(None, None, integral=part not in _CONTINUOUS)
    if part == "epoch":
        start = datetime(1970, 1, 1)  # noqa: DTZ001
        first, last = (int((truncate(v, "second") - start).total_seconds()) for v in (low, high))
        return interval(first, last + 1)
    spare = 1 if part == "isoyear" else 0
    return interval(low.year - spare, high.year + spare, integral=True)


def part_kind(part: str) -> Kind:
    """The kind of a part of a date."""
    return Kind.DOUBLE if part in _CONTINUOUS else Kind.INTEGER


def _to_timestamp_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 1, "to_timestamp")
    expect_kind(args[0], (Kind.INTEGER, Kind.DOUBLE), "to_timestamp")
    ends = args[0].shape.domain.low, args[0].shape.domain.high
    low, high = (_since_1970(end, spare) for end, spare in zip(ends, (-1, 1), strict=True))
    if low is None or high is None:
        return Shape(Kind.TIMESTAMP, True, type_name=INSTANT)
    return Shape(Kind.TIMESTAMP, any_nullable(args), interval(low, high), INSTANT)


def _since_1970(seconds: Scalar | None, spare: int) -> datetime | None:
    """The time ``seconds + spare`` seconds after the start of 1970; None outside the calendar."""
    if not isinstance(seconds, int | Fraction):
        return None
    try:
        return datetime(1970, 1, 1) + timedelta(seconds=int(seconds) + spare)  # noqa: DTZ001
    except OverflowError:
        return None


def _to_char_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 1, "to_char")
    expect_kind(args[0], TEMPORAL, "to_char")
    return Shape(Kind.TEXT, any_nullable(args) or not args[0].shape.domain.bounded)


def _written(_: Sequence[Length], __: tuple[Expression, ...], option: str) -> Length:
    """The longest output of TO_CHAR.

    Each two-character pattern becomes at most six digits (microseconds), so three per character.
    """
    return Length(0, 3 * len(option))


def _shift_shape(args: tuple[Expression, ...], option: str) -> Shape:
    """The shape of a date plus or minus an interval.

    Adding months keeps the day, or takes the last day of the month, as in PostgreSQL.
    """
    expect(args, 2, "date arithmetic")
    expect_kind(args[0], TEMPORAL, "date arithmetic")
    step = args[1]
    if not isinstance(step, Interval):
        raise Mismatch("dates move by a literal interval")
    sign = 1 if option == "+" else -1
    domain = args[0].shape.domain
    low, high = (add_interval(end, step, sign) for end in (domain.low, domain.high))
    name = name_of_type(Kind.TIMESTAMP, args)
    if low is None or high is None:
        return Shape(Kind.TIMESTAMP, True, type_name=name)
    return Shape(Kind.TIMESTAMP, any_nullable(args[:1]), interval(low, high), name)


def add_interval(value: Scalar | None, step: Interval, sign: int) -> datetime | None:
    """The value plus or minus the interval; None if it leaves the calendar.

    Adding months keeps the day where the month has it, and takes the month's last day otherwise.
    """
    if not isinstance(value, date):
        return None
    at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    count = sign * step.count
    try:
        if step.unit in _DAYS:
            return at + timedelta(days=count * _DAYS[step.unit])
        if step.unit in _SECONDS:
            return at + timedelta(seconds=count * _SECONDS[step.unit])
        months = count * {"month": 1, "quarter": 3, "year": 12}[step.unit]
        year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
        first = at.replace(year=year, month=month + 1, day=1)
        following = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
        return first.replace(day=min(at.day, (following - timedelta(days=1)).day))
    except (OverflowError, ValueError):
        return None


def _days_shape(args: tuple[Expression, ...], option: str) -> Shape:
    expect(args, 2, "date arithmetic")
    expect_kind(args[0], (Kind.DATE,), "adding days")
    expect_kind(args[1], (Kind.INTEGER,), "adding days")
    domain = _days_domain(args, 1 if option == "+" else -1)
    return Shape(Kind.DATE, any_nullable(args) or not domain.bounded, domain)


def _days_domain(args: tuple[Expression, ...], sign: int) -> Domain:
    base, days = args[0].shape.domain, args[1].shape.domain
    ends = (base.low, base.high, days.low, days.high)
    low, high, few, many = ends
    if not isinstance(low, date) or not isinstance(high, date):
        return ANYTHING
    if not isinstance(few, int) or not isinstance(many, int):
        return ANYTHING
    steps = sorted((sign * few, sign * many))
    try:
        return interval(low + timedelta(days=steps[0]), high + timedelta(days=steps[1]))
    except OverflowError:
        return ANYTHING


def _difference_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "date difference")
    for a in args:
        expect_kind(a, (Kind.DATE,), "the difference of dates")
    late, early = args[0].shape.domain, args[1].shape.domain
    low, high = _days_apart(late.low, early.high), _days_apart(late.high, early.low)
    return Shape(Kind.INTEGER, any_nullable(args), interval(low, high, integral=True))


def _days_apart(late: Scalar | None, early: Scalar | None) -> int | None:
    if not isinstance(late, date) or not isinstance(early, date):
        return None
    return (truncate(late, "day") - truncate(early, "day")).days


def _zone_shape(args: tuple[Expression, ...], option: str, *, local: bool) -> Shape:
    """The shape of AT TIME ZONE: the range moved by the smallest and largest offset of the zone.

    The offsets before 1970 are not known here, so earlier ranges are dropped.
    """
    expect(args, 1, "AT TIME ZONE")
    expect_kind(args[0], (Kind.TIMESTAMP,), "AT TIME ZONE")
    name, domain = "" if local else INSTANT, args[0].shape.domain
    if option == "UTC":
        return replace(args[0].shape, kind=Kind.TIMESTAMP, type_name=name)
    low, high = domain.low, domain.high
    if not isinstance(low, datetime) or not isinstance(high, datetime) or low.year <= _KNOWN_FROM:
        return Shape(Kind.TIMESTAMP, True, type_name=name)
    least, most = (timedelta(minutes=end) for end in ZONES[option])
    try:
        ends = (low + least, high + most) if local else (low - most, high - least)
    except OverflowError:
        return Shape(Kind.TIMESTAMP, True, type_name=name)
    return Shape(Kind.TIMESTAMP, any_nullable(args), interval(*ends), name)


_KNOWN_FROM = 1970


RECORDS = (
    FunctionRecord(
        function=Function(
            "to_zone",
            lambda args, zone: _zone_shape(args, zone, local=True),
            "`a AT TIME ZONE 'Europe/Berlin'` of an instant",
        ),
        nodes=(FunctionNode("AtTimeZone", ("this", "zone"), None, ("duckdb", "snowflake")),),
        strict=False,
        examples=(),
    ),
    FunctionRecord(
        function=Function(
            "from_zone",
            lambda args, zone: _zone_shape(args, zone, local=False),
            "`a AT TIME ZONE 'Europe/Berlin'` of a timestamp: the instant",
        ),
        nodes=(),
        strict=False,
        examples=("moment AT TIME ZONE 'Europe/Berlin'",),
    ),
    FunctionRecord(
        function=Function(
            "date_trunc",
            _truncate_shape,
            "`DATE_TRUNC('month', a)`",
        ),
        nodes=(
            FunctionNode("TimestampTrunc", ("this", "unit", "zone"), None, ()),
            FunctionNode("DateTrunc", ("this", "unit"), None, ()),
        ),
        strict=True,
        examples=("DATE_TRUNC('day', moment)",),
    ),
    FunctionRecord(
        function=Function(
            "extract",
            _extract_shape,
            "`EXTRACT(year FROM a)`, `DATE_PART('year', a)`",
        ),
        nodes=(FunctionNode("Extract", ("this", "expression"), None, ()),),
        strict=True,
        examples=("EXTRACT(hour FROM moment)",),
    ),
    FunctionRecord(
        function=Function("shift", _shift_shape, "`a + INTERVAL '1 month'`"),
        nodes=(),
        strict=False,
        examples=("day + INTERVAL '1 month'",),
    ),
    FunctionRecord(
        function=Function("days", _days_shape, "`a + 7` for a date"),
        nodes=(),
        strict=False,
        examples=("day + 7",),
    ),
    FunctionRecord(
        function=Function("to_timestamp", _to_timestamp_shape, "`TO_TIMESTAMP(seconds)`"),
        nodes=(FunctionNode("UnixToTime", ("this",), None, EVERY_DIALECT),),
        strict=False,
        examples=("TO_TIMESTAMP(n)",),
    ),
    FunctionRecord(
        function=Function("to_char", _to_char_shape, "`TO_CHAR(a, 'YYYY-MM')`", _written),
        nodes=(FunctionNode("TimeToStr", ("this", "format"), None, EVERY_DIALECT),),
        strict=False,
        examples=("TO_CHAR(moment, 'YYYY-MM')",),
    ),
    FunctionRecord(
        function=Function("days_between", _difference_shape, "`a - b` for dates"),
        nodes=(),
        strict=True,
        examples=("day - DATE '2025-01-01'",),
    ),
)
