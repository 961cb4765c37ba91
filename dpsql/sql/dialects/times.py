"""Differences of dates and times: truncation, addition, differences and parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from dpsql.sql.dialects.change import cast, number, part, refuse, text, word
from dpsql.sql.marks import KEEPS_DATE, mark_node

Part = Callable[[exp.Expr], exp.Expr]
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_MONTHS = {"year": 1, "quarter": 4, "month": 12}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _weeks_later(unit: str) -> int | None:
    """The days by which a week of this unit begins before Monday; None for units but weeks."""
    found = re.fullmatch(r"week\((\w+)\)", unit)
    if unit in ("week", "isoweek"):
        return 0
    return -WEEKDAYS.index(found[1]) % 7 if found and found[1] in WEEKDAYS else None


def truncate_time(weeks: str, *, keeps: bool = True) -> Callable[[exp.Expr], exp.Expr]:
    """``DATE_TRUNC`` in either order of arguments; ``weeks`` is the meaning of plain WEEK.

    ``keeps`` says that the result of a date is a date.
    """

    def of(node: exp.Expr) -> exp.Expr:
        cut = _cut(node.this, _unit(node.args.get("unit"), weeks))
        return mark_node(cut, KEEPS_DATE) if keeps else cut

    return of


def _unit(node: object, weeks: str) -> str:
    unit = word(node)
    return weeks if unit == "week" else unit


def _cut(value: exp.Expr, unit: str) -> exp.Expr:
    early = _weeks_later(unit)
    name = unit if early is None else "week"
    if early:
        value = mark_node(exp.Add(this=value, expression=_span(early, "day")), KEEPS_DATE)
    cut: exp.Expr = exp.TimestampTrunc(this=value, unit=exp.Var(this=name.upper()))
    if early:
        cut = exp.Sub(this=mark_node(cut, KEEPS_DATE), expression=_span(early, "day"))
    return cut


def _span(count: int, unit: str) -> exp.Expr:
    return exp.Interval(this=text(str(count)), unit=exp.Var(this=unit.upper()))


def add_step(sign: type[exp.Expr], *, date: bool | None) -> Callable[[exp.Expr], exp.Expr]:
    """``DATE_ADD`` and similar functions.

    ``date`` says whether the result is a date; None: it is one if the argument is.
    """

    def of(node: exp.Expr) -> exp.Expr:
        step, unit = node.expression, node.args.get("unit")
        if not isinstance(step, exp.Interval):
            step = exp.Interval(this=step, unit=exp.Var(this=word(unit).upper()))
        if date and word(step.args.get("unit")) in _SECONDS:
            raise refuse(
                node,
                "a date can only be moved by whole days",
                "Systems differ: some cut smaller units off, others fail.",
                "TIMESTAMP_ADD(started, INTERVAL 3 HOUR)",
            )
        whole = sign(this=node.this, expression=step)
        if date is None:
            return mark_node(whole, KEEPS_DATE)
        return cast(whole, exp.DType.DATE) if date else whole

    return of


def bucket_time(node: exp.Expr) -> exp.Expr:
    """``time_bucket``: steps since a Monday unless an origin is given; a date stays a date."""
    if node.args.get("unit") is not None:
        return node
    node.set("unit", cast(text("2000-01-03"), exp.DType.TIMESTAMP))
    return mark_node(node, KEEPS_DATE)


def boundaries(weeks: str) -> Callable[[exp.Expr], exp.Expr]:
    """The number of boundaries of a unit between two times: the first minus the second."""

    def of(node: exp.Expr) -> exp.Expr:
        unit = _unit(node.args.get("unit"), weeks) or "day"
        late, early = node.this, node.expression
        days = _weeks_later(unit)
        if unit in _MONTHS:
            return exp.Paren(
                this=exp.Sub(this=_periods(late, unit), expression=_periods(early, unit))
            )
        if unit == "day":
            return _days(late, early)
        if days is not None:
            first, last = (cast(_cut(v, unit), exp.DType.DATE) for v in (late, early))
            return exp.Div(
                this=exp.Paren(this=exp.Sub(this=first, expression=last)),
                expression=number(7),
                typed=True,
            )
        if unit in _SECONDS:
            return _seconds(_cut(late, unit), _cut(early, unit), _SECONDS[unit])
        raise _no_unit(node)

    return of


def count_elapsed_units(node: exp.Expr) -> exp.Expr:
    """The number of whole units that passed from the second time to the first."""
    unit = word(node.args.get("unit"))
    seconds = {**_SECONDS, "day": 86_400}.get(unit)
    if seconds is None:
        raise _no_unit(node)
    return _seconds(node.this, node.expression, seconds)


def _no_unit(node: exp.Expr) -> Exception:
    return refuse(
        node,
        f"differences in {word(node.args.get('unit')).upper() or 'this unit'} are not answered here",
        "Times have no whole number of this unit, and engines round it differently.",
        "Use DAY, HOUR, MINUTE or SECOND.",
    )


def _periods(value: exp.Expr, unit: str) -> exp.Expr:
    """Years, quarters or months since year 0."""
    years = part(value.copy(), "year")
    if unit == "year":
        return years
    in_year = exp.Mul(this=years, expression=number(_MONTHS[unit]))
    return exp.Paren(this=exp.Add(this=in_year, expression=part(value, unit)))


def _days(late: exp.Expr, early: exp.Expr) -> exp.Expr:
    first, last = (cast(v, exp.DType.DATE) for v in (late, early))
    return exp.Paren(this=exp.Sub(this=first, expression=last))


def _seconds(late: exp.Expr, early: exp.Expr, size: int) -> exp.Expr:
    """The number of whole units of ``size`` seconds between two times.

    The seconds are first rounded to microseconds, so that errors of doubles do not matter.
    """
    apart = exp.Sub(this=part(late, "epoch"), expression=part(early, "epoch"))
    exact = exp.Round(this=apart, decimals=number(6))
    quotient = exp.Div(this=exact, expression=number(size), typed=True)
    return cast(exp.Trunc(this=quotient), exp.DType.BIGINT)


def extract_part(parts: Mapping[str, Part]) -> Callable[[exp.Expr], exp.Expr]:
    """``EXTRACT`` and ``DATE_PART``: ``parts`` translates each part to PostgreSQL."""

    def of(node: exp.Expr) -> exp.Expr:
        name = word(node.this)
        if name not in parts:
            raise refuse(
                node,
                f"EXTRACT of {name.upper() or 'this'} is not answered",
                "A part is answered only if its range is known before data is read.",
                f"Known: {', '.join(p.upper() for p in sorted(parts))}.",
            )
        return parts[name](node.expression)

    return of


def take_part(of_part: Part) -> Callable[[exp.Expr], exp.Expr]:
    """``YEAR(d)`` and similar functions."""
    return lambda node: of_part(node.this)


def plain(name: str) -> Part:
    """A part with PostgreSQL's meaning, under its name there."""
    return lambda value: part(value, name)


