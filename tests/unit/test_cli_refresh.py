"""Data that changed while its version did not: who is told, and how the owner goes on."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.cli import main, refresh, serve
from dpsql.cli.demo import POLICY
from dpsql.diagnostics.refusal import DataChanged
from dpsql.engines.duckdb import copies
from dpsql.engines.duckdb.demo_data import write_demo_data
from dpsql.ledger.chain import Record
from dpsql.policy.load import load
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.service import Service, Session, service

Output = pytest.CaptureFixture[str]
OLD = "SELECT COUNT(*) AS n FROM customers"
NEW = "SELECT COUNT(*) AS n FROM customers WHERE age >= 18"
STALE = 'the data changed while data_version stayed "2026-11-01"'


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "shop.duckdb"
    write_demo_data(path)
    return path


@pytest.fixture
def policy(data: Path, tmp_path: Path) -> Path:
    """The demo's policy and data, of which one question was asked."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    shutil.copy(data, tmp_path / "shop.duckdb")
    counted(path, OLD)
    return path


def counted(policy: Path, sql: str) -> tuple[int, bool]:
    """The number, and whether it is a stored one."""
    with Service.open(policy) as service:
        reply = service.session().execute(sql)
        return reply.table.column(0)[0].as_py(), reply.recalled


def halved(policy: Path) -> None:
    """Delete half of the customers, with their orders and visits."""
    delete(policy, "customer_id % 2 = 0")


def delete(policy: Path, whom: str, database: str = "shop.duckdb") -> None:
    for table in ("orders", "visits", "customers"):
        with duckdb.connect(str(policy.with_name(database))) as db:
            db.execute(f"DELETE FROM {table} WHERE {whom}")


def refusing(policy: Path) -> None:
    policy.write_text(f"stale: refuse\n{policy.read_text()}")


def said(capsys: Output, *arguments: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*map(str, arguments)]) == code
    return "".join(capsys.readouterr())


def records(policy: Path) -> list[Record]:
    with Service.open(policy) as service:
        return list(service.ledger.events())


def test_the_owner_is_warned_when_half_of_the_customers_are_gone(
    policy: Path, capsys: Output
) -> None:
    assert STALE not in said(capsys, "check", policy)
    halved(policy)
    out = said(capsys, "check", policy)
    assert f"warning: {STALE}" in out
    assert "run `dpsql refresh policy.yaml`" in out
    assert "sound, and its source matches it, but stored answers are about older data" in out
    number, stored = counted(policy, OLD)
    assert abs(number - 5000) < 100
    assert stored
    number, stored = counted(policy, NEW)
    assert abs(number - 2500) < 100
    assert not stored
    assert said(capsys, "query", "--policy", policy, OLD).count("stale") == 0
    log = policy.with_name("policy.operator.log").read_text()
    assert 'data_stale database="policy" data_version="2026-11-01"' in log


def test_refresh_renews_the_version_and_nothing_else_in_the_file(
    policy: Path, capsys: Output
) -> None:
    halved(policy)
    before = policy.read_text()
    out = said(capsys, "refresh", policy)
    today = datetime.now(UTC).date().isoformat()
    assert policy.read_text() == before.replace('"2026-11-01"', f'"{today}"')
    assert f'data_version was "2026-11-01" and is "{today}" now' in out
    assert 'stored answers of "2026-11-01" are not used any more' in out
    spent = r"epsilon [1-4][.\d]* and delta [.\de-]+ are spent of epsilon 50 and delta 1e-5 of the data set"
    assert re.search(spent, out)
    assert "start it again" in out
    assert STALE not in said(capsys, "check", policy)
    number, stored = counted(policy, OLD)
    assert abs(number - 2500) < 100
    assert not stored
    assert "first served under data_version" in said(capsys, "refresh", policy)
    assert said(capsys, "audit", "--policy", policy, "--verify").startswith("sound")
    assert [r.content["owner"] for r in records(policy) if r.hold == 0] == [
        "first policy", "data noted", "data version",
    ]  # fmt: skip


def test_a_policy_that_refuses_such_data_is_not_opened(policy: Path, capsys: Output) -> None:
    refusing(policy)
    assert counted(policy, OLD)[1]
    halved(policy)
    for command in (("check", policy), ("query", "--policy", policy, OLD)):
        out = said(capsys, *command, code=1)
        assert "DP605: policy.yaml: the data changed while data_version stayed" in out
        assert "the data's owner runs `dpsql refresh policy.yaml`" in out
    with pytest.raises(DataChanged) as caught:
        Service.open(policy)
    assert (caught.value.code, caught.value.sqlstate) == ("DP605", "22023")
    said(capsys, "refresh", policy)
    assert abs(counted(policy, OLD)[0] - 2500) < 100


