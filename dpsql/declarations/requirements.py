"""The closed list of declarations of a policy that claims assume, each with how it is made true.

A ``verified`` declaration is compared with the data when a policy is opened, and again when it is
reloaded or checked. Where the data breaks it, no question is answered under the policy. An
``enforced`` declaration is made true by the statement itself, whatever the data is. A ``trusted``
one is about the world, so no data can show that it is false.

Claim: where every requirement of ``requirements`` finds nothing, each verified declaration holds
    for all rows that the engine has open, under the comparisons that generated statements use.
Assumes: the data does not change while the engine has it open (``engines.duckdb.engine``).
Argument: a statement compares stored values (the path to the unit) or values read as the type that
    the policy declares (everything else). ``_compared`` gives each form that may take different
    stored values for equal. GROUP BY and ``=`` of an engine agree on which values are equal. A key
    with a NULL matches nothing in a join, and its row belongs to no unit, so it breaks no
    requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from dpsql.bound.rows import keep
from dpsql.declarations.queries import (
    find_other_units,
    key_items,
    sum_or_zero,
    units_over_limit,
)
from dpsql.ir.expressions import Column
from dpsql.ir.statements import Alias, Fold, Name, Number, Op, Query, Read, Select
from dpsql.plan.table_scans import declared_columns, scan_all, stored_columns
from dpsql.policy.model import Policy, Table
from dpsql.policy.source import SourceDescription, TableDescription
from dpsql.policy.types import Kind
from dpsql.policy.unit_columns import without_table

Key = tuple[str, ...]
IDENTICAL = frozenset(
    {
        "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
        "UBIGINT", "HUGEINT", "DATE", "TIMESTAMP", "UUID",
    }
)  # fmt: skip
"""Types of the engine whose equal values are identical, also after a cast to a type of that kind."""
WIDE = frozenset({"BIGINT", "UBIGINT", "HUGEINT"})
"""Types of whole numbers of which several are read as the same double."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition that the data must meet.

    ``broken`` is a query that has a row if the data breaks it. ``counted`` is for the owner: its
    one row has the numbers that ``said`` names. ``place`` is where the policy declares it.
    Requirements with the same ``question`` have the same queries. The trees of two queries cannot
    be compared instead, since columns that differ only in their types are equal.
    """

    declaration: str
    table: str
    place: str
    question: tuple[str, ...]
    broken: Query
    counted: Query
    said: str
    instead: str


Requirements = Callable[[Policy, SourceDescription], Iterator[Requirement]]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A kind of declaration. ``by`` says where it is verified or enforced, or why it is trusted."""

    name: str
    how: Literal["verified", "enforced", "trusted"]
    by: str
    assumed_by: tuple[str, ...] = ()
    """The modules whose claims rest on it."""
    requirements: Requirements | None = None


def requirements(policy: Policy, source: SourceDescription) -> tuple[Requirement, ...]:
    """All requirements that must be looked up before a question is answered, each once."""
    found: dict[tuple[str, ...], Requirement] = {}
    for declaration in DECLARATIONS:
        if declaration.requirements is not None:
            for requirement in declaration.requirements(policy, source):
                found.setdefault(requirement.question, requirement)
    return tuple(found.values())


def _unit_keys(policy: Policy, source: SourceDescription) -> Iterator[Requirement]:
    """A unit's table has one row for each value of the unit's key."""
    for unit in policy.units.values():
        table = policy.tables.get(unit.table or "")
        if table is None or unit.is_row:
            continue
        key = ", ".join(unit.key)
        yield from _unique(
            policy, source, table, unit.key, "unit key",
            f"unit {unit.name} needs one row of {table.name} for each ({key}), but of {{0}} rows "
            f"there with {{1}} different ({key}), {{2}} have the same one as another row",
            f"if a {unit.name} may have several rows, {without_table(unit.name, unit.key)}, and "
            f"in table {table.name} `unit: {unit.name}` and `max_rows_per_unit: ..`; if not, "
            "remove the duplicate rows",
        )  # fmt: skip


