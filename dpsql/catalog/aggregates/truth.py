"""BOOL_AND, BOOL_OR and EVERY: the MIN or MAX of conditions as 0 and 1.

As for every MIN and MAX, several rows must reach the result: a single row belongs to one unit.
BOOL_OR is TRUE where at least about as many rows are TRUE as the choice may be off in rank.
BOOL_AND is FALSE where that many rows are FALSE. EXPLAIN shows this number; at a large epsilon it
is 1. In a group with fewer than twice that many rows the majority decides.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import whole
from dpsql.catalog.record import (
    CONDITIONS,
    EVERY_DIALECT,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
)
from dpsql.catalog.shapes import truth_shape
from dpsql.catalog.statistic import Lowered, Quantile
from dpsql.ir.domain import interval
from dpsql.ir.expressions import NULL, Aggregated, Case, Shape
from dpsql.ir.relations import Private
from dpsql.policy.types import Kind


def lower(call: Aggregated, _: Private) -> Lowered:
    """The extreme quantile of the condition, with TRUE as 1 and FALSE as 0."""
    truth = call.args[0]
    shape = Shape(Kind.INTEGER, truth.shape.nullable, interval(0, 1, integral=True))
    number = Case(((truth, whole(1)), (apply("not", truth), whole(0))), NULL, shape)
    extreme = Quantile(
        number, 0, 1, Fraction(call.function == "bool_or"),
        extreme=True, kind=Kind.INTEGER, where=call.where,
    )  # fmt: skip
    return Lowered((extreme,), lambda columns: apply("eq", columns[0], whole(1)))


def _record(name: str, about: str, node: str, example: str) -> AggregateRecord:
    return AggregateRecord(
        name=name,
        about=about,
        nodes=(
            AggregateNode(
                name=node, spellings=(), arguments=("this",), form=Form.VALUES, output=name,
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(1, 1),
        kinds=CONDITIONS,
        shape=truth_shape,
        lower=lower,
        needs=Needs.NOTHING,
        distinct=Distinct.SAME,
        strict_timing=True,
        row_bounds=False,
        group_bounds=False,
        per_unit=None,
        steady=Steady.ALWAYS,
        chooses=False,
        windowed=False,
        correlated=False,
        gives_values=False,
        wider=False,
        examples=(example,),
    )  # fmt: skip


RECORDS = (
    _record(
        "bool_and",
        "`BOOL_AND(c)`, `EVERY(c)`: FALSE if some rows are FALSE (EXPLAIN says how many)",
        "LogicalAnd",
        "BOOL_AND(flag)",
    ),
    _record("bool_or", "`BOOL_OR(c)`: TRUE if some rows are TRUE", "LogicalOr", "BOOL_OR(x > 1)"),
)
