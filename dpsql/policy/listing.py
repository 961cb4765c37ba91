"""The tables and units as they are written, with look-ups of the names that others refer to."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.policy.columns import read_columns
from dpsql.policy.document import Word
from dpsql.policy.model import Column
from dpsql.policy.problems import Place, Problems, instead
from dpsql.policy.section import Section
from dpsql.policy.types import Kind


@dataclass(frozen=True, slots=True)
class Listing:
    """The listed tables, units, columns and views.

    Names in a part that was reported already are taken to exist.
    """

    tables: dict[str, Section]
    units: dict[str, Section]
    columns: dict[str, dict[str, Column]]
    problems: Problems
    views: dict[str, Word] | None = field(default_factory=dict)
    """None if the views could not be read at all."""
    lost: frozenset[str] = frozenset()
    """``tables``, ``units``: could not be read at all. ``keys``: units have no usable key."""

    def public(self, table: str) -> bool:
        """Whether the table is declared public."""
        return self.tables[table].get("public", bool) or False

    def kind(self, table: str, column: str) -> Kind | None:
        """The kind of a column, if it is known."""
        found = self.columns[table].get(column)
        return found.kind if found else None

    def nullable(self, table: str, column: str) -> bool:
        """Whether a column is declared nullable."""
        found = self.columns[table].get(column)
        return found is not None and found.nullable

    def has_table(self, table: str, place: Place, where: str) -> bool:
        """Whether the table is listed; if not, it is reported."""
        if table in self.tables:
            return True
        if "tables" in self.lost:
            return False
        hint = instead(table, self.tables, "tables")
        self.problems.add(place, f'{where} names "{table}", which is not a listed table; {hint}')
        return False

    def has_columns(self, table: str, columns: tuple[str, ...], place: Place, where: str) -> bool:
        """Whether the table has the columns; missing ones are reported."""
        section = self.tables[table]
        known = section.sections("columns")
        if "columns" in section.spoilt or not known:
            return True
        for column in columns:
            if column not in known:
                hint = instead(column, known, "columns")
                self.problems.add(
                    place, f'{where} names "{column}", which is not a column of {table}; {hint}'
                )
        return all(column in known for column in columns)

    def never_null(self, table: str, columns: tuple[str, ...], place: Place, where: str) -> None:
        """Report nullable columns in a key, which needs a value in every row."""
        for column in columns:
            if self.nullable(table, column):
                self.problems.add(
                    place,
                    f"{where} holds {column}, which is nullable; "
                    "remove its `nullable: true` or choose another key",
                )


def listing_of(root: Section, problems: Problems) -> Listing:
    """The tables and units of a policy. Problems inside columns are reported here."""
    tables, units = root.sections("tables"), root.sections("units")
    columns = {name: read_columns(section, problems) for name, section in tables.items()}
    views = None if "views" in root.spoilt else root.texts("views")
    for name, word in (views or {}).items():
        if name.casefold() in {table.casefold() for table in tables}:
            problems.add(word.place, f'view "{name}" has the name of a table; rename one')
    return Listing(tables, units, columns, problems, views, root.spoilt & {"tables", "units"})
