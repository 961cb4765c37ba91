"""MIN and MAX: a value near the end that still some rows reach.

The last row itself is one unit's. What is answered is a row whose distance from the end is what
the choice may err (``Exponential.half_width``), and the median where a group has fewer than twice
as many rows; at a large epsilon this is the last row.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.statistic import Lowered, Quantile
from dpsql.sql.expressions import Aggregated
from dpsql.sql.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """The quantile at 0 or 1, less far out."""
    value = call.args[0]
    domain = value.shape.domain
    assert domain.low is not None
    assert domain.high is not None, "checks.bounded_values lets no other pass"
    fraction = Fraction(call.function == "max")
    extreme = Quantile(
        value, domain.low, domain.high, fraction,
        extreme=True, kind=call.shape.kind, where=call.where,
    )  # fmt: skip
    return Lowered((extreme,), lambda columns: columns[0])
