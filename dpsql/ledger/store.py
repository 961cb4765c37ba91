"""What every ledger store does, whatever keeps its bytes.

The order of calls in a query's life: ``recall``, ``reserve``, ``start``, the engine, ``commit``;
``cancel`` while the engine was not contacted, ``forfeit`` when it failed. Each call that returns
is durable. Each call that raises ``LedgerFailed`` may or may not have been: the caller answers
nothing, and the charge counts if it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Protocol

from dpsql.ledger.accounts import Account, Find
from dpsql.ledger.balance import Balance
from dpsql.ledger.chain import Record
from dpsql.ledger.charge import Charge
from dpsql.privacy.cost import Cost

Clock = Callable[[], datetime]
"""Says what time it is, with a time zone."""


@dataclass(frozen=True, slots=True)
class Note:
    """For the audit: under which policy, who, in which session, asked what."""

    policy_version: str
    role: str
    session: str = "default"
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """A charge that was debited, and the right to carry on with the query that caused it."""

    id: int
    accounts: tuple[str, ...]
    charge: Charge


@dataclass(frozen=True, slots=True)
class RecallKey:
    """Under which name a release is kept, and how good it is.

    Releases of one ``family`` ask the same of the same data; they differ in ``noise``, the
    standard deviation of each of their parts. Releases of one ``base`` (none when empty) count
    the same rows in other groups; ``about`` says, as JSON, which.
    """

    key: str
    family: str = ""
    noise: tuple[float, ...] = ()
    base: str = ""
    about: str = ""


Releases = Mapping[RecallKey, bytes]
"""What one query releases, each piece under its own name."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A release that can be recalled, and when it was paid for."""

    key: RecallKey
    since: datetime
    hold: int = 0
    """What paid for it; another release under the same key has another."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found. ``head`` is the last hash, worth noting elsewhere."""

    records: int
    head: str
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether every balance and every hash is as it was written."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Size:
    """How large a ledger is."""

    records: int
    bytes: int


class Ledger(Protocol):
    """A store of accounts, holds, records and releases."""

    def reserve(
        self,
        accounts: Sequence[Account],
        cost: Cost,
        events: Sequence[str],
        note: Note,
        *,
        start: bool = False,
    ) -> Hold:
        """Debit all accounts, or none and raise ``OutOfBudget``.

        ``events`` are the JSON texts of what the cost pays for. With ``start`` the hold is also
        started, in the same transaction: for callers that go to the engine at once.
        """
        ...

    def start(self, hold: Hold) -> None:
        """Note, durably, that the engine is about to be contacted: from here on no refund."""
        ...

    def commit(self, hold: Hold, releases: Releases | None = None) -> None:
        """Note that the answer may leave, and keep its pieces, in one transaction."""
        ...

    def forfeit(self, hold: Hold) -> None:
        """Note that no answer will come. The charge stays."""
        ...

    def cancel(self, hold: Hold) -> None:
        """Refund a hold that was never started."""
        ...

    def recall(self, recall_key: str) -> bytes | None:
        """The release stored last under this key."""
        ...

    def related_releases(
        self, families: Sequence[str], bases: Sequence[str] = ()
    ) -> tuple[Kept, ...]:
        """What is kept of these families and bases, newest first; of very many only the newest."""
        ...

    def balances(self, accounts: Sequence[Account]) -> tuple[Balance, ...]:
        """What each account has spent and has left."""
        ...

    def affordable(self, accounts: Sequence[Account]) -> Fraction:
        """The largest epsilon of a pure query that all accounts admit now."""
        ...

    def events(self, after: int = 0) -> Iterator[Record]:
        """All records with a number above ``after``, in order."""
        ...

    def latest(self, count: int) -> tuple[Record, ...]:
        """The last ``count`` records, in order."""
        ...

    def note_terms(
        self,
        terms: Mapping[str, object],
        about: str,
        loosened: Sequence[str] = (),
        windows: Find | None = None,
    ) -> None:
        """Add a record of the owner's: from now on these are the terms, see ``terms.py``.

        What was spent is carried into ``windows``, see ``carry.py``.
        """
        ...

    def to_carry(self, windows: Find) -> Mapping[str, Charge]:
        """What would be carried into these windows, by the identity of each."""
        ...

    def terms(self) -> dict[str, Any] | None:
        """The terms that were noted last."""
        ...

    def secret(self) -> bytes:
        """Random bytes that stay as long as the ledger does, the same for all who open it."""
        ...

    def verify(self, noted: str | None = None) -> Verification:
        """Recompute hashes and balances; ``noted`` is a hash that must be in the chain."""
        ...

    def size(self) -> Size:
        """How large it is now."""
        ...

    def probe(self, seconds: float = 2.0) -> None:
        """Raise ``LedgerFailed`` unless the ledger can be written now, within these seconds."""
        ...

    def close(self) -> None:
        """Let go of the store. Open holds stay spent."""
        ...
