"""The weight of the rows of each group in each bin: by it a value is chosen (quantiles, modes).

Claim: adding or removing one unit changes the weights of all bins of a group, in steps of
``2**-bin_bits``, by no more than the ``counts`` of its strategy can change in that group.
Assumes: the key identifies the rows of a unit, and weights and caps are those of the strategy.
Argument: the stages are those of the counts. A row weighs ``1``, or the weight of its unit. Where
counts are capped in a group or clipped by their norm, each row of the unit in the group gets the
same factor instead. It is rounded down, so that these rows weigh no more than the capped count.
"""

from __future__ import annotations

from typing import assert_never

from dpsql.bound import (
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    PreparedRows,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
)
from dpsql.bound.buckets import Buckets, bucket_ends, buckets
from dpsql.bound.first_groups import is_first
from dpsql.bound.norm_clip import factor
from dpsql.bound.row_weights import WEIGHT, multiply, with_weights
from dpsql.bound.rows import UnitRows, condition, keep
from dpsql.catalog.statistic import Mode, Ranked
from dpsql.ir.expressions import Column
from dpsql.ir.statements import (
    Alias,
    Bin,
    BinList,
    CaseWhen,
    Cast,
    Fold,
    From,
    Name,
    Number,
    Op,
    Over,
    Query,
    Rank,
    Select,
    Term,
    UnionAll,
)
from dpsql.plan.nodes import Cells

BIN, COUNT = Name("b"), Name("m")
_THERE = Op("is not null", (BIN,))


def bin_of(statistic: Ranked, cells: Cells | None) -> Bin:
    """The bin of a row's value."""
    at: Buckets = buckets(statistic, cells)
    low, high = (None, None) if at.members is not None else bucket_ends(statistic, at)
    wide = at.last is not None and at.last - int(at.origin) >= 1 << 62
    return Bin(
        statistic.value, at.kind, low, high, at.origin, at.width, at.count, at.members,
        isinstance(statistic, Mode), wide,
    )  # fmt: skip


def bin_in(statistic: Ranked, cells: Cells | None, flag: Column | None) -> Term:
    """The bin of a row that counts, else NULL."""
    where = condition(statistic, flag)
    found = bin_of(statistic, cells)
    return found if where is None else CaseWhen(((where, found),))


def apply(bounding: Bounding, rows: UnitRows) -> Query:
    """For each group, the non-empty bins in a column ``bins``; ``rows`` have their bin in ``b``."""
    assert not isinstance(bounding, VectorClip), "its factors are those of sums"
    match bounding:
        case OneRow() | PreparedRows():
            found = _sum_bins(rows, Alias(rows.query, "r"), Fold("count"))
        case RowWeights():
            found = _weigh_bins(bounding, rows)
        case UnitTotals() | GroupCaps() | WeightsAndGroups() | NormClip():
            found = _bins_of_units(bounding, rows)
        case _:
            assert_never(bounding)
    items = (*keep(rows.keys), ("bins", BinList(BIN, Name("n"))))
    return Select(Alias(found, "t"), items, group=rows.keys)


def _sum_bins(rows: UnitRows, source: From, weight: Term, where: tuple[Term, ...] = ()) -> Query:
    """The weight of the rows of each group and bin."""
    keys = (*rows.keys, "b")
    return Select(source, (*keep(keys), ("n", weight)), where, keys)


def _weigh_bins(bounding: RowWeights, rows: UnitRows) -> Query:
    """Weighted bins: the count of all rows, minus the excess of units above the limit.

    A bin that holds rows of such a unit is listed twice. Its two entries are added up where values
    are chosen, since grouping all bins once more took two fifths of the statement's time.
    """
    one = 1 << bounding.bits
    weighed = with_weights(bounding, (), rows)
    if rows.strict:
        return _sum_bins(rows, weighed, Fold("sum", WEIGHT))
    over = Op("negative", (Fold("sum", Op("-", (Number(one), WEIGHT))),))
    whole = _sum_bins(rows, Alias(rows.query, "r"), multiply(Fold("count"), one))
    return UnionAll((whole, _sum_bins(rows, weighed, over)))


