"""What can happen to a ledger while it is served, and before: the README's table, each row over both faces.

Each case does the harm, leads to the words that the README has, and takes the way out that it says. Nothing may be
lost: what was spent before counts afterwards. Clients are not told where the ledger is; the log says it.
"""

from __future__ import annotations

import re
import resource
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from callers import Caller
from endpoint import PASSWORD, ROLE, generous
from ledger_network import Network
from postgres_server import Server, shared_server
from support.postgres_home import binaries
from support.required import leave_out
from support.services import policy_file
from talk import Client, FixedHouse, fields, messages, query

from dpsql.cli import main
from dpsql.ledger import postgres, postgres_schema, schema
from dpsql.ledger.backup import back_up
from dpsql.ledger.postgres import PostgresLedger
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.service import Service

COUNT = "SELECT count(*) FROM orders WHERE amount > {}"
README = Path(__file__).parents[2] / "README.md"


class Here:
    """A policy that is served, and a client of each face."""

    def __init__(self, place: Path) -> None:
        self.policy, self.told = place, list[str]()
        self.backup = place.with_name("backup.db")
        made, self._token = users.with_token("robot", ROLE)
        users.write(place.with_name("policy.users"), [made])
        self._numbers = iter(range(1, 500))
        self.shift = timedelta(0)
        self.sent, self.ledgers = b"", set[str]()
        self.open()

    def open(self) -> None:
        self.service = Service.open(self.policy, clock=lambda: datetime.now(UTC) + self.shift)
        self._house = ServiceEndpoint(self.service, role_catalog)
        self.ledgers.add(str(self.service.ledger.place))

    @property
    def file(self) -> Path:
        return self.service.policy.ledger

    @property
    def sqlite(self) -> sqlite3.Connection:
        ledger = self.service.ledger
        assert isinstance(ledger, SqliteLedger)
        return ledger._writer.connection

    def spent(self) -> float:
        return float(self.service.session(ROLE).budget()[0].spent_epsilon)

    def ask(self, sql: str = "") -> list[str]:
        """What each face says of a question: of a new one, one after the other; "" is an answer."""
        client = Client(FixedHouse(self._house))
        client.login(ROLE, PASSWORD)
        said = client.send(query(sql or COUNT.format(next(self._numbers))))
        self.sent += client.received
        errors = [fields(body) for kind, body in messages(said) if kind == "E"]
        wire = " ".join(f"{e['M']}; {e.get('H', '')}" for e in errors)
        caller = Caller(Face(lambda: self._house.snapshots).app(), self._token)
        answer = caller.post("/v1/query", json={"sql": sql or COUNT.format(next(self._numbers))})
        self.sent += f"{answer.headers}".encode() + answer.content
        if answer.status_code == 200:
            return [wire, ""]
        assert answer.status_code == 500
        found = answer.json()
        return [wire, f"{found['code']}: {found['headline']}; {found['instead']}"]

    def fails(self) -> None:
        """Both faces say why, and what to do."""
        self.told += self.ask()

    def command(self, capsys: pytest.CaptureFixture[str], *words: str) -> str:
        """A command of the operator's, which is carried out."""
        assert main([*words, "--policy", str(self.policy)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    def does_not_start(self, capsys: pytest.CaptureFixture[str]) -> None:
        """`dpsql serve` says why."""
        assert main(["serve", "--policy", str(self.policy), "--port", "0"]) == 1
        self.told.append(capsys.readouterr().err)


Case = Callable[[Here, pytest.CaptureFixture[str]], None]
CASES: dict[str, Case] = {}
ALSO = {"does not answer": "cannot be reached"}
"""Said of further questions: they need new connections, which a server that hangs does not take."""


def case(words: str) -> Callable[[Case], Case]:
    def add(found: Case) -> Case:
        CASES[words] = found
        return found

    return add


@case("cannot grow: the disk is full")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    [(pages,)] = here.sqlite.execute("PRAGMA page_count").fetchall()
    here.sqlite.execute(f"PRAGMA max_page_count = {pages}")
    long = f" AND channel = '{'x' * 5000}'"
    for number in range(20):  # the last page may have room
        said = here.ask(COUNT.format(number) + long)
        if all(said):
            break
    here.told += said
    here.sqlite.execute("PRAGMA max_page_count = 1000000")


@case("cannot be read or written: the disk reports an error")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    """The operating system refuses to let any file grow."""
    size = here.file.with_name(here.file.name + "-wal").stat().st_size
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most[1]))
    try:
        here.fails()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)


