"""The ledger as a state machine, with crashes between and inside transactions.

The model is what a data-protection officer would keep on paper: every answer that left, every
charge that was granted. Whatever happens to the process, the file must agree with the paper, or
have spent more.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from dpsql.diagnostics.refusal import LedgerFailed, OutOfBudget
from dpsql.ledger.accounts import Account
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.ledger.filter import admits
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.states import State
from dpsql.ledger.store import Hold, Note, RecallKey
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.cost import Cost

DATASET = Account("s/dataset", "dataset", "", "", 4 * NANO, ATTO // 10**5, zcdp=True)
ROLE = Account("s/role:a", "role", "a", "", 2 * NANO, ATTO // 10**6, zcdp=False)
SESSION = Account("s/session:a/b", "session", "a", "b", NANO, 0, zcdp=False)
OTHER = Account("s/session:a/c", "session", "a", "c", 2 * NANO, ATTO // 10**7, zcdp=True)
GROUPS = [(DATASET, ROLE, SESSION), (DATASET, ROLE, OTHER), (DATASET,)]
EVERY = (DATASET, ROLE, SESSION, OTHER)
NOTE = Note("v1", "a", "b")
COSTS = [
    Cost(epsilon=Fraction(n, 20), rho=rho_of_pure(Fraction(n, 20)), delta=d, threshold_delta=d)
    for n in (1, 2, 7)
    for d in (Fraction(0), Fraction(1, 10**8))
]


class Crash(Exception):
    """The process ends here."""


@dataclass
class Paper:
    """What the outside world saw of a hold."""

    accounts: tuple[Account, ...]
    cost: Cost
    state: State
    answered: bool = False


class LedgerLife(RuleBasedStateMachine):
    holds = Bundle("holds")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.now = datetime(2026, 11, 18, tzinfo=UTC)
        self.paper: dict[int, Paper] = {}
        self.answers: dict[str, bytes] = {}
        self.ledger = self.open()

    def open(self) -> SqliteLedger:
        return SqliteLedger.open(self.directory / "s.ledger", lambda: self.now)

    def teardown(self) -> None:
        try:
            assert self.ledger.verify().sound
        finally:
            self.ledger.close()
            shutil.rmtree(self.directory)

    # what callers do

    @rule(
        target=holds,
        accounts=st.sampled_from(GROUPS),
        cost=st.sampled_from(COSTS),
        start=st.booleans(),
    )
    def reserve(self, accounts, cost, start):
        before = {b.account: b.spent for b in self.ledger.balances(accounts)}
        after = {account: spent + Charge.of(cost) for account, spent in before.items()}
        try:
            hold = self.ledger.reserve(accounts, cost, ["{}"], NOTE, start=start)
        except OutOfBudget:
            assert not all(admits(*pair) for pair in after.items())
            assert {b.account: b.spent for b in self.ledger.balances(accounts)} == before
            return multiple()
        assert all(admits(*pair) for pair in after.items())
        self.paper[hold.id] = Paper(accounts, cost, State.STARTED if start else State.RESERVED)
        return hold

    @rule(hold=holds)
    def start(self, hold):
        self.move(hold, State.STARTED, lambda: self.ledger.start(hold))

    @rule(hold=consumes(holds))
    def cancel(self, hold):
        self.move(hold, State.CANCELLED, lambda: self.ledger.cancel(hold))

    @rule(hold=consumes(holds))
    def forfeit(self, hold):
        self.move(hold, State.FORFEITED, lambda: self.ledger.forfeit(hold))

    @rule(hold=consumes(holds), key=st.sampled_from("xyz"))
    def commit(self, hold, key):
        body = b"answer %d" % hold.id
        if self.move(
            hold, State.COMMITTED, lambda: self.ledger.commit(hold, {RecallKey(key): body})
        ):
            self.paper[hold.id].answered = True
            self.answers[key] = body

    def move(self, hold: Hold, then: State, call) -> bool:
        paper = self.paper[hold.id]
        legal = {
            State.STARTED: (State.RESERVED,),
            State.CANCELLED: (State.RESERVED,),
            State.FORFEITED: (State.RESERVED, State.STARTED),
            State.COMMITTED: (State.STARTED,),
        }[then]
        if paper.state in legal:
            call()
            paper.state = then
            return True
        with pytest.raises(LedgerFailed, match="cannot become"):
            call()
        return False

    @rule(minutes=st.integers(0, 10_000))
    def time_passes(self, minutes):
        self.now += timedelta(minutes=minutes)

    # what befalls them

    @rule()
    def crash_between_transactions(self):
        self.ledger.close()
        self.restart()

    @rule(
        statement=st.sampled_from(["SAVEPOINT", "INSERT", "UPDATE", "COMMIT"]),
        late=st.booleans(),
        what=st.sampled_from(["reserve", "start", "cancel", "forfeit", "commit"]),
        hold=holds,
        cost=st.sampled_from(COSTS),
    )
    def crash_inside_a_transaction(self, statement, late, what, hold, cost):
        """The process ends at some statement; only a COMMIT that took effect is kept."""
        real = self.ledger._writer.connection
        self.ledger._writer.connection = Doomed(real, statement, late=late)
        before = self.paper[hold.id].state
        count = sum(1 for _ in self.ledger.events())
        try:
            if what == "reserve":
                made = self.ledger.reserve(GROUPS[2], cost, ["{}"], NOTE)
                self.paper[made.id] = Paper(GROUPS[2], cost, State.RESERVED)
            elif what == "commit":
                self.ledger.commit(hold, {RecallKey("unsent"): b"unsent"})
                self.paper[hold.id].state = State.COMMITTED
            else:
                getattr(self.ledger, what)(hold)
                self.paper[hold.id].state = {
                    "start": State.STARTED,
                    "cancel": State.CANCELLED,
                    "forfeit": State.FORFEITED,
                }[what]
        except (Crash, LedgerFailed, OutOfBudget):
            pass
        finally:
            self.ledger._writer.connection = real
            self.ledger.close()
        with sqlite3.connect(self.directory / "s.ledger") as db:
            rows = db.execute("SELECT hold, json FROM event WHERE seq > ?", (count,)).fetchall()
        db.close()
        for number, text in rows:  # a COMMIT took effect, and nobody was told
            state = State(next(s for s in State if f'"state":"{s}"' in text))
            if number not in self.paper:
                self.paper[number] = Paper(GROUPS[2], cost, state)
            self.paper[number].state = state
            assert number != hold.id or not self.paper[hold.id].answered or state is before
        self.restart()

    def restart(self) -> None:
        self.ledger = self.open()
        for paper in self.paper.values():
            if paper.state.open:
                paper.state = State.FORFEITED

    # what must hold, whatever happened

    @invariant()
    def balances_are_the_sums_of_the_holds(self):
        for balance in self.ledger.balances(EVERY):
            expected = Charge()
            for paper in self.paper.values():
                if paper.state.spent and balance.account in paper.accounts:
                    expected += Charge.of(paper.cost)
            assert balance.spent == expected

    @invariant()
    def no_account_is_over_its_limit(self):
        for balance in self.ledger.balances(EVERY):
            assert admits(balance.account, balance.spent)

    @invariant()
    def every_answer_was_paid_for(self):
        released = sum((p.cost.epsilon for p in self.paper.values() if p.answered), Fraction(0))
        [dataset] = self.ledger.balances((DATASET,))
        assert released * NANO <= dataset.spent.epsilon

    @invariant()
    def answers_are_recalled(self):
        assert {key: self.ledger.recall(key) for key in self.answers} == self.answers

    @invariant()
    def the_chain_is_whole(self):
        assert self.ledger.verify().sound


class Doomed:
    """A connection whose process ends at a statement, before or after it took effect."""

    def __init__(self, real: sqlite3.Connection, statement: str, *, late: bool) -> None:
        self.real, self.statement, self.late = real, statement, late

    def __getattr__(self, name):
        return getattr(self.real, name)

    def execute(self, sql, *parameters):
        if not sql.startswith(self.statement):
            return self.real.execute(sql, *parameters)
        if self.late:
            self.real.execute(sql, *parameters)
        raise Crash


TestLedgerLife = LedgerLife.TestCase
TestLedgerLife.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


class TestLongLedgerLife(LedgerLife.TestCase):
    settings = settings(max_examples=500, stateful_step_count=60, deadline=None)


TestLongLedgerLife = pytest.mark.slow(TestLongLedgerLife)
