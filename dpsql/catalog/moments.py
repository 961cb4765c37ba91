"""Means, variances and covariances as expressions over centred totals and a count.

Values are centred at the middle of their range. Their squares are centred again, at half the
largest square. So one row changes each total by little, however far the values are from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import clamp, not_null, real, whole
from dpsql.catalog.statistic import Rows, Total
from dpsql.ir.domain import numbers
from dpsql.ir.expressions import NULL, Case, Column, Expression

EXTRA_BITS = 14
"""Extra precision for the totals of powers.

Central moments of narrow data are small differences between the means of powers.
"""

LEAST_VARIANCE = Fraction(1, 2**34)
"""Sixteen times the largest variance that the rounding of values alone can produce.

It is the variance of values that are divided by half the range.
"""


@dataclass(frozen=True, slots=True)
class Centred:
    """A bounded value, with the middle of its range and half the width of its range."""

    value: Expression
    middle: Fraction
    half: Fraction

    @property
    def offset(self) -> Expression:
        """The value minus the middle of its range."""
        return apply("subtract", self.value, real(self.middle))

    @property
    def factor(self) -> Expression:
        """The clamped and centred value, for products. NULL would become the lower bound.

        So it may be used only in rows where the value is not NULL. A value outside the bounds must
        be clamped before it is multiplied by another value. A square may be clamped afterwards: the
        square of an offset outside the bounds, or of NaN, is above the square of the bounds.
        """
        inside = clamp(self.value, self.middle - self.half, self.middle + self.half)
        return apply("subtract", inside, real(self.middle))

    def total(self, where: Expression | None) -> Total:
        """The sum of offsets."""
        low, high = self.middle - self.half, self.middle + self.half
        return Total(self.value, low, high, centre=self.middle, where=where)

    def squares(self, where: Expression | None) -> Total:
        """The sum of squared offsets, each minus half the largest squared offset."""
        square = apply("multiply", self.offset, self.offset)
        top = self.half * self.half
        return Total(square, Fraction(0), top, centre=top / 2, where=where)

    def spread(self, total: Column, squares: Column, count: Column) -> Expression:
        """The population variance ``E[(x - mid)^2] - E[x - mid]^2``, clamped to its bounds."""
        n, top = at_least_one(count), self.half * self.half
        mean = apply("divide", total, n)
        raised = apply("add", real(top / 2), apply("divide", squares, n))
        return clamp(apply("subtract", raised, apply("multiply", mean, mean)), Fraction(0), top)

    def power(self, exponent: int, where: Expression | None) -> Total:
        """The sum of powers of the offset divided by half the range, so each power is in -1 .. 1.

        A value outside the bounds is clamped after it is raised to the power. The result is the
        power of the nearer bound.
        """
        scaled = apply("divide", self.offset, real(self.half or Fraction(1)))
        value = scaled if exponent == 1 else apply("power", scaled, whole(exponent))
        low, centre = (Fraction(-1), Fraction(0)) if exponent % 2 else (Fraction(0), Fraction(1, 2))
        return Total(value, low, Fraction(1), centre=centre, where=where, extra_bits=EXTRA_BITS)

    def mean(self, total: Column, count: Column) -> Expression:
        """The mean, clamped to its bounds."""
        found = apply("add", real(self.middle), apply("divide", total, at_least_one(count)))
        return clamp(found, self.middle - self.half, self.middle + self.half)


@dataclass(frozen=True, slots=True)
class Paired:
    """Two bounded values, over the rows where neither is NULL."""

    first: Centred
    second: Centred
    where: Expression | None

    @property
    def count(self) -> Rows:
        """The number of rows where neither value is NULL."""
        return Rows(not_null(self.first.value, not_null(self.second.value, self.where)))

    @property
    def totals(self) -> tuple[Total, Total]:
        """The sums of offsets."""
        return (
            self.first.total(not_null(self.second.value, self.where)),
            self.second.total(not_null(self.first.value, self.where)),
        )

    @property
    def squares(self) -> tuple[Total, Total]:
        """The sums of squared offsets."""
        return (
            self.first.squares(not_null(self.second.value, self.where)),
            self.second.squares(not_null(self.first.value, self.where)),
        )

    @property
    def products(self) -> Total:
        """The sum of products of offsets."""
        top = self.first.half * self.second.half
        product = apply("multiply", self.first.factor, self.second.factor)
        return Total(product, -top, top, where=self.count.where)

    def covariance(self, products: Column, x: Column, y: Column, count: Column) -> Expression:
        """The population covariance ``E[xy] - E[x] E[y]``, clamped to its bounds."""
        n, top = at_least_one(count), self.first.half * self.second.half
        means = apply("multiply", apply("divide", x, n), apply("divide", y, n))
        return clamp(apply("subtract", apply("divide", products, n), means), -top, top)


def mean_powers(totals: tuple[Column, ...], count: Column) -> tuple[Expression, ...]:
    """The mean of each power, from the totals of ``Centred.power`` for the exponents 1, 2, ..."""
    n = at_least_one(count)
    return tuple(
        apply("divide", total, n)
        if exponent % 2
        else apply("add", real(Fraction(1, 2)), apply("divide", total, n))
        for exponent, total in enumerate(totals, 1)
    )


def scaled_variance(first: Expression, second: Expression) -> Expression:
    """The variance of values divided by half the range, from the means of the first two powers.

    It is NULL unless it is above ``LEAST_VARIANCE``. Rounding alone could produce a smaller
    variance, and a quotient by it would be arbitrary.
    """
    found = clamp(apply("subtract", second, product(first, first)), Fraction(0), Fraction(1))
    seen = apply("gt", found, real(LEAST_VARIANCE))
    return Case(((seen, found),), NULL, found.shape.optional())


def product(*factors: Expression) -> Expression:
    """The product of all factors."""
    return reduce(lambda a, b: apply("multiply", a, b), factors)


def centre_value(value: Expression) -> Centred:
    """The value with the middle and half width of its range, which must be known."""
    low, high = numbers(value.shape.domain)
    assert low is not None
    assert high is not None, "checks.bounded_values lets no other pass"
    return Centred(value, (low + high) / 2, (high - low) / 2)


def at_least_one(count: Column) -> Expression:
    """A noisy count raised to at least 1, so that it may be a divisor."""
    return apply("greatest", count, whole(1))


def of_sample(population: Expression, count: Column) -> Expression:
    """The sample statistic, by Bessel's correction: the population's times n / (n - 1)."""
    below = apply("greatest", apply("subtract", count, whole(1)), whole(1))
    n = apply("cast", apply("greatest", count, whole(2)), option="double")
    return apply("multiply", population, apply("divide", n, below))
