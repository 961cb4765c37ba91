"""A measurement as one engine statement. Only integers and public keys leave the engine."""

from __future__ import annotations

from dataclasses import replace

from dpsql.catalog.statistic import Apart, Rows, Statistic, Total, Units
from dpsql.plan import caps, histogram
from dpsql.plan.added import Added, Light, added, filtered
from dpsql.plan.bounding import Bounding
from dpsql.plan.followed import led, near
from dpsql.plan.grid import Grid
from dpsql.plan.leading import Leading, leading, separable
from dpsql.plan.limits import capped, clipped, limited
from dpsql.plan.nodes import Measurement
from dpsql.plan.prepared import Reading
from dpsql.plan.shared import ROWS, dear, shared
from dpsql.plan.stages import (
    Source,
    group_by,
    listed,
    named,
    owned,
    ownerless,
    salted,
    source,
    weights,
)
from dpsql.sql.relations import Relation


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
    row = added(measurement.statistics, grids, rows)
    bare = near(rows, measurement) if bounding.grouped or bounding.weighed else None
    if bare is not None:
        text = _base(bare, added(measurement.statistics, grids, bare))
        rows, row = led(rows, text), row.named("n.")
    head = ""
    again = bounding.weighed or separable(measurement, bounding, rows)
    if again and not rows.strict and dear(rows.relation):
        head = f"WITH {ROWS} AS MATERIALIZED ({_base(rows, row)}) "
        rows, row = shared(rows), row.named()
    if bounding.grouped:
        inner = _grouped(measurement, bounding, grids, rows, row)
    elif bounding.weighed:
        inner = _weighted(measurement, bounding, grids, rows, row)
    else:
        inner = _direct(measurement, bounding, grids, rows, row)
    inner = head + inner
    return inner if measurement.cells is None else _all_cells(measurement, inner)


def _direct(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...], rows: Source,
    row: Added,
) -> str:  # fmt: skip
    """Few rows of a unit are there, or read: nothing to bound but what the aggregate itself caps."""
    items = named("k", rows.keys)
    kept = filtered(rows.kept)
    for i, statistic in enumerate(measurement.statistics):
        if isinstance(statistic, Rows | Total) and statistic.cap is not None:
            text = caps.clamped(_single(statistic, row, i), statistic, grids[i], bounding)
            items.append(f"coalesce(sum({text}){kept}, 0) AS p{i}")
        else:
            items.append(f"{row.up(i, statistic)} AS p{i}")
    present = ""
    if measurement.cells is None:
        items.append(f"{rows.counting(None)} AS units")
        present = _present(rows, rows.counting(None))
    by = group_by(len(rows.keys))
    return f"SELECT {', '.join(items)}{rows.block.tail()}{by}{present}"


def _present(rows: Source, number: str) -> str:
    """Groups that are not public are there only if a row of them counts."""
    return "" if rows.kept is None else f" HAVING {number} > 0"


def _single(statistic: Rows | Total, row: Added, i: int) -> str:
    """What a unit's only row adds."""
    value = row.values[i] if isinstance(statistic, Total) else "1"
    otherwise = "NULL" if isinstance(statistic, Total) else "0"
    where = row.wheres[i]
    return (
        f"({value})" if where is None else f"(CASE WHEN {where} THEN {value} ELSE {otherwise} END)"
    )


def _weighted(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...], rows: Source,
    row: Added,
) -> str:  # fmt: skip
    """Row weights, as exact totals less what units above the limit have too much.

    A row of such a unit weighs ``weight``, all others one; written this way, the rows of all
    others are added up without a join, and the join reads only the few units above the limit.
    Whether there are any would be seen in the time: under strict timing every row is weighed.
    """
    if rows.strict:
        return _weighed(measurement, bounding, grids, rows, row)
    whole = _whole(measurement, bounding, rows, row)
    return _less_excess(whole, measurement, bounding, grids, rows, row)


def _less_excess(
    whole: str, measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...],
    rows: Source, row: Added,
) -> str:  # fmt: skip
    """Exact totals, less what units above the limit, who are all among the rows, have too much."""
    one = 1 << bounding.bits
    excess = [f"k{i}" for i in range(len(rows.keys))]
    total = list(excess)
    for i, statistic in enumerate(measurement.statistics):
        scale = "" if isinstance(statistic, Total) else f" * {one}"
        kept = "" if row.wheres[i] is None else f" FILTER (WHERE f{i})"
        over = f"v{i} - (v{i} * weight) // {one}" if scale == "" else f"{one} - weight"
        excess.append(f"-coalesce(sum({over}){kept}, 0) AS p{i}")
        total.append(f"coalesce(sum(p{i}), 0) AS p{i}")
    by = group_by(len(rows.keys))
    return (
        f"SELECT {', '.join(total)} FROM ({whole} UNION ALL SELECT {', '.join(excess)}"
        f" FROM {_with_weights(bounding, grids, rows, row, 'JOIN')}{by}) AS s{by}"
    )


