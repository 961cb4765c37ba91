"""Short versions of what `make overspend` and `make kills` do for long.

By day many processes spend an account on a server in `unit/ledger/test_ledger_path.py`.
"""

from __future__ import annotations

import dataclasses
import secrets
from pathlib import Path

import pytest

from dpsql.ledger.states import State
from tests.endurance import kills, overspend
from tests.endurance.world import Charged, World, ledger_on


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_accounts_are_spent_to_the_last_and_no_further(tmp_path: Path, store: str) -> None:
    """Over the wire, HTTP, sessions and SET ROLE at once, while the policy is read again and again."""
    ledger = ledger_on(store, f"spent_{secrets.token_hex(4)}")
    world = World(tmp_path / "world", overspend.budgets("0.5", "0.24", "basic"), ledger)
    outcome = overspend.run(world)
    assert not overspend.problems(world, outcome)
    assert {answer.face for answer in outcome.received} == {"wire", "http"}
    assert any(answer.caller.taken for answer in outcome.received)
    assert outcome.reloads
    lost = dataclasses.replace(outcome, received=outcome.received[1:])
    assert len(overspend.problems(world, lost)) >= 3, "an answer less is noticed in each account"
    last = outcome.refused[-1][0]
    rest = [found for found in outcome.refused if found[0] != last]
    early = dataclasses.replace(outcome, refused=rest)
    assert overspend.problems(world, early)


@pytest.mark.slow
def test_nothing_is_released_uncharged_wherever_it_is_killed(tmp_path: Path) -> None:
    progress = kills.run(tmp_path / "world", 5, secrets.randbelow(1_000_000))
    assert not progress.problems
    assert progress.kills == 5
    assert progress.whole > 5


def test_an_answer_without_its_charge_would_be_noticed() -> None:
    progress = kills.Progress(1, received={"SELECT 1": "0.01"}, dataset=5)
    paid = Charged("SELECT 1", 10_000_000, ("a",), State.COMMITTED)
    assert kills.problems([paid], progress) == []
    assert len(kills.problems([], progress)) == 2, "not charged, and less is spent than before"
    progress.dataset = 0
    for wrong in ({"state": State.FORFEITED}, {"nano": 9}, {"statement": "SELECT 2"}):
        assert len(kills.problems([dataclasses.replace(paid, **wrong)], progress)) == 1
        progress.dataset = 0


ONE_MORE = """
from dpsql.ledger import filter as rule
from dpsql.ledger.balance import Balance
Balance.admits = lambda self, charge: rule.admits(self.account, self.spent)
"""
LATER = """
import threading
from dpsql.ledger.tables import TableLedger
commit = TableLedger.commit
TableLedger.commit = lambda *given: threading.Timer(1.0, commit, given).start()
"""


@pytest.mark.slow
def test_one_question_too_many_would_be_noticed(tmp_path: Path) -> None:
    """The planted fault: the charge that is asked for is not looked at, only those before it."""
    world = World(tmp_path / "world", overspend.budgets("0.5", "0.24", "basic"))
    world.planted = ONE_MORE
    assert any(
        "beyond its limit" in said for said in overspend.problems(world, overspend.run(world))
    )


@pytest.mark.slow
def test_an_answer_that_leaves_too_early_would_be_noticed(tmp_path: Path) -> None:
    """The planted fault: answers leave before the ledger says that they may."""
    progress = kills.run(tmp_path / "world", 5, 1, planted=LATER)
    assert any("not charged" in said for said in progress.problems)