@case("cannot be written")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    here.sqlite.execute("PRAGMA query_only = ON")
    here.fails()
    here.sqlite.execute("PRAGMA query_only = OFF")


@case("is locked by another process")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    assert isinstance(here.service.ledger, SqliteLedger)
    here.service.ledger._writer._wait = 0.05
    with closing(sqlite3.connect(here.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        here.fails()
        other.execute("ROLLBACK")


@case("was removed or replaced while it was open")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    names = [here.file.with_name(here.file.name + end) for end in ("", *schema.LOGS)]
    for name in names:
        name.rename(name.with_suffix(".away" + name.suffix))
    here.fails()
    here.service.close()
    for name in names:
        away = name.with_suffix(".away" + name.suffix)
        if away.exists():
            away.rename(name)
    here.open()


@case("is an older copy: records that were written are missing")
def _(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    """It is put in the place of the open ledger through SQLite, which no look at files can see."""
    newer = here.file.with_name("newer.db")
    back_up(here.file, newer)
    with closing(sqlite3.connect(here.backup)) as old, closing(sqlite3.connect(here.file)) as now:
        old.backup(now)
    here.fails()
    here.service.close()
    here.file.unlink()
    here.command(capsys, "ledger", "restore", str(newer), "--nothing-was-asked")
    here.open()


@case("does not exist, and the policy says that it must")
def _(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    newer = here.file.with_name("newer.db")
    back_up(here.file, newer)
    here.service.close()
    here.policy.write_text("ledger: {must_exist: true}\n" + here.policy.read_text())
    here.file.unlink()
    here.does_not_start(capsys)
    here.command(capsys, "ledger", "restore", str(newer), "--nothing-was-asked")
    here.open()


@case("is damaged")
def _(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    """Its header, its first page, and a page in the middle, one after the other."""
    newer = here.file.with_name("newer.db")
    back_up(here.file, newer)
    here.service.close()
    whole = newer.read_bytes()
    for start in (0, 100, 4096):
        for end in schema.LOGS:
            here.file.with_name(here.file.name + end).unlink(missing_ok=True)
        here.file.write_bytes(whole[:start] + bytes(2000) + whole[start + 2000 :])
        if main(["audit", "--verify", "--policy", str(here.policy)]) == 1:
            here.told.append("".join(capsys.readouterr()))
    assert len(here.told) == 3
    here.command(capsys, "ledger", "restore", str(newer), "--nothing-was-asked")
    here.open()


@case("is missing: a restore was interrupted")
def _(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    newer = here.file.with_name("newer.db")
    back_up(here.file, newer)
    here.service.close()
    here.file.rename(kept := here.file.with_name(f"{here.file.name}.damaged-0"))
    here.file.symlink_to(schema.INTERRUPTED + kept.name)
    here.does_not_start(capsys)
    here.command(capsys, "ledger", "restore", str(newer), "--nothing-was-asked")
    here.open()


@case("was last written at a later time than the clock says")
def _(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here.shift = timedelta(days=3)
    assert here.ask() == ["", ""]
    here.shift = timedelta(0)
    here.fails()
    here.service.close()
    here.does_not_start(capsys)
    here.command(capsys, "ledger", "repair", "--today", f"{datetime.now(UTC):%Y-%m-%d}")
    here.open()


@case("has a version that this dpsql does not know")
def _(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here.service.close()
    with closing(sqlite3.connect(here.file)) as db, db:
        [(now,)] = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchall()
        db.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    here.does_not_start(capsys)
    with closing(sqlite3.connect(here.file)) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (now,))
    here.open()


@case("cannot be noted")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    here.service.close()
    folder = here.policy.with_name("elsewhere")
    folder.mkdir()
    here.policy.write_text(f"ledger: {{head: {folder}/shop.head}}\n" + here.policy.read_text())
    here.open()
    shutil.rmtree(folder)
    here.fails()
    folder.mkdir()


def _on_server(here: Here, dsn: str) -> AbstractContextManager[None]:
    """The same policy with a ledger on a server, until the block ends."""

    @contextmanager
    def moved() -> Iterator[None]:
        here.service.close()
        before = here.policy.read_text()
        here.policy.write_text(
            f'ledger: {{store: postgres, dsn: "{dsn}", schema: "s{here.policy.parent.name}"}}\n{before}'
        )
        here.open()
        assert here.ask() == ["", ""]
        spent = here.spent()
        yield
        end = time.monotonic() + 30
        while any(here.ask()):  # what the server still waits for ends, and then it goes on
            assert time.monotonic() < end
        assert here.spent() > spent
        here.service.close()
        here.policy.write_text(before)
        here.open()

    return moved()


@case("does not answer")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "LOCKED", 0.2)
        patch.setattr(postgres_schema, "LOCKED", 0.2)
        patch.setitem(PostgresLedger.open.__func__.__kwdefaults__, "wait", 0.3)  # type: ignore[attr-defined]
        network = Network(shared_server(), here.policy.parent)
        with _on_server(here, network.dsn):
            patch.setattr(postgres_schema, "SLOWEST_SERVER", 2)
            network.hang()
            here.fails()
            network.go_on()
        network.close()


@case("cannot be reached")
def _(here: Here, _: pytest.CaptureFixture[str]) -> None:
    home = binaries()
    if home is None:
        leave_out("no PostgreSQL server here; tests/support/postgres.sh installs one")
    server = Server(home)
    with _on_server(here, server.dsn):
        server.end()
        here.fails()
        server.start()
    server.remove()


@pytest.fixture
def here() -> Iterator[Here]:
    found = Here(policy_file("shop", "shop", generous))
    yield found
    found.service.close()


def _rows() -> dict[str, tuple[str, str]]:
    """The table of the README: what dpsql says, what happens, and the way out."""
    text = README.read_text()
    start = text.index("| what happens | what dpsql says (DP902) |")
    lines = text[start : text.index("\n\n", start)].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {words.strip("`"): (happens, out) for happens, words, out in cells}


def test_the_table_has_all_that_is_tried_and_nothing_else() -> None:
    assert list(_rows()) == list(CASES)


def _only_the_log_has_places(here: Here, logged: list[str]) -> None:
    """The folder, file, host, database and schema of each ledger that failed, and what to do."""
    parts = {part for place in here.ledgers for part in (place, *Path(place).parts)}
    parts |= {str(here.policy.parent), "elsewhere", "passfile", "dbname", "/postgres"}
    for part in parts - {"/", "tmp", "postgres"}:  # the last is a value of IntervalStyle, too
        assert part.encode() not in here.sent, part
    assert here.sent.count(b"DP902") == len(logged)
    for line in logged:
        assert any(place in line for place in here.ledgers), line
        assert 'instead="' in line


@pytest.mark.parametrize("words", CASES)
def test_what_happens_is_told_and_nothing_is_lost(
    here: Here, words: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "dpsql.operator")
    assert here.ask() == ["", ""]
    back_up(here.file, here.backup)
    assert here.ask() == ["", ""]
    before = here.spent()
    CASES[words](here, capsys)
    assert here.told
    also = ALSO.get(words, words)
    assert words in here.told[0]
    for said in here.told:
        assert words in said or also in said, said
        assert re.search(r";\s+\w|\n\s*\w", said), "what to do"
    _only_the_log_has_places(here, [m for m in caplog.messages if m.startswith("ledger_unusable")])
    assert here.spent() >= before
    assert here.ask() == ["", ""], "the way out leads back to answers"
    assert here.spent() > before
    assert here.service.ledger.verify().sound
    assert "Traceback" not in "".join(capsys.readouterr())
    assert sys.exc_info() == (None, None, None)
