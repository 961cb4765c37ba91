"""What does not fit into memory is on the disk for a while: who can read it, and why in clear."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engines.duckdb.engine import DuckDB
from dpsql.policy.model import Limits

SMALL = Limits(memory="40MB", threads=1)
SORTED = "SELECT i, s FROM t ORDER BY s"
"""Rows that are sorted outside of memory, and are there until the last is fetched."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("large") / "large.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT range AS i, 'secret ' || hash(range) AS s FROM range(600000)"
        )
    yield path
    path.unlink()


@pytest.mark.parametrize("before", [None, 0o755])
def test_what_does_not_fit_is_for_nobody_else(before: int | None, large: Path) -> None:
    folder = large.with_name("large.duckdb.tmp")
    shutil.rmtree(folder, ignore_errors=True)
    if before is not None:
        folder.mkdir()
        folder.chmod(before)
    engine = DuckDB(large, SMALL)
    cursor = engine._root.cursor()
    cursor.execute(SORTED).fetchone()
    assert sum(file.stat().st_size for file in folder.iterdir()) > 1_000_000
    assert folder.stat().st_mode & 0o777 == 0o700
    cursor.close()
    engine.close()
    assert [*folder.iterdir()] == []
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_engine_alone_makes_a_folder_for_all(large: Path) -> None:
    """The control: why the folder is made before."""
    config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": "40MB", "threads": 1}
    folder, mask = large.with_name("large.duckdb.tmp"), os.umask(0o022)
    shutil.rmtree(folder, ignore_errors=True)
    with duckdb.connect(str(large), read_only=True, config=config) as connection:
        connection.execute(SORTED).fetchone()
        assert folder.stat().st_mode & 0o777 == 0o755
    os.umask(mask)


def test_the_engine_alone_does_not_encrypt_what_does_not_fit(large: Path) -> None:
    """Should this fail some day, an engine can, and ``temp_file_encryption`` is to be turned on."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "40MB", "threads": 1, "temp_file_encryption": True,
        "autoload_known_extensions": False, "autoinstall_known_extensions": False,
    }  # fmt: skip
    with (
        duckdb.connect(str(large), read_only=True, config=config) as connection,
        pytest.raises(duckdb.Error, match="read-only crypto module"),
    ):
        connection.execute(SORTED).fetchone()