def from_sunday_one(value: exp.Expr) -> exp.Expr:
    """The day of the week, where 1 is Sunday."""
    return exp.Paren(this=exp.Add(this=part(value, "dow"), expression=number(1)))


def whole_second(value: exp.Expr) -> exp.Expr:
    """The seconds of the minute, without their fraction."""
    return cast(exp.Floor(this=part(value, "second")), exp.DType.BIGINT)


def whole_epoch(value: exp.Expr) -> exp.Expr:
    """The seconds since 1970, without their fraction."""
    return cast(exp.Floor(this=part(value, "epoch")), exp.DType.BIGINT)


def week_of_sundays(value: exp.Expr) -> exp.Expr:
    """The week of the year, where weeks begin on Sunday; days before the first one are week 0."""
    since = exp.Sub(
        this=exp.Add(this=part(value.copy(), "doy"), expression=number(6)),
        expression=part(value, "dow"),
    )
    return exp.Div(this=exp.Paren(this=since), expression=number(7), typed=True)


def as_date(value: exp.Expr) -> exp.Expr:
    """The date of a time."""
    return cast(value, exp.DType.DATE)


def date_of(node: exp.Expr) -> exp.Expr:
    """``DATE(x)``, ``TO_DATE(x)``, ``TO_DATE('2025-01-31', 'YYYY-MM-DD')``."""
    pattern = node.args.get("format")
    if pattern is not None:
        return exp.StrToDate(this=node.this, format=pattern)
    if node.args.get("zone") is not None or node.expressions:
        raise refuse(
            node, "DATE takes one value", "An argument for a time zone is not answered.", "DATE(x)"
        )
    return cast(node.this, exp.DType.DATE)


