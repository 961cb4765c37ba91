"""The number of distinct values in a group, to which each unit contributes a bounded number.

Claim: adding or removing one unit changes the numbers of all groups by at most ``count_pairs`` in
sum.
Assumes: a salted hash of a row is the same wherever the statement computes it.
Argument: a unit keeps at most ``count_pairs`` pairs of group and value, the first in an order that
depends only on the salt and the unit's own rows. Without the unit, a group loses no more values
than the unit has pairs in it. A unit with no more than ``count_pairs`` rows has no more pairs than
that. All of its pairs are kept without an order, if rows are the same in each place that reads
them. A unit that has one row, or of which a prepared copy lets at most ``rows`` through, has no
more pairs either.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.bound.rows import UnitRows, condition, keep
from dpsql.bound.sensitivity import Strategy, count_pairs
from dpsql.catalog.statistic import Values
from dpsql.ir.expressions import Column
from dpsql.ir.statements import (
    Alias,
    CaseWhen,
    Draw,
    Fold,
    From,
    Items,
    KeyValue,
    Name,
    Number,
    Op,
    Query,
    Rank,
    Select,
    Term,
    UnionAll,
)

_FIRST = Name("v0")
_THERE = Op("is not null", (_FIRST,))


def values_of(statistic: Values, flag: Column | None) -> Items:
    """The values of a row as columns ``v0..``; the first is NULL where a row does not count.

    A single value is itself the first column, since NULL is not counted. Several values may each be
    NULL. They come after a first column that only says whether the row counts. ``flag`` says which
    rows count at all.
    """
    texts: tuple[Term, ...] = tuple(map(KeyValue, statistic.values))
    whole = texts if len(texts) == 1 else (Number(1), *texts)
    where = condition(statistic, flag)
    head = whole[0] if where is None else CaseWhen(((where, whole[0]),))
    return tuple((f"v{i}", term) for i, term in enumerate((head, *whole[1:])))


def apply(statistic: Values, bounding: Strategy, rows: UnitRows, values: tuple[str, ...]) -> Query:
    """The groups that have values, each with their number ``n``; ``rows`` have ``values``."""
    number = _number(values)
    keys, items = rows.keys, (*keep(rows.keys), ("n", number))
    if not bounding.reads_units:  # no unit has more pairs than the bound
        return Select(Alias(rows.query, "r"), items, group=keys)
    most = count_pairs(statistic, bounding)
    few = Op("<=", (Name("place"), Number(most)))
    if rows.strict:  # the engine would push a condition on counted values down to the scan
        last = (Op("is null", (_FIRST,)),)
        placed = _rank_pairs(rows, values, Alias(rows.query, "r"), last)
        counted = (*keep(keys), ("n", replace(number, where=few)))
        return Select(Alias(placed, "p"), counted, group=keys)
    shown = keep((*keys, *values))
    if rows.split is None:
        drawn = _rank_pairs(rows, values, Alias(rows.query, "r"), where=(_THERE,))
        first = Select(Alias(drawn, "q"), shown, (few,))
        return Select(Alias(first, "p"), items, group=keys)
    all_of_few = Select(rows.split.few, shown)
    drawn = _rank_pairs(rows, values, rows.split.many, where=(_THERE,))
    some_of_many = Select(Alias(drawn, "q"), shown, (few,))
    return Select(Alias(UnionAll((all_of_few, some_of_many)), "p"), items, group=keys)


def _number(values: tuple[str, ...]) -> Fold:
    """The number of distinct values."""
    value: Term = _FIRST
    if len(values) > 1:
        value = CaseWhen(((_THERE, Op("row", tuple(map(Name, values[1:])))),))
    return Fold("count", value, distinct=True)


def _rank_pairs(
    rows: UnitRows, values: tuple[str, ...], source: From, last: tuple[Term, ...] = (),
    where: tuple[Term, ...] = (),
) -> Query:  # fmt: skip
    """The pairs of group and value of each unit, with their rank in a random order."""
    names = (*rows.units, *rows.keys, *values)
    pairs = Select(source, keep(names), where, distinct=True)
    draw = Draw(tuple(map(Name, names)))
    order = (*last, draw, *map(Name, (*rows.keys, *values)))
    place = Rank(tuple(map(Name, rows.units)), order)
    return Select(Alias(pairs, "d"), (*keep(names), ("place", place)))
