"""How much the rows of each group weigh, bin by bin: what a value is chosen by.

Claim: adding or removing one unit changes the weights of all bins of a group, in steps of
``2**-fine``, by what the counts of ``plan.bounding`` change in that group at most.
Argument: the stages are those of the counts. A row weighs ``1``, or the weight of its unit. Where
counts are capped in a group or clipped by their norm, each row of the unit there gets the same
factor instead, rounded down, so that they weigh no more than the capped count.
"""

from __future__ import annotations

from dpsql.catalog.statistic import Ranked, Statistic, Values
from dpsql.plan.bounding import Bounding
from dpsql.plan.buckets import binned, buckets
from dpsql.plan.distinct import counted
from dpsql.plan.leading import leading, separable
from dpsql.plan.nodes import Measurement
from dpsql.plan.prepared import Reading
from dpsql.plan.shared import ROWS, dear, shared
from dpsql.plan.stages import Source, group_by, listed, named, salted, source, weights
from dpsql.sql.render import expression


def joined(
    measurement: Measurement, bounding: Bounding, beside: str, reading: Reading | None = None
) -> str:
    """The statement of a measurement with histograms or numbers of values, next to all else.

    ``beside`` has every group, and the other statistics in order; it is empty where there is
    nothing else and just one group.
    """
    rows = source(measurement, bounding, reading)
    queries = [_query(s, measurement, bounding, rows) for s in measurement.statistics]
    tables = {query: f"h{i}" for i, query in enumerate(dict.fromkeys(filter(None, queries)))}
    keys = [f"k{i}" for i in range(len(measurement.keys))]
    items, plain = [f"a.{k}" for k in keys], 0
    for i, (statistic, query) in enumerate(zip(measurement.statistics, queries, strict=True)):
        if isinstance(statistic, Ranked):
            items.append(f"{tables[query]}.bins AS p{i}")
        elif isinstance(statistic, Values):
            items.append(f"coalesce({tables[query]}.n, 0) AS p{i}")
        else:
            items.append(f"a.p{plain} AS p{i}")
            plain += 1
    if measurement.cells is None:
        items.append("a.units")
    sources = [f"({beside}) AS a"] if beside else []
    for query, name in tables.items():
        match = " AND ".join(f"a.{k} IS NOT DISTINCT FROM {name}.{k}" for k in keys)
        table = f"({query}) AS {name}"
        sources.append(f"LEFT JOIN {table} ON {match or 'TRUE'}" if sources else table)
    order = ", ".join(f"a.{k} ASC NULLS LAST" for k in keys)
    return f"SELECT {', '.join(items)} FROM {' '.join(sources)}" + (
        f" ORDER BY {order}" if order else ""
    )


def _query(statistic: Statistic, measurement: Measurement, bounding: Bounding, rows: Source) -> str:
    """The query of a statistic that has its own; equal ones are joined once."""
    if isinstance(statistic, Ranked):
        return _lists(measurement, bounding, rows, _bin(statistic, measurement, rows))
    return counted(statistic, bounding, rows) if isinstance(statistic, Values) else ""


def _bin(statistic: Ranked, measurement: Measurement, rows: Source) -> str:
    """The bin of a row that counts, else NULL."""
    value = expression(statistic.value, rows.block.items)
    text = binned(value, statistic, buckets(statistic, measurement.cells))
    where = rows.where(statistic.where)
    return text if where is None else f"CASE WHEN {where} THEN {text} END"


def _lists(measurement: Measurement, bounding: Bounding, rows: Source, text: str) -> str:
    """For each group the bins that have rows, each with its weight, in no particular order."""
    keys = listed("k", rows.keys)
    if bounding.grouped:
        counted = _grouped(measurement, bounding, rows, text)
    elif bounding.weighed:
        counted = _weighted(bounding, rows, text)
    else:
        counted = _direct(rows, text)
    head = f"{keys}, " if keys else ""
    # Weights that are listed twice and cut each by itself would not keep the claim; but nothing is
    # cut below 2^42 rows in one bin, more than any engine holds. It is only so that the cast is total.
    most = 1 << 62
    return (
        f"SELECT {head}list({{'b': CAST(b AS BIGINT), 'n': CAST(least(n, {most}) AS BIGINT)}})"
        f" FILTER (WHERE b IS NOT NULL AND n IS NOT NULL) AS bins FROM ({counted}) AS t{group_by(len(rows.keys))}"
    )


def _direct(rows: Source, text: str) -> str:
    """One row per unit, or so many as are read: nothing to bound."""
    items = [*named("k", rows.keys), f"{text} AS b", "count(*) AS n"]
    return f"SELECT {', '.join(items)}{rows.block.tail()}{group_by(len(rows.keys) + 1)}"


