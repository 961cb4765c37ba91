"""The statements of every store, in the SQL that SQLite and PostgreSQL share.

Each runs inside a transaction that its caller began. Parameters are written ``?``.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from dpsql.ledger.chain import START, Record, next_record
from dpsql.ledger.charge import Charge
from dpsql.ledger.states import State
from dpsql.ledger.store import DataNote, Kept, Note, RecallKey

PAGE = 1000
CLOCK, CLOSED = MARKS = ("clock", "closed")
"""Entries of ``meta`` that records of the owner set.

``clock``: the last hold before the clock was put right, and when that was (JSON). ``closed``: when
accounts were closed. ``replay.py`` compares both with the records.
"""
BEGINNING = datetime.min.replace(tzinfo=UTC).isoformat()
MOST_RELATED = 256
"""The most releases that are searched for a suitable one, from the newest on."""


class Found(Protocol):
    """The rows of a statement, as DB-API cursors give them."""

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """The rows that are left."""
        ...


class Database(Protocol):
    """A connection inside a transaction."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Found:
        """Run a statement."""
        ...


def meta(db: Database) -> dict[str, str]:
    """The entries of ``meta``: version, dataset, the seal over the balances, secret, and marks."""
    return dict(db.execute("SELECT key, value FROM meta"))


def put_meta(db: Database, key: str, value: str) -> None:
    """Set an entry of ``meta``."""
    db.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def secret(db: Database) -> bytes | None:
    """The ledger's secret; None if there is none yet. Raises ``ValueError`` if it is damaged."""
    row = db.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone()
    if row is None:
        return None
    value, _, check = str(row[0]).partition(":")
    found = bytes.fromhex(value)
    if hashlib.sha256(found).hexdigest() != check:
        raise ValueError
    return found


def make_secret(db: Database) -> bytes:
    """The ledger's secret; it is created unless another process has done so."""
    found = secret(db)
    if found is None:
        found = secrets.token_bytes(32)
        put_meta(db, "secret", f"{found.hex()}:{hashlib.sha256(found).hexdigest()}")
    return found


def latest(db: Database, known: Mapping[str, str] | None = None) -> datetime:
    """When the last hold was made, or when the clock was put right after it.

    In an empty ledger it is the earliest time. ``known`` is ``meta(db)``, if the caller has it.
    """
    after, time = put_right(meta(db) if known is None else known)
    row = db.execute("SELECT id, created FROM hold ORDER BY id DESC LIMIT 1").fetchone()
    return datetime.fromisoformat(row[1] if row and row[0] > after else time)


def put_right(known: Mapping[str, str]) -> tuple[int, str]:
    """The last hold before the clock was put right, and that time; ``known`` is ``meta(db)``."""
    after, time = json.loads(known.get(CLOCK, f'[0, "{BEGINNING}"]'))
    return int(after), str(time)


def stamp(moment: datetime) -> str:
    """A time in the form of the ledger, in which text order is time order."""
    return moment.isoformat(timespec="microseconds")


def utc(moment: datetime) -> str:
    """A time of any zone, in UTC and in the form of ``stamp``."""
    return stamp(moment.astimezone(UTC))


def spent_by(db: Database, accounts: Sequence[str]) -> list[Charge]:
    """The spending of several accounts, in one statement, since a server may be far away."""
    places = ", ".join("?" for _ in accounts)
    found = db.execute(
        f"SELECT id, epsilon, delta, rho, threshold FROM account WHERE id IN ({places})",
        tuple(accounts),
    )
    known = {row[0]: Charge(*row[1:]) for row in found}
    return [known.get(account, Charge()) for account in accounts]


def set_spent(db: Database, totals: Mapping[str, tuple[Charge, Charge]]) -> None:
    """Set the spending of accounts, given as old and new totals, and update the seal."""
    row = db.execute("SELECT value FROM meta WHERE key = 'seal'").fetchone()
    seal = int(row[0], 16)
    for account, (before, after) in totals.items():
        db.execute(
            "INSERT INTO account VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " epsilon = excluded.epsilon, delta = excluded.delta, rho = excluded.rho,"
            " threshold = excluded.threshold",
            (account, *after.numbers),
        )
        seal ^= _seal(account, before) ^ _seal(account, after)
    put_meta(db, "seal", f"{seal:064x}")


def seal(db: Database) -> str:
    """A hash over all balances, in any order: a damaged or missing row changes it."""
    found = 0
    for account, charge in all_spent(db).items():
        found ^= _seal(account, charge)
    return f"{found:064x}"


