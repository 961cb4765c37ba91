"""An older copy in the place of an open ledger is noticed before anything is answered."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from ledger_world import EVENT, NOTE, make_account, pure

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import open_file, rows
from dpsql.ledger.backup import back_up
from dpsql.ledger.charge import NANO
from dpsql.ledger.head import EMPTY, Head, HeadNote
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.writer import Writer

DATASET = make_account("dataset", 1000)
LOGS = ("-wal", "-shm")


def ask(ledger, epsilon="0.5"):
    hold = ledger.reserve((DATASET,), pure(epsilon), [EVENT], NOTE, start=True)
    ledger.commit(hold)


def spent(ledger) -> float:
    return ledger.balances((DATASET,))[0].spent.epsilon / NANO


def beside(path: Path, name: str) -> Path:
    return path.with_name(path.name + name)


@pytest.fixture
def older(opened, path, tmp_path):
    """An open ledger with three questions, a raw copy of its file before them, and a backup."""
    with opened() as first:
        ask(first)
    shutil.copy(path, tmp_path / "copy.db")
    ledger = opened()
    back_up(path, tmp_path / "backup.db")
    for _ in range(3):
        ask(ledger)
    return ledger


def copy_log_now(ledger, monkeypatch) -> None:
    """Let the file have what is in its log, as happens every few hundred questions."""
    monkeypatch.setattr(open_file, "LOG_BYTES", 1)
    ledger._writer._file._least = 0
    ask(ledger)
    monkeypatch.undo()


def over(source: Path, path: Path) -> None:
    """Write over the file, as cp does: it stays the same file."""
    with source.open("rb") as new, path.open("r+b") as file:
        file.truncate()
        shutil.copyfileobj(new, file)


def moved(source: Path, path: Path) -> None:
    shutil.copy(source, beside(path, ".new"))
    beside(path, ".new").replace(path)


def without_log(source: Path, path: Path) -> None:
    over(source, path)
    for name in LOGS:
        beside(path, name).unlink()


def through_sqlite(source: Path, path: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)


@pytest.mark.parametrize("copied", [False, True], ids=["in the log", "copied"])
@pytest.mark.parametrize("source", ["copy.db", "backup.db"])
@pytest.mark.parametrize("how", [over, moved, without_log, through_sqlite])
def test_an_older_copy_is_noticed(older, path, tmp_path, monkeypatch, how, source, copied):
    if copied:
        copy_log_now(older, monkeypatch)
    how(tmp_path / source, path)
    with pytest.raises(LedgerFailed, match=r"DP902.*(older copy|replaced|damaged)"):
        ask(older)
    with pytest.raises(LedgerFailed, match="DP902"):
        ask(older)


@pytest.mark.parametrize("how", [over, through_sqlite])
def test_without_the_protection_it_is_not(older, path, tmp_path, monkeypatch, how):
    """The planted fault: who does not look writes on after what is there."""
    copy_log_now(older, monkeypatch)
    monkeypatch.setattr(open_file.OpenFile, "check_content", lambda *_: None)
    monkeypatch.setattr(Writer, "_continue", lambda *_: None)
    how(tmp_path / "backup.db", path)
    ask(older)


def test_a_ledger_that_copies_its_own_log_goes_on(older, opened, path, monkeypatch):
    other = opened()
    for _ in range(3):
        copy_log_now(older, monkeypatch)
        copy_log_now(other, monkeypatch)
    ask(older)
    ask(other)
    assert spent(older) == 6
    assert older.verify().sound


def test_two_that_copy_at_once_do_it_once(older, monkeypatch):
    """Another process that has announced a copy is left to it."""
    writer = older._writer
    begins = []

    def begin() -> None:
        writer._alone(1)
        if begins:
            with closing(sqlite3.connect(older.path)) as other:  # cannot write now, but did before
                assert other.execute("PRAGMA user_version").fetchone()
            writer.connection.execute("PRAGMA user_version = 99")
        begins.append(1)

    monkeypatch.setattr(open_file, "LOG_BYTES", 1)
    before = older.path.stat().st_mtime_ns
    writer._file.copy_log(writer.connection, begin)
    assert len(begins) == 2
    assert older.path.stat().st_mtime_ns == before
    assert not writer.connection.in_transaction


@pytest.mark.parametrize("end", [False, True], ids=["copies", "is killed"])
def test_who_looks_while_a_copy_is_announced_goes_on(older, opened, monkeypatch, end):
    """Between the two transactions of a copy another process may write, for the first time or again."""
    again, first = opened(), opened()
    ask(again)
    copy_log_now(older, monkeypatch)  # a change that ``again`` has not seen
    writer, file = older._writer, older._writer._file
    begins = []
    for each in (again, first):
        each._writer._file._least = 10**12  # it does not copy anything itself

    def begin() -> None:
        if begins:
            ask(again)
            ask(first)
        begins.append(1)
        writer._alone(1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(open_file, "LOG_BYTES", 1)
    file._least = 0
    if end:
        monkeypatch.setattr(file, "_state", killed)  # copied, and not yet said
        with pytest.raises(KeyboardInterrupt):
            file.copy_log(writer.connection, begin)
        writer.connection.execute("ROLLBACK")
    else:
        file.copy_log(writer.connection, begin)
    assert len(begins) == 2
    monkeypatch.undo()
    ask(again)
    ask(first)
    if not end:
        ask(older)


def test_an_announced_copy_is_one(older, opened, path, tmp_path, monkeypatch):
    """Who was told of a copy takes one change of the file for it, and no second one."""
    other = opened()
    ask(other)
    connection = other._writer.connection
    connection.execute("PRAGMA user_version = 7")
    path.touch()
    ask(older)  # the change that made it look, and the number with it
    path.touch()
    ask(older)
    path.touch()
    with pytest.raises(LedgerFailed, match=r"DP902.*replaced"):
        ask(older)


def test_a_log_that_cannot_be_copied_now_waits(older, monkeypatch):
    def busy(*_):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(open_file.OpenFile, "copy_log", busy)
    ask(older)
    assert spent(older) == 2.5


# A noted head


@pytest.fixture
def note(path, tmp_path) -> HeadNote:
    return HeadNote(tmp_path / "elsewhere.head", path)


def test_the_head_is_noted_before_anything_is_answered(opened, note):
    ledger = opened(head=note.file)
    assert note.read() == EMPTY
    hold = ledger.reserve((DATASET,), pure(1), [EVENT], NOTE, start=True)
    assert note.read() == Head.of(ledger.latest(1)[0])
    ledger.commit(hold)
    assert note.read().hash == ledger.verify().head
    assert note.file.stat().st_mode & 0o777 == 0o600


def test_an_older_copy_is_noticed_when_it_is_opened(opened, path, tmp_path, note):
    with opened(head=note.file) as ledger:
        ask(ledger)
        back_up(path, tmp_path / "backup.db")
        ask(ledger)
    shutil.copy(tmp_path / "backup.db", path)
    with pytest.raises(LedgerFailed, match="is an older copy"):
        opened(head=note.file)
    path.unlink()
    with pytest.raises(LedgerFailed, match="is an older copy"):
        opened(head=note.file)
    opened()  # nobody noted anything


def test_a_note_that_cannot_be_written_answers_nothing(opened, note, tmp_path):
    ledger = opened(head=tmp_path / "nowhere" / "head")
    with pytest.raises(LedgerFailed, match=r"has a head that cannot be noted: .*No such file"):
        ask(ledger)
    assert spent(ledger) == 0.5, "the charge counts"
    (tmp_path / "nowhere").mkdir()
    ask(ledger)
    assert HeadNote(tmp_path / "nowhere" / "head", "x").read().hash == ledger.verify().head


@pytest.mark.parametrize("text", [b"", b"what is this", b"\xff\xfe", b"0" * 19 + b" x"])
def test_a_note_that_cannot_be_read(opened, note, text):
    with opened(head=note.file) as ledger:
        ask(ledger)
    note.file.write_bytes(text)
    with pytest.raises(LedgerFailed, match=r"has a noted head that cannot be read"):
        opened(head=note.file)


def test_any_byte_of_a_note_counts(opened, note):
    with opened(head=note.file) as ledger:
        ask(ledger)
    whole = note.file.read_bytes()
    for place in range(len(whole)):
        note.file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(LedgerFailed, match="cannot be read"):
            note.read()


def test_a_note_is_never_put_back_by_who_comes_late(note):
    note.write(Head(7, "7" * 64))
    note.write(Head(6, "6" * 64))
    assert note.read() == Head(7, "7" * 64)
    note.write(Head(3, "3" * 64), anew=True)
    assert note.read() == Head(3, "3" * 64)


def test_two_processes_share_a_note(opened, note):
    one, two = opened(head=note.file), opened(head=note.file)
    for _ in range(3):
        ask(one)
        ask(two)
    assert note.read().hash == one.verify().head


def test_a_folder_in_place_of_a_note(opened, note):
    note.file.mkdir()
    with pytest.raises(LedgerFailed, match="cannot be read"):
        opened(head=note.file)


def test_a_ledger_that_is_closed_meanwhile_says_so(older, monkeypatch):
    monkeypatch.setattr(older, "_check", lambda: None)
    older.close()
    with pytest.raises(LedgerFailed, match="is closed"):
        spent(older)


# Probes


def test_a_probe_writes(older, path):
    before = older.verify()
    older.probe()
    assert older.verify() == before
    path.rename(beside(path, ".away"))
    with pytest.raises(LedgerFailed, match="removed or replaced"):
        older.probe()


def test_a_probe_of_a_full_disk_fails_and_of_a_free_one_does_not(older, monkeypatch):
    def full(_):
        error = sqlite3.OperationalError("full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(rows, "touch", full)
        with pytest.raises(LedgerFailed, match="the disk is full"):
            older.probe()
    older.probe()


def test_a_probe_waits_no_longer_than_it_is_told(older):
    with closing(sqlite3.connect(older.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerFailed, match="locked by another process"):
            older.probe(0.05)


SEIZE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0)
try:
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("BEGIN EXCLUSIVE")
    print("free", end="")
except sqlite3.OperationalError:
    print("locked", end="")
"""
"""Another process must see the lock by which SQLite knows that this one is here."""


def test_nothing_here_takes_the_locks_of_this_process(opened, path):
    """A file that is opened and closed beside SQLite's own takes all its locks with it."""
    ledger = opened()
    ask(ledger)
    with opened(), SqliteLedger.open(path, ledger._clock, settle=False) as third:
        third.probe()
    said = subprocess.run(
        [sys.executable, "-c", SEIZE, str(path)], capture_output=True, text=True, check=False
    )
    assert said.stdout == "locked", said.stderr
