"""Makes catalog rows from a policy: tables, columns, keys, comments.

No row holds a count or a statistic of the data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Any

from dpsql.policy.model import Column, Policy, Table
from dpsql.policy.types import Scalar, type_name
from dpsql.serve.pgwire.oids import SIZES, TEXT, of_type
from dpsql.service.views import ViewShape

Row = Mapping[str, Any]
Rows = dict[str, list[Row]]

PUBLIC_SCHEMA, PG_CLASS = 2200, 1259
OWNER, PUBLIC_OWNER = 10, 6171
"""The oids of the role that owns everything and of ``pg_database_owner``.

Nobody can log in as one of these roles.
"""
_FIRST_OWN_OID = 16384


def oid(*path: str) -> int:
    """The oid of a name. It depends on the name alone, since clients send oids back later."""
    digest = hashlib.sha256("\0".join(path).encode()).digest()
    return _FIRST_OWN_OID + int.from_bytes(digest[:4], "big") % (2**31 - _FIRST_OWN_OID)


def policy_rows(
    policy: Policy, role: str, settings: Mapping[str, str], views: Mapping[str, ViewShape]
) -> Rows:
    """All rows that one role sees, except PostgreSQL's own."""
    tables = policy.roles[role].tables
    visible = [t for t in policy.tables.values() if tables is None or t.name in tables]
    names = {t.name for t in visible}
    rows: Rows = {}
    linked = {t.name for t in visible if t.foreign_keys}
    linked |= {key.references for t in visible for key in t.foreign_keys}
    for table in visible:
        _table(rows, table, role, linked=table.name in linked)
        _described(rows, table, _about_table(policy, table), names)
        for number, key in enumerate(table.foreign_keys):
            if key.references in names:
                _foreign_key(rows, policy, table, number)
    for view in views.values():
        if tables is None or view.name in tables:
            _view(rows, view, role)
    _server(rows, role, settings)
    return rows


def _add(rows: Rows, relation: str, **row: Any) -> None:
    rows.setdefault(relation, []).append(row)


def _server(rows: Rows, role: str, settings: Mapping[str, str]) -> None:
    for number, name in (
        (oid("role", role), role),
        (OWNER, owner(role)),
        (PUBLIC_OWNER, "pg_database_owner"),
    ):
        owns = number == OWNER
        _add(
            rows, "pg_roles", rolname=name, rolsuper=owns, rolinherit=True, rolcreaterole=owns,
            rolcreatedb=owns, rolcanlogin=number != PUBLIC_OWNER, rolreplication=owns, rolconnlimit=-1,
            rolpassword="********", rolbypassrls=owns, oid=number,
        )  # fmt: skip
    for name, value in {**settings, "session_authorization": role}.items():
        _add(
            rows, "pg_settings", name=name, setting=value, category="dpsql", context="user",
            vartype="string", source="default", boot_val=value, reset_val=value,
            pending_restart=False,
        )  # fmt: skip


def owner(role: str) -> str:
    """The name of the owner, which differs from that of the role."""
    return "dpsql" if role != "dpsql" else "dpsql_owner"


def _columns(table: Table) -> list[tuple[int, Column]]:
    return list(enumerate(table.columns.values(), 1))


def _table(rows: Rows, table: Table, role: str, *, linked: bool, letter: str = "r") -> None:
    number, kind = oid("table", table.name), oid("type", table.name)
    _add(rows, "pg_class", **_class(
        number, table.name, relkind=letter, reltype=kind, relam=2 if letter == "r" else 0,
        relnatts=len(table.columns), relhasindex=bool(table.key), relhastriggers=linked,
        relacl=_rights(role),
    ))  # fmt: skip
    _add(
        rows, "pg_type", oid=kind, typname=table.name, typnamespace=PUBLIC_SCHEMA, typowner=OWNER,
        typlen=-1, typbyval=False, typtype="c", typcategory="C", typispreferred=False,
        typisdefined=True, typdelim=",", typrelid=number, typelem=0, typarray=0, typbasetype=0,
        typtypmod=-1, typnotnull=False, typndims=0, typcollation=0, typalign="d", typstorage="x",
        typinput=2290, typoutput=2291, typreceive=2402, typsend=2403, typmodin=0, typmodout=0,
        typanalyze=0, typsubscript=0,
    )  # fmt: skip
    for position, column in _columns(table):
        fixed = bool(table.key and column.name in table.key)
        _add(rows, "pg_attribute", **_attribute(number, position, column, fixed=fixed))
    if table.key:
        _primary_key(rows, table)


def _rights(role: str) -> list[str]:
    """The privileges on a table: the owner has all of them, and the role may read."""
    all_of_it, reader = owner(role), f'"{role}"' if not role.isidentifier() else role
    return [f"{all_of_it}=arwdDxt/{all_of_it}", f"{reader}=r/{all_of_it}"]


def _view(rows: Rows, view: ViewShape, role: str) -> None:
    table = Table(view.name, {c.name: c for c in view.columns})
    _table(rows, table, role, linked=False, letter="v")
    _described(rows, table, view.about, frozenset())


def temporary_rows(views: Sequence[ViewShape]) -> list[list[str | None]]:
    """The columns of a session's temporary views, as its statements get them. All are nullable."""
    return [
        [view.name, str(oid("temporary", view.name)), column.name, *map(str, pg_type(column)),
         str(position), "f"]
        for view in views
        for position, column in enumerate(view.columns, 1)
    ]  # fmt: skip


