"""Outputs that are columns of a released table, or sums and products of these, without an engine.

Most such sums and products come from sums beside a count (``plan.lower.centre_sums``). This code
and an engine compute with the same doubles in the same order, so they give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from dpsql.ir.expressions import Call, Column, Expression, Literal, alias, substitute
from dpsql.ir.relations import Project, Relation, Stored
from dpsql.policy.types import Kind

_COMPUTED = {"add": pc.add, "multiply": pc.multiply}


def pick_columns(
    relation: Relation, columns: Iterable[Column], tables: Mapping[str, pa.Table]
) -> pa.Table | None:
    """The output columns in order, named by position; None if an engine must compute them.

    The rows are those of the stored table, in its order, as the engine would return them.
    """
    wanted: list[Expression] = list(columns)
    while isinstance(relation, Project):
        values = dict(zip((f.number for f in relation.fields), relation.values, strict=True))
        wanted = [_in_terms_of(value, values) for value in wanted]
        relation = relation.input
    if not isinstance(relation, Stored) or relation.given or not wanted:
        return None
    table = tables[relation.name]
    known = {f.number: table.column(alias(f)) for f in relation.fields}
    arrays = [_value(value, known) for value in wanted]
    if not all(isinstance(array, pa.ChunkedArray) for array in arrays):
        return None
    return pa.Table.from_arrays(arrays, names=[f"o{i}" for i in range(len(arrays))])


def _in_terms_of(value: Expression, values: Mapping[int, Expression]) -> Expression:
    """The expression with its columns replaced by the expressions that define them."""
    return substitute(value, lambda part: values[part.number] if isinstance(part, Column) else None)


def _value(value: Expression, known: Mapping[int, pa.ChunkedArray]) -> pa.ChunkedArray | pa.Scalar:
    """A column, or finite doubles computed from columns and constants; None for anything else."""
    match value:
        case Column(number=number):
            return known[number]
        case Literal(value=Fraction() as number, shape=shape) if shape.kind is Kind.DOUBLE:
            return pa.scalar(float(number), pa.float64())
        case Call(function="add" | "multiply" as function, args=args, shape=shape) if (
            shape.kind is Kind.DOUBLE
        ):
            sides = [_value(arg, known) for arg in args]
            if any(side is None for side in sides):
                return None
            doubles = (side.cast(pa.float64(), safe=False) for side in sides)
            found = _COMPUTED[function](*doubles)
            return found if pc.all(pc.is_finite(found)).as_py() is not False else None
        case _:
            return None
