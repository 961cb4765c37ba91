"""A measurement as one engine statement. Only integers and public keys leave the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.aggregates.statistic import Apart, Rows, Statistic, Total, Units
from dpsql.plan import caps, histogram
from dpsql.plan.bounding import Bounding
from dpsql.plan.grid import Grid, clamped
from dpsql.plan.nodes import Measurement
from dpsql.plan.prepared import Reading
from dpsql.plan.stages import Source, group_by, listed, named, salted, source, weights
from dpsql.sql.blocks import Block
from dpsql.sql.render import expression


@dataclass(frozen=True, slots=True)
class _Row:
    """What each statistic needs of one row: a condition, or a clamped value.

    ``alike`` is the value before its centre is taken off: totals that agree in it are one sum.
    """

    wheres: tuple[str | None, ...]
    values: tuple[str | None, ...]
    alike: tuple[str | None, ...]
    centres: tuple[int, ...]

    def twin(self, i: int) -> int:
        """The first total of the same clamped values over the same rows."""
        pairs = list(zip(self.alike, self.wheres, strict=True))
        return pairs.index(pairs[i])


def statement(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...],
    reading: Reading | None = None,
) -> str:  # fmt: skip
    """The SQL of a measurement.

    Columns: keys ``k0..``, statistics ``p0..``, and ``units`` where groups must pass a threshold.
    Rows: the public groups in key order, or whatever groups there are. Statistics that are chosen
    by rank have lists of bins and how much they weigh.
    """
    statistics = measurement.statistics
    plain = [i for i, s in enumerate(statistics) if not isinstance(s, Apart)]
    if len(plain) == len(statistics):
        return _plain(measurement, bounding, grids, reading)
    rest = replace(measurement, statistics=tuple(statistics[i] for i in plain))
    beside = ""
    if plain or measurement.cells is None:
        beside = _plain(rest, bounding, tuple(grids[i] for i in plain), reading)
    elif measurement.keys:
        beside = measurement.cells.sql
    return histogram.joined(measurement, bounding, beside, reading)


def _plain(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...],
    reading: Reading | None,
) -> str:  # fmt: skip
    """The SQL of numbers and totals."""
    rows = source(measurement, bounding, reading)
    block, units, keys = rows.block, rows.units, rows.keys
    row = _row(measurement.statistics, grids, rows)
    if bounding.grouped:
        inner = _grouped(measurement, bounding, grids, block, units, keys, row)
    elif bounding.weighed:
        inner = _weighted(measurement, bounding, block, units, keys, row)
    else:
        inner = _direct(measurement, bounding, grids, block, keys, row)
    return inner if measurement.cells is None else _all_cells(measurement, inner)


def _row(statistics: tuple[Statistic, ...], grids: tuple[Grid | None, ...], rows: Source) -> _Row:
    block = rows.block
    wheres: list[str | None] = []
    values: list[str | None] = []
    alike: list[str | None] = []
    for statistic, grid in zip(statistics, grids, strict=True):
        where = statistic.where
        wheres.append(None if where is None else expression(where, block.items))
        if isinstance(statistic, Total):
            assert grid is not None
            text = expression(statistic.value, block.items)
            held = rows.steps(text, grid)
            if held is None:
                values.append(clamped(text, statistic, grid))
                alike.append(clamped(text, statistic, replace(grid, centre=0)))
            else:
                values.append(f"{held} - {grid.centre}" if grid.centre else held)
                alike.append(held)
        else:
            values.append(None)
            alike.append(None)
    centres = tuple(0 if grid is None else grid.centre for grid in grids)
    return _Row(tuple(wheres), tuple(values), tuple(alike), centres)


def _direct(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...], block: Block,
    keys: tuple[str, ...], row: _Row,
) -> str:  # fmt: skip
    """Few rows of a unit are there, or read: nothing to bound but what the aggregate itself caps."""
    items = named("k", keys)
    for i, statistic in enumerate(measurement.statistics):
        if isinstance(statistic, Rows | Total) and statistic.cap is not None:
            text = caps.clamped(_single(statistic, row, i), statistic, grids[i], bounding)
            items.append(f"coalesce(sum({text}), 0) AS p{i}")
        else:
            items.append(f"{_aggregate(statistic, row, i)} AS p{i}")
    if measurement.cells is None:
        items.append("count(*) AS units")
    return f"SELECT {', '.join(items)}{block.tail()}{group_by(len(keys))}"


def _single(statistic: Rows | Total, row: _Row, i: int) -> str:
    """What a unit's only row adds."""
    value = row.values[i] if isinstance(statistic, Total) else "1"
    otherwise = "NULL" if isinstance(statistic, Total) else "0"
    where = row.wheres[i]
    return (
        f"({value})" if where is None else f"(CASE WHEN {where} THEN {value} ELSE {otherwise} END)"
    )


