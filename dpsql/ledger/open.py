"""Opens the ledger that a policy names, in any store."""

from __future__ import annotations

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Clock
from dpsql.ledger.tables import TableLedger
from dpsql.policy.model import LedgerKeeping, LedgerServer, Policy


def open_ledger(policy: Policy, clock: Clock, *, settle: bool = True) -> TableLedger:
    """Open the ledger of a policy; it is created if there is none and the policy allows it.

    Without ``settle``, open holds are left as they are, for callers that only read or repair it.
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
    """Open a ledger on a server; psycopg is imported here, so that only such ledgers need it."""
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
