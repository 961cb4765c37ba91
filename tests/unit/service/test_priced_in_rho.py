"""A role whose questions cost a share of its session's rho, from policy to answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from support.services import real_service, service

from dpsql.diagnostics.refusal import Refused
from dpsql.ledger.charge import NANO
from dpsql.ledger.filter import rho_limit_of
from dpsql.privacy.accounting import rho_of_pure
from dpsql.service import Service, Session, plain

COUNT = "SELECT COUNT(*) FROM orders"
FEW = "SELECT channel, COUNT(*), SUM(amount) FROM orders GROUP BY channel"
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) "
SHARED = "query: {share: 10%}"


def shared(more: str = "") -> Callable[[str], str]:
    def change(text: str) -> str:
        old = "session: {epsilon: 1}\n    query: {epsilon: 0.1}"
        assert text.count(old) == 1
        return text.replace(old, f"session: {{epsilon: 4}}\n    {SHARED}").rstrip() + more

    return change


@pytest.fixture(scope="module")
def opened() -> Iterator[Service]:
    with service("shop", "shop", shared()) as found:
        yield found


@pytest.fixture
def session(opened: Service) -> Session:
    return opened.session("analyst")


@pytest.fixture
def rho(opened: Service) -> Fraction:
    """A tenth of the session's rho."""
    return Fraction(rho_limit_of(opened.policy.roles["analyst"].session) // 10, NANO)


def test_a_question_costs_the_share(session: Session, rho: Fraction) -> None:
    reply = session.execute(FEW)
    assert reply.cost.rho == rho
    told = json.loads(plain.to_json(reply))["cost"]
    assert told == {
        "epsilon": float(reply.cost.epsilon), "delta": 1e-7, "rho": float(rho),
    }  # fmt: skip
    assert float(reply.cost.epsilon) > float(2 * rho) ** 0.5


def test_explain_states_label_and_rho(session: Session, rho: Fraction) -> None:
    lines = session.explain(FEW).splitlines()
    assert f"rho {float(rho):.6g}" in next(line for line in lines if line.startswith("cost:"))
    left = next(line for line in lines if line.startswith('left in session "default"'))
    assert f", rho {float(10 * rho):.5g}" in left


def test_each_number_has_an_equal_part(session: Session, rho: Fraction) -> None:
    session.execute("SET dpsql.mechanism = 'geometric'")
    priced = session.prepare("SELECT MAX(age), COUNT(*) FROM customers")
    assert priced.parts[0].share.rho == rho / 2
    assert priced.cost.rho <= rho


@pytest.mark.parametrize(("mechanism", "epsilon"), [("laplace", "0.05"), ("gaussian", "0.1")])
def test_an_epsilon_is_the_label_of_one_answer(
    session: Session, rho: Fraction, mechanism: str, epsilon: str
) -> None:
    session.execute(f"SET dpsql.epsilon = {epsilon}")
    session.execute(f"SET dpsql.mechanism = '{mechanism}'")
    cost = session.prepare(COUNT).cost
    assert cost.epsilon == Fraction(epsilon)
    assert cost.rho < rho
    session.execute("SET dpsql.epsilon = 3")
    assert rho * Fraction(999, 1000) < session.prepare(COUNT).cost.rho <= rho


def test_a_clause_binds_within_the_share(session: Session, rho: Fraction) -> None:
    small = session.prepare(CLAUSE.format("epsilon = 0.01") + "COUNT(*) FROM orders").cost
    assert small.epsilon == Fraction(1, 100)
    assert small.rho <= rho_of_pure(Fraction(1, 100))
    assert session.prepare(CLAUSE.format("epsilon = 9") + "COUNT(*) FROM orders").cost.rho <= rho


def test_two_clauses_with_a_share_each_are_refused_and_the_advice_holds(session: Session) -> None:
    one = (
        CLAUSE.format("delta = 4e-8, max_groups_contributed = {}")
        + "channel, COUNT(*) AS n FROM orders GROUP BY 1"
    )
    both = (
        f"SELECT a.n, b.n FROM ({one.format(1)}) AS a JOIN ({one.format(2)}) AS b USING (channel)"
    )
    with pytest.raises(Refused, match=r"DP403.*costs rho 0\.") as caught:
        session.execute(both)
    session.execute(caught.value.instead)
    assert session.execute(both).cost.rho > 0


def test_accuracy_is_bought_for_less_than_the_share(session: Session, rho: Fraction) -> None:
    at_most = session.prepare(COUNT)
    width = at_most.parts[0].noised[0].half_width
    session.execute(f"SET dpsql.max_error = {3 * width:.0f}")
    found = session.prepare(COUNT)
    assert found.parts[0].noised[0].half_width <= 3 * width
    assert rho / 12 < found.cost.rho < rho / 7
    session.execute(f"SET dpsql.max_error = {width / 2:.0f}")
    with pytest.raises(Refused, match=r"(?s)DP404.*one query may cost, rho 0\."):
        session.prepare(COUNT)


def test_a_delta_above_the_share_s_is_refused(session: Session) -> None:
    session.execute("SET dpsql.delta = 2e-7")
    with pytest.raises(Refused, match=r"DP403.*delta"):
        session.execute(COUNT)
    session.execute("SET dpsql.delta = 1e-9")
    assert session.prepare(COUNT).cost.delta == Fraction(1, 10**9)


def test_a_search_costs_a_part_of_the_share(session: Session, rho: Fraction) -> None:
    session.execute("SET dpsql.search = on")
    reply = session.execute("SELECT SUM(amount) FROM orders")
    assert rho * Fraction(99, 100) <= reply.cost.rho <= rho


def test_a_session_answers_as_many_questions_as_there_are_shares() -> None:
    """Of any kind: with private groups, several numbers, and each mechanism."""
    with real_service("shop", "shop", shared()) as found:
        session = found.session("analyst")
        session.execute("SET dpsql.fresh = on")
        for i in range(10):
            session.execute(f"SET dpsql.mechanism = '{'gaussian' if i % 3 else 'laplace'}'")
            session.execute("SELECT city, COUNT(*), AVG(age) FROM customers GROUP BY city")
        session.execute("RESET dpsql.mechanism")
        said = r"DP402.*costs rho 0\.0283 and session .* has 0 left of 0\.282"
        with pytest.raises(Refused, match=said):
            session.execute(COUNT)
        [*_, left] = session.budget()
        assert left.rho is not None
        assert left.spent_rho == left.rho - (left.left_rho or 0)
        assert left.left_rho is not None
        assert left.left_rho < Fraction(11, NANO)
        row = session.execute("SHOW dpsql.budget").table.to_pylist()[-1]
        assert [*row.values()][-3:] == [
            float(left.rho),
            float(left.spent_rho),
            float(left.left_rho),
        ]
        told = plain.describe_remaining(session.budget())["session"]
        assert told["total"]["rho"] == float(left.rho)
        assert told["rho"] == float(left.left_rho)


def test_the_estimate_counts_shares() -> None:
    """Of pure answers, a session admits more: their epsilons may add up instead."""
    with real_service("shop", "shop", shared()) as found:
        session = found.session("analyst")
        rows = session.execute("SELECT * FROM dpsql.remaining").table.to_pylist()
        assert {row[1] for row in (tuple(r.values()) for r in rows)} == {10}


ROLES = """
  service:
    epsilon: 4
    session: {epsilon: 0.5}
    query: {epsilon: 0.02}
"""


def test_a_service_account_s_epsilon_holds_beside_the_share() -> None:
    with service("shop", "shop", shared(ROLES)) as found:
        for taken, behind in (("analyst", "service"), ("service", "analyst")):
            priced = found.session(taken, behind=behind).prepare(COUNT)
            assert priced.cost.epsilon <= Fraction(1, 50)
            alone = found.session("analyst").prepare(COUNT)
            assert priced.cost.rho < alone.cost.rho


def test_accounts_that_add_epsilons_have_no_rho(opened: Service) -> None:
    told = plain.describe_remaining(opened.session("pure").budget())
    assert told["role"]["rho"] is None
    assert told["dataset"]["rho"] > 0
    assert "rho" not in opened.session("pure").explain(COUNT).splitlines()[-1]


def test_what_is_stored_is_not_paid_again() -> None:
    """A coarser answer is refined for less than the share, and a part of another costs its part."""
    with real_service("shop", "shop", shared()) as found:
        session = found.session("analyst")
        session.execute("SET dpsql.mechanism = 'gaussian'")
        whole = session.prepare(COUNT).cost.rho
        session.execute("SET dpsql.epsilon = 0.8")
        first = session.execute(COUNT).cost
        session.execute("RESET dpsql.epsilon")
        second = session.execute(COUNT).cost
        assert 0 < first.rho < whole
        assert 0 < second.rho <= whole
        assert whole * Fraction(99, 100) < first.rho + second.rho < whole * Fraction(101, 100)
        assert session.execute(COUNT).recalled
        part = session.execute("SELECT COUNT(*), SUM(amount) FROM orders").cost
        assert 0 < part.rho < whole
        [*_, left] = session.budget()
        spent = first.rho + second.rho + part.rho
        assert left.spent_rho is not None
        assert 0 <= left.spent_rho - spent <= Fraction(3, NANO)
