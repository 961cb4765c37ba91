"""Statements over released tables, for the post-processor: their text is written here only.

The names of tables are chosen by dpsql. The keys of a stored table are columns ``k0``, ``k1`` and
so on; expressions refer to them as columns -1, -2, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.expressions import expression
from dpsql.engines.duckdb.groups import write_groups
from dpsql.engines.duckdb.relations import Writer
from dpsql.ir.expressions import Column, Expression, alias, columns
from dpsql.ir.public_groups import GivenGroups, PublicGroups
from dpsql.ir.relations import Relation

_WHOLE_SUM = "TRY_CAST(sum(v) AS BIGINT)"


def write_output(relation: Relation, outputs: Iterable[Column]) -> str:
    """The output columns of a relation, in order, named by position."""
    writer = Writer()
    block = writer.block(relation)
    items = ", ".join(f'{block.items[c.number]} AS "o{i}"' for i, c in enumerate(outputs))
    return f"SELECT {'DISTINCT ' if block.distinct else ''}{items or '1'}{block.tail()}"


def write_intervals(values: Sequence[Expression]) -> str:
    """The 2.5 % and 97.5 % quantiles of each value over the ``draws`` of each ``row``."""
    names = {c.number: quote_name(alias(c)) for value in values for c in columns(value)}
    items = []
    for i, value in enumerate(values):
        text = f"CAST({expression(value, names)} AS DOUBLE)"
        items += [f"quantile_cont({text}, {q}) AS {e}{i}" for e, q in (("l", 0.025), ("h", 0.975))]
    return f"SELECT {', '.join(items)} FROM draws GROUP BY row ORDER BY row"


def write_sums(keys: Sequence[Expression], conditions: Sequence[Expression], *, whole: bool) -> str:
    """Sums ``v`` over the table ``finer`` and numbers of rows ``n``, grouped by ``keys``."""
    total = _WHOLE_SUM if whole else "sum(v)"
    items = ", ".join([*_keys(keys, conditions), f"{total} AS v", "count(*) AS n"])
    return f"SELECT {items} FROM finer{_where(keys, conditions)}"


def write_sums_of_groups(
    keys: Sequence[Expression],
    conditions: Sequence[Expression],
    groups: PublicGroups | GivenGroups,
    *,
    whole: bool,
) -> str:
    """The sums of ``write_sums`` for each of the ``groups``, in the order of their keys."""
    text = write_sums(keys, conditions, whole=whole)
    group = ", ".join(str(i + 1) for i in range(len(keys)))
    named = [f"k{i}" for i in range(len(keys))]
    match = " AND ".join(f"c.{k} IS NOT DISTINCT FROM a.{k}" for k in named)
    order = ", ".join(f"c.{k} ASC NULLS LAST" for k in named)
    return (
        f"SELECT {', '.join(f'c.{k}' for k in named)}, a.v, a.n FROM ({write_groups(groups)}) AS c"
        f" LEFT JOIN ({text} GROUP BY {group}) AS a ON {match} ORDER BY {order}"
    )


def write_places(keys: Sequence[Expression], conditions: Sequence[Expression]) -> str:
    """For each row of ``finer``, its position ``i`` and that of its group in ``coarser``, ``j``."""
    items = "".join(f", {key}" for key in _keys(keys, conditions))
    text = f"SELECT place{items} FROM finer{_where(keys, conditions)}"
    match = " AND ".join(f"f.k{i} IS NOT DISTINCT FROM c.k{i}" for i in range(len(keys)))
    return (
        f"SELECT f.place AS i, c.place AS j FROM ({text}) AS f"
        f" JOIN coarser AS c ON {match or 'TRUE'}"
    )


def _keys(keys: Sequence[Expression], conditions: Sequence[Expression]) -> list[str]:
    names = _stored(keys, conditions)
    return [f"{expression(key, names)} AS k{i}" for i, key in enumerate(keys)]


def _where(keys: Sequence[Expression], conditions: Sequence[Expression]) -> str:
    names = _stored(keys, conditions)
    where = " AND ".join(expression(condition, names) for condition in conditions)
    return f" WHERE {where}" if where else ""


def _stored(keys: Sequence[Expression], conditions: Sequence[Expression]) -> dict[int, str]:
    """The names of the keys of a stored table, by column number."""
    return {c.number: f'"k{-1 - c.number}"' for c in columns(*keys, *conditions)}
