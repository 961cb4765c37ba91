"""SUM(x)."""

from __future__ import annotations

from dpsql.catalog.statistic import Lowered, Total
from dpsql.policy.types import Kind
from dpsql.sql.domain import numbers
from dpsql.sql.expressions import Aggregated
from dpsql.sql.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """The total of the clamped values; empty groups have 0, not NULL, before noise."""
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    assert low is not None
    assert high is not None, "checks.bounded_values lets no other pass"
    whole = value.shape.kind is Kind.INTEGER
    cap = None if call.bounds is None else call.bounds.group
    total = Total(value, low, high, whole=whole, where=call.where, cap=cap)
    return Lowered((total,), lambda columns: columns[0])
