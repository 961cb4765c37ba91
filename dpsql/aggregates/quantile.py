"""MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC and their like: a value by its rank.

Values between two rows are not averaged: the continuous forms differ from the discrete ones in
type only.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.statistic import Lowered, Quantile
from dpsql.sql.expressions import Aggregated
from dpsql.sql.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """The quantile at the fraction in ``option``."""
    value = call.args[0]
    domain = value.shape.domain
    assert domain.low is not None
    assert domain.high is not None, "checks.bounded_values lets no other pass"
    fraction = Fraction(call.option)
    quantile = Quantile(
        value, domain.low, domain.high, fraction, kind=call.shape.kind, where=call.where
    )
    return Lowered((quantile,), lambda columns: columns[0])