def _aggregate(statistic: Statistic, row: _Row, i: int) -> str:
    where = row.wheres[i]
    kept = "" if where is None else f" FILTER (WHERE {where})"
    match statistic:
        case Rows() | Units():
            return f"count(*){kept}"
        case _:  # a total; others have statements of their own
            twin = row.twin(i)
            total = f"coalesce(sum({row.values[twin]}){kept}, 0)"
            moved = row.centres[twin] - row.centres[i]
            if moved == 0:
                return total
            return f"{total} + {moved} * CAST(count({row.values[twin]}){kept} AS HUGEINT)"


def _weighted(
    measurement: Measurement, bounding: Bounding, block: Block, units: tuple[str, ...],
    keys: tuple[str, ...], row: _Row,
) -> str:  # fmt: skip
    """Row weights, as exact totals less what units above the limit have too much.

    A row of such a unit weighs ``weight``, all others one; written this way, the rows of all
    others are added up without a join, and the join reads only the few units above the limit.
    """
    statistics = measurement.statistics
    one = 1 << bounding.bits
    direct = named("k", keys)
    excess = [f"k{i}" for i in range(len(keys))]
    total = list(excess)
    for i, statistic in enumerate(statistics):
        scale = "" if isinstance(statistic, Total) else f" * {one}"
        direct.append(f"{_aggregate(statistic, row, i)}{scale} AS p{i}")
        kept = "" if row.wheres[i] is None else f" FILTER (WHERE f{i})"
        over = f"v{i} - (v{i} * weight) // {one}" if scale == "" else f"{one} - weight"
        excess.append(f"-coalesce(sum({over}){kept}, 0) AS p{i}")
        total.append(f"coalesce(sum(p{i}), 0) AS p{i}")
    by = group_by(len(keys))
    heavy = f"({weights(bounding, block, units)}) AS w USING ({listed('u', units)})"
    return (
        f"SELECT {', '.join(total)} FROM (SELECT {', '.join(direct)}{block.tail()}{by}"
        f" UNION ALL SELECT {', '.join(excess)}"
        f" FROM ({_base(block, units, keys, row)}) AS b JOIN {heavy}{by}) AS s{by}"
    )


def _base(block: Block, units: tuple[str, ...], keys: tuple[str, ...], row: _Row) -> str:
    """Rows with unit, keys, conditions and clamped values."""
    items = [*named("u", units), *named("k", keys)]
    items += [f"{w} AS f{i}" for i, w in enumerate(row.wheres) if w is not None]
    items += [f"{v} AS v{i}" for i, v in enumerate(row.values) if v is not None]
    return f"SELECT {', '.join(items)}{block.tail()}"


