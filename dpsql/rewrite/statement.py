"""The statement of a measurement whose bounding and noise are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from dpsql.bound import (
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    PreparedRows,
    RowWeights,
    UnitTotals,
    WeightsAndGroups,
    bins,
    distinct_values,
)
from dpsql.bound.grid import grid
from dpsql.bound.rank_prefilter import separable
from dpsql.bound.reading import Reading
from dpsql.bound.rows import Grids, UnitRows, unit_rows
from dpsql.bound.share_rows import is_costly
from dpsql.catalog.statistic import Apart, Ranked, Total, Values
from dpsql.ir.statements import (
    Alias,
    CommonTable,
    EveryGroup,
    From,
    Items,
    JoinKeys,
    Name,
    Number,
    Op,
    Query,
    Select,
    Term,
)
from dpsql.plan.nodes import Measurement
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.late_unit_join import join_units_last

ROWS = "rows of units"
"""A query of the statement: a name that nobody gives to a table of a database."""


def statement_of(part: PricedMeasurement) -> Query:
    """What the engine runs where nothing is known of the data."""
    return query_of(part.measurement, part.bounding, grids_of(part), part.reading)


def grids_of(part: PricedMeasurement) -> Grids:
    """The grid of each total, as fine as its noise is."""
    return tuple(
        grid(s, grid(s).shift - n.shift) if isinstance(s, Total) else None
        for s, n in zip(part.measurement.statistics, part.noised, strict=True)
    )


def query_of(
    measurement: Measurement, bounding: Bounding, grids: Grids, reading: Reading | None = None
) -> Query:
    """The query of a measurement.

    Columns: keys ``k0..``, statistics ``p0..``, and ``units`` where groups must pass a threshold.
    Rows: the public groups in key order, or whatever groups there are. Statistics that are chosen
    by rank have lists of bins and how much they weigh.
    """
    if not any(isinstance(s, Apart) for s in measurement.statistics):
        return _sums(measurement, bounding, grids, reading)
    return _join_others(measurement, bounding, grids, reading)


def _sums(
    measurement: Measurement, bounding: Bounding, grids: Grids, reading: Reading | None
) -> Query:
    """The query of numbers and totals."""
    rows = unit_rows(measurement, bounding, grids, reading)
    if bounding.reads_units:
        rows = share(measurement, bounding, join_units_last(measurement, grids, rows))
    sums = bounding.apply(measurement, grids, rows)
    return every_group(measurement, sums)


def _join_others(
    measurement: Measurement, bounding: Bounding, grids: Grids, reading: Reading | None
) -> Query:
    """All statistics, those that have a query of their own beside the others; equal ones are read once."""
    plain = tuple(i for i, s in enumerate(measurement.statistics) if not isinstance(s, Apart))
    first: Query | None = None
    if plain or measurement.cells is None:
        rest = replace(measurement, statistics=tuple(measurement.statistics[i] for i in plain))
        first = _sums(rest, bounding, tuple(grids[i] for i in plain), reading)
    elif measurement.keys:
        first = measurement.cells.groups
    keys = tuple(f"k{i}" for i in range(len(measurement.keys)))
    known: list[Items] = []
    source: From | None = None if first is None else Alias(first, "a")
    items: list[tuple[str, Term]] = [(key, Name(key, "a")) for key in keys]
    for i, statistic in enumerate(measurement.statistics):
        if not isinstance(statistic, Apart):
            items.append((f"p{i}", Name(f"p{plain.index(i)}", "a")))
            continue
        columns = _columns(statistic, measurement)
        if columns not in known:
            known.append(columns)
            name = f"h{len(known) - 1}"
            found = Alias(
                _query_apart(statistic, measurement, bounding, reading, columns, name), name
            )
            source = found if source is None else JoinKeys(source, found, "a", keys)
        items.append((f"p{i}", _number(statistic, f"h{known.index(columns)}")))
    if measurement.cells is None:
        items.append(("units", Name("units", "a")))
    assert source is not None
    return Select(source, tuple(items), order=tuple(Name(key, "a") for key in keys))


def _columns(statistic: Ranked | Values, measurement: Measurement) -> Items:
    """What the query of a statistic needs of each row, beside unit and keys."""
    flag = None if measurement.lifted is None else measurement.lifted.kept
    if isinstance(statistic, Values):
        return distinct_values.values_of(statistic, flag)
    return (("b", bins.bin_in(statistic, measurement.cells, flag)),)


def _query_apart(
    statistic: Ranked | Values, measurement: Measurement, bounding: Bounding,
    reading: Reading | None, columns: Items, name: str,
) -> Query:  # fmt: skip
    """The query of a statistic that has its own."""
    rows = unit_rows(measurement, bounding, (), reading, columns)
    shared = f"{ROWS} of {name}"
    if isinstance(statistic, Values):
        rows = distinct_values.share(bounding, rows, shared)
        return distinct_values.apply(statistic, bounding, rows, tuple(n for n, _ in columns))
    rows = bins.share(measurement, bounding, rows, shared)
    return bins.apply(measurement, bounding, rows)


def _number(statistic: Ranked | Values, of: str) -> Term:
    if isinstance(statistic, Values):
        return Op("coalesce", (Name("n", of), Number(0)))
    return Name("bins", of)


def share(measurement: Measurement, bounding: Bounding, rows: UnitRows) -> UnitRows:
    """The rows written once, where the statement reads them again; computed once where that costs less."""
    if not _reads_again(measurement, bounding, rows):
        return rows
    stored = not rows.strict and is_costly(rows.relation)
    return replace(rows, query=CommonTable(ROWS, rows.query, stored))


def _reads_again(measurement: Measurement, bounding: Bounding, rows: UnitRows) -> bool:
    """Whether the strategy's statement reads the rows more than once."""
    match bounding:
        case RowWeights() | WeightsAndGroups():
            return True
        case GroupCaps():
            return separable(measurement, bounding, rows)
        case OneRow() | PreparedRows() | UnitTotals() | NormClip():
            return False
        case _:
            assert_never(bounding)


def every_group(measurement: Measurement, sums: Query) -> Query:
    """Every public group in order, with zeros where there are no rows; all there are, if none is public."""
    if measurement.cells is None or not measurement.keys:
        return sums
    numbers = tuple(f"p{i}" for i in range(len(measurement.statistics)))
    return EveryGroup(measurement.cells.groups, sums, numbers)