def timestamp_of(node: exp.Expr) -> exp.Expr:
    """``TIMESTAMP(x)``, ``DATETIME(x)``."""
    if node.args.get("zone") is not None or node.args.get("expression") is not None:
        raise refuse(
            node,
            "TIMESTAMP takes one value",
            "An argument for a time zone is not answered.",
            "TIMESTAMP(x)",
        )
    return cast(node.this, exp.DType.TIMESTAMP)


def instant_in_zone(node: exp.Expr) -> exp.Expr:
    """``d AT TIME ZONE 'Europe/Vienna'`` of a TIMESTAMP, which is an instant there."""
    return exp.AtTimeZone(this=cast(node.this, exp.DType.TIMESTAMPTZ), zone=node.args["zone"])


def date_from_parts(node: exp.Expr) -> exp.Expr:
    """``DATE(2025, 1, 31)``, for literals only."""
    values = [node.args.get(name) for name in ("year", "month", "day")]
    if not all(isinstance(v, exp.Literal) and v.name.isdigit() for v in values):
        raise refuse(
            node,
            "a date can only be made from literals",
            "Whether numbers are a date must not depend on a row.",
            "DATE '2025-01-31'",
        )
    year, month, day = (int(v.name) for v in values if v is not None)
    return cast(text(f"{year:04}-{month:02}-{day:02}"), exp.DType.DATE)


def last_day(node: exp.Expr) -> exp.Expr:
    """``LAST_DAY(d)``: the last day of the month."""
    if word(node.args.get("unit")) not in ("", "month"):
        raise refuse(
            node,
            "LAST_DAY gives the last day of a month only",
            "Other units are not in the SQL that dpsql answers.",
            "LAST_DAY(placed)",
        )
    month = exp.TimestampTrunc(this=node.this, unit=exp.Var(this="MONTH"))
    later = exp.Add(this=month, expression=_span(1, "month"))
    return cast(exp.Sub(this=later, expression=_span(1, "day")), exp.DType.DATE)


_TEMPLATE = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S"}
_TEMPLATES = re.compile("|".join([*_TEMPLATE, "%"]))


def format_time(node: exp.Expr) -> exp.Expr:
    """``TO_CHAR(d, 'YYYY-MM')``; without a format it is a cast."""
    pattern = node.args.get("format")
    if pattern is None:
        return cast(node.this, exp.DType.TEXT)
    words = _TEMPLATES.sub(lambda found: _TEMPLATE.get(found[0], "%%"), str(pattern.name))
    return exp.TimeToStr(this=node.this, format=text(words))


def read_in_full(node: exp.Expr) -> exp.Expr:
    """``PARSE_DATE`` with a year in its format. Without one, dialects use different years."""
    pattern = node.args.get("format")
    if pattern is None or "%Y" not in str(pattern.name):
        raise refuse(
            node,
            "a date must be read with its year",
            "Without a year, systems assume different ones.",
            "'%Y-%m-%d'",
        )
    return type(node)(this=node.this, format=pattern)
