"""Reports: other compositions, promises to groups, metrics."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from ledger_world import EVENT, NOTE, make_account, pure

from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.ledger.compare import charges, compare, promises
from dpsql.ledger.metrics import Counters, of_accounts
from dpsql.privacy.cost import Cost

ZCDP = make_account("dataset", 20, "1e-6")
BASIC = make_account("role:growth", 20)
TENTH = Charge.of(pure("0.1"))
FACTS = {"basic": 10.0, "advanced": 6.31, "zcdp": 5.22}
"""privacy-facts, 5.1: a hundred Laplace steps of 0.1 at delta 1e-6. The advanced row there is
another theorem of the same strength."""


def by_name(account, spent):
    return {c.name: c for c in compare(account, spent)}


def test_the_same_queries_by_each_composition():
    found = by_name(ZCDP, [TENTH] * 100)
    assert found["basic"].epsilon == pytest.approx(10)
    assert found["basic"].delta == 0
    assert found["advanced"].epsilon == pytest.approx(5.76, abs=0.03)
    assert found["zcdp"].epsilon == pytest.approx(FACTS["zcdp"], abs=0.01)
    assert found["zcdp"].delta == pytest.approx(1e-6)


def test_for_few_queries_adding_up_is_best():
    found = by_name(BASIC, [TENTH])
    assert found["advanced"].epsilon == found["basic"].epsilon
    assert {c.epsilon for c in compare(BASIC, [])} == {0.0}


def test_where_the_delta_is_used_up_nothing_but_adding_is_left():
    step = Charge.of(
        Cost(Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 200), Fraction(1, 10**6))
    )
    found = by_name(ZCDP, [step] * 100)
    assert found["advanced"].epsilon == found["zcdp"].epsilon == found["basic"].epsilon


def test_charges_by_account_without_those_that_were_refunded(ledger):
    account = make_account("dataset", 10)
    first = ledger.reserve((account,), pure(1), [EVENT], NOTE)
    ledger.note_terms({}, "policy changed")
    ledger.cancel(ledger.reserve((account,), pure(2), [EVENT], NOTE))
    assert charges(ledger.events()) == {account.id: [first.charge]}


def test_what_groups_are_promised():
    spent = Charge.of(Cost(Fraction(1), Fraction(1, 10**8), Fraction(1, 10), Fraction(1, 10**8)))
    one, two, five = promises(
        Balance(
            make_account(
                "dataset",
                5,
                "1e-5",
            ),
            spent,
        )
    )
    assert (one.size, two.size, five.size) == (1, 2, 5)
    assert one.epsilon == pytest.approx(1)
    assert one.delta == pytest.approx(1e-8)
    assert two.epsilon == pytest.approx(2)
    assert two.delta == pytest.approx(1e-8 * (1 + math.e))
    assert five.delta == pytest.approx(1e-8 * sum(math.exp(i) for i in range(5)))


def test_groups_under_zcdp_pay_the_square_in_rho():
    many = Charge(epsilon=100 * NANO, rho=NANO // 100)
    one, two, five = promises(Balance(make_account("dataset", 5, "1e-5"), many))
    assert one.epsilon < two.epsilon < five.epsilon < 100
    assert one.delta == pytest.approx(2.5e-6)
    assert five.delta < 1e-4


def test_a_promise_that_is_none():
    spent = Charge(epsilon=30 * NANO, delta=ATTO // 10**5)
    *_, five = promises(Balance(make_account("dataset", 50, "1e-4"), spent))
    assert five.delta == 1
    assert promises(Balance(BASIC, Charge(epsilon=NANO)))[2].delta == 0


def test_metrics():
    counters = Counters()
    counters.ended("answered", 0.02)
    counters.ended("recalled", 0.001)
    counters.ended("refused", 60)
    table = make_account("table:a", 1, table='or"ders')
    balances = [Balance(ZCDP, TENTH), Balance(ZCDP, TENTH), Balance(table, Charge())]
    lines = [*of_accounts(balances), *counters.lines()]
    assert 'dpsql_account_epsilon_spent{holder="dataset"} 0.1' in lines
    assert 'dpsql_account_epsilon_limit{holder="table",role="growth",table="or\\"ders"} 1' in lines
    assert 'dpsql_statements_total{end="recalled"} 1' in lines
    assert 'dpsql_statements_total{end="failed"} 0' in lines
    assert 'dpsql_seconds_bucket{le="0.002"} 1' in lines
    assert 'dpsql_seconds_bucket{le="+Inf"} 3' in lines
    assert "dpsql_seconds_count 3" in lines
    assert len([line for line in lines if line.startswith("dpsql_account_delta_left{")]) == 2
    assert all(line.startswith("#") or len(line.rsplit(" ", 1)) == 2 for line in lines)