def _class(number: int, name: str, **more: Any) -> Row:
    return {
        "oid": number, "relname": name, "relnamespace": PUBLIC_SCHEMA, "reloftype": 0,
        "relowner": OWNER, "relfilenode": number, "reltablespace": 0, "relpages": 0,
        "reltuples": -1.0, "relallvisible": 0, "reltoastrelid": 0, "relisshared": False,
        "relpersistence": "p", "relchecks": 0, "relhasrules": False, "relhastriggers": False,
        "relhassubclass": False, "relrowsecurity": False, "relforcerowsecurity": False,
        "relispopulated": True, "relreplident": "d", "relispartition": False, "relrewrite": 0,
        "relfrozenxid": 0, "relminmxid": 0, **more,
    }  # fmt: skip


def _attribute(relation: int, position: int, column: Column, *, fixed: bool) -> Row:
    number, modifier = pg_type(column)
    size = SIZES.get(number, -1)
    return {
        "attrelid": relation, "attname": column.name, "atttypid": number, "attstattarget": -1,
        "attlen": size, "attnum": position, "attndims": 0, "attcacheoff": -1,
        "atttypmod": modifier, "attbyval": size in (1, 2, 4, 8), "attalign": "i",
        "attstorage": "x" if size < 0 else "p", "attcompression": "",
        "attnotnull": fixed or not column.nullable, "atthasdef": False, "atthasmissing": False,
        "attidentity": "", "attgenerated": "", "attisdropped": False, "attislocal": True,
        "attinhcount": 0, "attcollation": 100 if number == TEXT else 0,
    }  # fmt: skip


def pg_type(column: Column) -> tuple[int, int]:
    """The type and modifier that the catalog shows for a column."""
    shown = of_type(column.name, column.kind, type_name(column.declared))
    return shown.oid, shown.modifier


def _numbers(table: Table, names: Sequence[str]) -> list[int]:
    order = list(table.columns)
    return [order.index(name) + 1 for name in names]


def _primary_key(rows: Rows, table: Table) -> None:
    index, name = oid("index", table.name), f"{table.name}_pkey"
    numbers = _numbers(table, table.key)
    _add(rows, "pg_class", **_class(
        index, name, relkind="i", reltype=0, relam=403, relnatts=len(numbers),
        relhasindex=False,
    ))  # fmt: skip
    for position, key in enumerate(table.key, 1):
        _add(rows, "pg_attribute", **_attribute(index, position, table.columns[key], fixed=True))
    _add(
        rows, "pg_index", indexrelid=index, indrelid=oid("table", table.name),
        indnatts=len(numbers), indnkeyatts=len(numbers), indisunique=True,
        indnullsnotdistinct=False, indisprimary=True, indisexclusion=False, indimmediate=True,
        indisclustered=False, indisvalid=True, indcheckxmin=False, indisready=True,
        indislive=True, indisreplident=False, indkey=numbers, indcollation=[0] * len(numbers),
        indclass=[0] * len(numbers), indoption=[0] * len(numbers),
    )  # fmt: skip
    _add(rows, "pg_constraint", **_constraint(
        oid("key", table.name), name, "p", oid("table", table.name), conkey=numbers,
        conindid=index, confrelid=0, confupdtype=" ", confdeltype=" ", confmatchtype=" ",
    ))  # fmt: skip


def _foreign_key(rows: Rows, policy: Policy, table: Table, number: int) -> None:
    key = table.foreign_keys[number]
    target = policy.tables[key.references]
    name = f"{table.name}_{'_'.join(key.columns)}_fkey"
    _add(rows, "pg_constraint", **_constraint(
        oid("foreign key", table.name, str(number)), name, "f", oid("table", table.name),
        conkey=_numbers(table, key.columns), confrelid=oid("table", target.name),
        confkey=_numbers(target, key.key), confupdtype="a", confdeltype="a", confmatchtype="s",
        conindid=oid("index", target.name) if target.key else 0,
    ))  # fmt: skip


def _constraint(number: int, name: str, kind: str, table: int, **more: Any) -> Row:
    return {
        "oid": number, "conname": name, "connamespace": PUBLIC_SCHEMA, "contype": kind,
        "condeferrable": False, "condeferred": False, "convalidated": True, "conrelid": table,
        "contypid": 0, "conparentid": 0, "conislocal": True, "coninhcount": 0,
        "connoinherit": True, **more,
    }  # fmt: skip


def _described(rows: Rows, table: Table, about: str, visible: AbstractSet[str]) -> None:
    number = oid("table", table.name)
    words = {0: about}
    words |= {position: _about_column(column, visible) for position, column in _columns(table)}
    for position, text in words.items():
        if text:
            _add(
                rows, "pg_description", objoid=number, classoid=PG_CLASS, objsubid=position,
                description=text,
            )  # fmt: skip


def _about_table(policy: Policy, table: Table) -> str:
    if table.unit is None:
        said = "public: answered exactly, for free"
    elif policy.units[table.unit].is_row:
        said = "private: each row is protected"
    else:
        said = (
            f"private: each {table.unit} is protected, with at most {table.max_rows_per_unit} rows"
        )
    return f"{table.description} ({said})" if table.description else said


def _about_column(column: Column, visible: AbstractSet[str]) -> str:
    """The policy's description of a column, without the names of tables that are not visible."""
    parts = [column.description] if column.description else []
    if column.identifier:
        parts.append("identifier: never shown, never grouped by")
    if column.range is not None:
        low, high = (_shown(v) for v in column.range)
        parts.append(f"range {low} to {high}")
    if column.values is not None:
        shown = ", ".join(_shown(v) for v in column.values[:20])
        parts.append(f"values {shown}" + (", ..." if len(column.values) > 20 else ""))
    if column.values_from is not None and column.values_from[0] in visible:
        parts.append("values of {}.{}".format(*column.values_from))
    if column.max_length is not None:
        parts.append(f"at most {column.max_length} characters")
    return "; ".join(parts)


def _shown(value: Scalar) -> str:
    return f"{float(value):g}" if isinstance(value, Fraction) else str(value)
