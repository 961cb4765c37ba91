"""dpsql's own tables: ``dpsql.budget``, ``dpsql.ledger``, ``dpsql.policy``. Free, and of one's own role.

Claim: what they hold follows from policy and ledger, and shows a role nothing but its own entries.
They are read by statements of one form: columns, ORDER BY one of them, LIMIT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.ledger.charge import ATTO, NANO
from dpsql.plan.nodes import Plan
from dpsql.policy.model import Column
from dpsql.policy.types import Kind
from dpsql.service.reply import Remaining, Reply, made
from dpsql.sql.relations import Scan, walk

if TYPE_CHECKING:
    from dpsql.service.service import Service

Row = Sequence[object]
Columns = tuple[tuple[str, Kind], ...]
NEWEST = 1000
"""As many entries of the ledger are looked at, from the newest on."""

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
    ),
    "ledger": (
        ("hold", Kind.INTEGER),
        ("time", Kind.TEXT),
        ("state", Kind.TEXT),
        ("session", Kind.TEXT),
        ("epsilon", Kind.DOUBLE),
        ("delta", Kind.DOUBLE),
        ("statement", Kind.TEXT),
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
_NAME = r'(?:"[^"]+"|\w+)'
_SELECT = re.compile(
    rf"\s*select\s+(?P<columns>\*|{_NAME}(?:\s*,\s*{_NAME})*)\s+from\s+"
    rf'"?dpsql"?\s*\.\s*"?(?P<table>{"|".join(_COLUMNS)})"?'
    rf"(?:\s+order\s+by\s+(?P<order>{_NAME})(?:\s+(?P<way>asc|desc))?)?"
    r"(?:\s+limit\s+(?P<limit>\d{1,9}))?\s*;?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Own:
    """A statement over one of dpsql's own tables; no columns means all."""

    table: str
    columns: tuple[str, ...] = ()
    order: str | None = None
    descending: bool = False
    limit: int | None = None


def asked_for(text: str) -> Own | None:
    """What a statement asks of dpsql's own tables; None when it is about something else.

    >>> asked_for("SELECT account, left_epsilon FROM dpsql.budget LIMIT 1")
    Own(table='budget', columns=('account', 'left_epsilon'), order=None, descending=False, limit=1)
    >>> asked_for("SELECT COUNT(*) FROM orders")
    """
    found = _SELECT.fullmatch(text)
    if found is None:
        return None
    listed = found["columns"]
    columns = () if listed == "*" else tuple(_plain(c) for c in listed.split(","))
    return Own(
        found["table"].lower(),
        columns,
        None if found["order"] is None else _plain(found["order"]),
        (found["way"] or "").lower() == "desc",
        None if found["limit"] is None else int(found["limit"]),
    )


def content(own: Own, service: Service, role: str, budget: Sequence[Remaining]) -> Reply:
    """The rows that the role may see."""
    chosen = columns(own)
    known = _COLUMNS[own.table]
    names = [name for name, _ in known]
    makers: dict[str, Callable[[], Iterator[Row]]] = {
        "budget": lambda: map(budget_row, budget),
        "ledger": lambda: _ledger(service, role),
        "policy": lambda: _policy(service, role),
    }
    rows = list(makers[own.table]())
    if own.order is not None:
        at = names.index(own.order)
        rows.sort(key=lambda row: (row[at] is None, row[at]), reverse=own.descending)
    places = [names.index(name) for name, _ in chosen]
    kept = [[row[i] for i in places] for row in rows[: own.limit]]
    return made("SELECT", chosen, kept)


def columns(own: Own) -> Columns:
    """The columns that a statement asks for; nothing is looked up."""
    known = dict(_COLUMNS[own.table])
    for wanted in (*own.columns, *([own.order] if own.order else [])):
        if wanted not in known:
            raise Refused(_no_column(own.table, wanted, list(known)))
    return tuple((name, known[name]) for name in own.columns or known)


def budget_row(r: Remaining) -> Row:
    """An account as a row of ``dpsql.budget``."""
    numbers = (r.epsilon, r.delta, r.spent_epsilon, r.spent_delta, r.left_epsilon, r.left_delta)
    renews = None if r.renews is None else r.renews.replace(tzinfo=None)
    return [r.account, *(float(n) for n in numbers), renews]


BUDGET = _COLUMNS["budget"]


def tables_read(plan: Plan) -> frozenset[str]:
    """The private tables that the measurements of a plan read, the way to their units included."""
    scans = [r for m in plan.measurements for r in walk(m.input) if isinstance(r, Scan)]
    tables = [scan.table for scan in scans if not scan.table.public]
    return frozenset([t.name for t in tables] + [k.references for t in tables for k in t.path])


def _ledger(service: Service, role: str) -> Iterator[Row]:
    """The role's own charges, newest first."""
    holds: dict[int, dict[str, Any]] = {}
    for record in service.ledger.latest(NEWEST):
        content = record.content
        if record.hold in holds:
            holds[record.hold]["state"] = content["state"]
        elif content.get("role") == role:
            holds[record.hold] = content
    for hold, content in reversed(holds.items()):
        epsilon, delta = content["charge"][:2]
        yield (
            hold,
            content["time"][:19],
            content["state"],
            content["session"],
            float(Fraction(epsilon, NANO)),
            float(Fraction(delta, ATTO)),
            content["statement"],
        )


def _policy(service: Service, role: str) -> Iterator[Row]:
    """The tables and columns that the role sees, with what is public about their values."""
    visible = service.catalog(role).visible
    for table in service.policy.tables.values():
        if table.name in visible:
            for column in table.columns.values():
                yield (
                    table.name,
                    column.name,
                    column.declared,
                    column.nullable,
                    table.unit,
                    _values(column),
                    column.description or table.description or None,
                )
    for view in service.views.values():
        if view.name in visible:
            for column in view.columns:
                nullable, values = column.nullable, _values(column)
                yield view.name, column.name, column.declared, nullable, view.unit, values, None


def _values(column: Column) -> str | None:
    if column.range is not None:
        return f"{column.range[0]} .. {column.range[1]}"
    if column.values_from is not None:
        return f"those of {'.'.join(column.values_from)}"
    return None if column.values is None else ", ".join(map(str, column.values))


def _plain(name: str) -> str:
    return name.strip().strip('"').lower()


def _no_column(table: str, name: str, names: Sequence[str]) -> Refusal:
    return Refusal(
        "DP105",
        f'dpsql.{table} has no column "{name}"',
        "It is made by dpsql, and has the columns that are listed here.",
        f"Known: {', '.join(names)}.",
    )
