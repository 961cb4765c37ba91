"""Whether rows are the same each time a statement computes them.

Row weights count a unit's rows in one place and add them up in another. If ties are broken by
chance, or doubles are added in any order, the two places may read different rows, and a unit could
weigh more than its bound.

Claim: where ``steady`` is true, every evaluation of the relation on the same data has the same
    rows.
Assumes: the data does not change while a statement runs. A view of the source that makes a row from
    several rows is known as ``computed`` (``engines.duckdb.definitions``).
Argument: expressions are functions of a row. Windows and aggregates are listed here only where
    neither the order of equal rows nor the order of addition decides, and so are views.
"""

from __future__ import annotations

from typing import assert_never

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import Steady
from dpsql.ir.expressions import Aggregated, Window
from dpsql.ir.relations import Aggregate, Relation, Scan, Windowed, walk_relations
from dpsql.policy.types import Kind

_OF_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Window functions that give equal rows the same number."""


def is_computed(relation: Relation) -> bool:
    """Whether the relation reads a view of the source that makes a row from several rows."""
    return any(isinstance(part, Scan) and part.table.computed for part in walk_relations(relation))


def steady(relation: Relation) -> bool:
    """Whether rows do not depend on the order in which an engine reads them."""
    if is_computed(relation):
        return False
    for part in walk_relations(relation):
        if isinstance(part, Windowed) and not all(map(_window, part.windows)):
            return False
        if isinstance(part, Aggregate) and not all(map(_aggregated, part.calls)):
            return False
    return True


def _window(window: Window) -> bool:
    if window.function in _OF_PEERS:
        return True
    of_rows = window.frame is not None and window.frame.unit == "rows"
    return not of_rows and _aggregated(window)


def _aggregated(call: Window | Aggregated) -> bool:
    record = AGGREGATES.get(call.function)
    known = Steady.NEVER if record is None else record.steady
    match known:
        case Steady.ALWAYS:
            return True
        case Steady.OF_INTEGERS:
            return call.args[0].shape.kind is Kind.INTEGER
        case Steady.NEVER:
            return False
        case _:
            assert_never(known)
