"""Row weights: each row of a unit weighs ``min(1, rows / rows of the unit)``.

The statement adds up all rows as if each weighed one, and subtracts the excess of units above the
limit. So only the few rows of these units are joined with their weights. Whether there are such
units would be visible in the time, so under strict timing every row is weighted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from dpsql.bound.cuts import Cut, LighterRows, SmallerSums
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.bound.sensitivity import WEIGHT_BITS, SameForAll, Sensitivity, is_of_units
from dpsql.catalog.statistic import Statistic, Total
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
from dpsql.plan.nodes import Cells, Measurement

WEIGHT = Name("weight")
ZERO = Number(0)


class Weights(Protocol):
    """The weights of the rows of a unit: at most ``rows`` in all, in steps of ``2**-bits``.

    Where ``valued``, a row does not count as one but by its value, as a share of the farthest end
    of the range. Then a unit may be worth ``rows`` rows at that end, in the sum where it is worth
    most.
    """

    @property
    def rows(self) -> int | Fraction: ...

    @property
    def bits(self) -> int: ...

    @property
    def valued(self) -> bool: ...


class KeepsGroups(Protocol):
    """A strategy that keeps at most ``groups`` groups of a unit.

    Where ``limit`` is false, no unit has more groups.
    """

    @property
    def groups(self) -> int: ...

    @property
    def limit(self) -> bool: ...

    @property
    def weights(self) -> Weights | None: ...


@dataclass(frozen=True, slots=True)
class RowWeights(SameForAll):
    """A unit may have any number of rows in any groups; they weigh at most ``rows`` in all.

    Claim: a unit's rows weigh at most ``rows`` in all, in steps of ``2**-bits``. Where they are
        ``valued``, their contribution to each sum is at most ``rows`` times the farthest end of its
        range.
    Assumes: rows are the same in each place that reads them.
    Argument: all rows of a unit have the same weight. A weight is rounded down, and a weighted
        value is rounded toward zero. A valued weight is the least, over all totals, of min(1, limit
        / the sum of ``|value|``). The limit of a total is ``rows`` times the farthest end of its
        range.
    """

    rows: int | Fraction
    groups: int
    bits: int = WEIGHT_BITS
    valued: bool = False
    size: int = 1
    name: ClassVar[str] = "row weights"
    reads_units: ClassVar[bool] = True
    most_read: ClassVar[int | None] = None

    @property
    def bin_bits(self) -> int:
        """Each row counts by its weight."""
        return self.bits

    @property
    def rows_in_group(self) -> int:
        """All of its rows may be in one group."""
        return int(self.rows)

    @property
    def counts(self) -> Sensitivity:
        """The sum of the weights. All may be in one group, so it also bounds the Euclidean norm."""
        return weighed_counts(self)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The weights of units with more rows."""
        return (lighter(self),)

    def touched(self, cells: Cells | None) -> int:
        """All groups: weights scale rows down, and leave out none.

        >>> RowWeights(rows=5, groups=5).touched(Cells("", 64))
        64
        """
        assert cells is not None, "without public groups, what a unit has in each is limited"
        return cells.count

    def bounds(self, statistic: Statistic) -> bool:
        """Sums over rows; where the weights are valued, only sums of values."""
        return not is_of_units(statistic) and (isinstance(statistic, Total) or not self.valued)

    def keeps_all(self, most: int) -> bool:
        """A unit with no more rows than the limit keeps full weights, unless they are valued."""
        return not self.valued and self.rows >= most

    def apply(self, measurement: Measurement, grids: Grids, rows: UnitRows) -> Query:
        """The weighted sums of each group."""
        if rows.strict:
            return _sum_weighted(measurement, self, grids, rows)
        whole = sum_rows(measurement, self.bits, rows)
        return subtract_excess(whole, measurement, self, grids, rows)


def lighter(weights: Weights) -> Cut:
    """What weights may leave out of an answer."""
    return SmallerSums(weights.rows) if weights.valued else LighterRows(weights.rows)


def weighed_counts(weights: Weights) -> Sensitivity:
    """How far the rows of a unit with these weights move numbers of rows.

    Argument: weights add up to at most ``rows``, and products with them are rounded toward zero. So
        the L1 norm of the contribution, and hence its L2 norm, is at most ``rows``. Valued rows add
        up to at most their limit in absolute value, over all groups, after rounding toward zero.
    """
    return Sensitivity(Fraction(weights.rows), Fraction(weights.rows) ** 2)


