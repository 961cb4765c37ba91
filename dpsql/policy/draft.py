"""Drafts a policy for a source: names and types, with comments where the owner has to decide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction

from dpsql.policy.document import Word
from dpsql.policy.guess import (
    GuessedUnit,
    guess_holders,
    guess_key,
    guess_unit,
    listed_words,
    names_people,
    person_of,
    singular,
    unique_key,
    unled_tables,
    view_for_key,
    ways_to_unit,
)
from dpsql.policy.model import DataSource, ForeignKey
from dpsql.policy.problems import Place
from dpsql.policy.scalars import kind_of
from dpsql.policy.source import SourceDescription, TableDescription, policy_type, why_unread
from dpsql.policy.types import Kind, Scalar


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Facts read from rows: ranges and values of columns, keys that repeat, most rows of a unit."""

    ranges: Mapping[tuple[str, str], tuple[Scalar, Scalar]] = field(default_factory=dict)
    repeated: frozenset[tuple[str, str]] = frozenset()
    rows: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    sources: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """The table and its column that has all values of a column, if that table is public."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the owner has decided already; the draft guesses the rest, or asks to fill it in."""

    unit: GuessedUnit | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    """The most rows of one unit that count, by table."""
    public: frozenset[str] = frozenset()
    epsilon: Fraction | None = None
    """What one question costs."""


READ = "# read from the data"
"""The comment that marks what was read from rows."""
IMPORTED = "# made by `dpsql init` from files"
"""The comment that marks a database as one that ``dpsql init`` may make anew."""
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_YAML_1_1 = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_RANGED = (Kind.INTEGER, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP)


def draft(
    description: SourceDescription, source: DataSource, suggestions: Suggestions | None = None, *,
    decisions: Decisions | None = None, imported: bool = False,
) -> str:  # fmt: skip
    """The text of a policy, which loads once its owner has followed the comments.

    Only ``suggestions`` were read from rows. They are marked in the text, since bounds that were
    read from the data reveal its extremes.
    """
    origin = f"  {IMPORTED}" if imported else ""
    said = suggestions or Suggestions()
    return "\n".join([*_lines(description, source, said, decisions or Decisions(), origin), ""])


def _lines(
    description: SourceDescription, source: DataSource, suggestions: Suggestions,
    decisions: Decisions, origin: str,
) -> Iterator[str]:  # fmt: skip
    unit = decisions.unit or guess_unit(description, suggestions.repeated)
    yield "# Drafted by `dpsql init` from names and types. Look for FILL IN and check every guess."
    if suggestions != Suggestions():
        yield "# What is marked `read from the data` is private. A range tells that values lie near its ends,"
        yield "# `max_rows_per_unit` tells how many rows somebody has, and `values` tells which values occur."
        yield "# Replace it by what is public knowledge before anyone is given access."
    yield f"source: {{engine: {source.engine}, path: {quote_yaml(str(source.path))}}}{origin}"
    yield 'data_version: "1"  # change it whenever the data changes'
    yield ""
    yield from _unit(unit, chosen=decisions.unit is not None)
    yield ""
    yield "tables:"
    if unit is not None:
        suggestions = _with_public_sources(description, unit, suggestions, decisions)
    ways = ways_to_unit(description, unit) if unit else {}
    held = guess_holders(description, unit) if unit else {}
    for name, there in description.tables.items():
        yield f"  {quote_yaml(name)}:"
        if unit is not None and name in held:
            most = _most_rows(name, unit, suggestions, decisions)
            yield from _holding(there, unit, held[name], most)
        elif name in decisions.public:
            yield "    public: true"
        else:
            most = "" if unit is None else _most_rows(name, unit, suggestions, decisions)
            yield from _belonging(name, there, unit, ways.get(name, []), most)
        yield from _columns(name, there, unit, held.get(name, ()), ways.get(name, []), suggestions)
        yield ""
    yield from _budgets(decisions.epsilon)


