"""Lists of constants and their combinations, as the engine reads what is written of them."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest

from dpsql.engines.duckdb.groups import words_of, write_groups, write_list, write_public
from dpsql.ir.expressions import Column, Shape, integer
from dpsql.ir.public_groups import (
    Combinations,
    Days,
    GivenGroups,
    Members,
    Periods,
    PublicGroups,
    ValueList,
    WholeNumbers,
)
from dpsql.plan.nodes import PublicQuery
from dpsql.policy.types import Kind


def _rows(sql: str) -> list[tuple[object, ...]]:
    return duckdb.sql(sql).fetchall()


def _list(number: int, values: Members | WholeNumbers | Days | Periods, kind: Kind) -> ValueList:
    return ValueList(Column(number, "a", Shape(kind)), values, nullable=False)


def _at(*parts: int) -> datetime:
    return datetime(*parts)  # noqa: DTZ001 (naive by design)


MONTHS = Periods(Kind.TIMESTAMP, "month", _at(2024, 1, 1), _at(2024, 1, 5), _at(2024, 3, 9))


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (Members(Kind.TEXT, ("it's", "b")), Kind.TEXT, ["it's", "b"]),
        (Members(Kind.DOUBLE, (Fraction(1, 2),)), Kind.DOUBLE, [0.5]),
        (Members(Kind.BOOLEAN, (True, False)), Kind.BOOLEAN, [True, False]),
        (Members(Kind.DATE, ()), Kind.DATE, []),
        (WholeNumbers(Kind.INTEGER, -1, 1), Kind.INTEGER, [-1, 0, 1]),
        (WholeNumbers(Kind.DOUBLE, 3, 3), Kind.DOUBLE, [3.0]),
        (WholeNumbers(Kind.INTEGER, 3, 1), Kind.INTEGER, []),
        (Days(date(2024, 2, 28), date(2024, 3, 1)), Kind.DATE,
         [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]),
        (Days(date(2024, 2, 2), date(2024, 2, 1)), Kind.DATE, []),
        (MONTHS, Kind.TIMESTAMP, [_at(2024, 2, 1), _at(2024, 3, 1)]),
        (Periods(Kind.DATE, "year", _at(2024, 1, 1), _at(2024, 1, 1), _at(2025, 1, 1)), Kind.DATE,
         [date(2024, 1, 1), date(2025, 1, 1)]),
    ],
)  # fmt: skip
def test_a_list_has_each_value_once(
    values: Members | WholeNumbers | Days | Periods, kind: Kind, expected: list[object]
) -> None:
    listed = _list(0, values, kind)
    assert [row[0] for row in _rows(write_list(listed))] == expected
    with_null = ValueList(listed.column, values, nullable=True)
    assert [row[0] for row in _rows(write_list(with_null))] == [*expected, None]


LETTERS = _list(1, Members(Kind.TEXT, ("b", "a")), Kind.TEXT)
NUMBERS = _list(0, WholeNumbers(Kind.INTEGER, 1, 2), Kind.INTEGER)
FIRST = Combinations((NUMBERS,), ((1, NUMBERS.column),), (), distinct=False)
SECOND = Combinations((LETTERS,), ((0, LETTERS.column),), (), distinct=True)
PAIRS = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_groups_are_all_combinations_in_the_order_of_their_keys() -> None:
    groups = PublicGroups((FIRST, SECOND), ("k0", "k1"))
    assert _rows(write_groups(groups)) == PAIRS
    assert words_of(groups) != words_of(PublicGroups((FIRST,), ("k0",)))


def test_parts_of_one_list_are_combined_row_by_row() -> None:
    both = Combinations((NUMBERS,), ((0, NUMBERS.column), (1, integer(7))), (), distinct=True)
    assert _rows(write_groups(PublicGroups((both,), ("k0", "k1")))) == [(1, 7), (2, 7)]


def test_groups_that_were_read_are_read_again_as_they_are() -> None:
    with duckdb.connect() as connection:
        connection.register("read_before", pa.table({"k0": ["b", "a"]}))
        found = connection.execute(write_groups(GivenGroups("read_before", ("k0",)))).fetchall()
    assert found == [("b",), ("a",)]


def test_public_groups_are_named_as_the_fields_of_the_query() -> None:
    fields = (Column(7, "City", Shape(Kind.TEXT)), Column(8, "2nd", Shape(Kind.INTEGER)))
    query = PublicQuery("p0", PublicGroups((FIRST, SECOND), ("k0", "k1")), fields)
    found = duckdb.sql(write_public(query))
    assert found.columns == ["city_7", "c_8"]
    assert found.fetchall() == PAIRS
