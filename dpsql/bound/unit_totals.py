"""Unit totals: what a unit has is added up, then capped. It has one group, or there is just one.

Claim: a unit adds at most ``per_group`` rows to the one group that it is in, and to a sum at most so
    many times the farthest end of the range.
Assumes: no unit has rows in two groups (``groups`` is one and needs no limit).
Argument: all rows of a unit are in one row of ``by_unit``, which is capped before units are added up.
"""

from __future__ import annotations

from dpsql.bound.bounding import Bounding
from dpsql.bound.by_unit import by_unit, sum_units
from dpsql.bound.rows import Grids, UnitRows
from dpsql.ir.statements import Query
from dpsql.plan.nodes import Measurement


def apply(measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows) -> Query:
    """The sums of what units add, each capped."""
    return sum_units(measurement, bounding, grids, rows, by_unit(measurement, bounding, rows))