def _table_keys(policy: Policy, source: SourceDescription) -> Iterator[Requirement]:
    """No two rows of a table share its ``key``: a join on it finds one row at most."""
    for table in policy.tables.values():
        if table.key:
            yield from _unique(
                policy, source, table, table.key, "table key",
                f"the key of table {table.name} is ({', '.join(table.key)}), but of {{0}} rows "
                "with {1} different keys, {2} have the same key as another row",
                "remove `key`, or name columns that tell the rows apart",
            )  # fmt: skip


def _referenced_keys(policy: Policy, source: SourceDescription) -> Iterator[Requirement]:
    """No two rows share a key that a foreign key refers to, so a row has at most one parent row."""
    for table in policy.tables.values():
        for step in table.foreign_keys:
            key = ", ".join(step.key)
            yield from _unique(
                policy, source, policy.tables[step.references], step.key, "referenced key",
                f"foreign keys of table {table.name} refer to ({key}) of {step.references}, but "
                f"of {{0}} rows there with {{1}} different ({key}), {{2}} have the same one as "
                "another row",
                f"let the foreign key refer to columns that tell the rows of {step.references} apart",
            )  # fmt: skip


def _same_units(policy: Policy, source: SourceDescription) -> Iterator[Requirement]:  # noqa: ARG001
    """A row has the same unit as the row that its foreign key leads to, where both have one."""
    for table in policy.tables.values():
        for step in table.foreign_keys:
            if not step.same_unit:
                continue
            pairs = find_other_units(table, step, policy.tables[step.references])
            columns = ", ".join(step.columns)
            yield Requirement(
                "same unit", table.name, _place(policy, table.name),
                ("same unit", table.name, *step.columns, step.references, *step.key),
                pairs, Select(Alias(pairs, "b"), (("rows", Fold("count")),)),
                f"`same_unit` says that ({columns}) of table {table.name} leads to rows of "
                f"{step.references} of the same {table.unit}, but {{0}} rows lead to rows of "
                "another one",
                f"remove `same_unit`; joins must then compare the key of {table.unit} on both "
                "sides",
            )  # fmt: skip


def _one_row(policy: Policy, source: SourceDescription) -> Iterator[Requirement]:  # noqa: ARG001
    """A unit has at most one row in a table with ``max_rows_per_unit: 1``."""
    for table in policy.tables.values():
        unit = policy.units.get(table.unit or "")
        if unit is None or unit.is_row or table.max_rows_per_unit > 1 or unit.table == table.name:
            continue
        several = units_over_limit(table)
        numbers = (("units", Fold("count")), ("rows", sum_or_zero("n")))
        yield Requirement(
            "one row per unit", table.name, _place(policy, table.name),
            ("one row per unit", table.name),
            several, Select(Alias(several, "b"), numbers),
            f"a {unit.name} has one row of table {table.name} at most, but {{0}} have several,"
            " {1} rows in all",
            f"write `max_rows_per_unit: ..`, the most rows that count of one {unit.name}, and "
            "remove a `key` that says otherwise",
        )  # fmt: skip


def _unique(
    policy: Policy, source: SourceDescription, table: Table, key: Key, declaration: str,
    said: str, instead: str,
) -> Iterator[Requirement]:  # fmt: skip
    """No two rows share a key, in each form in which statements compare it."""
    key = tuple(sorted(key))  # so that a key that is named in two orders is looked up once
    there = source.tables.get(table.name, TableDescription({}))
    held = [there.columns.get(name, "") for name in key]
    read = _read_apart(table, key, held)
    if read and set(held) <= IDENTICAL and any(columns <= set(key) for columns in there.unique):
        return
    for form, columns in _compared(table, key, read=read):
        rows = _count_by_key(table, key, columns)
        shared = Op(">", (Name("n"), Number(1)))
        numbers = (
            ("rows", sum_or_zero("n")), ("keys", Fold("count")), ("shared", sum_or_zero("n", shared)),
        )  # fmt: skip
        yield Requirement(
            declaration, table.name, _place(policy, table.name), ("unique", form, table.name, *key),
            Select(Alias(rows, "b"), keep(("n",)), where=(shared,)),
            Select(Alias(rows, "b"), numbers),
            said, instead,
        )  # fmt: skip


def _count_by_key(table: Table, key: Key, columns: tuple[Column, ...]) -> Query:
    """The number of rows (``n``) of each value of a key, where no part of it is NULL."""
    items = key_items(columns, key)
    names = tuple(name for name, _ in items)
    return Select(
        Alias(Read(scan_all(table, columns), items), "r"),
        (*keep(names), ("n", Fold("count"))),
        where=tuple(Op("is not null", (Name(name),)) for name in names),
        group=names,
    )


