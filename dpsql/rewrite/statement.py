"""The statement of a measurement whose bounding and noise are chosen."""

from __future__ import annotations

from dataclasses import replace

from dpsql.bound import Bounding, bins, distinct_values
from dpsql.bound.grid import grid
from dpsql.bound.reading import Reading
from dpsql.bound.rows import Grids
from dpsql.catalog.statistic import Apart, Ranked, Total, Values
from dpsql.ir.alternatives import Statement
from dpsql.ir.statements import (
    Alias,
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
from dpsql.rewrite.draft import ROWS, Draft, columns_of, draft, every_group
from dpsql.rewrite.rules import apply_rules


def statement_of(part: PricedMeasurement) -> Statement:
    """The statement that the engine runs if nothing is known of the data, with its alternatives."""
    return _make(part.measurement, part.bounding, grids_of(part), part.reading)


def grids_of(part: PricedMeasurement) -> Grids:
    """The grid of each total, as fine as its noise; None for other statistics."""
    return tuple(
        grid(s, grid(s).shift - n.shift) if isinstance(s, Total) else None
        for s, n in zip(part.measurement.statistics, part.noised, strict=True)
    )


def _make(
    measurement: Measurement, bounding: Bounding, grids: Grids, reading: Reading | None
) -> Statement:
    """The statement of a measurement.

    Columns: keys ``k0..``, statistics ``p0..``, and ``units`` where groups must pass a threshold.
    Rows: the public groups in key order, or the groups that the data has. A statistic that is
    chosen by rank is a list of bins with their weights.
    """
    if any(isinstance(s, Apart) for s in measurement.statistics):
        return Statement(_join_others(measurement, bounding, grids, reading))
    found = apply_rules(draft(measurement, bounding, grids, reading))
    return Statement(_sums(found), found.alternatives)


def _sums(found: Draft) -> Query:
    """The query of numbers and totals."""
    sums = found.bounding.apply(found.measurement, found.grids, found.rows)
    return every_group(found.measurement, sums)


def _join_others(
    measurement: Measurement, bounding: Bounding, grids: Grids, reading: Reading | None
) -> Query:
    """All statistics: the queries of statistics that need their own are joined with the others.

    Equal queries are read once.
    """
    plain = tuple(i for i, s in enumerate(measurement.statistics) if not isinstance(s, Apart))
    first: Query | None = None
    if plain or measurement.cells is None:
        rest = replace(measurement, statistics=tuple(measurement.statistics[i] for i in plain))
        few = tuple(grids[i] for i in plain)
        first = _sums(apply_rules(draft(rest, bounding, few, reading, whole=False)))
    elif measurement.keys:
        first = measurement.cells.groups
    keys = tuple(f"k{i}" for i in range(len(measurement.keys)))
    known: list[Items | None] = []
    flag = None if measurement.lifted is None else measurement.lifted.kept
    source: From | None = None if first is None else Alias(first, "a")
    items: list[tuple[str, Term]] = [(key, Name(key, "a")) for key in keys]
    for i, statistic in enumerate(measurement.statistics):
        if not isinstance(statistic, Apart):
            items.append((f"p{i}", Name(f"p{plain.index(i)}", "a")))
            continue
        columns = columns_of(statistic, measurement, flag)
        if columns not in known:
            known.append(columns)
            name = f"h{len(known) - 1}"
            rows = draft(
                measurement, bounding, (), reading, statistic, f"{ROWS} of {name}", whole=False
            )
            found = Alias(_query_apart(apply_rules(rows)), name)
            source = found if source is None else JoinKeys(source, found, "a", keys)
        items.append((f"p{i}", _number(statistic, f"h{known.index(columns)}")))
    if measurement.cells is None:
        items.append(("units", Name("units", "a")))
    assert source is not None
    return Select(source, tuple(items), order=tuple(Name(key, "a") for key in keys))


def _query_apart(found: Draft) -> Query:
    """The query of a statistic that needs its own."""
    if isinstance(found.statistic, Values):
        values = columns_of(found.statistic, found.measurement, None) or ()
        names = tuple(name for name, _ in values)
        return distinct_values.apply(found.statistic, found.bounding, found.rows, names)
    return bins.apply(found.bounding, found.rows)


def _number(statistic: Ranked | Values, of: str) -> Term:
    if isinstance(statistic, Values):
        return Op("coalesce", (Name("n", of), Number(0)))
    return Name("bins", of)
