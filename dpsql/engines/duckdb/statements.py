"""The text of a measurement's own statement, written once for each plan."""

from __future__ import annotations

from dpsql.effort import pause_counting
from dpsql.engines.duckdb.write import write
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.statement import statement_of

_WRITTEN = Cache[int, tuple[PricedMeasurement, str]](
    Use.CACHED_STATEMENTS, 512, size=lambda _, kept: len(kept[1])
)
"""By the identity of the measurement, which the entry holds so that no other has it."""


def sql_of(part: PricedMeasurement) -> str:
    """What the engine runs where nothing is known of the data.

    Writing takes no more steps than planning did, and whether it was done before is not to be seen.
    """
    found = _WRITTEN.get(id(part))
    if found is not None and found[0] is part:
        return found[1]
    with pause_counting():
        sql = write(statement_of(part))
    _WRITTEN.put(id(part), (part, sql))
    return sql
