"""Converts between the service and the wire: columns with PostgreSQL's types, rows, notices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from dpsql.price.priced import PricedPlan
from dpsql.release.intervals import find_simulated_columns, widths
from dpsql.serve.pgwire import oids as types
from dpsql.serve.pgwire.asking import Answer
from dpsql.serve.pgwire.parameters import Value
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.service import Reply


def from_reply(reply: Reply) -> Answer:
    """The answer that carries a reply of the service."""
    columns = tuple(types.of_type(c.name, c.kind, c.type_name) for c in reply.columns)
    return Answer(columns, reply.table, reply.tag, notes=reply.notes)


def planned_columns(priced: PricedPlan, *, intervals: bool) -> tuple[WireColumn, ...]:
    """The columns of an answer, from its plan; ``dpsql.intervals`` adds two for each interval."""
    outputs = priced.plan.columns
    bounded: set[int] = set()
    if intervals and priced.parts:
        bounded = {*widths(priced, outputs), *(s.position for s in find_simulated_columns(priced))}
    found: list[WireColumn] = []
    for position, output in enumerate(outputs):
        found.append(types.of_type(output.name, output.shape.kind, output.shape.type_name))
        if position in bounded:
            found += [types.column(f"{output.name}_{w}", types.FLOAT8) for w in ("low", "high")]
    return tuple(found)


def with_notice(answer: Answer, notice: str) -> Answer:
    """The same rows with another notice. Rows that are encoded already are shared."""
    return replace(answer, notice=notice)


def empty_table(columns: Sequence[WireColumn]) -> pa.Table:
    """A table with these columns and no rows."""
    empty = [pa.array([], pa.string()) for _ in columns]
    return pa.Table.from_arrays(empty, names=[str(i) for i in range(len(columns))])


def exact_values(values: Sequence[Value]) -> list[Value]:
    """The values in the form that the service takes: decimals as fractions."""
    return [Fraction(v) if isinstance(v, Decimal) and v.is_finite() else v for v in values]
