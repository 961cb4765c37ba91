"""The DuckDB engine: read-only, locked, and silent about what it holds."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import duckdb
import pytest
from support.datasets import database

from dpsql.diagnostics.refusal import EngineFailed, SourceMismatch, Stopped, TooLarge
from dpsql.engines.duckdb.engine import MOST_RELATIONS, Constants, DuckDB
from dpsql.engines.exact_rows import unseal
from dpsql.execution import execution, interrupt
from dpsql.ir.expressions import Call, Shape, integer
from dpsql.ir.relations import Filter
from dpsql.ir.statements import Read, RowValue, TableRows
from dpsql.plan.table_scans import scan_all, stored_columns
from dpsql.policy.model import Limits, Table
from dpsql.policy.prepared_copies import OVER_LIMIT_CATALOG
from dpsql.policy.types import Kind


@pytest.fixture
def engine(tmp_path: Path) -> DuckDB:
    own = shutil.copyfile(database("shop"), tmp_path / "shop.duckdb")
    return DuckDB(own, Limits(threads=1))


def test_a_file_that_is_not_there_or_not_a_database_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceMismatch, match="no such database file"):
        DuckDB(tmp_path / "none.duckdb", Limits())
    other = tmp_path / "other.duckdb"
    other.write_text("this is not a database, and long enough to be read as one" * 100)
    with pytest.raises(SourceMismatch, match="not a DuckDB database"):
        DuckDB(other, Limits())


@pytest.mark.parametrize("sql", [
    "DELETE FROM customers", "CREATE TABLE t (a INTEGER)", "SET enable_external_access = true",
    "SELECT * FROM read_csv('/etc/passwd')", "ATTACH '/tmp/x.duckdb'", "INSTALL httpfs",
    "SET memory_limit = '1TB'", "COPY customers TO '/tmp/out.csv'",
])  # fmt: skip
def test_nothing_is_written_and_nothing_outside_is_read(engine: DuckDB, sql: str) -> None:
    with pytest.raises(EngineFailed):
        engine.read_public(sql)
    engine.close()


def test_parameters_reach_the_statement(engine: DuckDB) -> None:
    assert next(unseal(engine.measure("SELECT $salt + 1 AS p0", {"salt": 41}))).to_pydict() == {
        "p0": [42]
    }
    engine.close()


def test_a_statement_that_is_kept_is_run_again(engine: DuckDB) -> None:
    """Rows are never kept, only what the statement means; and not of everything that was asked."""
    sql = "SELECT hash(random()) AS p0 FROM range(3)"
    drawn = [next(unseal(engine.measure(sql, {}))).column(0).to_pylist() for _ in range(3)]
    assert len({v for values in drawn for v in values}) == 9
    assert list(engine._local.relations) == [sql]
    first = engine._local.relations[sql]
    engine.measure(sql, {})
    assert engine._local.relations[sql] is first
    for i in range(MOST_RELATIONS):
        engine.measure(f"SELECT {i} AS p0", {})
    assert len(engine._local.relations) == MOST_RELATIONS
    assert sql not in engine._local.relations
    engine.close()


def test_what_failed_or_has_its_rows_or_has_parameters_is_not_kept(engine: DuckDB) -> None:
    with pytest.raises(EngineFailed):
        engine.measure("SELECT CAST(country AS INTEGER) AS p0 FROM customers", {})
    engine.read_public("PRAGMA version")
    for salt in (1, 2):
        assert next(unseal(engine.measure("SELECT $salt AS p0", {"salt": salt}))).to_pydict() == {
            "p0": [salt]
        }
    assert not engine._local.relations
    engine.close()


def test_rows_are_kept_in_memory_for_all_who_have_the_database_open(
    engine: DuckDB, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name, other = 'orders "x"', DuckDB(tmp_path / "shop.duckdb", Limits(threads=1))
    before = {path: path.stat().st_size for path in tmp_path.rglob("*")}
    scan = scan_all(Table("orders", {}), stored_columns(["customer_id"]))
    same = Call("eq", (*scan.fields, integer(97)), Shape(Kind.BOOLEAN))
    read = Read(Filter(scan, same, scan.fields, scan.privacy), (("c0", RowValue(scan.fields[0])),))
    rows = TableRows(read, (("c0", "customer_id"),))
    assert engine.keep(name, "orders", rows)
    assert other.keep(name, "orders", rows), "it is there"
    count = f'SELECT count(*) AS p0 FROM {OVER_LIMIT_CATALOG}."orders ""x"""'
    kept = next(unseal(other.measure(count, {})))
    there = "SELECT count(*) AS p0 FROM orders WHERE customer_id = 97"
    assert kept == next(unseal(other.measure(there, {})))
    assert kept.column(0).to_pylist() != [0]
    nowhere = TableRows(Read(scan_all(Table("nowhere", {}), ()), ()), ())
    assert not engine.keep("none", "orders", nowhere)
    assert "incident" in caplog.text
    assert {path: path.stat().st_size for path in tmp_path.rglob("*")} == before
    engine.close()
    other.close()


def test_the_catalog_is_described(engine: DuckDB) -> None:
    tables = engine.describe().tables
    assert set(tables) == {"countries", "customers", "orders", "visits"}
    assert tables["customers"].columns["age"] == "INTEGER"
    assert frozenset({"customer_id"}) in tables["customers"].unique
    engine.close()


