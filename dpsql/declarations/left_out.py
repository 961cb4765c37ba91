"""Rows that answers leave out, and why: counted for the owner, who may not know of them.

Claim: a row that is said to be in no answer adds nothing to any measurement.
Argument: a statement reads rows of a private table with the key of their unit, found in the row or by
    the path, and drops those where a part of it is NULL or the path ends (``sql.blocks``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.declarations.queries import owned
from dpsql.policy.model import ForeignKey, Policy, Table
from dpsql.sql.render import quoted


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A query whose one row is a number of rows, and what becomes of them; ``said`` has the number."""

    count: str
    said: str


def left_out(policy: Policy) -> Iterator[LeftOut]:
    """What to count of each private table."""
    for table in policy.tables.values():
        unit = policy.units.get(table.unit or "")
        if unit is None or unit.is_row:
            continue
        name, key = table.name, ", ".join(table.unit_columns)
        why = f"lead to no {unit.name}" if table.path else f"have no {key}"
        yield LeftOut(
            f"SELECT (SELECT count(*) FROM {quoted(name)}) - ({owned(table)}) AS n",
            f"{{0}} rows of {name} {why}: they are nobody's, and in no answer",
        )
        for step in table.foreign_keys:
            yield from _leading_nowhere(policy, table, step)


def _leading_nowhere(policy: Policy, table: Table, step: ForeignKey) -> Iterator[LeftOut]:
    """Rows of somebody that a foreign key leads to no other row; not the first step of the path."""
    if step in table.path[:1]:
        return
    pairs = zip(step.columns, step.key, strict=True)
    met = " AND ".join(f"t.{quoted(a)} = o.{quoted(b)}" for a, b in pairs)
    whole = " AND ".join(f"t.{quoted(a)} IS NOT NULL" for a in step.columns)
    unit = policy.units[table.unit or ""]
    said = f"{{0}} rows of {table.name} have a ({', '.join(step.columns)}) that {step.references} lacks"
    also = (
        f"each is a {unit.name} of its own in answers about {table.name}"
        if not table.path and step.references == unit.table
        else f"answers about {table.name} alone count them"
    )
    yield LeftOut(
        f"SELECT count(*) AS n FROM {quoted(table.name)} AS t WHERE {whole}"
        f" AND NOT EXISTS (SELECT 1 FROM {quoted(step.references)} AS o WHERE {met})",
        f"{said}: {also}; an inner join with {step.references} leaves them out",
    )
