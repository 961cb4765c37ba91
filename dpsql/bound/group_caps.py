"""Group caps: a unit keeps a few of its groups, and what it adds to each of them is capped.

Claim: a unit changes at most ``groups`` groups, its count in each by at most ``per_group``.
Argument: the groups that a unit keeps are the first in an order that only the salt and the unit's own
    rows decide. Where no limit is needed a unit cannot have more.
"""

from __future__ import annotations

from dpsql.bound.bounding import Bounding
from dpsql.bound.by_unit import sum_units
from dpsql.bound.first_groups import first_groups
from dpsql.bound.rows import Grids, UnitRows
from dpsql.ir.statements import Query
from dpsql.plan.nodes import Measurement


def apply(measurement: Measurement, bounding: Bounding, grids: Grids, rows: UnitRows) -> Query:
    """The sums of what units add to the groups that they keep."""
    groups, few = first_groups(measurement, bounding, grids, rows)
    return sum_units(measurement, bounding, grids, rows, groups, few)
