"""The columns that a value is made of, for the rule that no identifier of a person names a group.

Claim: of a column that is not returned here, a value shows at most which rows it chose, or how
    many.
Assumes: listed functions read nothing but their arguments.
Argument: a count tells how many values there are, a rank how many come before, and a truth value is
    one bit. The conditions of a CASE are in none of its results.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.engines.duckdb.guard.facts import TRUTH
from dpsql.engines.duckdb.guard.parts import Node
from dpsql.engines.duckdb.guard.sums import AGGREGATES, COUNTING
from dpsql.engines.duckdb.guard.terms import PLACES, TOTAL

_TELLS_NO_VALUE = frozenset(
    [*COUNTING, *PLACES]
    + [name for kinds in (AGGREGATES, TOTAL) for name, kind in kinds.items() if kind == TRUTH]
)
"""Functions and window functions whose result is a number of rows or a truth value."""
_TRUE_OR_NOT = frozenset(["COMPARISON", "CONJUNCTION", "SUBQUERY"])
"""Classes of expressions that give truth values. A subquery is the list of an IN."""
_SOME_VALUE = frozenset(["OPERATOR_COALESCE", "OPERATOR_TRY"])
"""Operators that return one of their values. All others give truth values."""


def made_of(node: object) -> Iterator[list[str]]:
    """The names of the columns whose values may be in an expression's value."""
    if isinstance(node, list):
        for child in node:
            yield from made_of(child)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            yield node["column_names"]
        elif not _tells_no_value(node):
            for part in _results(node):
                yield from made_of(part)


def _tells_no_value(node: Node) -> bool:
    kind = node.get("class")
    if kind in ("FUNCTION", "WINDOW"):
        return node["function_name"] in _TELLS_NO_VALUE
    return kind in _TRUE_OR_NOT or (kind == "OPERATOR" and node["type"] not in _SOME_VALUE)


def _results(node: Node) -> Iterator[object]:
    """The parts of an expression that its value may come from."""
    if node.get("class") == "CASE":
        yield from (check["then_expr"] for check in node["case_checks"])
        yield node["else_expr"]
    elif node.get("class") == "WINDOW":
        yield from (node["arguments"], node["default_expr"])
    else:
        yield from node.values()
