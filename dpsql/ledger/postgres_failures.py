"""The failures of a ledger in PostgreSQL, described for the person who can repair it."""

from __future__ import annotations

import psycopg

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.failures import NOTHING_LOST, RESTORE_SERVER

_UNREACHABLE = (
    "cannot be reached",
    f"check the server, the network, the dsn and the password (PGPASSFILE); {NOTHING_LOST}",
)
_FULL = ("cannot grow: the disk of its server is full", f"free some space; {NOTHING_LOST}")
_BUSY = (
    "is locked by another session",
    "retry; if it stays locked, look into pg_stat_activity for who holds it",
)

_HUNG = (
    "does not answer",
    f"check the server, its disk and the network; {NOTHING_LOST}",
)


class Hung(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed."""


_STATES: dict[str, tuple[str, str]] = {
    "25006": (
        "cannot be written: its server is read-only",
        "point the dsn at the primary; a standby cannot keep a ledger",
    ),
    "42501": (
        "may not be used by this user",
        "grant the user USAGE and CREATE on its schema, or let it create the schema",
    ),
    "53100": _FULL,
    "53300": ("has no connection to spare", "raise max_connections, or run fewer proxies"),
    "55P03": _BUSY,
}
_CLASSES: dict[str, tuple[str, str]] = {
    "08": _UNREACHABLE,
    "53": ("has no room: its server is out of resources", f"see its log; {NOTHING_LOST}"),
    "57": _UNREACHABLE,
    "58": ("cannot be read or written: its disk reports an error", f"see its log; {NOTHING_LOST}"),
    "XX": ("is damaged", RESTORE_SERVER),
}
_OTHER = ("is damaged, or was changed by something other than dpsql", RESTORE_SERVER)


def from_postgres(place: str, error: Exception) -> LedgerFailed:
    """PostgreSQL's error as a ``LedgerFailed``. Its text is dropped: the state says what to do."""
    if isinstance(error, psycopg.errors.QueryCanceled | Hung):
        return LedgerFailed(_HUNG[0], _HUNG[1], place=place)
    state = getattr(error, "sqlstate", None) or ""
    lost = not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    fallback = _UNREACHABLE if lost else _CLASSES.get(state[:2], _OTHER)
    wrong, instead = _STATES.get(state, fallback)
    return LedgerFailed(wrong, instead, place=place)


def no_fsync(place: str) -> LedgerFailed:
    """A server that reports a commit before it is durable: a power failure could lose charges."""
    return LedgerFailed(
        "is on a server that does not wait for its disk",
        "set fsync = on and full_page_writes = on in postgresql.conf",
        place=place,
    )


def another(place: str) -> LedgerFailed:
    """The schema was dropped or created again while it was open."""
    return LedgerFailed(
        "was removed or replaced while it was open",
        "stop dpsql and put the schema back, since it knows what was spent; where it is lost, "
        "restore it from a backup of the server, then run dpsql ledger restore",
        place=place,
    )