def _seal(account: str, charge: Charge) -> int:
    """The hash of one balance; zero for an account that has spent nothing, as if it had no row."""
    if charge == Charge():
        return 0
    text = json.dumps([account, *charge.numbers])
    return int.from_bytes(hashlib.sha256(text.encode()).digest())


def add_hold(
    db: Database,
    state: State,
    charge: Charge,
    accounts: Sequence[str],
    note: Note,
    created: datetime,
    owner: str,
) -> int:
    """Add a hold; returns its number."""
    [(number,)] = db.execute(
        "INSERT INTO hold (state, epsilon, delta, rho, threshold, accounts, policy_version, role,"
        " session, created, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            state,
            *charge.numbers,
            json.dumps(accounts),
            note.policy_version,
            note.role,
            note.session,
            stamp(created),
            owner,
        ),
    )
    return int(number)


def state_of(db: Database, hold: int) -> State | None:
    """The state of a hold; None if there is no such hold."""
    row = db.execute("SELECT state FROM hold WHERE id = ?", (hold,)).fetchone()
    return State(row[0]) if row else None


def set_state(db: Database, hold: int, state: State, answer: str | None = None) -> None:
    """Set the state of a hold."""
    db.execute("UPDATE hold SET state = ?, answer = ? WHERE id = ?", (state, answer, hold))


def load_charge(db: Database, hold: int) -> tuple[list[str], Charge]:
    """The accounts that a hold debited, and its charge."""
    accounts, *numbers = db.execute(
        "SELECT accounts, epsilon, delta, rho, threshold FROM hold WHERE id = ?", (hold,)
    ).fetchone()
    return json.loads(accounts), Charge(*numbers)


def open_holds(db: Database) -> list[tuple[int, str, datetime]]:
    """Number, owner and time of every hold that can still change its state."""
    rows = db.execute(
        "SELECT id, owner, created FROM hold WHERE state IN ('reserved', 'started') ORDER BY id"
    )
    return [(hold, owner, datetime.fromisoformat(created)) for hold, owner, created in rows]


def touch(db: Database) -> None:
    """Write without changing anything."""
    db.execute("UPDATE meta SET value = value WHERE key = 'version'")


