"""The default ledger: one SQLite file, safe for several threads and processes.

Every change is one transaction that is on the disk before the call returns (write-ahead log,
``synchronous=FULL``). One connection writes (threads share commits, see ``writer.py``), another
reads, so a recall does not wait for the disk. Balances are kept as sums, so a look-up does not
grow with what happened before.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from dpsql.ledger import failures, owner, rows, schema
from dpsql.ledger.accounts import Account
from dpsql.ledger.balance import Balance
from dpsql.ledger.chain import Record
from dpsql.ledger.charge import Charge
from dpsql.ledger.filter import admits
from dpsql.ledger.replay import Replay, verified
from dpsql.ledger.shortage import out_of_budget
from dpsql.ledger.states import State, may
from dpsql.ledger.store import Clock, Hold, Ledger, Note, Verification
from dpsql.ledger.writer import Writer
from dpsql.privacy.cost import Cost

T = TypeVar("T")
JITTER = timedelta(minutes=1)
"""How far a clock may be set back unnoticed: corrections of this size are everyday."""


class SqliteLedger(Ledger):
    """A ledger in a file."""

    def __init__(self, path: Path, clock: Clock, wait: float) -> None:
        """Use ``open``; this only fits the parts together."""
        self.path, self._clock, self._wait = path, clock, wait
        self._file = _identity(path)
        self._writer = Writer(schema.connect(path, wait), path, wait)
        try:
            self._reader = schema.connect(path, wait)
        except BaseException:
            self._writer.close()
            raise
        self._reading, self._process = threading.Lock(), os.getpid()
        self._owner, self._closed = owner.enlist(), False

    @classmethod
    def open(cls, path: Path | str, clock: Clock, *, wait: float = 10.0) -> SqliteLedger:
        """The ledger at ``path``, made if there is none; ``wait`` seconds for other processes.

        Holds of processes that have ended are settled: they stay spent.
        """
        path = Path(path).absolute()
        try:
            exists = path.exists()
        except OSError as error:
            raise failures.from_system(path, error) from None
        if not exists:
            schema.create(path)
        ledger = cls(path, clock, wait)
        try:
            ledger._write(ledger._settle)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def close(self) -> None:
        """Let go of the file. Holds that are still open stay spent."""
        if os.getpid() != self._process:
            return  # the parent's: closing it here would disturb the parent
        owner.retire(self._owner)
        self._writer.close()
        with self._reading:
            self._closed = True
            self._reader.close()

    def __enter__(self) -> Self:
        """The ledger itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def reserve(
        self,
        accounts: Sequence[Account],
        cost: Cost,
        events: Sequence[str],
        note: Note,
        *,
        start: bool = False,
    ) -> Hold:
        """Debit all accounts durably, or none and raise ``OutOfBudget``."""
        if not accounts or len({account.id for account in accounts}) < len(accounts):
            raise ValueError("a charge debits one account or several different ones")
        charge, parsed = Charge.of(cost), [json.loads(event) for event in events]
        state = State.STARTED if start else State.RESERVED

        def debit(db: sqlite3.Connection) -> Hold | list[Balance]:
            dataset, created = self._dataset(db, accounts), self._now(db)
            balances = [Balance(account, rows.spent(db, account.id)) for account in accounts]
            if not all(admits(b.account, b.spent + charge) for b in balances):
                return balances
            rows.belong_to(db, dataset)
            for balance in balances:
                rows.set_spent(db, balance.account.id, balance.spent + charge)
            ids = [account.id for account in accounts]
            hold = rows.add_hold(db, state, charge, ids, note, created, self._owner)
            content = {
                "state": state,
                "time": rows.stamp(created),
                "charge": charge.numbers,
                "accounts": ids,
                "policy": note.policy_version,
                "role": note.role,
                "session": note.session,
                "statement": note.statement,
                "events": parsed,
            }
            rows.append(db, hold, content)
            return Hold(hold, tuple(ids), charge)

        outcome = self._write(debit)
        if isinstance(outcome, Hold):
            return outcome
        raise out_of_budget(outcome, charge)  # worded here, where nobody waits for the file

    def start(self, hold: Hold) -> None:
        """Note that the engine is about to be contacted: from here on no refund."""
        self._write(lambda db: self._move(db, hold, State.STARTED))

    def commit(
        self, hold: Hold, release: bytes | None = None, recall_key: str | None = None
    ) -> None:
        """Note that the answer may leave, and keep it if it has a recall key."""
        if recall_key is not None and release is None:
            raise ValueError("there is nothing to keep under the recall key")

        def settle(db: sqlite3.Connection) -> None:
            if release is None or recall_key is None:
                self._move(db, hold, State.COMMITTED)
                return
            self._move(db, hold, State.COMMITTED, hashlib.sha256(release).hexdigest())
            rows.keep(db, recall_key, hold.id, release)

        self._write(settle)

    def forfeit(self, hold: Hold) -> None:
        """Note that no answer will come. The charge stays."""
        self._write(lambda db: self._move(db, hold, State.FORFEITED))

    def cancel(self, hold: Hold) -> None:
        """Refund a hold that was never started."""

        def refund(db: sqlite3.Connection) -> None:
            self._move(db, hold, State.CANCELLED)
            accounts, charge = rows.charged(db, hold.id)
            for account in accounts:
                rows.set_spent(db, account, rows.spent(db, account) - charge)

        self._write(refund)

    def recall(self, recall_key: str) -> bytes | None:
        """The release stored last under this key."""
        with self._read() as db:
            return rows.kept(db, recall_key)

    def balances(self, accounts: Sequence[Account]) -> tuple[Balance, ...]:
        """What each account has spent and has left, all at one moment."""
        with self._read() as db:
            return tuple(Balance(account, rows.spent(db, account.id)) for account in accounts)

    def affordable(self, accounts: Sequence[Account]) -> Fraction:
        """The largest epsilon of a pure query that all accounts admit now."""
        return min(balance.left[0] for balance in self.balances(accounts))

    def events(self, after: int = 0) -> Iterator[Record]:
        """All records with a number above ``after``, in order."""
        while True:
            with self._read() as db:
                page = rows.page(db, after)
            if not page:
                return
            yield from page
            after = page[-1].seq

    def verify(self, noted: str | None = None) -> Verification:
        """Recompute every hash, every balance and every stored answer's digest.

        On a connection of its own and one snapshot of the file, so nothing waits for it.
        """
        self._check_file()
        with closing(schema.connect(self.path, self._wait)) as db:
            try:
                db.execute("BEGIN")
                problems = rows.integrity(db)
                return verified(
                    rows.records(db),
                    Replay(lambda hold: rows.hold_row(db, hold)),
                    rows.all_spent(db),
                    rows.hold_count(db),
                    problems,
                    noted,
                )
            except sqlite3.Error as error:
                raise failures.from_sqlite(self.path, error) from None

    def _move(
        self, db: sqlite3.Connection, hold: Hold, then: State, answer: str | None = None
    ) -> None:
        now = rows.state_of(db, hold.id)
        if now is None or not may(now, then):
            raise failures.wrong_move(self.path, hold.id, now or "unknown", then)
        rows.set_state(db, hold.id, then, answer)
        time = max(self._clock().astimezone(UTC), rows.latest(db))
        content = {"state": then, "time": rows.stamp(time)}
        rows.append(db, hold.id, content if answer is None else content | {"answer": answer})

    def _settle(self, db: sqlite3.Connection) -> None:
        now = self._now(db)
        for hold, name, created in rows.open_holds(db):
            if owner.gone(name, now - created):
                rows.set_state(db, hold, State.FORFEITED)
                rows.append(db, hold, {"state": State.FORFEITED, "time": rows.stamp(now)})

    def _now(self, db: sqlite3.Connection) -> datetime:
        """The time, which in a ledger never runs backwards."""
        now, latest = self._clock().astimezone(UTC), rows.latest(db)
        if latest - now > JITTER:
            raise failures.clock_back(self.path, latest, now)
        return max(now, latest)

    def _dataset(self, db: sqlite3.Connection, accounts: Sequence[Account]) -> str:
        """Whose accounts these are. A ledger belongs to one dataset: the first charged to it."""
        known = rows.dataset(db) or accounts[0].dataset
        for account in accounts:
            if account.dataset != known:
                raise failures.other_dataset(self.path, known, account.dataset)
        return known

    def _write(self, task: Callable[[sqlite3.Connection], T]) -> T:
        self._check_file()
        try:
            return self._writer.run(task)
        except (TypeError, ValueError):
            raise failures.damaged(self.path) from None

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        self._check_file()
        with self._reading:
            if self._closed:
                raise failures.closed(self.path)
            try:
                self._reader.execute("BEGIN")
                yield self._reader
            except sqlite3.Error as error:
                raise failures.from_sqlite(self.path, error) from None
            finally:
                self._reader.rollback()

    def _check_file(self) -> None:
        """The file is the one that was opened, by this process: else writing to it is no use."""
        if os.getpid() != self._process:
            raise failures.forked(self.path)
        if _identity(self.path) != self._file:
            raise failures.replaced(self.path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
