from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.privacy.enclosure import Enclosure

mp = mpmath.mp.clone()
mp.dps = 90
values = st.fractions(min_value=-50, max_value=50)
positive = st.fractions(min_value=Fraction(1, 1000), max_value=50)


def _real(value: Fraction) -> mpmath.mpf:
    return mp.mpf(value.numerator) / value.denominator


def _holds(enclosure: Enclosure, truth: mpmath.mpf) -> bool:
    low, high = mp.mpf(str(enclosure.low)), mp.mpf(str(enclosure.high))
    slack = abs(truth) * mp.mpf(10) ** -80
    return bool(low - slack <= truth <= high + slack and high - low <= abs(truth) * 1e-20 + 1e-18)


@given(values, values)
def test_ring_operations_enclose(a: Fraction, b: Fraction) -> None:
    x, y = Enclosure.of(a, 30), Enclosure.of(b, 30)
    assert _holds(x + y, _real(a + b))
    assert _holds(x - b, _real(a - b))
    assert _holds(a - y, _real(a - b))
    assert _holds(a + y, _real(a + b))
    assert _holds(a * y, _real(a * b))
    assert _holds(x * y, _real(a * b))


@given(values, positive)
def test_quotients_enclose(a: Fraction, b: Fraction) -> None:
    assert _holds(Enclosure.of(a, 30) / b, _real(a / b))
    assert _holds(a / Enclosure.of(b, 30), _real(a / b))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(Enclosure.exp, mp.exp), (Enclosure.ln, mp.log), (Enclosure.sqrt, mp.sqrt)],
)
def test_functions_enclose(
    ours: Callable[[Enclosure], Enclosure], theirs: Callable[[mpmath.mpf], mpmath.mpf]
) -> None:
    for value in (Fraction(1, 1000), Fraction(1, 3), Fraction(2), Fraction(49)):
        assert _holds(ours(Enclosure.of(value, 30)), theirs(_real(value)))


def test_wide_operands_are_covered_at_every_corner() -> None:
    x = Enclosure(Decimal(-2), Decimal(3), 30)
    y = Enclosure(Decimal(-5), Decimal(7), 30)
    assert ((x * y).low, (x * y).high) == (-15, 21)
    assert ((-x).low, (-x).high) == (-3, 2)


def test_a_divisor_that_may_be_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        1 / Enclosure(Decimal(-1), Decimal(1), 30)


@pytest.mark.parametrize("digits", [10, 40, 85])
def test_pi(digits: int) -> None:
    pi = Enclosure.pi(digits)
    assert mp.mpf(str(pi.low)) < mp.pi < mp.mpf(str(pi.high))
    assert pi.high - pi.low < Decimal(10) ** (2 - digits)


def test_tiny_and_huge_stay_cheap_and_sound() -> None:
    q = Enclosure.of(-(10**30), 30).exp()
    assert q.low == 0 < q.high
    assert q.at_most(Fraction(1, 10**300))
    root = Enclosure.of(0, 30).sqrt()
    assert root.low == 0


def test_results_leave_in_a_direction() -> None:
    third = Enclosure.of(Fraction(1, 3), 40)
    assert third.round_up(3) == Fraction(334, 1000)
    assert third.round_down(3) == Fraction(333, 1000)
    assert (third + 2).ceil() == 3
    assert third.at_most(Fraction(334, 1000))
    assert not third.at_most(Fraction(333, 1000))
