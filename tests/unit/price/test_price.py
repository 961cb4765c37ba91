"""Which bounding and which noise a request gets, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
from support.corpus import SHOP, World
from support.measured import opened, plan_of, text_of

from dpsql.bound import STRATEGIES, GroupCaps, NormClip
from dpsql.bound.candidates import candidates
from dpsql.bound.grid import Grid, grid
from dpsql.bound.sensitivity import sensitivity
from dpsql.catalog.statistic import Rows, Total, Units
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.expressions import integer
from dpsql.plan import cells
from dpsql.price.price import price
from dpsql.price.priced import Noised, PricedPlan
from dpsql.price.request import Request
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, TruncatedGeometric

ONE = Request(Fraction(1), Fraction(1, 10**6))
FAR = World("far", "trade")
COUNT = "SELECT COUNT(*) FROM customers"
BY_CITY = "SELECT city, COUNT(*) FROM customers GROUP BY city"
CAP = "contribution_bounds_per_group => (-90, 60)"
BY_AMOUNT = "SELECT amount, COUNT(*) FROM orders GROUP BY amount"


def priced(sql: str, request: Request = ONE, world: World = SHOP) -> PricedPlan:
    return price(plan_of(sql, world), request)


def noise(plan: PricedPlan, i: int = 0) -> object:
    item = plan.parts[0].noised[i]
    assert isinstance(item, Noised)
    return item.noise


@pytest.mark.parametrize(("wanted", "law"), [
    ("laplace", DiscreteLaplace), ("geometric", DiscreteLaplace), ("gaussian", DiscreteGaussian),
])  # fmt: skip
def test_a_session_may_choose_its_noise(wanted: str, law: type) -> None:
    assert isinstance(noise(priced(COUNT, replace(ONE, mechanism=wanted))), law)  # type: ignore[arg-type]


def test_auto_takes_what_errs_least() -> None:
    assert priced(COUNT).family == "laplace"
    many = (
        "SELECT "
        + ", ".join(f"COUNT(*) FILTER (WHERE age > {a})" for a in range(20, 60))
        + " FROM customers"
    )
    loose = replace(ONE, delta=Fraction(1, 10**4))
    assert priced(many, loose).family == "gaussian"
    assert priced(many, replace(loose, allowed=("laplace",))).family == "laplace"


@pytest.mark.parametrize("request_", [
    replace(ONE, mechanism="gaussian", delta=Fraction(0)),
    replace(ONE, mechanism="gaussian", allowed=("laplace", "geometric")),
    replace(ONE, mechanism="laplace", allowed=("gaussian",)),
], ids=["no delta", "not Gaussian", "only Gaussian"])  # fmt: skip
def test_a_mechanism_that_may_not_be_used_is_refused(request_: Request) -> None:
    with pytest.raises(Refused) as caught:
        priced(COUNT, request_)
    assert caught.value.code == "DP405"


def test_groups_that_are_not_public_need_a_delta() -> None:
    with pytest.raises(Refused) as caught:
        priced(BY_CITY, replace(ONE, delta=Fraction(0)))
    assert caught.value.code == "DP501"


def test_a_count_drowned_in_noise_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        priced("SELECT COUNT(*) FROM orders", replace(ONE, epsilon=Fraction(1, 10**12)))
    assert caught.value.code == "DP204"


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("aggregate", "epsilon"), [
    ("SUM(amount)", "2e-11"), ("AVG(amount)", "2e-11"), ("STDDEV(amount - 400)", "2e-11"),
    (f"SUM(amount, {CAP})", "4e-12"), ("SUM(amount)", "1e-12"), ("SUM(amount)", "1e-300"),
])  # fmt: skip
def test_so_is_a_sum_where_a_coarser_grid_is_of_no_more_help(
    aggregate: str, epsilon: str, mechanism: str
) -> None:
    small = replace(ONE, epsilon=Fraction(epsilon), delta=Fraction(1, 10**40), mechanism=mechanism)  # type: ignore[arg-type]
    with pytest.raises(Refused) as caught:
        priced(f"SELECT channel, {aggregate} FROM orders GROUP BY channel", small)
    assert caught.value.code == "DP204"


def test_so_is_a_choice_by_rank_where_one_row_would_be() -> None:
    with pytest.raises(Refused) as caught:
        priced("SELECT MEDIAN(amount) FROM orders", replace(ONE, epsilon=Fraction(1, 10**100)))
    assert caught.value.code == "DP204"


def test_a_sum_of_wide_noise_has_a_coarser_grid() -> None:
    fine = priced("SELECT SUM(amount) FROM orders").parts[0].noised[0]
    coarse = priced(
        "SELECT SUM(amount) FROM orders", replace(ONE, epsilon=Fraction(1, 10**6))
    ).parts[0]
    item = coarse.noised[0]
    assert isinstance(fine, Noised)
    assert isinstance(item, Noised)
    assert item.shift < fine.shift
    assert item.noise.standard_deviation() < 2.0**41
    steps = f"{float(Fraction(2) ** item.shift)!r}"
    assert f" * {steps}" in text_of(coarse)


def test_weights_are_no_finer_than_the_noise() -> None:
    small = replace(ONE, epsilon=Fraction(1, 10**6))
    part = priced("SELECT channel, COUNT(*) FROM orders GROUP BY channel", small).parts[0]
    assert part.bounding.name == "row weights"
    assert 0 < part.bounding.bits < 20
    assert f"{50 << part.bounding.bits} // count(*) AS weight" in text_of(part)


@pytest.mark.parametrize(
    "sql", [BY_CITY, BY_AMOUNT, "SELECT city, SUM(age), AVG(age) FROM customers GROUP BY city"]
)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_cost_is_what_was_asked_and_no_more(sql: str, mechanism: str) -> None:
    cost = priced(sql, replace(ONE, mechanism=mechanism)).cost  # type: ignore[arg-type]
    assert cost.epsilon == ONE.epsilon
    assert 0 < cost.threshold_delta <= cost.delta <= ONE.delta


def test_a_unit_of_one_group_is_selected_by_the_truncated_law() -> None:
    plan = priced(BY_CITY, replace(ONE, mechanism="laplace"))
    assert isinstance(noise(plan), TruncatedGeometric), (
        "a count of units is released as it selected"
    )
    plan = priced(
        "SELECT city, SUM(age) FROM customers GROUP BY city", replace(ONE, mechanism="laplace")
    )
    selection = plan.parts[0].selection
    assert selection is not None
    assert selection.shares is None
    assert isinstance(selection.units.noise, TruncatedGeometric)


REACHED = mpmath.mp.clone()
REACHED.dps = 40


def reached(law: object, least: int) -> mpmath.mpf:
    """P(X >= least), by the law itself."""
    if isinstance(law, DiscreteLaplace):
        q = REACHED.exp(-REACHED.mpf(law.scale.denominator) / law.scale.numerator)
        return q**least / (1 + q)
    assert isinstance(law, DiscreteGaussian)
    double = 2 * REACHED.mpf(law.variance.numerator) / law.variance.denominator
    weights = [REACHED.exp(-x * x / double) for x in range(least + int(40 * REACHED.sqrt(double)))]
    return REACHED.fsum(weights[least:]) / (2 * REACHED.fsum(weights) - 1)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("sql", "size"), [
    (BY_AMOUNT, 1), (BY_AMOUNT, 2), (BY_AMOUNT, 3), (BY_CITY, 2), (BY_CITY, 5),
])  # fmt: skip
def test_a_group_of_one_household_is_shown_with_the_probability_delta(
    sql: str, size: int, mechanism: str
) -> None:
    """All of a household may be in each of its groups, which then has ``size`` units.

    It catches a threshold that is for a single unit, or that is one too low or too high.
    """
    wanted = replace(ONE, mechanism=mechanism, sizes={"customer": size})  # type: ignore[arg-type]
    [part] = priced(sql, wanted).parts
    selection = part.selection
    assert selection is not None
    assert part.bounding.size == size
    groups, law = part.bounding.groups * size, selection.units.noise

    def shown(threshold: int) -> mpmath.mpf:
        return 1 - (1 - reached(law, threshold - size)) ** groups

    delta = float(part.share.selection_delta)
    assert shown(selection.threshold) <= delta < shown(selection.threshold - 1)


def test_a_plan_without_private_tables_is_free() -> None:
    plan = priced("SELECT country FROM countries")
    assert plan.cost.epsilon == 0
    assert plan.parts == ()


def test_too_many_public_groups_are_refused_and_far_too_many_are_not_listed() -> None:
    world = World("oracle", "shop", lambda t: t + "limits: {max_cells: 100}\n")
    here = opened(world)
    session = here.session()
    with pytest.raises(Refused) as caught:
        session.prepare("SELECT placed, COUNT(*) FROM orders GROUP BY placed")
    assert caught.value.code == "DP502"
    plan = plan_of(
        "SELECT started, seconds, COUNT(*) FROM visits WHERE seconds < 3000 GROUP BY DATE_TRUNC('minute', started), started, seconds",
        SHOP,
    )
    assert plan.measurements[0].cells is None
    assert cells.TooManyCells(7).count == 7


def total(low: Fraction, high: Fraction, *, whole: bool = False) -> Total:
    return Total(integer(1), low, high, whole=whole)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-1, 1), (10**9, 10**9 + 1), (-(10**12), 5), (-7, -3), (0, 0)]
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_grid_holds_its_bounds(low: int, high: int, *, whole: bool) -> None:
    at = grid(total(Fraction(low), Fraction(high), whole=whole))
    step = Fraction(2) ** at.shift
    assert at.low <= low * step
    assert at.high >= high * step
    assert max(abs(at.low), abs(at.high)) <= 2**42 + 1
    assert at.reach >= max(abs(low), abs(high)) * step or (low, high) == (0, 0)


@pytest.mark.parametrize(
    "size",
    [Fraction(1, 10**30), Fraction(1, 10**9), Fraction(1, 3), Fraction(10**30), Fraction(2) ** 300],
)
def test_grids_of_any_size_are_about_as_fine(size: Fraction) -> None:
    at = grid(total(-size, size))
    assert 2**18 <= at.high <= 2**43
    assert Grid(0, -5, 3, 1).reach == 6


UNITS = "SELECT placed, COUNT(*), COUNT(DISTINCT customer_id) FROM orders GROUP BY placed"


def test_candidates_bound_what_is_declared() -> None:
    """Nothing is emitted that metadata makes unnecessary."""
    single = plan_of(COUNT, SHOP).measurements[0]
    assert [b.name for b in candidates(single, 3, 1)] == ["one row per unit"]
    alone = plan_of("SELECT COUNT(*) FROM orders", SHOP).measurements[0]
    assert [b.name for b in candidates(alone, 3, 1)] == ["unit totals"]
    lines = plan_of("SELECT quantity, COUNT(*) FROM lineitem GROUP BY quantity", FAR).measurements[
        0
    ]
    assert {b.name for b in candidates(lines, 3, 1)} == {"row weights", "norm clip", "group caps"}
    units = plan_of(UNITS, SHOP).measurements[0]
    assert [b.name for b in candidates(units, 3, 1)] == [
        "group caps",
        "vector clip",
        "vector clip",
        "weights and groups",
    ]
    assert {b.groups for b in candidates(units, 3, 1)} == {50, 731}
    assert {b.size for b in candidates(lines, 3, 4)} == {4}


@pytest.mark.parametrize("strategy", [s.name for s in STRATEGIES])
def test_an_audit_may_ask_for_a_way_to_bound(strategy: str) -> None:
    """Where it is no candidate, what is predicted to err least is taken."""
    plan = plan_of("SELECT quantity, COUNT(*) FROM lineitem GROUP BY quantity", FAR)
    names = {b.name for b in candidates(plan.measurements[0], 3, 1, asked=strategy)}
    (part,) = price(plan, replace(ONE, bounding=strategy)).parts
    usual = price(plan, ONE).parts[0].bounding.name
    assert part.bounding.name == (strategy if strategy in names else usual)


def test_less_error_than_can_be_seen_is_no_reason_for_another_bounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A count that is exact either way leaves the choice to the sum beside it."""
    text = "SELECT channel, COUNT(*), SUM(amount) FILTER (WHERE amount > 9) FROM orders GROUP BY 1"
    much = Request(Fraction(10**9), Fraction(0), groups=1000)
    assert priced(text, much).parts[0].bounding.name == "row weights"
    monkeypatch.setattr("dpsql.price.price._unseen", lambda _: 1e-12)
    assert priced(text, much).parts[0].bounding.name == "group caps"


def test_sensitivities_count_all_units_that_are_one() -> None:
    caps = GroupCaps(groups=2, limit=True, per_group=3, size=5)
    assert sensitivity(Rows(), 7, caps).l1 == 2 * 3 * 7 * 5
    assert sensitivity(Units(), 1, caps).l1 == 2 * 5
    assert sensitivity(Units(), 1, caps).l2_squared == 2 * 25
    clip = NormClip(groups=4, norm=Fraction(3, 2))
    assert sensitivity(Rows(), 1, clip).l2_squared == Fraction(9, 4)


def test_sums_over_public_groups_leave_out_no_group() -> None:
    text = "SELECT placed, COUNT(amount), SUM(amount) FROM orders GROUP BY placed"
    (part,) = priced(text).parts
    assert part.bounding.name == "row weights"
    names = {b.name for b in candidates(part.measurement, 3, 1)}
    assert names == {"row weights", "group caps"}
