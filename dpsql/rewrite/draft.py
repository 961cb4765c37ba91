"""A statement in the making: the rows that a strategy reads, which rules rewrite before it does."""

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
"""A query of the statement: a name that nobody gives to a table of a database."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The rows of a statement, or of the part of it that is for one ``statistic`` alone.

    Where a statement reads rows more than once, they have the ``name``. ``whole`` says that this draft
    is all of the statement.
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
        """The same, of the rows of another relation; those count where ``kept`` is true."""
        rows = _rows(self.measurement, self.bounding, self.grids, self.statistic, relation, kept)
        return replace(self, rows=rows)

    def over(self, relation: Relation) -> Draft:
        """The same columns of the same rows, read in another way."""
        assert isinstance(self.rows.query, Read), "rows are not rewritten yet"
        query = replace(self.rows.query, relation=relation)
        return replace(self, rows=replace(self.rows, query=query, relation=relation))


def draft(
    measurement: Measurement, bounding: Bounding, grids: Grids, reading: Reading | None = None,
    statistic: Apart | None = None, name: str = ROWS, *, whole: bool = True,
) -> Draft:  # fmt: skip
    """The rows as the measurement has them."""
    rows = _rows(measurement, bounding, grids, statistic, measurement.input)
    return Draft(measurement, bounding, grids, reading, rows, statistic, name, whole)


def _rows(
    measurement: Measurement, bounding: Bounding, grids: Grids, statistic: Apart | None,
    relation: Relation, kept: Column | None = None,
) -> UnitRows:  # fmt: skip
    """Rows with the columns that the strategy needs, their units if it looks at these."""
    units = None if bounding.reads_units else ()
    others = columns_of(statistic, measurement, kept)
    return read_rows(measurement, relation, grids, kept, units, others)


def columns_of(
    statistic: Apart | None, measurement: Measurement, kept: Column | None
) -> Items | None:
    """What the part for a statistic needs of each row, beside unit and keys; None for sums."""
    match statistic:
        case None:
            return None
        case Values():
            return distinct_values.values_of(statistic, kept)
        case _:
            return (("b", bins.bin_in(statistic, measurement.cells, kept)),)


def every_group(measurement: Measurement, sums: Query) -> Query:
    """Every public group in order, with zeros where there are no rows; all there are, if none is public."""
    if measurement.cells is None or not measurement.keys:
        return sums
    numbers = tuple(f"p{i}" for i in range(len(measurement.statistics)))
    return EveryGroup(measurement.cells.groups, sums, numbers)
