"""A ledger brought back: whatever is at hand, nobody can spend more than before."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ledger_world import EVENT, NOTE, Clock, make_account, pure

from dpsql.diagnostics.refusal import LedgerFailed, OutOfBudget
from dpsql.ledger import restore as module
from dpsql.ledger import restore_file, rows, schema
from dpsql.ledger.backup import back_up
from dpsql.ledger.charge import NANO
from dpsql.ledger.compare import charges
from dpsql.ledger.head import HeadNote
from dpsql.ledger.restore import Evidence, RestoreOutcome
from dpsql.ledger.restore_file import FileRestore
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import RecallKey

DATASET = make_account("dataset", 10)
TODAY = make_account("role:growth@2026-11-18", 10, begins=datetime(2026, 11, 18, tzinfo=UTC))
TOMORROW = make_account("role:growth@2026-11-19", 10, begins=datetime(2026, 11, 19, tzinfo=UTC))
UNKNOWN, STATED = Evidence(), Evidence(nothing_asked=True)


def ask(ledger, epsilon="0.5", accounts=(DATASET, TODAY), key: str | None = None):
    hold = ledger.reserve(accounts, pure(epsilon), [EVENT], NOTE, start=True)
    ledger.commit(hold, {RecallKey(key): b"answer"} if key else None)
    return hold


def spent(ledger, account=DATASET) -> float:
    return ledger.balances((account,))[0].spent.epsilon / NANO


def closed(ledger, account=DATASET) -> bool:
    return ledger.balances((account,))[0].closed


@pytest.fixture
def backup(tmp_path) -> Path:
    return tmp_path / "backup.db"


Run = Callable[..., RestoreOutcome]


@pytest.fixture
def run(path, clock) -> Run:
    def restored(file: Path | None = None, evidence: Evidence = UNKNOWN, **more) -> RestoreOutcome:
        return FileRestore(path, "shop", clock, evidence, **more).run(file)[0]

    return restored


def served(opened, backup, path):
    """A ledger with a backup and one question after it."""
    ledger = opened()
    ask(ledger, key="one")
    back_up(path, backup)
    ask(ledger, "0.25", key="two")
    return ledger


def test_a_plain_copy_of_the_open_file_is_no_backup(opened, backup, path, tmp_path):
    """What a backup is for: the file alone lacks what is in the log."""
    ledger = opened()
    for _ in range(5):
        ask(ledger)
    shutil.copy(path, tmp_path / "plain.db")
    back_up(path, backup)
    with closing(sqlite3.connect(tmp_path / "plain.db")) as plain:
        assert rows.hold_count(plain) == 0
    with closing(sqlite3.connect(backup)) as copy:
        assert rows.hold_count(copy) == 5


# The ledger is there


def test_the_ledger_at_hand_has_all_and_stays_as_it_is(opened, backup, path, run):
    ledger = served(opened, backup, path)
    found = run(backup)
    assert not found.closed
    assert found.because == "the ledger at hand has all of the backup"
    assert spent(ledger) == 0.75
    ask(ledger)
    assert ledger.recall("two") == b"answer"
    [record] = [r for r in ledger.events() if r.content.get("owner") == "restored"]
    assert record.content["because"] == found.because
    assert ledger.verify().sound


def test_an_older_copy_in_place_takes_the_newer_backup(opened, backup, path, tmp_path, run):
    old = tmp_path / "old.db"
    ledger = opened()
    ask(ledger)
    back_up(path, old)
    ask(ledger, "0.25", key="two")
    back_up(path, backup)
    ask(ledger)  # lost
    ledger.close()
    shutil.copy(old, path)
    found = run(backup)
    assert found.closed
    with opened() as again:
        assert spent(again) == 0.75
        assert again.recall("two") == b"answer"
        assert closed(again)
        assert again.verify().sound


@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 3)])
def test_copies_that_went_apart_are_added_up(opened, backup, path, tmp_path, run, before, after):
    old = tmp_path / "old.db"
    ledger = opened()
    ask(ledger)
    open_hold = ledger.reserve((DATASET,), pure("0.125"), [EVENT], NOTE)
    back_up(path, old)
    for _ in range(before):
        ask(ledger, "0.25")
    ledger.cancel(open_hold)
    cancelled = ledger.reserve((DATASET,), pure(1), [EVENT], NOTE)
    ledger.cancel(cancelled)
    back_up(path, backup)
    ledger.close()
    path.unlink()
    shutil.copy(old, path)
    with opened() as rolled:
        for _ in range(after):
            ask(rolled, "0.0625")
    run(backup, STATED)
    assert run(backup).because.endswith("has all of the backup"), "it is added once"
    with opened() as again:
        assert spent(again) >= 0.5 + before * 0.25 + after * 0.0625
        assert spent(again) <= 0.5 + before * 0.25 + after * 0.0625 + 0.125
        assert not closed(again)
        assert again.verify().sound


def test_a_ledger_made_anew_after_a_loss_is_added_to_its_backup(opened, backup, path, run):
    served(opened, backup, path).close()
    path.unlink()
    with opened() as anew:
        noted = ask(anew, "0.125") and anew.verify().head
    found = run(backup)
    with opened() as again:
        assert spent(again) == 0.625
        assert closed(again)
        assert again.verify(noted).sound, "what was noted meanwhile is the head of what was merged"
        assert again.verify(found.head.hash).sound
        assert found.added[DATASET.id].epsilon == NANO // 2
        listed = charges(again.events())[DATASET.id]
        assert (
            sum(charge.epsilon for charge in listed) == again.balances((DATASET,))[0].spent.epsilon
        )


def test_a_restore_while_it_is_served(opened, backup, path, run):
    ledger = opened()
    ask(ledger)
    back_up(path, backup)
    run(backup)
    ask(ledger)
    assert spent(ledger) == 1


# The ledger is gone


def test_without_the_ledger_accounts_are_closed_until_their_next_window(
    opened, backup, path, clock, run
):
    served(opened, backup, path).close()
    path.unlink()
    assert run(backup).closed
    ledger = opened()
    assert spent(ledger) == 0.5
    with pytest.raises(OutOfBudget, match="is closed: the ledger was restored from a backup"):
        ask(ledger)
    assert ledger.affordable((DATASET, TODAY)) == 0
    with pytest.raises(OutOfBudget, match='role "growth" is closed'):
        ask(ledger, accounts=(TODAY,))
    clock.turn(days=1)
    ask(ledger, accounts=(TOMORROW,))
    with pytest.raises(OutOfBudget, match="Ask the owner"):
        ask(ledger, accounts=(DATASET,))
    other = make_account("session:never/seen", 10)
    with pytest.raises(OutOfBudget, match="closed"):
        ask(ledger, accounts=(other,))
    assert ledger.recall("one") == b"answer"
    assert ledger.verify().sound


def test_without_the_ledger_the_owner_may_state_that_nothing_was_asked(opened, backup, path, run):
    served(opened, backup, path).close()
    path.unlink()
    found = run(backup, STATED)
    assert not found.closed
    with opened() as ledger:
        ask(ledger)
        [record] = [r.content for r in ledger.events() if r.content.get("owner") == "restored"]
        assert record["because"] == "the owner states that nothing was asked after the backup"


def test_the_noted_head_proves_that_nothing_is_missing(opened, backup, path, run):
    ledger = opened()
    ask(ledger)
    noted = back_up(path, backup).head
    ledger.close()
    path.unlink()
    found = run(backup, Evidence(noted))
    assert not found.closed
    assert "noted elsewhere" in found.because
    with opened() as again:
        ask(again)


def test_the_noted_head_proves_that_something_is_missing(opened, backup, path, run):
    ledger = served(opened, backup, path)
    noted = ledger.verify().head
    ledger.close()
    path.unlink()
    with pytest.raises(LedgerFailed, match="in no copy at hand: something was asked"):
        run(backup, Evidence(noted, nothing_asked=True))
    assert not path.exists()
    assert run(backup, Evidence(noted)).closed


def test_a_head_that_was_noted_before_the_backup_proves_nothing(opened, backup, path, run):
    ledger = opened()
    ask(ledger)
    noted = ledger.verify().head
    ask(ledger)
    back_up(path, backup)
    ledger.close()
    path.unlink()
    assert run(backup, Evidence(noted)).closed


def test_a_ledger_that_lacks_the_noted_head_is_no_proof(opened, backup, path, run):
    """The backup is older than the ledger at hand, which is itself rolled back."""
    served(opened, backup, path).close()
    assert run(backup, Evidence("f" * 64)).closed


def test_a_copy_that_was_put_back_by_other_means(opened, backup, path, run):
    served(opened, backup, path).close()
    shutil.copy(backup, path)
    assert run().closed
    assert run(evidence=STATED).because.startswith("the owner states")
    with opened() as ledger:
        assert closed(ledger), "what was closed stays closed"
    path.unlink()
    with pytest.raises(LedgerFailed, match="does not exist"):
        run()


def test_the_later_closing_counts(opened, backup, path, run, clock):
    served(opened, backup, path).close()
    path.unlink()
    run(backup)
    late = backup.with_name("late.db")
    back_up(path, late)
    clock.turn(days=1)
    path.unlink()
    run(backup)
    assert not run(late, STATED).closed
    with opened() as ledger:
        assert closed(ledger, TOMORROW)
        assert ledger.verify().sound


def test_the_note_follows(opened, backup, path, run, tmp_path):
    served(opened, backup, path).close()
    path.unlink()
    note = HeadNote(tmp_path / "head", path)
    found = run(backup, note=note)
    assert note.read() == found.head
    with opened(head=note.file) as ledger:
        assert spent(ledger) == 0.5


def test_a_backup_of_something_else_is_refused(opened, backup, path, clock):
    served(opened, backup, path)
    for there in (True, False):
        with pytest.raises(
            LedgerFailed, match='belongs to another policy file: to "shop", not to "clinic"'
        ):
            FileRestore(path, "clinic", clock, Evidence()).run(backup if there else None)
    backup.write_bytes(b"something else")
    with pytest.raises(LedgerFailed, match="is damaged, or is not a ledger"):
        FileRestore(path, "shop", clock, Evidence()).run(backup)
    with pytest.raises(LedgerFailed, match=r"backup .*none does not exist"):
        FileRestore(path, "shop", clock, Evidence()).run(backup.with_name("none"))


def test_a_backup_that_was_edited_is_refused(opened, backup, path, run):
    served(opened, backup, path)
    with closing(sqlite3.connect(backup)) as db:
        db.execute("UPDATE account SET epsilon = 0")
        db.commit()
    with pytest.raises(LedgerFailed, match=r"backup.db is damaged: account shop/dataset"):
        run(backup)


# The ledger is damaged


def damage(path: Path) -> None:
    """The last page, where nothing is needed to read the records."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE account SET epsilon = 1")
        db.commit()


