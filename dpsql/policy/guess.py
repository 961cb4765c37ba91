"""Guesses for a first draft: who is protected, and which foreign keys lead there.

Guesses rest on names and constraints alone. Whatever is guessed wrongly, the owner corrects.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.policy.model import ForeignKey
from dpsql.policy.source import SourceDescription, TableDescription

_PEOPLE = (
    "account", "citizen", "client", "customer", "employee", "household", "member", "owner",
    "patient", "person", "people", "pupil", "student", "subscriber", "user", "visitor", "voter",
)  # fmt: skip
_NAMING = ("email", "mail", "phone", "mobile", "ssn", "passport", "iban", "address", "surname")


@dataclass(frozen=True, slots=True)
class GuessedUnit:
    """The unit, the table it may live in, and its key (empty: each row is a unit)."""

    name: str
    table: str
    key: tuple[str, ...]


def singular(table: str) -> str:
    """One of what a table holds.

    >>> singular("customers"), singular("cities"), singular("staff")
    ('customer', 'city', 'staff')
    """
    if table.endswith("ies"):
        return f"{table[:-3]}y"
    return table[:-1] if table.endswith("s") and not table.endswith("ss") else table


def guess_unit(source: SourceDescription) -> GuessedUnit | None:
    """The key that most other tables refer to; None if no table has a key of one column."""
    best: tuple[tuple[bool, int], GuessedUnit] | None = None
    for table, there in source.tables.items():
        for column in _keys(table, there):
            referring = sum(
                bool(links_to(name, other, table, (column,)))
                for name, other in source.tables.items()
                if name != table
            )
            person = any(word in table.lower() for word in _PEOPLE)
            score = (person, referring)
            if best is None or score > best[0]:
                best = (score, GuessedUnit(singular(table), table, (column,)))
    return best[1] if best else None


def _keys(table: str, there: TableDescription) -> list[str]:
    """The columns that may each tell the rows of a table apart."""
    if there.unique:
        return [name for name in there.columns if frozenset({name}) in there.unique]
    likely = {"id", f"{singular(table).lower()}_id", f"{singular(table).lower()}id"}
    return [name for name in there.columns if name.lower() in likely]


def key_of(table: str, there: TableDescription) -> tuple[str, ...]:
    """A unique key of a table: one column if there is such a key, else a constraint's columns."""
    single = _keys(table, there)
    if single or not there.unique:
        return tuple(single[:1])
    return tuple(name for name in there.columns if name in there.unique[0])


def links_to(
    name: str, there: TableDescription, target: str, key: tuple[str, ...]
) -> list[ForeignKey]:
    """The foreign keys from a table to the ``key`` of another: declared, or else of like name."""
    declared = [
        link for link in there.foreign_keys if link.references == target and link.key == key
    ]
    if declared or name == target or not key:
        return declared
    wanted = {f"{singular(target)}_{key[0]}".lower(), key[0].lower()} - {"id"}
    if len(key) > 1:
        return [ForeignKey(key, target, key)] if set(key) <= set(there.columns) else []
    return [ForeignKey((c,), target, key) for c in there.columns if c.lower() in wanted]


def ways_to_unit(source: SourceDescription, unit: GuessedUnit) -> dict[str, list[ForeignKey]]:
    """For each table that seems to lead to the unit, the foreign keys that may be its next step."""
    found: dict[str, list[ForeignKey]] = {}
    reached = {unit.table: unit.key}
    while reached:
        wave = {
            name: links
            for name, there in source.tables.items()
            if name != unit.table and name not in found
            if (links := [k for t, key in reached.items() for k in links_to(name, there, t, key)])
        }
        found |= wave
        reached = {name: key_of(name, source.tables[name]) for name in wave}
    return found


def names_people(column: str) -> bool:
    """Whether a column seems to identify people.

    >>> names_people("Email"), names_people("amount")
    (True, False)
    """
    return any(word in column.lower() for word in _NAMING)
