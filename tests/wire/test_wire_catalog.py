"""The catalog: what a policy says, as PostgreSQL would say it, to the queries that clients send."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from endpoint import PASSWORD, ROLE, Endpoint, endpoint, generous
from support.required import required

TABLES = ["countries", "customers", "orders", "visits"]


@pytest.fixture
def conn(shop: Endpoint) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module", params=["psycopg", "pg8000"])
def engine(shop: Endpoint, request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    made = sa.create_engine(shop.url(request.param))
    yield made
    made.dispose()


def test_sqlalchemy_reflects_tables(engine: sa.Engine) -> None:
    look = sa.inspect(engine)
    assert sorted(look.get_table_names()) == TABLES
    assert look.get_view_names() == []
    assert look.has_table("orders")
    assert not look.has_table("nowhere")
    assert "public" in look.get_schema_names()


def test_sqlalchemy_reflects_columns_and_keys(engine: sa.Engine) -> None:
    look = sa.inspect(engine)
    columns = {
        c["name"]: (str(c["type"]), c["nullable"], c["comment"]) for c in look.get_columns("orders")
    }
    assert columns == {
        "customer_id": ("BIGINT", False, None),
        "amount": ("DOUBLE PRECISION", True, "range 0 to 500"),
        "placed": ("DATE", False, "range 2024-01-01 to 2025-12-31"),
        "channel": ("TEXT", True, "values web, shop, phone"),
    }
    assert look.get_pk_constraint("customers")["constrained_columns"] == ["customer_id"]
    (key,) = look.get_foreign_keys("orders")
    assert (key["referred_table"], key["referred_columns"]) == ("customers", ["customer_id"])
    assert "each customer is protected" in str(look.get_table_comment("orders")["text"])
    assert look.get_indexes("orders") == []


def test_sqlalchemy_queries_what_it_reflected(engine: sa.Engine) -> None:
    meta = sa.MetaData()
    meta.reflect(engine)
    orders, customers = meta.tables["orders"], meta.tables["customers"]
    query = (
        sa.select(customers.c.country, sa.func.count().label("n"), sa.func.avg(orders.c.amount))
        .join_from(orders, customers)
        .where(orders.c.channel == "web")
        .group_by(customers.c.country)
        .order_by(sa.desc("n"))
        .limit(3)
    )
    with engine.connect() as connection:
        assert len(connection.execute(query).fetchall()) == 3


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT version()", None),
        ("SELECT current_schema(), current_database(), current_user", [("public", "shop", ROLE)]),
        ("SELECT current_setting('server_version_num')", [("150000",)]),
        ("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
         [(t,) for t in TABLES]),
        (("SELECT column_name, data_type, is_nullable FROM information_schema.columns"
         " WHERE table_name = 'visits' ORDER BY ordinal_position LIMIT 2"),
         [("customer_id", "bigint", "NO"), ("started", "timestamp without time zone", "NO")]),
        ("SELECT constraint_type, count(*) FROM information_schema.table_constraints GROUP BY 1 ORDER BY 1",
         [("FOREIGN KEY", 2), ("PRIMARY KEY", 2)]),
        ("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' AND conrelid = 'orders'::regclass",
         [("FOREIGN KEY (customer_id) REFERENCES customers(customer_id)",)]),
        ("SELECT format_type(1043, 24), format_type(1700, 655366), format_type(1009, NULL)",
         [("character varying(20)", "numeric(10,2)", "text[]")]),
        ("SELECT 'pg_class'::regclass::oid, to_regclass('nowhere'), 23::regtype::text", [(1259, None, "integer")]),
        (("SELECT relname FROM pg_catalog.pg_class c WHERE c.relname OPERATOR(pg_catalog.~) '^(ord.*)$'"
         " COLLATE pg_catalog.default"), [("orders",)]),
        ("SELECT typname FROM pg_type WHERE oid = ANY('{16,23}'::oid[]) ORDER BY typname", [("bool",), ("int4",)]),
        ("SELECT has_table_privilege('orders', 'SELECT'), has_table_privilege('orders', 'INSERT')",
         [(True, False)]),
        ("SELECT (i.keys).n FROM (SELECT information_schema._pg_expandarray(indkey) AS keys FROM pg_index LIMIT 1) i", [(1,)]),
        ("SELECT reltuples, relpages, pg_total_relation_size(oid) FROM pg_class WHERE relname = 'orders'",
         [(-1.0, 0, 0)]),
        ("SELECT n_live_tup FROM pg_stat_user_tables", []),
        ("SELECT * FROM pg_stats", []),
        ("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1", [("information_schema",), ("public",)]),
        ("SELECT CASE WHEN true THEN 1 END, 1 + 1, count(*) FROM pg_roles", [(1, 2, 3)]),
        ("SELECT DISTINCT attislocal, attinhcount, attisdropped, atthasdef FROM pg_attribute WHERE attrelid = 'orders'::regclass",
         [(True, 0, False, False)]),
        (("SELECT array_to_string(ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = 'orders'::regclass"
         " ORDER BY attnum), ',')"), [("customer_id,amount,placed,channel",)]),
    ],
)  # fmt: skip
def test_catalog_queries(conn: psycopg.Connection, sql: str, rows: list[object] | None) -> None:
    for binary in (False, True):
        found = conn.cursor(binary=binary).execute(sql).fetchall()
        assert rows is None or found == rows


def test_columns_have_the_names_and_types_of_postgres(conn: psycopg.Connection) -> None:
    cursor = conn.execute(
        "SELECT oid, relkind, relnatts, 1 + 1, count(*) OVER (), oid::text, CASE WHEN true THEN oid END,"
        " 'a' AS \"Big\", max(reltype) OVER () Folded, now() IS NULL FROM pg_class LIMIT 1"
    )
    assert [(c.name, c.type_code) for c in cursor.description or ()] == [
        ("oid", 26), ("relkind", 18), ("relnatts", 21), ("?column?", 23), ("count", 20),
        ("oid", 25), ("case", 26), ("Big", 25), ("folded", 26), ("?column?", 16),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT * FROM pg_catalog.pg_nothing", "42P01"),
        ("SELECT * FROM information_schema.nothing", "42P01"),
        ("SELECT duckdb_settings()", "42883"),
        ("SELECT * FROM duckdb_settings()", "42883"),
        ("SELECT current_setting('x') FROM read_text('/etc/passwd')", "42883"),
        ("SELECT getvariable('database')", "42883"),
        ("SELECT * FROM pg_class, 'x.csv'", None),
        ("SELECT nothing FROM pg_class", "42703"),
        ("SELECT relname FROM pg_class; DELETE FROM pg_class", "42501"),
        ("WITH x AS (DELETE FROM pg_class RETURNING *) SELECT * FROM x", None),
        ("SELECT count(*) FROM pg_class JOIN orders ON true", "0A000"),
        ("SELECT 1::nothing", "42704"),
        ("SELECT 'x'::int4", "22P02"),
        ("SELECT 'unclosed", "42601"),
        ("SELECT * FROM main.orders", None),
        ("SELECT * FROM pgi.tables", None),
    ],
)
def test_what_the_catalog_refuses(conn: psycopg.Connection, sql: str, state: str | None) -> None:
    with pytest.raises(psycopg.Error) as caught:
        conn.execute(sql)
    assert state is None or caught.value.sqlstate == state
    assert conn.execute("SELECT count(*) > 4 FROM pg_class").fetchone() == (True,)


def _blinkered(text: str) -> str:
    return generous(text).replace(
        "    max_groups_per_unit: 3",
        "    max_groups_per_unit: 3\n    tables: [customers, countries]",
    )


def test_a_role_sees_its_own_tables_only() -> None:
    with endpoint(_blinkered) as found, psycopg.connect(found.dsn(), autocommit=True) as connection:
        seen = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert sorted(seen.fetchall()) == [("countries",), ("customers",)]
        for sql in ("SELECT count(*) FROM orders", "SELECT * FROM orders LIMIT 0"):
            with pytest.raises(psycopg.errors.UndefinedTable):
                connection.execute(sql)
        everything = connection.execute(
            "SELECT (SELECT string_agg(relname, ' ') FROM pg_class), (SELECT string_agg(description, ' ')"
            " FROM pg_description), (SELECT string_agg(conname, ' ') FROM pg_constraint)"
        ).fetchone()
        assert "orders" not in str(everything)


# -- psql: left out where there is none, unless CI says that there must be (tests/support/postgres.sh).

with_psql = pytest.mark.skipif(
    shutil.which("psql") is None and not required(),
    reason="no psql here; tests/support/postgres.sh installs one",
)

_COMMANDS = [
    (r"\dt", "public | orders    | table"),
    (r"\d orders", "FOREIGN KEY (customer_id) REFERENCES customers(customer_id)"),
    (r"\d customers", '"customers_pkey" PRIMARY KEY, btree (customer_id)'),
    (r"\d+ orders", "range 0 to 500"),
    (r"\dt+", "each customer is protected"),
    (r"\d", "customers"),
    (r"\l", "shop | dpsql | UTF8"),
    (r"\dn", "public | pg_database_owner"),
    (r"\du", "analyst"),
    (r"\df", "(0 rows)"),
    (r"\di", "customers_pkey"),
    (r"\dv", ""),
    (r"\dp", "orders"),
    (r"\dT", "(0 rows)"),
    (r"\dx", "plpgsql"),
    (r"\conninfo", 'database "shop" as user "analyst"'),
    (r"SELECT 1 AS one, 'a' AS b \gdesc", "one    | integer"),
    (r"\copy (SELECT country, count(*) FROM customers GROUP BY 1 ORDER BY 1) TO STDOUT CSV", "at,"),
]  # fmt: skip


@with_psql
@pytest.mark.parametrize(("command", "shown"), _COMMANDS)
def test_psql(shop: Endpoint, command: str, shown: str) -> None:
    done = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(shop.port), "-U", ROLE, "-d", "shop"],
        input=command + "\n", capture_output=True, text=True, check=False,
        env={**os.environ, "PGPASSWORD": PASSWORD},
    )  # fmt: skip
    assert "ERROR" not in done.stderr, done.stderr
    assert shown in done.stdout


@with_psql
def test_psql_fetches_in_parts(shop: Endpoint) -> None:
    done = subprocess.run(
        ["psql", "-X", "-At", "-h", "127.0.0.1", "-p", str(shop.port), "-U", ROLE, "-d", "shop"],
        input="\\set FETCH_COUNT 4\nSELECT country FROM customers GROUP BY country ORDER BY 1;\n",
        capture_output=True, text=True, check=False, env={**os.environ, "PGPASSWORD": PASSWORD},
    )  # fmt: skip
    assert len(done.stdout.split()) == 9


def test_views_stand_beside_tables() -> None:
    def with_views(text: str) -> str:
        views = (
            "views:\n"
            "  web: SELECT customer_id, amount, placed FROM orders WHERE channel = 'web'\n"
            "  daily: SELECT placed, COUNT(*) AS n FROM web GROUP BY placed\n\n"
        )
        return generous(text).replace("accounts:\n", f"{views}accounts:\n")

    with endpoint(with_views) as shop, psycopg.connect(shop.dsn(sslmode="disable")) as conn:
        conn.autocommit = True
        shown = conn.execute(
            "SELECT table_name, table_type FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'VIEW' ORDER BY 1"
        )
        assert shown.fetchall() == [("daily", "VIEW"), ("web", "VIEW")]
        columns = conn.execute(
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_name = 'daily' ORDER BY ordinal_position"
        )
        assert columns.fetchall() == [("placed", "date", "NO"), ("n", "bigint", "NO")]
        said = conn.execute("SELECT obj_description('web'::regclass)").fetchone()
        assert said == ("private: each customer is protected, with at most 50 rows",)
        assert conn.execute("SELECT viewname FROM pg_views WHERE viewname = 'web'").fetchall()
        empty = conn.execute("SELECT * FROM web LIMIT 0")
        assert [c.name for c in empty.description or ()] == ["customer_id", "amount", "placed"]
        assert len(conn.execute("SELECT COUNT(*) FROM web").fetchall()) == 1
        with pytest.raises(psycopg.Error, match="rows of"):
            conn.execute("SELECT amount FROM web")


@pytest.mark.parametrize(
    ("cast", "same"),
    [
        (
            "CAST(lower(relname) || 'x' AS character varying(3))",
            "(lower(relname) || 'x')::varchar(3)",
        ),
        ("CAST(relnatts + 1 AS double precision)", "(relnatts + 1)::float8"),
        ("CAST(relname AS char(2))", "relname::char(2)"),
    ],
)
def test_a_cast_of_more_than_one_word_is_written_in_either_way(
    conn: psycopg.Connection, cast: str, same: str
) -> None:
    rows = conn.execute(
        f"SELECT {cast}, {same} FROM pg_catalog.pg_class WHERE relname = 'orders'"
    ).fetchall()
    assert len(rows) == 1
    assert rows[0][0] == rows[0][1]


def test_a_hidden_column_is_that_of_the_one_relation(conn: psycopg.Connection) -> None:
    """Without a table's name it is of the only one there is."""
    [(bare, named, oid)] = conn.execute(
        "SELECT tableoid, c.tableoid, 'pg_class'::regclass::oid FROM pg_class c WHERE relname = 'orders'"
    ).fetchall()
    assert bare == named == oid
