"""What is asked of a copy: every aggregate over every cell, in the shapes that bounding has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.policy.model import Policy, Table
from dpsql.policy.types import Kind
from dpsql.selftest.copies import CELL, PART, ROLE, WIDE, WORD
from dpsql.sql.render import quoted

_NUMBERS = (
    "SUM", "AVG", "VAR_POP", "STDDEV", "MEDIAN", "MIN", "MAX", "COUNT(DISTINCT", "PERCENTILE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """One statement; its last column is looked at, by the cell in its first."""

    name: str
    sql: str
    role: str = ROLE
    mechanism: str = "auto"


def questions(policy: Policy, table: Table) -> Iterator[Question]:
    """Every question about a table, each with every mechanism that may answer it."""
    for question in _plain(policy, table):
        yield question
        twice = (
            question.name.startswith(("COUNT", "SUM", "a group")) and "DISTINCT" not in question.sql
        )
        if twice and any(role.query.delta for role in policy.roles.values()):
            yield Question(f"{question.name}, gaussian", question.sql, question.role, "gaussian")


def _plain(policy: Policy, table: Table) -> Iterator[Question]:
    name = quoted(table.name)
    yield Question("COUNT", _grouped("COUNT(*)", name))
    for aggregate in _aggregates(table):
        yield Question(aggregate, _grouped(aggregate, name))
    yield Question(
        "COUNT in many groups",
        f"SELECT {CELL}, SUM(n) FROM (SELECT {CELL}, {PART}, COUNT(*) AS n FROM {name}"
        f" GROUP BY {CELL}, {PART}) AS g GROUP BY {CELL}",
    )
    yield Question(
        "COUNT by ROLLUP",
        f"SELECT {CELL}, n FROM (SELECT {CELL}, {PART}, COUNT(*) AS n FROM {name}"
        f" GROUP BY GROUPING SETS (({CELL}), ({PART}))) AS g WHERE {CELL} IS NOT NULL",
    )
    if any(role.query.delta for role in policy.roles.values()):
        yield Question(
            "a group that nobody lists",
            f"SELECT {WORD}, COUNT(*) FROM {name} GROUP BY {WORD}",
            WIDE,
        )
    key = _key(policy, table)
    if key:
        yield from _of_units(name, key)


def _grouped(aggregate: str, name: str) -> str:
    return f"SELECT {CELL}, {aggregate} FROM {name} GROUP BY {CELL}"


def _aggregates(table: Table) -> Iterator[str]:
    """The aggregates of the first column of each sort."""
    numbers = [
        c for c in table.columns.values()
        if c.kind.numeric and c.range is not None and not c.name.startswith("dpsql_")
    ]  # fmt: skip
    listed = [c for c in table.columns.values() if c.values]
    for column in numbers[:1]:
        for aggregate in _NUMBERS:
            text = quoted(column.name)
            if aggregate == "PERCENTILE":
                yield f"PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {text})"
            else:
                yield f"{aggregate}{'' if '(' in aggregate else '('} {text})"
    for column in listed[:1]:
        yield f"COUNT({quoted(column.name)})"
        if column.kind in (Kind.TEXT, Kind.INTEGER):
            yield f"COUNT(*) FILTER (WHERE {quoted(column.name)} IS NULL)"


def _key(policy: Policy, table: Table) -> list[str]:
    """The unit's key, where the table shows all of it."""
    if table.unit is None or policy.units[table.unit].is_row or table.path:
        return []
    return [quoted(c) for c in table.unit_columns if c in table.columns]


def _of_units(name: str, key: list[str]) -> Iterator[Question]:
    keys = ", ".join(key)
    if len(key) == 1:
        yield Question("COUNT of units", _grouped(f"COUNT(DISTINCT {keys})", name))
        yield Question(
            "COUNT of units in many groups",
            f"SELECT {CELL}, SUM(n) FROM (SELECT {CELL}, {PART}, COUNT(DISTINCT {keys}) AS n"
            f" FROM {name} GROUP BY {CELL}, {PART}) AS g GROUP BY {CELL}",
            WIDE,
        )
    same = " AND ".join(f"a.{k} = b.{k}" for k in key)
    yield Question(
        "COUNT over a join",
        f"SELECT a.{CELL}, COUNT(*) FROM {name} AS a JOIN {name} AS b ON {same} GROUP BY a.{CELL}",
    )
    yield Question(
        "COUNT of those without",
        f"SELECT a.{CELL}, COUNT(*) FROM {name} AS a WHERE NOT EXISTS (SELECT 1 FROM {name} AS b"
        f" WHERE {same} AND b.{PART} = 2) GROUP BY a.{CELL}",
    )
    yield Question(
        "AVG of a number of each unit",
        f"SELECT {CELL}, AVG(n) FROM (SELECT {keys}, {CELL}, COUNT(*) AS n FROM {name}"
        f" GROUP BY {keys}, {CELL}) AS g GROUP BY {CELL}",
    )
    yield Question(
        "COUNT by rank within a unit",
        f"SELECT {CELL}, COUNT(*) FROM (SELECT {CELL}, RANK() OVER (PARTITION BY {keys} ORDER BY"
        f" {PART}) AS r FROM {name}) AS g WHERE r <= 2 GROUP BY {CELL}",
    )
