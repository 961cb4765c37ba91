"""The distinct values of a public table's column, for columns that declare ``values_from`` it."""

from __future__ import annotations

from dpsql.ir.statements import Alias, Name, Op, Query, Read, RowValue, Select
from dpsql.plan.table_scans import scan_all, stored_columns
from dpsql.policy.model import Table


def distinct_values(table: Table, column: str) -> Query:
    """A query for the values as they are stored, in order and without NULL."""
    (stored,) = stored_columns((column,))
    rows = Alias(Read(scan_all(table, (stored,)), (("v", RowValue(stored)),)), "r")
    value = Name("v")
    there = Op("is not null", (value,))
    return Select(rows, (("v", value),), (there,), distinct=True, order=(value,))