def _grouped(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...], block: Block,
    units: tuple[str, ...], keys: tuple[str, ...], row: _Row,
) -> str:  # fmt: skip
    """One row for each unit and group, then caps, then the sums."""
    source = f"({_base(block, units, keys, row)}) AS b"
    weight = "1"
    if bounding.rows is not None:
        source += (
            f" LEFT JOIN ({weights(bounding, block, units)}) AS w USING ({listed('u', units)})"
        )
        weight = f"coalesce(w.weight, {1 << bounding.bits})"
    by = ", ".join(filter(None, (listed("u", units), listed("k", keys))))
    items = [by, "count(*) AS n"]
    for i, statistic in enumerate(measurement.statistics):
        items.append(f"{_per_unit(statistic, weight, bounding.bits, i, row)} AS s{i}")
    per_unit = f"SELECT {', '.join(items)} FROM {source} GROUP BY {by}"
    if bounding.limit:
        per_unit = _limited(per_unit, units, keys)
    if bounding.norm is not None:
        per_unit = _clipped(per_unit, bounding, units)
    outputs = [f"k{i}" for i in range(len(keys))]
    for i, statistic in enumerate(measurement.statistics):
        outputs.append(f"{_capped(statistic, bounding, grids[i], i)} AS p{i}")
    if measurement.cells is None:
        outputs.append("count(*) AS units")
    kept = f" WHERE place <= {bounding.groups}" if bounding.limit else ""
    return f"SELECT {', '.join(outputs)} FROM ({per_unit}) AS g{kept}{group_by(len(keys))}"


def _per_unit(statistic: Statistic, weight: str, bits: int, i: int, row: _Row) -> str:
    kept = "" if row.wheres[i] is None else f" FILTER (WHERE f{i})"
    match statistic:
        case Units():
            return f"CAST(count(*){kept} > 0 AS BIGINT)"
        case Rows():
            return f"coalesce(sum({weight}){kept}, 0)" if weight != "1" else f"count(*){kept}"
        case Total(averaged=True):
            return f"sum(v{i}){kept} // nullif(count(v{i}){kept}, 0)"
        case Total(cap=cap) if cap is not None:
            value = f"v{i}" if weight == "1" else f"(v{i} * {weight}) // {1 << bits}"
            return f"sum({value}){kept}"
        case _:
            value = f"v{i}" if weight == "1" else f"(v{i} * {weight}) // {1 << bits}"
            return f"coalesce(sum({value}){kept}, 0)"


def _limited(per_unit: str, units: tuple[str, ...], keys: tuple[str, ...]) -> str:
    """Each unit's groups in an order that only the salt and the unit's own rows decide."""
    place = f"row_number() OVER ({salted(units, keys)}) AS place"
    return f"SELECT *, {place} FROM ({per_unit}) AS l"


def _clipped(per_unit: str, bounding: Bounding, units: tuple[str, ...]) -> str:
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


def _capped(statistic: Statistic, bounding: Bounding, grid: Grid | None, i: int) -> str:
    """The sum over units of a capped contribution."""
    if isinstance(statistic, Units):
        return f"coalesce(sum(s{i}), 0)"
    if isinstance(statistic, Rows | Total) and statistic.cap is not None:
        return f"coalesce(sum({caps.clamped(f's{i}', statistic, grid, bounding)}), 0)"
    if bounding.norm is not None:
        scaled = f"s{i} * factor"
        if isinstance(statistic, Total):
            scaled = f"({scaled}) // {1 << bounding.bits}"
        return f"coalesce(sum({scaled}), 0)"
    if bounding.per_group is None:
        return f"coalesce(sum(s{i}), 0)"
    if isinstance(statistic, Rows):
        return f"coalesce(sum(least(s{i}, {bounding.per_group})), 0)"
    assert grid is not None
    low = min(0, (grid.low - grid.centre) * bounding.per_group)
    high = max(0, (grid.high - grid.centre) * bounding.per_group)
    return f"coalesce(sum(least(greatest(s{i}, {low}), {high})), 0)"


def _all_cells(measurement: Measurement, inner: str) -> str:
    """Every public group, with zeros where there are no rows, in key order."""
    if not measurement.keys:
        return inner
    assert measurement.cells is not None
    keys = [f"k{i}" for i in range(len(measurement.keys))]
    items = [f"c.{k}" for k in keys]
    items += [f"coalesce(a.p{i}, 0) AS p{i}" for i in range(len(measurement.statistics))]
    match = " AND ".join(f"c.{k} IS NOT DISTINCT FROM a.{k}" for k in keys)
    order = ", ".join(f"c.{k} ASC NULLS LAST" for k in keys)
    return (
        f"SELECT {', '.join(items)} FROM ({measurement.cells.sql}) AS c"
        f" LEFT JOIN ({inner}) AS a ON {match} ORDER BY {order}"
    )
