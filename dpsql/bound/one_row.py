"""One row per unit, or so many rows as are read of one: there is nothing to bound.

Claim: adding or removing one unit changes each statistic as ``bound.bounding.sensitivity`` says.
Assumes: a unit has one row here (its key is unique), or a prepared copy lets no more than ``rows`` of
    a unit through.
Argument: each row adds its clamped value, or one, to one group; where an aggregate has a cap, the
    unit's only row adds what the cap leaves of it.
"""

from __future__ import annotations

from dpsql.bound import caps
from dpsql.bound.bounding import Bounding
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.catalog.statistic import Rows, Statistic, Total
from dpsql.ir.statements import Alias, CaseWhen, Fold, Number, Op, Query, Select, Term
from dpsql.plan.nodes import Measurement


def apply(measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows) -> Query:
    """The sums of each group; where groups are not public, those with a row that counts."""
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        items.append((f"p{i}", _sum(statistic, rows, i, bounding, grids)))
    having = None
    if measurement.cells is None:
        items.append(("units", rows.number))
        having = None if rows.kept is None else Op(">", (rows.number, Number(0)))
    return Select(Alias(rows.query, "r"), tuple(items), group=rows.keys, having=having)


def _sum(statistic: Statistic, rows: UnitRows, i: int, bounding: Bounding, grids: Grids) -> Term:
    where = rows.wheres[i]
    match statistic:
        case Rows(cap=cap) | Total(cap=cap) if cap is not None:
            inside = clamp(_single(statistic, rows, i), statistic, grids, i, bounding)
            return Op("coalesce", (Fold("sum", inside, rows.kept), Number(0)))
        case Total():
            return rows.value(i).total(where)
        case _:
            return Fold("count", where=where)


def _single(statistic: Rows | Total, rows: UnitRows, i: int) -> Term:
    """What a unit's only row adds."""
    where = rows.wheres[i]
    if isinstance(statistic, Total):
        value = rows.value(i).term
        return value if where is None else CaseWhen(((where, value),))
    return Number(1) if where is None else CaseWhen(((where, Number(1)),), Number(0))


def clamp(term: Term, statistic: Rows | Total, grids: Grids, i: int, bounding: Bounding) -> Term:
    """What a unit adds to a group, within the ends of its cap; nothing where it has no value there."""
    low, high = caps.ends(statistic, grids[i], bounding)
    inside = Op("least", (Op("greatest", (term, Number(low))), Number(high)))
    return CaseWhen(((Op("is not null", (term,)), inside),))
