from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.exact import ceil_to, float_down, float_up, floor_to, parse_exact


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.1", Fraction(1, 10)),
        (" 1e-15 ", Fraction(1, 10**15)),
        ("-.5", Fraction(-1, 2)),
        ("+3.", Fraction(3)),
        ("-6/4", Fraction(-3, 2)),
        (7, Fraction(7)),
        (Decimal("0.30"), Fraction(3, 10)),
    ],
)
def test_what_was_written_is_what_is_read(written: str | int | Decimal, value: Fraction) -> None:
    assert parse_exact(written) == value


@pytest.mark.parametrize(
    "text",
    [
        "nan", "NaN", "inf", "-Infinity", "", "1/0", "1e99999", "0x10", "1_000", "1e1001", "1e-1001", "0e9999",
        "9" * 1001, "1 2", "٣", "1/2/3", "1/-2", "--1",
    ],
)  # fmt: skip
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_exact(text)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")])
def test_decimals_that_are_no_numbers_are_refused(value: Decimal) -> None:
    with pytest.raises(ValueError, match="finite"):
        parse_exact(value)


@pytest.mark.parametrize("value", [0.5, math.nan, True, None, np.float64(1), Fraction(1, 2)])
def test_floats_and_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="exact"):
        parse_exact(value)  # type: ignore[arg-type]


@given(st.fractions())
def test_rounding_keeps_its_direction_and_is_tight(value: Fraction) -> None:
    up, down = float_up(value), float_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up == down == float(value) or math.nextafter(down, math.inf) == up


def test_rounding_at_the_ends() -> None:
    huge = Fraction(10) ** 400
    assert (float_up(huge), float_down(huge)) == (math.inf, sys.float_info.max)
    assert (float_up(-huge), float_down(-huge)) == (-sys.float_info.max, -math.inf)
    assert float_up(1 / huge) == math.nextafter(0, 1)
    assert float_down(1 / huge) == 0


@given(st.fractions(), st.integers(1, 10**12))
def test_units_cover(value: Fraction, units: int) -> None:
    assert ceil_to(value, units) - 1 < value * units <= ceil_to(value, units)
    assert floor_to(value, units) <= value * units < floor_to(value, units) + 1
