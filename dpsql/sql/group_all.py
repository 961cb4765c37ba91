"""``GROUP BY ALL``: the keys are the outputs without aggregates and windows.

The parser keeps the word as an argument of the clause. It reads ``GROUP BY ALL a``, which is
PostgreSQL's long form of ``GROUP BY a``, and ``GROUP BY ALL, a`` in the same way. So only a clause
that consists of the word alone is marked here, and ``allow`` refuses the others.
"""

from __future__ import annotations

from sqlglot import exp

_ALL = "all"


def mark_group_all(tree: exp.Expr) -> None:
    """Mark each clause that consists of the word ALL."""
    for group in tree.find_all(exp.Group):
        said = {name for name, value in group.args.items() if value is not None and value != []}
        if said == {_ALL} and group.args[_ALL] is True:
            group.set(_ALL, None)
            group.meta[_ALL] = True


def is_group_all(group: exp.Group | None) -> bool:
    """Whether the clause is ``GROUP BY ALL``."""
    return group is not None and group.meta.get(_ALL) is True
