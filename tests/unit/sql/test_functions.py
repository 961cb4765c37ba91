# ruff: noqa: DTZ001 (timestamps are naive here)
"""Functions: what they take, what they say when they do not, and exact results of domains."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import duckdb
import pytest

from dpsql.catalog.functions import FUNCTIONS, Mismatch
from dpsql.catalog.functions.conditional import as_kind, join_domains, optional_as
from dpsql.catalog.functions.time import truncate
from dpsql.engines.duckdb.expressions import expression
from dpsql.engines.duckdb.types import write_coerced, write_typed
from dpsql.ir.domain import ANYTHING, Domain, hull, interval, members
from dpsql.ir.expressions import NULL, Call, Column, Expression, Interval, Shape
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind.literals import literal

NUMBER = Column(1, "n", Shape(Kind.INTEGER))
RATIO = Column(2, "r", Shape(Kind.DOUBLE))
WORD = Column(3, "w", Shape(Kind.TEXT))
DAY = Column(4, "d", Shape(Kind.DATE))
FLAG = Column(5, "f", Shape(Kind.BOOLEAN))
MONTH = Interval(1, "month")


def shape(name: str, *args: Expression, option: str = "") -> Shape:
    return FUNCTIONS[name].shape(args, option)


def column(
    kind: Kind, low: Scalar | None, high: Scalar | None, *, nullable: bool = False
) -> Column:
    domain = interval(low, high, integral=kind is Kind.INTEGER)
    return Column(9, "x", Shape(kind, nullable, domain))


def ends(name: str, *args: Expression, option: str = "") -> tuple[Scalar | None, Scalar | None]:
    domain = shape(name, *args, option=option).domain
    return domain.low, domain.high


@pytest.mark.parametrize(
    ("name", "args", "option", "said"),
    [
        ("add", (NUMBER,), "", "+ does not take 1 arguments"),
        ("add", (NUMBER, WORD), "", "+ takes bigint or double, not text"),
        ("divide", (NUMBER, FLAG), "", "/ takes bigint or double, not boolean"),
        ("round", (NUMBER, literal(1), literal(1)), "", "round does not take 3 arguments"),
        ("round", (RATIO, NUMBER), "", "the number of digits of round must be a literal"),
        ("round", (RATIO, literal(16)), "", "round takes a literal number of digits from -15 to 15"),
        ("round", (RATIO, literal(True)), "", "round takes a literal number of digits from -15 to 15"),
        ("power", (RATIO, NUMBER), "", "the exponent of power must be a literal"),
        ("eq", (NUMBER, WORD), "", "= cannot mix bigint and text"),
        ("eq", (MONTH, MONTH), "", "= does not take an interval"),
        ("coalesce", (MONTH, NULL), "", "COALESCE does not take an interval"),
        ("in", (NUMBER, WORD), "", "IN cannot mix bigint and text"),
        ("and", (FLAG, NUMBER), "", "and takes boolean, not bigint"),
        ("not", (NUMBER,), "", "NOT takes boolean, not bigint"),
        ("is_true", (NUMBER,), "", "IS TRUE takes boolean, not bigint"),
        ("like", (WORD, WORD), "", "the pattern of LIKE must be a literal"),
        ("like", (WORD, NULL), "", None),
        ("like", (WORD, literal(5)), "", "LIKE takes a literal pattern"),
        ("like", (WORD, literal("a")), "ab", "ESCAPE takes one character that is not a letter"),
        ("ilike", (WORD, literal("a")), "a", "ESCAPE takes one character that is not a letter"),
        ("like", (WORD, literal("a\\")), "\\", "the literal pattern ends in its escape character"),
        ("like", (WORD, literal("a!!!")), "!", "the literal pattern ends in its escape character"),
        ("width_bucket", (NUMBER, literal(1), literal(1), literal(5)), "", "width_bucket takes two different literal bounds and 1 to 100000 buckets"),
        ("width_bucket", (NUMBER, literal(0), literal(1), literal(0)), "", "width_bucket takes two different literal bounds and 1 to 100000 buckets"),
        ("width_bucket", (NUMBER, literal(0), literal(1), literal(True)), "", "width_bucket takes bigint or double, not boolean"),
        ("width_bucket", (NUMBER, literal(0), NULL, literal(5)), "", "width_bucket takes two different literal bounds and 1 to 100000 buckets"),
        ("width_bucket", (NUMBER, NULL, literal(0), literal(5)), "", "width_bucket takes two different literal bounds and 1 to 100000 buckets"),
        ("width_bucket", (NUMBER, literal(0), literal(1), literal(Fraction(5, 2))), "", "width_bucket takes two different literal bounds and 1 to 100000 buckets"),
        ("width_bucket", (NUMBER, literal(0), literal(Fraction(10) ** 300), literal(5)), "", "width_bucket takes two different literal bounds and 1 to 100000 buckets"),
        ("nullif", (NUMBER, NUMBER, NUMBER), "", "NULLIF does not take 3 arguments"),
        ("least", (NUMBER, WORD), "", "LEAST cannot mix bigint and text"),
        ("cast", (NUMBER,), "date", "CAST from bigint to date is not answered"),
        ("lower", (NUMBER,), "", "lower takes text, not bigint"),
        ("substring", (WORD, NUMBER), "", "start and length of substring must be a literal"),
        ("substring", (WORD, literal(-1)), "", "substring takes a literal start and length from 0 to 1000"),
        ("substring", (WORD, literal(1), literal(1001)), "", "substring takes a literal start and length from 0 to 1000"),
        ("left", (WORD, literal(-1)), "", "left takes a literal length from 0 to 1000"),
        ("right", (WORD, literal(True)), "", "right takes a literal length from 0 to 1000"),
        ("concat", (), "", "|| does not take 0 arguments"),
        ("concat", (WORD, MONTH), "", "|| takes text or bigint or double or date or timestamp or boolean, not interval"),
        ("replace", (WORD, literal("a"), literal("bb")), "", "replace takes literals, the new one not longer than the old one"),
        ("replace", (WORD, literal("a"), NULL), "", "replace takes literals, the new one not longer than the old one"),
        ("starts_with", (WORD, WORD), "", "the prefix of starts_with must be a literal"),
        ("date_trunc", (DAY,), "decade", "date_trunc takes one of second, minute, hour, day, week, month, quarter, year"),
        ("extract", (DAY,), "century", "extract takes one of second, minute, hour, day, dow, isodow, doy, week, month, quarter, year, isoyear, epoch"),
        ("extract", (NUMBER,), "year", "extract takes date or timestamp, not bigint"),
        ("shift", (DAY, NUMBER), "+", "dates move by a literal interval"),
        ("days", (DAY, RATIO), "+", "adding days takes bigint, not double"),
        ("days_between", (DAY, NUMBER), "", "the difference of dates takes date, not bigint"),
    ],
)  # fmt: skip
def test_what_is_not_taken(
    name: str, args: tuple[Expression, ...], option: str, said: str | None
) -> None:
    with pytest.raises(Mismatch) as caught:
        FUNCTIONS[name].shape(args, option)
    assert said is None or str(caught.value) == said


def test_whole_arithmetic() -> None:
    small = column(Kind.INTEGER, -3, 7)
    assert ends("add", small, literal(5)) == (2, 12)
    assert ends("subtract", literal(5), small) == (-2, 8)
    assert ends("multiply", small, small) == (-21, 49)
    assert ends("multiply", small, NUMBER) == (None, None)
    assert ends("divide", small, literal(-2)) == (-3, 1)
    assert ends("divide", small, literal(0)) == (-7, 7)
    assert ends("divide", small, small) == (-7, 7)
    assert ends("divide", NUMBER, small) == (None, None)
    assert ends("modulo", small, literal(4)) == (-3, 3)
    assert ends("modulo", column(Kind.INTEGER, 0, 2), literal(4)) == (0, 2)
    assert ends("modulo", column(Kind.INTEGER, -9, 0), literal(4)) == (-3, 0)
    assert ends("modulo", small, NUMBER) == (-7, 7)
    assert ends("modulo", NUMBER, NUMBER) == (None, None)
    assert ends("abs", small) == (0, 7)
    assert ends("abs", column(Kind.INTEGER, -7, -2)) == (2, 7)
    assert ends("abs", NUMBER) == (0, None)
    assert ends("round", column(Kind.INTEGER, -27, 27), literal(-1)) == (-30, 30)
    assert ends("round", small, literal(2)) == (-3, 7)


def test_whole_arithmetic_may_leave_64_bits() -> None:
    sure = column(Kind.INTEGER, -5, 5)
    huge = column(Kind.INTEGER, -(2**63), 2**63 - 1)
    assert not shape("add", sure, sure).nullable
    assert shape("add", huge, sure).nullable
    assert not shape("negate", sure).nullable
    assert shape("negate", huge).nullable
    assert shape("abs", column(Kind.INTEGER, None, 5)).nullable
    assert shape("divide", huge, column(Kind.INTEGER, -5, -1)).nullable
    assert not shape("divide", huge, literal(2)).nullable
    assert shape("round", huge, literal(-1)).nullable


def test_double_arithmetic() -> None:
    tenth = column(Kind.DOUBLE, Fraction(0), Fraction(1, 10))
    fifth = column(Kind.DOUBLE, Fraction(0), Fraction(1, 5))
    assert ends("add", tenth, fifth)[1] == Fraction(0.1 + 0.2)
    assert ends("divide", fifth, literal(Fraction(-1, 2))) == (Fraction(-0.4), Fraction(0))
    assert ends("divide", fifth, tenth) == (None, None)
    assert shape("divide", fifth, tenth).nullable
    huge = column(Kind.DOUBLE, Fraction(0), Fraction(10) ** 300)
    assert ends("multiply", huge, huge) == (0, None)
    assert ends("sqrt", column(Kind.DOUBLE, 4, 25)) == (2, 5)
    assert ends("sqrt", column(Kind.DOUBLE, -9, -4)) == (0, 0)
    assert ends("exp", column(Kind.DOUBLE, -2000, 2000)) == (0, None)
    assert ends("exp", column(Kind.DOUBLE, 701, None)) == (0, None)
    assert ends("ln", column(Kind.DOUBLE, -1, 0)) == (None, None)
    assert ends("power", column(Kind.DOUBLE, -2, 3), literal(2)) == (0, 9)
    assert ends("power", column(Kind.DOUBLE, -2, 3), literal(3)) == (-8, 27)
    assert ends("power", column(Kind.DOUBLE, -2, 3), literal(0)) == (1, 1)
    assert ends("power", column(Kind.DOUBLE, -2, 3), literal(-1)) == (None, None)
    assert ends("power", column(Kind.DOUBLE, 2, 3), literal(Fraction(1, 2))) == (None, None)
    low, high = ends("power", column(Kind.DOUBLE, Fraction(1, 10), Fraction(1, 5)), literal(2))
    assert isinstance(low, Fraction)
    assert isinstance(high, Fraction)
    assert low < Fraction(1, 100) < Fraction(1, 25) < high
    assert ends("power", huge, literal(16)) == (0, None)


def test_what_may_be_nan_is_open_above() -> None:
    above = column(Kind.DOUBLE, Fraction(0), None)
    assert ends("negate", above) == (None, None)
    assert ends("subtract", literal(Fraction(5)), above) == (None, None)
    assert ends("modulo", above, literal(Fraction(3)))[1] is None
    assert ends("greatest", shaped("negate", above), literal(Fraction(-5))) == (-5, None)


def shaped(name: str, *args: Expression) -> Call:
    return Call(name, args, shape(name, *args))


def test_least_and_greatest_pass_over_nulls() -> None:
    some = column(Kind.INTEGER, 1, 100, nullable=True)
    few = column(Kind.INTEGER, 5, 9)
    assert ends("least", some, few) == (1, 9)
    assert ends("greatest", some, few) == (5, 100)
    assert ends("greatest", few, few) == (5, 9)
    assert ends("least", some, some) == (1, 100)
    assert ends("least", few, NUMBER) == (None, 9)
    assert ends("greatest", NUMBER, few) == (5, None)
    assert shape("least", some, some).nullable
    assert not shape("least", some, few).nullable
    assert not shape("least", few, NULL).nullable
    assert shape("greatest", WORD, WORD).domain == ANYTHING
    assert ends("least", few, column(Kind.DOUBLE, Fraction(1, 2), Fraction(20))) == (
        Fraction(1, 2),
        9,
    )


def test_coalesce_stops_at_what_is_never_null() -> None:
    some = column(Kind.INTEGER, 1, 100, nullable=True)
    assert ends("coalesce", some, literal(0), literal(500)) == (0, 100)
    assert not shape("coalesce", some, literal(0)).nullable
    assert shape("coalesce", NULL, NULL).kind is Kind.NULL


def test_casts() -> None:
    bounded = column(Kind.DOUBLE, Fraction(-5, 2), Fraction(37, 10))
    assert ends("cast", bounded, option="bigint") == (-3, 4)
    assert not shape("cast", bounded, option="bigint").nullable
    assert shape("cast", RATIO, option="bigint").nullable
    far = column(Kind.DOUBLE, Fraction(0), Fraction(10) ** 30)
    assert shape("cast", far, option="bigint").nullable
    assert ends("cast", column(Kind.BOOLEAN, None, None), option="bigint") == (0, 1)
    days = column(Kind.DATE, date(2024, 1, 1), date(2024, 2, 1))
    assert ends("cast", days, option="timestamp") == (datetime(2024, 1, 1), datetime(2024, 2, 1))
    assert not shape("cast", days, option="timestamp").nullable
    assert shape("cast", column(Kind.DATE, None, None), option="timestamp").nullable
    times = column(Kind.TIMESTAMP, datetime(2024, 1, 1, 12), datetime(2024, 1, 2, 1))
    assert ends("cast", times, option="date") == (date(2024, 1, 1), date(2024, 1, 2))
    assert ends("cast", column(Kind.TIMESTAMP, None, None), option="date") == (None, None)
    assert ends("cast", column(Kind.INTEGER, 2**53 + 1, 2**60), option="double") == (2**53, 2**60)
    assert shape("cast", NULL, option="text") == Shape(Kind.TEXT)
    assert shape("cast", bounded, option="double").domain == bounded.shape.domain
    assert shape("cast", WORD, option="double").domain == ANYTHING


def test_dates() -> None:
    days = column(Kind.DATE, date(2024, 1, 31), date(2024, 12, 30))
    whole = column(Kind.INTEGER, -1, 3)
    assert ends("days", days, whole, option="+") == (date(2024, 1, 30), date(2025, 1, 2))
    assert ends("days", days, whole, option="-") == (date(2024, 1, 28), date(2024, 12, 31))
    assert shape("days", days, NUMBER, option="+").nullable
    assert shape("days", DAY, whole, option="+").domain == ANYTHING
    assert shape("days", days, literal(9_999_999), option="+").domain == ANYTHING
    assert ends("days_between", days, days) == (-334, 334)
    assert ends("days_between", days, DAY) == (None, None)
    assert ends("extract", days, option="isoyear") == (2023, 2025)
    assert ends("extract", DAY, option="year") == (None, None)
    assert ends("extract", days, option="epoch") == (1706659200, 1735516801)
    assert ends("date_trunc", days, option="week") == (
        datetime(2024, 1, 29),
        datetime(2024, 12, 30),
    )
    assert shape("date_trunc", DAY, option="week") == Shape(Kind.TIMESTAMP)
    assert ends("shift", days, MONTH, option="+") == (datetime(2024, 2, 29), datetime(2025, 1, 30))
    assert ends("shift", days, Interval(2, "week"), option="-") == (
        datetime(2024, 1, 17),
        datetime(2024, 12, 16),
    )
    assert ends("shift", days, Interval(90, "minute"), option="+")[0] == datetime(
        2024, 1, 31, 1, 30
    )
    assert shape("shift", DAY, MONTH, option="+") == Shape(Kind.TIMESTAMP)
    for far in (Interval(999_999, "year"), Interval(999_999, "week")):
        assert shape("shift", days, far, option="+") == Shape(Kind.TIMESTAMP)


@pytest.mark.parametrize(
    "unit", ["second", "minute", "hour", "day", "week", "month", "quarter", "year"]
)
def test_truncation_is_the_engines(unit: str) -> None:
    at = datetime(2024, 8, 21, 13, 14, 15, 161718)
    with duckdb.connect() as engine:
        [(wanted,)] = engine.execute(f"SELECT date_trunc('{unit}', ?::TIMESTAMP)", [at]).fetchall()
    assert truncate(at, unit) == wanted


def test_lengths() -> None:
    words = Column(1, "w", Shape(Kind.TEXT, False, members(["", "日本", "web"])))
    assert ends("length", words) == (0, 3)
    assert ends("length", WORD) == (0, None)
    assert ends("length", Column(1, "w", Shape(Kind.TEXT, False, Domain(members=())))) == (0, 0)


def test_no_end_is_beyond_64_bits() -> None:
    """Results that leave them are NULL; their ends would double their digits with each product."""
    huge = column(Kind.INTEGER, -(2**63), 2**63 - 1)
    assert ends("multiply", huge, huge) == (-(2**63), 2**63 - 1)
    assert shape("multiply", huge, huge).nullable
    above = column(Kind.INTEGER, 2**62, 2**63 - 1)
    assert ends("add", above, above) == (2**63 - 1, 2**63 - 1)


def test_texts_are_joined_as_they_are() -> None:
    """How long they may get is decided before: nothing is cut in silence."""
    joint = shaped("concat", literal("a"), literal("-"), NUMBER)
    assert expression(joint, {2: "w", 1: "w"}) == "('a' || '-' || TRY_CAST(w AS VARCHAR))"
    assert expression(shaped("concat", WORD, literal("-")), {3: "w"}) == "(w || '-')"


def test_lengths_follow_from_what_is_declared() -> None:
    short = Column(1, "w", Shape(Kind.TEXT, False, Domain(longest=9)))
    assert ends("length", short) == (0, 9)
    assert ends("strpos", short, literal("x")) == (0, 9)
    assert ends("length", shaped("left", short, literal(4))) == (0, 4)
    assert ends("length", shaped("substring", WORD, literal(2), literal(3))) == (0, 3)
    assert ends("length", shaped("trim", short)) == (0, 9)
    assert ends("length", shaped("substring", short, literal(2))) == (0, 9)
    assert hull(Domain(longest=3), members(["four"])).longest == 4
    assert hull(Domain(longest=3), Domain()).longest is None


def test_escapes_are_written() -> None:
    quote = Call(
        "like", (WORD, literal("a'%")), shape("like", WORD, literal("a'%"), option="'"), "'"
    )
    assert expression(quote, {3: "w"}) == "(w LIKE 'a''%' ESCAPE '''')"


def test_signs_do_not_make_comments() -> None:
    twice = shaped("negate", literal(Fraction(-2)))
    assert expression(twice, {}) == "TRY(- -2.0e0)"
    assert "--" not in expression(shaped("subtract", RATIO, literal(Fraction(-2))), {2: "r"})


def test_a_date_beside_a_timestamp_is_cast_with_care() -> None:
    moment = literal(datetime(2024, 1, 1))
    assert shape("eq", column(Kind.DATE, None, None), moment).nullable
    assert not shape("eq", column(Kind.DATE, date(2024, 1, 1), date(2024, 2, 1)), moment).nullable
    assert "TRY_CAST(d AS TIMESTAMP)" in expression(shaped("lt", DAY, moment), {4: "d"})


def test_kinds_of_parts() -> None:
    both = [column(Kind.INTEGER, 0, 5), literal(Fraction(5, 2))]
    assert join_domains(both, Kind.DOUBLE) == interval(0, 5)
    assert join_domains([NULL], Kind.NULL) == ANYTHING
    assert as_kind(members([1, 2]), Kind.DOUBLE) == interval(1, 2, integral=True)
    assert as_kind(members([1, 2]), Kind.INTEGER) == members([1, 2])
    dates = members([date(2024, 1, 1), date(2024, 1, 2)])
    assert as_kind(dates, Kind.TIMESTAMP) == interval(datetime(2024, 1, 1), datetime(2024, 1, 2))
    assert write_coerced("x", NUMBER, Kind.DOUBLE) == "TRY_CAST(x AS DOUBLE)"
    assert write_coerced("NULL", NULL, Kind.DOUBLE) == "CAST(NULL AS DOUBLE)"
    assert write_coerced("NULL", NULL, Kind.NULL) == "NULL"
    assert write_typed("5", literal(5), Kind.INTEGER) == "CAST(5 AS BIGINT)"
    assert optional_as(DAY, Kind.DATE)


def test_every_function_says_what_it_is() -> None:
    assert all(f.about.startswith("`") and f.name == name for name, f in FUNCTIONS.items())
