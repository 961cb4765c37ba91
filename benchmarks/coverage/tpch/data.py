"""TPC-H data from ``tpchgen-cli``, as one DuckDB file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

TABLES = (
    "customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier",
)  # fmt: skip


def make(path: Path, scale: float) -> None:
    """The eight tables at a scale; the same rows every time."""
    command = Path(sys.executable).with_name("tpchgen-cli")
    with tempfile.TemporaryDirectory() as folder:
        told = ["parquet", "--scale-factor", str(scale), "--output-dir", folder]
        subprocess.run([str(command), *told], check=True, capture_output=True)
        with duckdb.connect(str(path)) as connection:
            for table in TABLES:
                rows = f"read_parquet('{folder}/{table}.parquet')"
                connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {rows}")
