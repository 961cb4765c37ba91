"""The statements of the SQLite store, each inside a transaction that its caller began."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dpsql.ledger.chain import START, Record, following
from dpsql.ledger.charge import Charge
from dpsql.ledger.states import State
from dpsql.ledger.store import Note

PAGE = 1000


def dataset(db: sqlite3.Connection) -> str | None:
    """Whose ledger it is; None until the first charge."""
    row = db.execute("SELECT value FROM meta WHERE key = 'dataset'").fetchone()
    return None if row is None else str(row[0])


def belong_to(db: sqlite3.Connection, name: str) -> None:
    """From now on it is this dataset's ledger."""
    db.execute("INSERT OR IGNORE INTO meta VALUES ('dataset', ?)", (name,))


def latest(db: sqlite3.Connection) -> datetime:
    """When the last hold was made; the beginning of time if there is none."""
    row = db.execute("SELECT created FROM hold ORDER BY id DESC LIMIT 1").fetchone()
    return datetime.fromisoformat(row[0]) if row else datetime.min.replace(tzinfo=UTC)


def stamp(moment: datetime) -> str:
    """A time as the ledger writes it: in this form, text order is time order."""
    return moment.isoformat(timespec="microseconds")


def spent(db: sqlite3.Connection, account: str) -> Charge:
    """What an account has spent."""
    row = db.execute(
        "SELECT epsilon, delta, rho, threshold FROM account WHERE id = ?", (account,)
    ).fetchone()
    return Charge(*row) if row else Charge()


def set_spent(db: sqlite3.Connection, account: str, total: Charge) -> None:
    """What an account has spent, from now on."""
    db.execute("INSERT OR REPLACE INTO account VALUES (?, ?, ?, ?, ?)", (account, *total.numbers))


def add_hold(
    db: sqlite3.Connection,
    state: State,
    charge: Charge,
    accounts: Sequence[str],
    note: Note,
    created: datetime,
    owner: str,
) -> int:
    """A new hold; its number."""
    cursor = db.execute(
        "INSERT INTO hold (state, epsilon, delta, rho, threshold, accounts, policy_version, role,"
        " session, created, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def state_of(db: sqlite3.Connection, hold: int) -> State | None:
    """How far a hold is; None if there is no such hold."""
    row = db.execute("SELECT state FROM hold WHERE id = ?", (hold,)).fetchone()
    return State(row[0]) if row else None


def set_state(db: sqlite3.Connection, hold: int, state: State, answer: str | None = None) -> None:
    """How far a hold is, from now on."""
    db.execute("UPDATE hold SET state = ?, answer = ? WHERE id = ?", (state, answer, hold))


def charged(db: sqlite3.Connection, hold: int) -> tuple[list[str], Charge]:
    """What a hold debited, and from which accounts."""
    accounts, *numbers = db.execute(
        "SELECT accounts, epsilon, delta, rho, threshold FROM hold WHERE id = ?", (hold,)
    ).fetchone()
    return json.loads(accounts), Charge(*numbers)


def open_holds(db: sqlite3.Connection) -> list[tuple[int, str, datetime]]:
    """Number, owner and birth of every hold to which something can still happen."""
    rows = db.execute(
        "SELECT id, owner, created FROM hold WHERE state IN ('reserved', 'started') ORDER BY id"
    )
    return [(hold, owner, datetime.fromisoformat(created)) for hold, owner, created in rows]


def append(db: sqlite3.Connection, hold: int, content: Mapping[str, object]) -> None:
    """One more record at the end of the chain."""
    row = db.execute("SELECT * FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    record = following(Record(*row) if row else START, hold, content)
    db.execute(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?)",
        (record.seq, record.hold, record.json, record.prev_hash, record.hash),
    )


def keep(db: sqlite3.Connection, recall_key: str, hold: int, body: bytes) -> None:
    """Store a release; a newer one under the same key takes its place."""
    db.execute("INSERT OR REPLACE INTO release VALUES (?, ?, ?)", (recall_key, hold, body))


def kept(db: sqlite3.Connection, recall_key: str) -> bytes | None:
    """The release under this key."""
    row = db.execute("SELECT body FROM release WHERE recall_key = ?", (recall_key,)).fetchone()
    return None if row is None else bytes(row[0])


def page(db: sqlite3.Connection, after: int) -> list[Record]:
    """The next records, a page of them."""
    rows = db.execute("SELECT * FROM event WHERE seq > ? ORDER BY seq LIMIT ?", (after, PAGE))
    return [Record(*row) for row in rows]


def records(db: sqlite3.Connection) -> Iterator[Record]:
    """All records, in order."""
    return (Record(*row) for row in db.execute("SELECT * FROM event ORDER BY seq"))


def hold_row(db: sqlite3.Connection, hold: int) -> tuple[Any, ...] | None:
    """A hold as ``replay.HoldRow``."""
    row = db.execute(
        "SELECT state, epsilon, delta, rho, threshold, accounts, policy_version, role, session,"
        " created, answer FROM hold WHERE id = ?",
        (hold,),
    ).fetchone()
    return None if row is None else (*row[:5], json.loads(row[5]), *row[6:])


def all_spent(db: sqlite3.Connection) -> dict[str, Charge]:
    """What every account has spent."""
    return {row[0]: Charge(*row[1:]) for row in db.execute("SELECT * FROM account")}


def hold_count(db: sqlite3.Connection) -> int:
    """How many holds there are."""
    return int(db.execute("SELECT count(*) FROM hold").fetchone()[0])


def integrity(db: sqlite3.Connection) -> list[str]:
    """What is wrong with the file itself, and with the stored answers."""
    found = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
    problems = [] if found == ["ok"] else found
    answers = db.execute(
        "SELECT recall_key, body, answer FROM release LEFT JOIN hold ON hold.id = release.hold"
    )
    for recall_key, body, answer in answers:
        if hashlib.sha256(body).hexdigest() != answer:
            problems.append(f"release {recall_key}: it is not the answer that was stored")
    return problems
