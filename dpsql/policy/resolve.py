"""Finds the path from every private table to the unit of its rows."""

from __future__ import annotations

from dataclasses import replace

from dpsql.policy.listing import Listing
from dpsql.policy.model import ForeignKey, Table, Unit
from dpsql.policy.unit_columns import find_holders, limit_unit_rows, refuse_unused, without_table


def resolve(units: dict[str, Unit], tables: dict[str, Table], listing: Listing) -> dict[str, Table]:
    """The tables with ``path``, ``unit_columns`` and ``max_rows_per_unit`` filled in.

    Claim: following ``path`` from a row (each step by equal key columns) reaches at most one row,
        and ``unit_columns`` of the last table hold the key of one unit. Equal keys of a unit
        without a table are compared as one type in all its tables.
    Assumes: the key of every foreign key is unique in the table to which it leads, as the owner
        declared; this is verified before any question (``declarations.requirements``).
    Argument: the search starts from the tables that hold the unit's key and goes outwards. Each
        further table is one foreign key away from a table that was found before. A table with two
        such keys is reported as a problem of the policy.
    """
    done = dict(tables)
    for unit in units.values():
        own = {name: table for name, table in tables.items() if table.unit == unit.name}
        done |= _of_unit(unit, own, listing)
    return done


def _of_unit(unit: Unit, tables: dict[str, Table], listing: Listing) -> dict[str, Table]:
    """The tables of one unit, from those that hold its key outwards, nearest first."""
    if unit.table is None:
        refuse_unused(unit, tables, listing)
        found = find_holders(unit, tables, listing)
    else:
        found = {unit.table: _own(tables[unit.table], unit, listing)}
    wave = {name: _direct(table, unit) for name, table in tables.items() if name not in found}
    found |= _wave(wave, unit, tables, found, listing)
    while any((wave := _onward(unit, tables, found)).values()):
        found |= _wave(wave, unit, tables, found, listing)
    for name in wave:
        _unreached(tables[name], unit, tables, listing)
    return found


def _wave(
    wave: dict[str, list[ForeignKey]],
    unit: Unit,
    tables: dict[str, Table],
    found: dict[str, Table],
    listing: Listing,
) -> dict[str, Table]:
    """The tables that are one step from those ``found``, by the foreign keys of ``wave``."""
    reached = {}
    for name, leads in wave.items():
        _only_one(tables[name], leads, unit, listing)
        if leads:
            reached[name] = _led(tables[name], leads[0], unit, found, listing)
    return reached


def _onward(
    unit: Unit, tables: dict[str, Table], found: dict[str, Table]
) -> dict[str, list[ForeignKey]]:
    """For every table not found yet, its foreign keys to tables that were found."""
    known = set() if unit.is_row else set(found)
    return {
        name: [key for key in _ways(table) if key.references in known]
        for name, table in tables.items()
        if name not in found
    }


def _ways(table: Table) -> list[ForeignKey]:
    """The foreign keys that may lead to the unit of a row."""
    return [key for key in table.foreign_keys if not key.same_unit]


def _direct(table: Table, unit: Unit) -> list[ForeignKey]:
    """The foreign keys that hold the key of the unit itself."""
    return [
        key
        for key in _ways(table)
        if unit.key and key.references == unit.table and set(key.key) == set(unit.key)
    ]


def _own(table: Table, unit: Unit, listing: Listing) -> Table:
    """The table with one row per unit."""
    section = listing.tables[table.name]
    if table.max_rows_per_unit != 1:
        listing.problems.warn(
            section.at("max_rows_per_unit"),
            f"{section.label} has one row for each {unit.name}, as `table: {table.name}` of the unit"
            " says, so max_rows_per_unit has no effect; remove it. If a "
            f"{unit.name} may have several rows there, {without_table(unit.name, unit.key)}",
        )
    return replace(table, key=table.key or unit.key, unit_columns=unit.key, max_rows_per_unit=1)


def _led(
    table: Table, lead: ForeignKey, unit: Unit, found: dict[str, Table], listing: Listing
) -> Table:
    """``table`` with its path to the unit by the foreign key ``lead``."""
    target = found[lead.references]
    if lead in _direct(table, unit):
        column = dict(zip(lead.key, lead.columns, strict=True))
        table = replace(table, unit_columns=tuple(column[name] for name in unit.key))
    else:
        table = replace(table, path=(lead, *target.path), unit_columns=target.unit_columns)
    return limit_unit_rows(table, lead.columns, target.max_rows_per_unit, unit, listing)


def _only_one(table: Table, leads: list[ForeignKey], unit: Unit, listing: Listing) -> None:
    if len(leads) < 2:
        return
    ways = [f"({', '.join(key.columns)}) to {key.references}" for key in leads]
    section = listing.tables[table.name]
    listing.problems.add(
        section.at("foreign_keys"),
        f"{section.label} reaches unit {unit.name} equally by {' and by '.join(ways)}; "
        "remove the foreign key that does not say whose row it is, or write `same_unit: true` in it",
    )


def _unreached(table: Table, unit: Unit, tables: dict[str, Table], listing: Listing) -> None:
    """Report that no foreign key leads from ``table`` to the unit, with the reason."""
    section = listing.tables[table.name]
    place = section.at("foreign_keys") if table.foreign_keys else section.place
    if unit.is_row:
        why, write = (
            f"each row of {unit.table} is a unit {unit.name}, and only that table has such rows",
            "write another unit, or give the unit a key",
        )
    elif unit.table is None:
        missing = " and ".join(column for column in unit.key if column not in table.columns)
        lacks = f"it lists no column {missing}, and " if missing else ""
        why = lacks + _where_to(table, tables, listing)
        write = (
            "list the column that tells whose a row is (with `unit_key: ..` if it has another "
            "name), or write a foreign key onto a table that has it"
        )
    else:
        why = _where_to(table, tables, listing)
        write = (
            f"write a foreign key onto ({', '.join(unit.key)}) of {unit.table}, "
            f"or onto a table that has one"
        )
    listing.problems.add(place, f"no path from {section.label} to unit {unit.name}: {why}; {write}")


def _where_to(table: Table, tables: dict[str, Table], listing: Listing) -> str:
    """A description of where the foreign keys of ``table`` lead instead."""
    targets = list(dict.fromkeys(key.references for key in table.foreign_keys))
    if not targets:
        return "it has no foreign keys"
    if not _ways(table):
        return "every foreign key says `same_unit`, so none of them says whose row it is"
    if _circle(table.name, tables):
        return f"its foreign keys (to {', '.join(targets)}) lead in a circle"
    public = [name for name in targets if listing.public(name)]
    if public == targets:
        return f"its foreign keys lead to public tables only ({', '.join(public)})"
    return f"its foreign keys lead to {', '.join(targets)} and end there"


def _circle(start: str, tables: dict[str, Table]) -> bool:
    """Whether the foreign keys within one unit lead from ``start`` back to it."""
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        table = tables.get(ahead.pop())
        for key in table.foreign_keys if table else ():
            if key.references == start:
                return True
            if key.references not in seen:
                seen.add(key.references)
                ahead.append(key.references)
    return False
