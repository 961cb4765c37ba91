"""The ledger that a policy names, in whatever store."""

from __future__ import annotations

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Clock
from dpsql.ledger.tables import TableLedger
from dpsql.policy.model import LedgerKeeping, LedgerServer, Policy


def open_ledger(policy: Policy, clock: Clock, *, settle: bool = True) -> TableLedger:
    """Open it; it is made if there is none and the policy allows it.

    Without ``settle`` for those who only look, or mend it.
    """
    keeping = policy.ledger_keeping
    if policy.ledger_server is not None:
        return on_server(policy.ledger_server, clock, keeping, settle=settle)
    return SqliteLedger.open(
        policy.ledger, clock, head=keeping.head, settle=settle, must_exist=keeping.must_exist
    )


def on_server(
    server: LedgerServer, clock: Clock, keeping: LedgerKeeping, *, settle: bool
) -> TableLedger:
    """psycopg is asked for only by those whose ledger is on a server."""
    try:
        from dpsql.ledger.postgres import PostgresLedger
    except ImportError:
        raise LedgerFailed(
            "is on a PostgreSQL server, and psycopg is not installed",
            "pip install 'dpsql[postgres]'",
        ) from None
    return PostgresLedger.open(
        server.dsn, clock, schema=server.schema,
        head=keeping.head, settle=settle, must_exist=keeping.must_exist,
    )  # fmt: skip
