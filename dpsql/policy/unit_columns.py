"""Tables that hold the key of their unit themselves, if the unit has no table of its own.

All rows with equal keys, in any of these tables, belong to one unit. So the keys of different
tables must have one type: a key that is written in two ways would be two units.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.policy.listing import Listing
from dpsql.policy.model import Column, Table, Unit
from dpsql.policy.section import Section
from dpsql.policy.types import Kind, key_form

KEY_KINDS = (Kind.INTEGER, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN)
"""Kinds in which equal values are identical."""


def without_table(unit: str, key: tuple[str, ...]) -> str:
    """The suggestion for a table that has several rows of one unit.

    >>> without_table("student", ("s",))
    'write `units: {student: {key: s}}`, without `table`'
    """
    listed = key[0] if len(key) == 1 else f"[{', '.join(key)}]"
    return f"write `units: {{{unit}: {{key: {listed}}}}}`, without `table`"


def find_holders(unit: Unit, tables: dict[str, Table], listing: Listing) -> dict[str, Table]:
    """The tables with all columns of the key, each with its ``unit_columns``."""
    found: dict[str, Table] = {}
    for name, table in tables.items():
        columns = _columns(table, unit, listing)
        if columns:
            _same_kinds(table, columns, found, unit, listing)
            holder = replace(table, unit_columns=columns)
            found[name] = limit_unit_rows(holder, columns, 1, unit, listing)
    for table in tables.values():
        _not_onto_units(table, found, unit, listing)
    return found


def limit_unit_rows(
    table: Table, columns: tuple[str, ...], rows: int, unit: Unit, listing: Listing
) -> Table:
    """The table with ``max_rows_per_unit``: as written, or ``rows`` if its key allows no more.

    ``columns`` lead to the unit. If they contain the table's key, each of their values has one row.
    """
    section = listing.tables[table.name]
    if section.get("max_rows_per_unit", int) or "max_rows_per_unit" in section.spoilt:
        return table
    if table.key and set(table.key) <= set(columns):
        return replace(table, max_rows_per_unit=rows)
    listing.problems.add(
        section.place,
        f"{section.label} may hold several rows per {unit.name}; "
        "write `max_rows_per_unit: ..` (rows beyond it do not count)",
    )
    return table


def refuse_unused(unit: Unit, tables: dict[str, Table], listing: Listing) -> None:
    """Report a unit without a table that no table names."""
    if not tables:
        section = listing.units[unit.name]
        listing.problems.add(
            section.place,
            f"{section.label} has no table, and no table names it; "
            f"write `unit: {unit.name}` in the tables that hold its key, or remove it",
        )


def _columns(table: Table, unit: Unit, listing: Listing) -> tuple[str, ...]:
    """The columns of a table that hold the key: its ``unit_key``, or those named like the key."""
    written = listing.tables[table.name].names("unit_key")
    if written is None:
        return unit.key if set(unit.key) <= table.columns.keys() else ()
    return written


def written_key(name: str, section: Section, unit: Unit | None, listing: Listing) -> None:
    """Check a table's ``unit_key``: its columns exist, and the unit has such a key and no table."""
    written, at = section.names("unit_key"), section.at("unit_key")
    if written is None:
        return
    where = f"unit_key of {section.label}"
    listing.has_columns(name, written, at, where)
    if unit is None:
        listing.problems.add(at, f"{where} has no effect, since the table has no unit; remove it")
    elif unit.table is not None:
        listing.problems.add(
            at,
            f"{where} is for units without a table, and unit {unit.name} has table {unit.table}; "
            "write a foreign key onto it",
        )
    elif len(written) != len(unit.key):
        listing.problems.add(
            at,
            f"{where} is ({', '.join(written)}), but the key of unit {unit.name} is "
            f"({', '.join(unit.key)}); write as many columns, in that order",
        )


def _same_kinds(
    table: Table, columns: tuple[str, ...], others: dict[str, Table], unit: Unit, listing: Listing
) -> None:
    """Check that key columns are of kinds that identify units, and of the same types everywhere."""
    section = listing.tables[table.name]
    for part, name in enumerate(columns):
        column, kind = table.columns[name], table.columns[name].kind
        place = section.sections("columns")[name].place
        if kind not in KEY_KINDS:
            listing.problems.add(
                place,
                f"{section.label} holds the key of unit {unit.name} in {name}, a number with "
                "fractions; a key is of type bigint, text, date, timestamp or boolean",
            )
            continue
        for other in others.values():
            there = other.columns[other.unit_columns[part]]
            if _form(there) != _form(column):
                listing.problems.add(
                    place,
                    f"{section.label} holds the key of unit {unit.name} in {name} "
                    f"({column.declared}), table {other.name} in {there.name} "
                    f"({there.declared}); give both the same type",
                )
                break


def _form(column: Column) -> tuple[Kind, str]:
    """The form in which keys are compared."""
    return column.kind, key_form(column.declared)


def _not_onto_units(table: Table, found: dict[str, Table], unit: Unit, listing: Listing) -> None:
    """Report foreign keys to a unit's key that several rows may share: they must lead to one."""
    for key, part in zip(
        table.foreign_keys, listing.tables[table.name].listed("foreign_keys"), strict=True
    ):
        target = found.get(key.references)
        if target is None or not set(key.key) <= set(target.unit_columns):
            continue
        if target.max_rows_per_unit > 1:
            listing.problems.add(
                part.at("references"),
                f"{part.label} leads to ({', '.join(key.key)}) of {target.name}, which all rows "
                f"of one {unit.name} share; remove it (`unit_key: ..` names columns that hold "
                "the key of the unit)",
            )