def head(db: Database) -> Record:
    """The last record; ``START`` if there is none."""
    row = db.execute("SELECT * FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    return Record(*row) if row else START


def hash_of(db: Database, seq: int) -> str | None:
    """The hash of the record with this number; None if there is no such record."""
    row = db.execute("SELECT hash FROM event WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else str(row[0])


def last_hold(db: Database) -> int:
    """The number of the last hold; 0 if there is none."""
    row = db.execute("SELECT id FROM hold ORDER BY id DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0


def holds_after(db: Database, hold: int, time: str) -> Iterator[tuple[str, list[str], Charge]]:
    """State, accounts and charge of every hold after this one that was made after a time."""
    found = db.execute(
        "SELECT state, accounts, epsilon, delta, rho, threshold FROM hold"
        " WHERE id > ? AND created > ? ORDER BY id",
        (hold, time),
    )
    for state, accounts, *numbers in found:
        yield state, json.loads(accounts), Charge(*numbers)


def holds(db: Database) -> Iterator[tuple[str, str, list[str], Charge]]:
    """State, time, accounts and charge of every hold; never more than a page of them in memory."""
    last = 0
    while True:
        found = list(
            db.execute(
                "SELECT id, state, created, accounts, epsilon, delta, rho, threshold FROM hold"
                " WHERE id > ? ORDER BY id LIMIT ?",
                (last, PAGE),
            )
        )
        for _, state, created, accounts, *numbers in found:
            yield state, created, json.loads(accounts), Charge(*numbers)
        if not found:
            return
        last = found[-1][0]


def append(db: Database, hold: int, content: Mapping[str, object]) -> None:
    """Append a record to the chain; raises if the last record is damaged."""
    last = head(db)
    if not last.intact:
        raise ValueError("the last record is not as it was written")
    record = next_record(last, hold, content)
    db.execute(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?)",
        (record.seq, record.hold, record.json, record.prev_hash, record.hash),
    )


def keep(db: Database, hold: int, body: bytes, key: RecallKey) -> None:
    """Store a release; it replaces an older one under the same key."""
    db.execute(
        "INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (recall_key)"
        " DO UPDATE SET hold = excluded.hold, body = excluded.body, family = excluded.family,"
        " noise = excluded.noise, base = excluded.base, about = excluded.about",
        (key.key, hold, body, key.family, json.dumps(key.noise), key.base, key.about),
    )


def digest(body: bytes, key: RecallKey) -> str:
    """A hash over a release and everything that is stored about it."""
    return _digest(body, key.key, key.family, json.dumps(key.noise), key.base, key.about)


def _digest(body: bytes, *texts: str) -> str:
    return hashlib.sha256(f"{json.dumps(texts)}\n".encode() + body).hexdigest()


def load_release(db: Database, recall_key: str) -> bytes | None:
    """The release under this key."""
    row = db.execute("SELECT body FROM release WHERE recall_key = ?", (recall_key,)).fetchone()
    return None if row is None else bytes(row[0])


def related_releases(db: Database, families: Sequence[str], bases: Sequence[str]) -> list[Kept]:
    """The latest releases of these families, then those of these bases."""
    return [*_related(db, "family", families), *_related(db, "base <> '' AND base", bases)]


def _related(db: Database, column: str, values: Sequence[str]) -> Iterator[Kept]:
    if not values:
        return
    places = ", ".join("?" for _ in values)
    found = db.execute(
        "SELECT recall_key, family, noise, base, about, created, hold FROM release"
        f" JOIN hold ON hold.id = release.hold WHERE {column} IN ({places})"
        f" ORDER BY hold DESC, recall_key LIMIT {MOST_RELATED}",
        tuple(values),
    )
    for key, family, noise, base, about, created, hold in found:
        name = RecallKey(key, family, tuple(json.loads(noise)), base, about)
        yield Kept(name, datetime.fromisoformat(created), hold)


def page(db: Database, after: int) -> list[Record]:
    """One page of the records after this number."""
    rows = db.execute("SELECT * FROM event WHERE seq > ? ORDER BY seq LIMIT ?", (after, PAGE))
    return [Record(*row) for row in rows]


def last(db: Database, count: int) -> list[Record]:
    """The last records, in order."""
    found = db.execute("SELECT * FROM event ORDER BY seq DESC LIMIT ?", (count,))
    return [Record(*row) for row in found][::-1]


def last_terms(db: Database) -> dict[str, Any] | None:
    """The terms in the latest of the owner's records that has any."""
    for content in of_owner(db):
        if content.get("terms") is not None:
            return dict(content["terms"])
    return None


def data_note(db: Database, version: str) -> DataNote | None:
    """The note of the data under a data version that was made last."""
    for content in of_owner(db):
        noted = content.get("data", {})
        if noted.get("version") == version:
            return DataNote(version, str(noted["content"]))
    return None


def of_owner(db: Database) -> Iterator[dict[str, Any]]:
    """The contents of the owner's records, latest first."""
    for row in db.execute("SELECT * FROM event WHERE hold = 0 ORDER BY seq DESC"):
        yield Record(*row).content


def records(db: Database, after: int = 0) -> Iterator[Record]:
    """All records, in order; never more than a page of them in memory."""
    while found := page(db, after):
        yield from found
        after = found[-1].seq


def hold_row(db: Database, hold: int) -> tuple[Any, ...] | None:
    """A hold as ``replay.HoldRow``."""
    row = db.execute(
        "SELECT state, epsilon, delta, rho, threshold, accounts, policy_version, role, session,"
        " created, answer FROM hold WHERE id = ?",
        (hold,),
    ).fetchone()
    return None if row is None else (*row[:5], json.loads(row[5]), *row[6:])


def all_spent(db: Database) -> dict[str, Charge]:
    """The spending of every account."""
    return {row[0]: Charge(*row[1:]) for row in db.execute("SELECT * FROM account")}


def hold_count(db: Database) -> int:
    """The number of holds."""
    return int(db.execute("SELECT count(*) FROM hold").fetchone()[0])


def false_answers(db: Database) -> Iterator[str]:
    """Messages about stored releases that do not fit their digests."""
    last = ""
    while found := list(
        db.execute(
            "SELECT recall_key, family, noise, base, about, body, answer FROM release"
            " LEFT JOIN hold ON hold.id = release.hold"
            " WHERE recall_key > ? ORDER BY recall_key LIMIT 100",
            (last,),
        )
    ):
        for recall_key, family, noise, base, about, body, answer in found:
            if _digest(body, recall_key, family, noise, base, about) not in (answer or ""):
                yield f"release {recall_key}: it is not the answer that was stored"
        last = found[-1][0]
