"""Reordering of inner joins: conditions may be in ON or WHERE, and tables in any order.

A chain of inner and comma joins is split into its relations and all conditions. It is then
assembled again so that each join keeps the invariant: private relations are joined on the unit,
and public relations on their key. If no such order exists, the written order is kept, and a check
refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain

from dpsql.ir.expressions import Call, Column, Expression, columns, conjuncts
from dpsql.ir.relations import Join, Private, Relation, Scan, written_columns
from dpsql.sql.bind.join_rules import (
    covers_key,
    declared_same,
    equalities,
    fan_out,
    follows,
    imply_equal_units,
    join,
    one_unit_conditions,
    units_agree,
)
from dpsql.sql.bind.privacy import Equalities
from dpsql.sql.narrow import conjunction


def arrange_joins(
    relation: Relation, where: Expression | None
) -> tuple[Relation, Expression | None]:
    """The joins of a FROM clause in such an order, and the conditions that are left for WHERE."""
    if not isinstance(relation, Join) or relation.kind not in ("inner", "cross"):
        return relation, where
    leaves, conditions = _taken_apart(relation)
    conditions += [] if where is None else conjuncts(where)
    conditions += [c for part in tuple(conditions) for c in _shared(part) if c not in conditions]
    return _Graph(_lean(leaves, conditions), conditions).assembled()


def _shared(condition: Expression) -> list[Expression]:
    """The conditions that are in every branch of an OR: they hold whenever it does."""
    if not isinstance(condition, Call) or condition.function != "or":
        return []
    first, *others = (conjuncts(branch) for branch in _branches(condition))
    return [part for part in first if all(part in other for other in others)]


def _branches(condition: Expression) -> list[Expression]:
    if not isinstance(condition, Call) or condition.function != "or":
        return [condition]
    return [branch for side in condition.args for branch in _branches(side)]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A relation of the chain, and the written join that added it, for the places of refusals."""

    relation: Relation
    written: Join | None = None


def _taken_apart(
    relation: Relation, written: Join | None = None
) -> tuple[list[_Leaf], list[Expression]]:
    if not isinstance(relation, Join) or relation.kind not in ("inner", "cross"):
        return [_Leaf(relation, written)], []
    left, above = _taken_apart(relation.left, written)
    right, below = _taken_apart(relation.right, relation)
    own = [] if relation.condition is None else conjuncts(relation.condition)
    return left + right, above + below + own


def _lean(leaves: list[_Leaf], conditions: list[Expression]) -> list[_Leaf]:
    """The leaves, in which a child table takes its unit from a joined parent table.

    Then no second join to the parent is added. A child keeps its own path to the unit if a
    condition compares its unit's key, or if a foreign key of the same unit joins it with a table.
    """
    known = equalities(conditions)
    compared = _numbers(c for condition in conditions for c in columns(condition))
    scans = [leaf.relation for leaf in leaves if isinstance(leaf.relation, Scan)]
    kept: list[_Leaf] = []
    for leaf in leaves:
        scan = leaf.relation
        others = [p for p in scans if p is not scan]
        if (
            isinstance(scan, Scan)
            and any(follows(scan, p, known) for p in others)
            and not any(
                declared_same(scan, p, known) or declared_same(p, scan, known) for p in others
            )
            and not compared & _numbers(scan.unit_fields)
        ):
            kept.append(replace(leaf, relation=replace(scan, skip_unit_path=True)))
        else:
            kept.append(leaf)
    return kept


@dataclass(slots=True)
class _Graph:
    """The relations to join, and the conditions: those still unused, and those used."""

    leaves: list[_Leaf]
    conditions: list[Expression]
    used: list[Expression] = field(default_factory=list)
    implied: list[tuple[int, int]] = field(default_factory=list)

    def assembled(self) -> tuple[Relation, Expression | None]:
        """Join the relations one by one, preferring joins that keep the invariant."""
        waiting = list(self.leaves)
        first = next((leaf for leaf in waiting if _anchors(leaf.relation)), waiting[0])
        waiting.remove(first)
        current = first.relation
        while waiting:
            fitting = (leaf for leaf in waiting if self._fits(current, leaf.relation))
            bounded = (leaf for leaf in waiting if self._is_bounded(current, leaf.relation))
            following = next(chain(fitting, bounded), waiting[0])
            waiting.remove(following)
            made = self._joined(current, following.relation)
            place = following.written or first.written
            if place is not None:
                made = replace(made, span=place.span, on_unit=place.on_unit)
            current = made
        return current, conjunction(self.conditions) if self.conditions else None

    def _fits(self, current: Relation, leaf: Relation) -> bool:
        known = self._known(current, leaf)
        mine, theirs = current.privacy, leaf.privacy
        if isinstance(mine, Private) and isinstance(theirs, Private):
            return units_agree(mine, theirs, known) or bool(
                one_unit_conditions(current, leaf, known)
            )
        if isinstance(mine, Private) or isinstance(theirs, Private):
            return covers_key(leaf if isinstance(mine, Private) else current, known)
        return True

    def _is_bounded(self, current: Relation, leaf: Relation) -> bool:
        """Whether one side is public, and the number of its rows per private row is bounded."""
        private = [isinstance(side.privacy, Private) for side in (current, leaf)]
        return sum(private) == 1 and fan_out(current, leaf, self._known(current, leaf)) > 0

    def _known(self, current: Relation, leaf: Relation) -> Equalities:
        """The equal columns after the leaf is joined with every condition that is then usable."""
        told = equalities([*self.used, *self._usable(current, leaf)])
        return Equalities((*told.pairs, *self.implied, *imply_equal_units(current, leaf, told)))

    def _usable(self, current: Relation, leaf: Relation) -> list[Expression]:
        """The conditions that need columns of both sides and of no other relation."""
        mine, theirs = written_columns(current).keys(), written_columns(leaf).keys()
        found = []
        for condition in self.conditions:
            needed = _numbers(columns(condition))
            if needed <= mine | theirs and needed & mine and needed & theirs:
                found.append(condition)
        return found

    def _joined(self, current: Relation, leaf: Relation) -> Join:
        usable, known = self._usable(current, leaf), self._known(current, leaf)
        self.implied += imply_equal_units(current, leaf, known)
        self.conditions = [c for c in self.conditions if c not in usable]
        usable += one_unit_conditions(current, leaf, known)
        self.used += usable
        known = Equalities((*equalities(self.used).pairs, *self.implied))
        condition = conjunction(usable) if usable else None
        return join("cross" if condition is None else "inner", current, leaf, condition, known)


def _anchors(relation: Relation) -> bool:
    """Whether the chain can start here: a private relation that finds its own unit."""
    lean = isinstance(relation, Scan) and relation.skip_unit_path
    return isinstance(relation.privacy, Private) and not lean


def _numbers(fields: Iterable[Column]) -> set[int]:
    return {f.number for f in fields}
