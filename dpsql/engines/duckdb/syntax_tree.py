"""The engine's own reading of a statement, as a tree. Nothing is run."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb

from dpsql.effort import step

Node = dict[str, Any]
_DEPTH = re.compile("depth limit|recursion|memory exhausted", re.IGNORECASE)
"""What the engine says where a statement is too deep for its own parser."""


class Unreadable(Exception):
    """A statement that is not one query; the engine's words quote nothing but the statement."""


class TooDeep(Unreadable, RecursionError):
    """A statement that is nested more deeply than it is read."""


class _Parsers(threading.local):
    """A cursor for each thread, and the statement that parses: one database for the whole process."""

    def __init__(self) -> None:
        self.cursor = _database().cursor()
        self.cursor.execute("SET enable_optimizer = false")  # to serialize a constant takes none
        (self.reads,) = self.cursor.extract_statements("SELECT json_serialize_sql($1)")


def query_tree(sql: str, prepare: Callable[[str], str] = str) -> Node:
    """The tree of the one query that a statement is; ``prepare`` changes its JSON before it is read."""
    step(2 * len(sql))
    try:
        tree = json.loads(prepare(_serialized(sql)))
    except RecursionError:
        raise TooDeep("the statement is nested too deeply") from None
    if tree["error"] and tree["error_type"] != "not implemented":
        raise _unreadable(str(tree["error_message"]))
    if tree["error"] or len(tree["statements"]) != 1:
        raise Unreadable("only one SELECT is answered")
    node: Node = tree["statements"][0]["node"]
    return node


@cache
def own_views() -> frozenset[str]:
    """Relations that every database of the engine has, in lower case."""
    found = _database().cursor().execute("SELECT view_name FROM duckdb_views() WHERE internal")
    return frozenset(str(name).lower() for (name,) in found.fetchall())


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": "false"})


_parsers = cache(_Parsers)


def _serialized(sql: str) -> str:
    failure: str
    try:
        found = _parsers().cursor.execute(_parsers().reads, [sql]).fetchone()
    except duckdb.Error as error:
        failure = str(error).split("\n", 1)[0]
    else:
        assert found is not None  # a constant has one row
        return str(found[0])
    raise _unreadable(failure)


def _unreadable(said: str) -> Unreadable:
    return TooDeep(said) if _DEPTH.search(said) else Unreadable(said)
