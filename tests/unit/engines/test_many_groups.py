"""Results of any length are noised part by part: groups that are not shown take no memory."""

from __future__ import annotations

import gc
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.datasets import database
from support.services import real_service

from dpsql import execution as execution_module
from dpsql.deadlines import AGAIN
from dpsql.diagnostics.refusal import EngineFailed, TooLarge
from dpsql.engines.duckdb import engine as engine_module
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.exact_rows import unseal
from dpsql.engines.repeated import Repeated
from dpsql.execution import Room, execution
from dpsql.policy.model import Limits
from dpsql.release import noise as noise_module

COUNT = "SELECT range AS k0, range * 2 AS p0 FROM range({})"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDB]:
    path = tmp_path / "some.duckdb"
    duckdb.connect(str(path)).close()
    found = DuckDB(path, Limits(threads=1))
    yield found
    found.close()


@pytest.mark.parametrize("rows", [0, 1, 99, 100, 300, 301, 1234])
def test_parts_are_the_whole(engine: DuckDB, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "PART", 100)
    for measure in (engine.measure, Repeated(engine, 3).measure):
        tables = list(unseal(measure(COUNT.format(rows), {})))
        whole = pa.concat_tables(tables)
        assert tables
        assert whole.column("k0").to_pylist() == list(range(rows))
        assert whole.column("p0").to_pylist() == [2 * i for i in range(rows)]
        assert engine.read_public("SELECT 1 AS v").num_rows == 1


def test_a_failure_in_a_later_part_is_like_any(
    engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing of how far it came."""
    monkeypatch.setattr(engine_module, "PART", 2_048)
    sql = (
        "SELECT CASE WHEN range < 150000 THEN 1 ELSE CAST(error('x' || range) AS INTEGER) END AS p0"
    )
    rows = engine.measure(f"{sql} FROM range(200000)", {})
    with pytest.raises(EngineFailed, match=r"^DP901: the engine could not finish this query \(inc"):
        list(unseal(rows))
    assert engine.read_public("SELECT 1 AS v").num_rows == 1


def test_groups_that_are_not_shown_take_no_memory(tmp_path: Path) -> None:
    """A million groups of one unit each, behind a threshold that none of them passes."""
    path = Path(shutil.copyfile(database("shop"), tmp_path / "shop.duckdb"))
    with duckdb.connect(str(path)) as connection:
        columns = [c[0] for c in connection.execute("DESCRIBE customers").fetchall()]
        made = {"customer_id": "10000000 + range", "city": "'city ' || range", "country": "'at'"}
        values = ", ".join(made.get(c, "NULL") for c in columns)
        connection.execute(f"INSERT INTO customers SELECT {values} FROM range(500000)")
    with real_service("shop", "shop") as opened:
        engine = DuckDB(path, Limits(threads=1))
        seen, released = list[int](), noise_module._noised_part

        def shown(table: pa.Table, *rest: object) -> pa.Table:
            seen.append(table.num_rows)
            return released(table, *rest)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opened._engine, "measure", engine.measure)
            patch.setattr(noise_module, "_noised_part", shown)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            reply = opened.session("analyst").execute(
                "SELECT city, COUNT(*) FROM customers GROUP BY city"
            )
        assert sum(seen) > 500_000
        assert max(seen) <= engine_module.PART
        assert reply.table.num_rows < 1_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000
        engine.close()


def test_a_stop_between_two_parts_stops_nothing_that_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was stopped is still in a traceback that refers to itself, until it is collected."""
    monkeypatch.setattr(engine_module, "PART", 2)
    with real_service("shop", "shop") as opened:
        session, released = opened.session("analyst"), noise_module._noised_part
        before = len(execution_module._DEADLINES._stops)

        def stopped(*given: object) -> pa.Table:
            running.interrupt()
            return released(*given)  # type: ignore[arg-type]

        gc.disable()
        try:
            with monkeypatch.context() as patch, execution(60) as running:
                patch.setattr(noise_module, "_noised_part", stopped)
                with pytest.raises(EngineFailed):
                    session.execute("SELECT city, COUNT(*) FROM customers GROUP BY city")
            assert len(execution_module._DEADLINES._stops) == before
            time.sleep(2 * AGAIN)
            assert session.execute("SELECT COUNT(*) FROM customers").table.num_rows == 1
        finally:
            gc.enable()


def test_public_groups_that_are_too_many_to_hold_cost_nothing() -> None:
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        text = "SELECT placed, COUNT(*) FROM orders GROUP BY placed"
        with execution(60, room=Room(100)), pytest.raises(TooLarge):
            session.execute(text)
        assert not any(record.hold for record in opened.ledger.events())


def test_what_is_shown_is_bounded_by_how_many_groups_are_shown() -> None:
    """After the charge it is a failure like any of the engine."""
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        with execution(60, room=Room(1)), pytest.raises(EngineFailed):
            session.execute("SELECT city, COUNT(*) FROM customers GROUP BY city")
        states = [r.content["state"] for r in opened.ledger.events() if r.hold]
        assert states == ["started", "forfeited"]
