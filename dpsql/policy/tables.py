"""Reads units and tables, and checks that the names in them exist and fit."""

from __future__ import annotations

from dataclasses import replace

from dpsql.policy.foreign_keys import foreign_keys_of
from dpsql.policy.listing import Listing
from dpsql.policy.model import Column, Table, Unit
from dpsql.policy.problems import instead
from dpsql.policy.resolve import resolve
from dpsql.policy.section import Section
from dpsql.policy.types import Kind
from dpsql.policy.unit_columns import without_table, written_key

_OF_LINKS = {"unit", "unit_key", "public", "key", "foreign_keys", "columns"}


def build(root: Section, listing: Listing) -> tuple[dict[str, Unit], dict[str, Table]]:
    """The units, and the tables with their paths to them."""
    problems = listing.problems
    before = len(problems)
    units = {name: _unit(name, section, listing) for name, section in listing.units.items()}
    if len(problems) > before:
        listing = replace(listing, lost=listing.lost | {"keys"})
    tables = {
        name: _table(name, section, units, listing) for name, section in listing.tables.items()
    }
    if len(problems) == before and _sound(root, listing):
        tables = resolve(units, tables, listing)
    return units, tables


def _sound(root: Section, listing: Listing) -> bool:
    """Whether all parts that paths depend on were readable."""
    return not (
        root.spoilt & {"units", "tables"}
        or any(unit.spoilt for unit in listing.units.values())
        or any(table.spoilt & _OF_LINKS for table in listing.tables.values())
        or any(
            key.spoilt for table in listing.tables.values() for key in table.listed("foreign_keys")
        )
        or any(
            len(listing.columns[name]) != len(table.sections("columns"))
            for name, table in listing.tables.items()
        )
    )


def _unit(name: str, section: Section, listing: Listing) -> Unit:
    table = section.get("table", str)
    key = section.names("key") or ()
    size = section.get("group_size", int) or 1
    if table is not None and listing.has_table(table, section.at("table"), section.label):
        _unit_table(name, table, key, section, listing)
    if table is None and not key and not section.spoilt & {"table", "key"}:
        listing.problems.add(
            section.place,
            f"{section.label} has `key: row` but no table; write `table: ..`, or the key that "
            "its rows share",
        )
    return Unit(name, table, key, size)


def _unit_table(
    name: str, table: str, key: tuple[str, ...], section: Section, listing: Listing
) -> None:
    """Check that the table of a unit declares the unit, and that its key can be compared."""
    holder = listing.tables[table]
    declared = holder.get("unit", str)
    if declared != name and "unit" not in holder.spoilt:
        listing.problems.add(
            section.at("table"),
            f"{section.label} names table {table}, but that table does not name the unit; write "
            f"`unit: {name}` in table {table}",
        )
        return
    where = f"the key of {section.label}"
    if not listing.has_columns(table, key, section.at("key"), where):
        return
    listing.never_null(table, key, section.at("key"), where)
    if key and set(key) < set(holder.names("key") or ()):
        listing.problems.add(
            holder.at("key"),
            f"the key of {holder.label} lets a {name} have several rows; "
            f"{without_table(name, key)}, or `key: [{', '.join(key)}]` if each has one row",
        )
    for column in key:
        if listing.kind(table, column) is Kind.DOUBLE:
            listing.problems.add(
                section.at("key"),
                f"{where} holds {column}, a number with fractions; "
                "a key is of type bigint, text, date, timestamp or boolean",
            )


def _table(name: str, section: Section, units: dict[str, Unit], listing: Listing) -> Table:
    unit = _unit_of(section, units, listing)
    written_key(name, section, units.get(unit or ""), listing)
    _extent(section, listing)
    key = section.names("key") or ()
    where = f"the key of {section.label}"
    if listing.has_columns(name, key, section.at("key"), where):
        listing.never_null(name, key, section.at("key"), where)
    return Table(
        name=name,
        columns=_with_sources(name, section, listing),
        unit=unit,
        key=key,
        foreign_keys=foreign_keys_of(name, section, units, listing),
        max_rows_per_unit=section.get("max_rows_per_unit", int) or 1,
        max_rows_per_group=section.get("max_rows_per_group", int),
        description=section.get("description", str) or "",
    )


def _unit_of(section: Section, units: dict[str, Unit], listing: Listing) -> str | None:
    """The unit that a table names; None for a public table."""
    unit, public = section.get("unit", str), section.get("public", bool)
    if unit is not None and public:
        listing.problems.add(
            section.at("public"), f"{section.label} is public and has a unit; keep one of the two"
        )
    elif unit is None and not public and not section.spoilt & {"unit", "public"}:
        listing.problems.add(
            section.place,
            f"{section.label} is neither public nor has a unit; "
            "write `unit: ..` or, if nothing in it is about a person, `public: true`",
        )
    elif unit is not None and unit not in units and "units" not in listing.lost:
        hint = instead(unit, units, "units")
        listing.problems.add(
            section.at("unit"), f'{section.label} has unit "{unit}", which is not listed; {hint}'
        )
    return unit


def _extent(section: Section, listing: Listing) -> None:
    """Check that private tables list columns, and that only they have bounds per unit."""
    limits = ("max_rows_per_unit", "max_rows_per_group")
    if section.get("public", bool):
        for key in limits:
            if key in section.given:
                listing.problems.add(
                    section.at(key),
                    f"{key} has no effect in {section.label}, which is public; remove it",
                )
        return
    if "columns" not in section.given.keys() | section.spoilt:
        listing.problems.add(
            section.place,
            f"{section.label} lacks `columns: ..`; a private table lists its columns",
        )
    rows, group = (section.get(key, int) for key in limits)
    if rows is not None and group is not None and group > rows:
        listing.problems.add(
            section.at("max_rows_per_group"),
            f"max_rows_per_group of {section.label} is above its max_rows_per_unit; "
            f"write at most {rows}, or remove it",
        )


def _with_sources(name: str, section: Section, listing: Listing) -> dict[str, Column]:
    """The columns of a table, with each ``values_from`` resolved."""
    found = dict(listing.columns[name])
    for column, part in section.sections("columns").items():
        source = part.get("values_from", str)
        if source is not None and column in found:
            place = _values_from(source, found[column], part, listing)
            found[column] = replace(found[column], values_from=place)
    return found


def _values_from(
    source: str, column: Column, part: Section, listing: Listing
) -> tuple[str, str] | None:
    at, where = part.at("values_from"), f"values_from of {part.label}"
    splits = [(source[:i], source[i + 1 :]) for i, letter in enumerate(source) if letter == "."]
    if not splits:
        listing.problems.add(at, f'{where} cannot be "{source}"; write table.column')
        return None
    table, other = next((split for split in splits if split[0] in listing.tables), splits[-1])
    if not listing.has_table(table, at, where):
        return None
    if not listing.public(table):
        if not listing.tables[table].spoilt & {"public", "unit"}:
            listing.problems.add(
                at,
                f"{where} names {table}, a private table; name a public one, or list them under values",
            )
        return None
    if not listing.has_columns(table, (other,), at, where):
        return None
    kind = listing.kind(table, other)
    if kind is not None and kind is not column.kind:
        listing.problems.add(
            at, f"{where} has type {kind.value}, not {column.kind.value}; name a column that fits"
        )
    return table, other
