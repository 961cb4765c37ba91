"""How many different values a group has, of which each unit brings a few.

Claim: adding or removing one unit changes the numbers of all groups by at most ``kept`` in sum.
Argument: a unit keeps at most ``kept`` pairs of group and value, in an order that only the salt and
the unit's own rows decide; without it, a group loses no more values than pairs of the unit.
"""

from __future__ import annotations

from dpsql.aggregates.statistic import Values
from dpsql.plan.bounding import Bounding, kept
from dpsql.plan.stages import Source, group_by, listed, named, salted
from dpsql.policy.types import Kind
from dpsql.sql.expressions import Expression
from dpsql.sql.render import expression


def counted(statistic: Values, bounding: Bounding, rows: Source) -> str:
    """The groups that have values, each with their number ``n``."""
    texts = [_told(value, rows) for value in statistic.values]
    text = texts[0] if len(texts) == 1 else f"row({', '.join(texts)})"
    if statistic.where is not None:
        text = f"CASE WHEN {expression(statistic.where, rows.block.items)} THEN {text} END"
    keys = listed("k", rows.keys)
    head = f"{keys}, " if keys else ""
    by = group_by(len(rows.keys))
    items = [*named("k", rows.keys), f"{text} AS v"]
    if bounding.rows is None and not bounding.grouped:
        inner = f"SELECT {', '.join(items)}{rows.block.tail()}"
        return f"SELECT {head}count(DISTINCT v) AS n FROM ({inner}) AS b{by}"
    items = [*named("u", rows.units), *items]
    pairs = f"SELECT DISTINCT * FROM (SELECT {', '.join(items)}{rows.block.tail()}) AS b"
    place = f"row_number() OVER ({salted(rows.units, rows.keys, 'v')}) AS place"
    placed = f"SELECT *, {place} FROM ({pairs} WHERE v IS NOT NULL) AS d"
    most = kept(statistic, bounding)
    return f"SELECT {head}count(DISTINCT v) AS n FROM ({placed}) AS p WHERE place <= {most}{by}"


def _told(value: Expression, rows: Source) -> str:
    text = expression(value, rows.block.items)
    return f"({text} + 0e0)" if value.shape.kind is Kind.DOUBLE else text  # one zero
