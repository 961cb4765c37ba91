from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from dp_accounting.pld import common as pld_common
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from dpsql.privacy.accounting import (
    epsilon_of_zcdp,
    gaussian_rho_for_query,
    pure_for_rho,
    rho_for,
    rho_of_exponential,
    rho_of_pure,
)

mp = mpmath.mp.clone()
mp.dps = 40
EPSILONS = [Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2), Fraction(3), Fraction(10**9)]
DELTAS = [Fraction(1, 10**15), Fraction(1, 10**6), Fraction(1, 10)]


def _real(value: Fraction) -> mpmath.mpf:
    return mp.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_of_pure_is_just_above_its_formula(epsilon: Fraction) -> None:
    truth = _real(epsilon) * mp.tanh(_real(epsilon) / 2)
    assert truth <= _real(rho_of_pure(epsilon)) <= truth * (1 + mp.mpf(10) ** -18)


@given(st.integers(-40, 40), st.fractions(Fraction(1, 10), 1))
def test_pure_for_rho_is_just_below_the_largest_epsilon(power: int, part: Fraction) -> None:
    """From noise that nobody can see through to noise that is none."""
    rho = part * Fraction(2) ** power
    epsilon = pure_for_rho(rho)
    assert rho_of_pure(epsilon) <= rho
    assert rho_of_pure(epsilon * (1 + Fraction(1, 10**10))) > rho


def test_pure_for_rho_does_not_depend_on_floats() -> None:
    """Each rho is a little less than that of an epsilon, and equal to it as a float."""
    for thousandths in range(1, 200):
        epsilon = Fraction(thousandths, 1000)
        rho = rho_of_pure(epsilon) - Fraction(1, 10**40)
        assert float(rho) == float(rho_of_pure(epsilon))
        assert epsilon * (1 - Fraction(1, 10**10)) < pure_for_rho(rho) < epsilon


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1)])
def test_pure_for_rho_needs_a_rho(rho: Fraction) -> None:
    with pytest.raises(ValueError, match="rho must be above 0"):
        pure_for_rho(rho)


def _divergence(p: mpmath.mpf, q: mpmath.mpf, order: mpmath.mpf) -> mpmath.mpf:
    """The Renyi divergence of two coins."""
    total = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return mp.log(total) / (order - 1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_rho_of_pure_covers_randomised_response_at_every_order(epsilon: Fraction) -> None:
    p = 1 / (1 + mp.exp(-_real(epsilon)))
    orders = [1 + mp.exp(mp.mpf(k) / 4) for k in range(-60, 30)]
    ratios = [_divergence(p, 1 - p, order) / order for order in orders]
    assert max(ratios) <= _real(rho_of_pure(epsilon))
    assert max(ratios) > _real(rho_of_pure(epsilon)) * (1 - mp.mpf(10) ** -4)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(10)])
def test_rho_of_exponential_covers_bounded_range(epsilon: Fraction) -> None:
    """Coins whose log-ratios differ by epsilon are the extreme points of bounded range."""
    e = _real(epsilon)
    for step in range(1, 40):
        shift = e * step / 40  # log-ratios are shift and shift - epsilon
        p = (1 - mp.exp(shift - e)) / (1 - mp.exp(-e))
        q = p * mp.exp(-shift)
        for order in (1 + mp.exp(mp.mpf(k)) for k in range(-12, 7)):
            for one, two in ((p, q), (q, p)):
                assert _divergence(one, two, order) <= _real(rho_of_exponential(epsilon)) * order
    assert rho_of_exponential(epsilon) <= rho_of_pure(epsilon)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_and_epsilon_convert_back(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_for(epsilon, delta)
    assert rho > 0
    assert epsilon * (1 - Fraction(1, 10**9)) <= epsilon_of_zcdp(rho, delta) <= epsilon
    assert epsilon_of_zcdp(rho * (1 + Fraction(1, 10**6)), delta) > epsilon
    assert gaussian_rho_for_query(epsilon, delta) == rho


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=100),
    st.fractions(min_value=Fraction(1, 10**15), max_value=Fraction(1, 2)),
)
def test_conversions_are_monotone(rho: Fraction, delta: Fraction) -> None:
    assert epsilon_of_zcdp(rho, delta) <= epsilon_of_zcdp(rho * 11 / 10, delta)
    assert epsilon_of_zcdp(rho, delta / 2) >= epsilon_of_zcdp(rho, delta)


