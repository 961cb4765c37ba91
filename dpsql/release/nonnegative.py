"""Counts raised to at least zero, if the session asks for it (``SET dpsql.nonnegative = on``).

Claim: this costs nothing, and moves no number away from its exact value.
Assumes: the plan tells which columns are counts.
Argument: the result is a function of released numbers and the plan. An exact count is not negative,
    so replacing a negative number by zero lowers its error, in every cell. (Small counts are then a
    little too high on average. So this is done only if asked for, and only to shown numbers: sums,
    conditions and means of counts are computed from the numbers as they were released.)
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dpsql.catalog.statistic import Rows, Units, Values
from dpsql.ir.expressions import Column, Expression
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Sort,
    Stored,
    Union,
    Windowed,
    inputs,
)
from dpsql.price.priced import PricedPlan
from dpsql.release.rows import Release


def nonnegative(release: Release, priced: PricedPlan) -> Release:
    """The answer with each number of rows, units or values, and its interval, at least zero."""
    counted = {
        column.number
        for measurement in priced.plan.measurements
        for column, statistic in zip(measurement.columns, measurement.statistics, strict=True)
        if isinstance(statistic, Rows | Units | Values)
    }
    table, intervals = release.table, dict(release.intervals)
    for i, column in enumerate(priced.plan.columns):
        if not _is_count(priced.plan.output, column, counted):
            continue
        table = table.set_column(i, table.column_names[i], _raised(table.column(i)))
        if i in intervals:
            low, high = intervals[i]
            intervals[i] = _raised(low), _raised(high)
    return replace(release, table=table, intervals=intervals)


def _raised(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Negative numbers replaced by zero; NULL stays NULL."""
    return pc.max_element_wise(values, pa.scalar(0, values.type), skip_nulls=False)


def _is_count(relation: Relation, value: Expression, counted: set[int]) -> bool:
    """Whether a column is a released count, or a sum of released counts."""
    if not isinstance(value, Column):
        return False
    place = next((i for i, f in enumerate(relation.fields) if f.number == value.number), None)
    match relation:
        case Stored():
            return value.number in counted
        case Project(values=values):
            return place is not None and _is_count(relation.input, values[place], counted)
        case Aggregate(keys=keys, calls=calls):
            call = None if place is None else (*(None for _ in keys), *calls)[place]
            if call is None or call.function != "sum":
                return False
            return _is_count(relation.input, call.args[0], counted)
        case Union():
            sides = relation.columns or tuple(below.fields for below in relation.inputs)
            return place is not None and all(
                _is_count(below, side[place], counted)
                for below, side in zip(relation.inputs, sides, strict=True)
            )
        case Limit() | Sort() | Filter() | Windowed() | Distinct() | Join():
            return any(_is_count(below, value, counted) for below in inputs(relation))
        case _:
            return False
