"""What the stores share: a ledger in SQL tables, whatever database holds them.

A store says how a transaction is run (``_write``), how one moment is read (``_read``) and how it
knows that the process which made a hold is gone. All rules are here and in ``rows.py``.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import TracebackType
from typing import Any, Self, TypeVar

from dpsql.ledger import failures, rows
from dpsql.ledger.accounts import Account
from dpsql.ledger.balance import Balance
from dpsql.ledger.chain import OWNER, Record
from dpsql.ledger.charge import Charge
from dpsql.ledger.filter import admits
from dpsql.ledger.replay import Replay, verified
from dpsql.ledger.rows import Database
from dpsql.ledger.shortage import out_of_budget
from dpsql.ledger.states import State, may
from dpsql.ledger.store import Clock, Hold, Kept, Ledger, Note, Releases, Verification
from dpsql.privacy.cost import Cost

T = TypeVar("T")
JITTER = timedelta(minutes=1)
"""How far a clock may be set back unnoticed: corrections of this size are everyday."""


class TableLedger(Ledger, abc.ABC):
    """A ledger in tables."""

    place: failures.Place
    """What messages call it."""
    _clock: Clock
    _owner: str
    """The name of this opened ledger, by which others know whether it is still open."""

    @abc.abstractmethod
    def _write(self, task: Callable[[Database], T]) -> T:
        """What ``task`` returns, once it is durable."""

    @abc.abstractmethod
    def _read(self) -> AbstractContextManager[Database]:
        """One moment of the ledger."""

    @abc.abstractmethod
    def _snapshot(self) -> AbstractContextManager[Database]:
        """One moment of the ledger for as long as it takes, while others go on."""

    @abc.abstractmethod
    def _gone(self, db: Database, owner: str, age: timedelta) -> bool:
        """Whether the opened ledger of this name, which made a hold ``age`` ago, is surely closed."""

    @abc.abstractmethod
    def _integrity(self, db: Database) -> list[str]:
        """What the database itself says is wrong with it."""

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
            dataset, created = self._dataset(db, accounts), self._now(db)
            balances = _balances(db, accounts)
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

    def commit(self, hold: Hold, releases: Releases | None = None) -> None:
        """Note that the answer may leave, and keep its pieces, in one transaction."""
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
            accounts, charge = rows.charged(db, hold.id)
            for account in accounts:
                rows.set_spent(db, account, rows.spent(db, account) - charge)

        self._write(refund)

    def recall(self, recall_key: str) -> bytes | None:
        """The release stored last under this key."""
        with self._read() as db:
            return rows.kept(db, recall_key)

    def kin(self, families: Sequence[str], bases: Sequence[str] = ()) -> tuple[Kept, ...]:
        """What is kept of these families and bases, newest first."""
        with self._read() as db:
            return tuple(rows.kin(db, families, bases))

    def balances(self, accounts: Sequence[Account]) -> tuple[Balance, ...]:
        """What each account has spent and has left, all at one moment."""
        with self._read() as db:
            return tuple(_balances(db, accounts))

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
            return tuple(rows.last(db, count))

    def note_terms(
        self, terms: Mapping[str, object], about: str, loosened: Sequence[str] = ()
    ) -> None:
        """Add a record of the owner's. It belongs to no hold, and charges nothing."""

        def note(db: Database) -> None:
            content = {"owner": about, "time": rows.stamp(self._now(db)), "terms": terms}
            rows.append(db, OWNER, content | ({"loosened": list(loosened)} if loosened else {}))

        self._write(note)

    def terms(self) -> dict[str, Any] | None:
        """The terms that were noted last."""
        with self._read() as db:
            record = rows.last_of_owner(db)
        return None if record is None else record.content["terms"]

    def verify(self, noted: str | None = None) -> Verification:
        """Recompute every hash, every balance and every stored answer's digest.

        On one snapshot, so nothing waits for it.
        """
        with self._snapshot() as db:
            problems = [*self._integrity(db), *rows.false_answers(db)]
            return verified(
                rows.records(db),
                Replay(lambda hold: rows.hold_row(db, hold)),
                rows.all_spent(db),
                rows.hold_count(db),
                problems,
                noted,
            )

    def _move(self, db: Database, hold: Hold, then: State, answer: str | None = None) -> None:
        now = rows.state_of(db, hold.id)
        if now is None or not may(now, then):
            raise failures.wrong_move(self.place, hold.id, now or "unknown", then)
        rows.set_state(db, hold.id, then, answer)
        time = max(self._clock().astimezone(UTC), rows.latest(db))
        content = {"state": then, "time": rows.stamp(time)}
        rows.append(db, hold.id, content if answer is None else content | {"answer": answer})

    def _settle(self, db: Database) -> None:
        now = self._now(db)
        for hold, name, created in rows.open_holds(db):
            if self._gone(db, name, now - created):
                rows.set_state(db, hold, State.FORFEITED)
                rows.append(db, hold, {"state": State.FORFEITED, "time": rows.stamp(now)})

    def _now(self, db: Database) -> datetime:
        """The time, which in a ledger never runs backwards."""
        now, latest = self._clock().astimezone(UTC), rows.latest(db)
        if latest - now > JITTER:
            raise failures.clock_back(self.place, latest, now)
        return max(now, latest)

    def _dataset(self, db: Database, accounts: Sequence[Account]) -> str:
        """Whose accounts these are. A ledger belongs to one dataset: the first charged to it."""
        known = rows.dataset(db) or accounts[0].dataset
        for account in accounts:
            if account.dataset != known:
                raise failures.other_dataset(self.place, known, account.dataset)
        return known


def _balances(db: Database, accounts: Sequence[Account]) -> list[Balance]:
    spent = rows.spent_by(db, [account.id for account in accounts]) if accounts else []
    return [Balance(*pair) for pair in zip(accounts, spent, strict=True)]
