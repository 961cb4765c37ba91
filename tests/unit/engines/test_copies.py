"""Prepared copies as a file: what it is made from, when it is read, and who may see it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.measured import text_of
from support.services import Service, noon, policy_file, service

from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.engines import facts_file
from dpsql.engines.duckdb import copies
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.duckdb.guard import Guard, Unsafe
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.policy.prepared_copies import RANK, PreparedCopies

LED = """
source: {engine: duckdb, path: led.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: bigint}}}
  orders:
    unit: person
    key: o
    max_rows_per_unit: 1
    foreign_keys: [{columns: id, references: people}]
    columns: {o: {type: bigint}, id: {type: bigint}}
  items:
    unit: person
    max_rows_per_unit: 1
    foreign_keys: [{columns: o, references: orders}]
    columns: {o: {type: bigint}}
accounts: {dataset: {epsilon: 1e9, delta: 1e-5, composition: basic}}
roles: {analyst: {epsilon: 1e9, query: {epsilon: 1e6}}}
"""
QUERY = "SELECT channel, COUNT(*), SUM(amount) FROM orders GROUP BY channel"
PRIVATE = ["customers", "orders", "visits"]


@pytest.fixture
def policy() -> Policy:
    return load(policy_file("oracle", "shop"))


def document(policy: Policy) -> str | None:
    engine = DuckDB(policy.source.path, policy.limits, copies.place(policy))
    engine.close()
    return engine.prepared


def rows(policy: Policy, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(copies.place(policy)), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_what_was_prepared_is_read(policy: Policy) -> None:
    written = copies.prepare(policy, PRIVATE)
    assert [(w.table, w.beyond) for w in written] == [(name, 0) for name in PRIVATE]
    shelf, said = copies.read(policy, document(policy))
    assert sorted(shelf.copies) == PRIVATE
    assert shelf.keyed == {"customers"}
    assert said == ()
    assert copies.read(policy, None) == (PreparedCopies(), ())
    with Service.open(policy.path, clock=noon) as opened:
        session = opened.session()
        (part,) = session.prepare(QUERY).parts
        assert "dpsql_prepared" in text_of(part)
        assert session.execute(QUERY).table.num_rows == 4


def test_answers_are_recalled_whether_tables_are_prepared_or_not() -> None:
    path = policy_file("shop", "shop")
    with Service.open(path, clock=noon) as before:
        first = before.session("analyst").execute(QUERY)
    copies.prepare(load(path), ["orders"])
    with Service.open(path, clock=noon) as after:
        second = after.session("analyst").execute(QUERY)
    assert second.recalled
    assert second.table.equals(first.table)


@pytest.mark.parametrize(("change", "said"), [
    (lambda p: replace(p, data_version="2"), "another data_version"),
    (lambda p: replace(p, tables={**p.tables, "orders": replace(p.tables["orders"], columns={})}), "table orders"),
])  # fmt: skip
def test_what_was_prepared_for_something_else_is_not_read(
    change: object, said: str, policy: Policy
) -> None:
    copies.prepare(policy, ["orders"])
    found, why = copies.read(change(policy), document(policy))  # type: ignore[operator]
    assert found.copies == {}
    assert said in why[0]


def test_copies_of_a_database_that_has_changed_are_not_read(policy: Policy) -> None:
    copies.prepare(policy, ["orders"])
    written = document(policy)
    stamp = policy.source.path.stat().st_mtime_ns + 10**9
    os.utime(policy.source.path, ns=(stamp, stamp))
    shelf, (why,) = copies.read(policy, written)
    assert shelf == PreparedCopies()
    assert "has changed" in why


def _with_one_more(folder: Path, more: int) -> Policy:
    """A policy over 50 rows of persons, each with one row, and of person 7 so many more of them."""
    folder.mkdir(exist_ok=True)
    (folder / "policy.yaml").write_text(LED)
    (folder / "led.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "led.duckdb")) as connection:
        for table in ("people", "orders", "items"):
            connection.execute(
                f"CREATE TABLE {table} AS SELECT i AS id, i AS o FROM range(50) r(i)"
            )
        connection.execute(f"INSERT INTO items SELECT 7, 7 FROM range({more})")
    return load(folder / "policy.yaml")


def _replaced(folder: Path) -> tuple[int, Fraction]:
    """The rows of copies beside another database of the same size and time, and the most that is priced.

    Each person has one row in that database, as its policy says, and one has many rows in the copies.
    """
    old = _with_one_more(folder, 40)
    copies.prepare(old, ["items"])
    before = old.source.path.stat()
    new = _with_one_more(folder, 0).source.path
    os.utime(new, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert (new.stat().st_size, new.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with Service.open(folder / "policy.yaml", clock=noon) as opened:
        session = opened.session()
        (part,) = session.prepare("SELECT COUNT(*) FROM items").parts
        (count,) = session.execute("SELECT COUNT(*) FROM items").table.column(0).to_pylist()
        return count, part.noised[0].sensitivity.l1


def test_copies_beside_another_database_of_the_same_size_and_time_are_not_read(
    tmp_path: Path,
) -> None:
    assert _replaced(tmp_path / "items") == (50, 1)


def test_without_its_bytes_a_database_is_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: what was verified of one database is believed of copies of another."""
    monkeypatch.setattr(copies, "digest_of", lambda _: "")
    count, most = _replaced(tmp_path / "items")
    assert count - 50 > most


