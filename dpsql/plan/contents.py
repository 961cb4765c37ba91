"""What public tables hold, as one number each: so that what is stored is recalled over the same rows alone.

A public table may change while the owner's ``data_version`` stays: it is his word about people's rows, and
whoever edits a list of countries may forget it. A join with other public rows is another question.

Claim: where a measurement reads a public table, or uses what was read of one, the names of its pieces
    (``reuse.pieces``) have the number of the rows that are open. Other rows have it by accident only.
Argument: a row is numbered by 64 bits of the MD5 of the columns that statements may name, and numbers are
    added up, which tells neither their order nor how rows are stored. The number is looked up with the
    data, like fan-outs (``engines.verify``). Public tables are public, so names tell nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dpsql.ir.relations import Public, Relation, Scan, walk
from dpsql.policy.model import Policy, Table
from dpsql.sql.render import quoted

_RANGE = 1 << 62


def content_lookups(policy: Policy) -> Iterator[tuple[str, str]]:
    """Queries for the number of each public table, with its name."""
    for table in policy.tables.values():
        if table.public:
            yield table.name, _number(table)


def with_contents(policy: Policy, number: Callable[[str], int | None]) -> Policy:
    """The policy with what was looked up of its public tables; ``number`` has what queries found."""
    tables = {
        name: replace(table, content=number(_number(table))) if table.public else table
        for name, table in policy.tables.items()
    }
    return replace(policy, tables=tables)


def contents(relation: Relation) -> list[list[object]]:
    """The public tables that a relation reads, with their numbers; None for what is not known."""
    read = (r.table for r in walk(relation) if isinstance(r, Scan))
    known = {t.name: t.content for t in read if t.public}
    return [[name, known[name]] for name in sorted(known)]


def content(scan: Scan) -> tuple[str, ...]:
    """The number of a public table that is read, as words of a question; nothing for a private one."""
    return (f"content {scan.table.content}",) if isinstance(scan.privacy, Public) else ()


def _number(table: Table) -> str:
    """A query for the number; a table without columns has none but of its rows."""
    columns = ", ".join(map(quoted, table.columns)) or "1"
    one = f"md5_number_lower(CAST(row({columns}) AS VARCHAR))"
    return f"SELECT ((coalesce(sum({one}), 0) + count(*)) % {_RANGE})::BIGINT AS n FROM {quoted(table.name)}"
