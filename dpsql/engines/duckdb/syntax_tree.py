"""The tree of a statement as the engine's own parser reads it. The statement does not run."""

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
"""The words of the engine's error for a statement that is too deep for its parser."""


class Unreadable(Exception):
    """Raised for a statement that is not one query. The message only quotes the statement."""


class TooDeep(Unreadable, RecursionError):
    """Raised for a statement that is nested too deeply to be read."""


class _Parsers(threading.local):
    """A cursor for each thread, with the statement that parses. All share one database."""

    def __init__(self) -> None:
        self.cursor = _database().cursor()
        self.cursor.execute("SET enable_optimizer = false")  # serializing a constant needs none
        (self.reads,) = self.cursor.extract_statements("SELECT json_serialize_sql($1)")


def query_tree(sql: str, prepare: Callable[[str], str] = str) -> Node:
    """The tree of a statement that is one query; ``prepare`` changes its JSON before it is read."""
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
    """The names, in lower case, of the relations that every database of the engine has."""
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
