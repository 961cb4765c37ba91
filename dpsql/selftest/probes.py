"""The audit's own tables beside those of the policy: every kind of column, bounded in every way.

So each aggregate, mechanism, strategy and rule is tested, whatever tables the policy has. There are
people with one row each, people with many rows, and households, in which two people are protected
together.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

from dpsql.policy.model import Column, Table, Unit
from dpsql.policy.types import Kind

CELL, PART, WORD = "dpsql_cell", "dpsql_part", "dpsql_word"
PARTS = 5
PEOPLE, ROWS, HOMES, PUBLIC = "dpsql_people", "dpsql_rows", "dpsql_homes", "dpsql_kinds"
PREPARED = "dpsql_prepared"
"""A table that is read from a prepared copy."""
LOOSE = "dpsql_loose"
"""A table whose units may have many more rows than most have, as for a search. It has one cell."""
EVENTS, LOGINS = "dpsql_events", "dpsql_logins"
"""Tables of units that have no table of their own."""
PERSON = "dpsql_person"

_VALUES = (
    Column("x", "double", Kind.DOUBLE, nullable=True, range=(Fraction(-1), Fraction(3))),
    Column("y", "double", Kind.DOUBLE, nullable=True, range=(Fraction(0), Fraction(2))),
    Column("n", "integer", Kind.INTEGER, range=(0, 5)),
    Column("flag", "boolean", Kind.BOOLEAN, nullable=True),
    Column("kind", "text", Kind.TEXT, nullable=True, values=("a", "b", "c")),
    Column("day", "date", Kind.DATE, range=(date(2025, 1, 1), date(2025, 1, 9))),
    Column(
        "moment",
        "timestamp",
        Kind.TIMESTAMP,
        range=(datetime(2025, 1, 1), datetime(2025, 1, 1, 23)),  # noqa: DTZ001 (as in policies)
    ),
)
_KEY = Column(PERSON, "bigint", Kind.INTEGER)


def _table(name: str, unit: str, rows: int, per_group: int | None) -> Table:
    return Table(
        name, {c.name: c for c in (_KEY, *_VALUES)}, unit, unit_columns=(PERSON,),
        key=(PERSON,) if rows == 1 else (), max_rows_per_unit=rows, max_rows_per_group=per_group,
    )  # fmt: skip


UNITS = {
    "dpsql_person": Unit("dpsql_person", PEOPLE, (PERSON,)),
    "dpsql_student": Unit("dpsql_student", None, (PERSON,)),
    "dpsql_home": Unit("dpsql_home", HOMES, (PERSON,), group_size=2),
}
TABLES = (
    _table(PEOPLE, "dpsql_person", 1, None),
    _table(ROWS, "dpsql_person", 4, 2),
    _table(PREPARED, "dpsql_person", 4, None),
    _table(LOOSE, "dpsql_person", 128, None),
    _table(EVENTS, "dpsql_student", 4, None),
    _table(LOGINS, "dpsql_student", 4, None),
    _table(HOMES, "dpsql_home", 1, None),
    Table(
        PUBLIC,
        {
            "part": Column("part", "integer", Kind.INTEGER),
            "label": Column("label", "text", Kind.TEXT),
        },
        key=("part",),
    ),
)