def _with_public_sources(
    description: SourceDescription, unit: GuessedUnit, suggestions: Suggestions, decisions: Decisions
) -> Suggestions:  # fmt: skip
    """The suggestions without lists in tables that are not public, and without facts of public ones."""
    may = decisions.public if decisions.unit is not None else unled_tables(description, unit)
    kept = {column: place for column, place in suggestions.sources.items() if place[0] in may}
    known = decisions.public
    return replace(
        suggestions, sources={c: p for c, p in kept.items() if all(map(_SIMPLE.fullmatch, p))},
        ranges={c: r for c, r in suggestions.ranges.items() if c[0] not in known},
        values={c: v for c, v in suggestions.values.items() if c[0] not in known},
    )  # fmt: skip


def _budgets(epsilon: Fraction | None) -> Iterator[str]:
    """Accounts and a role; ten questions fit into a session, and two sessions into the data set."""
    one = epsilon or Fraction(1, 20)
    dataset, session, query = (f"{float(one * times):.9g}" for times in (20, 10, 1))
    yield "accounts:"
    yield f"  dataset: {{epsilon: {dataset}, delta: 1e-6}}  # FILL IN: what all analysts may learn together"
    yield ""
    yield "roles:"
    yield "  analyst:"
    yield f"    session: {{epsilon: {session}}}  # FILL IN: what one session may spend"
    if epsilon is not None:
        yield f"    query: {{epsilon: {query}}}"


def _unit(unit: GuessedUnit | None, *, chosen: bool) -> Iterator[str]:
    yield "units:"
    if unit is None:
        yield "  # FILL IN: who is protected, for example"
        yield "  # student: {key: student_id}    (rows with one student_id are about one student)"
        yield "  # customer: {table: customers, key: customer_id}    (a table with a row for each)"
        yield "  # visit: {table: visits, key: row}    (each row by itself)"
        return
    key = f"[{', '.join(quote_yaml(name) for name in unit.key)}]" if unit.key else "row"
    if chosen:
        yield "  # chosen when this was drafted"
    elif not unit.is_person:
        yield "  # a guess: no name of people was found. FILL IN who is protected"
    elif unit.table is None:
        yield "  # a guess from names: rows with the same key are about the same person; FILL IN another"
        yield "  # column if someone else is protected"
    else:
        yield "  # a guess from names and keys; FILL IN another table if someone else is protected"
    table = "" if unit.table is None else f"table: {quote_yaml(unit.table)}, "
    yield f"  {quote_yaml(unit.name)}: {{{table}key: {key}}}"


def _holding(
    there: TableDescription, unit: GuessedUnit, columns: tuple[str, ...], most: str
) -> Iterator[str]:
    """A table that holds the key of a unit without a table."""
    yield f"    unit: {quote_yaml(unit.name)}"
    if columns != unit.key:
        yield f"    unit_key: [{', '.join(map(quote_yaml, columns))}]  # a guess from the name"
    if key := unique_key(there):
        yield f"    key: [{', '.join(map(quote_yaml, key))}]"
    if not key or not set(key) <= set(columns):
        yield most


def _most_rows(name: str, unit: GuessedUnit, suggestions: Suggestions, decisions: Decisions) -> str:
    if name in decisions.rows:
        return f"    max_rows_per_unit: {decisions.rows[name]}"
    most = suggestions.rows.get(name)
    about = f"most rows of one {quote_yaml(unit.name)} that count"
    if most is None:
        return f"    max_rows_per_unit:  # FILL IN: {about}, from what you know"
    return f"    max_rows_per_unit: {most}  # read from the data: FILL IN the {about}"


def _belonging(
    name: str, there: TableDescription, unit: GuessedUnit | None, ways: list[ForeignKey], most: str
) -> Iterator[str]:
    """The lines that say which unit the rows of a table belong to."""
    if unit is not None and name == unit.table:
        yield f"    unit: {quote_yaml(unit.name)}"
        return
    if unit is None or not ways:
        yield "    # FILL IN one of these:"
        yield f"    # public: true    (nothing in it is about a person{_public_guess(name, there, unit)})"
        yield "    # unit: ..        (with max_rows_per_unit, and foreign_keys if others hold its key)"
        return
    yield f"    unit: {quote_yaml(unit.name)}"
    if key := guess_key(name, there):
        yield f"    key: [{', '.join(map(quote_yaml, key))}]"
    yield "    foreign_keys:"
    yield f"      - {_link(ways[0])}"
    for other in ways[1:]:
        yield f"      # or, if this says whose row it is: {_link(other)}"
    if not key or not set(key) <= set(ways[0].columns):
        yield most


