"""The groups that a unit keeps: the first ones in a random order.

The order is by a number for each group of each unit: a hash of the unit, the group and a salt. A
unit that has no more rows than it may keep groups needs no order. Ordering all groups of all units
takes longer than the rest of the statement.
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
from dpsql.plan.unit_groups import in_one_group

GROUPS, MANY = "groups of units", "units with many"
"""Names of common tables of the statement, which no table of a database has."""


def first_groups(
    measurement: Measurement, bounding: KeepsGroups, grids: Grids, rows: UnitRows
) -> tuple[Query, Term | None]:
    """The sums of units in their groups, and the condition on kept groups, where one is needed."""
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
    if not rows.strict and none_has_more(measurement, bounding):
        return _draw_for_few(bounding, rows, groups), None
    return rank_groups(rows, groups), is_first(bounding)


def none_has_more(measurement: Measurement, bounding: KeepsGroups) -> bool:
    """Whether no unit that is as declared has more groups than it keeps."""
    return bounding.groups >= measurement.privacy.max_rows or in_one_group(measurement)


def is_first(bounding: KeepsGroups) -> Term:
    """Whether a group is among the first ones of its unit."""
    return Op("<=", (Name("place"), Number(bounding.groups)))


def rank_groups(rows: UnitRows, groups: Select, source: From | None = None) -> Select:
    """Groups of units with their rank in the unit's order; groups without counted rows are last."""
    last = () if rows.kept is None else (Op("=", (Name("n"), Number(0))),)
    place = Rank(tuple(map(Name, rows.units)), (*last, *rows.order))
    items = (*keep(tuple(columns(groups))), ("place", place))
    return Select(source or Alias(groups, "l"), items)


def _join_split(
    measurement: Measurement, bounding: KeepsGroups, rows: UnitRows, split: SplitRows
) -> Query:
    """All groups of units that keep all of theirs, and the first groups of all other units."""
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
    """The groups that units keep, where no unit that is as declared has too many.

    Only units with too many groups are ranked. A window over all groups of all units takes longer
    than the rest of the statement (TPC-H's q17 has 6 million groups: 4.8 s with such a window, 2.4
    s without). This would be slower where more units are above the limit than below.
    """
    shared = CommonTable(GROUPS, groups, stored=True)
    above = Op(">", (Fold("count"), Number(bounding.groups)))
    units = Select(Alias(shared, "l"), keep(rows.units), group=rows.units, having=above)
    many = Alias(CommonTable(MANY, units, stored=True), "m")
    shown = keep(tuple(columns(groups)))
    others = Select(JoinUsing("anti", Alias(shared, "l"), many, rows.units), shown)
    drawn = rank_groups(rows, groups, JoinUsing("semi", Alias(shared, "l"), many, rows.units))
    return UnionAll((others, Select(Alias(drawn, "d"), shown, (is_first(bounding),))))
