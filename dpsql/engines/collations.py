"""The collations of a table's texts: they decide which texts are equal.

``PARIS`` and ``paris`` are one group under the collation ``NOCASE``, and the group is named by
whichever row came first. The engine's catalog does not say which columns have one, and a cast keeps
it; a table that is made from a column has its collation, and is described with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb

_PROBE = "dpsql collations"
_HELD = re.compile(r"[(, ]c(\d+) VARCHAR COLLATE ([^,)]+)")
BYTE_BY_BYTE = frozenset(["", "binary", "c", "posix"])
"""Collations under which equal texts are the same bytes."""


def collations(
    cursor: duckdb.DuckDBPyConnection, table: str, types: Mapping[str, str]
) -> dict[str, str]:
    """The types of the texts that are not compared byte by byte; no row is read.

    A view that cannot be read has texts of which nothing is known.
    """
    texts = [name for name, held in types.items() if held == "VARCHAR"]
    if not texts:
        return {}
    items = ", ".join(f"{_quoted(name)} AS c{i}" for i, name in enumerate(texts))
    try:
        cursor.execute(
            f'CREATE OR REPLACE TEMP TABLE "{_PROBE}" AS SELECT {items} FROM {_quoted(table)} LIMIT 0'
        )
    except duckdb.Error:
        return dict.fromkeys(texts, "VARCHAR COLLATE unknown")
    found = cursor.execute(
        "SELECT sql FROM duckdb_tables() WHERE temporary AND table_name = $1", [_PROBE]
    ).fetchone()
    assert found is not None, "the table was made just now"
    cursor.execute(f'DROP TABLE "{_PROBE}"')
    held = ((texts[int(i)], name) for i, name in _HELD.findall(str(found[0])))
    return {
        text: f"VARCHAR COLLATE {name}"
        for text, name in held
        if name.strip('"').lower() not in BYTE_BY_BYTE
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
