"""A content number for each public table, so that a stored release is used for the same rows alone.

A public table may change while the owner's ``data_version`` stays the same: the version describes
people's rows, and whoever edits a list of countries may forget to change it. A join with other
public rows is another question.

Claim: if a measurement reads a public table, or uses rows that were read of one, the names of its
    pieces (``reuse.pieces``) contain the number of the rows that are open. Other rows have the same
    number by accident only.
Assumes: the public rows do not change while the database is open (``engines.duckdb.engine``).
Argument: the number of a row is 64 bits of the MD5 of the columns that statements may name. The
    numbers of all rows are added up, so neither their order nor their storage matters. The sum is
    looked up with the data, like fan-outs (``engines.verify``). Public tables are public, so the
    names reveal nothing private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dpsql.ir.relations import Public, Relation, Scan, walk_relations
from dpsql.ir.statements import (
    Alias,
    Cast,
    Fold,
    Name,
    Number,
    Op,
    Query,
    Read,
    RowDigest,
    RowValue,
    Select,
)
from dpsql.plan.table_scans import scan_all, stored_columns
from dpsql.policy.model import Policy, Table

_RANGE = 1 << 62


def content_lookups(policy: Policy) -> Iterator[tuple[str, Query]]:
    """A query for the content number of each public table, with the table's name."""
    for table in policy.tables.values():
        if table.public:
            yield table.name, _number(table)


def with_contents(policy: Policy, number: Callable[[Query], int | None]) -> Policy:
    """The policy with the content number of each public table; ``number`` gives query results."""
    tables = {
        name: replace(table, content=number(_number(table))) if table.public else table
        for name, table in policy.tables.items()
    }
    return replace(policy, tables=tables)


def contents(relation: Relation) -> list[list[object]]:
    """The public tables that a relation reads, with their numbers; None for an unknown number."""
    read = (r.table for r in walk_relations(relation) if isinstance(r, Scan))
    known = {t.name: t.content for t in read if t.public}
    return [[name, known[name]] for name in sorted(known)]


def content(scan: Scan) -> tuple[str, ...]:
    """The content number of a public table, as part of a question's name; empty for others."""
    return (f"content {scan.table.content}",) if isinstance(scan.privacy, Public) else ()


def _number(table: Table) -> Query:
    """A query for the content number. For a table without columns, only the row count matters."""
    columns = stored_columns(table.columns)
    digest = RowDigest(tuple(map(RowValue, columns)) or (Number(1),))
    rows = Alias(Read(scan_all(table, columns), (("h", digest),)), "r")
    total = Op("+", (Op("coalesce", (Fold("sum", Name("h")), Number(0))), Fold("count")))
    return Select(rows, (("n", Cast(Op("%", (total, Number(_RANGE))), "bigint")),))
