"""What one role may learn of another: what SECURITY.md says, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.services import real_service

from dpsql.diagnostics.refusal import Refused
from dpsql.service import Service, Session, plain

COUNT = "SELECT COUNT(*) FROM orders"
ROLES = """
  narrow:
    tables: [visits]
    epsilon: 3
    session: {epsilon: 2}
    query: {epsilon: 0.5}
  a:
    tables: [visits]
    epsilon: 3
    session: {epsilon: 2}
    query: {epsilon: 0.5}
  b:
    epsilon: 3
    session: {epsilon: 2}
    query: {epsilon: 0.5}
  a for b:
    epsilon: 3
    session: {epsilon: 2}
    query: {epsilon: 0.5}
"""


@pytest.fixture
def opened() -> Iterator[Service]:
    with real_service("shop", "shop", lambda text: text.rstrip() + ROLES) as found:
        yield found


def rows(session: Session, sql: str) -> list[tuple[object, ...]]:
    return plain.python_rows(session.execute(sql))


def test_an_answer_is_recalled_for_nobody_who_may_not_ask(opened: Service) -> None:
    paid = opened.session("pure").execute(COUNT)
    narrow, other = opened.session("narrow"), opened.session("b")
    for act in (narrow.execute, narrow.explain, narrow.prepare):
        with pytest.raises(Refused) as caught:
            act(COUNT)
        assert caught.value.code == "DP104"
    recalled = other.execute(COUNT)
    assert recalled.recalled
    assert recalled.table.equals(paid.table)
    assert [r.spent_epsilon for r in other.budget()][1:] == [0, 0]


def test_own_tables_hold_one_s_own(opened: Service) -> None:
    opened.session("pure", "secret").execute("SELECT COUNT(*), 4711 FROM orders")
    narrow = opened.session("narrow")
    narrow.execute("SELECT COUNT(*) FROM visits")
    told = rows(narrow, "SELECT role, session, statement FROM dpsql.ledger")
    assert told == [("narrow", "default", "SELECT COUNT(*) FROM visits")]
    assert {t for (t,) in rows(narrow, "SELECT table_name FROM dpsql.policy")} == {"visits"}
    assert rows(narrow, "SELECT table_name FROM dpsql.remaining") == [("visits",)]
    accounts = [str(name) for (name,) in rows(narrow, "SELECT account FROM dpsql.budget")]
    assert accounts
    assert not [name for name in accounts if "pure" in name or "secret" in name]


def test_names_of_roles_do_not_run_together(opened: Service) -> None:
    """What is planned for one role is not taken for another's: they see other tables."""
    opened.session("a for b").execute(COUNT)
    with pytest.raises(Refused) as caught:
        opened.session("a", behind="b").execute(COUNT)
    assert caught.value.code == "DP104"


def test_an_owner_s_role_that_was_taken_sees_each_account_once() -> None:
    """Sums over ``dpsql.budget`` would count what is there twice."""
    owner = ROLES.replace("  b:\n", "  b:\n    owner: true\n")
    with real_service("shop", "shop", lambda text: text.rstrip() + owner) as found:
        taken = found.session("b", behind="a")
        accounts = [name for (name,) in rows(taken, "SELECT account FROM dpsql.budget")]
    assert 'role "a"' in accounts
    assert len(accounts) == len(set(accounts))


def test_whoever_logged_in_pays_for_the_role_that_was_taken(opened: Service) -> None:
    reply = opened.session("a", behind="b").execute("SELECT COUNT(*) FROM visits")
    assert reply.cost.epsilon > 0
    for role in ("a", "b"):
        spent = [r.spent_epsilon for r in opened.session(role).budget()]
        assert all(spent), role
