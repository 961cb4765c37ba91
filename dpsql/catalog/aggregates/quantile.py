"""MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC and their like: a value by its rank.

Values between two rows are not averaged: the continuous forms differ from the discrete ones in
type only.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.aggregates.mode import listed
from dpsql.catalog.statistic import Lowered, Quantile
from dpsql.sql.expressions import Aggregated
from dpsql.sql.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """The quantile at the fraction in ``option``."""
    return Lowered((ranked(call, Fraction(call.option)),), lambda columns: columns[0])


def ranked(call: Aggregated, fraction: Fraction, *, extreme: bool = False) -> Quantile:
    """The value of that rank: within a range, or among listed texts or truth values."""
    value = call.args[0]
    domain, kind, where = value.shape.domain, call.shape.kind, call.where
    if not (kind.numeric or kind.temporal):
        members = listed(value.shape)
        assert members, "checks.known_aggregates lets no other pass"
        return Quantile(value, members[0], members[-1], fraction, extreme, kind, where, members)
    assert domain.low is not None
    assert domain.high is not None, "checks.bounded_values lets no other pass"
    return Quantile(value, domain.low, domain.high, fraction, extreme, kind, where)
