"""The dialects, each as a table of its differences; the other modules have the translations.

A construct that neither ``same.SAME`` nor a dialect's table lists is refused in that dialect.
A construct that a dialect does not have at all has no other meaning there, so PostgreSQL's meaning
is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from dpsql.sql.dialects import scalars as s
from dpsql.sql.dialects import times as t
from dpsql.sql.dialects.change import Change, Changes, Dialect, keep_node, refuse, without
from dpsql.sql.marks import KEEPS_DATE, NO_DAYS, NO_DOUBLES, NO_TIMES, ROUNDS_AWAY, mark_node

_TYPES = exp.DType


def _typed(
    types: Mapping[exp.DType, exp.DType | str], *marks: str, sizes: bool = False
) -> Callable[[exp.Expr], exp.Expr]:
    """A change of CAST. ``types`` maps a type to PostgreSQL's, or to the reason of a refusal."""

    def of(node: exp.Expr) -> exp.Expr:
        kind = node.args["to"]
        other = types.get(kind.this, kind.this)
        if isinstance(other, str):
            raise refuse(node, f"this cast is not answered: {other}", _CASTS, "See Dialects.")
        is_text = other in (_TYPES.TEXT, _TYPES.VARCHAR)
        if is_text and kind.expressions and not sizes:
            said = "in this dialect it fails on a text that is too long"
            raise refuse(node, f"this cast is not answered: {said}", _CASTS, "LEFT(x, 3)")
        to = s.decimal(exp.DataType(this=other, expressions=kind.expressions))
        return mark_node(type(node)(this=node.this, to=to), *marks)

    return of


_ONE_INTEGER: dict[exp.DType, exp.DType | str] = {
    exp.DType.SMALLINT: exp.DType.BIGINT, exp.DType.INT: exp.DType.BIGINT,
}  # fmt: skip
"""For dialects in which all integer types are one type, of at least 64 bits."""
_CASTS = "A cast must mean the same on every row and must not fail on any."


def _column_names(*names: str) -> Callable[[exp.Expr], exp.Expr]:
    """A change of VALUES that names unnamed columns by a prefix and a number, from ``names``."""
    prefix, first = names[0], int(names[1])

    def of(node: exp.Expr) -> exp.Expr:
        alias = node.args.get("alias")
        if alias is not None and not alias.args.get("columns"):
            width = len(node.expressions[0].expressions)
            found = [exp.to_identifier(f"{prefix}{i + first}", quoted=True) for i in range(width)]
            alias.set("columns", found)
        return node

    return of


def _minus(node: exp.Expr) -> exp.Expr:
    """``-`` in BigQuery, where the difference of two dates is an interval."""
    return mark_node(node, NO_DAYS)


def _keeps(node: exp.Expr) -> exp.Expr:
    """``+`` and ``-`` that keep a date a date if whole days are added."""
    return mark_node(node, KEEPS_DATE)


_PARTS: dict[str, t.Part] = {
    name: t.plain(name) for name in ("year", "quarter", "month", "day", "hour", "minute", "isoyear")
}
_DAYS_OF_YEAR: dict[str, t.Part] = {"dayofyear": t.plain("doy"), "doy": t.plain("doy")}

