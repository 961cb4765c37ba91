"""The admission rule at its edges, and what accounts say about themselves."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_world import make_account, pure

from dpsql.diagnostics.refusal import OutOfBudget
from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import ATTO, LARGEST, NANO, Charge
from dpsql.ledger.filter import admits, basic_delta, rho_limit, threshold_delta
from dpsql.ledger.query_cap import QueryCap
from dpsql.ledger.shortage import check_cap, less, more, out_of_budget
from dpsql.privacy.cost import Cost

BASIC = replace(make_account(epsilon=1, delta="1e-6"), zcdp=False)
PURE = make_account(epsilon=1)
ZCDP = make_account(epsilon=1, delta="1e-6")
MICRO = ATTO // 10**6


def test_charges_round_up_and_are_never_negative():
    cost = Cost(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
    third = Charge(333333334, 333333333333333334, 333333334, 333333333333333334)
    assert Charge.of(cost) == third
    assert Charge.of(Cost(epsilon=Fraction(1, 2))) == Charge(epsilon=NANO // 2)
    forged = Cost()
    object.__setattr__(forged, "epsilon", Fraction(-1))
    with pytest.raises(ValueError, match="never negative"):
        Charge.of(forged)


@pytest.mark.parametrize(
    ("account", "total", "expected"),
    [
        (PURE, Charge(epsilon=NANO, rho=10**12), True),
        (PURE, Charge(epsilon=NANO + 1), False),
        (PURE, Charge(epsilon=1, delta=1), False),
        (BASIC, Charge(NANO, MICRO, 10**12, MICRO), True),
        (BASIC, Charge(NANO, MICRO + 1), False),
        (BASIC, Charge(NANO + 1, 0), False),
        (ZCDP, Charge(NANO, MICRO // 2, 10**12, MICRO), True),
        (ZCDP, Charge(NANO, MICRO // 2 + 1, 10**12), False),
        (ZCDP, Charge(9 * NANO, ATTO, rho_limit(ZCDP), MICRO // 4), True),
        (ZCDP, Charge(9 * NANO, ATTO, rho_limit(ZCDP) + 1, MICRO // 4), False),
        (ZCDP, Charge(9 * NANO, ATTO, rho_limit(ZCDP), MICRO // 4 + 1), False),
        (make_account(epsilon=10**9), Charge(epsilon=10**9 * NANO), True),
        (make_account(epsilon=10**9, delta="0.1"), Charge(LARGEST + 1), False),
    ],
)
def test_the_rule(account, total, expected):
    assert admits(account, total) is expected


def test_an_account_without_room_for_a_quarter_of_delta_does_not_compose_in_rho():
    assert rho_limit(make_account(epsilon=1, delta="3e-18")) == -1
    assert rho_limit(make_account(epsilon=0, delta="1e-6")) == -1
    assert Balance(PURE, Charge()).rho is None


spendings = st.builds(
    Charge,
    epsilon=st.integers(0, 3 * NANO),
    delta=st.integers(0, 2 * MICRO),
    rho=st.integers(0, NANO // 40),
    threshold=st.integers(0, MICRO // 2),
)


@given(st.sampled_from([PURE, BASIC, ZCDP, make_account(epsilon=30, delta="1e-3")]), spendings)
def test_what_is_left_is_admitted_and_nothing_more(account, spent):
    balance = Balance(account, spent)
    epsilon, delta = balance.left
    assert epsilon >= 0 <= delta
    if epsilon:
        assert admits(account, spent + Charge.of(pure(epsilon)))
    assert not admits(account, spent + Charge.of(pure(epsilon + Fraction(1, NANO))))
    if delta:
        assert admits(account, spent + Charge.of(Cost(delta=delta, threshold_delta=delta)))


FULL = make_account(epsilon=10**9, delta="0.1")
"""An epsilon whose sums come near the 64 bits of a store."""
NARROW = make_account(epsilon="0.01", delta="0.4")
"""By rho alone it would admit a query that costs more than its whole epsilon."""


def _edges(account, *, lowest):
    """Spendings just below, at and above every limit of an account, in every combination."""
    limits = (account.epsilon, basic_delta(account), rho_limit(account), threshold_delta(account))
    sides = [sorted({max(0, n + d) for d in (-1, 0, 1)} | {lowest}) for n in limits]
    return [Charge(*numbers) for numbers in itertools.product(*sides)]


@pytest.mark.parametrize("account", [PURE, BASIC, ZCDP, FULL, NARROW])
def test_what_is_left_at_the_edges_of_every_limit(account):
    """The largest epsilon and the largest delta that are admitted, and no more than it has in all.

    It catches each limit that is forgotten, or taken for reached one step too early or too late.
    """
    for spent in [*_edges(account, lowest=0), Charge(epsilon=LARGEST - 5)]:
        epsilon, delta = Balance(account, spent).left
        total, _ = Balance(account, Charge()).total
        assert 0 <= epsilon <= total
        assert epsilon == 0 or admits(account, spent + Charge.of(pure(epsilon))), spent
        more = spent + Charge.of(pure(epsilon + Fraction(1, NANO)))
        assert epsilon == total or not admits(account, more), spent
        largest = int(delta * ATTO)
        one_more = spent + Charge(delta=largest + 1, threshold=largest + 1)
        assert delta >= 0
        assert delta == 0 or admits(account, spent + Charge(delta=largest, threshold=largest)), (
            spent
        )
        assert not admits(account, one_more), spent


@pytest.mark.parametrize(
    ("account", "spent", "left"),
    [
        (PURE, Charge(epsilon=2 * NANO), 0),
        (BASIC, Charge(NANO // 4, MICRO), Fraction(3, 4)),
        (BASIC, Charge(NANO // 4, MICRO + 1), 0),
        (ZCDP, Charge(NANO // 4, MICRO // 2, rho_limit(ZCDP)), Fraction(3, 4)),
        (ZCDP, Charge(NANO // 4, MICRO, rho_limit(ZCDP)), 0),
        (ZCDP, Charge(NANO, 0, rho_limit(ZCDP) - NANO // 200, MICRO // 4), Fraction(1, 10)),
        (ZCDP, Charge(NANO, 0, rho_limit(ZCDP) - NANO // 200, MICRO // 4 + 1), 0),
        (NARROW, Charge(NANO // 200), Fraction(1, 100)),
        (FULL, Charge(LARGEST - 5), Fraction(5, NANO)),
    ],
)  # fmt: skip
def test_how_much_is_left(account, spent, left):
    """A query of epsilon 0.1 has rho a little below 0.005."""
    assert float(Balance(account, spent).left[0]) == pytest.approx(float(left), rel=2e-3)


def test_a_basic_account_states_the_sums():
    assert Balance(BASIC, Charge(NANO // 2, MICRO, 10**6)).guarantee == (
        Fraction(1, 2),
        Fraction(1, 10**6),
    )


def test_a_zcdp_account_states_the_better_guarantee():
    one = Charge.of(pure("0.01"))
    few = Balance(ZCDP, Charge(*(3 * n for n in one.numbers)))
    assert few.guarantee == (Fraction(3, 100), 0)
    many = Balance(ZCDP, Charge(*(400 * n for n in one.numbers)))
    epsilon, delta = many.guarantee
    assert Fraction(9, 10) < epsilon <= 1
    assert delta == Fraction(1, 4 * 10**6)
    assert many.rho == (Fraction(400 * one.rho, NANO), Fraction(rho_limit(ZCDP), NANO))
    assert many.total == (1, Fraction(1, 10**6))


def test_the_account_with_the_least_left_speaks():
    dataset = Balance(make_account(epsilon=20), Charge(epsilon=20 * NANO - 1))
    role = Balance(make_account("role:growth", 3), Charge.of(pure("2.68")))
    refused = out_of_budget([role], Charge.of(pure("0.5")))
    assert refused is not None
    assert refused.headline == ('this query costs epsilon 0.5 and role "growth" has 0.32 left of 3')
    assert refused.code == "DP402"
    assert refused.instead == "SET dpsql.epsilon = 0.32"
    refused = out_of_budget([dataset, role], Charge.of(pure("0.5")))
    assert refused.headline == ("this query costs epsilon 0.5 and the dataset has 1e-9 left of 20")


def test_an_exhausted_account_says_who_can_help():
    spent = Charge(epsilon=NANO)
    for_ever = out_of_budget([Balance(PURE, spent)], Charge.of(pure(1)))
    assert for_ever.instead == "Ask the owner of the policy to raise the limit of the dataset."
    renewed = make_account("role:growth", 1, renews=datetime(2026, 12, 1, tzinfo=UTC))
    month = out_of_budget([Balance(renewed, spent)], Charge.of(pure(1)))
    assert month.instead == 'Wait until 2026-12-01, when role "growth" is renewed.'


def test_a_closed_account_says_what_opens_it():
    """A higher limit does not: only a window that begins after the restore."""
    for_ever = out_of_budget([Balance(PURE, Charge(), closed=True)], Charge.of(pure(1)))
    assert "raise the limit" not in for_ever.instead
    assert "the dataset has no window" in for_ever.instead
    assert "`per: month`" in for_ever.instead
    renewed = make_account("role:growth", 1, renews=datetime(2026, 12, 1, tzinfo=UTC))
    month = out_of_budget([Balance(renewed, Charge(), closed=True)], Charge.of(pure(1)))
    assert month.instead == 'Wait until 2026-12-01, when role "growth" is renewed.'


@pytest.mark.parametrize(
    ("account", "spent", "charge", "says"),
    [
        (PURE, Charge(), Charge(delta=MICRO), "delta 1e-6 and the dataset has 0 left of 0"),
        (ZCDP, Charge(), Charge(delta=MICRO, rho=NANO), "delta 1e-6 and the dataset has 5e-7 left"),
        (
            ZCDP,
            Charge(NANO, 0, 0, MICRO // 5),
            Charge(1, MICRO, 1, MICRO // 10),
            "delta 1e-7 and the dataset has 5e-8 left of 1e-6",
        ),
        (
            ZCDP,
            Charge(NANO, 0, 10**7),
            Charge(NANO // 100, 1, NANO // 10),
            "rho 0.1 and the dataset has 0.0116 left of 0.0216",
        ),
    ],
)
def test_the_quantity_that_is_short_is_named(account, spent, charge, says):
    assert says in out_of_budget([Balance(account, spent)], charge).headline


def test_one_query_may_not_cost_more_than_its_cap():
    limit = QueryCap(Fraction(1, 10), Fraction(1, 10**8))
    check_cap(limit, Cost(Fraction(1, 10), Fraction(1, 10**8)))
    with pytest.raises(OutOfBudget, match=r"DP403.*epsilon 0\.101 and one query may cost 0\.1"):
        check_cap(limit, Cost(Fraction(101, 1000)))
    with pytest.raises(OutOfBudget, match=r"DP403.*delta 2e-8 and one query may cost 1e-8"):
        check_cap(limit, Cost(Fraction(1, 10), Fraction(2, 10**8)))


@given(st.fractions(min_value=0, max_value=10**10))
def test_shown_numbers_never_flatter(number):
    assert Fraction(less(number)) <= number <= Fraction(more(number))
