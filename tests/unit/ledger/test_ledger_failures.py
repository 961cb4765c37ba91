"""Everything that can be wrong with the file: a clear message, no answer, nothing lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from ledger_world import EVENT, NOTE, Clock, make_account, pure

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import schema
from dpsql.ledger.charge import NANO
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import RecallKey

DATASET = make_account("dataset", 100)


def ask(ledger, epsilon="0.5", **more):
    return ledger.reserve((DATASET,), pure(epsilon), [EVENT], NOTE, **more)


def spent(ledger):
    return ledger.balances((DATASET,))[0].spent.epsilon


def fails(path: Path, *words: str):
    return pytest.raises(LedgerFailed, match=rf"(?s)DP902.*{path.name}.*" + ".*".join(words))


@pytest.fixture
def unprivileged():
    """A directory of one's own, and no right to ignore permissions in it."""
    directory = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        os.chown(directory, 65534, 65534)
        os.seteuid(65534)
    yield directory
    if root:
        os.seteuid(0)
    shutil.rmtree(directory)


def test_only_the_owner_may_read_it(opened, path):
    ask(opened())
    files = [path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
    assert sorted(path.parent.iterdir()) == sorted(files)


def test_commits_wait_for_the_disk(ledger):
    for name, value in (("synchronous", 2), ("fullfsync", 1), ("journal_mode", "wal")):
        assert ledger._writer.connection.execute(f"PRAGMA {name}").fetchone() == (value,)


def test_a_path_may_be_text_and_contain_anything(opened, path):
    odd = path.with_name("100% ?#;é.ledger")
    ask(opened(str(odd)))
    assert odd.exists()


def test_a_missing_directory(opened, path):
    with fails(path, "No such file", "directory exists"):
        opened(path.parent / "nowhere" / path.name)


def test_a_directory_in_place_of_the_file(opened, path):
    path.mkdir()
    with fails(path, "cannot be opened"):
        opened()


def test_a_path_through_a_file(opened, path):
    path.write_bytes(b"x" * 100)
    with pytest.raises(LedgerFailed, match="Not a directory"):
        opened(path / "ledger")


def test_a_file_in_a_directory_one_may_not_enter(opened, unprivileged):
    closed = unprivileged / "closed"
    closed.mkdir(0o000)
    with pytest.raises(LedgerFailed, match="Permission denied"):
        opened(closed / "ledger")


def test_a_read_only_directory(opened, unprivileged):
    unprivileged.chmod(0o500)
    with fails(unprivileged / "new.ledger", "Permission denied"):
        opened(unprivileged / "new.ledger")
    unprivileged.chmod(0o700)
    ledger = opened(unprivileged / "old.ledger")
    ask(ledger)
    ledger.close()
    unprivileged.chmod(0o500)
    with fails(unprivileged / "old.ledger", "(cannot be opened|cannot be written)"):
        opened(unprivileged / "old.ledger")
    unprivileged.chmod(0o700)
    ledger = opened(unprivileged / "old.ledger")
    assert spent(ledger) == NANO // 2
    ledger.close()


def test_a_read_only_file(opened, unprivileged):
    path = unprivileged / "old.ledger"
    ledger = opened(path)
    ask(ledger)
    ledger.close()
    path.chmod(0o400)
    with fails(path, "cannot be written", "write permission"):
        opened(path)
    path.chmod(0o600)
    ledger = opened(path)
    assert spent(ledger) == NANO // 2
    ledger.close()


@pytest.mark.parametrize("content", [b"this is not a database " * 50, os.urandom(8192)])
def test_some_other_file(opened, path, content):
    path.write_bytes(content)
    with fails(path, "is not a ledger", "path in the policy"):
        opened()
    assert path.read_bytes() == content


def test_an_empty_file_is_not_a_ledger_without_spending(opened, path):
    path.touch()
    with fails(path, "is not a ledger file"):
        opened()


def test_some_other_database_is_left_as_it_is(opened, path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE meta (key, value)")
        other.commit()
    before = path.read_bytes()
    with fails(path, "is not a ledger file"):
        opened()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE meta SET value = '99' WHERE key = 'version'", "does not know: 99"),
        ("UPDATE meta SET value = '3x' WHERE key = 'version'", "is damaged"),
        ("UPDATE meta SET value = '0' WHERE key = 'version'", "is damaged"),
        ("DELETE FROM meta", "is damaged"),
        ("DROP TABLE meta", "is damaged"),
    ],
)
def test_a_file_of_another_version(opened, path, change, says):
    opened().close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(change)
        other.commit()
    with fails(path, says):
        opened()