_SHARED: Changes = {
    exp.SafeDivide: Change("`SAFE_DIVIDE(a, b)`: exact, NULL where b is 0", s.exact),
    exp.CountIf: Change("`COUNTIF`, `COUNT_IF`", without("zero_on_all_null")),
    exp.Length: Change("`LENGTH`, `LEN`: of characters", without("binary")),
    exp.StrPosition: Change("`STRPOS`, `INSTR`, `POSITION`", without("clamp_position")),
    exp.Nvl2: Change("`NVL2(a, b, c)`", s.nvl2),
    exp.Contains: Change("`CONTAINS(a, 'x')`", s.contains),
    exp.RawString: Change("raw strings: `r'a\\b'`, `$$a$$`", s.raw),
    exp.Log: Change("`LOG10(a)`, `LOG(10, a)`", s.logarithm),
    exp.DateFromParts: Change("a date of three literals", t.date_from_parts),
    exp.LastDay: Change("`LAST_DAY(d)`", t.last_day),
    exp.DateDiff: Change(
        "`DATE_DIFF`, `DATEDIFF`: boundaries between, in the dialect's order of arguments; "
        "a WEEK begins on the dialect's first day",
        t.boundaries("isoweek"),
    ),
    exp.Date: Change("`DATE(x)`", t.date_of),
    exp.Year: Change("`YEAR(d)`", t.take_part(t.plain("year"))),
    exp.Quarter: Change("`QUARTER(d)`", t.take_part(t.plain("quarter"))),
    exp.Month: Change("`MONTH(d)`", t.take_part(t.plain("month"))),
    exp.Day: Change("`DAY(d)`", t.take_part(t.plain("day"))),
    exp.Hour: Change("`HOUR(d)`", t.take_part(t.plain("hour"))),
    exp.Minute: Change("`MINUTE(d)`", t.take_part(t.plain("minute"))),
    exp.Second: Change("`SECOND(d)`: whole seconds", t.take_part(t.whole_second)),
    exp.DayOfWeek: Change("`DAYOFWEEK(d)`: 0 is Sunday", t.take_part(t.plain("dow"))),
    exp.DayOfWeekIso: Change(
        "`DAYOFWEEKISO`, `ISODOW`: 1 is Monday", t.take_part(t.plain("isodow"))
    ),
    exp.DayOfYear: Change("`DAYOFYEAR(d)`", t.take_part(t.plain("doy"))),
    exp.Week: Change("`WEEK(d)`: of ISO 8601", t.take_part(t.plain("week"))),
    exp.WeekOfYear: Change("`WEEKOFYEAR(d)`: of ISO 8601", t.take_part(t.plain("week"))),
}
"""Constructs that at least two dialects have, and PostgreSQL does not have."""

BIGQUERY = Dialect("bigquery", "BigQuery", "keep", escapes=True, changes={
    **_SHARED,
    exp.Div: Change("`/` is exact, also of whole numbers", s.exact),
    exp.IntDiv: Change("`DIV(a, b)`: toward zero, of whole numbers", s.whole),
    exp.Sub: Change("`date - date` is an interval there, and refused: DATE_DIFF(a, b, DAY)", _minus),
    exp.Greatest: Change("`GREATEST` is NULL when an argument is", s.strict_extreme),
    exp.Least: Change("`LEAST` is NULL when an argument is", s.strict_extreme),
    exp.Concat: Change("`CONCAT` is NULL when a part is", s.strict_concat),
    exp.DPipe: Change("`||`, but not of timestamps", s.untimed_pipe),
    exp.Contains: Change("`CONTAINS_SUBSTR(a, 'x')`: in small and capital letters, of one form of a character", s.contains),
    exp.Trim: Change("`TRIM` takes off all white space", s.trimmed_white),
    exp.Substring: Change("`SUBSTR(a, 0)` begins at the first character", s.counted_from_one),
    exp.Cast: Change("`CAST`: STRING(n) and BIGNUMERIC are refused, NUMERIC is a double",
        _typed({**_ONE_INTEGER, _TYPES.TIMESTAMPTZ: _TYPES.TIMESTAMP, _TYPES.BIGDECIMAL: "BIGNUMERIC has 38 digits"}, NO_TIMES, ROUNDS_AWAY)),
    exp.TryCast: Change("`SAFE_CAST`",
        _typed({**_ONE_INTEGER, _TYPES.TIMESTAMPTZ: _TYPES.TIMESTAMP, _TYPES.BIGDECIMAL: "BIGNUMERIC has 38 digits"}, NO_TIMES, ROUNDS_AWAY)),
    exp.DateTrunc: Change("`DATE_TRUNC(d, MONTH)`: a date stays one; WEEK begins on Sunday", t.truncate_time("week(sunday)")),
    exp.TimestampTrunc: Change("`TIMESTAMP_TRUNC(d, HOUR)`", t.truncate_time("week(sunday)")),
    exp.DatetimeTrunc: Change("`DATETIME_TRUNC(d, HOUR)`", t.truncate_time("week(sunday)")),
    exp.DateDiff: Change("`DATE_DIFF(a, b, MONTH)`: boundaries; WEEK begins on Sunday", t.boundaries("week(sunday)")),
    exp.DatetimeDiff: Change("`DATETIME_DIFF(a, b, MONTH)`: boundaries", t.boundaries("week(sunday)")),
    exp.TimestampDiff: Change("`TIMESTAMP_DIFF(a, b, HOUR)`: whole units that passed", t.count_elapsed_units),
    exp.DateAdd: Change("`DATE_ADD(d, INTERVAL 3 MONTH)`: a date", t.add_step(exp.Add, date=True)),
    exp.DateSub: Change("`DATE_SUB(d, INTERVAL 3 MONTH)`: a date", t.add_step(exp.Sub, date=True)),
    exp.TimestampAdd: Change("`TIMESTAMP_ADD(d, INTERVAL 3 HOUR)`", t.add_step(exp.Add, date=False)),
    exp.TimestampSub: Change("`TIMESTAMP_SUB(d, INTERVAL 3 HOUR)`", t.add_step(exp.Sub, date=False)),
    exp.DatetimeAdd: Change("`DATETIME_ADD(d, INTERVAL 3 HOUR)`", t.add_step(exp.Add, date=False)),
    exp.DatetimeSub: Change("`DATETIME_SUB(d, INTERVAL 3 HOUR)`", t.add_step(exp.Sub, date=False)),
    exp.Extract: Change("`EXTRACT`: DAYOFWEEK is 1 on Sunday, WEEK begins on Sunday, SECOND is whole, DATE",
        t.extract_part({**_PARTS, **_DAYS_OF_YEAR, "dayofweek": t.from_sunday_one, "week": t.week_of_sundays,
            "isoweek": t.plain("week"), "second": t.whole_second, "date": t.as_date})),
    exp.TsOrDsToDate: Change("`FORMAT_DATE('%Y-%m', d)`", t.date_of),
    exp.TsOrDsToTimestamp: Change("`FORMAT_TIMESTAMP('%Y-%m', d)`", t.timestamp_of),
    exp.Timestamp: Change("`TIMESTAMP(x)`: of UTC", t.timestamp_of),
    exp.Datetime: Change("`DATETIME(x)`", t.timestamp_of),
    exp.AtTimeZone: Change("`EXTRACT(HOUR FROM d AT TIME ZONE 'Europe/Vienna')`: a timestamp is an instant", t.instant_in_zone),
    exp.StrToDate: Change("`PARSE_DATE('%Y-%m-%d', '2025-01-31')`", t.read_in_full),
    exp.StrToTime: Change("`PARSE_TIMESTAMP('%Y-%m-%d', '2025-01-31')`", t.read_in_full),
    exp.UnixSeconds: Change("`UNIX_SECONDS(d)`", s.epoch_seconds),
    exp.WeekStart: Change("`WEEK(MONDAY)`", keep_node),
})  # fmt: skip