def test_the_same_bytes_are_the_same_data(policy: Path, capsys: Output) -> None:
    """Whatever file they are in, whenever it was written, and whoever opened it in between."""
    refusing(policy)
    database = policy.with_name("shop.duckdb")
    moved = policy.with_name("moved.duckdb")
    shutil.copyfile(database, moved)
    moved.replace(database)
    database.touch()
    assert counted(policy, OLD)[1]
    with duckdb.connect(str(database)) as db:
        db.execute("SELECT count(*) FROM customers").fetchone()
    assert counted(policy, OLD)[1]


def test_a_change_that_is_still_in_the_log_is_noticed(policy: Path, capsys: Output) -> None:
    refusing(policy)
    database = policy.with_name("shop.duckdb")
    other = policy.with_name("other.duckdb")
    shutil.copyfile(database, other)
    with duckdb.connect(str(other)) as db:
        db.execute("SET checkpoint_threshold = '1GB'")
        db.execute("PRAGMA disable_checkpoint_on_shutdown")
        db.execute("DELETE FROM orders WHERE customer_id = 7")
    log = other.with_name("other.duckdb.wal")
    assert other.read_bytes() == database.read_bytes()
    assert log.stat().st_size
    log.replace(database.with_name("shop.duckdb.wal"))
    with pytest.raises(DataChanged):
        Service.open(policy)


def seen(policy: Path) -> list[object]:
    """What an analyst sees of a question that is stored, and of what dpsql tells about itself."""
    found: list[object] = []
    with Service.open(policy) as service:
        session = service.session()
        for sql in (
            OLD, f"EXPLAIN {NEW}", "SHOW TABLES", "SELECT * FROM dpsql.policy", "SELECT * FROM dpsql.budget",
            "SELECT hold, epsilon, statement FROM dpsql.ledger", "SELECT * FROM countries",
        ):  # fmt: skip
            reply = session.execute(sql)
            found += [reply.table.to_pylist(), reply.notes, reply.recalled]
    return found


def test_an_analyst_sees_nothing_of_a_warning(policy: Path) -> None:
    before = seen(policy)
    halved(policy)
    assert seen(policy) == before


