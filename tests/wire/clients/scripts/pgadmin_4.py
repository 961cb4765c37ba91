"""pgAdmin 4, from an environment of its own: the SQL of its browser, rendered from its own templates.

Its pages are not opened: what they ask is all that a server sees of them.
"""

import json
import os
import re
from pathlib import Path

import jinja2
import pgadmin4
import psycopg

ROOT = Path(next(iter(pgadmin4.__path__))) / "pgadmin"
FILES = {
    "nodes.sql", "properties.sql", "count.sql", "get_oid.sql", "acl.sql", "get_name.sql",
    "get_columns.sql", "get_constraints.sql", "get_tables.sql", "get_types.sql", "columns.sql",
    "dependents.sql", "functions.sql", "defacl.sql", "get_oftype.sql", "get_inherits.sql",
    "primary_key_columns.sql", "table_columns.sql", "has_oids.sql", "get_parent_oid.sql",
    "get_primary_key.sql", "stats.sql", "coll_stats.sql", "get_schemas.sql", "get_indexes.sql",
}  # fmt: skip
OTHERS = {"ppas", "gpdb", "subscriptions"}
"""Other servers, and what they have: how one logs in there is no matter of a reader."""
SELECTS = re.compile(r"\s*(/\*.*?\*/\s*|--[^\n]*\n\s*)*(SELECT|WITH)\b", re.IGNORECASE | re.DOTALL)
EMPTY = re.compile(r"=\s*(::|,|\)|AND\b|$)|\bNone\b|\bAND\s*\)", re.IGNORECASE)
VERSION = 15


def literal(value, *_):
    if value is None or isinstance(value, int | float):
        return "NULL" if value is None else str(value)
    return "'" + str(value).replace("'", "''") + "'"


def identifier(value, *_):
    parts = value if isinstance(value, list | tuple) else [value]
    return ".".join(f'"{part}"' for part in parts)


def templates():
    """The newest of each template that is for this version."""
    found = {}
    for path in ROOT.glob("**/templates/**/*.sql"):
        named = re.fullmatch(r"(\d+)_plus|default", path.parent.name)
        if path.name not in FILES or named is None or OTHERS & set(path.parts):
            continue
        version, key = int(named[1] or 0), (path.parent.parent, path.name)
        if version <= VERSION and version >= found.get(key, (0, path))[0]:
            found[key] = version, path
    return sorted(path for _, path in found.values())


server = psycopg.connect(autocommit=True, password=os.environ["PGPASSWORD"])
places = [str(place) for place in ROOT.glob("**/templates")]
render = jinja2.Environment(loader=jinja2.FileSystemLoader(places), extensions=["jinja2.ext.do"])
render.filters |= {
    "qtLiteral": literal, "qtIdent": identifier, "qtTypeIdent": identifier,
    "hasAny": lambda *_: True,
}  # fmt: skip


def number(sql):
    return server.execute(sql).fetchone()[0]


def about():
    table = number("SELECT oid FROM pg_class WHERE relname = 'orders'")
    schema = number("SELECT oid FROM pg_namespace WHERE nspname = 'public'")
    return {
        "did": number("SELECT oid FROM pg_database WHERE datname = 'shop'"), "tid": table,
        "scid": schema, "nspid": schema, "relid": table, "object_id": table, "objid": table,
        "oid": table, "parent_id": schema, "schema": "public", "schema_name": "public",
        "table": "orders", "name": "orders", "database": "shop", "datlastsysoid": 16383,
        "last_system_oid": 16383, "show_sysobj": False, "show_system_objects": False,
        "data": {"schema": "public", "name": "orders", "table": "orders"}, "server_type": "pg",
        "catalog_name": "pg_catalog", "username": os.environ["PGUSER"], "inherits": 0, "nodes": [],
        "lid": number("SELECT min(oid) FROM pg_language"),
    }  # fmt: skip


def asked():
    """The columns of every statement that is whole."""
    known, found = about(), {}
    for path in templates():
        try:
            sql = render.from_string(path.read_text()).render(**known).strip()
        except (jinja2.TemplateError, TypeError, AttributeError):
            continue  # it needs more than is known here
        if not SELECTS.match(sql) or EMPTY.search(sql):
            continue
        try:
            seen = [d.name for d in server.execute(sql).description]
        except psycopg.Error:
            seen = "not answered"
        found["/".join(path.relative_to(ROOT).parts[-6:])] = seen
    return found


def check(name, act):
    print(json.dumps({"check": name, "saw": act()}, default=str), flush=True)


check("the statements of the browser", asked)
check("more than a hundred of them", lambda: len(asked()) > 100)
