"""A ledger on a server that hangs: queries fail cleanly and soon, and closing does not wait."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from queue import SimpleQueue

import psycopg
import pytest
from ledger_network import Network
from ledger_world import EVENT, NOTE, make_account, pure
from postgres_server import shared_server
from support.services import real_service

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import postgres, postgres_schema
from dpsql.ledger.charge import NANO
from dpsql.ledger.postgres import PostgresLedger
from dpsql.ledger.store import RecallKey
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.reloads import Reloads, read_again

ACCOUNTS = (make_account("dataset", 10),)
SOON = 3.0
"""Seconds: a wait of half a second here, and what a busy machine adds; eight waits in turn take longer."""


@pytest.fixture
def network(tmp_path) -> Iterator[Network]:
    network = Network(shared_server(), tmp_path)
    yield network
    network.close()


@pytest.fixture
def ledger(network, clock, monkeypatch) -> Iterator[PostgresLedger]:
    monkeypatch.setattr(postgres, "LOCKED", 0.2)
    monkeypatch.setattr(postgres_schema, "LOCKED", 0.2)
    opened = PostgresLedger.open(network.dsn, clock, schema=f"s{secrets.token_hex(6)}", wait=0.3)
    monkeypatch.setattr(postgres_schema, "SLOWEST_SERVER", 2)
    yield opened
    opened.close()


def ask(ledger):
    return ledger.reserve(ACCOUNTS, pure("0.5"), [EVENT], NOTE, start=True)


def fails(call, ledger) -> None:
    """For threads."""
    with pytest.raises(LedgerFailed):
        call(ledger)


def spent(ledger) -> float:
    return ledger.balances(ACCOUNTS)[0].spent.epsilon / NANO


def test_queries_fail_and_go_on_when_the_server_does(ledger, network):
    hold = ask(ledger)
    ledger.commit(hold, {RecallKey("key"): b"answer"})
    assert spent(ledger) == 0.5
    network.hang()
    for call in (lambda: ask(ledger), lambda: spent(ledger)):
        start = time.monotonic()
        with pytest.raises(LedgerFailed, match="does not answer; check the server"):
            call()
        assert time.monotonic() - start < SOON
    network.go_on()
    assert ledger.recall("key") == b"answer"
    ask(ledger)
    assert spent(ledger) in (1.0, 1.5)  # the one that hung may have been written
    assert ledger.verify().sound


def test_a_reload_fails_soon_and_the_next_one_is_right(ledger, network, monkeypatch):
    """One after the other, and nobody else waits for it: the thread is there for the next request."""
    with closing(real_service("shop", "shop")) as service:
        own, service.ledger = service.ledger, ledger
        house, outcomes = ServiceEndpoint(service, role_catalog), SimpleQueue()

        def work():
            found = read_again([house])
            outcomes.put(found[0])
            return found

        reloads = Reloads(work)
        reloads.start()
        network.hang()
        start = time.monotonic()
        reloads.request()
        assert time.monotonic() - start < SOON
        (problem,) = outcomes.get(timeout=10).problems
        assert "does not answer; check the server" in problem
        assert house.snapshot.service is service
        network.go_on()
        reloads.request()
        assert outcomes.get(timeout=10).problems == ()
        assert house.snapshot.service is not service
        reloads.close()
        own.close()


@pytest.mark.parametrize("call_it", [ask, spent], ids=["write", "read"])
def test_all_who_wait_are_told_together(ledger, network, call_it):
    ask(ledger)
    spent(ledger)
    network.hang()
    told = []

    def call() -> None:
        try:
            call_it(ledger)
        except LedgerFailed as failed:
            told.append(str(failed))

    threads = [threading.Thread(target=call) for _ in range(8)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 8
    assert time.monotonic() - start < SOON + 0.5


def test_a_probe_is_told_how_long_to_wait(ledger, network):
    ledger.probe(0.2)
    network.hang()
    start = time.monotonic()
    with pytest.raises(LedgerFailed, match="does not answer"):
        ledger.probe(0.2)
    assert time.monotonic() - start < SOON


def test_a_probe_does_not_wait_for_one_that_hangs(ledger, network):
    ask(ledger)
    ledger._writer._wait = 5
    network.hang()
    thread = threading.Thread(target=lambda: fails(ask, ledger))
    thread.start()
    time.sleep(0.1)
    start = time.monotonic()
    with pytest.raises(LedgerFailed, match="did not answer in time: not within"):
        ledger.probe(0.1)
    assert time.monotonic() - start < SOON
    ledger.close()
    thread.join(5)
    assert not thread.is_alive(), "closing lets whoever hangs go"


def test_closing_while_a_reader_hangs(ledger, network):
    assert spent(ledger) == 0
    ledger._reader.raw.patience = 30
    network.hang()
    thread = threading.Thread(target=lambda: fails(spent, ledger))
    thread.start()
    time.sleep(0.1)
    start = time.monotonic()
    ledger.close()
    assert time.monotonic() - start < SOON
    thread.join(5)
    assert not thread.is_alive()


def test_closing_while_a_connection_is_made(ledger, network, monkeypatch):
    """Who makes it gives up too, and does not keep it."""
    monkeypatch.setattr(postgres, "PATIENCE", 0.05)
    monkeypatch.setattr("dpsql.ledger.writer.PATIENCE", 0.05)
    ledger._drop_reader()
    ledger._writer._let_go()
    network.hang()
    threads = [
        threading.Thread(target=lambda call=call: fails(call, ledger)) for call in (ask, spent)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    start = time.monotonic()
    ledger.close()
    assert time.monotonic() - start < SOON
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()
    assert ledger._writer.connection is None
    assert ledger._reader is None


def test_what_is_closed_meanwhile_is_let_go_by_whoever_has_it(ledger, monkeypatch):
    monkeypatch.setattr(postgres, "PATIENCE", 0.01)
    with pytest.raises(LedgerFailed, match="does not answer"), ledger._read():
        ledger.close()
    assert ledger._reader is None
    assert ledger._writer.connection is None
    ledger._ended.clear()  # as if the connection had been made just before
    with pytest.raises(LedgerFailed, match="is closed"):
        ledger._writer._begin(1)
    ledger._writer._let_go()


def test_a_server_that_hangs_from_the_start(network, clock, monkeypatch):
    monkeypatch.setattr(postgres_schema, "SLOWEST_SERVER", 2)
    network.hang()
    with pytest.raises(LedgerFailed, match="cannot be reached"):
        PostgresLedger.open(network.dsn, clock, wait=0.1)


def test_without_the_deadline_it_would_wait_for_ever(ledger, network, monkeypatch):
    """The planted fault: psycopg itself waits."""
    ask(ledger)
    monkeypatch.setattr(postgres_schema, "unless", lambda _, gen: gen)
    network.hang()
    thread = threading.Thread(target=lambda: fails(ask, ledger), daemon=True)
    thread.start()
    thread.join(SOON)
    assert thread.is_alive()
    network.close()
    thread.join(10)


def test_a_statement_that_takes_too_long_is_ended_by_the_server_too(ledger):
    with pytest.raises(LedgerFailed, match="does not answer"):
        ledger._writer.run(lambda db: db.execute("SELECT pg_sleep(30)"))
    ask(ledger)


# Older tables in the place of those that were open


@pytest.fixture
def admin() -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_server().dsn, autocommit=True) as connection:
        yield connection


def test_older_tables_are_noticed(ledger, admin):
    schema = ledger.place.rpartition("/")[2]
    ask(ledger)
    admin.execute(f"CREATE TABLE {schema}.older AS SELECT * FROM {schema}.event")
    ask(ledger)
    admin.execute(f"DELETE FROM {schema}.event WHERE seq NOT IN (SELECT seq FROM {schema}.older)")
    for _ in range(2):
        with pytest.raises(LedgerFailed, match="is an older copy"):
            ask(ledger)
    admin.execute(f"UPDATE {schema}.meta SET value = '3' WHERE key = 'version'")
    with pytest.raises(LedgerFailed, match="is an older copy"):
        ask(ledger)


def test_damaged_values_are_called_damaged(ledger, admin, network, clock):
    schema = ledger.place.rpartition("/")[2]
    ledger.commit(ask(ledger), {RecallKey("key", "f"): b"answer"})
    admin.execute(f"UPDATE {schema}.release SET noise = 'x'")
    with pytest.raises(LedgerFailed, match="is damaged: it holds values"):
        ledger.related_releases(["f"])
    admin.execute(f"UPDATE {schema}.hold SET accounts = 'x'")
    assert not ledger.verify().sound
    ask(ledger)
    admin.execute(f"UPDATE {schema}.hold SET accounts = 'x'")
    with pytest.raises(LedgerFailed, match="is damaged: it holds values"):
        ledger.verify()
    admin.execute(f"UPDATE {schema}.account SET epsilon = 0")
    with pytest.raises(LedgerFailed, match="restore the schema from a backup of the server"):
        PostgresLedger.open(network.dsn, clock, schema=schema)
    admin.execute(f"UPDATE {schema}.meta SET value = '3' WHERE key = 'version'")
    admin.execute(f"UPDATE {schema}.event SET hash = 'x'")
    with pytest.raises(LedgerFailed, match="is damaged"):
        PostgresLedger.open(network.dsn, clock, schema=schema)
    with pytest.raises(LedgerFailed, match="does not exist, and the policy says that it must"):
        PostgresLedger.open(network.dsn, clock, schema=f"{schema}x", must_exist=True)
