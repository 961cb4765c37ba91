"""Values on the grid are between its ends, and what Python makes of them with the same operations."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest

from dpsql.bound.grid import FINE_BITS, Grid, grid, grid_ends, is_whole
from dpsql.bound.rows import steps_of
from dpsql.catalog.statistic import Total
from dpsql.engines.duckdb.terms import Scope, term
from dpsql.ir.expressions import Column, Shape
from dpsql.policy.types import Kind

X = Column(0, "x", Shape(Kind.DOUBLE))
RANGES = (
    (0, 500),
    (-7, 3),
    ("0.1", "0.7"),
    (-(2**40), 2**41),
    ("1e-30", "3e-30"),
    ("1e300", "1.5e300"),
    (18, 18),
)
FINER = (-3, 0, 5, 30)


def _total(low: object, high: object) -> Total:
    return Total(X, Fraction(str(low)), Fraction(str(high)))


def _values(total: Total, at: Grid) -> list[float]:
    """Both ends, halves of steps, and what is next to each of them."""
    low, high = grid_ends(total)
    step = 2.0**-at.shift
    inside = [low + (high - low) * i / 97 for i in range(98)]
    halves = [(math.floor(x / step) + 0.5) * step for x in inside]
    near = [low, high, 0.0, -0.0, *inside, *halves]
    beside = [math.nextafter(x, to) for x in near for to in (-math.inf, math.inf)]
    return [*near, *beside, math.inf, -math.inf, math.nan]


def _text(total: Total, at: Grid) -> str:
    return term(steps_of(total, at), Scope({0: "x"}))


def _steps(text: str, values: list[float]) -> list[int]:
    rows = duckdb.execute(
        f"SELECT {text} FROM (SELECT unnest($xs::DOUBLE[]) AS x) AS t", {"xs": values}
    )
    return [n for (n,) in rows.fetchall()]


@pytest.mark.parametrize("coarser", FINER)
@pytest.mark.parametrize("ends_of", RANGES)
def test_steps_are_between_the_ends_of_the_grid(
    ends_of: tuple[object, object], coarser: int
) -> None:
    total = _total(*ends_of)
    at = grid(total, coarser)
    values = _values(total, at)
    found = _steps(_text(total, at), values)
    assert all(at.low <= n + at.centre <= at.high for n in found)
    low, high = grid_ends(total)
    for x, n in zip(values, found, strict=True):
        if low <= x <= high:
            assert n + at.centre == math.floor(x * 2.0**at.shift + 0.5)


def test_steps_that_are_rounded_up_would_leave_the_grid() -> None:
    total = _total(0, 500)
    at = grid(total)
    wrong = _text(total, at).replace("floor(", "ceil(")
    found = _steps(wrong, _values(total, at))
    assert max(found) > at.high


def test_a_copy_holds_whole_numbers_as_they_are() -> None:
    """Where each number is a step, nothing is computed in doubles."""
    total = Total(Column(0, "x", Shape(Kind.INTEGER)), Fraction(0), Fraction(2 ** (FINE_BITS + 2)))
    at = grid(total)
    assert is_whole(total, at)
    text = term(replace(steps_of(total, at), centre=0), Scope({0: "x"}))
    assert "DOUBLE" not in text
    values = [None, -1, 0, 1, at.high - 1, at.high, at.high + 1, 2**62]
    rows = ", ".join(f"({'NULL' if v is None else v}::BIGINT)" for v in values)
    with duckdb.connect() as connection:
        query = f"SELECT {text} FROM (VALUES {rows}) AS t(x)"
        found = [row[0] for row in connection.execute(query).fetchall()]
    assert found == [None if v is None else min(max(v, at.low), at.high) for v in values]
