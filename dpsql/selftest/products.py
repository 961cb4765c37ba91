"""Pairs of features that may fail together: each aggregate with each strategy, mechanism and rule.

Each pair is asked in one scenario, and the next pair in another one, so that all scenarios occur.
Questions for every scenario are in ``matrix``. Tests compare the pairs with the registries.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.bound import (
    GroupCaps,
    NormClip,
    PreparedRows,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
)
from dpsql.catalog.aggregates import AGGREGATES as RECORDS
from dpsql.catalog.aggregates import is_private, names_where
from dpsql.catalog.record import Needs
from dpsql.price.request import Mechanism
from dpsql.selftest.copies import SEVERAL, WIDE
from dpsql.selftest.probes import CELL, PART, PERSON, PREPARED, ROWS, WORD
from dpsql.selftest.questions import Question
from dpsql.selftest.scenarios import ABOVE, SCENARIOS, SPREAD, Scenario

AGGREGATES = (
    *(text for name in names_where(is_private) for text in RECORDS[name].examples),
    "COUNT(*) FILTER (WHERE x IS NULL)", "SUM(x) FILTER (WHERE flag)", f"COUNT(DISTINCT {PERSON})",
)  # fmt: skip
"""Every aggregate that has a private form, and some with clauses."""
RULES: tuple[tuple[str, str, Mechanism], ...] = (
    ("truncated", WIDE, "laplace"), ("Laplace", SEVERAL, "laplace"),
    ("Gaussian", SEVERAL, "gaussian"),
)  # fmt: skip
"""Every rule that selects groups, and the role and mechanism that lead to it."""
IN_GROUPS = tuple(s.name for s in (RowWeights, GroupCaps, WeightsAndGroups, NormClip, VectorClip))
"""Strategies for units with many rows in many groups of a table without a prepared copy."""
WAYS = (*IN_GROUPS, PreparedRows.name, UnitTotals.name)
"""Strategies for units with many rows; every aggregate of people uses one row per unit."""
_LAWS: tuple[Mechanism, ...] = ("laplace", "gaussian", "geometric")
_GROUPED = (RowWeights.name, NormClip.name, PreparedRows.name)
_TURNS = 3
"""The step through the scenarios from one pair to the next: prime to ten, so that all occur."""
_SHARE = 8
"""How many times fewer samples a pair has than questions that are asked in every scenario."""

_BY_VALUE = frozenset(
    text
    for name in names_where(is_private)
    if RECORDS[name].needs in (Needs.RANGE_OR_LIST, Needs.LIST)
    for text in RECORDS[name].examples
)
"""Aggregates that choose a value."""

_MANY = (
    ("COUNT(*)", "v", 2), ("SUM(x)", "v", 6), ("AVG(x)", "v", 3), ("MEDIAN(x)", "v", 3),
    ("COUNT(DISTINCT n)", "v", 2), ("MODE(kind)", "CASE WHEN v = 'c' THEN 1 ELSE 0 END", 1),
)  # fmt: skip
"""Aggregates of each kind, their answers as numbers, and the most that one person can add."""


def products() -> Iterator[Question]:
    """Every pair, each in one scenario, in rotation."""
    for i, text in enumerate(AGGREGATES):
        for j, way in enumerate(WAYS):
            if possible(text, way):
                turn = i + _TURNS * j
                yield _bounded(
                    text, way, _LAWS[(i + j + j // 3) % 3], SCENARIOS[turn % len(SCENARIOS)]
                )
        for j, (rule, role, law) in enumerate(RULES):
            scenario = SCENARIOS[(i + _TURNS * j + 1) % len(SCENARIOS)]
            sql = f"SELECT {WORD}, {text} FROM {ROWS} GROUP BY {WORD}"
            yield Question(
                f"{text} of hidden groups by the {rule} rule", ROWS, sql, role, law,
                scenarios=(scenario,), share=_SHARE,
            )  # fmt: skip
    yield from _in_many_groups()


def in_one_group(sql: str) -> str:
    """The question, with one group of a unit: of public groups a unit counts in all otherwise."""
    first, _, last = sql.rpartition("SELECT ")
    return f"{first}SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1) {last}"


def possible(aggregate: str, way: str) -> bool:
    """Whether a strategy bounds an aggregate.

    Weights and norms do not bound numbers of units. Vectors are of numbers and sums: not of values
    that are chosen, or counted once.
    """
    of_units = f"DISTINCT {PERSON}" in aggregate
    if way == VectorClip.name:
        return of_units or ("DISTINCT" not in aggregate and aggregate not in _BY_VALUE)
    return way not in _GROUPED or not of_units


def _bounded(text: str, way: str, law: Mechanism, scenario: Scenario) -> Question:
    name = f"{text} by {way}, {law}"
    if way == UnitTotals.name:
        sql = f"SELECT 1 AS {CELL}, {text} FROM {ROWS} WHERE {CELL} = 1"
        return Question(name, ROWS, sql, SEVERAL, law, way, scenarios=(scenario,), cells=1)
    table = PREPARED if way == PreparedRows.name else ROWS
    sql = f"SELECT {CELL}, {text} FROM {table} GROUP BY {CELL}"
    return Question(name, table, sql, SEVERAL, law, way, scenarios=(scenario,), share=_SHARE)


def _in_many_groups() -> Iterator[Question]:
    """A person in more groups than allowed, by each strategy and rule; answers are added up."""
    for text, number, most in _MANY:
        for key in (CELL, WORD):
            total = f"SUM(LEAST(GREATEST({number}, 0), {most}))"
            for way in IN_GROUPS if key == CELL else (GroupCaps.name, WeightsAndGroups.name):
                law: Mechanism = "gaussian" if way == NormClip.name else "laplace"
                sql = (
                    f"SELECT {key}, {total} FROM (SELECT {key}, {PART}, {text} AS v FROM {ROWS}"
                    f" GROUP BY {key}, {PART}) AS g WHERE {PART} < 5 GROUP BY {key} ORDER BY {key}"
                )
                yield Question(
                    f"{text} of each of many {'hidden ' * (key == WORD)}groups by {way}", ROWS,
                    sql, SEVERAL, law, way, scenarios=(SPREAD, ABOVE)[: 1 + (key == CELL)],
                )  # fmt: skip
