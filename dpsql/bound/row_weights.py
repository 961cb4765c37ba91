"""Row weights: each row of a unit weighs ``min(1, rows / rows of the unit)``.

Claim: a unit's rows weigh at most ``rows`` in all, in steps of ``2**-bits``. Where the bounding is
    ``valued``, what they add to each sum is at most ``rows`` times the farthest end of its range.
Assumes: rows are the same in each place that reads them.
Argument: a weight is rounded down, and so is a weighted value, toward zero. All rows of a unit weigh the
    same. Of several sums the one that is farthest above its limit decides.

The statement adds up all rows as if they weighed one, and takes off what units above the limit have too
much: only the few rows of those are joined with their weights. Whether there are any would be seen in
the time, so under strict timing every row is weighed.
"""

from __future__ import annotations

from dpsql.bound.bounding import Bounding
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.catalog.statistic import Total
from dpsql.ir.statements import (
    Alias,
    Cast,
    Fold,
    JoinUsing,
    Name,
    Number,
    Op,
    Query,
    Select,
    Term,
    UnionAll,
)
from dpsql.plan.nodes import Measurement

WEIGHT = Name("weight")
ZERO = Number(0)


def apply(measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows) -> Query:
    """The weighted sums of each group."""
    if rows.strict:
        return _sum_weighted(measurement, bounding, grids, rows)
    whole = sum_rows(measurement, bounding, rows)
    return subtract_excess(whole, measurement, bounding, grids, rows)


def sum_rows(measurement: Measurement, bounding: Bounding, rows: UnitRows) -> Query:
    """The sums of each group where every row weighs one, in the steps of weights."""
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        if isinstance(statistic, Total):
            items.append((f"p{i}", rows.value(i).total(rows.wheres[i])))
        else:
            items.append(
                (f"p{i}", multiply(Fold("count", where=rows.wheres[i]), 1 << bounding.bits))
            )
    return Select(Alias(rows.query, "r"), tuple(items), group=rows.keys)


def subtract_excess(
    whole: Query, measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows
) -> Query:
    """Sums, less what units above the limit have too much; all of these units are among ``rows``."""
    one = Number(1 << bounding.bits)
    excess, total = [*keep(rows.keys)], [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        over: Term = Op("-", (one, WEIGHT))
        if isinstance(statistic, Total):
            value = rows.value(i).term
            over = Op("-", (value, apply_weight(value, bounding)))
        excess.append((f"p{i}", Op("negative", (zero_if_none(Fold("sum", over, rows.wheres[i])),))))
        total.append((f"p{i}", zero_if_none(Fold("sum", Name(f"p{i}")))))
    joined = with_weights(bounding, grids, rows)
    less = Select(joined, tuple(excess), group=rows.keys)
    return Select(Alias(UnionAll((whole, less)), "s"), tuple(total), group=rows.keys)


def _sum_weighted(
    measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows
) -> Query:
    """The sums of each group, each row with its own weight."""
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        total = isinstance(statistic, Total)
        value = apply_weight(rows.value(i).term, bounding) if total else WEIGHT
        items.append((f"p{i}", zero_if_none(Fold("sum", value, rows.wheres[i]))))
    return Select(with_weights(bounding, grids, rows), tuple(items), group=rows.keys)


def apply_weight(value: Term, bounding: Bounding, weight: Term = WEIGHT) -> Term:
    """What a value counts by the weight of its row."""
    return Op("//", (Op("*", (value, weight)), Number(1 << bounding.bits)))


def with_weights(
    bounding: Bounding, grids: Grids, rows: UnitRows, *, all_rows: bool = False
) -> JoinUsing:
    """Rows with the weight of each: of units above the limit, or ``all_rows``."""
    weighed = Alias(weights(bounding, grids, rows), "w")
    return JoinUsing("left" if all_rows else "inner", Alias(rows.query, "r"), weighed, rows.units)


def weights(bounding: Bounding, grids: Grids, rows: UnitRows) -> Query:
    """Units above the limit, and what each of their rows weighs; under strict timing, all units."""
    assert bounding.rows is not None
    number, one = rows.number, 1 << bounding.bits
    having: Term | None
    if bounding.valued:
        sizes = _sizes(bounding, grids, rows)
        shares = [Op("//", (Number(m * one), Op("greatest", (s, Number(1))))) for s, m in sizes]
        weight: Term = Cast(Op("least", (Number(one), *shares)), "bigint")
        above = tuple(Op(">", (size, Number(most))) for size, most in sizes)
        having = above[0] if len(above) == 1 else Op("or", above)
    else:
        assert isinstance(bounding.rows, int)
        most = Number(bounding.rows * one)
        weight = Op("//", (most, number))
        if rows.strict:
            share = Op("//", (most, Op("greatest", (number, Number(1)))))
            weight = Op("least", (Number(one), share))
        having = Op(">", (number, Number(bounding.rows)))
    items = (*keep(rows.units), ("weight", weight))
    having = None if rows.strict else having
    return Select(Alias(rows.query, "r"), items, group=rows.units, having=having)


def _sizes(bounding: Bounding, grids: Grids, rows: UnitRows) -> list[tuple[Term, int]]:
    """What each total sums of a unit, with every value as if it were positive, and its limit."""
    assert bounding.rows is not None
    return [
        (
            zero_if_none(Fold("sum", Op("abs", (value.term,)), where)),
            int(bounding.rows * grid.reach),
        )
        for value, where, grid in zip(rows.values, rows.wheres, grids, strict=True)
        if value is not None and grid is not None
    ]


def zero_if_none(term: Term) -> Term:
    """A sum, which is zero where there is nothing to add."""
    return Op("coalesce", (term, ZERO))


def multiply(term: Term, number: int) -> Term:
    """A term so many times."""
    return term if number == 1 else Op("*", (term, Number(number)))
