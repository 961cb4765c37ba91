"""Services over generated data, with ledgers that are thrown away."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.engines.duckdb import copies
from dpsql.engines.exact_rows import ExactRows
from dpsql.ir.statements import Query, TableRows
from dpsql.ledger.accounts import Account, Find
from dpsql.ledger.balance import Balance
from dpsql.ledger.chain import Record
from dpsql.ledger.charge import Charge
from dpsql.ledger.store import DataNote, Hold, Kept, Note, Releases, Verification
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.policy.source import SourceDescription
from dpsql.privacy.cost import Cost
from dpsql.privacy.entropy import Randomness
from dpsql.service import Service, Session
from support.datasets import database, folder, policy_text

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
_numbers = itertools.count()


def noon() -> datetime:
    """A clock that stands still."""
    return NOON


class Seeded(Randomness):
    """The same fair bits for the same seed."""

    def __init__(self, seed: int, calls: list[str] | None = None) -> None:
        self._cipher = Cipher(AES256(seed.to_bytes(32, "little")), CTR(bytes(16))).encryptor()
        self._calls = [] if calls is None else calls

    def raw(self, n: int) -> bytes:
        self._calls.append("entropy")
        return self._cipher.update(bytes(n))


@dataclass
class FreeLedger:
    """Grants everything and remembers what it was asked, in order, in ``calls``."""

    calls: list[str] = field(default_factory=list)
    charges: list[Cost] = field(default_factory=list)
    released: dict[str, bytes] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)
    failing: frozenset[str] = frozenset()

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise LedgerFailed(f"{name} fails in this test")

    def reserve(
        self, accounts: Sequence[Account], cost: Cost, events: Sequence[str], note: Note, *,
        start: bool = False,
    ) -> Hold:  # fmt: skip
        self._called("reserve started" if start else "reserve")
        self.charges.append(cost)
        return Hold(len(self.charges), tuple(a.title for a in accounts), Charge.of(cost))

    def start(self, hold: Hold) -> None:
        self._called("start")

    def commit(self, hold: Hold, releases: Releases | None = None) -> None:
        self._called("commit")
        for key, release in (releases or {}).items():
            self.released[key.key] = release
            self.kept.append(Kept(key, datetime(2026, 1, 1, tzinfo=UTC), hold.id))

    def forfeit(self, hold: Hold) -> None:
        self._called("forfeit")

    def cancel(self, hold: Hold) -> None:
        self._called("cancel")

    def recall(self, recall_key: str) -> bytes | None:
        return self.released.get(recall_key)

    def related_releases(
        self, families: Sequence[str], bases: Sequence[str] = ()
    ) -> tuple[Kept, ...]:
        self._called("recall")
        named = [kept for kept in self.kept if kept.key.family in families]
        return (*named, *(k for k in self.kept if k.key.base and k.key.base in bases))

    def balances(self, accounts: Sequence[Account]) -> tuple[Balance, ...]:
        return tuple(Balance(a, Charge()) for a in accounts)

    def affordable(self, accounts: Sequence[Account]) -> Fraction:
        return Fraction(10**9)

    def events(self, after: int = 0) -> Iterator[Record]:
        return iter(())

    def note_terms(
        self, terms: Mapping[str, object], about: str, loosened: Sequence[str] = (),
        windows: Find | None = None, data: DataNote | None = None,
    ) -> None: ...  # fmt: skip

    def data_note(self, version: str) -> DataNote | None:
        return None

    def to_carry(self, windows: Find) -> Mapping[str, Charge]:
        return {}

    def secret(self) -> bytes:
        return bytes(32)

    def terms(self) -> dict[str, object] | None:
        return None

    def latest(self, count: int) -> tuple[Record, ...]:
        return ()

    def verify(self, noted: str | None = None) -> Verification:
        return Verification(0, "", ())

    def close(self) -> None:
        self._called("close")


@dataclass
class SpyEngine:
    """Answers with what it is given, through ``rows``; notes every call in ``calls``."""

    rows: Callable[[str], pa.Table]
    calls: list[str] = field(default_factory=list)
    public: Callable[[str], pa.Table] | None = None
    statements: list[str] = field(default_factory=list)
    parameters: list[Mapping[str, int]] = field(default_factory=list)
    prepared: str | None = None

    def describe(self) -> SourceDescription:
        self.calls.append("describe")
        return SourceDescription({})

    def measure(self, sql: str, parameters: Mapping[str, int]) -> ExactRows:
        self.calls.append("measure")
        self.statements.append(sql)
        self.parameters.append(parameters)
        return ExactRows(self.rows(sql))

    def read_public(self, sql: str) -> pa.Table:
        if "DISTINCT" in sql:  # values_from, read when the service opens
            return pa.table({"v": ["at", "de", "fr"]})
        self.calls.append("read public")
        assert self.public is not None
        return self.public(sql)

    def is_empty(self, query: Query | str) -> bool:
        return False

    def largest(self, query: Query) -> int:
        return 1_000

    def keep(self, name: str, table: str, rows: TableRows) -> bool:
        return False

    def close(self) -> None:
        self.calls.append("close")


def policy_file(name: str, data: str, change: Callable[[str], str] = str) -> Path:
    """A copy of a policy beside a copy of its data, changed as a test wants."""
    source = database(data)
    place = folder() / f"policy{next(_numbers)}"
    place.mkdir()
    text = policy_text(name)
    (wanted,) = re.findall(r"path: (\w+\.duckdb)", text)
    shutil.copyfile(source, place / wanted)
    path = place / "policy.yaml"
    path.write_text(change(text))
    return path


def policy(name: str, data: str, change: Callable[[str], str] = str) -> Policy:
    """The same, loaded."""
    return load(policy_file(name, data, change))


def service(
    name: str, data: str, change: Callable[[str], str] = str, *, seed: int | None = None,
    prepared: bool = False,
) -> Service:  # fmt: skip
    """A service over generated data whose ledger grants everything; tables may be prepared."""
    path = policy_file(name, data, change)
    if prepared:
        found = load(path)
        copies.prepare(found, [t.name for t in found.tables.values() if not t.public])
    return open_over(path, seed=seed)


def open_over(path: Path, *, seed: int | None = None) -> Service:
    """A service of a policy's file whose ledger grants everything."""
    opened = Service.open(path, clock=noon)
    opened.ledger.close()
    entropy = opened.tools.entropy if seed is None else Seeded(seed)
    return Service(
        opened.policy, opened._engine, FreeLedger(), clock=noon, entropy=entropy,
        facts=opened.facts,
    )  # fmt: skip


def real_service(name: str, data: str, change: Callable[[str], str] = str) -> Service:
    """A service with the ledger that users get, in a new file."""
    return Service.open(policy_file(name, data, change), clock=noon)


def session(name: str, data: str, role: str | None = None) -> Session:
    """A session of a new service whose ledger grants everything."""
    return service(name, data).session(role)


def discard(path: Path) -> None:
    """Forget a policy's folder."""
    shutil.rmtree(path.parent, ignore_errors=True)
