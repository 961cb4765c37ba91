"""The contribution of a unit to a group where an aggregate names ``contribution_bounds_per_group``.

Claim: with a cap, the contribution of one unit to a group lies between ``cap_ends``, or is absent.
Assumes: the statement clamps each unit's number, sum or mean in a group by ``clamp``.
Argument: the strategy alone already keeps the contribution between the ends of ``_natural``.
Clamping this interval to the cap gives the interval between its clamped ends.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.bound.grid import Grid
from dpsql.bound.sensitivity import Strategy
from dpsql.catalog.statistic import Rows, Total
from dpsql.ir.statements import CaseWhen, Number, Op, Term


def clamp(term: Term, statistic: Rows | Total, at: Grid | None, bounding: Strategy) -> Term:
    """The contribution of a unit to a group, clamped to its cap; NULL if the unit has no value."""
    low, high = cap_ends(statistic, at, bounding)
    inside = Op("least", (Op("greatest", (term, Number(low))), Number(high)))
    return CaseWhen(((Op("is not null", (term,)), inside),))


def cap_ends(statistic: Rows | Total, at: Grid | None, bounding: Strategy) -> tuple[int, int]:
    """The least and the greatest contribution of a unit to a group that it is in, in steps.

    >>> from dpsql.bound.unit_totals import UnitTotals
    >>> cap_ends(Rows(cap=(Fraction(0), Fraction(5))), None, UnitTotals(per_group=3))
    (0, 3)
    >>> cap_ends(Rows(cap=(Fraction(4), Fraction(5))), None, UnitTotals(per_group=3))
    (4, 4)
    """
    assert statistic.cap is not None
    if isinstance(statistic, Total):
        assert at is not None
        step, centre = Fraction(2) ** at.shift, Fraction(at.centre)
    else:
        step, centre = Fraction(1 << bounding.bits), Fraction(0)
    low = math.floor(statistic.cap[0] * step - centre)
    high = math.ceil(statistic.cap[1] * step - centre)
    least, most = _natural(statistic, at, bounding)
    return min(max(least, low), high), min(max(most, low), high)


def reach(statistic: Rows | Total, at: Grid | None, bounding: Strategy) -> int:
    """The most by which a unit moves the value of a group, in steps."""
    low, high = cap_ends(statistic, at, bounding)
    return max(abs(low), abs(high), 1)


def _natural(statistic: Rows | Total, at: Grid | None, bounding: Strategy) -> tuple[int, int]:
    """The ends of a unit's number, sum or mean in a group under the strategy alone."""
    most = bounding.rows_in_group
    if isinstance(statistic, Rows):
        return 0, most << bounding.bits
    assert at is not None
    low, high = at.low - at.centre, at.high - at.centre
    return (low, high) if statistic.averaged else (min(0, low) * most, max(0, high) * most)
