"""Backups: one moment of the ledger, whole or not there."""

from __future__ import annotations

import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest
from ledger_world import EVENT, NOTE, make_account, pure

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import backup as module
from dpsql.ledger.backup import back_up, open_copy
from dpsql.ledger.charge import NANO
from dpsql.ledger.rows import all_spent, hold_count

DATASET = make_account("dataset", 1000)


def ask(ledger):
    hold = ledger.reserve((DATASET,), pure("0.01"), [EVENT], NOTE, start=True)
    ledger.commit(hold)


@pytest.fixture
def backup(tmp_path) -> Path:
    return tmp_path / "backup.db"


def test_a_backup_has_everything_and_is_one_file_for_the_owner(opened, path, backup):
    ledger = opened()
    for _ in range(5):
        ask(ledger)
    found = back_up(path, backup)
    assert found == ledger.verify()
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with open_copy(backup) as copy:
        assert hold_count(copy) == 5
        assert all_spent(copy)[DATASET.id].epsilon == NANO // 20
    assert {p.name for p in path.parent.iterdir()} == {
        "backup.db", "shop.ledger", "shop.ledger-wal", "shop.ledger-shm",
    }  # fmt: skip


def test_backups_while_others_write_are_each_one_moment(opened, path, tmp_path):
    ledger = opened()
    ask(ledger)
    stop, count = threading.Event(), []

    def busy() -> None:
        while not stop.is_set():
            ask(ledger)
            count.append(1)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(8):
            asked = len(count)
            found = back_up(path, tmp_path / f"{number}.db")
            assert found.sound
            assert found.records >= 2 * asked
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert ledger.verify().sound
    assert len(count) > 8


def test_a_backup_writes_over_nothing(opened, path, backup):
    opened()
    back_up(path, backup)
    before = backup.read_bytes()
    with pytest.raises(LedgerFailed, match=r"backup.db exists already; name another file"):
        back_up(path, backup)
    assert backup.read_bytes() == before


def test_a_backup_that_cannot_be_written(opened, path, tmp_path):
    opened()
    with pytest.raises(LedgerFailed, match="cannot be written: No such file"):
        back_up(path, tmp_path / "nowhere" / "backup.db")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_FULL, r"backup .* cannot be written: the disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, r"backup .* cannot be written: the disk is full or reports"),
        (sqlite3.SQLITE_BUSY, r"ledger .* is locked by another process"),
        (None, r"ledger .* is damaged"),
    ],
)
def test_a_backup_that_fails_leaves_nothing(opened, path, backup, monkeypatch, code, said):
    ask(opened())
    before = sorted(p.name for p in path.parent.iterdir())
    real = module.schema.connect_file

    class Failing:
        def __init__(self, connection):
            self.connection = connection

        def backup(self, _):
            error = sqlite3.DatabaseError() if code is None else sqlite3.OperationalError()
            error.sqlite_errorcode = code or sqlite3.SQLITE_CORRUPT
            raise error

        def close(self):
            self.connection.close()

    monkeypatch.setattr(module.schema, "connect_file", lambda *a: Failing(real(*a)))
    with pytest.raises(LedgerFailed, match=said):
        back_up(path, backup)
    assert sorted(p.name for p in path.parent.iterdir()) == before


def test_a_backup_that_is_killed_is_not_there(opened, path, backup, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    ask(opened())
    for place, name in ((Path, "hardlink_to"), (module, "examine_copy")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, name, killed)
            with pytest.raises(Killed):
                back_up(path, backup)
        assert not backup.exists()
    back_up(path, backup)


def test_an_unsound_ledger_is_not_backed_up(opened, path, backup):
    ask(opened())
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE account SET epsilon = 0")
        db.commit()
    with pytest.raises(LedgerFailed, match="is damaged: account shop/dataset"):
        back_up(path, backup)
    assert not backup.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE hold SET accounts = '{'", "is damaged"),
        ("DROP TABLE event", "is damaged"),
        ("PRAGMA application_id = 7", "is damaged, or is not a ledger"),
    ],
)
def test_a_copy_that_cannot_be_read(opened, path, backup, change, said):
    opened().reserve((DATASET,), pure("0.01"), [EVENT], NOTE)
    back_up(path, backup)
    with closing(sqlite3.connect(backup)) as db:
        db.execute(change)
        db.commit()
    with pytest.raises(LedgerFailed, match=said), open_copy(backup):
        pass


def test_a_copy_of_the_file_with_its_log_is_read_with_it(opened, path, tmp_path):
    ledger = opened()
    ask(ledger)
    for name in ("", "-wal"):
        (tmp_path / f"copy{name}").write_bytes(path.with_name(path.name + name).read_bytes())
    with open_copy(tmp_path / "copy") as copy:
        assert hold_count(copy) == 1
