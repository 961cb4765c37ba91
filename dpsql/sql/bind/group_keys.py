"""GROUP BY: the keys, and the keys of each grouping set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations, product

from sqlglot import exp

from dpsql.diagnostics.refusal import Refused
from dpsql.ir.expressions import Expression
from dpsql.sql.bind.context import refuse

MOST_SETS = 64
BindKey = Callable[[exp.Expr], Expression]


@dataclass(slots=True)
class Grouping:
    """The distinct keys of a GROUP BY, and its grouping sets as positions in them.

    ``sets`` is empty if there is only one set, with all keys.
    """

    keys: list[Expression] = field(default_factory=list)
    sets: tuple[tuple[int, ...], ...] = ()


def bind_grouping(group: exp.Group | None, bind: BindKey) -> Grouping:
    """The keys of a GROUP BY clause. The sets of several elements are combined, as in SQL."""
    made = Grouping()
    elements: list[list[tuple[int, ...]]] = []
    several = False
    for node in [] if group is None else group.expressions:
        several |= isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets)
        elements.append(_sets(node, made, bind))
    if several:
        count = 1
        for element in elements:
            count *= len(element)
            if count > MOST_SETS:
                raise _too_many(group or node)
        made.sets = tuple(
            tuple(sorted({k for part in parts for k in part})) for parts in product(*elements)
        )
    return made


def _too_many(node: exp.Expr) -> Refused:
    why = "Each grouping set is a separate answer."
    return refuse("DP115", node, f"more than {MOST_SETS} grouping sets", why)


def _sets(node: exp.Expr, made: Grouping, bind: BindKey) -> list[tuple[int, ...]]:
    """The grouping sets of one element of a GROUP BY."""
    match node:
        case exp.Rollup():
            parts = [_keys(part, made, bind) for part in node.expressions]
            return [sum(parts[:n], ()) for n in range(len(parts), -1, -1)]
        case exp.Cube():
            if 2 ** len(node.expressions) > MOST_SETS:
                raise _too_many(node)
            parts = [_keys(part, made, bind) for part in node.expressions]
            sizes = range(len(parts), -1, -1)
            return [sum(c, ()) for n in sizes for c in combinations(parts, n)]
        case exp.GroupingSets():
            return [s for part in node.expressions for s in _sets(part, made, bind)]
        case _:
            return [_keys(node, made, bind)]


def _keys(node: exp.Expr, made: Grouping, bind: BindKey) -> tuple[int, ...]:
    """The positions of one key, or of a bracketed list of keys."""
    if isinstance(node, exp.Tuple):
        return sum((_keys(part, made, bind) for part in node.expressions), ())
    key = bind(node.this if isinstance(node, exp.Paren) else node)
    if key not in made.keys:
        made.keys.append(key)
    return (made.keys.index(key),)
