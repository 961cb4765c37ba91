"""A statement with its alternatives, and the requirements of each on the data.

The statement's own relation requires nothing. An alternative gives the same integers while the data
meets all that it ``requires``. Alternatives are listed from the cheapest to the dearest, and the
first whose requirements hold runs. Whether they hold is looked up when a policy is opened, never
because of a query.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.ir.statements import Query


@dataclass(frozen=True, slots=True)
class RowsHaveUnits:
    """The path of each row of a table leads to a unit."""

    table: str

    @property
    def text(self) -> str:
        """The requirement, for people."""
        return f"every row of {self.table} has a unit"


@dataclass(frozen=True, slots=True)
class UnitsWithinLimit:
    """No unit has more rows of a table than declared."""

    table: str
    most: int

    @property
    def text(self) -> str:
        """The requirement, for people."""
        return f"no unit has more than {self.most} rows of {self.table}"


@dataclass(frozen=True, slots=True)
class OverLimitRowsKept:
    """The engine keeps, under a name, all rows of units with more rows than declared."""

    table: str
    most: int
    name: str

    @property
    def text(self) -> str:
        """The requirement, for people."""
        return f"the rows of units with more than {self.most} rows of {self.table} are kept apart"


@dataclass(frozen=True, slots=True)
class ValuesInRange:
    """Every value of a column is in its declared range, or NULL."""

    table: str
    column: str

    @property
    def text(self) -> str:
        """The requirement, for people."""
        return f"every value of {self.table}.{self.column} is in its declared range"


@dataclass(frozen=True, slots=True)
class FewRows:
    """A table has so few rows that its values are added up as doubles without rounding."""

    table: str
    most: int

    @property
    def text(self) -> str:
        """The requirement, for people."""
        return f"{self.table} has at most {self.most} rows"


Requirement = RowsHaveUnits | UnitsWithinLimit | OverLimitRowsKept | ValuesInRange | FewRows


@dataclass(frozen=True, slots=True)
class Alternative:
    """A relation that may run instead of a statement's own, while the data meets ``requires``."""

    requires: tuple[Requirement, ...]
    relation: Query

    @property
    def condition(self) -> str:
        """The condition under which it may run, for people."""
        return "; ".join(requirement.text for requirement in self.requires)


@dataclass(frozen=True, slots=True)
class Statement:
    """The statement of a measurement.

    An engine runs the first alternative that may run, or else the statement's own relation.
    """

    relation: Query
    alternatives: tuple[Alternative, ...] = ()
