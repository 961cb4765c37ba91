"""The interface of an engine: it runs generated statements, and returns sealed integers."""

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
    """A database that holds the data.

    It only raises ``EngineFailed``, and ``Ended`` where public tables are read. Its statements can
    be stopped (``execution.stoppable``).
    """

    @property
    def prepared(self) -> str | None:
        """The document of the prepared copies that it can read; None if there are none."""
        ...

    def describe(self) -> SourceDescription:
        """Tables, columns, types and constraints: the catalog, never rows."""
        ...

    def unchanged(self) -> bool:
        """Whether the data is still that which was opened, and was not written to since."""
        ...

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        """Run the statement of a measurement."""
        ...

    def read_public(self, sql: str) -> pa.Table:
        """Run a statement that reads public tables only."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...
