"""How many different values a group has, of which each unit brings a few.

Claim: adding or removing one unit changes the numbers of all groups by at most ``kept`` in sum.
Argument: a unit keeps at most ``kept`` pairs of group and value, in an order that only the salt and
the unit's own rows decide; without it, a group loses no more values than pairs of the unit. A unit
with no more rows than that has no more pairs, so all of them are kept without an order, where rows
are the same in each place that reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.catalog.statistic import Values
from dpsql.plan.bounding import Bounding, kept
from dpsql.plan.stages import Source, above, group_by, listed, named, salted
from dpsql.sql.render import key_text


def counted(statistic: Values, bounding: Bounding, rows: Source) -> str:
    """The groups that have values, each with their number ``n``."""
    pairs = _Pairs.of(statistic, rows)
    keys = listed("k", rows.keys)
    head = f"{keys}, " if keys else ""
    by = group_by(len(rows.keys))
    items = [*named("k", rows.keys), *named("v", pairs.values)]
    if bounding.rows is None and not bounding.grouped:
        inner = f"SELECT {', '.join(items)}{rows.block.tail()}"
        return f"SELECT {head}{pairs.number} AS n FROM ({inner}) AS b{by}"
    items = [*named("u", rows.units), *items]
    most = kept(statistic, bounding)
    base = f"(SELECT {', '.join(items)}{rows.block.tail()}) AS b"
    if rows.strict:  # a condition on what is counted would be looked up where rows are read
        order = salted(rows.units, rows.keys, pairs.values, last="v0 IS NULL")
        place = f"row_number() OVER ({order}) AS place"
        placed = f"SELECT *, {place} FROM (SELECT DISTINCT * FROM {base}) AS d"
        number = f"{pairs.number} FILTER (WHERE place <= {most})"
        return f"SELECT {head}{number} AS n FROM ({placed}) AS p{by}"
    if not rows.steady:
        return f"SELECT {head}{pairs.number} AS n FROM ({_few(base, most, rows, pairs)}) AS p{by}"
    many = f"({above(most, rows)}) AS m USING ({listed('u', rows.units)})"
    all_of_few = f"SELECT {head}{listed('v', pairs.values)} FROM {base} ANTI JOIN {many}"
    some_of_many = _few(f"{base} SEMI JOIN {many}", most, rows, pairs)
    both = f"{all_of_few} UNION ALL {some_of_many}"
    return f"SELECT {head}{pairs.number} AS n FROM ({both}) AS p{by}"


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The values of a row as columns ``v0..``, of which the first is NULL where a row does not count.

    A single value is that column, since NULL is not counted. Several values, of which each may be
    NULL, come after a column that says no more than that.
    """

    values: tuple[str, ...]

    @classmethod
    def of(cls, statistic: Values, rows: Source) -> _Pairs:
        texts = tuple(key_text(value, rows.block.items) for value in statistic.values)
        where = rows.where(statistic.where)
        whole = texts if len(texts) == 1 else ("1", *texts)
        first = whole[0] if where is None else f"CASE WHEN {where} THEN {whole[0]} END"
        return cls((first, *whole[1:]))

    @property
    def number(self) -> str:
        """How many different ones there are."""
        if len(self.values) == 1:
            return "count(DISTINCT v0)"
        record = ", ".join(f"v{i}" for i in range(1, len(self.values)))
        return f"count(DISTINCT CASE WHEN v0 IS NOT NULL THEN row({record}) END)"


def _few(source: str, most: int, rows: Source, pairs: _Pairs) -> str:
    """So many pairs of group and value of each unit, at most."""
    found = f"SELECT DISTINCT * FROM {source} WHERE v0 IS NOT NULL"
    place = f"row_number() OVER ({salted(rows.units, rows.keys, pairs.values)}) AS place"
    names = ", ".join(filter(None, (listed("k", rows.keys), listed("v", pairs.values))))
    return f"SELECT {names} FROM (SELECT *, {place} FROM ({found}) AS d) AS q WHERE place <= {most}"
