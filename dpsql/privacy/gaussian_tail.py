"""Proven upper bounds on tails of the discrete Gaussian, and the smallest integer under one."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from dpsql.privacy.enclosure import Enclosure

SUMMED_UP_TO = 256
"""Up to this variance tails are summed term by term; above it the normal law bounds them."""
_DIGITS = 40
_FLOAT_TAIL = Fraction(1, 10**300)
_NEGLIGIBLE = Fraction(1, 10**25)
_NOTHING = Decimal("1e-10000")


def tail_bound(variance: Fraction, m: int) -> Enclosure:
    """An upper bound (the ``high`` of the result) on P(X >= m), for m >= 1.

    Claim: P(X >= m) <= tail_bound(variance, m).high for the discrete Gaussian X.
    Assumes: ``Enclosure`` encloses.
    Argument: for small variances the tail is summed term by term, and the rest beyond a term is
        bounded by a geometric series, since ratios of neighbouring terms fall. For larger ones let
        f(x) = exp(-x**2 / 2v). Each f(x) is the value of f at the midpoint of [x - 1/2, x + 1/2],
        so the sum from m differs from the integral from m - 1/2 by at most the integral of
        abs(f'') / 8, that is exp(-1/2) / (4 sqrt(v)). Where f is convex (m - 1/2 >= sqrt(v)) the
        sum is not above the integral. By Poisson summation the sum of all f is at least
        sqrt(2 pi v), so P(X >= m) <= Q((m - 1/2) / sqrt(v)) + (1/(16 v) unless convex).

    >>> [f"{float(tail_bound(Fraction(50), m).high):.3e}" for m in (34, 35)]
    ['1.060e-06', '5.222e-07']
    """
    if variance <= SUMMED_UP_TO:
        return _sum_from(variance, m) / _sum_of_all(variance)
    edge = Fraction(2 * m - 1, 2)
    tail = normal_tail(edge * edge / (2 * variance))
    return tail if edge * edge >= variance else tail + 1 / (16 * variance)


@lru_cache(maxsize=256)
def _sum_of_all(variance: Fraction) -> Enclosure:
    return 2 * _sum_from(variance, 1) + 1


def _sum_from(variance: Fraction, m: int) -> Enclosure:
    """The sum of exp(-x**2 / (2 variance)) over x >= m >= 1."""
    step = Enclosure.of(-1 / variance, _DIGITS).exp()
    term = Enclosure.of(-m * m / (2 * variance), _DIGITS).exp()
    ratio = Enclosure.of(-(2 * m + 1) / (2 * variance), _DIGITS).exp()
    total, first = term, term
    while True:
        term = term * ratio
        ratio = ratio * step
        total = total + term
        rest = term * ratio / (1 - ratio) if ratio.high < 1 else None
        if rest is not None and rest.high <= max((first * _NEGLIGIBLE).high, _NOTHING):
            return Enclosure(total.low, (total + rest).high, _DIGITS)


def normal_tail(y: Fraction) -> Enclosure:
    """P(N >= sqrt(2 y)) for a standard normal N.

    Claim: the result encloses the probability.
    Assumes: ``Enclosure`` encloses.
    Argument: erf(sqrt(y)) is 2/sqrt(pi) * exp(-y) * sqrt(y) times the sum of (2y)**n / (2n + 1)!!;
        once the ratio of terms is below 1/2, the rest is less than the last term. Enough digits
        are carried that the cancellation in 1 - erf leaves 25.

    >>> f"{float(normal_tail(Fraction(8)).high):.6e}"
    '3.167124e-05'
    """
    digits = _DIGITS + math.ceil(y / 2)
    argument = Enclosure.of(y, digits)
    total = term = Enclosure.of(1, digits)
    n = 0
    while 4 * y >= 2 * n + 1 or not term.at_most(Fraction(1, 10**digits)):
        n += 1
        term = term * (2 * y / (2 * n + 1))
        total = total + term
    total = Enclosure(total.low, (total + term).high, digits)
    scale = (-argument).exp() * (argument / Enclosure.pi(digits)).sqrt()
    tail = Fraction(1, 2) - scale * total
    return Enclosure(max(tail.low, Decimal(0)), tail.high, digits)


def smallest_under(variance: Fraction, chance: Fraction) -> int:
    """The smallest m >= 1 for which ``tail_bound`` proves that P(X >= m) <= chance.

    >>> smallest_under(Fraction(50), Fraction(1, 10**6))
    35
    """
    if chance >= _FLOAT_TAIL:
        likely = -NormalDist().inv_cdf(float(min(chance, Fraction(1, 2))))
    else:
        twice = 2 * (math.log(chance.denominator) - math.log(chance.numerator))
        likely = math.sqrt(twice - math.log(math.tau * twice))
    return smallest_where(
        lambda m: tail_bound(variance, m).at_most(chance),
        math.ceil(math.sqrt(variance) * likely),
    )


def smallest_where(holds: Callable[[int], bool], guess: int) -> int:
    """The smallest m >= 1 for which ``holds``, a condition that stays true once it is true.

    The search begins at ``guess``.

    >>> smallest_where(lambda m: m >= 1000, 3)
    1000
    """
    low, high, step = 0, max(1, guess), 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    step = 1
    while high - low > 1:
        middle = max(low + 1, high - step) if step else (low + high) // 2
        if holds(middle):
            high, step = middle, 2 * step
        else:
            low, step = middle, 0
    return high
