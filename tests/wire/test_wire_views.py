"""Temporary views over the wire: a session's own, in its catalog and its transactions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from endpoint import Endpoint

ADULTS = "SELECT country, age FROM customers WHERE age > 30"
SCHEMA = (
    "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT a.attnotnull"
    " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON a.attrelid = c.oid"
    " JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid"
    " WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname = ANY(%s) AND c.relname = %s"
    " ORDER BY a.attnum"
)
MINE = "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()"


@pytest.fixture
def conn(shop: Endpoint) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:
        yield connection


def columns(conn: psycopg.Connection, name: str) -> list[tuple[object, ...]]:
    mine = [row[0] for row in conn.execute(MINE)]
    return conn.execute(SCHEMA, (["public", *mine], name)).fetchall()


def test_the_catalog_has_them_for_their_session_alone(
    shop: Endpoint, conn: psycopg.Connection
) -> None:
    assert columns(conn, "adults") == []
    done = conn.execute(f"CREATE TEMPORARY VIEW adults AS {ADULTS}")
    assert done.statusmessage == "CREATE VIEW"
    wanted = [("country", "text", True), ("age", "integer", True)]
    assert columns(conn, "adults") == wanted
    assert [row[0] for row in columns(conn, "orders")] == [
        "customer_id",
        "amount",
        "placed",
        "channel",
    ]
    with psycopg.connect(shop.dsn(), autocommit=True) as other:
        assert columns(other, "adults") == []
        with pytest.raises(psycopg.errors.UndefinedTable):
            other.execute("SELECT count(*) FROM adults")
        other.execute("CREATE TEMP VIEW adults AS SELECT continent FROM countries")
        assert [row[0] for row in columns(other, "adults")] == ["continent"]
    assert columns(conn, "adults") == wanted
    conn.execute("DROP VIEW IF EXISTS adults")
    assert columns(conn, "adults") == []


def test_answers_that_are_remembered_are_of_their_own_view(
    shop: Endpoint, conn: psycopg.Connection
) -> None:
    with psycopg.connect(shop.dsn(), autocommit=True) as other:
        conn.execute("CREATE TEMP VIEW v AS SELECT country FROM countries")
        other.execute("CREATE TEMP VIEW v AS SELECT country FROM countries WHERE country = 'de'")
        for _ in range(2):
            assert conn.execute("SELECT count(*) FROM v").fetchone() == (9,)
            assert other.execute("SELECT count(*) FROM v").fetchone() == (1,)
        other.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT country FROM countries")
        assert other.execute("SELECT count(*) FROM v").fetchone() == (9,)


def test_a_rollback_takes_them_back_and_discard_drops_them(conn: psycopg.Connection) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute("CREATE TEMP VIEW v AS SELECT country FROM countries")
        assert conn.execute("SELECT count(*) FROM v").fetchone() == (9,)
    with pytest.raises(psycopg.errors.UndefinedTable):
        conn.execute("SELECT count(*) FROM v")
    for ends in ("DISCARD ALL", "DISCARD TEMP"):
        conn.execute("CREATE TEMP VIEW v AS SELECT country FROM countries")
        conn.execute("RESET ALL")
        assert conn.execute("SELECT count(*) FROM v").fetchone() == (9,)
        conn.execute(ends)
        with pytest.raises(psycopg.errors.UndefinedTable):
            conn.execute("SELECT count(*) FROM v")


@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE VIEW v AS {ADULTS}", "CREATE TEMP TABLE v (a int)", "CREATE OR REPLACE VIEW v AS SELECT 1",
        "DROP TABLE orders", "CREATE MATERIALIZED VIEW v AS SELECT 1", "CREATE TEMP SEQUENCE s",
    ],
)  # fmt: skip
def test_nothing_else_is_made(conn: psycopg.Connection, sql: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute(sql)


def test_the_information_schema_has_them_too(conn: psycopg.Connection) -> None:
    listed = (
        "SELECT table_schema, table_type FROM information_schema.tables WHERE table_name = 'adults'"
    )
    told = (
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_name = 'adults' ORDER BY ordinal_position"
    )
    assert conn.execute(listed).fetchall() == []
    conn.execute(f"CREATE TEMP VIEW adults AS {ADULTS}")
    assert conn.execute(listed).fetchall() == [("pg_temp_1", "VIEW")]
    assert conn.execute(told).fetchall() == [("country", "text"), ("age", "integer")]
    for views in ("information_schema.views WHERE table_name", "pg_views WHERE viewname"):
        assert conn.execute(f"SELECT count(*) FROM {views} = 'adults'").fetchone() == (1,)
    assert conn.execute("SELECT 'adults'::regclass::text").fetchone() == ("adults",)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_describes_them(shop: Endpoint) -> None:
    made = f"CREATE TEMP VIEW adults AS {ADULTS}"
    found = subprocess.run(
        ["psql", shop.dsn(), "-X", "-c", made, "-c", "\\d adults", "-c", "\\dv"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert 'View "pg_temp_1.adults"' in found.stdout
    assert " age     | integer" in found.stdout
    assert " pg_temp_1 | adults | view" in found.stdout
