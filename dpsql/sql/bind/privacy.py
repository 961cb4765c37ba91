"""The privacy state of each operator's result.

Each operator keeps the invariant that every private row belongs to exactly one unit. These
functions never refuse: they give the state of a relation, and the checks refuse what is not
allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dpsql.ir.expressions import Column, Expression
from dpsql.ir.relations import Privacy, Private, Public, Released


def group_privacy(
    privacy: Privacy, keys: Iterable[Expression], fields: tuple[Column, ...]
) -> Privacy:
    """GROUP BY. A grouping with the unit among its keys stays private; any other is the frontier.

    Claim: in the first case each result row is computed from one unit's rows alone. In the second
        case the result will be a measurement.
    Assumes: each input row is computed from the rows of the unit whose key it holds, and from
        public data.
    Argument: the rows of a group have the same keys. The unit's key is among these, so all rows are
        of one unit.
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
    """The kind of unit if each group is of one unit; None otherwise."""
    if isinstance(privacy, Private) and groups_by_unit(privacy, keys):
        return privacy.unit
    return None


def _components(privacy: Private) -> tuple[frozenset[int], ...]:
    return privacy.key


def union_privacy(parts: list[Privacy]) -> Privacy:
    """UNION ALL and other set operations: a unit has the rows that it has in all inputs."""
    private = [p for p in parts if isinstance(p, Private)]
    if private:
        return replace(private[0], max_rows=sum(p.max_rows for p in private), per_group=None)
    return Released() if any(isinstance(p, Released) for p in parts) else Public()


def join_privacy(
    kind: str, left: Privacy, right: Privacy, equal: Equalities, fan_out: int,
    unique: tuple[bool, bool] = (False, False),
) -> Privacy:  # fmt: skip
    """A join. Two private relations must be joined on the unit (``checks.unit_joins`` checks it).

    Claim: each result row is computed from one unit's rows and public data, and a unit has at most
        ``max_rows`` result rows.
    Assumes: ``checks.unit_joins`` lets private relations be joined on the unit only. ``fan_out``
        and ``unique`` are what the policy declares.
    Argument: with unit = unit, or with a public other side, a result row is made of rows of one
        unit. The number of a unit's rows is multiplied by the number of its rows on the other side,
        or by the ``fan_out`` of the public side. If a side is joined on its declared unique key
        (``unique``), each row of the other side matches at most one of its rows. This is only a
        declaration of the owner. So it is used where rows are counted and capped again, but never
        to conclude that a unit has a single row.
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
        """All columns that are equal to a column of ``start``, including these."""
        known, size = set(start), -1
        while len(known) != size:
            size = len(known)
            for a, b in self.pairs:
                if a in known or b in known:
                    known |= {a, b}
        return frozenset(known)
