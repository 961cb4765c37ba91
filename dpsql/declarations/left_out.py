"""Counts of the rows that answers leave out, with the reason. They are for the owner alone.

Claim: a row that is said to be in no answer adds nothing to any measurement.
Assumes: declared keys are unique, which is verified (``declarations.requirements``).
Argument: a statement reads rows of a private table with the key of their unit, found in the row or
    by the path. It drops rows where a part of the key is NULL or the path leads to no row
    (``engines.duckdb.relations``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.declarations.queries import count_unowned_rows, key_items
from dpsql.ir.statements import Alias, Fold, JoinUsing, Name, Op, Query, Read, Select
from dpsql.plan.table_scans import scan_all, stored_columns
from dpsql.policy.model import ForeignKey, Policy, Table


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A query that counts rows, and the sentence ``said`` about them, which takes the number."""

    count: Query
    said: str


def left_out(policy: Policy) -> Iterator[LeftOut]:
    """The counts to make of each private table."""
    for table in policy.tables.values():
        unit = policy.units.get(table.unit or "")
        if unit is None or unit.is_row:
            continue
        name, key = table.name, ", ".join(table.unit_columns)
        why = f"lead to no {unit.name}" if table.path else f"have no {key}"
        yield LeftOut(
            count_unowned_rows(table),
            f"{{0}} rows of {name} {why}: they belong to nobody and are in no answer",
        )
        for step in table.foreign_keys:
            yield from _leading_nowhere(policy, table, step)


def _leading_nowhere(policy: Policy, table: Table, step: ForeignKey) -> Iterator[LeftOut]:
    """Owned rows whose foreign key leads to no row, but for the first step of the path."""
    if step in table.path[:1]:
        return
    target = policy.tables[step.references]
    unit = policy.units[table.unit or ""]
    said = f"{{0}} rows of {table.name} have a ({', '.join(step.columns)}) that {step.references} lacks"
    also = (
        f"each is a {unit.name} of its own in answers about {table.name}"
        if not table.path and step.references == unit.table
        else f"answers about {table.name} alone count them"
    )
    yield LeftOut(
        _count_unmatched(table, step, target),
        f"{said}: {also}; an inner join with {step.references} leaves them out",
    )


def _count_unmatched(table: Table, step: ForeignKey, target: Table) -> Query:
    """The number of rows whose foreign key has no NULL and matches no row of the other table."""
    own, other = _read_stored(table, step.columns), _read_stored(target, step.key)
    using = tuple(f"k{i}" for i in range(len(step.columns)))
    whole = tuple(Op("is not null", (Name(name),)) for name in using)
    rows = JoinUsing("anti", Alias(own, "t"), Alias(other, "o"), using)
    return Select(rows, (("n", Fold("count")),), where=whole)


def _read_stored(table: Table, columns: tuple[str, ...]) -> Query:
    """Columns of all rows of a table, as they are stored."""
    scan = scan_all(table, stored_columns(columns))
    return Read(scan, key_items(scan.fields, columns))
