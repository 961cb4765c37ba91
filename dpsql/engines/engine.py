"""What an engine does for dpsql: generated statements in, sealed integers out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Protocol

import pyarrow as pa

from dpsql.engines.exact_rows import ExactRows
from dpsql.policy.source import SourceDescription

Value = bool | int | float | str | date | datetime | None | list[Any]
"""A value of a named parameter: the salt, or what was released before."""


class Engine(Protocol):
    """A database that holds the data. Errors leave it only as ``EngineFailed``, or as ``Ended``
    where public tables are read. What it runs is ``execution.stoppable``.

    ``prepared`` is the document of the prepared copies that it can read, None where there are none.
    """

    @property
    def prepared(self) -> str | None:
        """What the prepared copies are."""
        ...

    def describe(self) -> SourceDescription:
        """Tables, columns, types and constraints: the catalog, never rows."""
        ...

    def unchanged(self) -> bool:
        """Whether the data is still what was opened, and not written to since."""
        ...

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        """Run the statement of a measurement."""
        ...

    def read_public(self, sql: str) -> pa.Table:
        """Run a statement that reads public tables only."""
        ...

    def close(self) -> None:
        """Let go of the data."""
        ...
