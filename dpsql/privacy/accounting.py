"""Conversions between privacy measures, each rounded against the analyst.

Sources: Bun and Steinke 2016 (zCDP); Canonne, Kamath and Steinke 2020 (tight conversion);
Kairouz, Oh and Viswanath 2015 (randomised response dominates).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dpsql.exact import float_up
from dpsql.privacy.enclosure import Enclosure

_DIGITS = 50


@lru_cache(maxsize=4096)
def rho_of_pure(epsilon: Fraction) -> Fraction:
    """A rho such that every epsilon-DP step is rho-zCDP: epsilon * tanh(epsilon / 2).

    Claim: any epsilon-DP mechanism satisfies rho-zCDP for the returned rho.
    Assumes: the mechanism is epsilon-DP with no delta.
    Argument: randomised response with log-odds epsilon dominates every epsilon-DP mechanism, and
        its Renyi divergence of order alpha, divided by alpha, is largest as alpha falls to 1, where
        it is epsilon * tanh(epsilon / 2). The result is rounded up.

    >>> float(rho_of_pure(Fraction(1)))
    0.46211715726000974
    """
    _positive(epsilon=epsilon)
    q = Enclosure.of(-epsilon, _DIGITS).exp()
    return min((epsilon * (1 - q) / (1 + q)).round_up(), epsilon, epsilon * epsilon / 2)


@lru_cache(maxsize=4096)
def rho_of_exponential(epsilon: Fraction) -> Fraction:
    """A rho for the exponential mechanism: min(epsilon**2 / 8, epsilon * tanh(epsilon / 2)).

    Claim: a mechanism with P(x) ~ exp(epsilon * u(x) / (2 * sensitivity of u)) is rho-zCDP.
    Assumes: one unit moves every u(x) by at most its sensitivity.
    Argument: its log-ratios lie in an interval of length epsilon (bounded range), for which
        epsilon**2 / 8 suffices (Cesar and Rogers 2021); it is also epsilon-DP.

    >>> rho_of_exponential(Fraction(1))
    Fraction(1, 8)
    """
    return min(epsilon * epsilon / 8, rho_of_pure(epsilon))


@lru_cache(maxsize=4096)
def pure_for_rho(rho: Fraction) -> Fraction:
    """The largest epsilon, to twelve digits, for which every epsilon-DP step is rho-zCDP.

    Claim: any result-DP mechanism satisfies rho-zCDP.
    Assumes: nothing beyond the claim of ``rho_of_pure``.
    Argument: epsilon * tanh(epsilon / 2) = rho is solved in floats and rounded down. The result is
        lowered until ``rho_of_pure`` of it is at most rho, so the claim does not depend on floats.

    >>> float(pure_for_rho(Fraction(1, 200)))
    0.100041685769
    """
    _positive(rho=rho)
    wanted = float(rho)
    low, high = math.sqrt(2 * wanted) * (1 - 1e-9), wanted + math.sqrt(2 * wanted)
    for _ in range(60):
        middle = (low + high) / 2
        if middle * math.tanh(middle / 2) <= wanted:
            low = middle
        else:
            high = middle
    digits = 12 - math.ceil(math.log10(low))
    unit = Fraction(10) ** -digits
    found = Fraction(low) // unit * unit
    while rho_of_pure(found) > rho:
        found -= unit
    return found


@lru_cache(maxsize=4096)
def epsilon_of_zcdp(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon for which rho-zCDP gives (epsilon, delta)-DP.

    Claim: every rho-zCDP interaction is (result, delta)-DP.
    Assumes: ``Enclosure`` encloses.
    Argument: for every alpha > 1, rho * alpha + ln(1 / (alpha * delta)) / (alpha - 1) + ln(1 - 1 /
        alpha) is enough. The best alpha, where rho * (alpha - 1)**2 = ln(1 / (alpha * delta)), is
        searched in floats. The value at the alpha found is enclosed and rounded up, so the claim
        does not depend on how close that alpha is to the best one.

    >>> float(epsilon_of_zcdp(Fraction(2436, 100_000), Fraction(1, 10**6)))
    1.0000885864328573
    """
    _positive(rho=rho)
    _probability(delta)
    order = _order(delta, lambda a, budget: budget / (a * a) - float_up(rho))
    return max(Fraction(0), (rho * (order + 1) + _overhead(order, delta)).round_up())


