"""A statement that may run: the proof is its type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Admitted:
    """The text of a statement that passed the second check. Only a ``Guarded`` engine makes one."""

    sql: str
