"""Column types as a policy names them, and the few kinds that dpsql computes with."""

from __future__ import annotations

import enum
from datetime import date, datetime
from fractions import Fraction

Scalar = bool | int | Fraction | str | date | datetime
"""A public value. Numbers are exact: ints for integer columns, Fractions for the others."""


class Kind(enum.Enum):
    """What an expression is made of once the engine has read it."""

    BOOLEAN = "boolean"
    INTEGER = "bigint"
    DOUBLE = "double"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    NULL = "null"
    BOOLEANS = "boolean[]"
    INTEGERS = "bigint[]"
    DOUBLES = "double[]"
    TEXTS = "text[]"
    DATES = "date[]"
    TIMESTAMPS = "timestamp[]"

    @property
    def numeric(self) -> bool:
        """Whether sums and bounds of it exist."""
        return self in (Kind.INTEGER, Kind.DOUBLE)

    @property
    def element(self) -> Kind | None:
        """What a list is made of; None for what is no list. Lists are shown, and nothing else."""
        inner = self.value.removesuffix("[]")
        return None if inner == self.value else Kind(inner)

    @property
    def several(self) -> Kind:
        """Lists of this."""
        return Kind(f"{self.value}[]")

    @property
    def temporal(self) -> bool:
        """Whether it is a point in time."""
        return self in (Kind.DATE, Kind.TIMESTAMP)


POLICY_TYPES: dict[str, Kind] = {
    "boolean": Kind.BOOLEAN,
    "smallint": Kind.INTEGER,
    "integer": Kind.INTEGER,
    "bigint": Kind.INTEGER,
    "real": Kind.DOUBLE,
    "double": Kind.DOUBLE,
    "decimal": Kind.DOUBLE,
    "text": Kind.TEXT,
    "uuid": Kind.TEXT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
}
"""The words a policy may write after ``type:`` (``decimal`` also as ``decimal(12, 2)``)."""
