"""Guesses for a first draft: the protected unit, and the foreign keys that lead to it.

Guesses rest on names and constraints alone. The owner corrects wrong guesses. A key is assumed to
repeat if no constraint declares it unique and no other table refers to it. Units then have no table
of their own, which is correct in either case.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from dpsql.policy.model import ForeignKey
from dpsql.policy.scalars import kind_of
from dpsql.policy.source import SourceDescription, TableDescription, keeps_apart, policy_type
from dpsql.policy.types import Kind

_PEOPLE = (
    "account", "applicant", "author", "borrower", "buyer", "caller", "candidate", "child", "citizen",
    "client", "consumer", "customer", "cyclist", "donor", "driver", "employee", "guest", "household",
    "instructor", "learner", "listener", "member", "owner", "participant", "passenger", "patient",
    "person", "people", "physician", "pilot", "player", "pupil", "recipient", "resident",
    "respondent", "reviewer", "rider", "seller", "sender", "shopper", "student", "subject",
    "subscriber", "teacher", "tenant", "traveler", "traveller", "user", "viewer", "visitor", "voter",
    "worker",
)  # fmt: skip
_PERSON = re.compile(
    rf"(?P<alone>{'|'.join(_PEOPLE)})|(.*_)?(?P<word>{'|'.join(_PEOPLE)})"
    r"_?(id|no|nr|num|number|key|code|uuid|guid|hash)"
)
_NAMING = ("email", "mail", "phone", "mobile", "ssn", "passport", "iban", "address", "surname")


@dataclass(frozen=True, slots=True)
class GuessedUnit:
    """The unit, the table with one row for each unit (None: there is none), and its key."""

    name: str
    table: str | None
    key: tuple[str, ...]
    """Empty: each row of the table is a unit by itself."""

    @property
    def is_person(self) -> bool:
        """Whether the name, or that of the table, is a word for people."""
        return any(word in f"{self.name} {self.table or ''}".lower() for word in _PEOPLE)


def singular(table: str) -> str:
    """The singular of a table's name.

    >>> singular("customers"), singular("cities"), singular("staff")
    ('customer', 'city', 'staff')
    """
    if table.endswith("ies"):
        return f"{table[:-3]}y"
    return table[:-1] if table.endswith("s") and not table.endswith("ss") else table


def guess_unit(
    source: SourceDescription, repeated: frozenset[tuple[str, str]] = frozenset()
) -> GuessedUnit | None:
    """The unit of a table named after people, else of such a column, else of the most used key.

    ``repeated`` are columns in which several rows share a value, if the data was looked at.
    """
    best: tuple[tuple[bool, bool, int], GuessedUnit] | None = None
    for table, there in source.tables.items():
        for column in likely_keys(table, there):
            referring = sum(
                bool(links_to(name, other, table, (column,)))
                for name, other in source.tables.items()
                if name != table
            )
            known = frozenset({column}) in there.unique or referring > 0
            alone = known and (table, column) not in repeated
            score = (any(word in table.lower() for word in _PEOPLE), alone, referring)
            if best is None or score > best[0]:
                best = (score, GuessedUnit(singular(table), table if alone else None, (column,)))
    return best[1] if best and best[0][0] else _told_by_a_column(source) or (best and best[1])


def _told_by_a_column(source: SourceDescription) -> GuessedUnit | None:
    """The kind of person for which most tables have a column."""
    found = Counter(
        (word, column)
        for there in source.tables.values()
        for column, held in there.columns.items()
        if (word := person_of(column, held))
    )
    if not found:
        return None
    words = Counter(word for word, _ in found.elements())
    (word, column), _ = max(found.items(), key=lambda pair: (words[pair[0][0]], pair[1]))
    return GuessedUnit(word, None, (column,))


def possible_units(
    source: SourceDescription, repeated: frozenset[tuple[str, str]] = frozenset()
) -> tuple[GuessedUnit, ...]:
    """Every unit that names suggest, the most likely one first, and each row of each table."""
    found = [guess_unit(source, repeated)]
    for table, there in source.tables.items():
        found += [
            GuessedUnit(word, None, (column,))
            for column, held in there.columns.items()
            if (word := person_of(column, held))
        ]
        found += [
            GuessedUnit(
                singular(table), table if (table, column) not in repeated else None, (column,)
            )
            for column in likely_keys(table, there)
        ]
    found += [GuessedUnit(singular(table), table, ()) for table in source.tables]
    return tuple(dict.fromkeys(unit for unit in found if unit is not None))


def person_of(column: str, held: str) -> str | None:
    """The kind of person that a column seems to identify, or None.

    >>> person_of("student_id", "BIGINT"), person_of("userId", "VARCHAR"), person_of("Pupil", "BIGINT")
    ('student', 'user', 'pupil')
    >>> person_of("user_agent", "VARCHAR"), person_of("student", "BOOLEAN")
    (None, None)
    """
    declared, name = policy_type(held), _PERSON.fullmatch(column.lower())
    if name is None or declared is None or not keeps_apart(held):
        return None
    return (name["alone"] or name["word"]) if kind_of(declared) in _TELLING else None


_TELLING = (Kind.INTEGER, Kind.TEXT)


def guess_holders(source: SourceDescription, unit: GuessedUnit) -> dict[str, tuple[str, ...]]:
    """For each table that seems to hold the key of a unit without a table, the key's columns."""
    if unit.table is not None:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for table, there in source.tables.items():
        alike = [c for c, held in there.columns.items() if person_of(c, held) == unit.name]
        theirs = set(unit.key) <= set(there.columns)
        if theirs and (set(unit.key) <= set(alike) or singular(table) == unit.name):
            found[table] = unit.key
        elif alike:
            found[table] = (alike[0],)
    kinds = {table: _kinds(source.tables[table], columns) for table, columns in found.items()}
    first = next((kinds[table] for table, columns in found.items() if columns == unit.key), ())
    return {table: columns for table, columns in found.items() if kinds[table] == first}