def _whole(measurement: Measurement, bounding: Bounding, rows: Source, row: Added) -> str:
    """Exact totals, in the steps of row weights: each row weighs one."""
    items = named("k", rows.keys)
    for i, statistic in enumerate(measurement.statistics):
        plain = isinstance(statistic, Total) or bounding.bits == 0
        scale = "" if plain else f" * {1 << bounding.bits}"
        items.append(f"{row.up(i, statistic)}{scale} AS p{i}")
    return f"SELECT {', '.join(items)}{rows.block.tail()}{group_by(len(rows.keys))}"


def lighter_statement(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...],
    relation: Relation, light: Light, heavy: Relation | None = None,
) -> str:  # fmt: skip
    """What row weights give where every row weighs one, but for ``heavy`` ones: see ``plan.upheld``."""
    rows = ownerless(measurement, relation)
    inner = _whole(measurement, bounding, rows, added(measurement.statistics, grids, rows, light))
    if heavy is not None:
        few = owned(measurement, heavy)
        row = added(measurement.statistics, grids, few)
        inner = _less_excess(inner, measurement, bounding, grids, few, row)
    return inner if measurement.cells is None else _all_cells(measurement, inner)


def _weighed(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...], rows: Source,
    row: Added,
) -> str:  # fmt: skip
    """Row weights, each row with its own."""
    items = [f"k{i}" for i in range(len(rows.keys))]
    for i, statistic in enumerate(measurement.statistics):
        kept = "" if row.wheres[i] is None else f" FILTER (WHERE f{i})"
        weight = _weight_of(i, bounding.bits) if isinstance(statistic, Total) else "weight"
        items.append(f"coalesce(sum({weight}){kept}, 0) AS p{i}")
    source = _with_weights(bounding, grids, rows, row, "JOIN")
    return f"SELECT {', '.join(items)} FROM {source}{group_by(len(rows.keys))}"


def _weight_of(i: int, bits: int, weight: str = "weight") -> str:
    return f"(v{i} * {weight}) // {1 << bits}"


def _with_weights(
    bounding: Bounding, grids: tuple[Grid | None, ...], rows: Source, row: Added, words: str
) -> str:
    """Rows, each with the weight of its unit's rows."""
    sizes = _sizes(bounding, grids, row) if bounding.valued else ()
    heavy = f"({weights(bounding, rows, sizes)}) AS w USING ({listed('u', rows.units)})"
    return f"{_read(rows, row)} {words} {heavy}"


def _read(rows: Source, row: Added) -> str:
    """What ``_base`` gives: computed here, or read."""
    return f"{ROWS} AS b" if rows.shared else f"({_base(rows, row)}) AS b"


def _sizes(bounding: Bounding, grids: tuple[Grid | None, ...], row: Added) -> list[tuple[str, int]]:
    """What each total sums of a unit, with every value as if it were positive, and its limit."""
    assert bounding.rows is not None
    return [
        (f"coalesce(sum(abs({value})){filtered(where)}, 0)", int(bounding.rows * grid.reach))
        for value, where, grid in zip(row.values, row.wheres, grids, strict=True)
        if value is not None and grid is not None
    ]


def _base(rows: Source, row: Added) -> str:
    """Rows with unit, keys, conditions and clamped values."""
    items = [*named("u", rows.units), *named("k", rows.keys)]
    items += [f"{w} AS f{i}" for i, w in enumerate(row.wheres) if w is not None]
    items += [f"{v} AS v{i}" for i, v in enumerate(row.values) if v is not None]
    items += [] if rows.kept is None else [f"{rows.kept} AS kept"]
    return f"SELECT {', '.join(items)}{rows.block.tail()}"