@lru_cache(maxsize=4096)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho whose tight conversion is (epsilon, delta)-DP.

    Claim: every rho-zCDP interaction, for the returned rho, is (epsilon, delta)-DP.
    Assumes: ``Enclosure`` encloses.
    Argument: ``epsilon_of_zcdp`` solved for rho at one alpha, rounded down. Again the claim holds
        at any alpha, and floats only find a good one. (The result is 0, which is no budget at all,
        where epsilon and delta are too small for the digits carried.)

    >>> float(rho_for(Fraction(1), Fraction(1, 10**6)))
    0.024355970359538372
    """
    _positive(epsilon=epsilon)
    _probability(delta)

    def excess(a: float, budget: float) -> float:
        return budget * (2 * a + 1) / (a * a) - math.log1p(1 / a) - float_up(epsilon)

    order = _order(delta, excess)
    return max(Fraction(0), ((epsilon - _overhead(order, delta)) / (order + 1)).round_down())


def gaussian_rho_for_query(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The total rho that the discrete Gaussians of one query may use to be (epsilon, delta)-DP.

    Claim: discrete Gaussians whose l2**2 / (2 variance) add up to at most the returned rho are
        (epsilon, delta)-DP together, chosen adaptively or not.
    Assumes: each l2 is a true bound.
    Argument: each is zCDP with its share (Canonne, Kamath, Steinke 2020, theorem 4), zCDP adds,
        and ``rho_for`` converts.

    >>> float(gaussian_rho_for_query(Fraction(1), Fraction(1, 10**6)))
    0.024355970359538372
    """
    return rho_for(epsilon, delta)


@lru_cache(maxsize=4096)
def delta_per_group(delta: Fraction, groups: int) -> Fraction:
    """The probability of each of ``groups`` independent events at which that of any is ``delta``.

    Claim: 1 - (1 - result)**groups <= delta.
    Assumes: ``Enclosure`` encloses.
    Argument: result = 1 - (1 - delta)**(1 / groups), enclosed and rounded down.

    >>> float(delta_per_group(Fraction(1, 10**6), 3))
    3.333334444445062e-07
    """
    _probability(delta)
    if groups < 1:
        raise ValueError(f"a unit has at least one group, not {groups}")
    if groups == 1:
        return delta
    digits = _DIGITS + len(str(delta.denominator)) + len(str(groups))
    kept = (Enclosure.of(1 - delta, digits).ln() / groups).exp()
    return max((1 - kept).round_down(), delta / groups)


def _overhead(order: Fraction, delta: Fraction) -> Enclosure:
    """The terms that a conversion at alpha = order + 1 adds to rho * alpha."""
    logarithm = -(Enclosure.of(order + 1, _DIGITS) * delta).ln()
    return logarithm / order - Enclosure.of(1 + 1 / order, _DIGITS).ln()


def _order(delta: Fraction, excess: Callable[[float, float], float]) -> Fraction:
    """The a = alpha - 1 at which the falling ``excess(a, ln(1 / ((a + 1) * delta)))`` is zero."""
    budget = math.log(delta.denominator) - math.log(delta.numerator)
    low, high = -60.0, min(budget, 300.0)
    for _ in range(80):
        middle = (low + high) / 2
        a = math.exp(middle)
        if excess(a, budget - math.log1p(a)) > 0:
            low = middle
        else:
            high = middle
    return Fraction(math.exp(low))


def _positive(**values: Fraction) -> None:
    for name, value in values.items():
        if value <= 0:
            raise ValueError(f"{name} must be above 0, not {value}")


def _probability(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1, not {delta}")
