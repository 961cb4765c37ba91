"""The sums of each unit in each of its groups, and how they are bounded and added up.

Columns: the unit, the keys, the sums ``s0..``, and the number ``n`` of the unit's rows that count
in the group. ``n`` is there only where a norm or strict timing needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpsql.bound.caps import clamp
from dpsql.bound.grid import Grid
from dpsql.bound.row_weights import apply_weight, multiply, zero_if_none
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.bound.sensitivity import Strategy
from dpsql.catalog.statistic import Rows, Statistic, Total, Units
from dpsql.ir.statements import Alias, Cast, Fold, From, Name, Number, Op, Query, Select, Term
from dpsql.plan.nodes import Measurement

ALONE = Number(1)
"""The weight of a row where rows have no weights."""
Capping = Callable[[Rows | Total, Term, Grid | None], Term]
"""How a strategy bounds the number or the sum of a unit in a group."""


def by_unit(
    measurement: Measurement, rows: UnitRows, source: From | None = None, weight: Term = ALONE,
    bits: int = 0, where: tuple[Term, ...] = (), *, with_number: bool = False,
) -> Select:  # fmt: skip
    """The sums of each unit in each of its groups, over the rows of ``source`` (default: all rows).

    Each row has the ``weight``, in steps of ``2**-bits``.
    """
    keys = (*rows.units, *rows.keys)
    items = [*keep(keys)]
    if with_number or rows.kept is not None:
        items.append(("n", rows.number))
    for i, statistic in enumerate(measurement.statistics):
        items.append((f"s{i}", _sum(statistic, i, bits, rows, weight)))
    return Select(source or Alias(rows.query, "r"), tuple(items), where, keys)


def _sum(statistic: Statistic, i: int, bits: int, rows: UnitRows, weight: Term) -> Term:
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
            return _total(statistic, rows.value(i).term, where, bits, weight)


def _total(statistic: Statistic, value: Term, where: Term | None, bits: int, weight: Term) -> Term:
    assert isinstance(statistic, Total)
    if statistic.averaged:
        number = Op("nullif", (Fold("count", value, where), Number(0)))
        return Op("//", (Fold("sum", value, where), number))
    if not isinstance(weight, Number):
        value = apply_weight(value, bits, weight)
    added = Fold("sum", value, where)
    return added if statistic.cap is not None else zero_if_none(added)


def sum_units(
    measurement: Measurement, bounding: Strategy, grids: Grids, rows: UnitRows, groups: Query,
    cut: Capping, few: Term | None = None,
) -> Query:  # fmt: skip
    """The sums over units of their contributions after ``cut``, from groups where ``few`` holds.

    Under strict timing all groups are read, and the conditions stand in the sums only: they say
    which groups are kept and which have rows that count.
    """
    parts = [few] if few is not None else []
    if rows.kept is not None:
        parts.append(Op(">", (Name("n"), Number(0))))
    which = None if not rows.strict else _all(parts)
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        value = _left(statistic, Name(f"s{i}"), grids[i], bounding, cut)
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


def _left(
    statistic: Statistic, value: Term, grid: Grid | None, bounding: Strategy, cut: Capping
) -> Term:
    """The bounded contribution of a unit to a group."""
    if isinstance(statistic, Units):
        return value
    assert isinstance(statistic, Rows | Total), "others have queries of their own"
    if statistic.cap is not None:
        return clamp(value, statistic, grid, bounding)
    return cut(statistic, value, grid)


def cap(statistic: Rows | Total, value: Term, grid: Grid | None, *, per_group: int) -> Term:
    """The contribution of a unit to a group, capped to that of ``per_group`` rows."""
    if isinstance(statistic, Rows):
        return Op("least", (value, Number(per_group)))
    assert grid is not None
    low = min(0, (grid.low - grid.centre) * per_group)
    high = max(0, (grid.high - grid.centre) * per_group)
    return Op("least", (Op("greatest", (value, Number(low))), Number(high)))


def columns(groups: Select) -> Iterator[str]:
    """The names of the columns of a query."""
    return (name for name, _ in groups.items)
