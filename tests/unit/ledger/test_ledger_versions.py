"""Ledgers that every earlier version of dpsql wrote: as they were, and brought up to date.

``fixtures/ledgers`` has what each version wrote for the same queries, as SQL.
"""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from ledger_world import EVENT, NOTE, Clock, pure
from postgres_server import shared_server

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import rows, schema
from dpsql.ledger.accounts import Account
from dpsql.ledger.backup import open_copy
from dpsql.ledger.charge import NANO
from dpsql.ledger.migrate import VERSION
from dpsql.ledger.postgres import PostgresLedger
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Ledger, RecallKey

FOLDER = Path(__file__).parents[3] / "fixtures" / "ledgers"
FILES = sorted(p for p in FOLDER.glob("*.sql") if ".postgres" not in p.name)
SERVERS = sorted(FOLDER.glob("*.postgres.sql"))
DATASET = Account("policy/dataset", "dataset", "", "", 20 * NANO, 0, zcdp=False)
SPENT = 785_000_000


def written(file: Path, path: Path) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(file.read_text())
    return path


def chain(file: Path) -> list[str]:
    """The hashes that stand in a fixture, in order."""
    lines = [
        line for line in file.read_text().splitlines() if line.startswith('INSERT INTO "event"')
    ]
    return [line.rpartition(",'")[2].removesuffix("');") for line in lines]


def check(ledger: Ledger, file: Path) -> None:
    """Nothing is lost, all that was noted stays in the chain, and it goes on."""
    verdict = ledger.verify(chain(file)[-1])
    assert verdict.problems == ()
    records = list(ledger.events())
    old = len(chain(file))
    assert [record.hash for record in records[:old]] == chain(file)
    migrated = records[old].content
    assert migrated["owner"] == "migrated"
    assert migrated["version"] == [file.name.split("_")[1][0], VERSION]
    assert [b.spent.epsilon for b in ledger.balances((DATASET,))] == [SPENT]
    whole = migrated["dropped"] == 0
    assert whole == file.name.startswith("version_3")
    assert (ledger.recall("two") is not None) == whole
    hold = ledger.reserve((DATASET,), pure("0.5"), [EVENT], NOTE, start=True)
    ledger.commit(hold, {RecallKey("new", "f"): b"answer"})
    assert ledger.recall("new") == b"answer"
    assert ledger.balances((DATASET,))[0].spent.epsilon == SPENT + NANO // 2
    assert ledger.verify().sound


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_a_file_of_an_earlier_version_goes_on(file, tmp_path, clock):
    path = written(file, tmp_path / "old.db")
    clock.turn(days=1)
    with SqliteLedger.open(path, clock) as ledger:
        check(ledger, file)
        assert sum(record.content.get("owner") == "migrated" for record in ledger.events()) == 1
    with SqliteLedger.open(path, clock) as again:
        assert again.verify().sound


@pytest.mark.parametrize("file", SERVERS, ids=lambda p: p.stem)
def test_tables_of_an_earlier_version_go_on(file, clock):
    name = f"s{secrets.token_hex(6)}"
    with psycopg.connect(shared_server().dsn, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}")
        admin.execute(f"SET search_path = {name}")
        admin.execute(file.read_bytes())
    clock.turn(days=1)
    with PostgresLedger.open(shared_server().dsn, clock, schema=name) as ledger:
        check(ledger, file)


def test_there_is_a_file_of_every_version():
    assert {p.name.split("_")[1][0] for p in FILES} == {str(n) for n in range(1, int(VERSION))}


@pytest.mark.parametrize("step", range(1, 21))
def test_a_migration_that_fails_anywhere_leaves_the_file_as_it_was(
    step, tmp_path, clock, monkeypatch
):
    path = written(FILES[0], tmp_path / "old.db")
    calls = []

    class Counted(sqlite3.Connection):
        def execute(self, *arguments):
            calls.append(arguments)
            if len(calls) == step:
                error = sqlite3.OperationalError("full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            return super().execute(*arguments)

    with closing(sqlite3.connect(path, isolation_level=None, factory=Counted)) as connection:
        said = ""
        try:
            schema.check(connection, path)
        except LedgerFailed as failed:
            said = str(failed)
        assert said == "" or "disk is full" in said
        assert not connection.in_transaction
        with closing(sqlite3.connect(path)) as db:
            assert rows.meta(db)["version"] == ("1" if said else VERSION)
    clock.turn(days=1)
    with SqliteLedger.open(path, clock) as ledger:
        check(ledger, FILES[0])


def test_two_processes_migrate_once(tmp_path):
    path = written(FILES[0], tmp_path / "old.db")
    with closing(schema.connect_file(path, 1)) as one, closing(schema.connect_file(path, 1)):
        one.execute("BEGIN IMMEDIATE")
        schema.migrate(one, path, ())  # the other was faster
        assert [r.content.get("owner") for r in rows.records(one)].count("migrated") == 1


def test_a_backup_of_an_earlier_version_is_read_and_stays_as_it_is(tmp_path):
    path = written(FILES[0], tmp_path / "old.db")
    before = path.read_bytes()
    with open_copy(path) as copy:
        assert rows.meta(copy)["version"] == VERSION
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_later_version_is_named(tmp_path, clock):
    path = written(FILES[-1], tmp_path / "old.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE meta SET value = '5' WHERE key = 'version'")
    with pytest.raises(
        LedgerFailed, match="has a version that this dpsql does not know: 5; run the"
    ):
        SqliteLedger.open(path, clock)


def test_a_ledger_that_a_later_dpsql_migrated_is_let_go(opened, path):
    ledger = opened()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE meta SET value = '5' WHERE key = 'version'")
    with pytest.raises(LedgerFailed, match="does not know: 5"):
        ledger.reserve((DATASET,), pure("0.5"), [EVENT], NOTE)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE meta SET value = '3' WHERE key = 'version'")
    with pytest.raises(LedgerFailed, match="is an older copy"):
        ledger.reserve((DATASET,), pure("0.5"), [EVENT], NOTE)


def test_an_old_file_with_a_damaged_end_is_not_migrated(tmp_path, clock: Clock):
    path = written(FILES[0], tmp_path / "old.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE event SET hash = 'x' WHERE seq = 11")
    with pytest.raises(LedgerFailed, match="is damaged"):
        SqliteLedger.open(path, clock)
