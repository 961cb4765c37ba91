"""The groups that a unit keeps: the first ones in an order by chance.

The order is by a number drawn for each group of each unit: a hash of the unit, the group and a salt.
Units that have no more rows than groups to keep need no order; to put all groups of all units in
order takes longer than all else.
"""

from __future__ import annotations

from dpsql.bound.by_unit import ALONE, by_unit, columns
from dpsql.bound.row_weights import WEIGHT, KeepsGroups, with_weights
from dpsql.bound.rows import Grids, SplitRows, UnitRows, keep
from dpsql.ir.statements import (
    Alias,
    CommonTable,
    Fold,
    From,
    JoinUsing,
    Name,
    Number,
    Op,
    Query,
    Rank,
    Select,
    Term,
    UnionAll,
)
from dpsql.plan.nodes import Measurement

GROUPS, MANY = "groups of units", "units with many"
"""Queries of the statement: names that nobody gives to a table of a database."""


def first_groups(
    measurement: Measurement, bounding: KeepsGroups, grids: Grids, rows: UnitRows
) -> tuple[Query, Term | None]:
    """The sums of units in their groups, and the condition on those that are kept, if one is left."""
    if rows.split is not None:
        return _join_split(measurement, bounding, rows, rows.split), None
    weights = bounding.weights
    if weights is None:
        groups = by_unit(measurement, rows)
    else:
        source = with_weights(weights, grids, rows, all_rows=True)
        weight = Op("coalesce", (Name("weight", "w"), Number(1 << weights.bits)))
        groups = by_unit(measurement, rows, source, weight, weights.bits)
    if not bounding.limit:
        return groups, None
    if not rows.strict and bounding.groups >= measurement.privacy.max_rows:
        return _draw_for_few(bounding, rows, groups), None
    return rank_groups(rows, groups), is_first(bounding)


def is_first(bounding: KeepsGroups) -> Term:
    """Whether a group is among the first ones of its unit."""
    return Op("<=", (Name("place"), Number(bounding.groups)))


def rank_groups(rows: UnitRows, groups: Select, source: From | None = None) -> Select:
    """Groups of units with their place in the unit's order; those without rows that count come last."""
    last = () if rows.kept is None else (Op("=", (Name("n"), Number(0))),)
    place = Rank(tuple(map(Name, rows.units)), (*last, *rows.order))
    items = (*keep(tuple(columns(groups))), ("place", place))
    return Select(source or Alias(groups, "l"), items)


def _join_split(
    measurement: Measurement, bounding: KeepsGroups, rows: UnitRows, split: SplitRows
) -> Query:
    """Groups of units that keep all of theirs, and the first ones of all others."""
    weights = bounding.weights
    one: Term = ALONE
    weight, bits = one, 0
    if weights is not None:
        one, weight, bits = Number(1 << weights.bits), WEIGHT, weights.bits
    few = by_unit(measurement, rows, split.few, one, bits)
    many = by_unit(measurement, rows, split.many, weight, bits, split.where)
    shown = keep((*rows.keys, *(name for name in columns(few) if name.startswith("s"))))
    ranked = Select(Alias(rank_groups(rows, many), "p"), shown, (is_first(bounding),))
    return UnionAll((Select(Alias(few, "f"), shown), ranked))


def _draw_for_few(bounding: KeepsGroups, rows: UnitRows, groups: Select) -> Query:
    """The groups that units keep, where none that is as declared has too many.

    Places are drawn for those alone that have: a window over all groups of all units takes longer
    than all else (TPC-H's q17, 6 million of them: 4.8 s with it, 2.4 s so). Where more units are
    above the limit than below, this would be the slower way.
    """
    shared = CommonTable(GROUPS, groups, stored=True)
    above = Op(">", (Fold("count"), Number(bounding.groups)))
    units = Select(Alias(shared, "l"), keep(rows.units), group=rows.units, having=above)
    many = Alias(CommonTable(MANY, units, stored=True), "m")
    shown = keep(tuple(columns(groups)))
    others = Select(JoinUsing("anti", Alias(shared, "l"), many, rows.units), shown)
    drawn = rank_groups(rows, groups, JoinUsing("semi", Alias(shared, "l"), many, rows.units))
    return UnionAll((others, Select(Alias(drawn, "d"), shown, (is_first(bounding),))))
