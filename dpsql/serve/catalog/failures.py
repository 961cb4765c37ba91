"""Translates failures of the catalog's engine into PostgreSQL's error codes and messages."""

from __future__ import annotations

import re
from collections.abc import Collection

from dpsql.engines.catalog.content import CatalogFailed
from dpsql.serve.pgwire.errors import (
    LIMIT,
    NO_COLUMN,
    NO_FUNCTION,
    NO_RELATION,
    NO_SETTING,
    UNSUPPORTED,
    WireError,
)

_COUNTS = "each UNION, INTERSECT or EXCEPT query must have the same number of columns"
_SAID = (
    (r"Division by zero", "22012", "division by zero"),
    (r"Overflow|out of range for the destination", "22003", "a number is out of range"),
    (r"convert string '[+-]?\d+' to U?INT", "22003", "a number is out of range"),
    (r"invalid \w+ field format|to INTERVAL", "22007", "invalid input syntax for a date or time"),
    (r"time field value out of range: \"\D", "22007", "invalid input syntax for a date or time"),
    (r"field value out of range", "22008", "date/time field value out of range"),
    (r"requested length too large", LIMIT, "requested length too large"),
    (r"same number of result columns", "42601", _COUNTS),
    (r"Subquery returns \d+ columns", "42601", "subquery must return only one column"),
)
"""Patterns in the engine's message that tell more than its kind. The first that matches is used."""
_STATES = {
    "syntax": ("42601", "the catalog query does not parse"),
    "unknown": ("42883", "the catalog query names a function or type that does not exist"),
    "binding": ("42703", "the catalog query names a column that does not exist, or mixes types"),
    "conversion": ("22P02", "a value in the catalog query does not fit its type"),
}
_LESS = "Ask for fewer rows: name the schema and tables in WHERE, and join by oid."
_RESOURCES = {
    "interrupted": ("57014", "the catalog query took too long", _LESS),
    "memory": ("53200", "the catalog query needs too much memory", _LESS),
    "died": ("53200", "the process that answered the catalog query has ended", _LESS),
    "large": (LIMIT, "the answer to the catalog query is too large", _LESS),
    "busy": (
        "53000",
        "too many catalog queries are running",
        "Send it again when they have ended.",
    ),
}
"""Failures of the process that runs catalog queries, with limited time and memory.

They may be told to clients, since these queries read the policy alone.
"""
RESOURCES = frozenset(state for state, _, _ in _RESOURCES.values())
_NOT_LISTED = {
    "function": (NO_FUNCTION, "function {} does not exist"),
    "relation": (NO_RELATION, 'relation "{}" does not exist'),
    "type": (NO_SETTING, 'type "{}" does not exist'),
    "column": (NO_COLUMN, 'column "{}" does not exist'),
    "form": (UNSUPPORTED, "the catalog does not answer this form of SQL"),
}
"""Reasons to refuse a statement before the engine runs it. The name is the client's own."""
_OF_VALUES = ("conversion", "binding")
_MISSING = re.compile(
    r"(\w{5}) ((?:relation|type|function|schema|role|configuration parameter) \".*\" does not exist)$"
)
_COLUMN = re.compile(
    r"(?:Referenced column|have a column named|^Binder Error: Column) \"([^\"]{1,63})\""
)
_LONGEST_NAME = 63
_LONGEST = 1_000
"""The most characters of the engine's message that are searched for a name.

The message may quote a long text of the client.
"""


def translate_failure(failure: CatalogFailed, written: Collection[str] = ()) -> WireError:
    """The error that a client gets for a failure, in words of our own.

    Of the engine's words, only a name that the client has ``written`` is repeated.
    """
    if failure.kind in _NOT_LISTED:
        state, said = _NOT_LISTED[failure.kind]
        return WireError(state, said.format(failure.words[:_LONGEST_NAME]))
    if failure.kind in _RESOURCES:
        state, said, instead = _RESOURCES[failure.kind]
        return WireError(state, said, failure.words if failure.kind == "large" else "", instead)
    words = failure.words[-_LONGEST:]
    missing = _MISSING.search(words)
    if missing is not None:
        return WireError(missing[1], missing[2])
    column = _COLUMN.search(failure.words[:_LONGEST])
    for name in () if column is None else (column[1], column[1].lower()):
        if name in written:
            return WireError(NO_COLUMN, f'column "{name}" does not exist')
    if failure.kind in _OF_VALUES:
        for pattern, state, said in _SAID:
            if re.search(pattern, failure.words):
                return WireError(state, said)
    state, said = _STATES.get(failure.kind, (UNSUPPORTED, "the catalog cannot answer this"))
    return WireError(state, said)
