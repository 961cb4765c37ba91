"""Public tables are read as far as they are needed: filtered first, and without unused columns.

A relation that needs the result of a subquery first cannot be answered by the engine as a whole. It
is finished over rows that the engine gives. This is not about privacy: the rows are public, and the
answer is the same.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.ir.expressions import Subquery, columns, conjuncts
from dpsql.ir.expressions import walk as parts
from dpsql.ir.relations import (
    Aggregate,
    Filter,
    Join,
    Project,
    Relation,
    Sort,
    expressions,
    inputs,
)
from dpsql.sql.narrow import conjunction

NeededColumns = frozenset[int] | None
"""Columns that are needed; None for all."""


def split_filter(relation: Relation) -> Relation:
    """A filter as two filters: conditions without subqueries below those with subqueries."""
    if not isinstance(relation, Filter):
        return relation
    found = conjuncts(relation.predicate)
    plain = [c for c in found if not any(isinstance(p, Subquery) for p in parts(c))]
    rest = [c for c in found if c not in plain]
    if not plain or not rest:
        return relation
    below = Filter(relation.input, conjunction(plain), relation.input.fields, relation.privacy)
    return replace(relation, input=below, predicate=conjunction(rest))


def needed_below(relation: Relation, needed: NeededColumns) -> NeededColumns:
    """The columns that an operator needs of its inputs, if these columns are needed of it."""
    own = frozenset(c.number for c in columns(*expressions(relation)))
    match relation:
        case Project() | Aggregate():
            return own
        case Filter() | Join() | Sort():
            return None if needed is None else needed | own
        case _:
            return None


def fit_columns(relation: Relation) -> Relation:
    """An operator that passes columns on, with only the columns that its inputs still have."""
    if not isinstance(relation, Filter | Join | Sort):
        return relation
    there = {f.number for below in inputs(relation) for f in below.fields}
    return replace(relation, fields=tuple(f for f in relation.fields if f.number in there))
