"""The draft of a statement: the rows that a strategy will read, which rules may rewrite first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.bound import Bounding, bins, distinct_values
from dpsql.bound.reading import Reading
from dpsql.bound.rows import Grids, UnitRows, read_rows
from dpsql.catalog.statistic import Apart, Values
from dpsql.ir.alternatives import Alternative
from dpsql.ir.expressions import Column
from dpsql.ir.relations import Relation
from dpsql.ir.statements import EveryGroup, Items, Query, Read
from dpsql.plan.nodes import Measurement

ROWS = "rows of units"
"""The name of a query within the statement. No table of a database has such a name."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The rows of a statement, or of its part for one ``statistic`` alone.

    ``name`` is the name of the rows where a statement reads them more than once. ``whole`` says
    that this draft is the whole statement.
    """

    measurement: Measurement
    bounding: Bounding
    grids: Grids
    reading: Reading | None
    rows: UnitRows
    statistic: Apart | None = None
    name: str = ROWS
    whole: bool = True
    alternatives: tuple[Alternative, ...] = ()

    def read(self, relation: Relation, kept: Column | None = None) -> Draft:
        """The draft over the rows of another relation. Only rows where ``kept`` is true count."""
        rows = _rows(self.measurement, self.bounding, self.grids, self.statistic, relation, kept)
        return replace(self, rows=rows)

    def over(self, relation: Relation) -> Draft:
        """The draft with the same columns of the same rows, read from another relation."""
        assert isinstance(self.rows.query, Read), "rows are not rewritten yet"
        query = replace(self.rows.query, relation=relation)
        return replace(self, rows=replace(self.rows, query=query, relation=relation))


def draft(
    measurement: Measurement, bounding: Bounding, grids: Grids, reading: Reading | None = None,
    statistic: Apart | None = None, name: str = ROWS, *, whole: bool = True,
) -> Draft:  # fmt: skip
    """The draft over the rows of the measurement, not rewritten yet."""
    rows = _rows(measurement, bounding, grids, statistic, measurement.input)
    return Draft(measurement, bounding, grids, reading, rows, statistic, name, whole)


def _rows(
    measurement: Measurement, bounding: Bounding, grids: Grids, statistic: Apart | None,
    relation: Relation, kept: Column | None = None,
) -> UnitRows:  # fmt: skip
    """Rows with the columns that the strategy needs, and with their units if it reads units."""
    units = None if bounding.reads_units else ()
    others = columns_of(statistic, measurement, kept)
    return read_rows(measurement, relation, grids, kept, units, others)


def columns_of(
    statistic: Apart | None, measurement: Measurement, kept: Column | None
) -> Items | None:
    """The columns that the part for a statistic needs beside unit and keys; None for sums."""
    match statistic:
        case None:
            return None
        case Values():
            return distinct_values.values_of(statistic, kept)
        case _:
            return (("b", bins.bin_in(statistic, measurement.cells, kept)),)


def every_group(measurement: Measurement, sums: Query) -> Query:
    """Every public group in order, with zeros for groups without rows.

    Where the groups are not public: the groups that the sums have.
    """
    if measurement.cells is None or not measurement.keys:
        return sums
    numbers = tuple(f"p{i}" for i in range(len(measurement.statistics)))
    return EveryGroup(measurement.cells.groups, sums, numbers)
