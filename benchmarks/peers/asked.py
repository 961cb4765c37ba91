"""What every peer's script shares: it reads a task from standard input and prints what came of it.

This file and the peers' run in the peers' environments, so they import nothing of dpsql.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import duckdb

Answer = Callable[[str], list[Any]]
"""Rows for a text."""


def opened(task: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """The Parquet file as tables of an in-memory DuckDB."""
    connection = duckdb.connect()
    for table, path in task["tables"].items():
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{path}')")
    return connection


def turns(task: dict[str, Any], plain: Answer, ours: Answer) -> None:
    """Ask every query of both, in turns; what is refused is told in the peer's own words."""
    for name, text in task["queries"].items():
        try:
            ours(text)
            plain(text)
            runs = [_both(text, plain, ours) for _ in range(task["repeat"])]
        except BaseException as error:  # noqa: BLE001 (peers panic in several ways)
            said = " ".join(str(error).split())[:160]
            print(json.dumps({"query": name, "refused": f"{type(error).__name__}: {said}"}))
            continue
        print(json.dumps({"query": name, "runs": runs}, default=float))
        sys.stdout.flush()


def _both(text: str, plain: Answer, ours: Answer) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for side, ask in (("plain", plain), ("ours", ours)):
        wall, cpu = time.perf_counter(), time.process_time()
        rows = ask(text)
        found[side] = [time.perf_counter() - wall, time.process_time() - cpu]
        found[f"{side}_rows"] = [list(row) for row in rows]
    return found


def task() -> dict[str, Any]:
    """What is asked."""
    found: dict[str, Any] = json.load(sys.stdin)
    return found
