"""The filter against every adaptive adversary over small menus, by exhaustive search.

Each step is randomised response on one bit (the worst mechanism of its epsilon), which with
probability ``bad`` says the bit outright. The adversary sees all answers, so its state is the
privacy loss so far and the steps used. What it can reach is E[(1 - exp(E - loss))+], the delta of
the whole interaction at the account's epsilon: it must not exceed the account's delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pytest

from dpsql.ledger.accounts import Account
from dpsql.ledger.charge import ATTO, NANO, Charge, down
from dpsql.ledger.filter import admits
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.cost import Cost

GRID = 0.05  # epsilon per unit of loss


@dataclass(frozen=True)
class Step:
    units: int
    bad: float
    charge: Charge

    @property
    def likely(self) -> float:
        return 1 / (1 + math.exp(-self.units * GRID))


def honest(units: int, bad: Fraction = Fraction(0)) -> Step:
    epsilon = Fraction(units, 20)
    rho = rho_of_pure(epsilon) if units else Fraction(0)
    return Step(units, float(bad), Charge.of(Cost(epsilon, bad, rho, bad)))


def disguised(units: int, shown: int) -> Step:
    """Pure in truth, but charged like a Gaussian: less epsilon, some delta, the same rho."""
    step = honest(units)
    delta = Fraction(step.likely * (1 - math.exp((shown - units) * GRID)))
    cost = Cost(Fraction(shown, 20), delta, rho_of_pure(Fraction(units, 20)))
    return Step(units, 0.0, Charge.of(cost))


def account(epsilon: Fraction, delta: Fraction) -> Account:
    return Account(
        "t/dataset", "dataset", "", "", down(epsilon, NANO), down(delta, ATTO), zcdp=delta > 0
    )


def worst(menu: tuple[Step, ...], epsilon: float, allowed: Callable[[tuple[int, ...]], bool]):
    """The largest delta an adversary reaches who may use the steps in these numbers."""
    cached = cache(allowed)

    @cache
    def value(loss: int, used: tuple[int, ...]) -> float:
        best = max(0.0, 1 - math.exp(epsilon - loss * GRID))
        for i, step in enumerate(menu):
            then = (*used[:i], used[i] + 1, *used[i + 1 :])
            if cached(then):
                up, down = value(loss + step.units, then), value(loss - step.units, then)
                told = step.likely * up + (1 - step.likely) * down
                best = max(best, step.bad + (1 - step.bad) * told)
        return best

    return value(0, (0,) * len(menu))


def dual(menu: tuple[Step, ...], who: Account, most: int) -> Callable[[tuple[int, ...]], bool]:
    def allowed(used: tuple[int, ...]) -> bool:
        total = Charge()
        for count, step in zip(used, menu, strict=True):
            total += Charge(*(count * number for number in step.charge.numbers))
        return sum(used) <= most and admits(who, total)

    return allowed


F = Fraction
CASES = [
    # pure steps, of two sizes
    (F(1, 2), F(1, 20), (honest(1), honest(4)), 40),
    (F(1), F(1, 50), (honest(2), honest(10)), 40),
    (F(3, 10), F(1, 10), (honest(1), honest(6)), 40),
    # steps with bad events, as thresholds have
    (F(1, 2), F(1, 10), (honest(4), honest(4, F(1, 80))), 40),
    (F(1, 2), F(1, 5), (honest(0, F(1, 40)), honest(6)), 20),
    (F(1), F(1, 5), (honest(8), honest(2, F(1, 41)), honest(14)), 12),
    # steps whose two prices differ, as those of a Gaussian do
    (F(1, 2), F(1, 10), (honest(3), disguised(6, 3)), 20),
    (F(1), F(2, 5), (honest(6), disguised(10, 6), disguised(8, 2)), 20),
    (F(1), F(4, 5), (honest(12), disguised(14, 8), honest(2, F(1, 20))), 20),
    # basic accounts
    (F(1), F(0), (honest(4), honest(10)), 10),
]


@pytest.mark.parametrize(("epsilon", "delta", "menu", "most"), CASES)
def test_no_adaptive_adversary_gets_past_the_limit(epsilon, delta, menu, most):
    reached = worst(menu, float(epsilon), dual(menu, account(epsilon, delta), most))
    assert reached <= float(delta) + 1e-12


def test_both_branches_are_in_use():
    """Else the search above would prove too little: the filter admits by A only, and by B only."""
    who = account(F(1), F(1, 10))
    by_sum = Charge(epsilon=NANO, rho=NANO)
    by_rho = Charge(epsilon=3 * NANO, rho=NANO // 100)
    assert admits(who, by_sum)
    assert admits(who, by_rho)
    assert not admits(who, by_sum + by_rho)


def test_the_search_finds_a_filter_that_is_wrong():
    """A planted fault: stop when the composed curve of the steps so far crosses delta."""
    epsilon, delta, menu = 1.0, 0.02, (honest(2), honest(10))

    def curve_is_below(used: tuple[int, ...]) -> bool:
        losses = {0: 1.0}
        for count, step in zip(used, menu, strict=True):
            for _ in range(count):
                then: dict[int, float] = {}
                for loss, mass in losses.items():
                    for change, share in (
                        (step.units, step.likely),
                        (-step.units, 1 - step.likely),
                    ):
                        then[loss + change] = then.get(loss + change, 0) + mass * share
                losses = then
        reached = sum(m * max(0.0, 1 - math.exp(epsilon - x * GRID)) for x, m in losses.items())
        return sum(used) <= 30 and reached <= delta

    assert worst(menu, epsilon, curve_is_below) > delta * 1.2


def test_the_search_finds_a_limit_that_is_too_large():
    """Another: a basic account that lets one step too many through."""
    menu = (honest(4), honest(10))
    who = account(F(6, 5), F(0))
    assert worst(menu, 1.0, dual(menu, who, 10)) > 0
