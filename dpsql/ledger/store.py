"""The interface of every ledger store, whatever database holds it.

For one query the calls are ``recall``, ``reserve``, ``start``, the engine, ``commit``. ``cancel``
is possible until the engine is contacted; ``forfeit`` is called when the engine failed. A call that
returns is durable. A call that raises ``LedgerFailed`` may or may not have been written: the caller
answers nothing, and the charge counts if it was written.
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
"""Returns the current time, with a time zone."""


@dataclass(frozen=True, slots=True)
class Note:
    """For the audit: the policy, the role, the session and the statement of a charge."""

    policy_version: str
    role: str
    session: str = "default"
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """A charge that was debited, with which its query may go on."""

    id: int
    accounts: tuple[str, ...]
    charge: Charge


@dataclass(frozen=True, slots=True)
class RecallKey:
    """The name under which a release is stored, and its accuracy.

    Releases of one ``family`` answer the same question about the same data; they differ in
    ``noise``, the accuracy of each of their numbers. Releases of one ``base`` (empty: none) count
    the same rows in other groups; ``about`` describes these groups, as JSON.
    """

    key: str
    family: str = ""
    noise: tuple[float, ...] = ()
    base: str = ""
    about: str = ""


Releases = Mapping[RecallKey, bytes]
"""The pieces that one query releases, each under its own key."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A release that can be recalled, and when it was paid for."""

    key: RecallKey
    since: datetime
    hold: int = 0
    """The hold that paid for it; a later release under the same key has another one."""


@dataclass(frozen=True, slots=True)
class DataNote:
    """The data that is served under a data version, see ``data_notes.py``."""

    version: str
    content: str
    """A keyed digest of the data."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of ``verify``. ``head`` is the last hash, which should be noted elsewhere."""

    records: int
    head: str
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether no problem was found: every balance and every hash is as it was written."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a ledger."""

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

        ``events`` are the privacy events that the cost pays for, as JSON. With ``start`` the hold
        is also started, in the same transaction, for callers that contact the engine at once.
        """
        ...

    def start(self, hold: Hold) -> None:
        """Note durably that the engine is about to be contacted; from now on there is no refund."""
        ...

    def commit(self, hold: Hold, releases: Releases | None = None) -> None:
        """Note that the answer may leave, and store its pieces, in one transaction."""
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
        """The stored releases of these families and bases, newest first; at most a fixed number."""
        ...

    def balances(self, accounts: Sequence[Account]) -> tuple[Balance, ...]:
        """The balance of each account."""
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
        data: DataNote | None = None,
    ) -> None:
        """Add a record of the owner with new terms, see ``terms.py``.

        Earlier spending is carried into ``windows``, see ``carry.py``. ``data`` is noted with it.
        """
        ...

    def data_note(self, version: str) -> DataNote | None:
        """The data that was noted last under a data version; None if none was."""
        ...

    def to_carry(self, windows: Find) -> Mapping[str, Charge]:
        """The charges that would be carried into these windows, by the identity of each."""
        ...

    def terms(self) -> dict[str, Any] | None:
        """The terms that were noted last."""
        ...

    def secret(self) -> bytes:
        """Random bytes that stay the same for the life of the ledger and for all who open it."""
        ...

    def verify(self, noted: str | None = None) -> Verification:
        """Recompute hashes and balances; ``noted`` is a hash that must be in the chain."""
        ...

    def size(self) -> Size:
        """The present size of the ledger."""
        ...

    def probe(self, seconds: float = 2.0) -> None:
        """Raise ``LedgerFailed`` unless the ledger can be written now, within these seconds."""
        ...

    def close(self) -> None:
        """Close the store. Open holds stay spent."""
        ...
