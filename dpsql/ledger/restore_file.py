"""Restores a ledger in a file, whether the file exists, is missing, or is damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from dpsql.ledger import failures, rows, schema
from dpsql.ledger.backup import examine_copy, open_copy
from dpsql.ledger.chain import START, Record, faults
from dpsql.ledger.head import HeadNote
from dpsql.ledger.restore import Evidence, RestoreOutcome, check_dataset, restore
from dpsql.ledger.rows import Database
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Clock


@dataclass(frozen=True, slots=True)
class FileRestore:
    """A restore: its target and its evidence."""

    path: Path
    dataset: str
    clock: Clock
    evidence: Evidence
    note: HeadNote | None = None

    def run(self, file: Path | None) -> tuple[RestoreOutcome, Path | None]:
        """Restore from a backup, or without one accept the file in place as restored.

        Returns what was done, and the path of the damaged file that was kept. If the process is
        killed, the restore is complete or has not happened: a readable ledger is changed in one
        transaction, a missing one appears complete, and a damaged one is replaced by ``replace``.
        """
        with nullcontext(None) if file is None else open_copy(file) as backup:
            if backup is not None:
                check_dataset(backup, str(file), self.dataset)
            found, kept = self._restore(backup)
        if self.note is not None:
            self.note.write(found.head, anew=True)
        return found, kept

    def _restore(self, backup: sqlite3.Connection | None) -> tuple[RestoreOutcome, Path | None]:
        kept = schema.kept_by_interrupted(self.path)
        there = self.path.exists() or kept is not None
        if backup is None:
            if not there:
                raise failures.missing_ledger(self.path)
            return self._in_place(None), None
        if not there:
            fill = _Fill(self, backup)
            if schema.create(self.path, fill):
                return fill.found, None
        try:
            return self._in_place(backup), None
        except failures.LedgerDamaged:
            fill = _Fill(self, backup, readable(kept or self.path))
            kept = schema.replace(self.path, fill)
            return fill.found, kept

    def _in_place(self, backup: sqlite3.Connection | None) -> RestoreOutcome:
        ledger = SqliteLedger.open(self.path, self.clock, settle=False)
        with closing(ledger):

            def act(db: Database) -> RestoreOutcome:
                examine_copy(db, self.path)
                check_dataset(db, self.path, self.dataset)
                return restore(db, self.clock().astimezone(UTC), backup, self.evidence)

            return ledger.amend(act)


class _Fill:
    """Writes the contents of a backup into a new ledger, with the record of the restore."""

    found: RestoreOutcome

    def __init__(
        self, job: FileRestore, backup: sqlite3.Connection, records: tuple[Record, ...] = ()
    ) -> None:
        self._job, self._backup, self._records = job, backup, records

    def __call__(self, db: sqlite3.Connection) -> None:
        now = self._job.clock().astimezone(UTC)
        self.found = restore(db, now, self._backup, self._job.evidence, self._records)


def readable(path: Path) -> tuple[Record, ...]:
    """The records of a damaged ledger, up to the first break in its chain."""
    found, last = list[Record](), START
    with (
        suppress(sqlite3.Error, *failures.UNREADABLE),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as db,
    ):
        for record in rows.records(db):
            if list(faults(last, record)):
                break
            found.append(record)
            last = record
    return tuple(found)
