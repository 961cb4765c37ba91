"""Interval arithmetic: real numbers between two decimals, every operation rounded outward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from functools import lru_cache


@lru_cache(maxsize=64)
def _contexts(digits: int) -> tuple[Context, Context]:
    down, up = (
        Context(
            prec=digits,
            rounding=rounding,
            Emin=MIN_EMIN,
            Emax=MAX_EMAX,
            traps=[InvalidOperation, DivisionByZero, Overflow],
        )
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return down, up


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A real number known to lie in ``[low, high]``.

    Claim: the result of an operation encloses the operation's value on every pair of reals from
        the operands.
    Assumes: ``decimal`` rounds +, -, *, / in the asked direction, and rounds exp, ln and sqrt
        correctly to nearest (its documentation promises both).
    Argument: each bound is computed at the operand bounds where the operation is extreme, in
        directed rounding; functions rounded to nearest are widened by one unit in the last place.

    >>> one = Enclosure.of(Fraction(1), 30)
    >>> e = one.exp()
    >>> e.low < e.high, f"{e.low:.20f}"
    (True, '2.71828182845904523536')
    """

    low: Decimal
    high: Decimal
    digits: int

    @classmethod
    def of(cls, value: Fraction | int, digits: int) -> Enclosure:
        """The tightest enclosure of a rational."""
        down, up = _contexts(digits)
        numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
        return cls(down.divide(numerator, denominator), up.divide(numerator, denominator), digits)

    @classmethod
    def pi(cls, digits: int) -> Enclosure:
        """Pi, by Machin's formula 16 arctan(1/5) - 4 arctan(1/239).

        >>> str(Enclosure.pi(30).low)
        '3.14159265358979323846264338327'
        """
        one = 10 ** (digits + 10)
        value = 16 * _arctan_of_inverse(5, one) - 4 * _arctan_of_inverse(239, one)
        slack = 100 * digits  # each truncated term is off by less than two units
        down, up = _contexts(digits)
        return cls(
            down.divide(Decimal(value - slack), Decimal(one)),
            up.divide(Decimal(value + slack), Decimal(one)),
            digits,
        )

    def _lift(self, other: Enclosure | Fraction | int) -> Enclosure:
        return other if isinstance(other, Enclosure) else Enclosure.of(other, self.digits)

    def __add__(self, other: Enclosure | Fraction | int) -> Enclosure:
        """Sum."""
        down, up = _contexts(self.digits)
        other = self._lift(other)
        return Enclosure(down.add(self.low, other.low), up.add(self.high, other.high), self.digits)

    __radd__ = __add__

    def __neg__(self) -> Enclosure:
        """Negation, exact."""
        return Enclosure(self.high.copy_negate(), self.low.copy_negate(), self.digits)

    def __sub__(self, other: Enclosure | Fraction | int) -> Enclosure:
        """Difference."""
        return self + -self._lift(other)

    def __rsub__(self, other: Fraction | int) -> Enclosure:
        """Difference."""
        return self._lift(other) + -self

    def __mul__(self, other: Enclosure | Fraction | int) -> Enclosure:
        """Product."""
        down, up = _contexts(self.digits)
        other = self._lift(other)
        if self.low >= 0 and other.low >= 0:
            return Enclosure(
                down.multiply(self.low, other.low), up.multiply(self.high, other.high), self.digits
            )
        ends = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Enclosure(
            min(down.multiply(a, b) for a, b in ends),
            max(up.multiply(a, b) for a, b in ends),
            self.digits,
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Enclosure | Fraction | int) -> Enclosure:
        """Quotient; the divisor must be positive."""
        down, up = _contexts(self.digits)
        other = self._lift(other)
        if other.low <= 0:
            raise ZeroDivisionError("the divisor may be zero")
        return self * Enclosure(
            down.divide(Decimal(1), other.high), up.divide(Decimal(1), other.low), self.digits
        )

    def __rtruediv__(self, other: Fraction | int) -> Enclosure:
        """Quotient."""
        return self._lift(other) / self

    def exp(self) -> Enclosure:
        """e raised to this number."""
        down, up = _contexts(self.digits)
        low = down.next_minus(down.exp(self.low))
        return Enclosure(max(low, Decimal(0)), up.next_plus(up.exp(self.high)), self.digits)

    def ln(self) -> Enclosure:
        """Natural logarithm of a positive number."""
        down, up = _contexts(self.digits)
        return Enclosure(
            down.next_minus(down.ln(self.low)), up.next_plus(up.ln(self.high)), self.digits
        )

    def sqrt(self) -> Enclosure:
        """Square root of a number that is not negative."""
        down, up = _contexts(self.digits)
        low = down.next_minus(down.sqrt(self.low))
        return Enclosure(max(low, Decimal(0)), up.next_plus(up.sqrt(self.high)), self.digits)

    def at_most(self, value: Fraction) -> bool:
        """Whether the number is certainly not above ``value``."""
        return self.high <= Enclosure.of(value, self.digits).low

    def ceil(self) -> int:
        """The smallest integer that is certainly not below the number."""
        return math.ceil(self.high)

    def round_up(self, significant: int = 20) -> Fraction:
        """A rational with this many significant digits that is not below the number."""
        return Fraction(_contexts(significant)[1].plus(self.high))

    def round_down(self, significant: int = 20) -> Fraction:
        """A rational with this many significant digits that is not above the number."""
        return Fraction(_contexts(significant)[0].plus(self.low))


def _arctan_of_inverse(x: int, one: int) -> int:
    term = total = one // x
    n, sign = 1, 1
    while term:
        term //= x * x
        n, sign = n + 2, -sign
        total += sign * (term // n)
    return total