def _public_guess(name: str, there: TableDescription, unit: GuessedUnit | None) -> str:
    """What speaks for a public table: a unit is known, and neither table nor columns name people."""
    named = any(names_people(c) or person_of(c, held) for c, held in there.columns.items())
    return (
        ""
        if unit is None or named or person_of(singular(name), "BIGINT")
        else "; a guess from names"
    )


def _link(link: ForeignKey) -> str:
    columns, key = (", ".join(map(quote_yaml, names)) for names in (link.columns, link.key))
    return f"{{columns: [{columns}], references: {quote_yaml(link.references)}, key: [{key}]}}"


def _columns(
    table: str, there: TableDescription, unit: GuessedUnit | None, own: tuple[str, ...],
    ways: list[ForeignKey], suggestions: Suggestions,
) -> Iterator[str]:  # fmt: skip
    flat = unit is not None and unit.table is None
    keys = {*(unique_key(there) if flat else guess_key(table, there))}
    keys |= {*(unit.key if unit and unit.table == table else ())}
    links = {name for link in ways for name in link.columns}
    yield "    columns:"
    for name, held in there.columns.items():
        declared = policy_type(held)
        if declared is None:
            yield f"      # {quote_yaml(name)} is left out: it is {json.dumps(held)}, which dpsql does not read:"
            yield f"      #   {why_unread(held)}"
            continue
        nullable = name not in there.not_null | keys
        key = name in own or name in keys or name in links
        bounds = None if key else suggestions.ranges.get((table, name))
        values = listed_words(held) or (() if key else suggestions.values.get((table, name), ()))
        place = None if key else suggestions.sources.get((table, name))
        yield _column(name, declared, held, bounds, values, place, nullable=nullable)
        if view := view_for_key(table, name, held):
            yield f"      #   {json.dumps(held)} cannot be a key of people; a view of the source can, in place of"
            yield f"      #   this table: {view}"


def _column(
    name: str, declared: str, held: str, bounds: tuple[Scalar, Scalar] | None,
    values: tuple[str, ...], place: tuple[str, str] | None, *, nullable: bool,
) -> str:  # fmt: skip
    kind = kind_of(declared)
    entries = [f"type: {declared if '(' not in declared else quote_yaml(declared)}"]
    comment = ""
    if kind is Kind.TEXT and names_people(name):
        entries.append("identifier: true")
        comment = "  # a guess from the name"
    elif place is not None:
        entries.append(f"values_from: {'.'.join(place)}")
        comment = (
            "  # read from the data: all values are there, which matters if that table is public"
        )
    elif values:
        entries.append(f"values: [{', '.join(map(quote_yaml, values))}]")
        read = "  # read from the data, without rare ones: FILL IN what is public knowledge"
        comment = "  # the words of its type" if listed_words(held) else read
    elif bounds is not None and kind in _RANGED:
        entries.append(f"range: [{_written(bounds[0])}, {_written(bounds[1])}]")
        comment = "  # read from the data: FILL IN what is public knowledge"
    elif kind in (Kind.DOUBLE, Kind.TIMESTAMP, Kind.DATE):
        comment = "  # FILL IN range: [.., ..] if it is to be summed or grouped"
    if nullable:
        entries.append("nullable: true")
    return f"      {quote_yaml(name)}: {{{', '.join(entries)}}}{comment}"


def _written(value: Scalar) -> str:
    """A bound in the form that the loader reads."""
    if isinstance(value, Fraction):
        return repr(float(value))
    if isinstance(value, datetime):
        return f'"{value.isoformat(sep=" ")}"'
    return str(value)


def quote_yaml(name: str) -> str:
    """A name in the form from which YAML reads it back.

    >>> quote_yaml("orders"), quote_yaml("Order Date"), quote_yaml("no")
    ('orders', '"Order Date"', '"no"')
    """
    plain = _SIMPLE.fullmatch(name) and name.lower() not in _YAML_1_1
    if plain and Word(Place(), name, plain=True).name:
        return name
    return json.dumps(name, ensure_ascii=not name.isprintable())
