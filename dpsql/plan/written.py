"""The statement of a measurement whose bounding and noise are chosen."""

from __future__ import annotations

from dpsql.catalog.statistic import Total
from dpsql.plan.grid import Grid, grid
from dpsql.plan.priced import PricedMeasurement
from dpsql.plan.statement import statement


def statement_of(part: PricedMeasurement) -> str:
    """What the engine runs."""
    return statement(part.measurement, part.bounding, grids_of(part), part.reading)


def grids_of(part: PricedMeasurement) -> tuple[Grid | None, ...]:
    """The grid of each total, as fine as its noise is."""
    return tuple(
        grid(s, grid(s).shift - n.shift) if isinstance(s, Total) else None
        for s, n in zip(part.measurement.statistics, part.noised, strict=True)
    )
