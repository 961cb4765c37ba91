"""What the groups of a unit are cut to: how many, how much in each, how long as a vector."""

from __future__ import annotations

from dpsql.catalog.statistic import Rows, Statistic, Total, Units
from dpsql.plan import caps
from dpsql.plan.bounding import Bounding
from dpsql.plan.grid import Grid
from dpsql.plan.nodes import Measurement
from dpsql.plan.shared import GROUPS, MANY
from dpsql.plan.stages import Source, listed, salted


def limited(bounding: Bounding, measurement: Measurement, rows: Source, per_unit: str) -> str:
    """The groups that units keep, where none that is as declared has too many.

    Places are drawn for those alone that have: a window over all groups of all units takes longer
    than all else (TPC-H's q17, 6 million of them: 4.8 s with it, 2.4 s so). Where more units are
    above the limit than below, this would be the slower way.
    """
    by = listed("u", rows.units)
    numbers = range(len(measurement.statistics))
    items = ", ".join(
        [by, *(f"k{i}" for i in range(len(rows.keys))), "n", *(f"s{i}" for i in numbers)]
    )
    many = f"SELECT {by} FROM {GROUPS} GROUP BY {by} HAVING count(*) > {bounding.groups}"
    place = f"row_number() OVER ({salted(rows.units, rows.keys)}) AS place"
    drawn = f"SELECT *, {place} FROM {GROUPS} AS l SEMI JOIN {MANY} AS m USING ({by})"
    return (
        f"WITH {GROUPS} AS MATERIALIZED ({per_unit}), {MANY} AS MATERIALIZED ({many})"
        f" SELECT {items} FROM {GROUPS} AS l ANTI JOIN {MANY} AS m USING ({by})"
        f" UNION ALL SELECT {items} FROM ({drawn}) AS d WHERE place <= {bounding.groups}"
    )


def clipped(per_unit: str, bounding: Bounding, units: tuple[str, ...]) -> str:
    """The factor that brings the norm of a unit's row counts to at most ``norm``.

    It is rounded down to the weight grid, so that rounding never adds to the norm.
    """
    assert bounding.norm is not None
    one = 1 << bounding.bits
    top = int(bounding.norm * one)
    squares = f"sum(CAST(n AS HUGEINT) * n) OVER (PARTITION BY {listed('u', units)})"
    scaled = f"floor({top} / sqrt(CAST({squares} AS DOUBLE)))"
    factor = f"CAST(greatest(1, least({one}, {scaled})) AS BIGINT) - 1"
    exact = f"CASE WHEN {squares} <= {int(bounding.norm**2)} THEN {one} ELSE {factor} END"
    return f"SELECT *, {exact} AS factor FROM ({per_unit}) AS l"


def capped(statistic: Statistic, bounding: Bounding, grid: Grid | None, i: int) -> str:
    """The sum over units of a capped contribution."""
    if isinstance(statistic, Units):
        return f"sum(s{i})"
    if isinstance(statistic, Rows | Total) and statistic.cap is not None:
        return f"sum({caps.clamped(f's{i}', statistic, grid, bounding)})"
    if bounding.norm is not None:
        scaled = f"s{i} * factor"
        if isinstance(statistic, Total):
            scaled = f"({scaled}) // {1 << bounding.bits}"
        return f"sum({scaled})"
    if bounding.per_group is None:
        return f"sum(s{i})"
    if isinstance(statistic, Rows):
        return f"sum(least(s{i}, {bounding.per_group}))"
    assert grid is not None
    low = min(0, (grid.low - grid.centre) * bounding.per_group)
    high = max(0, (grid.high - grid.centre) * bounding.per_group)
    return f"sum(least(greatest(s{i}, {low}), {high}))"
