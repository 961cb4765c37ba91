"""Questions that are priced in rho: what is charged is what their noise costs, and the share holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
from support.corpus import SHOP, World
from support.measured import plan_of

from dpsql.diagnostics.refusal import Refused
from dpsql.plan.nodes import Plan
from dpsql.price import charge, divide, priced, search
from dpsql.price import price as pricing
from dpsql.price.price import price
from dpsql.price.priced import Chosen, Noised, PricedPlan, Share
from dpsql.price.request import Request
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import cost_of
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    TruncatedGeometric,
)

mp = mpmath.mp.clone()
mp.dps = 50
RHO = Fraction(2, 1000)
SHARE = Request(None, Fraction(1, 10**8), rho=RHO)
FAR = World("far", "trade")
QUESTIONS = {
    "one count": ("SELECT COUNT(*) FROM customers", SHOP),
    "private groups of one row": ("SELECT city, COUNT(*) FROM customers GROUP BY city", SHOP),
    "private groups of rows": (
        "SELECT amount, COUNT(*), SUM(amount) FROM orders GROUP BY amount", SHOP,
    ),
    "a mean and a sum": ("SELECT channel, AVG(amount), SUM(amount) FROM orders GROUP BY 1", SHOP),
    "a choice by rank": ("SELECT MEDIAN(amount), COUNT(*) FROM orders", SHOP),
    "choices in groups": ("SELECT quantity, MEDIAN(price) FROM lineitem GROUP BY 1", FAR),
    "two measurements": (
        "SELECT channel, COUNT(*), SUM(amount) FROM orders GROUP BY ROLLUP (channel)", SHOP,
    ),
    "many numbers": (
        f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE age > {a})' for a in range(20, 60))} FROM customers",
        SHOP,
    ),
}  # fmt: skip
MECHANISMS = ("laplace", "geometric", "gaussian", "auto")
FEW = "a mean and a sum"


def asked(name: str, request: Request = SHARE) -> PricedPlan:
    sql, world = QUESTIONS[name]
    return price(plan_of(sql, world), request)


def real(value: Fraction) -> mpmath.mpf:
    return mp.mpf(value.numerator) / value.denominator


def pure(epsilon: mpmath.mpf) -> mpmath.mpf:
    """The rho of a pure mechanism: that of randomised response."""
    return epsilon * mp.tanh(epsilon / 2)


def rho_of(item: Noised | Chosen) -> mpmath.mpf:
    """The rho of one statistic, from the scale of its noise and how far a unit moves it."""
    moved, noise = item.sensitivity, item.noise
    match noise:
        case DiscreteGaussian():
            return real(moved.l2_squared / (2 * noise.variance))
        case DiscreteLaplace():
            if isinstance(item, Noised) and item.halves is not None:
                return pure(real(item.halves.l1 / noise.scale)) / 2
            return pure(real(moved.l1 / noise.scale))
        case TruncatedGeometric():
            return pure(real(moved.l1 * noise.epsilon))
        case Exponential():
            ranged = real(moved.l2_squared / (8 * noise.scale**2))
            return min(ranged, pure(real(moved.l1 / noise.scale)))


def noise_of(plan: PricedPlan) -> Iterator[Noised | Chosen]:
    for part in plan.parts:
        yield from part.noised
        if part.selection is not None and part.selection.shares is None:
            yield part.selection.units


def faults_of(plan: PricedPlan, rho: Fraction) -> list[str]:
    """Whether the price differs from what the noise costs, or from the share, in words."""
    found = []
    costs = mp.fsum(rho_of(item) for item in noise_of(plan))
    charged = real(plan.cost.rho)
    if charged < costs * (1 - mp.mpf(10) ** -40):
        found.append("the noise costs more than is charged")
    if charged > costs * (1 + mp.mpf(10) ** -9):
        found.append("more is charged than the noise costs")
    if plan.cost.rho > rho:
        found.append("more than the share is charged")
    if plan.cost.rho < rho * Fraction(99, 100):
        found.append("a part of the share is left")
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("rho", [Fraction(1, 10**7), RHO, Fraction(1, 3), Fraction(20)], ids=str)
def test_what_is_charged_is_what_the_noise_costs(name: str, mechanism: str, rho: Fraction) -> None:
    plan = asked(name, replace(SHARE, mechanism=mechanism, rho=rho))  # type: ignore[arg-type]
    assert faults_of(plan, rho) == []
    assert plan.cost.threshold_delta <= SHARE.delta / 4
    assert plan.cost.delta <= SHARE.delta


def taken_for_an_epsilon(change: pytest.MonkeyPatch) -> None:
    """The share is charged as an epsilon."""

    def shares(request: Request, statistics: int, selections: int) -> Iterator[Share]:
        rest = replace(request, epsilon=request.rho, rho=None)
        return divide.divide(rest, statistics, selections)

    change.setattr(pricing, "divide", shares)


def not_divided(change: pytest.MonkeyPatch) -> None:
    """Each statistic has the whole rho."""
    usual = divide.divide

    def shares(request: Request, statistics: int, selections: int) -> Iterator[Share]:
        for share in usual(request, statistics, selections):
            assert share.rho is not None
            yield replace(share, rho=share.rho * statistics)

    change.setattr(pricing, "divide", shares)


def loose_conversion(change: pytest.MonkeyPatch) -> None:
    """Laplace noise has the epsilon 2 sqrt(rho), as if a pure step cost a quarter of its square."""
    wide = lambda rho: Fraction(float(4 * rho) ** 0.5)  # noqa: E731
    change.setattr(priced, "pure_for_rho", wide)


def charged_once(change: pytest.MonkeyPatch) -> None:
    """The first statistic alone is charged."""

    def cost(parts: object, share: Share) -> Cost:
        assert share.rho is not None
        return Cost(Fraction(1), rho=share.rho)

    change.setattr(pricing, "cost_of", cost)


def halves_for_one(change: pytest.MonkeyPatch) -> None:
    """Two halves have twice the epsilon of one number: nearly four times its rho."""
    usual = priced.Share.pure
    change.setattr(priced.Share, "pure", lambda self, count: count * usual(self, 1))


@pytest.mark.parametrize("mechanism", ["geometric", "gaussian"])
@pytest.mark.parametrize(
    "fault", [taken_for_an_epsilon, not_divided, charged_once], ids=lambda f: f.__name__
)
def test_planted_faults_are_noticed(
    fault: object, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = replace(SHARE, mechanism=mechanism)  # type: ignore[arg-type]
    assert faults_of(asked(FEW, request), RHO) == []
    fault(monkeypatch)  # type: ignore[operator]
    assert faults_of(asked(FEW, request), RHO)


@pytest.mark.parametrize("fault", [loose_conversion, halves_for_one], ids=lambda f: f.__name__)
def test_planted_faults_of_pure_noise_are_noticed(
    fault: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)  # type: ignore[operator]
    assert faults_of(asked(FEW, replace(SHARE, mechanism="geometric")), RHO)


@pytest.mark.parametrize("name", QUESTIONS)
def test_events_cost_what_is_charged(name: str) -> None:
    for mechanism in MECHANISMS:
        plan = asked(name, replace(SHARE, mechanism=mechanism))  # type: ignore[arg-type]
        events = sum(map(cost_of, plan.events), Cost.zero())
        assert events.rho <= plan.cost.rho <= events.rho * (1 + Fraction(1, 10**9))
        assert events.threshold_delta == plan.cost.threshold_delta
        if plan.family == "laplace":
            assert events == plan.cost


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_noise_that_errs_least_is_taken(name: str) -> None:
    errors = {
        mechanism: pricing._error(asked(name, replace(SHARE, mechanism=mechanism)))  # type: ignore[arg-type]
        for mechanism in ("laplace", "gaussian", "auto")
    }
    assert errors["auto"] == min(errors.values())


def test_gaussian_noise_errs_less_than_laplace_noise_of_a_small_rho() -> None:
    """It is the other way round at the epsilon of a label, and where rho is large."""
    assert asked("one count").family == "gaussian"
    label = Request(asked("one count").cost.epsilon, SHARE.delta)
    assert asked("one count", label).family == "laplace"
    assert asked("one count", replace(SHARE, rho=Fraction(30))).family == "laplace"


def test_both_limits_hold() -> None:
    for mechanism in MECHANISMS:
        for name in QUESTIONS:
            for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(100)):
                request = replace(SHARE, epsilon=epsilon, mechanism=mechanism)  # type: ignore[arg-type]
                cost = asked(name, request).cost
                assert cost.epsilon <= epsilon
                assert cost.rho <= RHO


def test_a_smaller_label_binds() -> None:
    small = replace(SHARE, epsilon=Fraction(1, 100))
    cost = asked("one count", replace(small, mechanism="laplace")).cost
    assert cost.epsilon == Fraction(1, 100)
    assert cost.rho < RHO / 10
    cost = asked("one count", replace(small, mechanism="gaussian")).cost
    assert cost.epsilon == Fraction(1, 100)
    assert cost.delta == SHARE.delta
    assert cost.rho < RHO / 100


def test_a_larger_label_leaves_the_share_and_states_the_truth() -> None:
    for mechanism in ("laplace", "gaussian"):
        large = replace(SHARE, epsilon=Fraction(100), mechanism=mechanism)  # type: ignore[arg-type]
        assert asked(FEW, large).cost == asked(FEW, replace(large, epsilon=None)).cost


def test_without_a_delta_noise_is_pure() -> None:
    none = replace(SHARE, delta=Fraction(0))
    cost = asked("one count", none).cost
    assert (cost.delta, cost.threshold_delta) == (0, 0)
    with pytest.raises(Refused, match="DP405"):
        asked("one count", replace(none, mechanism="gaussian"))
    with pytest.raises(Refused, match="DP501"):
        asked("private groups of rows", none)


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(1, 10**30)])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_rho_that_leaves_noise_alone_is_refused(name: str, rho: Fraction) -> None:
    with pytest.raises(Refused, match="DP204"):
        asked(name, replace(SHARE, rho=rho))


def test_a_request_states_a_limit() -> None:
    with pytest.raises(ValueError, match="epsilon, a rho, or both"):
        Request(None, Fraction(1, 10**8))


def test_parts_cost_the_whole_together() -> None:
    parts = [SHARE.part(Fraction(1, 3)), SHARE.part(Fraction(2, 3))]
    assert sum(part.rho or 0 for part in parts) == RHO
    assert sum(part.delta for part in parts) == SHARE.delta
    both = replace(SHARE, epsilon=Fraction(1)).part(Fraction(1, 4))
    assert (both.epsilon, both.rho) == (Fraction(1, 4), RHO / 4)


def test_a_strength_is_an_epsilon_or_that_of_a_rho() -> None:
    assert Request(Fraction(1, 7), Fraction(0)).strength == Fraction(1, 7)
    assert Request(Fraction(1), Fraction(0)).at(Fraction(1, 3)).epsilon == Fraction(1, 3)
    strength = SHARE.strength
    assert RHO * (1 - Fraction(1, 10**9)) < strength * strength / 2 <= RHO
    assert SHARE.at(strength / 2).rho == strength * strength / 8
    assert SHARE.at(2 * strength).rho == RHO


def test_a_search_and_its_answer_cost_the_share() -> None:
    sql, world = QUESTIONS[FEW]
    plan: Plan = plan_of(sql, world)
    base = search.price_with_searches(plan, replace(SHARE, search="on"))
    assert base.price.rho <= RHO
    assert base.most.rho <= RHO
    assert base.searches
    spent = sum((s.priced.cost for s in search.every_search(base)), Cost.zero())
    ends = [found for found in search.extremes(base) if not found.searches]
    assert len(ends) == 3
    for found in (base, *ends):
        assert RHO * Fraction(99, 100) <= (spent + found.cost).rho <= base.most.rho


@pytest.mark.parametrize(("sql", "searches"), [
    ("SELECT channel, COUNT(DISTINCT customer_id) FROM orders GROUP BY channel", 1),
    ("SELECT channel, COUNT(DISTINCT customer_id), COUNT(*) FROM orders GROUP BY channel", 2),
    ("SELECT COUNT(DISTINCT customer_id) FROM orders", 0),
])  # fmt: skip
def test_nothing_is_paid_for_a_bound_that_gains_nothing(sql: str, searches: int) -> None:
    """A unit counts once in one number of units, however few of its rows count."""
    base = search.price_with_searches(plan_of(sql, SHOP), replace(SHARE, search="on"))
    assert len(base.searches) == searches


def test_the_cost_of_a_label_is_as_before() -> None:
    """Its rho is that of its noise as well."""
    for name in QUESTIONS:
        for mechanism in ("laplace", "gaussian"):
            plan = asked(name, Request(Fraction(1), Fraction(1, 10**6), mechanism))  # type: ignore[arg-type]
            assert plan.cost.epsilon == 1
            costs = mp.fsum(rho_of(item) for item in noise_of(plan))
            assert real(plan.cost.rho) >= costs * (1 - mp.mpf(10) ** -40)


def test_the_price_of_a_part_is_that_of_its_events() -> None:
    """``charge.cost_of`` and the events of each part agree on the epsilon too."""
    plan = asked("a choice by rank", replace(SHARE, mechanism="laplace"))
    events = [event for part in plan.parts for event in charge.events_of(part)]
    assert sum((cost_of(e).epsilon for e in events), Fraction(0)) == plan.cost.epsilon