def _grouped(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...], rows: Source,
    row: Added,
) -> str:  # fmt: skip
    """One row for each unit and group, then caps, then the sums."""
    apart = leading(measurement, bounding, rows, _read(rows, row))
    few = f"place <= {bounding.groups}" if bounding.limit else ""
    if apart is not None:
        per_unit, few = _apart(measurement, apart, row), ""
    else:
        per_unit = _all_units(measurement, bounding, grids, rows, row)
    if few and not rows.strict and bounding.groups >= measurement.privacy.max_rows:
        per_unit, few = limited(bounding, measurement, rows, per_unit), ""
    elif few:
        place = f"row_number() OVER ({salted(rows.units, rows.keys, last=_absent(rows))}) AS place"
        per_unit = f"SELECT *, {place} FROM ({per_unit}) AS l"
    if bounding.norm is not None:
        per_unit = clipped(per_unit, bounding, rows.units)
    kept = " AND ".join(filter(None, (few, "n > 0" if rows.kept else ""))) if rows.strict else ""
    which = filtered(kept or None)
    outputs = [f"k{i}" for i in range(len(rows.keys))]
    for i, statistic in enumerate(measurement.statistics):
        outputs.append(f"coalesce({capped(statistic, bounding, grids[i], i)}{which}, 0) AS p{i}")
    present = ""
    if measurement.cells is None:
        outputs.append(f"count(*){which} AS units")
        present = f" HAVING count(*){which} > 0" if kept else ""
    where = f" WHERE {few}" if few and not rows.strict else ""
    by = f"{where}{group_by(len(rows.keys))}{present}"
    return f"SELECT {', '.join(outputs)} FROM ({per_unit}) AS g{by}"


def _all_units(
    measurement: Measurement, bounding: Bounding, grids: tuple[Grid | None, ...], rows: Source,
    row: Added,
) -> str:  # fmt: skip
    """One row for each unit and group."""
    source, weight = _read(rows, row), "1"
    if bounding.rows is not None:
        source = _with_weights(bounding, grids, rows, row, "LEFT JOIN")
        weight = f"coalesce(w.weight, {1 << bounding.bits})"
    return _by_unit(measurement, bounding, rows, row, (source, weight))


def _apart(measurement: Measurement, apart: Leading, row: Added) -> str:
    """One row for each unit and group that it keeps; only units above the limit need an order."""
    bounding, rows = apart.bounding, apart.rows
    one, weight = ("1", "1") if bounding.rows is None else (str(1 << bounding.bits), "weight")
    items = [f"k{i}" for i in range(len(rows.keys))]
    items += [f"s{i}" for i in range(len(measurement.statistics))]
    few = _by_unit(measurement, bounding, rows, row, (apart.few(), one))
    many = _by_unit(measurement, bounding, rows, row, (apart.many(), weight))
    place = f"row_number() OVER ({salted(rows.units, rows.keys)}) AS place"
    return (
        f"SELECT {', '.join(items)} FROM ({few}) AS f UNION ALL SELECT {', '.join(items)}"
        f" FROM (SELECT *, {place} FROM ({many}) AS l) AS r WHERE place <= {bounding.groups}"
    )


def _by_unit(
    measurement: Measurement, bounding: Bounding, rows: Source, row: Added,
    weighed: tuple[str, str],
) -> str:  # fmt: skip
    """What each unit adds to each of its groups, of rows and what one of them weighs."""
    source, weight = weighed
    by = ", ".join(filter(None, (listed("u", rows.units), listed("k", rows.keys))))
    items = [by, f"{rows.counting()} AS n"]
    for i, statistic in enumerate(measurement.statistics):
        items.append(f"{_per_unit(statistic, weight, bounding.bits, i, row)} AS s{i}")
    return f"SELECT {', '.join(items)} FROM {source} GROUP BY {by}"


def _absent(rows: Source) -> str:
    """What puts groups without rows that count last."""
    return "" if rows.kept is None else "n = 0"


def _per_unit(statistic: Statistic, weight: str, bits: int, i: int, row: Added) -> str:
    kept = "" if row.wheres[i] is None else f" FILTER (WHERE f{i})"
    whole = weight == str(1 << bits)
    match statistic:
        case Units():
            return f"CAST(count(*){kept} > 0 AS BIGINT)"
        case Rows():
            number = f"count(*){kept}"  # all rows of a unit weigh the same
            each = weight if weight.isdigit() else f"min({weight})"
            return number if weight == "1" else f"{number} * {each}"
        case Total(averaged=True):
            return f"sum(v{i}){kept} // nullif(count(v{i}){kept}, 0)"
        case Total(cap=cap) if cap is not None:
            value = f"v{i}" if whole or weight == "1" else _weight_of(i, bits, weight)
            return f"sum({value}){kept}"
        case _:
            value = f"v{i}" if whole or weight == "1" else _weight_of(i, bits, weight)
            return f"coalesce(sum({value}){kept}, 0)"


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