def _compared(
    table: Table, key: Key, *, read: bool
) -> Iterator[tuple[Literal["stored", "declared"], tuple[Column, ...]]]:
    """A key as it is stored, and also as statements read it where that may make values equal."""
    yield "stored", stored_columns(key)
    if not read:
        yield "declared", declared_columns(table)


def _read_apart(table: Table, key: Key, held: list[str]) -> bool:
    """Whether statements read different stored values of each part of a key as different values."""
    if not set(held) <= IDENTICAL | {"VARCHAR"}:
        return False
    doubles = (name in table.columns and table.columns[name].kind is Kind.DOUBLE for name in key)
    return not any(name in WIDE and double for name, double in zip(held, doubles, strict=True))


def _place(policy: Policy, table: str) -> str:
    return policy.places.get((table,), str(policy.path))


DECLARATIONS = (
    Declaration(
        "unit key", "verified", "dpsql.engines.verify.verify",
        ("dpsql.bound.sensitivity", "dpsql.policy.resolve", "dpsql.bound.reading"), _unit_keys,
    ),
    Declaration(
        "table key", "verified", "dpsql.engines.verify.verify",
        ("dpsql.sql.bind.join_rules", "dpsql.sql.bind.privacy", "dpsql.bound.reading",
         "dpsql.policy.resolve"), _table_keys,
    ),
    Declaration(
        "referenced key", "verified", "dpsql.engines.verify.verify",
        ("dpsql.policy.resolve", "dpsql.sql.bind.join_rules", "dpsql.rewrite.drop_unit_path",
         "dpsql.rewrite.shortcut", "dpsql.rewrite.late_unit_join", "dpsql.declarations.left_out",
         "dpsql.plan.fan_outs", "dpsql.engines.duckdb.guard.joins"), _referenced_keys,
    ),
    Declaration(
        "one row per unit", "verified", "dpsql.engines.verify.verify",
        ("dpsql.bound.sensitivity", "dpsql.bound.one_row", "dpsql.sql.bind.privacy"), _one_row,
    ),
    Declaration(
        "same unit", "verified", "dpsql.engines.verify.verify",
        ("dpsql.sql.bind.join_rules", "dpsql.sql.bind.determined"), _same_units,
    ),
    Declaration(
        "column type", "verified", "dpsql.policy.against_source.compare",
        ("dpsql.engines.duckdb.guard", "dpsql.sql.bind.join_rules"),
    ),
    Declaration(
        "several rows per unit", "enforced", "dpsql.rewrite.statement",
        ("dpsql.bound.sensitivity", "dpsql.price.halves", "dpsql.rewrite.shortcut"),
    ),
    Declaration("rows per group", "enforced", "dpsql.rewrite.statement", ("dpsql.bound.sensitivity",)),
    Declaration(
        "range", "enforced", "dpsql.bound.grid",
        ("dpsql.bound.sensitivity", "dpsql.bound.caps", "dpsql.bound.rows", "dpsql.engines.duckdb.guard.sizes"),
    ),
    Declaration(
        "values", "enforced", "dpsql.plan.cells",
        ("dpsql.reuse.consistent", "dpsql.reuse.pieces"),
    ),
    Declaration("not nullable", "enforced", "dpsql.engines.duckdb.relations", ("dpsql.sql.bind.sources",)),
    Declaration("path to a unit", "enforced", "dpsql.engines.duckdb.relations", ("dpsql.policy.resolve",)),
    Declaration("public table", "trusted", "only its owner knows what is public"),
    Declaration("group size", "trusted", "only its owner knows who belongs together"),
    Declaration("identifier", "trusted", "only its owner knows which values name people"),
    Declaration("row as a unit", "trusted", "only its owner knows that no person has two rows"),
)  # fmt: skip
"""The statement itself leaves out whatever is beyond a row limit, a range or a list of values. So
data that breaks one of these costs accuracy, never privacy. (``rewrite.shortcut`` and
``engines.duckdb.guard.seen`` choose statements without those bounds only where it was looked up
that the bounds change nothing.)"""
