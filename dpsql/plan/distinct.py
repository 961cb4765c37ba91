"""How many different values a group has, of which each unit brings a few.

Claim: adding or removing one unit changes the numbers of all groups by at most ``kept`` in sum.
Argument: a unit keeps at most ``kept`` pairs of group and value, in an order that only the salt and
the unit's own rows decide; without it, a group loses no more values than pairs of the unit. A unit
with no more rows than that has no more pairs, so all of them are kept without an order, where rows
are the same in each place that reads them.
"""

from __future__ import annotations

from dpsql.aggregates.statistic import Values
from dpsql.plan.bounding import Bounding, kept
from dpsql.plan.stages import Source, above, group_by, listed, named, salted
from dpsql.sql.render import key_text


def counted(statistic: Values, bounding: Bounding, rows: Source) -> str:
    """The groups that have values, each with their number ``n``."""
    texts = [key_text(value, rows.block.items) for value in statistic.values]
    text = texts[0] if len(texts) == 1 else f"row({', '.join(texts)})"
    where = rows.where(statistic.where)
    if where is not None:
        text = f"CASE WHEN {where} THEN {text} END"
    keys = listed("k", rows.keys)
    head = f"{keys}, " if keys else ""
    by = group_by(len(rows.keys))
    items = [*named("k", rows.keys), f"{text} AS v"]
    if bounding.rows is None and not bounding.grouped:
        inner = f"SELECT {', '.join(items)}{rows.block.tail()}"
        return f"SELECT {head}count(DISTINCT v) AS n FROM ({inner}) AS b{by}"
    items = [*named("u", rows.units), *items]
    most = kept(statistic, bounding)
    base = f"(SELECT {', '.join(items)}{rows.block.tail()}) AS b"
    if rows.strict:  # a condition on what is counted would be looked up where rows are read
        place = f"row_number() OVER ({salted(rows.units, rows.keys, 'v', last='v IS NULL')})"
        placed = f"SELECT *, {place} AS place FROM (SELECT DISTINCT * FROM {base}) AS d"
        number = f"count(DISTINCT v) FILTER (WHERE place <= {most})"
        return f"SELECT {head}{number} AS n FROM ({placed}) AS p{by}"
    if not rows.steady:
        return f"SELECT {head}count(DISTINCT v) AS n FROM ({_few(base, most, rows)}) AS p{by}"
    many = f"({above(most, rows)}) AS m USING ({listed('u', rows.units)})"
    return (
        f"SELECT {head}count(DISTINCT v) AS n FROM (SELECT {head}v FROM {base} ANTI JOIN {many}"
        f" UNION ALL {_few(f'{base} SEMI JOIN {many}', most, rows)}) AS p{by}"
    )


def _few(source: str, most: int, rows: Source) -> str:
    """So many pairs of group and value of each unit, at most."""
    keys = listed("k", rows.keys)
    pairs = f"SELECT DISTINCT * FROM {source} WHERE v IS NOT NULL"
    place = f"row_number() OVER ({salted(rows.units, rows.keys, 'v')}) AS place"
    head = f"{keys}, " if keys else ""
    return f"SELECT {head}v FROM (SELECT *, {place} FROM ({pairs}) AS d) AS q WHERE place <= {most}"