def _weighted(bounding: Bounding, rows: Source, text: str) -> str:
    """Row weights, as all rows less what units above the limit have too much.

    A bin that such a unit has rows in is listed twice, and added up where values are chosen: to
    group all bins once more took two fifths of the statement's time.
    """
    one = 1 << bounding.bits
    items = [*named("k", rows.keys), f"{text} AS b"]
    by = group_by(len(items))
    names = ", ".join(filter(None, (listed("k", rows.keys), "b")))
    base = ", ".join((*named("u", rows.units), *items))
    heavy = f"({weights(bounding, rows)}) AS w USING ({listed('u', rows.units)})"
    if rows.strict:
        source = f"(SELECT {base}{rows.block.tail()}) AS b JOIN {heavy}"
        return f"SELECT {names}, sum(weight) AS n FROM {source}{by}"
    return (
        f"SELECT {', '.join(items)}, count(*) * {one} AS n{rows.block.tail()}{by}"
        f" UNION ALL SELECT {names}, -sum({one} - weight) AS n"
        f" FROM (SELECT {base}{rows.block.tail()}) AS b JOIN {heavy}{by}"
    )


def _grouped(measurement: Measurement, bounding: Bounding, rows: Source, text: str) -> str:
    """Rows of each unit, group and bin, then the factor of the unit there, then the sums."""
    one = 1 << bounding.fine
    flag = [] if rows.kept is None else [f"{rows.kept} AS kept"]
    items = ", ".join((*named("u", rows.units), *named("k", rows.keys), f"{text} AS b", *flag))
    base, head = f"(SELECT {items}{rows.block.tail()}) AS b", ""
    if separable(measurement, bounding, rows) and dear(rows.relation):
        head = f"WITH {ROWS} AS MATERIALIZED (SELECT {items}{rows.block.tail()}) "
        base, rows = f"{ROWS} AS b", shared(rows)
    apart = leading(measurement, bounding, rows, base)
    if apart is not None:
        weight = f"{one}" if bounding.rows is None else "min(weight)"
        few = _by_bin(rows, apart.few(), f"{one}", ranked=False)
        many = _by_bin(rows, apart.many(), weight, ranked=True)
        names = ", ".join((listed("u", rows.units), listed("k", rows.keys), "b, m, weight, rows"))
        placed = (
            f"{few} UNION ALL SELECT {names} FROM ({many}) AS r WHERE place <= {bounding.groups}"
        )
    else:
        weight = f"{one}"
        if bounding.rows is not None:
            units = listed("u", rows.units)
            base += f" LEFT JOIN ({weights(bounding, rows)}) AS w USING ({units})"
            weight = f"coalesce(min(w.weight), {one})"
        placed = _by_bin(rows, base, weight, ranked=bounding.limit)
    few = f"place <= {bounding.groups}" if bounding.limit and apart is None else ""
    where = f" AND {few}" if few and not rows.strict else ""
    which = f" FILTER (WHERE {few})" if few and rows.strict else ""
    factor = _factor(bounding, listed("u", rows.units))
    counting = f"SELECT *, {factor} AS factor FROM ({placed}) AS g"
    names = ", ".join(filter(None, (listed("k", rows.keys), "b")))
    return (
        f"{head}SELECT {names}, sum(m * factor){which} AS n"
        f" FROM ({counting} WHERE b IS NOT NULL{where}) AS f"
        f"{group_by(len(rows.keys) + 1)}"
    )


def _by_bin(rows: Source, source: str, weight: str, *, ranked: bool) -> str:
    """Rows of each unit, group and bin: how many, and in the group; the group's place, if asked."""
    by = ", ".join(filter(None, (listed("u", rows.units), listed("k", rows.keys))))
    present = "" if rows.kept is None else f" HAVING {rows.counting()} > 0"
    per_unit = (
        f"SELECT {by}, b, count(*) AS m, {weight} AS weight FROM {source} GROUP BY {by}, b{present}"
    )
    within = f"sum(m) FILTER (WHERE b IS NOT NULL) OVER (PARTITION BY {by})"
    items = [by, "b", "m", "weight", f"{within} AS rows"]
    if ranked:
        items.append(f"dense_rank() OVER ({salted(rows.units, rows.keys)}) AS place")
    return f"SELECT {', '.join(items)} FROM ({per_unit}) AS l"


def _factor(bounding: Bounding, units: str) -> str:
    """What one row of a unit weighs in a group, in steps of ``2**-fine``."""
    one = 1 << bounding.fine
    if bounding.norm is not None:
        top = int(bounding.norm * one)
        squares = f"sum(CAST(m AS HUGEINT) * rows) OVER (PARTITION BY {units})"
        scaled = f"floor({top} / sqrt(CAST({squares} AS DOUBLE)))"
        factor = f"CAST(greatest(1, least({one}, {scaled})) AS BIGINT) - 1"
        return f"CASE WHEN {squares} <= {int(bounding.norm**2)} THEN {one} ELSE {factor} END"
    if bounding.per_group is not None:
        cap = bounding.per_group
        return f"CASE WHEN rows <= {cap} THEN {one} ELSE ({cap}::BIGINT << {bounding.fine}) // rows END"
    return "weight"
