"""The collations of a table's texts, which decide which texts are equal.

``PARIS`` and ``paris`` are one group under the collation ``NOCASE``, and the group has the spelling
of the row that came first. The engine's catalog does not say which columns have a collation, and a
cast keeps it. But a table that is made from a column has its collation, and the engine's
description of the table names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb

_PROBE = "dpsql collations"
_COLUMNS = re.compile(r"[^(]*\((.*)\);")
BYTE_BY_BYTE = frozenset(["", "binary", "c", "posix"])
"""Collations under which equal texts have the same bytes."""


def collations(
    cursor: duckdb.DuckDBPyConnection, table: str, types: Mapping[str, str]
) -> dict[str, str]:
    """The types of the text columns that are not compared byte by byte. No row is read.

    The texts of a view that cannot be read have an unknown collation.
    """
    texts = [name for name, held in types.items() if held == "VARCHAR"]
    if not texts:
        return {}
    items = ", ".join(f"{_quoted(name)} AS c{i}" for i, name in enumerate(texts))
    made = (
        f'CREATE OR REPLACE TEMP TABLE "{_PROBE}" AS SELECT {items} FROM {_quoted(table)} LIMIT 0'
    )
    asked = "SELECT sql FROM duckdb_tables() WHERE temporary AND table_name = $1"
    try:
        cursor.execute(made)
        ((described,),) = cursor.execute(asked, [_PROBE]).fetchall()
        cursor.execute(f'DROP TABLE "{_PROBE}"')
    except duckdb.Error:
        described = ""
    names = _names(described, len(texts))
    return {
        text: f"VARCHAR COLLATE {name}"
        for text, name in zip(texts, names, strict=True)
        if name.lower() not in BYTE_BY_BYTE
    }


def _names(described: str, count: int) -> list[str]:
    """The collation of each column of a table whose columns this module has named."""
    found = _COLUMNS.fullmatch(described)
    columns = found[1].split(", ") if found else []
    if len(columns) != count:
        return ["unknown"] * count
    return [_name(column, f"c{i} VARCHAR") for i, column in enumerate(columns)]


def _name(column: str, plain: str) -> str:
    """The collation in a column's description; empty if the column has none."""
    if column == plain:
        return ""
    before, _, name = column.partition(" COLLATE ")
    return name.strip('"') if before == plain and name else "unknown"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