def test_a_damaged_ledger_is_kept_and_what_can_be_read_counts(opened, backup, path, clock):
    served(opened, backup, path).close()
    damage(path)
    with pytest.raises(LedgerFailed, match="is damaged"):
        opened()
    found, kept = FileRestore(path, "shop", clock, STATED).run(backup)
    assert kept is not None
    assert kept.read_bytes()[:6] == b"SQLite"
    with opened() as ledger:
        assert spent(ledger) == 0.75, "also what the backup does not have"
        assert ledger.verify().sound
    assert found.added[DATASET.id].epsilon == NANO // 4


def test_records_after_a_damaged_one_are_not_believed(opened, backup, path, clock):
    ledger = served(opened, backup, path)
    ask(ledger, "0.125")
    ledger.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE event SET json = '{}' WHERE seq = 5")
        db.commit()
    assert [record.seq for record in restore_file.readable(path)] == [1, 2, 3, 4]
    found, _ = FileRestore(path, "shop", clock, UNKNOWN).run(backup)
    assert found.closed
    with opened() as again:
        assert spent(again) == 0.75


def test_what_was_closed_in_a_damaged_ledger_stays_closed(opened, backup, path, clock, run):
    served(opened, backup, path).close()
    path.unlink()
    run(backup)
    damage(path)
    found, _ = FileRestore(path, "shop", clock, STATED).run(backup)
    assert not found.closed
    with opened() as ledger:
        assert closed(ledger)
        assert ledger.verify().sound


