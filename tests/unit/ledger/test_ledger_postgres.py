"""A ledger on a server: what can befall it, and what then is said."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from ledger_world import EVENT, NOTE, Clock, make_account, pure
from postgres_server import Server, binaries, shared_server

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import postgres_failures
from dpsql.ledger.charge import NANO
from dpsql.ledger.postgres import PostgresLedger, place_name
from dpsql.ledger.store import RecallKey

ACCOUNTS = (make_account("dataset", 10),)
Opener = Callable[..., PostgresLedger]


@pytest.fixture
def schema() -> str:
    return f"s{secrets.token_hex(6)}"


@pytest.fixture
def opened(schema: str, clock: Clock) -> Iterator[Opener]:
    ledgers = []

    def opener(dsn: str = "", **options: object) -> PostgresLedger:
        options = {"schema": schema, "wait": 2.0, **options}
        ledgers.append(PostgresLedger.open(dsn or shared_server().dsn, clock, **options))
        return ledgers[-1]

    yield opener
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def admin() -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_server().dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def own_server() -> Iterator[Server]:
    shared_server()  # skips where there is none
    server = Server(binaries())
    yield server
    server.remove()


def reserve(ledger: PostgresLedger):
    return ledger.reserve(ACCOUNTS, pure("0.5"), [EVENT], NOTE, start=True)


def spent(ledger: PostgresLedger) -> float:
    return ledger.balances(ACCOUNTS)[0].spent.epsilon / NANO


def test_a_server_that_was_restarted_is_found_again(own_server, opened):
    ledger = opened(own_server.dsn)
    ledger.commit(reserve(ledger), {RecallKey("key"): b"answer"})
    assert ledger.recall("key") == b"answer"
    own_server.end()
    for call in (lambda: reserve(ledger), lambda: ledger.recall("key"), ledger.verify):
        with pytest.raises(LedgerFailed, match="cannot be reached"):
            call()
    own_server.start()
    assert ledger.recall("key") == b"answer"
    reserve(ledger)
    assert spent(ledger) == 1
    assert ledger.verify().sound


def test_a_killed_server_has_every_charge_that_was_granted(own_server, opened):
    ledger = opened(own_server.dsn)
    for _ in range(5):
        reserve(ledger)
    own_server.end(signal.SIGQUIT)
    own_server.start()
    assert spent(ledger) == 2.5
    assert ledger.verify().sound


def test_a_server_that_does_not_wait_for_its_disk_is_refused(own_server, opened):
    own_server.end()
    own_server.start("-c", "fsync=off")
    with pytest.raises(LedgerFailed, match="does not wait for its disk"):
        opened(own_server.dsn)


def test_a_standby_cannot_keep_a_ledger(opened, admin):
    opened().close()
    with pytest.raises(LedgerFailed, match="read-only"):
        opened(shared_server().dsn + " options='-c default_transaction_read_only=on'")


@pytest.mark.parametrize("changes", ["dbname=nowhere", "passfile=/no", "password=x", "port=1"])
def test_a_dsn_that_leads_nowhere(opened, changes):
    with pytest.raises(LedgerFailed, match="cannot be reached"):
        opened(f"{shared_server().dsn} {changes}")


def test_a_dsn_that_is_none_and_what_is_shown_of_one():
    with pytest.raises(LedgerFailed, match="cannot be read"):
        place_name("what is this", "dpsql")
    assert place_name("host=db user=me password=secret", "dpsql") == "db/default/dpsql"


def test_a_user_without_rights(opened, admin, schema):
    name = f"u{schema}"
    admin.execute(f"CREATE USER {name} PASSWORD 'x'")
    admin.execute(f"GRANT CONNECT ON DATABASE postgres TO {name}")  # others close it to strangers
    with pytest.raises(LedgerFailed, match="may not be used by this user"):
        opened(f"{shared_server().dsn} user={name} password=x")


def test_a_later_version_is_refused(opened, admin, schema):
    opened().close()
    admin.execute(f"UPDATE {schema}.meta SET value = '99' WHERE key = 'version'")
    with pytest.raises(LedgerFailed, match="does not know: 99"):
        opened()
    admin.execute(f"DELETE FROM {schema}.meta WHERE key = 'version'")
    with pytest.raises(LedgerFailed, match="is damaged"):
        opened()


def end_sessions(admin: psycopg.Connection) -> None:
    admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'dpsql' AND pid <> pg_backend_pid()"
    )


def test_a_ledger_that_was_made_anew_is_not_taken_for_the_old_one(opened, admin, schema):
    ledger = opened()
    reserve(ledger)
    spent(ledger)
    admin.execute(f"DROP SCHEMA {schema} CASCADE")
    end_sessions(admin)
    opened()
    for call in (lambda: reserve(ledger), lambda: spent(ledger), ledger.verify):
        with pytest.raises(LedgerFailed, match="removed or replaced"):
            call()


def test_a_ledger_that_lost_its_tables(opened, admin, schema):
    ledger = opened()
    assert spent(ledger) == 0
    admin.execute(f"DROP TABLE {schema}.account")
    with pytest.raises(LedgerFailed, match="is damaged"):
        reserve(ledger)
    for call in (lambda: spent(ledger), ledger.verify):
        with pytest.raises(LedgerFailed, match="is damaged"):
            call()


def test_values_that_dpsql_did_not_write(opened, admin, schema):
    ledger = opened()
    hold = reserve(ledger)
    admin.execute(f"UPDATE {schema}.hold SET state = 'lost'")
    with pytest.raises(LedgerFailed, match="did not write"):
        ledger.commit(hold)
    admin.execute(f"UPDATE {schema}.hold SET state = 'started'")
    admin.execute(f"UPDATE {schema}.account SET epsilon = 1")
    [problem] = ledger.verify().problems
    assert "account shop/dataset" in problem


def test_the_paper_of_a_reading_is_not_spoilt_by_a_caller_that_fails(opened):
    ledger = opened()
    reserve(ledger)
    with pytest.raises(ZeroDivisionError), ledger._read():
        raise ZeroDivisionError
    assert spent(ledger) == 0.5


def test_a_lock_that_others_hold(opened, admin, schema):
    ledger = opened(wait=0.1)
    with admin.transaction():
        admin.execute(f"SELECT * FROM {schema}.meta FOR UPDATE")
        with pytest.raises(LedgerFailed, match="locked by another session"):
            reserve(ledger)
    reserve(ledger)


def test_a_session_that_ends_inside_a_transaction_loses_nothing_that_was_granted(opened, admin):
    ledger = opened()
    reserve(ledger)

    def doomed(db):
        db.execute("UPDATE account SET epsilon = 0")
        end_sessions(admin)
        db.execute("SELECT 1")

    with pytest.raises(LedgerFailed, match="cannot be reached"):
        ledger._writer.run(doomed)
    assert spent(ledger) == 0.5
    reserve(ledger)
    assert ledger.verify().sound


def test_holds_of_a_proxy_that_lives_elsewhere_are_left_alone(opened, admin):
    mine, theirs = opened(), opened()
    hold = reserve(theirs)
    opened()
    theirs.commit(hold)
    assert not mine._write(lambda db: mine._gone(db, mine._owner, timedelta(0)))
    lost = reserve(theirs)
    end_sessions(admin)  # nobody can tell a proxy that lost its connection from a dead one
    opened()
    with pytest.raises(LedgerFailed, match="forfeited"):
        theirs.commit(lost)
    assert spent(mine) == 1


def test_a_fork_must_open_its_own(opened):
    ledger = opened()
    mine, ledger._process = ledger._process, -1
    with pytest.raises(LedgerFailed, match="forked"):
        reserve(ledger)
    ledger.close()  # the parent's: nothing happens
    ledger._process = mine
    reserve(ledger)
    assert os.getpid() == mine


def test_each_state_of_the_server_has_its_words():
    def said(error: Exception) -> str:
        return str(postgres_failures.from_postgres("here", error))

    assert "disk of its server is full" in said(psycopg.errors.DiskFull())
    assert "disk reports an error" in said(psycopg.errors.IoError())
    assert "is damaged" in said(psycopg.errors.DataCorrupted())
    assert "out of resources" in said(psycopg.errors.OutOfMemory())
    assert "no connection to spare" in said(psycopg.errors.TooManyConnections())
    assert "is damaged" in said(psycopg.errors.SyntaxError())
    assert "is damaged" in said(ValueError())
    assert "does not answer" in said(psycopg.errors.QueryCanceled())
    assert "does not answer" in said(postgres_failures.Hung())
