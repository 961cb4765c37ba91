"""Whole queries as a state machine: stored, refined, added up and new answers, and crashes between.

The paper that a data-protection officer would keep: what left, what it cost, how exact it had to be.
Whatever is recalled was paid for by somebody before; whatever happens, spent covers released.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.services import discard, noon, policy_file, service

from dpsql.diagnostics.refusal import EngineFailed
from dpsql.ledger.charge import NANO
from dpsql.service import Reply, Service

MENU = (
    "SELECT COUNT(*) FROM orders",
    "SELECT SUM(amount), COUNT(*) FROM orders",
    "SELECT COUNT(*) FROM orders WHERE channel = 'web'",
    "SELECT channel, COUNT(*) FROM orders GROUP BY channel ORDER BY channel",
    "SELECT channel = 'web' AS web, COUNT(*), AVG(amount) FROM orders GROUP BY 1 ORDER BY 1",
    "SELECT city, COUNT(*) FROM customers GROUP BY city ORDER BY city",
    "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
)
EPSILONS = ("0.1", "0.4", "1", "5")
COUNT = MENU[0]


class Killed(BaseException):
    """The process ends here."""


def rich(text: str) -> str:
    for old, new in (
        ("{epsilon: 20,", "{epsilon: 1e6,"),
        ("epsilon: 5\n    delta: 1e-6\n    per: month", "epsilon: 1e6\n    delta: 1e-6"),
        ("session: {epsilon: 1}", "session: {epsilon: 1e6}"),
        ("query: {epsilon: 0.1}", "query: {epsilon: 100, delta: 1e-8}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@functools.cache
def truth() -> int:
    """About how many orders there are: within ten of it."""
    with service("shop", "shop", rich) as opened:
        session = opened.session("analyst")
        session.execute("SET dpsql.epsilon = 100")
        return session.execute(COUNT).table.column(0)[0].as_py()


class Answers(RuleBasedStateMachine):
    """One service, restarted now and then, and everything that left it."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = policy_file("shop", "shop", rich)
        self.paid = Fraction(0)
        self.best: dict[str, Fraction] = {}
        self.service = Service.open(self.policy, clock=noon)

    def teardown(self) -> None:
        try:
            assert self.service.ledger.verify().sound
        finally:
            self.service.close()
            discard(self.policy)

    def asked(self, sql: str, epsilon: str, mechanism: str, *, fresh: bool) -> Reply:
        session = self.service.session("analyst")
        session.execute(f"SET dpsql.epsilon = {epsilon}")
        session.execute(f"SET dpsql.mechanism = '{mechanism}'")
        session.execute(f"SET dpsql.fresh = {'on' if fresh else 'off'}")
        price = session.price([sql])[0]
        before = self.spent()
        reply = session.execute(sql, intervals=True)
        if not fresh:
            assert reply.cost == price.due, "what was announced is what was charged"
        assert reply.cost.epsilon <= price.alone.epsilon
        assert reply.recalled == (reply.cost.epsilon == 0)
        assert self.spent() >= before + int(reply.cost.epsilon * NANO)
        self.paid += reply.cost.epsilon
        return reply

    def spent(self) -> int:
        session = self.service.session("analyst")
        return self.service.ledger.balances(session._accounts())[0].spent.epsilon

    @rule(
        sql=st.sampled_from(MENU),
        epsilon=st.sampled_from(EPSILONS),
        mechanism=st.sampled_from(("laplace", "gaussian")),
    )
    def ask_twice(self, sql, epsilon, mechanism):
        first = self.asked(sql, epsilon, mechanism, fresh=False)
        again = self.asked(sql, epsilon, mechanism, fresh=False)
        assert again.recalled
        assert again.table == first.table

    @rule(sql=st.sampled_from(MENU), epsilon=st.sampled_from(EPSILONS))
    def ask_anew(self, sql, epsilon):
        assert not self.asked(sql, epsilon, "auto", fresh=True).recalled

    @rule(epsilon=st.sampled_from(EPSILONS))
    def a_count_is_as_exact_as_it_was_asked_for(self, epsilon):
        """Wherever it comes from: twelve scales of the noise are passed once in 10^5 answers."""
        reply = self.asked(COUNT, epsilon, "laplace", fresh=False)
        scale = 50 / float(epsilon)
        assert abs(reply.table.column(0)[0].as_py() - truth()) <= 12 * scale + 10
        low, high = (end[0].as_py() for end in reply.intervals[0])
        assert high - low <= 2 * 3.1 * scale + 2

    @rule(
        sql=st.sampled_from(MENU),
        epsilon=st.sampled_from(EPSILONS),
        place=st.sampled_from(("reserve", "measure", "commit", "committed")),
    )
    def crash(self, sql, epsilon, place):
        """The process ends at some point of a query; the next one goes on from the file."""
        ledger, engine = self.service.ledger, self.service.tools.engine
        before, events = self.spent(), sum(1 for _ in ledger.events())
        target = engine if place == "measure" else ledger
        name = "commit" if place == "committed" else place
        real = getattr(target, name)

        def killed(*arguments, **named):
            if place == "committed":
                real(*arguments, **named)
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(target, name, killed, raising=True)
            patch.setattr(ledger, "forfeit", lambda hold: None)  # a dead process forfeits nothing
            session = self.service.session("analyst")
            session.execute(f"SET dpsql.epsilon = {epsilon}")
            try:
                assert session.execute(sql).recalled, "only what is stored needs none of these"
                died = False
            except (Killed, EngineFailed):
                died = True
        self.service.close()
        self.service = Service.open(self.policy, clock=noon)
        after = [r.content for r in self.service.ledger.events(after=events)]
        if not died or place == "reserve":
            assert (self.spent(), after) == (before, [])
            return
        assert self.spent() > before, "what was begun stays spent"
        last = "committed" if place == "committed" else "forfeited"
        assert [content["state"] for content in after] == ["started", last]

    @invariant()
    def whatever_left_was_paid_for(self):
        assert self.spent() >= int(self.paid * NANO)


TestAnswers = Answers.TestCase
TestAnswers.settings = settings(max_examples=6, stateful_step_count=12, deadline=None)


class TestManyAnswers(Answers.TestCase):
    settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


TestManyAnswers = pytest.mark.timeout(3600)(pytest.mark.slow(TestManyAnswers))
