"""The questions about the policy's own tables: the common aggregates, over every cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpsql.engines.duckdb.constants import quote_name
from dpsql.plan.empty_groups import EmptyGroups
from dpsql.policy.model import Policy, Table
from dpsql.price.request import Mechanism
from dpsql.selftest.copies import ROLE, SEVERAL, WIDE
from dpsql.selftest.probes import CELL, PART, WORD
from dpsql.selftest.scenarios import ABOVE, BELOW, EMPTY, SCENARIOS, TWICE, Scenario


@dataclass(frozen=True, slots=True)
class Step:
    """One asking of a statement, at this epsilon; a ``fresh`` one gets new noise, and pays for it.

    ``sql`` replaces the question's statement. Both may contain ``{number}``, which stands for
    another number each time the question is asked.
    """

    epsilon: Fraction | None = None
    fresh: bool = True
    sql: str | None = None


ONCE = (Step(),)
_SOME = (TWICE, EMPTY, ABOVE, BELOW)


@dataclass(frozen=True, slots=True)
class Question:
    """One statement; the samples are in its last column, by the cell in its first column.

    ``cells`` is for questions that cannot be asked about all cells at once: an answer then has this
    many samples, and ``askings`` answers are asked for. 240 answers reveal faults of several times
    the charge; 20 would reveal none. ``share`` is for questions of which there are many: they get
    this many times fewer samples than others.

    ``search`` allows searches for bounds, and ``consistent`` makes levels add up. Empty groups are
    kept, so that each gives a sample, except in questions about leaving them out.
    """

    name: str
    table: str
    sql: str
    role: str = ROLE
    mechanism: Mechanism = "laplace"
    bounding: str | None = None
    dialect: str = "postgres"
    steps: tuple[Step, ...] = ONCE
    scenarios: tuple[Scenario, ...] = SCENARIOS
    cells: int | None = None
    askings: int = 240
    share: int = 1
    search: bool = False
    consistent: bool = False
    empty_groups: EmptyGroups = "keep"

    def text(self, step: Step, number: int) -> str:
        """The statement of a step when it is asked for the ``number``-th time."""
        return (step.sql or self.sql).replace("{number}", str(number))


def of_table(policy: Policy, table: Table) -> Iterator[Question]:
    """Every question about a table of the policy."""
    name = quote_name(table.name)
    count = f"SELECT {CELL}, COUNT(*) FROM {name} GROUP BY {CELL}"
    yield Question("COUNT", table.name, count)
    yield Question("COUNT, gaussian", table.name, count, SEVERAL, "gaussian", scenarios=_SOME)
    for aggregate in _aggregates(table):
        sql = f"SELECT {CELL}, {aggregate} FROM {name} GROUP BY {CELL}"
        some = SCENARIOS if aggregate.startswith("SUM") else _SOME
        yield Question(aggregate, table.name, sql, scenarios=some)
    parts = (
        f"SELECT {CELL}, SUM(n) FROM (SELECT {CELL}, {PART}, COUNT(*) AS n FROM {name}"
        f" GROUP BY {CELL}, {PART}) AS g GROUP BY {CELL} ORDER BY {CELL}"
    )
    yield Question("COUNT in many groups", table.name, parts, scenarios=_SOME)
    hidden = f"SELECT {WORD}, COUNT(*) FROM {name} GROUP BY {WORD}"
    yield Question("groups that nobody lists", table.name, hidden, WIDE)
    key = _key(policy, table)
    for what, sql in _of_units(name, key) if key else ():
        yield Question(what, table.name, sql, scenarios=_SOME)


def _aggregates(table: Table) -> Iterator[str]:
    """Aggregates of the first column of each kind."""
    numbers = [
        quote_name(c.name) for c in table.columns.values()
        if c.kind.numeric and c.range is not None and c.name not in (CELL, PART)
    ]  # fmt: skip
    for column in numbers[:1]:
        yield from (f"{word}({column})" for word in ("SUM", "AVG", "STDDEV", "MEDIAN"))
    for column in [quote_name(c.name) for c in table.columns.values() if c.values][:1]:
        yield f"COUNT({column})"


def _key(policy: Policy, table: Table) -> list[str]:
    """The unit's key, if the table itself has it; else nothing."""
    if table.unit is None or policy.units[table.unit].is_row or table.path:
        return []
    return [quote_name(c) for c in table.unit_columns if c in table.columns]


def _of_units(name: str, key: list[str]) -> Iterator[tuple[str, str]]:
    """Names and statements of questions that use the unit's key."""
    if len(key) == 1:
        units = f"COUNT(DISTINCT {key[0]})"
        yield "COUNT of units", f"SELECT {CELL}, {units} FROM {name} GROUP BY {CELL}"
    same = " AND ".join(f"a.{k} = b.{k}" for k in key)
    join = f"{name} AS a JOIN {name} AS b ON {same}"
    yield "COUNT over a join", f"SELECT a.{CELL}, COUNT(*) FROM {join} GROUP BY a.{CELL}"
    none = f"NOT EXISTS (SELECT 1 FROM {name} AS b WHERE {same} AND b.{PART} = 2)"
    without = f"SELECT a.{CELL}, COUNT(*) FROM {name} AS a WHERE {none} GROUP BY a.{CELL}"
    yield "COUNT of those without", without
    keys = ", ".join((*key, CELL))
    each = f"SELECT {keys}, COUNT(*) AS n FROM {name} GROUP BY {keys}"
    mean = f"SELECT {CELL}, AVG(n) FROM ({each}) AS g GROUP BY {CELL}"
    yield "AVG of a number of each unit", mean
