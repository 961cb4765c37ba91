"""SUM(x)."""

from __future__ import annotations

from dpsql.catalog.record import (
    EVERY_DIALECT,
    NUMBERS,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
)
from dpsql.catalog.shapes import sum_shape
from dpsql.catalog.statistic import Lowered, Total
from dpsql.ir.domain import numbers
from dpsql.ir.expressions import Aggregated
from dpsql.ir.relations import Private
from dpsql.policy.types import Kind


def lower(call: Aggregated, _: Private) -> Lowered:
    """The total of the clamped values. An empty group has 0 before noise, not NULL."""
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    assert low is not None
    assert high is not None, "checks.bounded_values lets no other pass"
    whole = value.shape.kind is Kind.INTEGER
    cap = None if call.bounds is None else call.bounds.group
    total = Total(value, low, high, whole=whole, where=call.where, cap=cap)
    return Lowered((total,), lambda columns: columns[0])


RECORDS = (
    AggregateRecord(
        name="sum",
        about="`SUM(x)`",
        nodes=(
            AggregateNode(
                name="Sum", spellings=(), arguments=("this",), form=Form.VALUES, output="sum",
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(1, 1),
        kinds=NUMBERS,
        shape=sum_shape,
        lower=lower,
        needs=Needs.BOUNDS,
        distinct=Distinct.REFUSED,
        strict_timing=True,
        row_bounds=True,
        group_bounds=True,
        per_unit=None,
        steady=Steady.OF_INTEGERS,
        chooses=False,
        windowed=True,
        correlated=True,
        gives_values=True,
        wider=True,
        examples=("SUM(x)", "SUM(n)"),
    ),
)  # fmt: skip
