"""What each unit adds to each of its groups, and how that is cut and added up.

Columns: the unit, the keys, ``s0..``, its sums, and ``n``, the unit's rows that count there, where
a norm or strict timing needs it.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.bound.bounding import Bounding
from dpsql.bound.one_row import clamp
from dpsql.bound.row_weights import apply_weight, multiply, zero_if_none
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.catalog.statistic import Rows, Statistic, Total, Units
from dpsql.ir.statements import Alias, Cast, Fold, From, Name, Number, Op, Query, Select, Term
from dpsql.plan.nodes import Measurement

ALONE = Number(1)
"""What a row weighs where nothing is weighed."""


def by_unit(
    measurement: Measurement, bounding: Bounding, rows: UnitRows, source: From | None = None,
    weight: Term = ALONE, where: tuple[Term, ...] = (),
) -> Select:  # fmt: skip
    """The sums of each unit in each of its groups, over ``source`` (all rows) of some weight."""
    keys = (*rows.units, *rows.keys)
    items = [*keep(keys)]
    if bounding.norm is not None or rows.kept is not None:
        items.append(("n", rows.number))
    for i, statistic in enumerate(measurement.statistics):
        items.append((f"s{i}", _sum(statistic, i, bounding, rows, weight)))
    return Select(source or Alias(rows.query, "r"), tuple(items), where, keys)


def _sum(statistic: Statistic, i: int, bounding: Bounding, rows: UnitRows, weight: Term) -> Term:
    where = rows.wheres[i]
    match statistic:
        case Units():
            return Cast(Op(">", (Fold("count", where=where), Number(0))), "bigint")
        case Rows():  # all rows of a unit weigh the same
            number = Fold("count", where=where)
            if isinstance(weight, Number):
                return multiply(number, weight.value)
            return Op("*", (number, Fold("min", weight)))
        case _:
            return _total(statistic, rows.value(i).term, where, bounding, weight)


def _total(
    statistic: Statistic, value: Term, where: Term | None, bounding: Bounding, weight: Term
) -> Term:
    assert isinstance(statistic, Total)
    if statistic.averaged:
        number = Op("nullif", (Fold("count", value, where), Number(0)))
        return Op("//", (Fold("sum", value, where), number))
    if not isinstance(weight, Number):
        value = apply_weight(value, bounding, weight)
    added = Fold("sum", value, where)
    return added if statistic.cap is not None else zero_if_none(added)


def sum_units(
    measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows, groups: Query,
    few: Term | None = None,
) -> Query:  # fmt: skip
    """The sums over units of what each adds, capped; of groups where ``few`` holds.

    Under strict timing that condition does not decide which groups are read, nor whether rows count.
    """
    parts = [few] if few is not None else []
    if rows.kept is not None:
        parts.append(Op(">", (Name("n"), Number(0))))
    which = None if not rows.strict else _all(parts)
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        value = _cap(statistic, bounding, grids, i)
        items.append((f"p{i}", zero_if_none(Fold("sum", value, which))))
    having = None
    if measurement.cells is None:
        number = Fold("count", where=which)
        items.append(("units", number))
        having = None if which is None else Op(">", (number, Number(0)))
    where = () if rows.strict or few is None else (few,)
    return Select(Alias(groups, "g"), tuple(items), where, rows.keys, having)


def _all(parts: list[Term]) -> Term | None:
    return None if not parts else parts[0] if len(parts) == 1 else Op("and", tuple(parts))


def _cap(statistic: Statistic, bounding: Bounding, grids: Grids, i: int) -> Term:
    """What a unit adds to a group."""
    value: Term = Name(f"s{i}")
    if isinstance(statistic, Units):
        return value
    if isinstance(statistic, Rows | Total) and statistic.cap is not None:
        return clamp(value, statistic, grids, i, bounding)
    if bounding.norm is not None:
        scaled = Op("*", (value, Name("factor")))
        if isinstance(statistic, Total):
            return Op("//", (scaled, Number(1 << bounding.bits)))
        return scaled
    if bounding.per_group is None:
        return value
    if isinstance(statistic, Rows):
        return Op("least", (value, Number(bounding.per_group)))
    grid = grids[i]
    assert grid is not None
    low = min(0, (grid.low - grid.centre) * bounding.per_group)
    high = max(0, (grid.high - grid.centre) * bounding.per_group)
    return Op("least", (Op("greatest", (value, Number(low))), Number(high)))


def columns(groups: Select) -> Iterator[str]:
    """The names of the columns of a query."""
    return (name for name, _ in groups.items)
