"""The ledger that a policy names, in whatever store."""

from __future__ import annotations

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Clock, Ledger
from dpsql.policy.model import LedgerServer, Policy


def open_ledger(policy: Policy, clock: Clock) -> Ledger:
    """Open it; it is made if there is none."""
    if policy.ledger_server is None:
        return SqliteLedger.open(policy.ledger, clock)
    return _on_server(policy.ledger_server, clock)


def _on_server(server: LedgerServer, clock: Clock) -> Ledger:
    """psycopg is asked for only by those whose ledger is on a server."""
    try:
        from dpsql.ledger.postgres import PostgresLedger
    except ImportError:
        raise LedgerFailed(
            "the ledger is on a PostgreSQL server, and psycopg is not installed",
            "pip install 'dpsql[postgres]'",
        ) from None
    return PostgresLedger.open(server.dsn, clock, schema=server.schema)
