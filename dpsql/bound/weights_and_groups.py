"""Weights and groups: rows weigh less where a unit has many, and it keeps a few of its groups.

Claim: a unit changes at most ``groups`` groups, and its rows weigh at most ``rows`` in all of them.
Argument: weights are those of ``row_weights``, over all rows of the unit, so that those in the groups
    that it keeps weigh no more. Which groups these are is decided as in ``group_caps``.
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
