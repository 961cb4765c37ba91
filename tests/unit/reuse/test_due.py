"""What is left to measure and to pay, from plans alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from support.measured import text_of
from support.shop import ANALYST, priced

from dpsql.price.priced import Noised
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import cost_of
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm
from dpsql.reuse.measured import price_due
from dpsql.reuse.pieces import AS_GOOD, pieces
from dpsql.reuse.refined import refined_together, refinement

COUNT = "SELECT COUNT(*) FROM customers"
THREE = "SELECT COUNT(*), SUM(amount), AVG(amount) FROM orders"
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) "


def laplace(scale: float) -> NoiseSum:
    return NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(scale))),), whole=True)


def test_everything_is_due_as_it_was_priced() -> None:
    plan = priced(THREE)
    [part] = plan.parts
    whole = price_due(plan, {(0, i): None for i in range(len(part.noised))})
    assert (whole.cost, whole.events) == (plan.cost, plan.events)
    assert [d.priced for d in whole.parts] == [part]
    assert price_due(plan, {}).cost == Cost.zero()
    assert price_due(plan, {}).parts == ()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_parts_of_a_plan_cost_what_their_events_say(mechanism: str) -> None:
    request = replace(ANALYST, mechanism=mechanism, epsilon=Fraction(1))
    plan = priced(THREE, request=request)
    count = len(plan.parts[0].noised)
    one = price_due(plan, {(0, 1): None})
    assert one.cost.rho == sum((cost_of(e).rho for e in one.events), Fraction(0))
    if mechanism == "gaussian":
        assert one.cost.rho * count == pytest.approx(float(plan.cost.rho))
    assert one.cost.epsilon < plan.cost.epsilon
    assert text_of(one.parts[0].priced) != text_of(plan.parts[0])
    assert one.parts[0].slot.columns == (1,)


def test_a_half_without_its_twin_is_a_number_by_itself_that_errs_no_more() -> None:
    plan = priced("SELECT COUNT(*), AVG(age) FROM customers")
    [part] = plan.parts
    for i, item in enumerate(part.noised):
        found = price_due(plan, {(0, i): None})
        [alone] = found.parts[0].priced.noised
        assert isinstance(item, Noised)
        assert isinstance(alone, Noised)
        assert alone.halves is None
        assert alone.standard_deviation <= item.standard_deviation
        assert alone.half_width <= item.half_width * 1.001
        [event] = found.events
        assert event.l1 == alone.sensitivity.l1  # type: ignore[union-attr]
        assert plan.cost.epsilon / 2 < found.cost.epsilon < plan.cost.epsilon


def test_halves_keep_their_twin_where_others_are_stored_and_lose_it_where_it_is_refined() -> None:
    plan = priced("SELECT COUNT(*) FILTER (WHERE amount > 5), AVG(amount) FROM orders")
    [part] = plan.parts
    found = price_due(plan, {(0, 1): None, (0, 2): None})
    twins = [n.halves for n in found.parts[0].priced.noised if isinstance(n, Noised)]
    assert [t.other for t in twins if t is not None] == [1, 0]
    assert len(found.events) == 1
    wide = DiscreteLaplace(Fraction(10**6))
    mixed = price_due(plan, {(0, 1): wide, (0, 2): None})
    first, second = mixed.parts[0].priced.noised
    assert isinstance(first, Noised)
    assert isinstance(second, Noised)
    assert (first.noise, first.halves, second.halves) == (wide, None, None)
    assert len(mixed.events) == 2
    assert part.noised[1] != second


def test_halves_of_which_one_is_good_enough_are_not_refined_together() -> None:
    [part] = priced("SELECT COUNT(*), AVG(age) FROM customers").parts
    wide, fine = (NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(s))),)) for s in (10**7, 1))
    assert refined_together(part, ((0, wide), (1, fine))) is None
    both = refined_together(part, ((0, laplace(30)), (1, laplace(3000))))
    assert both is not None
    assert both[0].noise == both[1].noise


def test_each_clause_is_a_budget_of_its_own() -> None:
    sql = (
        f"SELECT a.n, b.n FROM ({CLAUSE.format('epsilon = 0.05')} COUNT(*) AS n, SUM(amount) AS s"
        f" FROM orders) AS a, (SELECT COUNT(*) AS n FROM visits) AS b"
    )
    plan = priced(sql)
    found = price_due(plan, {(0, 0): None, (1, 0): None})
    assert found.cost.epsilon == Fraction(1, 40) + ANALYST.epsilon


def test_new_noise_fills_what_the_stored_noise_lacks() -> None:
    [part] = priced(COUNT).parts  # scale 10
    found = refinement(part, 0, laplace(20))
    assert found is not None
    assert isinstance(found.noise, DiscreteLaplace)
    rho = rho_of_pure(1 / found.noise.scale) + rho_of_pure(Fraction(1, 20))
    assert float(rho) == pytest.approx(float(rho_of_pure(Fraction(1, 10))), rel=0.01)
    assert found.merged.standard_deviation() <= part.noised[0].standard_deviation * AS_GOOD


def test_noise_of_another_kind_is_averaged_too() -> None:
    [part] = priced(COUNT).parts
    found = refinement(part, 0, NoiseSum((NoiseTerm(DiscreteGaussian(Fraction(500))),), whole=True))
    assert found is not None
    assert found.merged.half_width() <= part.noised[0].half_width * AS_GOOD


def test_gaussian_noise_is_filled_up_with_gaussian_noise() -> None:
    request = replace(ANALYST, mechanism="gaussian", delta=Fraction(1, 10**6))
    [part] = priced(COUNT, request=request).parts
    noise = part.noised[0].noise
    assert isinstance(noise, DiscreteGaussian)
    found = refinement(part, 0, NoiseSum((NoiseTerm(DiscreteGaussian(4 * noise.variance)),), True))
    assert found is not None
    assert isinstance(found.noise, DiscreteGaussian)
    assert 1 / found.noise.variance == pytest.approx(3 / (4 * noise.variance), rel=0.01)


def test_what_cannot_be_averaged_away() -> None:
    [part] = priced(COUNT).parts
    assert refinement(part, 0, laplace(9)) is None, "it is good enough, or misses in another way"
    [chosen] = priced("SELECT MEDIAN(amount) FROM orders").parts
    assert refinement(chosen, 0, laplace(20)) is None
    for epsilon in ("50", "1e9"):
        narrow = replace(ANALYST, epsilon=Fraction(float(epsilon)))
        [exact] = priced(COUNT, request=narrow).parts
        assert refinement(exact, 0, laplace(10)) is None, "there is hardly any noise to add"


def test_an_average_whose_tails_are_too_heavy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    [part] = priced(COUNT).parts
    monkeypatch.setattr("dpsql.reuse.refined.AS_GOOD", 0.5)
    assert refinement(part, 0, laplace(20)) is None


def test_a_stored_number_of_no_use_changes_nothing_and_one_that_nearly_serves_saves_all() -> None:
    [part] = priced(COUNT).parts
    asked = part.noised[0].noise
    assert isinstance(asked, DiscreteLaplace)
    for useless in (1_000, 10**7):  # what it would save is less than a step of the search
        assert refinement(part, 0, laplace(useless)) is None
    little = refinement(part, 0, laplace(100))
    assert little is not None
    assert isinstance(little.noise, DiscreteLaplace)
    assert asked.scale < little.noise.scale < asked.scale * Fraction(101, 100)
    assert Fraction(98, 100) < little.weight < 1, "the new number says nearly everything"
    near = refinement(part, 0, laplace(10.001))
    assert near is not None
    assert isinstance(near.noise, DiscreteLaplace)
    assert near.noise.scale > 100


def test_words_of_the_query_that_limit_units_are_their_own_question() -> None:
    plain, limited = (
        pieces(priced(CLAUSE.format(o) + "channel, COUNT(*) FROM orders GROUP BY channel"), "v")[0]
        for o in ("epsilon = 1", "max_rows_contributed = 2")
    )
    assert plain.base
    assert plain.coarse is not None
    assert not limited.base
    assert limited.coarse is None
