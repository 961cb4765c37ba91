"""What an account reports against dp-accounting, on lists of events drawn at random."""

from __future__ import annotations

import math
import random  # noqa: TID251 (draws for a test, the same each time)
from fractions import Fraction

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from ledger_world import make_account

from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import Charge
from dpsql.privacy.events import Event, GaussianEvent, LaplaceEvent, cost_of

DELTA = Fraction(1, 10**5)


def drawn(chance: random.Random) -> Event:
    sensitivity = chance.randint(1, 4)
    if chance.random() < 0.5:
        return LaplaceEvent(Fraction(sensitivity), Fraction(chance.randint(5, 200)))
    return GaussianEvent(Fraction(sensitivity**2), Fraction(chance.randint(10, 400) ** 2))


def loss(event: Event) -> pld.PrivacyLossDistribution:
    options = {"value_discretization_interval": 2e-3, "pessimistic_estimate": False}
    if isinstance(event, LaplaceEvent):
        return pld.from_discrete_laplace_mechanism(
            1 / float(event.scale), sensitivity=int(event.l1), **options
        )
    assert isinstance(event, GaussianEvent)
    deviation = math.sqrt(float(event.variance))
    return pld.from_discrete_gaussian_mechanism(
        deviation, sensitivity=math.isqrt(int(event.l2_squared)), **options
    )


def check(seed: int) -> float:
    """How much more the account reports than the true value; never less than 1."""
    chance = random.Random(seed)
    events = [drawn(chance) for _ in range(chance.randint(2, 12))]
    spent = sum((Charge.of(cost_of(event)) for event in events), Charge())
    balance = Balance(make_account("dataset", 100, DELTA), spent)
    epsilon, delta = balance.guarantee
    together = loss(events[0])
    for event in events[1:]:
        together = together.compose(loss(event))
    true = together.get_epsilon_for_delta(float(delta))
    assert epsilon >= Fraction(true), (seed, float(epsilon), true)
    return float(epsilon) / true if true else 1.0


def test_no_report_is_below_the_true_value():
    assert max(check(seed) for seed in range(25)) > 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_report_of_a_thousand_is_below_the_true_value():
    found = sorted(check(seed) for seed in range(1000))
    assert found[0] >= 1