def sum_rows(measurement: Measurement, bits: int, rows: UnitRows) -> Query:
    """The sums of each group where every row weighs one; counts are in the steps of weights."""
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        if isinstance(statistic, Total):
            items.append((f"p{i}", rows.value(i).total(rows.wheres[i])))
        else:
            items.append((f"p{i}", multiply(Fold("count", where=rows.wheres[i]), 1 << bits)))
    return Select(Alias(rows.query, "r"), tuple(items), group=rows.keys)


def subtract_excess(
    whole: Query, measurement: Measurement, weights: Weights, grids: Grids, rows: UnitRows
) -> Query:
    """The sums minus the excess of units above the limit; ``rows`` include all of these units."""
    one = Number(1 << weights.bits)
    excess, total = [*keep(rows.keys)], [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        over: Term = Op("-", (one, WEIGHT))
        if isinstance(statistic, Total):
            value = rows.value(i).term
            over = Op("-", (value, apply_weight(value, weights.bits)))
        excess.append((f"p{i}", Op("negative", (zero_if_none(Fold("sum", over, rows.wheres[i])),))))
        total.append((f"p{i}", zero_if_none(Fold("sum", Name(f"p{i}")))))
    joined = with_weights(weights, grids, rows)
    less = Select(joined, tuple(excess), group=rows.keys)
    return Select(Alias(UnionAll((whole, less)), "s"), tuple(total), group=rows.keys)


def _sum_weighted(
    measurement: Measurement, weights: Weights, grids: Grids, rows: UnitRows
) -> Query:
    """The sums of each group, each row with its own weight."""
    items = [*keep(rows.keys)]
    for i, statistic in enumerate(measurement.statistics):
        total = isinstance(statistic, Total)
        value = apply_weight(rows.value(i).term, weights.bits) if total else WEIGHT
        items.append((f"p{i}", zero_if_none(Fold("sum", value, rows.wheres[i]))))
    return Select(with_weights(weights, grids, rows), tuple(items), group=rows.keys)


def apply_weight(value: Term, bits: int, weight: Term = WEIGHT) -> Term:
    """A value times the weight of its row, rounded toward zero."""
    return Op("//", (Op("*", (value, weight)), Number(1 << bits)))


def with_weights(
    weights: Weights, grids: Grids, rows: UnitRows, *, all_rows: bool = False
) -> JoinUsing:
    """Rows of units above the limit with their weights; with ``all_rows``, rows of all units."""
    weighed = Alias(weights_of_units(weights, grids, rows), "w")
    return JoinUsing("left" if all_rows else "inner", Alias(rows.query, "r"), weighed, rows.units)


def weights_of_units(weights: Weights, grids: Grids, rows: UnitRows) -> Query:
    """The weight of a row of each unit above the limit; under strict timing, of each unit."""
    number, one = rows.number, 1 << weights.bits
    having: Term | None
    if weights.valued:
        sizes = _sizes(weights, grids, rows)
        shares = [Op("//", (Number(m * one), Op("greatest", (s, Number(1))))) for s, m in sizes]
        weight: Term = Cast(Op("least", (Number(one), *shares)), "bigint")
        above = tuple(Op(">", (size, Number(most))) for size, most in sizes)
        having = above[0] if len(above) == 1 else Op("or", above)
    else:
        assert isinstance(weights.rows, int)
        most = Number(weights.rows * one)
        weight = Op("//", (most, number))
        if rows.strict:
            share = Op("//", (most, Op("greatest", (number, Number(1)))))
            weight = Op("least", (Number(one), share))
        having = Op(">", (number, Number(weights.rows)))
    items = (*keep(rows.units), ("weight", weight))
    having = None if rows.strict else having
    return Select(Alias(rows.query, "r"), items, group=rows.units, having=having)


def _sizes(weights: Weights, grids: Grids, rows: UnitRows) -> list[tuple[Term, int]]:
    """For each total, the sum of absolute values of a unit, and its limit."""
    return [
        (
            zero_if_none(Fold("sum", Op("abs", (value.term,)), where)),
            int(weights.rows * grid.reach),
        )
        for value, where, grid in zip(rows.values, rows.wheres, grids, strict=True)
        if value is not None and grid is not None
    ]


def zero_if_none(term: Term) -> Term:
    """A sum that is zero, not NULL, where there is nothing to add."""
    return Op("coalesce", (term, ZERO))


def multiply(term: Term, number: int) -> Term:
    """A term times a constant."""
    return term if number == 1 else Op("*", (term, Number(number)))