def test_a_clock_that_is_wrong_at_the_restore_opens_no_window(opened, backup, path, clock, run):
    clock.turn(days=1)
    served(opened, backup, path).close()
    path.unlink()
    clock.turn(days=-1)
    assert run(backup).closed
    clock.turn(days=1)
    with opened() as ledger:
        assert closed(ledger, TOMORROW)


def test_a_ledger_of_which_nothing_can_be_read(opened, backup, path, clock):
    served(opened, backup, path).close()
    path.write_bytes(os.urandom(50_000))
    found, kept = FileRestore(path, "shop", clock, Evidence()).run(backup)
    assert found.closed
    assert kept is not None
    with opened() as ledger:
        assert spent(ledger) == 0.5


def test_a_noted_head_that_can_be_read_in_the_damaged_ledger(opened, backup, path, clock):
    ledger = served(opened, backup, path)
    noted = ledger.verify().head
    ledger.close()
    damage(path)
    found, _ = FileRestore(path, "shop", clock, Evidence(noted)).run(backup)
    assert not found.closed
    with opened() as again:
        assert spent(again) == 0.75


def test_a_damaged_ledger_in_place_needs_a_backup(opened, backup, path, run):
    served(opened, backup, path).close()
    damage(path)
    with pytest.raises(LedgerFailed, match="damaged"):
        run()


