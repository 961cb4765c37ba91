"""A statement that may run: the proof is its type."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.engines.duckdb.parameters import parameters


@dataclass(frozen=True, slots=True)
class Admitted:
    """The text of a statement that passed the second check. Only a ``Guarded`` engine makes one."""

    sql: str

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the values that it is run with: the salt, and what is looked up or released before."""
        return parameters(self.sql)
