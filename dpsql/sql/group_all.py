"""``GROUP BY ALL``: the keys are the outputs that hold no aggregate and no window.

The parser keeps the word as an argument of the clause, true or false, and with it writes both
``GROUP BY ALL a``, which is PostgreSQL's long form of ``GROUP BY a``, and ``GROUP BY ALL, a``.
Only the word by itself is taken off and marked here; ``allow`` refuses what is left.
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