def test_a_damaged_file(opened, path):
    ledger = opened()
    for _ in range(150):
        ask(ledger, "0.001")
    ledger.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with fails(path, "damaged", "backup"):
        opened()


def test_a_file_damaged_where_only_the_records_are(opened, path):
    ledger = opened()
    for _ in range(150):
        ledger.commit(ask(ledger, "0.001", start=True))
    ledger.close()
    content = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as other:
        root = other.execute("SELECT rootpage FROM sqlite_schema WHERE name='event'").fetchone()[0]
    content[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    with fails(path, "damaged"):
        opened()
    ledger = opened(settle=False)
    with fails(path, "damaged"):
        ask(ledger)
    with fails(path, "damaged"):
        list(ledger.events())
    assert spent(ledger) == 150 * NANO // 1000
    with fails(path, "damaged"):
        ledger.verify()


def test_values_that_dpsql_did_not_write(opened, path):
    ledger = opened()
    hold = ask(ledger)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE hold SET state = 'free'")
        other.commit()
    with fails(path, "did not write"):
        ledger.start(hold)
    assert not ledger.verify().sound


def test_a_lock_that_is_held_too_long(opened, path):
    ledger = opened(wait=0.05)
    hold = ask(ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for call in (lambda: ask(ledger), lambda: ledger.start(hold), lambda: opened(wait=0.05)):
            with fails(path, "locked by another process", "retry"):
                call()
        assert spent(ledger) == NANO // 2  # who only reads does not wait
    ask(ledger)
    assert spent(ledger) == NANO
    assert ledger.verify().sound


def test_a_full_disk(opened, path):
    ledger = opened()
    ask(ledger)
    db = ledger._writer.connection
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    hold = ask(ledger, start=True)
    with fails(path, "disk is full", "nothing was answered"):
        ledger.commit(hold, {RecallKey("key"): b"x" * 100_000})
    assert ledger.recall("key") is None
    assert spent(ledger) == NANO
    db.execute("PRAGMA max_page_count = 1000000")
    ledger.commit(hold, {RecallKey("key"): b"x" * 100_000})
    ledger.close()
    again = opened()
    assert spent(again) == NANO
    assert again.recall("key") == b"x" * 100_000
    assert again.verify().sound


LIMITED = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from ledger_world import *
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.diagnostics.refusal import LedgerFailed
ledger = SqliteLedger.open(sys.argv[1], Clock())
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
granted = 0
try:
    while True:
        ledger.reserve((make_account("dataset", 100),), pure("0.001"), [EVENT], NOTE)
        granted += 1
except LedgerFailed as failed:
    print(granted, failed)
ledger.close()
"""


def test_a_quota_on_the_file(opened, path):
    """The real thing: the operating system refuses the bytes in the middle of a transaction."""
    command = [sys.executable, "-W", "error", "-c", LIMITED, str(path), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    granted, said = done.stdout.split(" ", 1)
    assert "DP902" in said
    assert path.name in said
    assert int(granted) > 0
    ledger = opened()
    assert spent(ledger) == int(granted) * NANO // 1000
    assert ledger.verify().sound
    ask(ledger)


class Faulty:
    """A connection on which one statement fails, before or after it took effect."""

    def __init__(self, real: sqlite3.Connection, statement: str, *, late: bool) -> None:
        self.real, self.statement, self.late = real, statement, late

    def __getattr__(self, name):
        return getattr(self.real, name)

    def execute(self, sql, *parameters):
        if not sql.startswith(self.statement):
            return self.real.execute(sql, *parameters)
        if self.late:
            self.real.execute(sql, *parameters)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error


STATEMENTS = ["BEGIN", "SAVEPOINT", "SELECT", "INSERT", "RELEASE", "COMMIT"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_disk_error_at_any_statement(opened, path, statement, late):
    ledger = opened()
    ask(ledger)
    answered = ask(ledger, start=True)
    real = ledger._writer.connection
    ledger._writer.connection = Faulty(real, statement, late=late)
    for call in (
        lambda: ask(ledger),
        lambda: ledger.commit(answered, {RecallKey("key"): b"answer"}),
    ):
        with fails(path, "disk reports an error"):
            call()
    ledger._writer.connection = real
    durable = statement == "COMMIT" and late
    assert spent(ledger) == (3 if durable else 2) * NANO // 2
    assert ledger.recall("key") == (b"answer" if durable else None)
    if not durable:
        ledger.commit(answered, {RecallKey("key"): b"answer"})
    ledger.close()
    again = opened()
    assert spent(again) == (3 if durable else 2) * NANO // 2
    assert again.verify().sound


def test_a_ledger_does_not_cross_a_fork(ledger, path):
    mine, ledger._process = ledger._process, -1
    for call in (lambda: ask(ledger), lambda: spent(ledger), ledger.verify):
        with fails(path, "forked"):
            call()
    ledger.close()  # in the child: leaves the parent's file alone
    ledger._process = mine
    ask(ledger)


def test_a_file_that_is_taken_away_while_it_is_open(opened, path):
    ledger = opened()
    hold = ask(ledger, start=True)
    aside = path.with_name("aside")
    path.rename(aside)
    for call in (lambda: ask(ledger), lambda: ledger.commit(hold), lambda: spent(ledger)):
        with fails(path, "removed or replaced"):
            call()
    aside.rename(path)
    ledger.commit(hold)
    assert spent(ledger) == NANO // 2


def test_a_file_system_without_shared_memory(path):
    class NoWal:
        def execute(self, sql):
            return type("Cursor", (), {"fetchone": lambda self: ("delete",)})()

    with fails(path, "local disk"):
        schema._write_ahead(NoWal(), path)


def test_a_disk_that_fails_while_a_file_is_opened(path):
    class Failing:
        def execute(self, sql):
            raise sqlite3.OperationalError

    with fails(path, "damaged"):
        schema._write_ahead(Failing(), path)


def test_a_file_that_cannot_be_filled(path, monkeypatch):
    monkeypatch.setattr(schema, "_TABLES", "CREATE TABLE nonsense")
    with fails(path, "damaged"):
        SqliteLedger.open(path, Clock())
    assert list(path.parent.iterdir()) == []


def test_a_ledger_made_by_another_process_meanwhile(opened, path):
    first = opened()
    ask(first)
    schema.create(path)
    assert spent(opened()) == NANO // 2
    assert [p.name for p in path.parent.iterdir() if p.name.endswith(".new")] == []


def test_a_file_that_goes_away_between_two_openings(path, monkeypatch):
    """The second connection fails: the first is not left behind."""
    real, calls = schema.connect_file, []

    def second_fails(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise LedgerFailed("gone")
        return real(*arguments)

    monkeypatch.setattr(schema, "connect_file", second_fails)
    with pytest.raises(LedgerFailed, match="gone"):
        SqliteLedger.open(path, Clock())


def test_nothing_of_a_failure_comes_from_the_data(ledger):
    ask(ledger)
    ledger._writer.connection.execute("DROP TABLE hold")
    with pytest.raises(LedgerFailed) as caught:
        ask(ledger)
    assert "hold" not in str(caught.value)
    assert caught.value.__cause__ is None
