"""Reads the foreign keys of one table, and checks that both ends exist and can be compared."""

from __future__ import annotations

from dpsql.policy.listing import Listing
from dpsql.policy.model import ForeignKey, Unit
from dpsql.policy.section import Section


def foreign_keys_of(
    table: str, section: Section, units: dict[str, Unit], listing: Listing
) -> tuple[ForeignKey, ...]:
    """The foreign keys of ``table`` that are sound; the others are reported."""
    found: list[ForeignKey] = []
    for part in section.listed("foreign_keys"):
        key = _foreign_key(table, part, units, listing)
        if key is None:
            continue
        if key in found:
            listing.problems.add(part.place, f"{part.label} is listed twice; remove one")
            continue
        found.append(key)
    return tuple(found)


def _foreign_key(
    table: str, part: Section, units: dict[str, Unit], listing: Listing
) -> ForeignKey | None:
    columns, target = part.names("columns"), part.get("references", str)
    if columns is None or target is None:
        return None
    here = listing.has_columns(table, columns, part.at("columns"), part.label)
    if not listing.has_table(target, part.at("references"), part.label) or not here:
        return None
    if listing.public(table) and not listing.public(target):
        listing.problems.add(
            part.at("references"),
            f"{part.label}, which is public, leads to the private table {target}; remove it",
        )
        return None
    key = (
        part.names("key") or listing.tables[target].names("key") or _key_of(target, units, listing)
    )
    if not key:
        if not _key_lost(target, part, listing):
            listing.problems.add(
                part.at("references"),
                f"{part.label} leads to {target}, which declares no key; "
                f"write `key: ..` there or in the foreign key",
            )
        return None
    if not listing.has_columns(target, key, part.at("key"), part.label):
        return None
    same = bool(part.get("same_unit", bool)) and _within_a_unit(table, target, part, units, listing)
    return _paired(table, part, ForeignKey(columns, target, key, same), listing)


def _within_a_unit(
    table: str, target: str, part: Section, units: dict[str, Unit], listing: Listing
) -> bool:
    """Whether rows of both tables may belong to the same unit; if not, it is reported."""
    mine, theirs = (listing.tables[name].get("unit", str) for name in (table, target))
    if listing.public(table) or listing.public(target):
        names = " and ".join(name for name in (table, target) if listing.public(name))
        why = f"{names} is public, so its rows have no unit"
    elif mine != theirs:
        why = f"rows of {table} belong to unit {mine} and rows of {target} to unit {theirs}"
    elif mine in units and units[mine].is_row:
        why = f"each row is a unit {mine} of its own"
    else:
        return True
    listing.problems.add(
        part.at("same_unit"), f"{part.label} says `same_unit`, but {why}; remove `same_unit`"
    )
    return False


def _key_of(target: str, units: dict[str, Unit], listing: Listing) -> tuple[str, ...]:
    """The key of the unit whose table this is; empty if there is none or it was reported."""
    if listing.lost:
        return ()
    return next((unit.key for unit in units.values() if unit.table == target and unit.key), ())


def _key_lost(target: str, part: Section, listing: Listing) -> bool:
    """Whether a key may have been written in a form that was reported."""
    return bool(
        listing.lost
        or "key" in part.spoilt | listing.tables[target].spoilt
        or any(unit.spoilt for unit in listing.units.values())
    )


def _paired(table: str, part: Section, key: ForeignKey, listing: Listing) -> ForeignKey | None:
    """The foreign key, if its columns pair with columns of the same kinds; else None."""
    if len(key.columns) != len(key.key):
        listing.problems.add(
            part.at("columns"),
            f"{part.label} equates ({', '.join(key.columns)}) with the key "
            f"({', '.join(key.key)}) of {key.references}; write as many columns",
        )
        return None
    sound = True
    for column, other in zip(key.columns, key.key, strict=True):
        here, there = listing.kind(table, column), listing.kind(key.references, other)
        if here is not None and there is not None and here is not there:
            sound = False
            listing.problems.add(
                part.at("columns"),
                f"{part.label} equates {column} ({here.value}) with {key.references}.{other} "
                f"({there.value}); give both the same type",
            )
    return key if sound else None
