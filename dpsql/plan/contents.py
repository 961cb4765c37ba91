"""What public tables hold, as one number each: so that what is stored is recalled over the same rows alone.

A public table may change while the owner's ``data_version`` stays: it is his word about people's rows, and
whoever edits a list of countries may forget it. A join with other public rows is another question.

Claim: where a measurement reads a public table, or uses what was read of one, the names of its pieces
    (``reuse.pieces``) have the number of the rows that are open. Other rows have it by accident only.
Assumes: the public rows do not change while the database is open (``engines.duckdb.engine``).
Argument: a row is numbered by 64 bits of the MD5 of the columns that statements may name, and numbers are
    added up, which tells neither their order nor how rows are stored. The number is looked up with the
    data, like fan-outs (``engines.verify``). Public tables are public, so names tell nobody anything.
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
    """Queries for the number of each public table, with its name."""
    for table in policy.tables.values():
        if table.public:
            yield table.name, _number(table)


def with_contents(policy: Policy, number: Callable[[Query], int | None]) -> Policy:
    """The policy with what was looked up of its public tables; ``number`` has what queries found."""
    tables = {
        name: replace(table, content=number(_number(table))) if table.public else table
        for name, table in policy.tables.items()
    }
    return replace(policy, tables=tables)


def contents(relation: Relation) -> list[list[object]]:
    """The public tables that a relation reads, with their numbers; None for what is not known."""
    read = (r.table for r in walk_relations(relation) if isinstance(r, Scan))
    known = {t.name: t.content for t in read if t.public}
    return [[name, known[name]] for name in sorted(known)]


def content(scan: Scan) -> tuple[str, ...]:
    """The number of a public table that is read, as words of a question; nothing for a private one."""
    return (f"content {scan.table.content}",) if isinstance(scan.privacy, Public) else ()


def _number(table: Table) -> Query:
    """A query for the number; a table without columns has none but of its rows."""
    columns = stored_columns(table.columns)
    digest = RowDigest(tuple(map(RowValue, columns)) or (Number(1),))
    rows = Alias(Read(scan_all(table, columns), (("h", digest),)), "r")
    total = Op("+", (Op("coalesce", (Fold("sum", Name("h")), Number(0))), Fold("count")))
    return Select(rows, (("n", Cast(Op("%", (total, Number(_RANGE))), "bigint")),))
