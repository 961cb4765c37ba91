"""The engine's own reading of a statement, as a tree. Nothing is run."""

from __future__ import annotations

import json
import threading
from typing import Any

import duckdb

from dpsql.engines.allowlist.listing import NotListed

Node = dict[str, Any]
TOO_DEEP = "a statement that is nested too deeply"


class Parser:
    """A database without data that parses; each thread has a cursor of its own."""

    def __init__(self) -> None:
        """Open it."""
        self._root = duckdb.connect(":memory:", config={"threads": 1})
        self._local = threading.local()
        views = self._root.execute("SELECT lower(view_name) FROM duckdb_views() WHERE internal")
        self.views = frozenset(str(name) for (name,) in views.fetchall())
        """Relations that every database of this engine has."""

    def query(self, sql: str) -> Node:
        """The tree of the one query that a statement is; ``NotListed`` for everything else."""
        try:
            tree = json.loads(self._serialized(sql))
        except RecursionError:
            raise NotListed("syntax", TOO_DEEP) from None
        if tree["error"]:
            only = tree["error_type"] == "not implemented"
            raise NotListed("syntax", _NOT_ONE if only else str(tree["error_message"]))
        if len(tree["statements"]) != 1:
            raise NotListed("syntax", _NOT_ONE)
        node: Node = tree["statements"][0]["node"]
        return node

    def _serialized(self, sql: str) -> str:
        cursor, reads = self._cursor()
        failure: str
        try:
            found = cursor.execute(reads, [sql]).fetchone()
        except duckdb.Error as error:
            failure = str(error).split("\n", 1)[0]
        else:
            assert found is not None  # a constant has one row
            return str(found[0])
        raise NotListed("syntax", failure)

    def _cursor(self) -> tuple[duckdb.DuckDBPyConnection, duckdb.Statement]:
        found: tuple[duckdb.DuckDBPyConnection, duckdb.Statement] | None
        found = getattr(self._local, "found", None)
        if found is None:
            cursor = self._root.cursor()
            cursor.execute("SET enable_optimizer = false")  # to serialize a constant takes none
            (reads,) = cursor.extract_statements("SELECT json_serialize_sql($1)")
            found = self._local.found = cursor, reads
        return found


_NOT_ONE = "only one SELECT is answered"
