"""What a unit may add to a group where an aggregate names ``contribution_bounds_per_group``.

Claim: with a cap, what one unit adds to a group lies between ``ends``, or is nothing at all.
Assumes: the statement clamps each unit's number, sum or mean of a group to ``ends``.
Argument: the stages of the bounding already hold it between ``_natural`` ends; clamping an
interval to the cap gives the interval between its clamped ends.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.bound.bounding import Bounding
from dpsql.bound.grid import Grid
from dpsql.catalog.statistic import Rows, Total


def ends(statistic: Rows | Total, at: Grid | None, bounding: Bounding) -> tuple[int, int]:
    """The least and the most that a unit adds to a group that it is in, in steps.

    >>> ends(Rows(cap=(Fraction(0), Fraction(5))), None, Bounding(grouped=True, per_group=3))
    (0, 3)
    >>> ends(Rows(cap=(Fraction(4), Fraction(5))), None, Bounding(grouped=True, per_group=3))
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


def reach(statistic: Rows | Total, at: Grid | None, bounding: Bounding) -> int:
    """The most that a unit moves a group, in steps."""
    low, high = ends(statistic, at, bounding)
    return max(abs(low), abs(high), 1)


def _natural(statistic: Rows | Total, at: Grid | None, bounding: Bounding) -> tuple[int, int]:
    """What the bounding alone leaves of a unit's number, sum or mean of a group."""
    rows = bounding.rows if bounding.per_group is None else bounding.per_group
    most = 1 if rows is None else int(rows)  # a fraction only where nothing is capped
    if isinstance(statistic, Rows):
        return 0, most << bounding.bits
    assert at is not None
    low, high = at.low - at.centre, at.high - at.centre
    return (low, high) if statistic.averaged else (min(0, low) * most, max(0, high) * most)
