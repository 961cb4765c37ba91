# ruff: noqa: DTZ001 (timestamps are naive here)
"""Domains: unions, parts, and values of one kind however they are spelled."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

from dpsql.ir.domain import (
    ANYTHING,
    Domain,
    among,
    at_least,
    at_most,
    hull,
    interval,
    members,
    nearest,
    numbers,
    without,
)

NOON = datetime(2024, 1, 1, 12)
MIDNIGHT = datetime(2024, 1, 1)
DAY = date(2024, 1, 1)


def test_members_know_their_extent() -> None:
    assert members([5, 1, 5]) == Domain(1, 5, (1, 5), integral=True)
    assert members([Fraction(1, 2), Fraction(1)]).integral is False
    assert members(["b", "a"]) == Domain(members=("a", "b"))
    assert members([]) == Domain(members=())
    assert members([True, False]).members == (False, True)


def test_emptiness() -> None:
    assert members([]).empty
    assert not members([1]).empty
    assert interval(2, 1).empty
    assert not interval(1, 1).empty
    assert not ANYTHING.empty


def test_numbers_are_exact() -> None:
    assert numbers(interval(1, Fraction(1, 3))) == (1, Fraction(1, 3))
    assert numbers(members([False, True])) == (None, None)
    assert numbers(interval(DAY, None)) == (None, None)


def test_nearest_doubles() -> None:
    assert nearest((Fraction(1, 10), None)) == (Fraction(0.1), None)
    assert nearest((Fraction(0), Fraction(-(10**400)))) == (0, None)


def test_hulls() -> None:
    assert hull(interval(0, 5, integral=True), interval(3, 9)) == interval(0, 9)
    assert hull(interval(0, None), interval(3, 9)) == interval(0, None)
    assert hull(interval(None, 2), interval(3, 9)) == interval(None, 9)
    assert hull(members([1]), members([2])) == members([1, 2])
    assert hull(members([1]), interval(0, 5, integral=True)) == interval(0, 5, integral=True)
    assert hull(members([]), interval(0, 5)) == interval(0, 5)
    assert hull(interval(0, 5), interval(2, 1)) == interval(0, 5)
    months = Domain(MIDNIGHT, MIDNIGHT, grain="month")
    assert hull(months, months).grain == "month"
    assert hull(months, interval(MIDNIGHT, NOON)).grain is None


def test_parts() -> None:
    assert at_least(interval(0, 9), 5) == interval(5, 9)
    assert at_least(interval(0, 9), -5) == interval(0, 9)
    assert at_least(ANYTHING, 5) == interval(5, None)
    assert at_most(interval(0, 9), 5) == interval(0, 5)
    assert at_most(interval(0, 9), 50) == interval(0, 9)
    assert at_most(ANYTHING, 5) == interval(None, 5)
    assert at_least(members([1, 5, 9]), 3) == members([5, 9])
    assert at_most(members([1, 5, 9]), 0) == members([])
    assert among(interval(0, 9), [5, 20, -1]) == members([5])
    assert among(members([1, 5]), [5, 9]) == members([5])
    assert among(ANYTHING, ["a"]) == members(["a"])
    assert without(members([1, 5]), 5) == members([1])
    assert without(interval(0, 9), 5) == interval(0, 9)


def test_values_meet_as_engines_compare_them() -> None:
    """Dates are their midnights, and Fractions the doubles nearest to them."""
    assert among(members([DAY]), [MIDNIGHT]) == members([MIDNIGHT])
    assert without(members([DAY]), MIDNIGHT) == members([])
    assert at_least(interval(DAY, None), NOON).low == NOON
    tenth = nearest((Fraction(1, 10), None))[0]
    assert tenth is not None
    assert among(interval(tenth, 5), [Fraction(1, 10)]) == members([Fraction(1, 10)])
    assert without(members([tenth]), Fraction(1, 10)) == members([])
    assert at_most(interval(0, Fraction(10) ** 400), Fraction(0)) == interval(0, 0)
