"""dpsql's own tables: ``dpsql.budget``, ``.ledger``, ``.remaining`` and ``.policy``.

They are public tables of a catalog of their own. Statements over them are bound and answered like
any other, with WHERE, GROUP BY, joins and windows, and cost nothing. No statement reads both them
and tables of the data.

Claim: their rows depend only on the policy, on public tables and on the ledger. A role does not see
    single charges of another role, unless the policy calls it an owner. It does see how much the
    accounts that it shares with other roles have left.
Assumes: each record of the ledger names the role that asked.
Argument: ``ledger`` leaves out records of other roles, except for an owner. ``budget`` and
    ``remaining`` are made of the accounts that the session is charged to; for an owner, ``budget``
    has the accounts of all roles too. ``policy`` is made of the tables and views that the role may
    see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.engines.duckdb.groups import write_public
from dpsql.execution import check, take
from dpsql.ir.public_groups import PublicGroups
from dpsql.ir.relations import Scan, walk_relations
from dpsql.ledger.charge import ATTO, NANO
from dpsql.plan.nodes import Plan, PublicQuery
from dpsql.policy.model import Column, Policy, Table
from dpsql.policy.types import Kind, type_name
from dpsql.release.postprocess import PostProcessor
from dpsql.release.rows import ARROW
from dpsql.service.overview import Columns, Relation, Row
from dpsql.service.parts import ServiceParts
from dpsql.service.plain import optional
from dpsql.service.reply import Remaining
from dpsql.service.views import ViewShape
from dpsql.sql.bind.context import Catalog
from dpsql.sql.own import ESTIMATE, ESTIMATED, estimated_tables
from dpsql.sql.parse import Source, parse

SCHEMA = "dpsql"
NEWEST = 100_000
"""The number of records that ``dpsql.ledger`` reads from the ledger: the newest ones."""
CUT = (
    f"dpsql.ledger shows the newest {NEWEST:,} records; the owner sees all of them with dpsql audit"
)
_NAMED = re.compile(rf'["`]?\b{SCHEMA}\b["`]?\s*\.|\b{ESTIMATE}\b', re.IGNORECASE)

_COLUMNS: dict[str, Columns] = {
    "budget": (
        ("account", Kind.TEXT),
        ("epsilon", Kind.DOUBLE),
        ("delta", Kind.DOUBLE),
        ("spent_epsilon", Kind.DOUBLE),
        ("spent_delta", Kind.DOUBLE),
        ("left_epsilon", Kind.DOUBLE),
        ("left_delta", Kind.DOUBLE),
        ("renews", Kind.TIMESTAMP),
        ("rho", Kind.DOUBLE),
        ("spent_rho", Kind.DOUBLE),
        ("left_rho", Kind.DOUBLE),
    ),
    "ledger": (
        ("hold", Kind.INTEGER),
        ("time", Kind.TIMESTAMP),
        ("state", Kind.TEXT),
        ("role", Kind.TEXT),
        ("session", Kind.TEXT),
        ("epsilon", Kind.DOUBLE),
        ("delta", Kind.DOUBLE),
        ("statement", Kind.TEXT),
    ),
    "remaining": (
        ("table_name", Kind.TEXT),
        *zip(ESTIMATED, (Kind.INTEGER, Kind.DOUBLE, Kind.TEXT, Kind.DOUBLE), strict=True),
    ),
    "policy": (
        ("table_name", Kind.TEXT),
        ("column_name", Kind.TEXT),
        ("type", Kind.TEXT),
        ("nullable", Kind.BOOLEAN),
        ("unit", Kind.TEXT),
        ("values", Kind.TEXT),
        ("description", Kind.TEXT),
    ),
}
TABLES = {
    name: Table(
        name, {c: Column(c, kind.value, kind, nullable=True) for c, kind in columns}, unit=None
    )
    for name, columns in _COLUMNS.items()
}
BUDGET = _COLUMNS["budget"]


def asked_for(source: Source) -> bool:
    """Whether a statement reads these tables.

    >>> asked_for(Source("SELECT account FROM dpsql.budget WHERE left_epsilon < 1"))
    True
    >>> asked_for(Source("SELECT 'dpsql.budget' FROM orders"))
    False
    """
    return _NAMED.search(source.text) is not None and SCHEMA in parse(source).schemas


def catalog(whole: Catalog, source: Source) -> Catalog:
    """A catalog in which a statement finds these tables, and none of the data.

    Refuses an estimate for a table that is not a private table of this role.
    """
    tables = whole.policy.tables
    known = sorted(t for t in whole.visible & tables.keys() if not tables[t].public)
    for name, place in estimated_tables(parse(source).tree):
        if name not in (table.lower() for table in known):
            raise Refused(_no_table(name, known, place), text=source.text)
    policy: Policy = replace(whole.policy, tables=TABLES, views={}, units={})
    return Catalog(policy, whole.now, frozenset(TABLES), {}, (SCHEMA,))


def _no_table(name: str, known: Sequence[str], place: Span | None) -> Refusal:
    return Refusal(
        "DP104",
        f'there is no private table "{name}"',
        "Only tables that the policy lists for this role can be asked about.",
        f"Known: {', '.join(known)}.",
        place,
    )


@dataclass(frozen=True, slots=True)
class OwnTables:
    """Reads statements over these tables, as an engine reads those over public ones."""

    service: ServiceParts
    role: str
    budget: Callable[[], Sequence[Remaining]]
    postprocessor: PostProcessor
    remaining: Callable[[], Iterator[Row]]

    def read_public(self, query: PublicQuery) -> pa.Table:
        """The rows of a query. Only the tables that it reads are built."""
        makers: Mapping[str, Callable[[], Iterator[Row]]] = {
            "budget": lambda: map(budget_row, self.budget()),
            "ledger": lambda: _ledger(self.service, self.role),
            "remaining": self.remaining,
            "policy": lambda: _policy(self.service, self.role),
        }
        read = _tables_of(query)
        tables = {n: _table(n, make()) for n, make in makers.items() if n in read}
        return self.postprocessor.run(write_public(query), tables)


def _tables_of(query: PublicQuery) -> frozenset[str]:
    """The names of the tables that a query reads; groups of constants read none."""
    if isinstance(query.source, PublicGroups):
        return frozenset()
    return frozenset(r.table.name for r in walk_relations(query.source) if isinstance(r, Scan))


def _table(name: str, rows: Iterator[Row]) -> pa.Table:
    found, columns = list(rows), _COLUMNS[name]
    arrays = [
        pa.array([row[i] for row in found], ARROW[kind]) for i, (_, kind) in enumerate(columns)
    ]
    return pa.Table.from_arrays(arrays, names=[column for column, _ in columns])


def notes(plan: Plan, service: ServiceParts) -> tuple[str, ...]:
    """The notes of an answer from these tables: whether records of the ledger were left out."""
    read = any("ledger" in _tables_of(public) for public in plan.publics)
    latest = service.ledger.latest(1) if read else ()
    return (CUT,) if latest and latest[0].seq > NEWEST else ()


def budget_row(r: Remaining) -> Row:
    """The row of ``dpsql.budget`` for an account."""
    numbers = (r.epsilon, r.delta, r.spent_epsilon, r.spent_delta, r.left_epsilon, r.left_delta)
    renews = None if r.renews is None else r.renews.replace(tzinfo=None)
    in_rho = map(optional, (r.rho, r.spent_rho, r.left_rho))
    return [r.account, *(float(n) for n in numbers), renews, *in_rho]


def tables_read(plan: Plan) -> frozenset[str]:
    """The private tables that the measurements of a plan read.

    This includes the tables on the foreign-key paths that lead to their units.
    """
    scans = [r for m in plan.measurements for r in walk_relations(m.input) if isinstance(r, Scan)]
    tables = [scan.table for scan in scans if not scan.table.public]
    return frozenset([t.name for t in tables] + [k.references for t in tables for k in t.path])


def _ledger(service: ServiceParts, role: str) -> Iterator[Row]:
    """The charges that the role may see, newest first. No other charge is kept in memory."""
    holds: dict[int, list[object]] = {}
    everything = service.policy.roles[role].owner
    newest = service.ledger.latest(1)
    for record in service.ledger.events(newest[0].seq - NEWEST if newest else 0):
        check()
        if not record.intact:
            service.ledger.latest(NEWEST)  # raises an error that names the damaged record
        content = record.content
        if record.hold in holds:
            holds[record.hold][_STATE] = content["state"]
        elif "role" in content and (everything or content["role"] == role):
            take(len(content["statement"]) + _ROW)
            holds[record.hold] = _charge(record.hold, content)
    return reversed(holds.values())


_STATE = [name for name, _ in _COLUMNS["ledger"]].index("state")
_ROW = 500
"""The bytes that a charge takes in memory, apart from the text of its statement."""


def _charge(hold: int, content: Mapping[str, Any]) -> list[object]:
    epsilon, delta = content["charge"][:2]
    return [
        hold,
        datetime.fromisoformat(content["time"]).replace(tzinfo=None),
        content["state"],
        content["role"],
        content["session"],
        float(Fraction(epsilon, NANO)),
        float(Fraction(delta, ATTO)),
        content["statement"],
    ]


def _policy(service: ServiceParts, role: str) -> Iterator[Row]:
    """The columns of the relations that the role sees, with their public values or ranges."""
    for relation in relations(service, role):
        for name, kind, nullable, values, about in relation.columns:
            shown = about or relation.description
            yield relation.name, name, kind, nullable, relation.unit, values, shown


def relations(
    service: ServiceParts, role: str, temporary: Sequence[ViewShape] = ()
) -> Iterator[Relation]:
    """The tables and views that the role sees, and the temporary views of its session."""
    visible = service.catalog(role).visible
    for table in service.policy.tables.values():
        if table.name in visible:
            columns = tuple(_column(_seen(c, service, visible)) for c in table.columns.values())
            yield Relation(table.name, "table", table.unit, table.description or None, columns)
    seen = [view for view in service.views.values() if view.name in visible]
    for kind, views in (("view", seen), ("temporary view", temporary)):
        for view in views:
            yield Relation(view.name, kind, view.unit, None, tuple(map(_column, view.columns)))


def _seen(column: Column, service: ServiceParts, visible: AbstractSet[str]) -> Column:
    """The column as the role may know it.

    If its values come from a table that the role does not see, they are listed without that name.
    """
    source = column.values_from
    if source is None or source[0] in visible:
        return column
    return replace(column, values_from=None, values=service.public_values[source])


def _column(column: Column) -> Row:
    """The row of a column. A table and a view over it describe a column in the same words."""
    declared = type_name(column.declared) or column.declared
    return column.name, declared, column.nullable, _values(column), column.description or None


def _values(column: Column) -> str | None:
    if column.range is not None:
        return f"{column.range[0]} .. {column.range[1]}"
    if column.values_from is not None:
        return f"those of {'.'.join(column.values_from)}"
    if column.values is None or set(column.values) == {False, True}:
        return None
    return ", ".join(map(str, column.values))
