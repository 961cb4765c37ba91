from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from noise_streams import Seeded

from dpsql.privacy.accounting import delta_per_group
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    TruncatedGeometric,
    gaussian_for,
    gaussian_threshold,
    laplace_for,
    laplace_threshold,
    truncated_geometric_for,
)

mp = mpmath.mp.clone()
mp.dps = 40
MECHANISMS: list[Mechanism] = [
    DiscreteLaplace(Fraction(1, 3)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(77, 2)),
    DiscreteGaussian(Fraction(1, 4)),
    DiscreteGaussian(Fraction(7, 3)),
    DiscreteGaussian(Fraction(100)),
    DiscreteGaussian(Fraction(101)),
    DiscreteGaussian(Fraction(10_000)),
    DiscreteGaussian(Fraction(10_001)),
    TruncatedGeometric(Fraction(1), 14),
    TruncatedGeometric(Fraction(1, 10), 109),
    TruncatedGeometric(Fraction(1, 1000), 5),
    TruncatedGeometric(Fraction(3), 0),
]


def _law(mechanism: Mechanism) -> dict[int, mpmath.mpf]:
    """P(abs(X) = x)."""
    match mechanism:
        case DiscreteLaplace(scale):
            weights = [mp.exp(-x / _real(scale)) for x in range(int(60 * scale) + 60)]
        case DiscreteGaussian(variance):
            reach = int(14 * math.sqrt(variance)) + 14
            weights = [mp.exp(-mp.mpf(x * x) / (2 * _real(variance))) for x in range(reach)]
        case TruncatedGeometric(epsilon, bound):
            weights = [mp.exp(-x * _real(epsilon)) for x in range(bound + 1)]
    total = 2 * mp.fsum(weights) - weights[0]
    return {x: (2 if x else 1) * w / total for x, w in enumerate(weights)}


def _real(value: Fraction) -> mpmath.mpf:
    return mp.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_spread_is_that_of_the_law(mechanism: Mechanism) -> None:
    law = _law(mechanism)
    deviation = mp.sqrt(mp.fsum(x * x * p for x, p in law.items()))
    mean = mp.fsum(x * p for x, p in law.items())
    assert mechanism.standard_deviation() == pytest.approx(float(deviation), rel=1e-12, abs=1e-15)
    assert mechanism.mean_absolute_error() == pytest.approx(float(mean), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9])
def test_half_width_is_the_smallest_that_covers(mechanism: Mechanism, confidence: float) -> None:
    law, width = _law(mechanism), mechanism.half_width(confidence)
    covered = mp.fsum(p for x, p in law.items() if x <= width)
    assert covered > confidence - mp.mpf(10) ** -20
    assert width == 0 or covered - law[width] < confidence


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_draws_follow_the_mechanism(mechanism: Mechanism) -> None:
    draws = mechanism.sample(Seeded(11), 20_000)
    assert draws.std() == pytest.approx(mechanism.standard_deviation(), rel=0.08)
    assert (abs(draws) <= mechanism.half_width()).mean() > 0.94


def test_extremes_are_fast_and_finite() -> None:
    tiny, huge = Fraction(1, 10**400), Fraction(2**40)
    assert DiscreteLaplace(tiny).standard_deviation() == 0
    assert DiscreteGaussian(tiny).standard_deviation() == 0
    assert DiscreteGaussian(tiny).mean_absolute_error() == 0
    assert TruncatedGeometric(1 / tiny, 3).standard_deviation() < 1e-100
    assert TruncatedGeometric(1 / tiny, 3).mean_absolute_error() < 1e-100
    for mechanism in (
        DiscreteLaplace(tiny),
        DiscreteGaussian(tiny),
        TruncatedGeometric(1 / tiny, 3),
    ):
        assert mechanism.half_width() == 0
    assert DiscreteLaplace(huge).half_width() == math.ceil(-math.log(0.05) * 2**40) - 1
    assert DiscreteGaussian(huge**2).half_width() / 2**40 == pytest.approx(1.959964, rel=1e-6)
    assert DiscreteGaussian(huge**2).half_width(0.3) / 2**40 == pytest.approx(0.38532, rel=1e-5)
    wide = TruncatedGeometric(1 / huge, 2**62)
    assert wide.standard_deviation() == pytest.approx(math.sqrt(2) * 2**40, rel=1e-9)


def test_names() -> None:
    assert [kind.name for kind in (DiscreteLaplace, DiscreteGaussian, TruncatedGeometric)] == [
        "laplace", "gaussian", "truncated geometric",
    ]  # fmt: skip


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_confidences_out_of_range_are_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        DiscreteLaplace(Fraction(1)).half_width(confidence)


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1)])
def test_parameters_out_of_range_are_refused(bad: Fraction) -> None:
    one, small = Fraction(1), Fraction(1, 100)
    for make in (
        lambda: laplace_for(bad, one),
        lambda: laplace_for(1, bad),
        lambda: gaussian_for(bad, one),
        lambda: gaussian_for(1, bad),
        lambda: truncated_geometric_for(bad, small),
        lambda: truncated_geometric_for(one, bad),
        lambda: truncated_geometric_for(one, one - bad),
        lambda: TruncatedGeometric(bad, 1),
        lambda: TruncatedGeometric(one, -1),
        lambda: DiscreteLaplace(bad),
        lambda: DiscreteGaussian(bad),
        lambda: laplace_threshold(bad, small, 1),
        lambda: gaussian_threshold(bad, small, 1),
        lambda: laplace_threshold(one, bad, 1),
        lambda: gaussian_threshold(one, small, 0),
    ):
        with pytest.raises(ValueError, match=r"above 0|no truncated|noise|delta|group"):
            make()


