"""An engine that repeats its last answer, for audits, which draw noise a thousand times.

The exact numbers of a statement are the same each time, unless it has a random parameter. A
statement with other parameters than before is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import pyarrow as pa

from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows, unseal
from dpsql.engines.lookups import SourceEngine
from dpsql.ir.statements import Query, TableRows
from dpsql.policy.source import SourceDescription


class Repeated:
    """Runs a statement once in ``times`` calls, and otherwise returns its last answer.

    It is only for data that does not change, and for one thread. It remembers one statement.
    """

    def __init__(self, engine: SourceEngine, times: int) -> None:
        """Wrap ``engine``."""
        self._engine, self._times = engine, times
        self._last: tuple[str, Mapping[str, Value], ExactRows] | None = None
        self._served = 0

    @property
    def prepared(self) -> str | None:
        """The engine's copies."""
        return self._engine.prepared

    def describe(self) -> SourceDescription:
        """The engine's catalog."""
        return self._engine.describe()

    def unchanged(self) -> bool:
        """Whether the engine's data is unchanged."""
        return self._engine.unchanged()

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        """The statement's answer, or its remembered answer."""
        last = self._last
        if last is not None and last[:2] == (sql, parameters) and self._served < self._times:
            self._served += 1
            return last[2]
        with closing(self._engine.measure(sql, parameters)) as parts:
            rows = ExactRows(pa.concat_tables(unseal(parts)))
        self._last, self._served = (sql, dict(parameters), rows), 1
        return rows

    def read_public(self, sql: str) -> pa.Table:
        """The engine's answer."""
        return self._engine.read_public(sql)

    def is_empty(self, query: Query | str) -> bool:
        """The engine's answer."""
        return self._engine.is_empty(query)

    def largest(self, query: Query) -> int:
        """The engine's answer."""
        return self._engine.largest(query)

    def keep(self, name: str, table: str, rows: TableRows) -> bool:
        """Have the engine keep rows."""
        return self._engine.keep(name, table, rows)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()
