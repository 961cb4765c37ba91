"""Writes public groups, and the queries of an answer's public rows, for DuckDB.

Claim: a text that is written here reads public tables and constants only, if its tree does.
Assumes: nothing about the data; the second check reads each of these texts before an engine does.
Argument: every class of node is matched; names and constants are quoted, and nothing else is
    copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import assert_never

from dpsql.engines.duckdb.constants import literal, quote_name
from dpsql.engines.duckdb.expressions import expression, key_text
from dpsql.engines.duckdb.relations import Writer
from dpsql.engines.duckdb.types import engine_type
from dpsql.ir.expressions import alias
from dpsql.ir.public_groups import (
    Combinations,
    Days,
    GivenGroups,
    Members,
    Periods,
    PublicGroups,
    RowList,
    ValueList,
    WholeNumbers,
)
from dpsql.plan.nodes import PublicQuery
from dpsql.policy.types import Kind

_CAST = (Kind.INTEGER, Kind.DOUBLE, Kind.TEXT)
"""Kinds whose constants the engine reads as another type than that of the kind."""


def write_public(query: PublicQuery) -> str:
    """The statement of public rows, with columns under the names of the query's fields."""
    match query.source:
        case PublicGroups() as groups:
            pairs = zip(groups.keys, query.fields, strict=True)
            items = ", ".join(f"{key} AS {quote_name(alias(f))}" for key, f in pairs)
            return f"SELECT {items} FROM ({write_groups(groups)}) AS c"
        case relation:
            return Writer().select(relation, query.fields)


def write_groups(groups: PublicGroups | GivenGroups) -> str:
    """The query of groups, in the order of their keys unless they were read before."""
    items = ", ".join(groups.keys)
    if isinstance(groups, GivenGroups):
        return f"SELECT {items} FROM {groups.name}"
    texts = (write_list(part) for part in groups.parts)
    source = " CROSS JOIN ".join(f"({text}) AS d{i}" for i, text in enumerate(texts))
    order = ", ".join(f"{key} ASC NULLS LAST" for key in groups.keys)
    return f"SELECT {items} FROM {source} ORDER BY {order}"


def words_of(groups: PublicGroups) -> list[str]:
    """The sorted words of the query of groups, which do not depend on the order of parts."""
    return sorted(re.findall(r"\w+|\W", write_groups(groups)))


def write_list(node: Combinations | ValueList | RowList) -> str:
    """The query of a list."""
    match node:
        case Combinations():
            return _combinations(node)
        case ValueList(values=values, nullable=nullable):
            text = _values(values)
            return f"{text} UNION ALL SELECT NULL" if nullable else text
        case RowList():
            return _rows(node)
        case _:
            assert_never(node)


def _combinations(node: Combinations) -> str:
    names = dict(_names(node))
    items = ", ".join(f"{key_text(key, names)} AS k{i}" for i, key in node.keys)
    sources = [f"({write_list(part)}) AS {_alias(part)}" for part in node.lists]
    where = " AND ".join(expression(condition, names) for condition in node.conditions)
    clause = f" FROM {' CROSS JOIN '.join(sources)}" if sources else ""
    clause += f" WHERE {where}" if where else ""
    return f"SELECT {'DISTINCT ' if node.distinct else ''}{items}{clause}"


def _names(node: Combinations) -> Iterator[tuple[int, str]]:
    """The texts of the columns of the lists, by their numbers."""
    for part in node.lists:
        match part:
            case ValueList(column=column):
                yield column.number, f"{_alias(part)}.v"
            case RowList(columns=columns):
                for column, _ in columns:
                    yield column.number, f"{_alias(part)}.v{column.number}"
            case _:
                assert_never(part)


def _alias(part: ValueList | RowList) -> str:
    return f"a{part.column.number}" if isinstance(part, ValueList) else f"l{part.number}"


def _rows(node: RowList) -> str:
    block = Writer().open(node.relation)
    named = (f"{block.items[of.number]} AS v{column.number}" for column, of in node.columns)
    nothing = ", ".join("NULL" for _ in node.columns)
    absent = f" UNION ALL SELECT {nothing}" if node.optional else ""
    return f"SELECT DISTINCT {', '.join(named)}{block.tail()}{absent}"


def _values(values: Members | WholeNumbers | Days | Periods) -> str:
    """A query for constants in a column ``v``."""
    match values:
        case Members(kind=kind, values=members):
            held = engine_type(kind) if kind in _CAST else None
            if not members:
                return f"SELECT CAST(NULL AS {held or kind.value}) AS v WHERE FALSE"
            rows = ", ".join(f"({literal(value, kind)})" for value in members)
            cast = f"CAST(v AS {held})" if held else "v"
            return f"SELECT {cast} AS v FROM (VALUES {rows}) AS m(v)"
        case WholeNumbers(kind=kind, first=first, last=last):
            ends = f"{first}, {max(first, last + 1)}"
            return f"SELECT CAST(v AS {engine_type(kind)}) AS v FROM range({ends}) AS r(v)"
        case Days(first=first, last=last):
            days = max(0, (last - first).days + 1)
            start = literal(first, Kind.DATE)
            return f"SELECT {start} + CAST(v AS INTEGER) AS v FROM range(0, {days}) AS r(v)"
        case Periods():
            return _periods(values)
        case _:
            assert_never(values)


def _periods(periods: Periods) -> str:
    value = "TRY_CAST(v AS DATE)" if periods.kind is Kind.DATE else "v"
    ends = f"{_stamp(periods.first)}, {_stamp(periods.high)}"
    series = (
        f"SELECT {value} AS v FROM generate_series({ends}, INTERVAL '1 {periods.unit}') AS r(v)"
    )
    if periods.first == periods.low:
        return series
    return f"{series} WHERE v >= {_stamp(periods.low)}"


def _stamp(value: datetime) -> str:
    return f"CAST({literal(value, Kind.TIMESTAMP)} AS TIMESTAMP)"