def test_scales_come_from_privacy_parameters() -> None:
    assert laplace_for(Fraction(3, 2), Fraction(1, 7)) == DiscreteLaplace(Fraction(21, 2))
    assert gaussian_for(5, Fraction(1, 8)) == DiscreteGaussian(Fraction(20))


SPLITS = [
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 10), Fraction(1, 10**6)),
    (Fraction(1), Fraction(1, 100)),
    (Fraction(1, 2), Fraction(1, 10**4)),
    (Fraction(1, 1000), Fraction(1, 3)),
    (Fraction(5), Fraction(1, 10**9)),
]


def _hockey_stick(epsilon: Fraction, bound: int) -> mpmath.mpf:
    """The exact delta of showing count + X above ``bound``, over all neighbouring counts."""
    growth = mp.exp(_real(epsilon))
    weights = {x: growth ** -abs(x) for x in range(-bound, bound + 1)}
    total = mp.fsum(weights.values())

    def shown(count: int) -> dict[int | None, mpmath.mpf]:
        law: dict[int | None, mpmath.mpf] = {None: mp.mpf(0 if count else 1)}
        for x, weight in weights.items() if count else ():
            key = count + x if count + x > bound else None
            law[key] = law.get(key, mp.mpf(0)) + weight / total
        return law

    worst = mp.mpf(0)
    for count in range(3 * bound + 3):
        one, two = shown(count), shown(count + 1)
        for p, q in ((one, two), (two, one)):
            excess = (v - growth * q.get(k, mp.mpf(0)) for k, v in p.items())
            worst = max(worst, mp.fsum(e for e in excess if e > 0))
    return worst


@pytest.mark.parametrize(("epsilon", "delta"), SPLITS)
def test_truncated_geometric_has_its_delta_and_one_less_has_not(
    epsilon: Fraction, delta: Fraction
) -> None:
    bound = truncated_geometric_for(epsilon, delta).bound
    assert _hockey_stick(epsilon, bound) <= _real(delta)
    assert bound == 0 or _hockey_stick(epsilon, bound - 1) > _real(delta)


def test_truncated_geometric_at_the_ends() -> None:
    assert truncated_geometric_for(Fraction(10**9), Fraction(1, 10**6)).bound == 1
    assert truncated_geometric_for(Fraction(1, 10**6), Fraction(1, 10**15)).bound == 20030119
    assert truncated_geometric_for(Fraction(1), Fraction(99, 100)).bound == 1


@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 10**15), Fraction(2, 3)])
@pytest.mark.parametrize("groups", [1, 3, 100])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(300, 7)])
def test_laplace_threshold_is_the_smallest_that_holds(
    scale: Fraction, delta: Fraction, groups: int
) -> None:
    threshold = laplace_threshold(scale, delta, groups)
    q = mp.exp(-1 / _real(scale))

    def leaks(t: int) -> mpmath.mpf:
        alone = q ** (t - 1) / (1 + q)
        return 1 - (1 - alone) ** groups

    assert leaks(threshold) <= _real(delta) * (1 + mp.mpf(10) ** -20)
    assert threshold == 1 or leaks(threshold - 1) > _real(delta)


@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 10**15), Fraction(2, 3)])
@pytest.mark.parametrize("groups", [1, 3, 100])
@pytest.mark.parametrize(
    "variance", [Fraction(1, 4), Fraction(1), Fraction(50), Fraction(256), Fraction(1000)]
)
def test_gaussian_threshold_is_the_smallest_that_holds(
    variance: Fraction, delta: Fraction, groups: int
) -> None:
    threshold = gaussian_threshold(variance, delta, groups)
    law = _law(DiscreteGaussian(variance))

    def leaks(t: int) -> mpmath.mpf:
        alone = mp.fsum(p / 2 for x, p in law.items() if x >= t - 1)
        return 1 - (1 - alone) ** groups

    assert leaks(threshold) <= _real(delta) * (1 + mp.mpf(10) ** -19)
    assert threshold == 2 or leaks(threshold - 1) > _real(delta)


def test_gaussian_thresholds_of_wide_noise() -> None:
    assert gaussian_threshold(Fraction(2**80), Fraction(1, 10**9), 10) / 2**40 == pytest.approx(
        6.3613, rel=1e-4
    )
    assert gaussian_threshold(Fraction(300), Fraction(1, 10**310), 1) > 600


@pytest.mark.parametrize("groups", [1, 2, 1000, 10**9])
@pytest.mark.parametrize("delta", [Fraction(1, 10**15), Fraction(1, 10**6), Fraction(9, 10)])
def test_delta_of_one_group_is_below_and_near_its_share(delta: Fraction, groups: int) -> None:
    share = delta_per_group(delta, groups)
    with mp.workdps(60):
        together = 1 - (1 - _real(share)) ** groups
        assert together <= _real(delta) * (1 + mp.mpf(10) ** -50)
        assert together >= _real(delta) * (1 - mp.mpf(10) ** -18)