def test_a_database_that_is_moved_with_its_copies_keeps_them(
    tmp_path: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever copies both with their times need not prepare anew, and bytes are compared once."""
    copies.prepare(policy, ["orders"])
    read, real = [], facts_file.file_digest

    def digest(*given: Any) -> object:
        read.append(1)
        return real(*given)

    monkeypatch.setattr(facts_file, "file_digest", digest)
    assert copies.read(policy, document(policy))[0].copies
    assert read == []
    shutil.copytree(policy.path.parent, tmp_path / "there", copy_function=shutil.copy2)
    moved = load(tmp_path / "there" / policy.path.name)
    for _ in range(3):
        assert copies.read(moved, document(moved))[0].copies
    assert read == [1]


def test_copies_of_another_format_are_not_read(policy: Policy) -> None:
    shelf, (why,) = copies.read(policy, '{"format": 0}')
    assert shelf == PreparedCopies()
    assert "another version" in why


def test_preparing_one_table_keeps_the_others_as_they_are(policy: Policy) -> None:
    copies.prepare(policy, PRIVATE)
    sql = f'SELECT customer_id, amount, "{RANK}" FROM {{}} ORDER BY ALL'
    before = rows(policy, sql.format("orders"))
    copies.prepare(policy, ["visits"])
    shelf, _ = copies.read(policy, document(policy))
    assert sorted(shelf.copies) == PRIVATE
    copies.prepare(policy, ["orders"])
    assert rows(policy, sql.format("orders")) == before, "the salt is kept, and so are the ranks"


def test_copies_that_do_not_serve_are_replaced(policy: Policy) -> None:
    copies.prepare(policy, PRIVATE)
    newer = replace(policy, data_version="another")
    copies.prepare(newer, ["orders"])
    shelf, _ = copies.read(newer, document(policy))
    assert list(shelf.copies) == ["orders"]


def test_a_copy_has_every_row_of_a_unit_and_ranks_from_one(policy: Policy) -> None:
    copies.prepare(policy, ["orders"])
    sql = (
        f'SELECT count(*), count(DISTINCT "{RANK}"), min("{RANK}"), max("{RANK}") FROM orders'
        " GROUP BY customer_id"
    )
    assert all(n == d == top and low == 1 for n, d, low, top in rows(policy, sql))


def test_a_key_that_rows_share_is_refused_and_nothing_is_left(policy: Policy) -> None:
    with duckdb.connect(str(policy.source.path)) as connection:
        connection.execute(
            "CREATE TABLE other AS FROM customers UNION ALL FROM customers LIMIT 9999"
        )
        connection.execute("DROP TABLE customers")
        connection.execute("ALTER TABLE other RENAME TO customers")
    with pytest.raises(
        SourceMismatch, match=r"several rows of customers have the same \(customer_id\)"
    ):
        copies.prepare(policy, ["orders"])
    beside = {p.name for p in policy.path.parent.iterdir()}
    assert not any("prepared" in name for name in beside)


def test_rows_of_nobody_share_no_key(tmp_path: Path) -> None:
    """A key with a NULL matches nothing in a join, and its rows are in no copy."""
    policy = _with_one_more(tmp_path / "nobody", 0)
    with duckdb.connect(str(policy.source.path)) as connection:
        connection.execute("INSERT INTO people SELECT NULL, i FROM range(2) r(i)")
    copies.prepare(policy, ["people"])
    assert rows(policy, "SELECT count(*) FROM people") == [(50,)]
    assert copies.read(policy, document(policy))[0].keyed == {"people", "orders"}


def test_what_cannot_be_written_is_said(policy: Policy) -> None:
    columns = dict(policy.tables["orders"].columns)
    columns["nothing"] = replace(columns["amount"], name="nothing")
    tables = {**policy.tables, "orders": replace(policy.tables["orders"], columns=columns)}
    with pytest.raises(SourceMismatch, match="could not be prepared"):
        copies.prepare(replace(policy, tables=tables), ["orders"])
    assert not copies.place(policy).exists()


def test_the_file_is_as_private_as_the_database(policy: Policy) -> None:
    policy.source.path.chmod(0o640)
    copies.prepare(policy, ["orders"])
    assert copies.place(policy).stat().st_mode & 0o777 == 0o640
    assert copies.remove(policy)
    assert not copies.remove(policy)


@pytest.mark.parametrize(("allowed", "mode"), [(True, 0o640), (False, 0o600)])
def test_no_other_group_may_read_it(
    allowed: bool, mode: int, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file would be of the group of whoever prepares; the database need not be."""
    policy.source.path.chmod(0o640)
    group = policy.source.path.stat().st_gid
    given: list[int] = []

    def chown(path: Path, _: int, gid: int) -> None:
        given.append(gid)
        if not allowed:
            raise PermissionError(path)

    made = os.stat_result(
        (0o100600, *policy.source.path.stat()[1:5], group + (not allowed), *[0] * 4)
    )
    real = Path.stat
    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setattr(
        Path, "stat", lambda p, **how: made if p.name == "partial" else real(p, **how)
    )
    copies.prepare(policy, ["orders"])
    assert given == [group, -1]
    assert real(copies.place(policy)).st_mode & 0o777 == mode


def test_what_is_in_the_log_of_the_database_counts_as_a_change(policy: Policy) -> None:
    """What was committed and not yet moved into the file is read with it."""
    copies.prepare(policy, ["orders"])
    assert copies.read(policy, document(policy))[0].copies
    before = policy.source.path.stat()
    text = (
        f"import os, duckdb; c = duckdb.connect({str(policy.source.path)!r});"
        " c.execute('DELETE FROM orders'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
    after = policy.source.path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with duckdb.connect(str(policy.source.path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    shelf, said = copies.read(policy, document(policy))
    assert shelf.copies == {}
    assert "has changed" in said[0]


@pytest.mark.parametrize("who", ["a stranger", "a stranger's link", "anyone may write"])
def test_copies_that_others_may_have_written_are_refused(
    who: str, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a database in a folder that others write to, a file of theirs could multiply rows."""
    copies.prepare(policy, ["orders"])
    path = copies.place(policy)
    DuckDB(policy.source.path, policy.limits, path).close()
    stranger = os.stat_result((*path.stat()[:4], os.geteuid() + 1, *path.stat()[5:10]))
    real, link = Path.stat, Path.lstat
    if who == "anyone may write":
        path.chmod(0o666)
    elif who == "a stranger":
        monkeypatch.setattr(
            Path, "stat", lambda p, **how: stranger if p == path else real(p, **how)
        )
    else:
        monkeypatch.setattr(Path, "lstat", lambda p: stranger if p == path else link(p))
    with pytest.raises(SourceMismatch, match="may have written"):
        DuckDB(policy.source.path, policy.limits, path)
    with pytest.raises(SourceMismatch, match="may have written"):
        copies.prepare(policy, ["visits"])


def test_what_a_killed_run_has_left_is_swept_and_two_runs_do_not_meet(policy: Policy) -> None:
    left = copies.place(policy).with_name(f".{copies.place(policy).name}.abc")
    for again in (copies.prepare, copies.remove):
        left.mkdir()
        (left / "partial").write_bytes(b"rows")
        again(*[policy, ["orders"]][: 2 if again is copies.prepare else 1])  # type: ignore[operator]
        assert not left.exists()
    with policy.source.path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SourceMismatch, match="being prepared already"):
            copies.prepare(policy, ["orders"])
    assert not copies.place(policy).exists()


def test_limits_of_the_policy_hold_while_copies_are_made(policy: Policy) -> None:
    limited = replace(policy, limits=replace(policy.limits, threads=1, memory="200MB"))
    assert copies.prepare(limited, ["visits"])[0].rows > 0


def test_each_row_may_be_a_unit() -> None:
    with service("rows", "shop", prepared=True) as opened:
        assert list(opened.shelf.copies) == ["visits"]
        assert (
            opened.session().execute("SELECT COUNT(*), SUM(seconds) FROM visits").table.num_rows
            == 1
        )


def test_a_database_that_is_open_keeps_the_copies_it_had(policy: Policy) -> None:
    first = DuckDB(policy.source.path, policy.limits, copies.place(policy))
    copies.prepare(policy, ["orders"])
    second = DuckDB(policy.source.path, policy.limits, copies.place(policy))
    assert first.prepared is None
    assert second.prepared is None
    first.close()
    second.close()


@pytest.mark.parametrize("sql", [
    'SELECT count(*) AS p0 FROM dpsql_prepared."nothing"',
    'SELECT count(*) AS p0 FROM dpsql_prepared."dpsql prepared"',
    'SELECT count(*) AS p0 FROM elsewhere."orders"',
    'SELECT count(*) AS p0 FROM elsewhere.dpsql_prepared."orders"',
    'SELECT sum("dpsql steps age") AS p0 FROM dpsql_prepared."orders"',
    'SELECT sum(amount) AS p0 FROM dpsql_prepared."orders"',
    'SELECT "dpsql rank" AS p0 FROM dpsql_prepared."orders"',
])  # fmt: skip
def test_the_second_check_knows_what_copies_hold(sql: str, policy: Policy) -> None:
    copies.prepare(policy, ["orders"])
    shelf, _ = copies.read(policy, document(policy))
    guard = Guard(policy, shelf)
    guard.check(
        'SELECT sum("dpsql steps amount") AS p0 FROM dpsql_prepared."orders" WHERE "dpsql rank" <= 50'
    )
    with pytest.raises(Unsafe):
        guard.check(sql)
    with pytest.raises(Unsafe):
        Guard(policy).check('SELECT count(*) AS p0 FROM dpsql_prepared."orders"')


def test_a_file_that_is_no_copy_is_refused(policy: Policy) -> None:
    copies.place(policy).write_bytes(b"not a database" * 1000)
    with pytest.raises(SourceMismatch, match="prepared"):
        Service.open(policy.path, clock=noon)


def test_the_catalog_has_no_copies(policy: Policy, tmp_path: Path) -> None:
    copies.prepare(policy, PRIVATE)
    engine = DuckDB(policy.source.path, policy.limits, copies.place(policy))
    assert set(engine.describe().tables) == {*PRIVATE, "countries"}
    engine.close()
