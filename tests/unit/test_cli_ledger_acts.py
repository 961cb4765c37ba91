"""``dpsql ledger``: backup, restore and repair, as an owner types them."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from postgres_server import shared_server
from support.services import policy_file

from dpsql.cli import ledger as module
from dpsql.cli import main
from dpsql.ledger.open import open_ledger
from dpsql.policy.load import load
from dpsql.service import Service

COUNT = "SELECT COUNT(*) FROM orders"
Output = pytest.CaptureFixture[str]
Edit = Callable[[str], str]


def with_ledger(text: str) -> Edit:
    return lambda policy: f"ledger: {{{text}}}\n{policy}"


@pytest.fixture
def policy() -> Path:
    return policy_file("shop", "shop")


def run(policy: Path, *words: object) -> int:
    return main(["ledger", *map(str, words), "--policy", str(policy)])


def ask(policy: Path, *statements: str) -> None:
    with Service.open(policy) as service:
        for sql in statements:
            service.session("analyst").execute(sql)


def said(capsys: Output) -> str:
    return "".join(capsys.readouterr())


def test_a_backup_and_its_restore(policy: Path, tmp_path: Path, capsys: Output) -> None:
    ask(policy, COUNT)
    backup = tmp_path / "monday.db"
    assert run(policy, "backup", backup) == 0
    first, head = said(capsys).splitlines()
    assert first == f"{backup}: 3 records, sound"
    ask(policy, COUNT + " WHERE amount > 1")
    assert run(policy, "restore", backup) == 0
    assert said(capsys).startswith("restored: the ledger at hand has all of the backup\nhead ")
    ask(policy, COUNT + " WHERE amount > 2")
    load(policy).ledger.unlink()
    assert run(policy, "restore", backup) == 0
    out = said(capsys)
    assert "restored: what was asked after the backup is not known" in out
    assert "closed: every account until its next window" in out
    assert run(policy, "restore", backup, "--nothing-was-asked") == 0
    again = said(capsys)
    assert "restored: the ledger at hand has all of the backup" in again
    assert "closed by an earlier restore: every account whose window had begun by" in again
    query = ["query", "--policy", str(policy), "--role", "analyst"]
    assert main([*query, COUNT + " WHERE amount > 3"]) == 4
    assert "is closed: the ledger was restored" in said(capsys)
    assert main([*query, COUNT]) == 0, "what was answered before is still there"
    said(capsys)
    assert main(["audit", "--policy", str(policy)]) == 0
    assert "restored" in said(capsys)
    assert main(["audit", "--policy", str(policy), "--noted", head.split()[1], "--verify"]) == 0
    said(capsys)
    assert main(["budget", "--policy", str(policy)]) == 0
    assert "never (closed)" in said(capsys)
    assert main(["check", str(policy), "--against-ledger"]) == 0


def test_a_head_that_was_noted_keeps_accounts_open(
    policy: Path, tmp_path: Path, capsys: Output
) -> None:
    ask(policy, COUNT)
    backup = tmp_path / "monday.db"
    run(policy, "backup", backup)
    head = said(capsys).split()[-1]
    load(policy).ledger.unlink()
    assert run(policy, "restore", backup, "--head", head) == 0
    assert "noted elsewhere is the end of the backup" in said(capsys)
    ask(policy, COUNT + " WHERE amount > 1")


def test_the_policy_notes_the_head_itself(tmp_path: Path, capsys: Output) -> None:
    policy = policy_file("shop", "shop", with_ledger("must_exist: true, head: elsewhere/head"))
    found = load(policy)
    noted = policy.parent / "elsewhere" / "head"
    assert found.ledger_keeping.head == noted
    noted.parent.mkdir()
    with pytest.raises(Exception, match="does not exist, and the policy says that it must"):
        ask(policy, COUNT)
    assert main(["audit", "--policy", str(policy)]) == 1
    assert "does not exist, and the policy says that it must" in said(capsys)
    policy.write_text(policy.read_text().replace("must_exist: true", "must_exist: false"))
    ask(policy, COUNT)
    policy.write_text(policy.read_text().replace("must_exist: false", "must_exist: true"))
    backup = tmp_path / "monday.db"
    assert run(policy, "backup", backup) == 0
    shutil.copy(found.ledger, tmp_path / "older.db")
    found.ledger.unlink()
    assert run(policy, "restore", backup) == 0
    assert "noted elsewhere" in said(capsys)
    ask(policy, COUNT + " WHERE amount > 1")
    shutil.copy(tmp_path / "older.db", found.ledger)
    assert main(["audit", "--policy", str(policy), "--verify"]) == 1
    assert "the noted hash is not in the chain" in said(capsys)
    query = ["query", "--policy", str(policy), "--role", "analyst"]
    assert main([*query, COUNT + " WHERE amount > 2"]) == 1
    assert "is an older copy" in said(capsys)
    assert run(policy, "restore", backup, "--nothing-was-asked") == 1
    assert "something was asked after the backup" in said(capsys)
    assert run(policy, "restore", backup) == 0
    assert "closed" in said(capsys)
    assert main([*query, COUNT + " WHERE amount > 2"]) == 4


def test_a_copy_that_was_put_back_by_hand(policy: Path, tmp_path: Path, capsys: Output) -> None:
    ask(policy, COUNT)
    assert run(policy, "restore", "--nothing-was-asked") == 0
    assert "the owner states that nothing was asked" in said(capsys)
    assert run(policy, "restore") == 0
    assert "closed" in said(capsys)


def test_a_damaged_ledger(policy: Path, tmp_path: Path, capsys: Output) -> None:
    ask(policy, COUNT)
    backup = tmp_path / "monday.db"
    run(policy, "backup", backup)
    with closing(sqlite3.connect(load(policy).ledger)) as db:
        db.execute("UPDATE account SET epsilon = 0")
        db.commit()
    assert run(policy, "backup", tmp_path / "tuesday.db") == 1
    assert "is damaged" in said(capsys)
    with pytest.raises(Exception, match="is damaged"):
        ask(policy, COUNT)
    assert run(policy, "restore", backup, "--nothing-was-asked") == 0
    assert "the damaged ledger is kept as policy.ledger.db.damaged-" in said(capsys)
    ask(policy, COUNT + " WHERE amount > 1")


def test_records_that_were_damaged_are_listed_as_such(policy: Path, capsys: Output) -> None:
    ask(policy, COUNT)
    with closing(sqlite3.connect(load(policy).ledger)) as db:
        db.execute("UPDATE event SET json = '{' WHERE seq = 2")
        db.commit()
    for form in ("table", "csv", "json"):
        assert main(["audit", "--policy", str(policy), "--format", form]) == 1
        assert "damaged" in said(capsys)


def test_a_ledger_of_the_future(
    policy: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(policy, COUNT)
    now = datetime.now(UTC)
    assert run(policy, "repair") == 2
    assert "if that is right, type the date with --today" in said(capsys)
    assert run(policy, "repair", "--today", "yesterday") == 2
    assert "--today takes a date" in said(capsys)
    assert run(policy, "repair", "--today", "2001-01-01") == 2
    assert "set it first" in said(capsys)
    today = f"{now:%Y-%m-%d}"
    assert run(policy, "repair", "--today", today) == 0
    assert "nothing to repair" in said(capsys)
    future = now + timedelta(days=1000)
    with Service.open(policy, clock=lambda: future) as service:
        service.session("analyst").execute(COUNT + " WHERE amount > 1")
    with pytest.raises(Exception, match="run dpsql ledger repair"):
        ask(policy, COUNT + " WHERE amount > 2")
    assert main(["audit", "--policy", str(policy), "--verify"]) == 0
    said(capsys)
    monkeypatch.setattr(module, "clock", lambda: now)
    assert run(policy, "repair", "--today", today) == 0
    out = said(capsys)
    assert f"the ledger was dated {future:%Y-%m-%d}" in out
    assert f"to the present window: policy/role:analyst@{now:%Y-%m}" in out
    ask(policy, COUNT + " WHERE amount > 2")


def test_what_is_missing(policy: Path, tmp_path: Path, capsys: Output) -> None:
    assert run(policy, "backup") == 2
    assert "needs a file" in said(capsys)
    assert run(policy, "backup", tmp_path / "b") == 1
    assert "does not exist" in said(capsys)
    assert run(policy, "restore", tmp_path / "b") == 1
    assert "does not exist" in said(capsys)
    assert main(["audit", "--policy", str(policy)]) == 1
    assert "nothing was asked under it yet" in said(capsys)


@pytest.mark.usefixtures("monkeypatch")
def test_a_ledger_on_a_server(capsys: Output, tmp_path: Path) -> None:
    schema, server = f"s{secrets.token_hex(6)}", shared_server()
    policy = policy_file(
        "shop",
        "shop",
        with_ledger(f"store: postgres, dsn: '{server.dsn}', schema: {schema}, head: noted"),
    )
    assert run(policy, "backup", tmp_path / "b") == 1
    assert f"in the schema {schema}; back it up with the server's own tools" in said(capsys)
    assert run(policy, "restore", tmp_path / "b") == 2
    assert "put back with the server's own tools" in said(capsys)
    assert run(policy, "restore") == 1
    assert "does not exist" in said(capsys)
    ask(policy, COUNT)
    with closing(open_ledger(load(policy), lambda: datetime.now(UTC))) as ledger:
        head = ledger.verify().head
    assert run(policy, "restore", "--head", head) == 0
    assert "noted elsewhere" in said(capsys)
    ask(policy, COUNT + " WHERE amount > 1")
    assert run(policy, "restore") == 0, "its own note is no proof: other proxies have theirs"
    assert "closed" in said(capsys)
    query = ["query", "--policy", str(policy), "--role", "analyst"]
    assert main([*query, COUNT + " WHERE amount > 2"]) == 4
    said(capsys)
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"UPDATE {schema}.account SET epsilon = 0")
    assert run(policy, "restore") == 1
    assert "is damaged" in said(capsys)
