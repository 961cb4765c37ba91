"""The fan-outs of public tables: how many rows share a value, and so match one row in a join.

Claim: in the data that is open, a row that is joined with a public table on the columns of an entry
    of ``Table.fan_outs`` matches at most as many rows of the public table as the entry says.
Assumes: keys that foreign keys refer to are unique. The other numbers were looked up in the data
    that is open, and this data does not change while it is open (``engines.verify``).
Argument: rows are counted under the same form in which statements compare the column. A NULL
    matches nothing. A fan-out that could not be looked up has no entry, and bounds nothing.

A join with k rows for each row multiplies a unit's number of rows by k
(``bind.privacy.join_privacy``), and so the noise that hides the unit. The tables are public, so
their fan-outs reveal nothing about a person.
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
    """The policy with the fan-outs of its public tables; ``number`` gives query results."""
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
    """A query for the most rows that share a value of the column, as statements compare it."""
    value = declared_column(0, table.columns[column])
    rows = Alias(Read(scan_all(table, (value,)), (("v", RowValue(value)),)), "r")
    known = Op("is not null", (Name("v"),))
    groups = Select(rows, (("v", Name("v")), ("n", Fold("count"))), (known,), ("v",))
    most = Op("coalesce", (Fold("max", Name("n")), Number(0)))
    return Select(Alias(groups, "g"), (("n", Cast(most, "bigint")),))
