"""Engines that a client's words can reach: no files, no extensions, no other settings."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from dpsql.engines.catalog import database
from dpsql.engines.duckdb import lockdown
from dpsql.engines.duckdb.engine import Constants, DuckDB
from dpsql.engines.duckdb.lockdown import NotLocked, lock, prove
from dpsql.policy.model import Limits
from dpsql.release.postprocess import PostProcessor

_FROM_ALONE = [
    key for key in lockdown.SETTINGS if key not in ("enable_external_access", "lock_configuration")
]


def _engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


@pytest.mark.parametrize("way", lockdown.READS)
def test_each_way_reads_a_file_where_the_engine_is_open(way: str, tmp_path: Path) -> None:
    file = tmp_path / "canary.csv"
    file.write_text("canary\nfound\n")
    found = _engine().execute(way.format(file=file, folder=tmp_path)).fetchall()
    assert "canary" in str(found) or "found" in str(found)


@pytest.mark.parametrize("way", lockdown.READS)
def test_an_engine_with_one_way_out_is_not_used(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockdown, "READS", (way,))
    monkeypatch.setattr(lockdown, "WRITES", ())
    with pytest.raises(NotLocked, match="nothing is served"):
        prove(_engine())


def test_a_locked_engine_is_closed() -> None:
    engine = _engine()
    lock(engine)
    lock(engine)  # whoever comes second sees that it is closed
    with pytest.raises(duckdb.Error):
        engine.execute("SET threads = 2")


@pytest.mark.parametrize("left_out", ["enable_external_access", "lock_configuration"])
def test_without_a_setting_nothing_is_served(
    left_out: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {k: v for k, v in lockdown.SETTINGS.items() if k != left_out}
    monkeypatch.setattr(lockdown, "SETTINGS", settings)
    path = tmp_path / "some.duckdb"
    duckdb.connect(str(path)).close()
    for make in (
        database.check_engine,
        Constants,
        lambda: PostProcessor().open(),
        lambda: DuckDB(path, Limits()),
    ):
        with pytest.raises(NotLocked):
            make()


@pytest.mark.parametrize("setting", _FROM_ALONE)
def test_every_engine_has_every_setting(setting: str, tmp_path: Path) -> None:
    path = tmp_path / "some.duckdb"
    duckdb.connect(str(path)).close()
    post = PostProcessor()
    data = DuckDB(path, Limits())
    for connection in (post._connection(), data._root, data._cursor(), Constants()._connection):
        found = connection.execute(f"SELECT current_setting('{setting}')").fetchone()
        assert found == (False,)


def test_where_no_file_can_be_made_another_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(**_: object) -> None:
        raise OSError

    monkeypatch.setattr(lockdown.tempfile, "TemporaryDirectory", nowhere)
    with pytest.raises(NotLocked):
        prove(_engine())
    engine = _engine()
    lock(engine)


LOCKED = {"engines/catalog/database.py", "engines/duckdb/engine.py", "release/postprocess.py"}
OWNERS = {
    "engines/duckdb/copies.py",
    "engines/duckdb/demo_data.py",
    "engines/duckdb/exact_limits.py",
    "engines/duckdb/import_files.py",
    "engines/duckdb/inspect.py",
    "engines/duckdb/scratch.py",
}
"""They are run by whoever holds the data, and no client's words reach them."""
PARSING = {"engines/duckdb/syntax_tree.py"}
"""It is given texts as values, and runs none."""
CLOSING = {"engines/duckdb/allocator.py"}
"""It is closed as soon as it is open, and asked nothing."""


def test_every_engine_is_locked_or_out_of_reach() -> None:
    package = Path(lockdown.__file__).parents[2]
    texts = {str(f.relative_to(package)): f.read_text() for f in package.rglob("*.py")}
    opening = {name for name, text in texts.items() if "duckdb.connect(" in text}
    assert opening == LOCKED | OWNERS | PARSING | CLOSING
    for name in LOCKED:
        assert texts[name].count("duckdb.connect(") <= len(
            re.findall(r"(?<!def )\block\(", texts[name])
        ), name