SNOWFLAKE = Dialect("snowflake", "Snowflake", "upper", escapes=True, changes={
    **_SHARED,
    exp.Div: Change("`/` is exact; of whole numbers rounded to six digits", s.six_digits),
    exp.Add: Change("`date + INTERVAL '1 day'` is a date", _keeps),
    exp.Sub: Change("`date - INTERVAL '1 day'` is a date", _keeps),
    exp.Greatest: Change("`GREATEST` is NULL when an argument is", s.strict_extreme),
    exp.Least: Change("`LEAST` is NULL when an argument is", s.strict_extreme),
    exp.Concat: Change("`CONCAT` is NULL when a part is", s.strict_concat),
    exp.DPipe: Change("`||`, but not of timestamps", s.untimed_pipe),
    exp.Like: Change("`LIKE` has no escape character unless one is named", s.without_like_escape),
    exp.ILike: Change("`ILIKE` has no escape character unless one is named", s.without_like_escape),
    exp.Substring: Change("`SUBSTR(a, 0)` begins at the first character", s.counted_from_one),
    exp.Cast: Change("`CAST`: VARCHAR(n) is refused, NUMBER is whole",
        _typed({**_ONE_INTEGER, _TYPES.TIMESTAMPNTZ: _TYPES.TIMESTAMP}, NO_TIMES, ROUNDS_AWAY)),
    exp.TryCast: Change("`TRY_CAST`", _typed({**_ONE_INTEGER, _TYPES.TIMESTAMPNTZ: _TYPES.TIMESTAMP}, NO_TIMES, ROUNDS_AWAY)),
    exp.Left: Change("`LEFT(a, 3)`", without("negative_length_returns_empty")),
    exp.Right: Change("`RIGHT(a, 3)`", without("negative_length_returns_empty")),
    exp.Round: Change("`ROUND(a)`, `ROUND(a, 2)`", without("casts_non_integer_decimals")),
    exp.Values: Change("`VALUES`: columns are COLUMN1, COLUMN2", _column_names("COLUMN", "1")),
    exp.DateTrunc: Change("`DATE_TRUNC('month', d)`: a date stays one", t.truncate_time("isoweek")),
    exp.TimestampTrunc: Change("`DATE_TRUNC(month, d)`: a date stays one", t.truncate_time("isoweek")),
    exp.DateAdd: Change("`DATEADD(month, 3, d)`: a date stays one", t.add_step(exp.Add, date=None)),
    exp.Extract: Change("`EXTRACT`, `DATE_PART`: DAYOFWEEK is 0 on Sunday, WEEK is ISO's, SECOND is whole",
        t.extract_part({**_PARTS, **_DAYS_OF_YEAR, "dayofweek": t.plain("dow"), "dow": t.plain("dow"),
            "dayofweekiso": t.plain("isodow"), "dayofweek_iso": t.plain("isodow"), "week": t.plain("week"),
            "weekiso": t.plain("week"), "week_iso": t.plain("week"), "yearofweekiso": t.plain("isoyear"),
            "second": t.whole_second, "epoch_second": t.whole_epoch})),
    exp.TsOrDsToDate: Change("`TO_DATE(x)`", t.date_of),
    exp.ToChar: Change("`TO_CHAR(d, 'YYYY-MM')`, `TO_VARCHAR`", t.format_time),
    exp.ToNumber: Change("`TO_NUMBER(x)`: whole, `TO_NUMBER(x, 10, 2)`", s.as_number),
    exp.ToDouble: Change("`TO_DOUBLE(x)`", s.as_double),
})  # fmt: skip

