"""BOOL_AND, BOOL_OR and EVERY: the smallest or largest of 0 and 1 that some rows reach.

BOOL_OR is TRUE where about as many rows are TRUE as the choice may err, not where one is: a single
row is one unit's. BOOL_AND likewise is FALSE where that many are FALSE. EXPLAIN says how many; at
a large epsilon it is one. In a group of fewer than twice as many rows the majority decides.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import whole
from dpsql.catalog.statistic import Lowered, Quantile
from dpsql.policy.types import Kind
from dpsql.sql.domain import interval
from dpsql.sql.expressions import NULL, Aggregated, Case, Shape
from dpsql.sql.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """The extreme of TRUE as 1 and FALSE as 0."""
    truth = call.args[0]
    shape = Shape(Kind.INTEGER, truth.shape.nullable, interval(0, 1, integral=True))
    number = Case(((truth, whole(1)), (apply("not", truth), whole(0))), NULL, shape)
    extreme = Quantile(
        number, 0, 1, Fraction(call.function == "bool_or"),
        extreme=True, kind=Kind.INTEGER, where=call.where,
    )  # fmt: skip
    return Lowered((extreme,), lambda columns: apply("eq", columns[0], whole(1)))
