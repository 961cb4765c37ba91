"""Compares the policy with the source: all that it lists must exist there, with fitting types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dpsql.diagnostics.quote import quote
from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.policy.model import Column, ForeignKey, Policy, Table, Unit
from dpsql.policy.problems import instead
from dpsql.policy.scalars import kind_of
from dpsql.policy.source import (
    SourceDescription,
    TableDescription,
    declared_as,
    is_read_as_held,
    keeps_apart,
    may_not_fit,
    policy_type,
    reads_alike,
    whole_decimal,
    why_unread,
)
from dpsql.policy.types import Kind, key_form
from dpsql.policy.unit_columns import without_table


def compare(policy: Policy, description: SourceDescription) -> Policy:
    """Return the policy with the columns of public tables filled in, or raise ``SourceMismatch``.

    The result depends on the catalog of the source only, never on rows.
    """
    comparison = _Comparison(policy, description)
    tables = comparison.filled()
    comparison.check(tables)
    if comparison.problems:
        raise SourceMismatch(*comparison.problems)
    return replace(policy, tables=dict(_with_held_types(tables, description)))


class _Comparison:
    """One policy, one description, and every mismatch between them."""

    def __init__(self, policy: Policy, description: SourceDescription) -> None:
        self._policy, self._source = policy, description
        self.problems: list[str] = []

    def _add(self, place: tuple[str, ...], what: str) -> None:
        where = self._policy.places.get(place, str(self._policy.path))
        line = f"{where}: {what}"
        if line not in self.problems:
            self.problems.append(line)

    def filled(self) -> dict[str, Table]:
        """The tables; those that list no columns get the columns of the source."""
        return {name: self._filled(table) for name, table in self._policy.tables.items()}

    def _filled(self, table: Table) -> Table:
        there = self._source.tables.get(table.name)
        if there is None:
            return table
        if table.columns:
            return replace(table, columns=_widened(table, there))
        columns = source_columns(there)
        for name in [name for name in there.columns if name not in columns]:
            held = there.columns[name]
            self._add(
                (table.name,),
                f"column {table.name}.{name} is {quote(held)} in the source, which dpsql does not read: "
                f"{why_unread(held)}; or leave it out: write the others under `columns:`",
            )
        return replace(table, columns=columns, key=table.key or _declared_key(there, columns))

    def check(self, tables: dict[str, Table]) -> None:
        """Report everything in the policy that the source contradicts."""
        for name, table in tables.items():
            there = self._source.tables.get(name)
            if there is None:
                hint = instead(name, self._source.tables, "tables of the source")
                self._add((name,), f"the source has no table {name}; {hint}")
                continue
            if there.unsteady:
                self._add((name,), _unsteady(name, there.unsteady))
            for column in table.columns.values():
                self._column(name, column, there)
                self._values_from(name, column, tables)
            self._unique(name, table.key, there)
            self._named(name, name, table.key, tables)
            for key in table.foreign_keys:
                self._foreign_key(name, key, tables)
        for unit in self._policy.units.values():
            if unit.table is None:
                self._unit_columns(unit, tables)
            elif unit.table in self._source.tables:
                self._unique(unit.table, unit.key, self._source.tables[unit.table])
                self._unit_key(unit, unit.table, self._source.tables[unit.table])

    def _column(self, table: str, column: Column, there: TableDescription) -> None:
        if column.name not in there.columns:
            hint = instead(column.name, there.columns, "columns of the source")
            self._add(
                (table, column.name),
                f"table {table} of the source has no column {column.name}; {hint}",
            )
            return
        held = there.columns[column.name]
        if " COLLATE " in held:
            self._add((table, column.name), _compared(table, column.name, held))
            return
        if column.kind not in _kinds(held):
            fits = policy_type(held)
            write = f"write `type: {fits}`" if fits else f"{why_unread(held)}; or remove the column"
            self._add(
                (table, column.name),
                f"column {table}.{column.name} is {held} in the source, "
                f"which is not {column.declared}; {write}",
            )

    def _values_from(self, name: str, column: Column, tables: dict[str, Table]) -> None:
        if column.values_from is None:
            return
        table, other = column.values_from
        if self._named(name, table, (other,), tables, column.name):
            held = tables[table].columns[other].kind
            if held is not column.kind:
                self._add(
                    (name, column.name),
                    f"values_from of column {name}.{column.name} has type {held.value}, "
                    f"not {column.kind.value}; name a column that fits",
                )

    def _foreign_key(self, name: str, key: ForeignKey, tables: dict[str, Table]) -> None:
        self._named(name, name, key.columns, tables)
        self._named(name, key.references, key.key, tables)
        self._comparable(name, key)
        if key.references in self._source.tables:
            self._unique(key.references, key.key, self._source.tables[key.references])

    def _comparable(self, name: str, key: ForeignKey) -> None:
        """Report ends of different types: a comparison that converts values could fail on a row."""
        mine, theirs = self._source.tables.get(name), self._source.tables.get(key.references)
        if mine is None or theirs is None:
            return
        for a, b in zip(key.columns, key.key, strict=True):
            here, there = mine.columns.get(a), theirs.columns.get(b)
            if here is None or there is None:
                continue
            alike = set(_kinds(here)) & set(_kinds(there))  # else the column was reported
            if alike and not _exactly_comparable(here, there):
                self._add(
                    (name, a),
                    f"{name}.{a} is {here} and {key.references}.{b} is {there} in the source; "
                    "give both one type there",
                )

    def _unit_key(self, unit: Unit, table: str, there: TableDescription) -> None:
        """Report a key of which several values are read as one: two units would be bounded as one.

        The key is verified as unique in its own table. Rows of other tables may have keys that are
        not there, and each of these is a unit too.
        """
        for column in unit.key:
            held = there.columns.get(column, "")
            if reads_alike(held):
                self._add(
                    (table, column),
                    f"{table}.{column} is the key of unit {unit.name} and {held} in the source, "
                    "which dpsql reads with less precision; make it BIGINT, VARCHAR or TIMESTAMP "
                    "there, also in the tables that lead to it",
                )

    def _unit_columns(self, unit: Unit, tables: dict[str, Table]) -> None:
        """Check the types of the key of a unit without a table: equal keys must read as equal."""
        first: dict[int, tuple[str, str]] = {}
        for table in tables.values():
            there = self._source.tables.get(table.name)
            if table.unit != unit.name or table.path or there is None:
                continue
            for part, column in enumerate(table.unit_columns):
                held = there.columns.get(column)
                if held is None:
                    continue
                if not keeps_apart(held):
                    self._add(
                        (table.name, column),
                        f"{table.name}.{column} is the key of unit {unit.name} and {held} in the "
                        "source, which dpsql reads with less range or precision; make it BIGINT, "
                        "VARCHAR or TIMESTAMP there",
                    )
                name, other = first.setdefault(part, (f"{table.name}.{column}", held))
                if key_form(policy_type(held)) != key_form(policy_type(other)):
                    self._add(
                        (table.name, column),
                        f"{name} is {other} and {table.name}.{column} is {held} in the source, "
                        f"and both are the key of unit {unit.name}; give both one type there",
                    )

    def _named(
        self,
        name: str,
        table: str,
        columns: Iterable[str],
        tables: dict[str, Table],
        part: str | None = None,
    ) -> bool:
        """Whether ``table`` has the columns that table ``name`` refers to; else it is reported."""
        if table not in self._source.tables:
            return False
        known = tables[table].columns
        missing = [column for column in columns if column not in known]
        for column in missing:
            hint = instead(column, known, "columns")
            self._add(
                (name, part) if part else (name,),
                f'table {name} names "{column}", which is not a column of {table}; {hint}',
            )
        return not missing

    def _unique(self, table: str, key: tuple[str, ...], there: TableDescription) -> None:
        """Report a key that the constraints of the source contradict.

        No constraint can prove that a key is not unique. But if there is a constraint over more
        columns, and none over these, the designer of the table did not take the key for unique.
        Bounds per unit would then have no basis.
        """
        held = set(key)
        wider = [columns for columns in there.unique if held and held < columns]
        if wider and not any(columns <= held for columns in there.unique):
            columns = ", ".join(name for name in there.columns if name in wider[0])
            self._add(
                (table,),
                f"({', '.join(key)}) is a key of table {table} in the policy, but in the source "
                f"only ({columns}) is unique: several rows may share it; "
                f"{self._otherwise(table, key)}, or declare the constraint in the source",
            )

    def _otherwise(self, table: str, key: tuple[str, ...]) -> str:
        """The suggestion for a key that rows may share."""
        units = self._policy.units.values()
        unit = next((u.name for u in units if u.table == table and set(u.key) == set(key)), None)
        return without_table(unit, key) if unit is not None else "choose another key"


def _unsteady(table: str, why: str) -> str:
    """Why a view is not read, and what to read instead."""
    return (
        f"the rows of {table} in the source must follow from its stored rows alone: {why}; what is "
        "verified of them once could be false later; let the policy name a table that is made of it "
        "(CREATE TABLE .. AS SELECT ..), or write the definition without that"
    )


def _compared(table: str, column: str, held: str) -> str:
    """Why a text column with a collation is not read, and how it can be read."""
    return (
        f"column {table}.{column} is {held} in the source: texts that its collation takes for equal "
        "would be one group, named by whichever row came first; let the policy name a view that has "
        f'{column} COLLATE "binary" AS {column}, or lower({column}) COLLATE "binary" AS {column}'
    )


def _declared_key(there: TableDescription, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """The key of a public table: its shortest unique constraint, which may be trusted."""
    usable = [tuple(sorted(key)) for key in there.unique if key <= columns.keys()]
    return min(usable, key=lambda key: (len(key), key), default=())


def source_columns(there: TableDescription) -> dict[str, Column]:
    """The columns of a table of the source, without those of types that dpsql does not read."""
    found = {}
    for name, held in there.columns.items():
        declared = policy_type(held)
        if declared is not None:
            nullable = name not in there.not_null
            found[name] = Column(name, declared, kind_of(declared), nullable=nullable)
    return found


def _widened(table: Table, there: TableDescription) -> dict[str, Column]:
    """The columns, with types that hold all values of the source's types."""
    return {
        name: replace(column, declared=declared_as(column.declared, there.columns[name]))
        if name in there.columns
        else column
        for name, column in table.columns.items()
    }


