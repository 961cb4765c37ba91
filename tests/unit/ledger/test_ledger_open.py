"""The ledger that a policy names."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from postgres_server import shared_server
from test_ledger_accounts import policy

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.open import open_ledger
from dpsql.ledger.postgres import PostgresLedger
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.policy.model import LedgerServer


def test_a_file(path, clock):
    ledger = open_ledger(replace(policy(), ledger=path), clock)
    assert isinstance(ledger, SqliteLedger)
    ledger.close()


def test_a_server(clock):
    server = LedgerServer(shared_server().dsn, "of_a_policy")
    ledger = open_ledger(replace(policy(), ledger_server=server), clock)
    assert isinstance(ledger, PostgresLedger)
    ledger.close()


def test_a_server_without_its_driver(clock, monkeypatch):
    monkeypatch.setitem(sys.modules, "dpsql.ledger.postgres", None)
    with pytest.raises(LedgerFailed, match="psycopg is not installed; pip install"):
        open_ledger(replace(policy(), ledger_server=LedgerServer("host=db", "dpsql")), clock)