def test_a_server_that_has_the_damaged_file_open_writes_no_more(opened, backup, path, run):
    ledger = served(opened, backup, path)
    damage(path)
    run(backup)
    with pytest.raises(LedgerFailed, match="removed or replaced"):
        ask(ledger)


# Killed at any point


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ledger_world import Clock
from dpsql.ledger.restore import Evidence
from dpsql.ledger.restore_file import FileRestore
from dpsql.ledger import schema
left, names = int(sys.argv[4]), {"os.link", "os.rename", "os.remove", "os.symlink", "sqlite3.connect"}
def audit(name, arguments):
    global left
    if name in names:
        left -= 1
        if not left:
            os._exit(9)
sys.addaudithook(audit)
FileRestore(Path(sys.argv[2]), "shop", Clock(), Evidence(nothing_asked=True)).run(Path(sys.argv[3]))
print("done")
"""


def kill_at(step: int, path: Path, backup: Path) -> bool:
    """Restore in a process that ends at its ``step``-th act on files; whether it came to its end."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", KILLED, here, str(path), str(backup), str(step)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 0


class Killed(BaseException):
    """The process ends here: no handler runs that could not run after a kill."""


def steps_of(monkeypatch, left: int) -> None:
    """Stop at the ``left``-th of the acts that change what is on the disk."""
    count = itertools.count(1)

    def dies(real):
        def act(*arguments, **options):
            if next(count) >= left:
                raise Killed
            return real(*arguments, **options)

        return act

    for name in ("hardlink_to", "replace", "unlink", "symlink_to"):
        monkeypatch.setattr(Path, name, dies(getattr(Path, name)))
    monkeypatch.setattr(rows, "append", dies(rows.append))
    monkeypatch.setattr(schema, "sync", dies(schema.sync))


@pytest.mark.parametrize("how", ["there", "older", "missing", "damaged"])
def test_a_restore_that_is_killed_anywhere_loses_nothing(
    opened, backup, path, tmp_path, clock, how
):
    """After each kill the ledger is refused, or knows all that was spent; and another run ends."""
    ledger = opened()
    ask(ledger)
    old = tmp_path / "old.db"
    back_up(path, old)
    ask(ledger, "0.25")
    back_up(path, backup)
    ask(ledger, "0.125") if how in ("there", "damaged") else None
    ledger.close()
    if how == "older":
        shutil.copy(old, path)
    if how == "missing":
        path.unlink()
    if how == "damaged":
        damage(path)
    least = 0.875 if how in ("there", "damaged") else 0.75
    folder = tmp_path / "world"
    files = [p for p in tmp_path.iterdir() if p.is_file()]
    for step in range(1, 40):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        here = folder / path.name
        job = FileRestore(here, "shop", clock, STATED)
        with pytest.MonkeyPatch.context() as patch:
            steps_of(patch, step)
            try:
                job.run(backup)
                ended = True
            except Killed:
                ended = False
        check_after_kill(here, clock, how, least)
        job.run(backup)
        with SqliteLedger.open(here, clock) as again:
            assert spent(again) == least
            assert again.verify().sound
        if ended:
            break
    assert ended
    assert step > 1


