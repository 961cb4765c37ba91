"""How many rows of a public table share a value: what a join with it makes of one private row.

Claim: no more than ``Table.fan_outs`` says rows of the public table meet a row that is joined on those
    columns, in the data that is open.
Assumes: keys that foreign keys refer to are unique; the rest was looked up in the data that is open, and
    that does not change while it is (``engines.verify``).
Argument: rows are counted under the very form in which statements compare the column. A NULL meets
    nothing. What could not be looked up is not there, and bounds nothing.

A join with k rows for each multiplies what a unit has by k (``bind.privacy.join_privacy``), and so the noise that
hides it. Public tables are public: what they tell here, they tell nobody about anyone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dpsql.ir.statements import (
    Alias,
    Cast,
    Fold,
    Name,
    Number,
    Op,
    Query,
    Read,
    RowValue,
    Select,
)
from dpsql.plan.table_scans import declared_column, scan_all
from dpsql.policy.model import Policy, Table


def fan_out_lookups(policy: Policy) -> Iterator[tuple[str, Query]]:
    """Queries for the most rows that share a value of each column, with their public tables."""
    for table in policy.tables.values():
        if table.public:
            yield from ((table.name, _most(table, column)) for column in table.columns)


def with_fan_outs(policy: Policy, number: Callable[[Query], int | None]) -> Policy:
    """The policy with what was looked up of its public tables; ``number`` has what queries found."""
    referenced = [key for table in policy.tables.values() for key in table.foreign_keys]
    tables = dict(policy.tables)
    for table in policy.tables.values():
        if table.public:
            known: dict[tuple[str, ...], int] = {}
            for name in table.columns:
                most = number(_most(table, name))
                known |= {} if most is None else {(name,): max(1, most)}
            known |= {key.key: 1 for key in referenced if key.references == table.name}
            known |= {table.key: 1} if table.key else {}
            tables[table.name] = replace(table, fan_outs=known)
    return replace(policy, tables=tables)


def _most(table: Table, column: str) -> Query:
    """A query whose one number is how many rows share a value of the column, read as it is compared."""
    value = declared_column(0, table.columns[column])
    rows = Alias(Read(scan_all(table, (value,)), (("v", RowValue(value)),)), "r")
    known = Op("is not null", (Name("v"),))
    groups = Select(rows, (("v", Name("v")), ("n", Fold("count"))), (known,), ("v",))
    most = Op("coalesce", (Fold("max", Name("n")), Number(0)))
    return Select(Alias(groups, "g"), (("n", Cast(most, "bigint")),))
