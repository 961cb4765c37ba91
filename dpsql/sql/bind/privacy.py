"""How each operator carries the invariant: every private row belongs to exactly one unit.

These functions never refuse. They say what a relation *is*; the checks refuse what must not be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dpsql.ir.expressions import Column, Expression
from dpsql.ir.relations import Privacy, Private, Public, Released


def group_privacy(
    privacy: Privacy, keys: Iterable[Expression], fields: tuple[Column, ...]
) -> Privacy:
    """GROUP BY. Grouping that includes the unit stays private; any other is the frontier.

    Claim: in the first case each result row is computed from one unit's rows alone. In the second the result will be
        a measurement.
    Assumes: each row below is computed from the rows of the unit whose key it holds, and from public data.
    Argument: rows of a group have the same keys, the unit's among them, so they are all of one unit.
    """
    if not isinstance(privacy, Private):
        return privacy
    if not groups_by_unit(privacy, keys):
        return Released()
    numbers = {f.number for f in fields}
    key = tuple(next(iter(sorted(k & numbers))) for k in _components(privacy))
    only_unit = all(
        isinstance(k, Column) and any(k.number in c for c in _components(privacy)) for k in keys
    )
    rows = 1 if only_unit else privacy.max_rows
    return replace(privacy, key=tuple(frozenset({n}) for n in key), max_rows=rows, per_group=None)


def groups_by_unit(privacy: Private, keys: Iterable[Expression]) -> bool:
    """Whether rows of different units never share a group."""
    numbers = {k.number for k in keys if isinstance(k, Column)}
    return bool(privacy.key) and all(component & numbers for component in _components(privacy))


def unit_of_groups(privacy: Privacy, keys: Iterable[Expression]) -> str | None:
    """The unit that each group is of; None where groups are of several, or of none."""
    if isinstance(privacy, Private) and groups_by_unit(privacy, keys):
        return privacy.unit
    return None


def _components(privacy: Private) -> tuple[frozenset[int], ...]:
    return privacy.key


def union_privacy(parts: list[Privacy]) -> Privacy:
    """UNION ALL and its like: one unit's rows of all inputs together."""
    private = [p for p in parts if isinstance(p, Private)]
    if private:
        return replace(private[0], max_rows=sum(p.max_rows for p in private), per_group=None)
    return Released() if any(isinstance(p, Released) for p in parts) else Public()


def join_privacy(
    kind: str, left: Privacy, right: Privacy, equal: Equalities, fan_out: int,
    unique: tuple[bool, bool] = (False, False),
) -> Privacy:  # fmt: skip
    """A join. Private with private must be on the unit (``checks.unit_joins`` sees to it).

    Claim: each result row comes from one unit's rows and public data, and ``max_rows`` is no less than a unit has.
    Assumes: ``checks.unit_joins`` lets private relations be joined on the unit only. ``fan_out`` and ``unique`` are what
        the policy declares.
    Argument: with unit = unit, or with the other side public, a result row has rows of one unit. A unit's rows multiply
        with the other side's rows of that unit, or with the public side's ``fan_out``. Where a side is joined on its
        declared unique key (``unique``) each row of the other meets at most one row of it. As that is the owner's word
        only, it is used where rows are counted and capped again, never to say that a unit has a single row.
    """
    if isinstance(left, Private) and isinstance(right, Private):
        rows = left.max_rows * right.max_rows
        if kind in ("semi", "anti") or (unique[1] and left.max_rows > 1):
            rows = left.max_rows
        elif unique[0] and right.max_rows > 1 and kind == "inner":
            rows = right.max_rows
        key = tuple(equal.closure(c) for c in left.key)
        return replace(left, key=key, max_rows=rows, per_group=None)
    for side in (left, right):
        if isinstance(side, Private):
            key = tuple(equal.closure(c) for c in side.key)
            many = 1 if kind in ("semi", "anti") else fan_out
            per_group = side.per_group if many == 1 else None
            return replace(side, key=key, max_rows=side.max_rows * many, per_group=per_group)
    return union_privacy([left, right])


class Equalities:
    """Columns that a join condition makes equal."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        """``pairs`` are the conjuncts of the form column = column."""
        self.pairs = tuple(pairs)

    def closure(self, start: frozenset[int]) -> frozenset[int]:
        """Everything equal to one of ``start``."""
        known, size = set(start), -1
        while len(known) != size:
            size = len(known)
            for a, b in self.pairs:
                if a in known or b in known:
                    known |= {a, b}
        return frozenset(known)