ByUnit = UnitTotals | GroupCaps | WeightsAndGroups | NormClip
"""Strategies that first add up the rows of each unit in each group."""


def _bins_of_units(bounding: ByUnit, rows: UnitRows) -> Query:
    """Rows of each unit, group and bin, then the factor of the unit there, then the sums."""
    placed, few = _placed_bins(bounding, rows)
    names = (*rows.units, *rows.keys, "b", "m", *(("place",) if few is not None else ()))
    items = (*keep(names), ("factor", _factor(bounding, rows)))
    there = (_THERE,) if few is None or rows.strict else (_THERE, few)
    counted = Select(Alias(placed, "g"), items, there)
    sum_ = Fold("sum", Op("*", (COUNT, Name("factor"))), few if rows.strict else None)
    return _sum_bins(rows, Alias(counted, "f"), sum_)


def _placed_bins(bounding: ByUnit, rows: UnitRows) -> tuple[Query, Term | None]:
    """Rows of each unit, group and bin, and the condition on kept groups, where one is needed."""
    one = Number(1 << bounding.bin_bits)
    if isinstance(bounding, UnitTotals | NormClip):
        return _by_bin(rows, Alias(rows.query, "r"), one), None
    weights = bounding.weights
    if rows.split is not None:
        shown = keep((*rows.units, *rows.keys, "b", "m", "weight", "rows"))
        weight: Term = one if weights is None else Fold("min", WEIGHT)
        ranked = _by_bin(rows, rows.split.many, weight, rows.split.where, ranked=True)
        kept = Select(Alias(ranked, "p"), shown, (is_first(bounding),))
        return UnionAll((_by_bin(rows, rows.split.few, one), kept)), None
    source: From = Alias(rows.query, "r")
    weight = one
    if weights is not None:
        source = with_weights(weights, (), rows, all_rows=True)
        weight = Op("coalesce", (Fold("min", Name("weight", "w")), one))
    placed = _by_bin(rows, source, weight, ranked=bounding.limit)
    return placed, is_first(bounding) if bounding.limit else None


def _by_bin(
    rows: UnitRows, source: From, weight: Term, where: tuple[Term, ...] = (), *,
    ranked: bool = False,
) -> Query:  # fmt: skip
    """The rows of each unit per bin and per group, and the group's rank, if ``ranked``."""
    keys = (*rows.units, *rows.keys)
    having = None if rows.kept is None else Op(">", (rows.number, Number(0)))
    counted = (*keep((*keys, "b")), ("m", Fold("count")), ("weight", weight))
    per_unit = Select(source, counted, where, (*keys, "b"), having)
    within = Over(Fold("sum", COUNT, _THERE), tuple(map(Name, keys)))
    items = (*keep((*keys, "b", "m", "weight")), ("rows", within))
    if ranked:
        place = Rank(tuple(map(Name, rows.units)), rows.order, dense=True)
        items = (*items, ("place", place))
    return Select(Alias(per_unit, "l"), items)


def _factor(bounding: ByUnit, rows: UnitRows) -> Term:
    """The weight of one row of a unit in a group, in steps of ``2**-bin_bits``."""
    number = Name("rows")
    match bounding:
        case NormClip():
            wide = Op("*", (Cast(COUNT, "hugeint"), number))
            squares = Over(Fold("sum", wide), tuple(map(Name, rows.units)))
            return factor(bounding, squares, bounding.bin_bits)
        case UnitTotals(per_group=cap) | GroupCaps(per_group=cap):
            one = 1 << bounding.bin_bits
            fits = Op("<=", (number, Number(cap)))
            return CaseWhen(((fits, Number(one)),), Op("//", (Number(cap * one), number)))
        case WeightsAndGroups():
            return WEIGHT
        case _:
            assert_never(bounding)
