"""The guard's own look-ups in the data: whether columns keep their ranges, and tables are small.

Most statements bound each value in their own text, and join each row with the parents on the path
to its unit. Other statements are safe only over columns whose values are all in the declared range,
and over tables whose rows all lead to a unit. When a policy is opened, the engine is asked about
this again, by other queries than the planner's (``lookups``). A statement never causes a look-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from dpsql.engines.duckdb.guard.facts import End
from dpsql.engines.duckdb.guard.listed import Listed, Place
from dpsql.engines.duckdb.guard.parts import Node, find_column_names
from dpsql.engines.duckdb.guard.sizes import FEW
from dpsql.policy.model import Column, Policy, Table
from dpsql.policy.types import Kind

Holds = Callable[[str], bool]
"""Says whether a query was asked when the policy was opened, and had no row."""


def lookups(policy: Policy, places: Iterable[Place]) -> Iterator[tuple[str, str]]:
    """Every query whose outcome ``Seen`` may need, with the name of its table."""
    for place in sorted(places):
        yield place[-1], _larger(place)
    for table in policy.tables.values():
        for column in table.columns.values():
            ends = _ends_of(column)
            if ends is not None and not table.public:
                yield table.name, _outside(table.name, column, ends)
    yield from strays(policy)


def strays(policy: Policy) -> Iterator[tuple[str, str]]:
    """For each table with a path to its unit, a query that has a row if some row leads to none."""
    for table in policy.tables.values():
        if table.path:
            yield table.name, _stray(table)


class Seen:
    """The outcomes of look-ups, for the check of statements. It asks the engine nothing."""

    def __init__(self, policy: Policy, holds: Holds) -> None:
        """``holds`` knows the outcomes of ``lookups``."""
        self._policy, self._holds = policy, holds

    def of(self, node: Node, tables: Mapping[Place, Listed]) -> tuple[Mapping[Place, Listed], bool]:
        """The tables, with bounds of a statement's columns, and if it reads only small ones."""
        read = {place for place in _read(node) if place in tables}
        columns = {names[-1] for names in find_column_names(node)}
        found = dict(tables)
        for schema, name in read:
            table = None if schema else self._policy.tables[name]
            if table is not None and table.unit is not None:
                ends = dict(self._ends(table, columns))
                led = bool(table.path) and self._sees(_stray(table))
                nobody = tables["", name].strays and not led
                found["", name] = replace(tables["", name], ends=ends, strays=nobody)
        return found, all(self._sees(_larger(place)) for place in sorted(read))

    def _ends(self, table: Table, columns: set[str]) -> Iterator[tuple[str, tuple[End, End]]]:
        for column in table.columns.values():
            ends = _ends_of(column) if column.name in columns else None
            if ends is not None and self._sees(_outside(table.name, column, ends)):
                yield column.name, ends

    def _sees(self, query: str) -> bool:
        return self._holds(query)


def _read(node: object) -> Iterator[Place]:
    """The stored tables of a statement."""
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield node["schema_name"], node["table_name"]
        for child in node.values():
            yield from _read(child)
    elif isinstance(node, list):
        for child in node:
            yield from _read(child)


def _ends_of(column: Column) -> tuple[End, End] | None:
    """Bounds that contain the declared range, as numbers of the engine's types."""
    if column.range is None or column.kind not in (Kind.INTEGER, Kind.DOUBLE):
        return None
    low, high = (Fraction(str(end)) for end in column.range)
    if column.kind is Kind.INTEGER:
        return math.floor(low), math.ceil(high)
    return Fraction(float(low)), Fraction(float(high))


def _outside(table: str, column: Column, ends: tuple[End, End]) -> str:
    """A query for a value of a column beyond its bounds. NaN is above all numbers."""
    whole = column.kind is Kind.INTEGER
    value = f"TRY_CAST({_quoted(column.name)} AS {'BIGINT' if whole else 'DOUBLE'})"
    low, high = (str(end) if whole else f"{float(end)!r}::DOUBLE" for end in ends)
    return f"SELECT 1 AS v FROM {_quoted(table)} WHERE {value} < {low} OR {value} > {high} LIMIT 1"


def _stray(table: Table) -> str:
    """A query for a row whose path leads to no row with the key of a unit."""
    rows = f"{_quoted(table.name)} AS t0"
    for i, step in enumerate(table.path):
        pairs = zip(step.columns, step.key, strict=True)
        same = " AND ".join(f"t{i}.{_quoted(a)} = t{i + 1}.{_quoted(b)}" for a, b in pairs)
        rows += f" LEFT JOIN {_quoted(step.references)} AS t{i + 1} ON {same}"
    missing = [f"t{len(table.path)}.{_quoted(column)} IS NULL" for column in table.unit_columns]
    return f"SELECT 1 AS v FROM {rows} WHERE {' OR '.join(missing)} LIMIT 1"


def _larger(place: Place) -> str:
    """A query that has a row if a table has more than ``FEW`` rows."""
    name = ".".join(_quoted(part) for part in place if part)
    return f"SELECT 1 AS v FROM {name} HAVING count(*) > {FEW}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