def _with_held_types(
    tables: Mapping[str, Table], description: SourceDescription
) -> Iterator[tuple[str, Table]]:
    """The tables, with ``held_as_read`` set for columns stored in the type they are read as.

    ``computed`` is set for views that compute a row from several rows.
    Values that do not fit into that type are read as NULL, so columns that may have such values
    become nullable. Both ends of a foreign key are read in the same way: if one of them is stored
    in another type, neither counts as stored in the type it is read as.
    """
    held = {
        (name, column.name)
        for name, table in tables.items()
        for column in table.columns.values()
        if is_read_as_held(column.kind, description.tables[name].columns[column.name])
    }
    pairs = [
        {(name, a), (key.references, b)}
        for name, table in tables.items()
        for key in table.foreign_keys
        for a, b in zip(key.columns, key.key, strict=True)
    ]
    for _ in pairs:  # a column may be an end of several keys
        held -= {end for pair in pairs if not pair <= held for end in pair}
    for name, table in tables.items():
        there = description.tables[name].columns
        columns = {
            column.name: replace(
                column, held_as_read=(name, column.name) in held,
                nullable=column.nullable or may_not_fit(column.kind, there[column.name]),
            )
            for column in table.columns.values()
        }  # fmt: skip
        yield name, replace(table, columns=columns, computed=_is_computed(table, description))


def _is_computed(table: Table, description: SourceDescription) -> bool:
    """Whether the table, or a table on its path to the unit, is a view that adds rows up."""
    names = (table.name, *(step.references for step in table.path))
    return any(description.tables[name].computed for name in names)


_WHOLE = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
)


def _exactly_comparable(here: str, there: str) -> bool:
    """Whether an engine compares all values of the two types without rounding.

    Otherwise a row could match two rows with different keys, or a comparison could fail.
    """
    if here == there:
        return True
    both = {here.upper(), there.upper()}
    whole = all(held in _WHOLE or whole_decimal(held) for held in both)
    texts = all(policy_type(held) == "text" for held in both)
    return whole or texts or both <= _WHOLE | {"HUGEINT"} or both <= {"FLOAT", "DOUBLE"}


def _kinds(held: str) -> tuple[Kind, ...]:
    """The kinds that a column of an engine type can be read as."""
    declared = policy_type(held)
    if declared is None:
        return ()
    kind = kind_of(declared)
    if kind is Kind.INTEGER or whole_decimal(held):
        return (Kind.INTEGER, Kind.DOUBLE)
    return (kind,)
