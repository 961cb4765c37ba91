"""The common part of all stores: a ledger in SQL tables, in any database.

A store defines how a transaction is run (``_write``), how one moment is read (``_read``), and how
it knows that the process that made a hold is gone (``_gone``). All rules are here and in
``rows.py``.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import TracebackType
from typing import Any, Self, TypeVar

from dpsql.ledger import failures, rows
from dpsql.ledger.accounts import Account, Find
from dpsql.ledger.balance import Balance
from dpsql.ledger.carry import carry, shortfalls
from dpsql.ledger.chain import OWNER, Record
from dpsql.ledger.charge import Charge
from dpsql.ledger.metrics import CHARGES
from dpsql.ledger.replay import Replay, verify_records
from dpsql.ledger.rows import Database
from dpsql.ledger.shortage import out_of_budget
from dpsql.ledger.states import State, may
from dpsql.ledger.store import (
    Clock,
    DataNote,
    Hold,
    Kept,
    Ledger,
    Note,
    Releases,
    Size,
    Verification,
)
from dpsql.privacy.cost import Cost

T = TypeVar("T")
JITTER = timedelta(minutes=1)
"""How far a clock may be set back without a failure, since small corrections are common."""


class TableLedger(Ledger, abc.ABC):
    """A ledger in tables."""

    place: failures.Place
    """The name of the ledger in messages."""
    _clock: Clock
    _owner: str
    """The name of this opened ledger, by which others can tell whether it is still open."""

    @abc.abstractmethod
    def _write(self, task: Callable[[Database], T]) -> T:
        """Run ``task`` in a transaction; returns its result once it is durable."""

    @abc.abstractmethod
    def _read(self) -> AbstractContextManager[Database]:
        """One moment of the ledger."""

    @abc.abstractmethod
    def _snapshot(self) -> AbstractContextManager[Database]:
        """One moment of the ledger, for any length of time, while others go on."""

    @abc.abstractmethod
    def _gone(self, db: Database, owner: str, age: timedelta) -> bool:
        """Whether the opened ledger with this name, which made a hold ``age`` ago, is closed."""

    @abc.abstractmethod
    def _integrity(self, db: Database) -> list[str]:
        """The problems that the database itself reports."""

    @abc.abstractmethod
    def _bytes(self, db: Database) -> int:
        """The size of the database on the disk, in bytes."""

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

        def debit(db: Database) -> Hold | list[Balance]:
            known = rows.meta(db)
            dataset, created = self._dataset(known, accounts), self._now(db, known)
            balances = list(_balances(db, accounts, known))
            if not all(b.admits(charge) for b in balances):
                return balances
            if "dataset" not in known:
                rows.put_meta(db, "dataset", dataset)
            rows.set_spent(db, {b.account.id: (b.spent, b.spent + charge) for b in balances})
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

        with CHARGES.timed():
            outcome = self._write(debit)
        if isinstance(outcome, Hold):
            return outcome
        raise out_of_budget(outcome, charge)  # built outside the transaction: nobody waits for it

    def start(self, hold: Hold) -> None:
        """Note that the engine is about to be contacted; from now on there is no refund."""
        self._write(lambda db: self._move(db, hold, State.STARTED))

    def commit(self, hold: Hold, releases: Releases | None = None) -> None:
        """Note that the answer may leave, and store its pieces, in one transaction."""
        kept = dict(releases or {})
        digests = json.dumps([rows.digest(body, key) for key, body in kept.items()])

        def settle(db: Database) -> None:
            self._move(db, hold, State.COMMITTED, digests if kept else None)
            for key, body in kept.items():
                rows.keep(db, hold.id, body, key)

        self._write(settle)

    def forfeit(self, hold: Hold) -> None:
        """Note that no answer will come. The charge stays."""
        self._write(lambda db: self._move(db, hold, State.FORFEITED))

    def cancel(self, hold: Hold) -> None:
        """Refund a hold that was never started."""

        def refund(db: Database) -> None:
            self._move(db, hold, State.CANCELLED)
            accounts, charge = rows.load_charge(db, hold.id)
            spent = zip(accounts, rows.spent_by(db, accounts), strict=True)
            rows.set_spent(db, {account: (was, was - charge) for account, was in spent})

        self._write(refund)

    def recall(self, recall_key: str) -> bytes | None:
        """The release stored last under this key."""
        with self._read() as db:
            return rows.load_release(db, recall_key)

    def related_releases(
        self, families: Sequence[str], bases: Sequence[str] = ()
    ) -> tuple[Kept, ...]:
        """The stored releases of these families and bases, newest first."""
        with self._read() as db:
            return tuple(rows.related_releases(db, families, bases))

    def balances(self, accounts: Sequence[Account]) -> tuple[Balance, ...]:
        """The balance of each account, all at one moment."""
        with self._read() as db:
            return tuple(_balances(db, accounts, rows.meta(db)))

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

    def latest(self, count: int) -> tuple[Record, ...]:
        """The last ``count`` records, in order."""
        with self._read() as db:
            found = tuple(rows.last(db, count))
        if not all(record.intact for record in found):
            raise failures.damaged_ledger(self.place)
        return found

    def note_terms(
        self,
        terms: Mapping[str, object],
        about: str,
        loosened: Sequence[str] = (),
        windows: Find | None = None,
        data: DataNote | None = None,
    ) -> None:
        """Add a record of the owner, with the charges carried into ``windows``."""

        def note(db: Database) -> None:
            content = {"owner": about, "time": rows.stamp(self._now(db)), "terms": terms}
            weaker = {"loosened": list(loosened)} if loosened else {}
            carried = {} if windows is None else carry(db, windows)
            read = (
                {} if data is None else {"data": {"version": data.version, "content": data.content}}
            )
            rows.append(db, OWNER, content | weaker | carried | read)

        self._write(note)

    def data_note(self, version: str) -> DataNote | None:
        """The data that was noted last under a data version; None if none was."""
        with self._read() as db:
            return rows.data_note(db, version)

    def to_carry(self, windows: Find) -> Mapping[str, Charge]:
        """The charges that would be carried into these windows, by the identity of each."""
        with self._snapshot() as db:
            return {account: lack.charge for account, lack in shortfalls(db, windows).items()}

    def size(self) -> Size:
        """The number of records, and the bytes that the ledger takes on the disk."""
        with self._read() as db:
            return Size(rows.head(db).seq, self._bytes(db))

    def terms(self) -> dict[str, Any] | None:
        """The terms that were noted last."""
        with self._read() as db:
            return rows.last_terms(db)

    def secret(self) -> bytes:
        """Random bytes that stay the same for the life of the ledger and for all who open it.

        They are created at the first call. They are used for the salts of log-ins
        (``serve.salts``), and for notes of the data (``data_notes``).
        """
        with self._read() as db:
            known = rows.secret(db)
        return known or self._write(rows.make_secret)

    def amend(self, act: Callable[[Database], T]) -> T:
        """Run ``act``, a change by the owner, in a transaction of its own; returns its result."""
        return self._write(act)

    def verify(self, noted: str | None = None) -> Verification:
        """Recompute every hash, every balance and every stored answer's digest.

        It reads one snapshot, so nothing waits for it.
        """
        with self._snapshot() as db:
            return self._verified(db, noted)

    def _verified(self, db: Database, noted: str | None = None) -> Verification:
        return examine(db, self._integrity(db), noted)

    def _move(self, db: Database, hold: Hold, then: State, answer: str | None = None) -> None:
        now = rows.state_of(db, hold.id)
        if now is None or not may(now, then):
            raise failures.wrong_move(self.place, hold.id, now or "unknown", then)
        rows.set_state(db, hold.id, then, answer)
        time = max(self._clock().astimezone(UTC), rows.latest(db))
        content = {"state": then, "time": rows.stamp(time)}
        rows.append(db, hold.id, content if answer is None else content | {"answer": answer})

    def _settle(self, db: Database) -> None:
        """Check the seal, and forfeit the open holds of closed ledgers, before the first query."""
        known = rows.meta(db)
        if rows.seal(db) != known.get("seal"):
            raise failures.damaged_ledger(self.place)
        now = self._now(db, known)
        for hold, name, created in rows.open_holds(db):
            if self._gone(db, name, now - created):
                rows.set_state(db, hold, State.FORFEITED)
                rows.append(db, hold, {"state": State.FORFEITED, "time": rows.stamp(now)})

    def _now(self, db: Database, known: Mapping[str, str] | None = None) -> datetime:
        """The present time, which never runs backwards in a ledger."""
        now, latest = self._clock().astimezone(UTC), rows.latest(db, known)
        if latest - now > JITTER:
            raise failures.clock_back(self.place, latest, now)
        return max(now, latest)

    def _dataset(self, known: Mapping[str, str], accounts: Sequence[Account]) -> str:
        """The dataset of these accounts. A ledger belongs to the first dataset charged to it."""
        dataset = known.get("dataset", accounts[0].dataset)
        for account in accounts:
            if account.dataset != dataset:
                raise failures.other_dataset(self.place, dataset, account.dataset)
        return dataset


def examine(db: Database, problems: Sequence[str] = (), noted: str | None = None) -> Verification:
    """All problems of the tables of a ledger, after the ``problems`` known already."""
    known, spent = rows.meta(db), rows.all_spent(db)
    rows.secret(db)  # raises where it is damaged
    found = verify_records(
        rows.records(db),
        Replay(lambda hold: rows.hold_row(db, hold)),
        spent,
        rows.hold_count(db),
        known,
        [*problems, *rows.false_answers(db)],
        noted,
    )
    if found.sound and rows.seal(db) != known.get("seal"):
        return replace(found, problems=("the seal over the balances is not theirs",))
    return found


def _balances(
    db: Database, accounts: Sequence[Account], known: Mapping[str, str]
) -> Iterator[Balance]:
    """The balance of each account; ``known`` is ``rows.meta(db)``."""
    mark = known.get(rows.CLOSED)
    closed = None if mark is None else datetime.fromisoformat(mark)
    spent = rows.spent_by(db, [account.id for account in accounts]) if accounts else []
    for account, total in zip(accounts, spent, strict=True):
        before = closed is not None and (account.begins is None or account.begins <= closed)
        yield Balance(account, total, closed=before)
