"""Migrates ledgers of earlier versions to the current one, in one transaction: all or nothing.

Records are never changed, so every hash noted before stays in the chain. What each version added:

2   families and noise of releases, and later an index of the owner's records
3   the pieces of a release, each under its own name
4   a seal over the balances; records of what an owner does to the ledger itself

Releases of versions 1 and 2 are whole answers under keys that are no longer looked up. They are
dropped, so the same questions are paid again. What was spent does not change.
"""

from __future__ import annotations

from dpsql.ledger import failures, rows
from dpsql.ledger.chain import OWNER
from dpsql.ledger.rows import Database

VERSION = "4"
_WHOLE_RELEASES = 3
"""Before this version a release was one piece."""


def is_old(place: failures.Place, version: str | None) -> bool:
    """Whether a ledger of this version must be migrated. Raises if it cannot be."""
    if version == VERSION:
        return False
    if version is None or not version.isdecimal() or not int(version):
        raise failures.damaged_ledger(place)
    if int(version) > int(VERSION):
        raise failures.newer(place, version)
    return True


def migrate(db: Database, place: failures.Place, release: tuple[str, ...]) -> None:
    """Migrate a ledger, unless another process has; ``release`` creates the table of releases."""
    version = rows.meta(db).get("version")
    if not is_old(place, version):
        return
    dropped = 0
    if int(str(version)) < _WHOLE_RELEASES:
        [(dropped,)] = db.execute("SELECT count(*) FROM release")
        db.execute("DROP TABLE release")
        for statement in release:
            db.execute(statement)
    db.execute("CREATE INDEX IF NOT EXISTS event_owner ON event (seq) WHERE hold = 0")
    rows.put_meta(db, "seal", rows.seal(db))
    rows.put_meta(db, "version", VERSION)
    content = {"owner": "migrated", "version": [version, VERSION], "dropped": dropped}
    rows.append(db, OWNER, content)