def check_after_kill(path: Path, clock: Clock, how: str, least: float) -> None:
    said = ""
    try:
        with SqliteLedger.open(path, clock, must_exist=True) as ledger:
            assert how == "older" or spent(ledger) == least
            assert spent(ledger) >= 0.5
    except LedgerFailed as failed:
        said = str(failed)
    if said:
        assert {"missing": "does not exist", "damaged": "damaged"}.get(how, "?") in said or (
            how == "damaged" and "a restore was interrupted" in said
        )


@pytest.mark.slow
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_process_that_is_killed_anywhere_in_a_restore_loses_nothing(
    opened, backup, path, tmp_path, clock, how
):
    served(opened, backup, path).close()
    damage(path) if how == "damaged" else path.unlink()
    least, folder = (0.75, 0.5)[how == "missing"], tmp_path / "world"
    files = [p for p in tmp_path.iterdir() if p.is_file()]
    for step in range(1, 60):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        here = folder / path.name
        ended = kill_at(step, here, backup)
        check_after_kill(here, clock, how, least)
        FileRestore(here, "shop", clock, STATED).run(backup)
        with SqliteLedger.open(here, clock) as again:
            assert spent(again) == least
        if ended:
            break
    assert ended


def test_an_interrupted_restore_says_so_and_keeps_the_damaged_file(
    opened, backup, path, clock, monkeypatch
):
    served(opened, backup, path).close()
    damage(path)
    before = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            FileRestore(path, "shop", clock, STATED).run(backup)
    with pytest.raises(LedgerFailed, match=r"a restore was interrupted; run the same"):
        opened()
    found, kept = FileRestore(path, "shop", clock, STATED).run(backup)
    assert kept is not None
    assert kept.read_bytes() == before
    assert found.added[DATASET.id].epsilon == NANO // 4
    assert [p for p in path.parent.iterdir() if ".damaged-" in p.name] == [kept]
    odd = path.with_name("odd")
    odd.symlink_to("elsewhere")
    assert schema.kept_by_interrupted(odd) is None


# Disks


def test_a_disk_that_is_full_changes_nothing(opened, backup, path, run, monkeypatch):
    served(opened, backup, path).close()

    def full(*_):
        error = sqlite3.OperationalError("full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    before = sorted(p.name for p in path.parent.iterdir())
    monkeypatch.setattr(module.rows, "append", full)
    with pytest.raises(LedgerFailed, match="the disk is full"):
        run(backup)
    damage(path)
    with pytest.raises(LedgerFailed, match="the disk is full"):
        run(backup)
    assert sorted(p.name for p in path.parent.iterdir()) == before
    path.unlink()
    with pytest.raises(LedgerFailed, match="the disk is full"):
        run(backup)
    assert not path.exists()


def test_a_folder_that_cannot_be_written(opened, backup, path, run, monkeypatch):
    served(opened, backup, path).close()
    damage(path)

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(schema, "_keep", denied)
    with pytest.raises(LedgerFailed, match="Permission denied"):
        run(backup)


def test_another_process_makes_the_ledger_meanwhile(opened, backup, path, run, monkeypatch):
    served(opened, backup, path).close()
    path.unlink()
    real = schema.create

    def late(*arguments):
        monkeypatch.setattr(schema, "create", real)
        with opened() as other:
            ask(other, "0.0625")
        return real(*arguments)

    monkeypatch.setattr(restore_file.schema, "create", late)
    run(backup)
    with opened() as ledger:
        assert spent(ledger) == 0.5625
