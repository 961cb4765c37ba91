"""Words that are in one place each, around the data and in it, and attempts to read them.

A *mark* is a made-up word. None of these places is the attacker's: files beside the policy, the
environment, other roles' passwords, tables, views and statements, columns that are not listed,
identifiers, what the ledger and the log keep. So no byte of any answer may hold one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import duckdb

from tests.adversary import shop
from tests.adversary.model import Role, Step, World
from tests.adversary.place import DATA, write

PLACES = (
    "file", "environment", "password", "verifier", "description", "table", "column", "listed",
    "view", "unlisted", "identifier", "hidden", "statement", "application",
)  # fmt: skip


def mark(place: str) -> str:
    """The word of a place. It is a name, a text and a password as it is needed."""
    return f"zq{place}x{crc32(place.encode()):08x}"


MARKS = {place: mark(place) for place in PLACES}
FILES = ("notes.csv", "notes.json", "notes.parquet", "notes.txt", ".env")
ENVIRONMENT = {"DPSQL_CANARY": MARKS["environment"], "PGPASSWORD": MARKS["environment"]}
OWN = ("people", "orders", "pages")
STRANGER = Role("stranger", MARKS["password"])
LISTED = f"""\
  secrets:
    public: true
    description: "{MARKS["description"]}"
    columns:
      id: {{type: bigint}}
      {MARKS["column"]}: {{type: text, values: ["{MARKS["listed"]}"]}}
"""
VIEW = f"""\
views:
  {MARKS["view"]}: SELECT id FROM secrets
"""
ROLE = f"""\
  stranger:
    password: "{STRANGER.password}"
    query: {{epsilon: 1, delta: 1e-6}}
    tables: [secrets, people, {MARKS["view"]}]
