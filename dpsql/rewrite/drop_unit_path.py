"""Rows that are only looked up by another row's key need no path of their own to their unit.

``EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey)`` asks about rows whose unit is the
unit of the outer query's order. Following their foreign key would find the same order again, and
would cost a join with all orders (on TPC-H three quarters of the time of q04, two thirds of q21).

Claim: the relation has the same rows with the path as without, and they are of the same units.
Assumes: keys that foreign keys refer to are unique, as everywhere
    (``join_rules.imply_equal_units``).
Argument: a row is looked up only where its foreign key is the key of a parent row, and the other
    side holds this parent row or another child of it. As the key is unique, the path would find the
    same parent row. The other side has the unit of that row, so the unit exists, and it is the unit
    of both sides.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.ir.expressions import columns
from dpsql.ir.relations import (
    Filter,
    Join,
    Private,
    Project,
    Relation,
    Scan,
    Sort,
    expressions,
    inputs,
    with_inputs,
)
from dpsql.rewrite.draft import Draft
from dpsql.sql.bind.join_rules import equalities, follows, known_conditions, scans, siblings


def drop_unit_path(draft: Draft) -> Draft:
    """The rows without a path to a unit that the other side of a look-up already has."""
    relation = draft.rows.relation
    dropped = relation if draft.rows.strict else _drop(relation)
    return draft if dropped is relation else draft.over(dropped)


def _drop(relation: Relation) -> Relation:
    before = inputs(relation)
    below = tuple(map(_drop, before))
    if any(new is not old for new, old in zip(below, before, strict=True)):
        relation = with_inputs(relation, below)
    match relation:
        case Join(kind="semi" | "anti", left=left, right=right, condition=condition) if condition:
            scan = _only(right)
            known = equalities([condition, *known_conditions(left)])
            if scan is None or {c.number for c in columns(condition)} & find_path_columns(scan):
                return relation
            others = scans(left)
            if any(follows(scan, o, known) or siblings(scan, o, known) for o in others):
                return replace(relation, right=_lean(right))
    return relation


def _only(relation: Relation) -> Scan | None:
    """The one private table that a side reads, if nothing there uses the unit's key of its path."""
    used: set[int] = set()
    while isinstance(relation, Filter | Project | Sort):
        used |= {c.number for e in expressions(relation) for c in columns(e)}
        relation = relation.input
    if not isinstance(relation, Scan) or not isinstance(relation.privacy, Private):
        return None
    return None if used & find_path_columns(relation) else relation


def find_path_columns(scan: Scan) -> set[int]:
    """The numbers of the unit's key columns that only the path reads."""
    return {f.number for f in scan.unit_fields} - {f.number for f in scan.fields}


def _lean(relation: Relation) -> Relation:
    if isinstance(relation, Scan):
        return replace(relation, skip_unit_path=True)
    return with_inputs(relation, tuple(map(_lean, inputs(relation))))