def _kinds(there: TableDescription, columns: tuple[str, ...]) -> tuple[object, ...]:
    """The kinds of key columns, which must be equal in all tables."""
    types = [str(policy_type(there.columns[name])) for name in columns]
    return tuple((kind_of(declared), declared == "uuid") for declared in types)


def unit_columns(source: SourceDescription, unit: GuessedUnit) -> dict[str, tuple[str, ...]]:
    """For each table that holds the unit's key itself, the columns of the key."""
    ways = ways_to_unit(source, unit)
    led = {name: links[0].columns for name, links in ways.items() if links[0].key == unit.key}
    return {**guess_holders(source, unit), **(led if unit.table else {})}


def likely_keys(table: str, there: TableDescription) -> list[str]:
    """The columns each of which may be a unique key of a table."""
    if there.unique:
        return [name for name in there.columns if frozenset({name}) in there.unique]
    likely = {"id", f"{singular(table).lower()}_id", f"{singular(table).lower()}id"}
    return [name for name in there.columns if name.lower() in likely]


def guess_key(table: str, there: TableDescription) -> tuple[str, ...]:
    """A likely key of a table: one column if there is one, else the columns of a constraint."""
    single = likely_keys(table, there)
    if single or not there.unique:
        return tuple(single[:1])
    return tuple(name for name in there.columns if name in there.unique[0])


def unique_key(there: TableDescription) -> tuple[str, ...]:
    """A key that a constraint declares unique; empty if there is none."""
    single = [name for name in there.columns if frozenset({name}) in there.unique]
    if single or not there.unique:
        return tuple(single[:1])
    return tuple(name for name in there.columns if name in there.unique[0])


def links_to(
    name: str, there: TableDescription, target: str, key: tuple[str, ...]
) -> list[ForeignKey]:
    """The foreign keys from a table to the ``key`` of another: declared ones, else by names."""
    declared = [
        link for link in there.foreign_keys if link.references == target and link.key == key
    ]
    if declared or name == target or not key:
        return declared
    wanted = {_joined(f"{singular(target)}{key[0]}"), _joined(key[0])} - {"id"}
    if len(key) > 1:
        return [ForeignKey(key, target, key)] if set(key) <= set(there.columns) else []
    return [ForeignKey((c,), target, key) for c in there.columns if _joined(c) in wanted]


def _joined(name: str) -> str:
    """A name without what only joins its words: ``customer_id`` and ``customerId`` are one name."""
    return name.lower().replace("_", "")


def ways_to_unit(source: SourceDescription, unit: GuessedUnit) -> dict[str, list[ForeignKey]]:
    """For each table that seems to lead to the unit, the foreign keys that may be its next step."""
    found: dict[str, list[ForeignKey]] = {}
    held = guess_holders(source, unit)
    start = {name: unique_key(source.tables[name]) for name in held}
    reached = {unit.table: unit.key} if unit.table else {n: k for n, k in start.items() if k}
    while reached:
        wave = {
            name: links
            for name, there in source.tables.items()
            if name not in found and name not in held and name != unit.table
            if (links := [k for t, key in reached.items() for k in links_to(name, there, t, key)])
        }
        found |= wave
        reached = {name: guess_key(name, source.tables[name]) for name in wave}
    return found


def suggests_source(column: str, table: str, key: str) -> bool:
    """Whether a column seems to hold values of a table's key.

    >>> suggests_source("country", "countries", "code"), suggests_source("carrier", "airlines", "carrier")
    (True, True)
    >>> suggests_source("channel", "countries", "code")
    False
    """
    name, one = _joined(column), _joined(singular(table))
    return name in (_joined(key), one, f"{one}{_joined(key)}")


def unled_tables(source: SourceDescription, unit: GuessedUnit) -> frozenset[str]:
    """The tables that do not seem to belong to a unit: they may be public."""
    led = {*guess_holders(source, unit), *ways_to_unit(source, unit), unit.table}
    return frozenset(name for name in source.tables if name not in led)


def names_people(column: str) -> bool:
    """Whether a column seems to identify people.

    >>> names_people("Email"), names_people("amount")
    (True, False)
    """
    return any(word in column.lower() for word in _NAMING)


def view_for_key(table: str, column: str, held: str) -> str | None:
    """A view of the source in which a column can be a key of people; None if no view is needed.

    >>> view_for_key("events", "user_id", "UBIGINT")
    'CREATE VIEW events_keyed AS SELECT * REPLACE (CAST(user_id AS VARCHAR) AS user_id) FROM events'
    >>> view_for_key("events", "user_id", "BIGINT") is None
    True
    """
    if keeps_apart(held) or policy_type(held) is None or not _PERSON.fullmatch(column.lower()):
        return None
    keyed, quoted, name = (_in_sql(n) for n in (f"{table}_keyed", table, column))
    return (
        f"CREATE VIEW {keyed} AS SELECT * REPLACE (CAST({name} AS VARCHAR) AS {name}) FROM {quoted}"
    )


def _in_sql(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def listed_words(held: str) -> tuple[str, ...]:
    """The words of an ENUM, which its type lists; no row is read. Empty for other types.

    >>> listed_words("ENUM('web', 'it''s')"), listed_words("VARCHAR")
    (('web', "it's"), ())
    """
    inner = held.strip()
    if not inner.upper().startswith("ENUM("):
        return ()
    return tuple(word.replace("''", "'") for word in _WORD.findall(inner))


_WORD = re.compile(r"'((?:[^']|'')*)'")