def test_the_conversion_is_the_infimum_over_orders() -> None:
    rho, delta = mp.mpf("0.3"), mp.mpf("1e-7")
    best = min(
        rho * a + mp.log(1 / (a * delta)) / (a - 1) + mp.log(1 - 1 / a)
        for a in (1 + mp.exp(mp.mpf(k) / 200) for k in range(-1000, 1000))
    )
    ours = _real(epsilon_of_zcdp(Fraction(3, 10), Fraction(1, 10**7)))
    assert ours <= best
    assert ours == pytest.approx(float(best), rel=1e-5)


def test_extremes_are_served() -> None:
    assert epsilon_of_zcdp(Fraction(1, 10**30), Fraction(1, 2)) == 0
    assert epsilon_of_zcdp(Fraction(10**320), Fraction(1, 2)) > 10**320
    assert rho_for(Fraction(1, 10**400), Fraction(1, 10**400)) == 0
    assert rho_for(Fraction(10**400), Fraction(1, 10)) < 10**400
    assert rho_of_pure(Fraction(1, 10**400)) == Fraction(1, 2 * 10**800)


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1)])
def test_parameters_out_of_range_are_refused(bad: Fraction) -> None:
    small = Fraction(1, 10)
    for call in (
        lambda: rho_of_pure(bad),
        lambda: rho_of_exponential(bad),
        lambda: epsilon_of_zcdp(bad, small),
        lambda: epsilon_of_zcdp(small, bad),
        lambda: epsilon_of_zcdp(small, 1 - bad),
        lambda: rho_for(bad, small),
        lambda: rho_for(small, bad),
    ):
        with pytest.raises(ValueError, match=r"epsilon|rho|delta"):
            call()


@pytest.mark.parametrize(("sigma", "times"), [(1.0, 1), (5.0, 1), (10.0, 30), (50.0, 400)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_gaussian_price_is_never_below_its_true_privacy_loss(
    sigma: float, times: int, delta: float
) -> None:
    """Against the privacy loss distribution, rounded optimistically: a bound from below."""
    loss = pld.from_gaussian_mechanism(
        sigma, value_discretization_interval=1e-3, pessimistic_estimate=False
    ).self_compose(times)
    truth = loss.get_epsilon_for_delta(delta)
    rho = Fraction(times) / (2 * Fraction(sigma) ** 2)
    ours = float(epsilon_of_zcdp(rho, Fraction(delta)))
    assert truth <= ours <= truth * 1.25
    assert float(epsilon_of_zcdp(rho * 4 / 10, Fraction(delta))) < truth  # planted fault


@pytest.mark.parametrize(("epsilon", "times"), [("0.1", 200), ("0.5", 100), ("1", 100)])
def test_laplace_price_is_never_below_its_true_privacy_loss(epsilon: str, times: int) -> None:
    loss = pld.from_discrete_laplace_mechanism(
        float(epsilon), value_discretization_interval=1e-4, pessimistic_estimate=False
    ).self_compose(times)
    truth = loss.get_epsilon_for_delta(1e-6)
    ours = float(epsilon_of_zcdp(times * rho_of_pure(Fraction(epsilon)), Fraction(1, 10**6)))
    assert truth <= ours <= truth * 1.2


def test_randomised_response_price_is_never_below_its_true_privacy_loss() -> None:
    parameters = pld_common.DifferentialPrivacyParameters(0.3, 0)
    loss = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-4)
    truth = loss.self_compose(50).get_epsilon_for_delta(1e-6)
    ours = float(epsilon_of_zcdp(50 * rho_of_pure(Fraction(3, 10)), Fraction(1, 10**6)))
    assert truth <= ours <= truth * 1.2
    assert math.isfinite(ours)
