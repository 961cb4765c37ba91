"""Bins as the engine computes them, for values that a column may hold whatever is declared."""

# ruff: noqa: DTZ001 (naive by design)

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from fractions import Fraction

import duckdb
import pytest

from dpsql.bound.bins import bin_of
from dpsql.bound.buckets import MOST_BINS, Buckets, buckets
from dpsql.catalog.statistic import Mode, Quantile, Ranked
from dpsql.engines.duckdb.terms import Scope, term
from dpsql.ir.domain import Domain
from dpsql.ir.expressions import Column, Shape
from dpsql.plan.nodes import Cells
from dpsql.policy.types import Kind, Scalar


def ranked(
    kind: Kind, low: Scalar, high: Scalar, *, integral: bool = False, grain: str | None = None
) -> Quantile:
    domain = Domain(low, high, integral=integral, grain=grain)
    return Quantile(Column(1, "x", Shape(kind, domain=domain)), low, high, Fraction(1, 2))


def bins(quantile: Ranked, values: list[object], cells: Cells | None = None) -> list[int | None]:
    """The bin of each value, as the engine has it."""
    kind = quantile.value.shape.kind
    text = term(bin_of(quantile, cells), Scope({1: "x"}))
    found = []
    with duckdb.connect() as connection:
        for value in values:
            cast = f"SELECT {text} FROM (SELECT CAST(? AS {kind.value}) AS x) AS t"
            row = connection.execute(cast, [value]).fetchone()
            found.append(row[0] if row else None)
    return found


def test_each_whole_number_is_a_bin() -> None:
    ages = ranked(Kind.INTEGER, 18, 100)
    assert buckets(ages, None) == Buckets(Kind.INTEGER, Fraction(18), Fraction(1), 83, 100)
    values: list[object] = [18, 19, 100, 17, 101, -(2**63), 2**63 - 1, None]
    assert bins(ages, values) == [0, 1, 82, 0, 82, 0, 82, None]


def test_a_wide_range_of_whole_numbers_has_bins_of_equal_width() -> None:
    wide = ranked(Kind.INTEGER, 0, 10**6)
    at = buckets(wide, Cells("", 1))
    assert (at.width, at.count, at.last) == (16, 62501, 10**6)
    assert bins(wide, [0, 15, 16, 10**6, 10**6 + 1], Cells("", 1)) == [0, 0, 1, 62500, 62500]


def test_64_bits_of_range_do_not_overflow() -> None:
    everything = ranked(Kind.INTEGER, -(2**63), 2**63 - 1)
    at = buckets(everything, Cells("", 1))
    assert at.count == MOST_BINS
    found = bins(everything, [-(2**63), 0, 2**63 - 1, None], Cells("", 1))
    assert found == [0, MOST_BINS // 2, MOST_BINS - 1, None]


def test_doubles_between_the_ends_and_beyond() -> None:
    amounts = ranked(Kind.DOUBLE, 0, 500)
    at = buckets(amounts, Cells("", 4))
    assert (at.count, at.last, at.width * at.count) == (MOST_BINS, None, 500)
    values: list[object] = [
        0.0, -0.0, 500.0, math.nextafter(500.0, 0), 250.0, -1e308, math.inf, -math.inf, math.nan,
        None,
    ]  # fmt: skip
    last = MOST_BINS - 1
    half = MOST_BINS // 2
    assert bins(amounts, values, Cells("", 4)) == [
        0, 0, last, last, half, 0, last, 0, last, None,
    ]  # fmt: skip


def test_whole_doubles_keep_their_values() -> None:
    whole = ranked(Kind.DOUBLE, Fraction(1, 2), 5, integral=True)
    assert buckets(whole, None) == Buckets(Kind.DOUBLE, Fraction(0), Fraction(1), 6, 5)
    assert bins(whole, [0.0, 1.0, 5.0, 4.5, 99.0, math.nan]) == [0, 1, 5, 4, 5, 5]


@pytest.mark.parametrize("high", [Fraction(3), Fraction(3) + Fraction(1, 2**1000), Fraction(2)])
def test_a_range_of_one_value_or_none_is_one_bin(high: Fraction) -> None:
    narrow = ranked(Kind.DOUBLE, Fraction(3), high)
    assert buckets(narrow, None).count == 1
    assert set(bins(narrow, [3.0, 2.0, 9.0, None])) == {0, None}
    assert buckets(ranked(Kind.INTEGER, 3, int(high) - 1), None).count == 1


def test_days_are_bins() -> None:
    placed = ranked(Kind.DATE, date(2024, 1, 1), date(2025, 12, 31))
    assert buckets(placed, None).count == 731
    days: list[object] = [
        date(2024, 1, 1), date(2024, 2, 1), date(2025, 12, 31), date(1, 1, 1), date(9999, 12, 31),
        "infinity", "-infinity", None,
    ]  # fmt: skip
    assert bins(placed, days) == [0, 31, 730, 0, 730, 730, 0, None]


def test_moments_have_bins_of_equal_length() -> None:
    started = ranked(Kind.TIMESTAMP, date(2024, 1, 1), datetime(2024, 1, 1, 23, 59, 59))
    at = buckets(started, None)
    assert at.width * at.count >= 86_399_000_001
    noon = datetime(2024, 1, 1, 12)
    expected = int(12 * 3600 * 10**6 // at.width)
    found = bins(started, [datetime(2024, 1, 1), noon, datetime(1066, 1, 1), "infinity", None])
    assert found == [0, expected, 0, at.count - 1, None]


def test_truncated_moments_keep_their_grain() -> None:
    hours = ranked(Kind.TIMESTAMP, datetime(2024, 1, 1), datetime(2024, 1, 2), grain="hour")
    at = buckets(hours, None)
    assert (at.count, at.grain) == (25, 3_600_000_000)
    assert bins(hours, [datetime(2024, 1, 1, h) for h in (0, 5, 23)]) == [0, 5, 23]
    shifted = ranked(
        Kind.TIMESTAMP, datetime(2024, 1, 1, 0, 30), datetime(2024, 1, 2), grain="hour"
    )
    assert buckets(shifted, None).grain == 1
    months = ranked(Kind.TIMESTAMP, datetime(2024, 1, 1), datetime(2024, 6, 1), grain="month")
    assert buckets(months, None).grain == 1


def test_listed_values_are_bins_and_others_are_none() -> None:
    text = Mode(Column(1, "x", Shape(Kind.TEXT)), None, None, ("a", "it's"), Kind.TEXT)
    assert bins(text, ["it's", "a", "b", None]) == [1, 0, None, None]
    ages = Mode(Column(1, "x", Shape(Kind.INTEGER)), 18, 100, None, Kind.INTEGER)
    assert buckets(ages, Cells("", 10**6)).count == 83
    assert bins(ages, [18, 100, 17, 101, None]) == [0, 82, None, None, None]


@pytest.mark.parametrize(("groups", "count"), [(1, 65536), (1000, 4194), (10**6, 64), (0, 65536)])
def test_many_groups_have_fewer_bins_each(groups: int, count: int) -> None:
    assert buckets(ranked(Kind.DOUBLE, 0, 1), Cells("", groups)).count == count


def test_every_day_is_in_its_bin() -> None:
    placed = ranked(Kind.DATE, date(1600, 3, 1), date(2400, 2, 28))
    at = buckets(placed, Cells("", 5000))
    days = [date(1600, 3, 1) + timedelta(days=d) for d in range(0, 292_000, 4003)]
    expected = [(d - date(1600, 3, 1)).days // int(at.width) for d in days]
    assert bins(placed, list(days), Cells("", 5000)) == expected