_IN_WHICH_CAST: dict[exp.DType, exp.DType | str] = {
    _TYPES.TIMESTAMPNTZ: _TYPES.TIMESTAMP,
    _TYPES.FLOAT: "FLOAT has 32 bits there; write DOUBLE",
    _TYPES.INT128: "whole numbers have 64 bits here; write BIGINT",
}

DUCKDB = Dialect("duckdb", "DuckDB", "keep", escapes=False, changes={
    **_SHARED,
    exp.Div: Change("`/` is exact, also of whole numbers", s.exact),
    exp.IntDiv: Change("`a // b`: toward zero, of whole numbers", s.whole),
    exp.Like: Change("`LIKE` has no escape character unless one is named", s.without_like_escape),
    exp.ILike: Change("`ILIKE` has no escape character unless one is named", s.without_like_escape),
    exp.DPipe: Change("`||`, but not of numbers with a fraction", s.undoubled_pipe),
    exp.Trim: Change("`trim` takes off all spaces of Unicode", s.trimmed_spaces),
    exp.Cast: Change("`CAST`: numbers with a fraction to text, FLOAT and HUGEINT are refused",
        _typed(_IN_WHICH_CAST, NO_DOUBLES, sizes=True)),
    exp.TryCast: Change("`TRY_CAST`", _typed(_IN_WHICH_CAST, NO_DOUBLES, sizes=True)),
    exp.DateDiff: Change("`date_diff('month', a, b)`: boundaries; not of weeks", t.boundaries("week there")),
    exp.Concat: Change("`CONCAT` passes over NULL; not of numbers with a fraction", s.undoubled_pipe),
    exp.Values: Change("`VALUES`: columns are col0, col1", _column_names("col", "0")),
    exp.TimestampTrunc: Change("`date_trunc('month', d)`", t.truncate_time("isoweek", keeps=False)),
    exp.DateTrunc: Change("`date_trunc('month', d)`", t.truncate_time("isoweek", keeps=False)),
    exp.DateAdd: Change("`date_add(d, INTERVAL 3 MONTH)`", t.add_step(exp.Add, date=False)),
    exp.Extract: Change("`extract`: dow is 0 on Sunday, second is whole",
        t.extract_part({**_PARTS, **_DAYS_OF_YEAR, "dow": t.plain("dow"), "dayofweek": t.plain("dow"),
            "weekday": t.plain("dow"), "isodow": t.plain("isodow"), "week": t.plain("week"),
            "weekofyear": t.plain("week"), "second": t.whole_second, "epoch": t.plain("epoch")})),
    exp.DateBin: Change("`time_bucket(INTERVAL '7 days', d)`: steps since Monday, 2000-01-03; a date stays one", t.bucket_time),
    exp.TimeToUnix: Change("`epoch(d)`", t.take_part(t.plain("epoch"))),
})  # fmt: skip

POSTGRES = Dialect("postgres", "PostgreSQL", "lower", escapes=False, changes={})
DIALECTS = {d.name: d for d in (POSTGRES, DUCKDB, BIGQUERY, SNOWFLAKE)}
"""The dialects of sessions. A statement has the meaning that it has in its dialect."""
