"""MIN and MAX: a value near the end that still some rows reach.

The last row itself is one unit's. What is answered is a row whose distance from the end is what
the choice may err (``Exponential.half_width``), and the median where a group has fewer than twice
as many rows; at a large epsilon this is the last row. DISTINCT changes nothing.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.aggregates.quantile import ranked
from dpsql.catalog.statistic import Lowered
from dpsql.sql.expressions import Aggregated
from dpsql.sql.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """The quantile at 0 or 1, less far out."""
    extreme = ranked(call, Fraction(call.function == "max"), extreme=True)
    return Lowered((extreme,), lambda columns: columns[0])
