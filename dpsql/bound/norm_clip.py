"""Norm clip: what a unit has is scaled so that its counts over all groups have a bounded norm.

Claim: the Euclidean norm of what a unit adds to all counts is at most ``norm``, in steps of
    ``2**-bits``; a sum in a group is at most the count there times the farthest end of the range.
Argument: all groups of a unit get the same factor, ``norm`` over the norm of its counts, or one if that
    is less. It is rounded down to the grid of weights, so that rounding never adds to the norm.
"""

from __future__ import annotations

from dpsql.bound.bounding import Bounding
from dpsql.bound.by_unit import by_unit, columns, sum_units
from dpsql.bound.rows import Grids, UnitRows, keep
from dpsql.ir.statements import (
    Alias,
    CaseWhen,
    Cast,
    Fold,
    Name,
    Number,
    Op,
    Over,
    Query,
    Select,
    Term,
)
from dpsql.plan.nodes import Measurement


def apply(measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows) -> Query:
    """The sums of what units add, scaled."""
    groups = by_unit(measurement, bounding, rows)
    wide = Op("*", (Cast(Name("n"), "hugeint"), Name("n")))
    squares = Over(Fold("sum", wide), tuple(map(Name, rows.units)))
    items = (*keep(tuple(columns(groups))), ("factor", factor(bounding, squares, bounding.bits)))
    return sum_units(measurement, bounding, grids, rows, Select(Alias(groups, "l"), items))


def factor(bounding: Bounding, squares: Term, bits: int) -> Term:
    """What brings a norm with these ``squares`` to at most ``norm``, in steps of ``2**-bits``."""
    assert bounding.norm is not None
    one = 1 << bits
    share = Op("/", (Number(int(bounding.norm * one)), Op("sqrt", (Cast(squares, "double"),))))
    inside = Op("greatest", (Number(1), Op("least", (Number(one), Op("floor", (share,))))))
    less = Op("-", (Cast(inside, "bigint"), Number(1)))
    fits = Op("<=", (squares, Number(int(bounding.norm**2))))
    return CaseWhen(((fits, Number(one)),), less)
