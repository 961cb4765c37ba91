"""DuckDB files made from the scripts in fixtures/datasets, once for each test run."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import duckdb

FIXTURES = Path(__file__).parents[2] / "fixtures"


def script(name: str) -> str:
    """The SQL that makes a data set; ``x_dirty`` is made after ``x``, ``empty`` has no private row."""
    if name == "empty":
        tables = ("customers", "orders", "visits")
        return script("shop") + "".join(f"DELETE FROM {table};\n" for table in tables)
    first = script(name.removesuffix("_dirty")) if name.endswith("_dirty") else ""
    return first + (FIXTURES / "datasets" / f"{name}.sql").read_text()


@functools.cache
def folder() -> Path:
    """A folder of this test process; what is in it is made once and only read."""
    return Path(tempfile.mkdtemp(prefix="dpsql-tests-"))


@functools.cache
def database(name: str) -> Path:
    """The file of a data set."""
    path = folder() / f"{name}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(script(name))
    return path


def in_memory(name: str) -> duckdb.DuckDBPyConnection:
    """A data set that a test may change."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute(script(name))
    return connection


def policy_text(name: str) -> str:
    """A policy of fixtures/policies."""
    return (FIXTURES / "policies" / f"{name}.yaml").read_text()


def remove() -> None:
    """Delete the files of this process."""
    if folder.cache_info().currsize:
        shutil.rmtree(folder(), ignore_errors=True)
