"""Outputs that are columns of a released table as they stand: no engine is asked for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from dpsql.sql.expressions import Column
from dpsql.sql.relations import Project, Relation, Stored
from dpsql.sql.render import alias


def picked(
    relation: Relation, columns: Iterable[Column], tables: Mapping[str, pa.Table]
) -> pa.Table | None:
    """The output columns in order, named by position; None where anything must be computed.

    The rows are those of the stored table, in its order, which is what the engine would return.
    """
    wanted = list(columns)
    while isinstance(relation, Project):
        values = dict(zip((f.number for f in relation.fields), relation.values, strict=True))
        found = [values[column.number] for column in wanted]
        wanted = [value for value in found if isinstance(value, Column)]
        if len(wanted) < len(found):
            return None
        relation = relation.input
    if not isinstance(relation, Stored) or relation.given or not wanted:
        return None
    table = tables[relation.name]
    names = {f.number: alias(f) for f in relation.fields}
    arrays = [table.column(names[column.number]) for column in wanted]
    return pa.Table.from_arrays(arrays, names=[f"o{i}" for i in range(len(arrays))])
