"""Values on their way out: noised, selected, decoded, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from dpsql.policy.types import Kind
from dpsql.sql.expressions import Column
from dpsql.sql.render import alias

ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.NULL: pa.null(),
}
"""The type of every released column follows from the plan, never from the values."""


@dataclass(frozen=True, slots=True)
class NoisyRows:
    """One measurement's released table, named as the plan names it; rows in key order."""

    name: str
    table: pa.Table


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of an answer: what the client calls it and what it holds."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Release:
    """What a face may show. ``intervals`` has a lower and an upper column by position."""

    columns: tuple[OutputColumn, ...]
    table: pa.Table
    intervals: Mapping[int, tuple[pa.Array, pa.Array]] = field(default_factory=dict)


def schema(fields: tuple[Column, ...]) -> pa.Schema:
    """The arrow schema of released fields under their generated names."""
    return pa.schema([(alias(f), ARROW[f.shape.kind]) for f in fields])