def test_an_analyst_would_see_a_note(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: answers of a service with stale data have a note that says so."""
    real = Service.session

    def session(self: Service, *arguments: Any) -> Session:
        found = real(self, *arguments)
        ask = found.execute
        if self.stale is not None:
            found.execute = lambda sql: replace(ask(sql), notes=(self.stale,))  # type: ignore[method-assign]
        return found

    before = seen(policy)
    halved(policy)
    monkeypatch.setattr(Service, "session", session)
    assert seen(policy) != before


def test_the_same_rows_keep_version_and_answers(policy: Path, capsys: Output) -> None:
    with duckdb.connect(str(policy.with_name("shop.duckdb"))) as db:
        db.execute("CREATE TABLE unrelated AS SELECT 1 AS x")
    assert STALE in said(capsys, "check", policy)
    text = policy.read_text()
    out = said(capsys, "refresh", policy, "--same-rows")
    assert "the ledger notes your word that the rows are the same" in out
    assert policy.read_text() == text
    assert counted(policy, OLD)[1]
    assert STALE not in said(capsys, "check", policy)
    assert records(policy)[-1].content["owner"] == "data noted, with the same rows"


def test_a_version_may_be_chosen_once_for_other_data(policy: Path, capsys: Output) -> None:
    why = "the data is what was first served"
    assert why in said(capsys, "refresh", policy, "--data-version", "b", code=2)
    for wrong in ("", "x\n", "x" * 101):
        assert "printable" in said(capsys, "refresh", policy, "--data-version", wrong, code=2)
    shutil.copy(policy.with_name("shop.duckdb"), policy.with_name("first.duckdb"))
    halved(policy)
    said(capsys, "refresh", policy, "--data-version", 'the "half"')
    assert 'data_version: "the \\"half\\""  # change it' in policy.read_text()
    assert load(policy).data_version == 'the "half"'
    half, _ = counted(policy, OLD)
    delete(policy, "true")
    out = said(capsys, "refresh", policy, "--data-version", "2026-11-01", code=2)
    assert 'other data was served under data_version "2026-11-01"' in out
    policy.with_name("first.duckdb").replace(policy.with_name("shop.duckdb"))
    out = said(capsys, "refresh", policy, "--data-version", "2026-11-01")
    assert "Those of this data, served before, are used again." in out
    number, stored = counted(policy, OLD)
    assert stored
    assert number > half + 2000


def test_nothing_is_renewed_before_anything_was_served(
    data: Path, tmp_path: Path, capsys: Output
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    shutil.copy(data, tmp_path / "shop.duckdb")
    for change in (lambda _: None, halved):
        change(path)
        assert "nothing was served under data_version" in said(capsys, "refresh", path)
    assert not path.with_name("policy.ledger.db").exists()
    wrong = said(capsys, "refresh", path, "--data-version", "2", code=2)
    assert "edit the policy" in wrong


def test_a_ledger_of_an_earlier_dpsql_has_served_other_data(
    data: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no note of the data, so nobody knows which data its stored answers are about."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    shutil.copy(data, tmp_path / "shop.duckdb")
    with monkeypatch.context() as earlier:
        earlier.setattr(service, "new_note", lambda *_: None)
        counted(path, OLD)
    assert STALE not in said(capsys, "check", path)
    halved(path)
    out = said(capsys, "refresh", path)
    assert "an earlier dpsql did not note the data" in out
    assert 'data_version was "2026-11-01" and is ' in out
    assert abs(counted(path, OLD)[0] - 2500) < 100


def test_refresh_checks_the_new_data(policy: Path, capsys: Output) -> None:
    text = policy.read_text()
    with duckdb.connect(str(policy.with_name("shop.duckdb"))) as db:
        for table in ("orders", "visits", "customers"):
            db.execute(f"CREATE TABLE other AS FROM {table} UNION ALL FROM {table}")
            db.execute(f"DROP TABLE {table}")
            db.execute(f"ALTER TABLE other RENAME TO {table}")
    assert "have the same one" in said(capsys, "refresh", policy, code=1)
    assert policy.read_text() == text


def test_prepared_copies_are_written_anew(policy: Path, capsys: Output) -> None:
    assert (
        main(["prepare", "--policy", str(policy), "--table", "orders", "--table", "customers"]) == 0
    )
    assert "prepared copies" not in said(capsys, "refresh", policy)
    halved(policy)
    assert "not read: `dpsql prepare`" in said(capsys, "check", policy)
    out = said(capsys, "refresh", policy)
    assert "prepared copies are written anew: customers, orders" in out
    out = said(capsys, "check", policy)
    assert "prepared   " in out
    assert "not read" not in out
    copies.place(load(policy)).unlink()
    policy.with_name("shop.duckdb").touch()
    assert "prepared copies" not in said(capsys, "refresh", policy)


def test_a_ledger_that_cannot_be_read_is_said(
    policy: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy.write_text(policy.read_text() + "ledger: {path: gone.db, must_exist: true}\n")
    out = said(capsys, "check", policy)
    assert "whether the data changed while data_version did not is not known: DP902" in out
    assert "sound, and its source matches it\n" in out


def test_serve_tells_the_operator(policy: Path, capsys: Output) -> None:
    halved(policy)
    with Service.open(policy) as service:
        endpoint = ServiceEndpoint(service, role_catalog)
        serve._introduce(endpoint)
        assert STALE in capsys.readouterr().err
        assert 'dpsql_data_stale{database="policy"} 1' in service.metrics_text()
    with Service.open(policy.with_name("policy.yaml")) as service:
        assert service.stale is not None


def test_a_reload_to_a_version_of_other_data_is_told_or_refused(
    policy: Path, capsys: Output
) -> None:
    first = policy.read_text()
    halved(policy)
    assert main(["refresh", str(policy)]) == 0
    second = policy.read_text()
    with Service.open(policy) as service:
        endpoint = ServiceEndpoint(service, role_catalog)
        serve._introduce(endpoint)
        assert "the data changed" not in capsys.readouterr().err
        assert 'dpsql_data_stale{database="policy"} 0' in service.metrics_text()
        policy.write_text(f"stale: refuse\n{first}")
        with pytest.raises(DataChanged):
            endpoint.reload()
        assert endpoint.snapshot.service is service
        policy.write_text(first)
        bears = type("Bears", (), {"bear": lambda self, limits: None})()
        [outcome] = serve._reload([endpoint], bears)
        assert outcome.problems == ()
        assert STALE in capsys.readouterr().err
        policy.write_text(second)
        endpoint.reload()
        assert endpoint.snapshot.service.stale is None


def test_the_next_version_is_free() -> None:
    used = {"8", "2026-11-02", "2026-11-02.2"}
    today = datetime(2026, 11, 2, tzinfo=UTC).date()
    assert refresh.next_version("7", today, used.__contains__) == "9"
    assert refresh.next_version("x", today, used.__contains__) == "2026-11-02.3"
    assert refresh.next_version("9" * 50, today, set().__contains__) == "2026-11-02"
