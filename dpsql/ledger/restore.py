"""Restores a ledger from a backup, so that nobody can spend more than before.

Claim: after a restore, every account's spending is at least what was charged to it before, or the
    account is closed; unless the owner stated falsely that nothing was asked.
Assumes: nobody has forged records. Hashes reveal damage; anyone who may write the file can compute
    them.
Argument: records that both copies of the chain have are counted once. Of records that only one copy
    has, every charge is added (a refund counts only together with its charge). So everything that
    either copy records is spent. Charges that neither records can only have been made after the end
    of the backup. If the ledger at hand has all records of the backup, it is the newer one and
    lacks nothing. Otherwise all accounts whose window had begun are closed: each stayed within its
    own limit before, and nothing more is added to it. The accounts stay open only if the head that
    was noted last, elsewhere, is the end of the backup (``head.py``), or if the owner states
    explicitly that nothing was asked.

The restore has a record of its own, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import failures, rows
from dpsql.ledger.chain import OWNER, Record
from dpsql.ledger.charge import Charge
from dpsql.ledger.compare import charges
from dpsql.ledger.head import Head
from dpsql.ledger.rows import Database

TABLES = ("meta", "account", "hold", "event", "release")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The owner's evidence about the time after the backup."""

    head: str | None = None
    """The hash of the head that was noted last, elsewhere."""
    nothing_asked: bool = False
    """Whether the owner states that nothing was asked after the backup."""


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """The result of a restore."""

    head: Head
    closed: bool
    """Whether the accounts are closed until their next window."""
    added: Mapping[str, Charge]
    """The charges added from the copy that was merged."""
    because: str
    closed_before: datetime | None = None
    """When an earlier restore closed the accounts whose windows had begun by then."""


@dataclass(frozen=True, slots=True)
class _Merge:
    end: Head
    """The end of the copy that was not known to be the newest."""
    other: Head
    """The end of the copy whose records were not taken over."""
    added: Mapping[str, Charge]
    complete: bool
    """Whether the ledger at hand has all records of the backup."""


def restore(
    db: Database,
    now: datetime,
    backup: Database | None,
    evidence: Evidence,
    readable: Sequence[Record] = (),
) -> RestoreOutcome:
    """Merge a sound ledger with a sound ``backup`` of it, inside a transaction.

    Without a ``backup``, the ledger itself was restored by other means. ``readable`` are the
    readable records of a damaged ledger that this one replaces.
    """
    mark = earlier = _later(db, backup, readable)
    chains = [list(_hashes(copy)) for copy in (db, backup) if copy is not None]
    merged = _merge(db, backup, readable)
    missing = evidence.head is not None and not any(evidence.head in chain for chain in chains)
    missing = missing and evidence.head not in {record.hash for record in readable}
    if missing and evidence.nothing_asked:
        raise LedgerFailed(
            "has a noted head that is in no copy at hand: something was asked after the backup",
            "restore a later backup, or leave out --nothing-was-asked: then the accounts are closed",
        )
    because = _because(merged, evidence, missing=missing)
    closed = because is None
    if closed:  # never before the last entry, even if this clock is wrong
        mark = max(mark or "", rows.stamp(max(now, rows.latest(db))))
    rows.set_spent(db, _totals(db, merged.added))
    content: dict[str, object] = {
        "owner": "restored",
        "time": rows.stamp(now),
        "merged": {"records": merged.other.seq, "head": merged.other.hash},
        "added": {account: charge.numbers for account, charge in merged.added.items()},
        "because": because or "what was asked after the backup is not known",
    }
    if mark is not None:
        rows.put_meta(db, rows.CLOSED, mark)
        content[rows.CLOSED] = mark
    rows.append(db, OWNER, content)
    return RestoreOutcome(
        Head.of(rows.head(db)), closed, merged.added, str(content["because"]),
        None if earlier is None else datetime.fromisoformat(earlier),
    )  # fmt: skip


def _merge(db: Database, backup: Database | None, readable: Sequence[Record]) -> _Merge:
    """Let ``db`` hold the longer chain, and find the charges that only the other one has."""
    mine = Head.of(rows.head(db))
    if backup is None:
        return _Merge(mine, mine, {}, complete=False)
    theirs = Head.of(rows.head(backup))
    if readable or not mine.seq:
        take_over(backup, db)
        tail = readable[_common(rows.records(backup), readable) :]
        end = Head.of(readable[-1]) if tail else theirs
        return _Merge(end, end, _sums(tail), complete=False)
    common = _common(rows.records(db), rows.records(backup))
    merged = (content.get("merged", {}) for content in rows.of_owner(db))
    if common == theirs.seq or any(part.get("head") == theirs.hash for part in merged):
        return _Merge(theirs, theirs, {}, complete=True)
    if theirs.seq <= mine.seq:
        return _Merge(theirs, theirs, _sums(rows.records(backup, common)), complete=False)
    added = _sums(rows.records(db, common))
    take_over(backup, db)
    return _Merge(theirs, mine, added, complete=False)


def _because(merged: _Merge, evidence: Evidence, *, missing: bool) -> str | None:
    """The reason why no unknown query can have been asked; None if one can."""
    if merged.complete and not missing:
        return "the ledger at hand has all of the backup"
    if evidence.head == merged.end.hash:
        return "the head that was noted elsewhere is the end of the backup"
    if evidence.nothing_asked:
        return "the owner states that nothing was asked after the backup"
    return None


def take_over(source: Database, target: Database) -> None:
    """Replace the contents of ``target`` by those of ``source``."""
    for table in TABLES:
        target.execute(f"DELETE FROM {table}")
        for row in source.execute(f"SELECT * FROM {table}"):
            places = ", ".join("?" for _ in row)
            target.execute(f"INSERT INTO {table} VALUES ({places})", row)


def check_dataset(db: Database, place: failures.Place, dataset: str) -> None:
    """Raise unless the ledger belongs to this dataset, or to none yet."""
    known = rows.meta(db).get("dataset", dataset)
    if known != dataset:
        raise failures.other_dataset(place, known, dataset)


def _common(one: Iterable[Record], two: Iterable[Record]) -> int:
    """The number of records that two copies of a chain share."""
    shared = 0
    for a, b in zip(one, two, strict=False):
        if a.hash != b.hash:
            break
        shared = a.seq
    return shared


def _sums(records: Iterable[Record]) -> dict[str, Charge]:
    """The charges of these records, by account; earlier holds are counted by their own records."""
    return {account: sum(spent, Charge()) for account, spent in charges(records).items()}


def _totals(db: Database, added: Mapping[str, Charge]) -> dict[str, tuple[Charge, Charge]]:
    known = rows.all_spent(db)
    before = {account: known.get(account, Charge()) for account in added}
    return {account: (before[account], before[account] + more) for account, more in added.items()}


def _later(db: Database, backup: Database | None, readable: Sequence[Record]) -> str | None:
    """The latest time at which accounts were closed, by any copy."""
    found = [rows.meta(copy).get(rows.CLOSED) for copy in (db, backup) if copy is not None]
    found += [record.content.get(rows.CLOSED) for record in readable if record.hold == OWNER]
    return max((mark for mark in found if mark is not None), default=None)


def _hashes(db: Database) -> Iterable[str]:
    return (record.hash for record in rows.records(db))
