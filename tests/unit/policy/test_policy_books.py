"""Where a policy keeps its ledger, whose calendar it follows, what tables may cost."""

from __future__ import annotations

from fractions import Fraction

import pytest
from policy_text import problems, small

from dpsql.policy.model import LedgerKeeping, LedgerServer

LIMIT = "    max_rows_per_unit: 50\n"


def with_ledger(text: str) -> tuple[str, str]:
    return "data_version: 1\n", f"data_version: 1\nledger: {{{text}}}\n"


def with_zone(text: str) -> tuple[str, str]:
    return "data_version: 1\n", f"data_version: 1\ntime_zone: {text}\n"


def test_a_ledger_is_a_file_unless_the_policy_names_a_server():
    assert small().ledger_server is None
    named = small(with_ledger("store: postgres, dsn: host=db dbname=budgets"))
    assert named.ledger_server == LedgerServer("host=db dbname=budgets", "dpsql")
    other = small(with_ledger("store: postgres, dsn: host=db, schema: clinic"))
    assert other.ledger_server == LedgerServer("host=db", "clinic")
    assert named.version == other.version == small().version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store: postgres", "which needs `dsn: host=.. dbname=.. user=..`"),
        ("store: postgres, dsn: host=db password=x", "holds a password"),
        ("store: postgres, dsn: 'postgresql://me:x@db/budgets'", "holds a password"),
        ("store: postgres, dsn: host=db, path: a.db", "path of the ledger means nothing"),
        ("dsn: host=db", "dsn of the ledger means nothing to sqlite"),
        ("schema: clinic", "schema of the ledger means nothing to sqlite"),
        ("store: mysql", 'cannot be "mysql"'),
    ],
)
def test_a_ledger_that_cannot_be(text, said):
    [problem] = problems(with_ledger(text))
    assert said in problem


def test_how_a_ledger_is_kept_from_being_lost():
    assert small().ledger_keeping == LedgerKeeping()
    kept = small(with_ledger("must_exist: true, head: ../other/head"))
    assert kept.ledger_keeping.must_exist
    assert kept.ledger_keeping.head == kept.path.parent.parent / "other" / "head"
    assert kept.version == small().version
    for text in ("path: a.db, head: ./a.db", f"head: {small().ledger.name}"):
        [problem] = problems(with_ledger(text))
        assert "the ledger itself cannot be the head of the ledger" in problem


def test_time_zones():
    assert small().time_zone == "UTC"
    assert small(with_zone("UTC")).time_zone == "UTC"
    vienna = small(with_zone("Europe/Vienna"))
    assert vienna.time_zone == "Europe/Vienna"
    assert vienna.version != small().version
    for wrong in ("Mars", "../etc/passwd", "/etc/passwd"):
        [problem] = problems(with_zone(wrong))
        assert "such as UTC or Europe/Vienna" in problem


def with_account(text: str) -> tuple[str, str]:
    return LIMIT, f"{LIMIT}    account: {{{text}}}\n"


def test_tables_may_have_an_account():
    policy = small(with_account("epsilon: 2, per: week"))
    account = policy.tables["orders"].account
    assert account is not None
    assert (account.epsilon, account.delta) == (2, Fraction(1, 10**6))
    assert (account.composition, account.per) == ("zcdp", "week")
    assert policy.tables["customers"].account is None
    assert policy.version != small().version


def test_a_table_may_not_spend_more_than_the_data_set():
    [problem] = problems(with_account("epsilon: 5"))
    assert "epsilon of account of table orders is 5, more than the 4 of accounts.dataset" in problem


def test_a_public_table_has_no_account():
    change = ("{public: true, columns", "{public: true, account: {epsilon: 1}, columns")
    [problem] = problems(change)
    assert "costs nothing; remove it" in problem
