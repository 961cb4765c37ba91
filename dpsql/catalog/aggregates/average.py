"""AVG(x): a centred total over a count.

With centred values, one row changes the total by at most half the range, however far the values
are from 0. Under BigQuery's clause AVG is a mean over units: each unit counts with the mean of its
own values in the group.
"""

from __future__ import annotations

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import clamp, not_null, real, whole
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
from dpsql.catalog.shapes import mean_shape
from dpsql.catalog.statistic import Finish, Lowered, Rows, Total, Units
from dpsql.ir.domain import numbers
from dpsql.ir.expressions import Aggregated, Column, Expression
from dpsql.ir.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """``mid + total / max(1, count)``, clamped to the bounds."""
    value = call.args[0]
    low, high = numbers(value.shape.domain)
    assert low is not None
    assert high is not None, "checks.bounded_values lets no other pass"
    ends = None if call.bounds is None else call.bounds.group
    by_unit = call.averaged or ends is not None
    least, most = (
        (low, high) if ends is None else (min(max(e, ends[0]), ends[1]) for e in (low, high))
    )
    middle = (least + most) / 2

    def finish(columns: tuple[Column, ...]) -> Expression:
        total, count = columns
        mean = apply("divide", total, apply("greatest", count, whole(1)))
        return clamp(apply("add", real(middle), mean), least, most)

    there = not_null(value, call.where)
    if by_unit:
        total = Total(
            value, low, high, centre=middle, where=call.where, cap=(least, most), averaged=True
        )
        return _mean(total, Units(there), finish)
    return _mean(Total(value, low, high, centre=middle, where=call.where), Rows(there), finish)


def _mean(total: Total, count: Rows | Units, finish: Finish) -> Lowered:
    return Lowered((total, count), finish, (total, count))


RECORDS = (
    AggregateRecord(
        name="avg",
        about="`AVG(x)`",
        nodes=(
            AggregateNode(
                name="Avg", spellings=(), arguments=("this",), form=Form.VALUES, output="avg",
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(1, 1),
        kinds=NUMBERS,
        shape=mean_shape,
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
        examples=("AVG(x)", "AVG(n)"),
    ),
)  # fmt: skip