"""


def marked_shop() -> World:
    """The shop with everything planted that is in its policy and its database."""
    world = shop.shop("canaries")
    policy = world.policy.replace("  pages: {public: true", f"{LISTED}  pages: {{public: true")
    policy = policy.replace("accounts:", f"{VIEW}accounts:")
    policy = policy.replace("  analyst:\n", f"{ROLE}  analyst:\n    tables: [{', '.join(OWN)}]\n")
    policy = policy.replace(
        "      region:", "      mail: {type: text, identifier: true}\n      region:", 1
    )
    policy = policy.replace(
        'owner: {password: "' + shop.PASSWORD, 'owner: {password: "' + MARKS["verifier"]
    )
    planted = (
        f"CREATE TABLE secrets (id BIGINT, {MARKS['column']} VARCHAR)",
        f"INSERT INTO secrets VALUES (1, '{MARKS['listed']}'), (2, '{MARKS['hidden']}')",
        f"CREATE TABLE {MARKS['table']} AS SELECT '{MARKS['table']}' AS word",
        "ALTER TABLE people ADD COLUMN mail VARCHAR",
        f"UPDATE people SET mail = '{MARKS['identifier']}@' || id",
        f"ALTER TABLE people ADD COLUMN {MARKS['unlisted']} VARCHAR",
        f"UPDATE people SET {MARKS['unlisted']} = '{MARKS['unlisted']}'",
    )
    roles = (*(r for r in world.roles if r.name != "owner"), STRANGER)
    owner = Role("owner", MARKS["verifier"])
    return replace(world, policy=policy, views=planted, roles=(*roles, owner))


def plant(folder: Path) -> World:
    """Write the shop, and files beside it."""
    world = marked_shop()
    write(world, folder)
    word = MARKS["file"]
    (folder / "notes.csv").write_text(f"a,b\n1,{word}\n")
    (folder / "notes.json").write_text(json.dumps([{"a": 1, "b": word}]))
    (folder / "notes.txt").write_text(word)
    (folder / ".env").write_text(f"SECRET={word}\n")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT '{word}' AS b) TO '{folder / 'notes.parquet'}'")
    return world


BEFORE = (
    Step(
        "ask", f"SELECT COUNT(*) FROM people WHERE city = '{MARKS['statement']}'", role="stranger"
    ),
    Step("ask", f"SELECT * FROM {MARKS['view']}", role="stranger"),
)
"""What the stranger asks before the attack: it is in the ledger, and among stored answers."""


def attempts(folder: Path) -> tuple[Step, ...]:
    """Statements that would read a mark, if anything let them."""
    return tuple(
        Step("ask", text)
        for group in (_files(folder), _surroundings(), _names(), _identifiers(), _catalog())
        for text in group
    )


def _files(folder: Path) -> Iterator[str]:
    readers = ("read_csv", "read_csv_auto", "read_json", "read_parquet", "read_text", "read_blob",
               "parquet_scan", "sniff_csv", "glob", "parquet_metadata")  # fmt: skip
    for path in (*FILES, DATA, "policy.yaml", "policy.ledger.db"):
        whole = folder / path
        yield f"SELECT * FROM '{whole}'"
        yield f"SELECT COUNT(*) FROM people WHERE city IN (SELECT b FROM '{whole}')"
        for reader in readers[:: 1 if path == FILES[0] else 4]:
            yield f"SELECT * FROM {reader}('{whole}')"
        yield f"SELECT pg_read_file('{whole}'), COUNT(*) FROM people"
        yield f"COPY people FROM '{whole}'"
        yield f"ATTACH '{whole}' AS stolen"
    yield f"COPY (SELECT * FROM pages) TO '{folder / 'stolen.csv'}'"
    yield f"SELECT content FROM read_text('{folder}/*')"
    yield f"IMPORT DATABASE '{folder}'"


def _surroundings() -> Iterator[str]:
    yield from (
        "SELECT getenv('DPSQL_CANARY')", "SELECT getenv('DPSQL_CANARY'), COUNT(*) FROM people",
        "SHOW ALL", "SELECT current_setting('DPSQL_CANARY')", "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()", "SELECT * FROM duckdb_tables()", "SHOW ALL TABLES",
        "SELECT * FROM duckdb_views()", "SELECT * FROM duckdb_columns()", "PRAGMA database_list",
        "SELECT * FROM dpsql.policy", "SELECT * FROM dpsql.ledger", "SELECT * FROM dpsql.budget",
        "SELECT * FROM dpsql.remaining", "SHOW TABLES", "SHOW dpsql.budget", "DESCRIBE people",
        "SET ROLE stranger", "SET SESSION AUTHORIZATION stranger", "SET dpsql.role = 'stranger'",
        "SELECT * FROM dpsql.releases", "SELECT * FROM dpsql.hold", "SELECT * FROM hold",
        "SELECT * FROM pages; SELECT * FROM secrets", "CALL pragma_table_info('people')",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM people", "SELECT query FROM pg_stat_activity",
        "DECLARE c CURSOR FOR SELECT * FROM secrets", "FETCH ALL FROM c",
        "INSTALL httpfs", "LOAD httpfs", "SET enable_external_access = true", "CHECKPOINT",
        "CREATE TEMP VIEW stolen AS SELECT * FROM secrets", "SELECT * FROM stolen",
    )  # fmt: skip


def _names() -> Iterator[str]:
    """Near-misses, whose suggestions must not name what the role does not see."""
    yield from ("SELECT * FROM secret", "SELECT * FROM secrets", "SELECT * FROM main.secrets")
    yield from ("SELECT COUNT(*) FROM data.main.secrets", 'SELECT * FROM "Secrets"')
    for place in ("table", "view", "column", "unlisted"):
        name = MARKS[place]
        for part in (name[:-1], f"{name[:-1]}_", name[: len(name) // 2]):
            yield f"SELECT COUNT(*) FROM {part}"
            yield f"SELECT {part}, COUNT(*) FROM people GROUP BY {part}"
            yield f"SELECT COUNT(*) FROM people WHERE people.{part} = 'x'"
            yield f"SELECT COUNT({part}) FROM secrets"
    yield from ("SELECT * FROM people", "SELECT people FROM people", "SELECT p.* FROM people p")
    yield from ("SELECT COUNT(*) FROM people NATURAL JOIN secrets", "TABLE secrets")
    yield from ("SELECT COLUMNS('.*') FROM people", "SELECT COUNT(COLUMNS(*)) FROM people")
    yield from ("SELECT to_json(people) FROM people", "SELECT MAX(people) FROM people")


def _identifiers() -> Iterator[str]:
    shown = ("mail", "LOWER(mail)", "LEFT(mail, 40)", "mail || ''", "REPLACE(mail, '@', '')",
             "CASE WHEN ok THEN mail END", "COALESCE(mail, city)", "GREATEST(mail, city)",
             "CAST(mail AS VARCHAR)", "NULLIF(mail, '')")  # fmt: skip
    for each in shown:
        yield f"SELECT {each}, COUNT(*) FROM people GROUP BY 1"
        yield f"SELECT DISTINCT {each} FROM people"
        for aggregate in ("MIN", "MAX", "MODE", "ANY_VALUE", "STRING_AGG", "ARRAY_AGG", "FIRST"):
            comma = ", ','" if aggregate == "STRING_AGG" else ""
            yield f"SELECT {aggregate}({each}{comma}) FROM people"
    for kind in ("INTEGER", "DATE", "BOOLEAN", "UUID", "DOUBLE PRECISION", "TIMESTAMP"):
        yield f"SELECT SUM(CAST(mail AS {kind})) FROM people"
        yield f"SELECT COUNT(*) FROM people WHERE CAST(mail AS {kind}) IS NULL"
    yield "SELECT COUNT(*) FROM people WHERE mail ~ '('"
    yield "SELECT COUNT(*) FROM people WHERE mail LIKE 'x' ESCAPE mail"
    yield "SELECT MEDIAN(LENGTH(mail)) FROM people"
    yield "SELECT (SELECT mail FROM people LIMIT 1) FROM pages"
    yield "SELECT title, (SELECT MAX(mail) FROM people) FROM pages"


def _catalog() -> Iterator[str]:
    tables: Sequence[str] = (
        "pg_authid", "pg_shadow", "pg_user", "pg_roles", "pg_class", "pg_attribute", "pg_views",
        "pg_description", "pg_stat_activity", "pg_settings", "pg_database", "pg_tables", "pg_proc",
        "pg_stats", "pg_statistic", "pg_constraint", "pg_prepared_statements", "pg_cursors",
        "pg_file_settings", "pg_hba_file_rules", "pg_stat_statements", "pg_user_mapping", "pg_enum",
    )  # fmt: skip
    for name in tables:
        yield f"SELECT * FROM pg_catalog.{name}"
    for name in ("tables", "columns", "views", "schemata", "table_privileges", "enabled_roles"):
        yield f"SELECT * FROM information_schema.{name}"
    yield "SELECT obj_description(oid), relname FROM pg_class"
    yield "SELECT pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v'"
    yield "SELECT * FROM sqlite_master"
    for name in ("duckdb_settings", "duckdb_tables", "duckdb_columns", "duckdb_functions"):
        for schema in ("main.", "system.main.", "pg_catalog.", "information_schema.", '"main".'):
            yield f"SELECT * FROM {schema}{name}()"
    for schema in ("main", '"main"', "system", "system.main", "memory.main"):
        for call in ("version()", "getenv('DPSQL_CANARY')", "current_setting('threads')"):
            yield f"SELECT {schema}.{call}"
    yield from (
        "SELECT relname + 1 FROM pg_class", "SELECT CAST(relname AS INTEGER) FROM pg_class",
        "SELECT substr(relname) FROM pg_class", "SELECT abs('x') FROM pg_class",
        "SELECT nope FROM pg_class", "SELECT relname FROM pg_class GROUP BY oid",
        "SELECT SUM(relname) FROM pg_class", "SELECT relname::date FROM pg_class",
        "SELECT (SELECT oid FROM pg_class) FROM pg_class", "SELECT oid[1] FROM pg_class",
        "SELECT pg_catalog.lower(1, 2) FROM pg_class", "SELECT * FROM pg_class LIMIT 'x'",
        "SELECT max(oid) OVER (ROWS 'x' PRECEDING) FROM pg_class",
    )  # fmt: skip
    yield "SELECT pg_ls_dir('.'), pg_read_binary_file('policy.yaml')"
    yield "SELECT has_table_privilege('stranger', oid, 'select'), relname FROM pg_class"