def test_constants_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, counted = Constants(), list[str]()
    real = counting._counted
    monkeypatch.setattr(counting, "_counted", lambda sql: counted.append(sql) or real(sql))
    for _ in range(2):
        assert counting.count("SELECT 1 UNION ALL SELECT 2") == 2
    assert counting.count("SELECT 1 WHERE FALSE") == 0
    assert len(counted) == 2
    with pytest.raises(EngineFailed):
        counting.count("SELECT no_such_thing")


FOREVER = (
    "SELECT DISTINCT (a.range * b.range) % 3 AS v FROM range(1000000) AS a, range(1000000) AS b"
)


def test_counting_ends_with_its_statement_and_nobody_waits_longer() -> None:
    counting = Constants()

    def stopped() -> None:
        with execution(0.3), pytest.raises(Stopped):
            counting.count(FOREVER)

    threads = [threading.Thread(target=stopped) for _ in range(3)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert time.monotonic() - begun < 20
    assert counting.count("SELECT 1") == 1


def test_counting_takes_no_more_than_its_memory() -> None:
    counting = Constants()
    with pytest.raises(TooLarge):
        counting.count("SELECT DISTINCT 'some text ' || range AS v FROM range(30000000)")
    assert counting.count("SELECT DISTINCT range AS v FROM range(2000000)") == 2_000_000


def test_reading_public_rows_ends_with_its_statement(engine: DuckDB) -> None:
    with execution(0.3), pytest.raises(Stopped):
        engine.read_public(FOREVER)
    assert engine.read_public("SELECT 1 AS one").num_rows == 1
    with pytest.raises(EngineFailed):
        engine.read_public("SELECT no_such_thing")


def test_a_statement_is_interrupted_and_the_next_one_runs(engine: DuckDB) -> None:
    endless = "SELECT count(*) AS p0 FROM range(100000000000) AS r(i) WHERE hash(i) % 3 = 0"
    failed: list[float] = []
    begun = threading.Event()

    def measure() -> None:
        start = time.monotonic()
        with execution(60):
            begun.set()
            with pytest.raises(EngineFailed):
                engine.measure(endless, {})
        failed.append(time.monotonic() - start)

    worker = threading.Thread(target=measure)
    worker.start()
    assert begun.wait(20)
    interrupt(worker.ident + 1)  # type: ignore[operator]
    time.sleep(0.3)
    assert worker.is_alive()
    interrupt(worker.ident)  # type: ignore[arg-type]
    worker.join(30)
    assert failed
    assert failed[0] < 30
    interrupt(threading.get_ident())
    assert next(unseal(engine.measure("SELECT 1 AS p0", {}))).to_pydict() == {"p0": [1]}
    engine.close()


def test_limits_are_those_of_the_policy_and_stay(tmp_path: Path) -> None:
    """Memory, threads and time; nothing that runs there can change them or reach outside."""
    own = shutil.copyfile(database("shop"), tmp_path / "shop.duckdb")
    engine = DuckDB(own, Limits(threads=1, memory="256MB", timeout_seconds=1))
    asked = (
        "SELECT current_setting('threads') AS threads, current_setting('memory_limit') AS memory,"
        " current_setting('enable_external_access') AS outside,"
        " current_setting('lock_configuration') AS locked, current_setting('access_mode') AS mode"
    )
    (found,) = engine.read_public(asked).to_pylist()
    assert found["threads"] == 1
    assert found["memory"].startswith("244")  # MiB
    assert (found["outside"], found["locked"], found["mode"].lower()) == (False, True, "read_only")
    large = "SELECT sum(length(a)) FROM (SELECT list(repeat('x', 1000) || i) AS a FROM range(3000000) AS r(i))"
    begun = time.monotonic()
    for sql in ("SET threads = 8", "RESET memory_limit", large,
        "SELECT sum(a.range + b.range) FROM range(1000000) a, range(1000000) b",
    ):  # fmt: skip
        with pytest.raises(EngineFailed):
            engine.read_public(sql)
    assert time.monotonic() - begun < 60
    assert engine.read_public("SELECT 1 AS one").num_rows == 1
    engine.close()


def test_one_outlying_key_hardly_changes_what_a_statement_takes(tmp_path: Path) -> None:
    """An array with a place for every possible key would be given up as soon as one key is far off."""
    taken = {}
    for name, farthest in (("near", 10**6), ("far", 10**9)):
        path = tmp_path / f"{name}.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT hash(range) % 1000000 AS k, range AS x FROM range(1000)"
                f" UNION ALL SELECT {farthest}, 1"
            )
        engine = DuckDB(path, Limits(threads=1))
        sums = ", ".join(f"sum(x + {i}) AS p{i}" for i in range(60))
        times = []
        for _ in range(3):  # whatever else the process does in one of them
            start = time.process_time()
            engine.measure(f"SELECT CAST(k AS BIGINT) AS k0, {sums} FROM t GROUP BY 1", {})
            times.append(time.process_time() - start)
        taken[name] = min(times)
        engine.close()
    assert taken["near"] < 10 * taken["far"]
