"""What one query may cost: as an epsilon, as a share of a session's rho, or as both."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.services import noon, policy

from dpsql.diagnostics.refusal import OutOfBudget
from dpsql.ledger.accounts import Account, accounts_for
from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import NANO, Charge
from dpsql.ledger.filter import rho_limit, rho_limit_of
from dpsql.ledger.query_cap import QueryCap, cap_of
from dpsql.ledger.shortage import check_cap
from dpsql.ledger.terms import find_loosened_terms, terms_of
from dpsql.policy.model import MECHANISMS, Allowance, QueryLimit, QueryShare, Role
from dpsql.privacy.accounting import epsilon_of_zcdp, pure_for_rho, rho_of_pure
from dpsql.privacy.cost import Cost

TEN = Allowance(Fraction(10), Fraction(1, 10**6), "zcdp")


def role(query: QueryLimit | QueryShare, session: Allowance = TEN) -> Role:
    return Role("analyst", session, session, query)


def share(parts: int, session: Allowance = TEN) -> Role:
    return role(QueryShare(Fraction(1, parts), session.delta / parts), session)


def test_a_cap_in_epsilon_is_what_the_policy_says() -> None:
    cap = cap_of(role(QueryLimit(Fraction(1, 2), Fraction(1, 10**8))))
    assert cap == QueryCap(Fraction(1, 2), Fraction(1, 10**8), None)
    assert cap.label == Fraction(1, 2)
    assert cap.dearest == Cost(Fraction(1, 2), rho=rho_of_pure(Fraction(1, 2)))


def test_a_share_is_of_the_rho_that_the_session_s_account_admits() -> None:
    cap = cap_of(share(100))
    [*_, session] = accounts_for(
        policy(
            "shop", "shop", lambda t: t.replace("session: {epsilon: 1}", "session: {epsilon: 5}")
        ),
        "analyst",
        now=noon(),
    )
    limit = rho_limit(replace(session, epsilon=10 * NANO))
    assert limit == rho_limit_of(TEN)
    assert cap.rho == Fraction(limit // 100, NANO)
    assert cap.epsilon is None
    assert cap.delta == Fraction(1, 10**8)
    assert cap.label >= epsilon_of_zcdp(cap.rho, cap.delta)


def test_an_account_that_adds_epsilons_has_no_rho() -> None:
    assert rho_limit_of(replace(TEN, composition="basic")) == 0
    assert rho_limit_of(replace(TEN, delta=Fraction(3, 10**18))) == 0


@given(
    st.fractions(Fraction(1, 2), 50, max_denominator=1000),
    st.fractions(Fraction(1, 10**9), Fraction(1, 100), max_denominator=10**12),
    st.integers(2, 1000),
)
def test_a_session_admits_as_many_questions_as_its_shares(
    epsilon: Fraction, delta: Fraction, parts: int
) -> None:
    """With a selection of groups in each of them, and not one more."""
    analyst = share(parts, Allowance(epsilon, delta, "zcdp"))
    cap = cap_of(analyst)
    assert cap.rho is not None
    dear = Charge.of(Cost(2 * epsilon, cap.delta, cap.rho, cap.delta / 4))
    account = replace(_account(), epsilon=int(epsilon * NANO), delta=int(delta * 10**18))

    def spent(count: int) -> Charge:
        return Charge(*(count * number for number in dear.numbers))

    assert Balance(account, spent(parts - 1)).admits(dear)
    if dear.rho > parts:  # what is lost by rounding to billionths is less than one question
        assert not Balance(account, spent(parts)).admits(dear)


def _account() -> Account:
    return accounts_for(policy("shop", "shop"), "analyst", now=noon())[0]


def test_the_lower_cap_keeps_both() -> None:
    one = QueryCap(Fraction(1), Fraction(1, 10**8))
    two = QueryCap(None, Fraction(1, 10**9), Fraction(1, 100))
    three = QueryCap(Fraction(1, 2), Fraction(1, 10**7), Fraction(1, 1000))
    assert one.lower(two) == two.lower(one) == QueryCap(Fraction(1), Fraction(1, 10**9), two.rho)
    assert one.lower(three) == QueryCap(Fraction(1, 2), Fraction(1, 10**8), Fraction(1, 1000))
    assert two.lower(three).rho == Fraction(1, 1000)
    assert one.lower(one) == one
    both = QueryCap(Fraction(1, 10), Fraction(1, 10**8), Fraction(1, 100))
    assert both.dearest == Cost(Fraction(1, 10), Fraction(1, 10**8), Fraction(1, 100))
    assert two.dearest == Cost(two.label, two.delta, Fraction(1, 100))
    assert two.label > pure_for_rho(Fraction(1, 100))


def test_a_query_above_the_share_is_refused_with_an_epsilon_that_is_not() -> None:
    cap = QueryCap(None, Fraction(1, 10**8), Fraction(1, 1000))
    check_cap(cap, Cost(Fraction(9), rho=Fraction(1, 1000)))
    with pytest.raises(
        OutOfBudget, match=r"DP403.*rho 0\.00201 and one query may cost 0\.001"
    ) as e:
        check_cap(cap, Cost(Fraction(9), rho=Fraction(2001, 10**6)))
    said = Fraction(e.value.instead.removeprefix("SET dpsql.epsilon = "))
    assert 2 * rho_of_pure(said) <= Fraction(1, 1000)
    with pytest.raises(OutOfBudget, match=r"DP403.*delta 2e-8") as e:
        check_cap(cap, Cost(Fraction(9), Fraction(2, 10**8)))
    assert e.value.instead == "SET dpsql.delta = 1e-8"


def test_costs_of_each_kind_of_noise() -> None:
    cap = cap_of(share(100))
    assert cap.rho is not None
    costs = dict(cap.costs(MECHANISMS))
    assert costs["Gaussian"].rho == cap.rho
    assert costs["Gaussian"].delta == cap.delta
    assert costs["Gaussian"].epsilon == epsilon_of_zcdp(cap.rho, cap.delta)
    assert costs["Laplace"].delta == 0
    assert 0 <= cap.rho - costs["Laplace"].rho < Fraction(1, 10**12)
    assert [*dict(cap.costs(("laplace",)))] == ["Laplace"]
    assert [*dict(QueryCap(Fraction(1), Fraction(0)).costs(MECHANISMS))] == ["Laplace"]


def test_a_larger_share_is_a_weaker_promise() -> None:
    def terms(query: str) -> dict[str, object]:
        return terms_of(
            policy("shop", "shop", lambda t: t.replace("query: {epsilon: 0.1}", f"query: {query}"))
        )

    one, two = terms("{share: 1%}"), terms("{share: 2%}")
    [said] = find_loosened_terms(one, two)[:1]
    assert said.startswith("a query of role analyst: epsilon is ")
    assert find_loosened_terms(two, one) == ()
    pure = QueryCap(None, Fraction(0), Fraction(1, 50))
    assert 0 <= pure.label - pure_for_rho(Fraction(1, 50)) < Fraction(1, NANO)
