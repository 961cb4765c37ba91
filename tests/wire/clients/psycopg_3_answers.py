"""psycopg 3: what answers are, beyond how they travel: no rows, constants, errors."""

from __future__ import annotations

from typing import Any

import psycopg
from sides import CHECKS, Side, checks, plain, shape, state

check = checks("psycopg 3")


def _open(side: Side, **more: Any) -> psycopg.Connection:
    return psycopg.connect(side.dsn, autocommit=True, **more)


@check
def aggregates_of_no_rows(side: Side) -> Any:
    """One row, unless there are groups or LIMIT 0."""
    with _open(side) as c:
        return [
            shape(c.execute(sql))
            for sql in (
                "SELECT count(*) FROM orders WHERE 1 = 0", "SELECT count(*) FROM orders WHERE false",
                "SELECT count(*), (count(*)) + 1 AS more FROM visits WHERE (1 = 0)",
                "SELECT count(*), sum(population) FROM countries WHERE 1 = 0",
                "SELECT 'all' AS what, max(country) FROM countries WHERE false",
                "SELECT count(*) FROM orders WHERE 1 = 0 LIMIT 0",
                "SELECT count(*) FROM orders LIMIT 0 OFFSET 1",
                "TABLE countries LIMIT 0", "SELECT 1 AS a UNION ALL SELECT 2 AS a WHERE 1 = 0",
            )
        ]  # fmt: skip


@check
def rows_of_no_rows(side: Side) -> Any:
    """Nothing, whatever is computed of them."""
    with _open(side) as c:
        return [
            shape(c.execute(sql))
            for sql in (
                "SELECT upper(country) FROM customers WHERE 1 = 0",
                "SELECT DISTINCT channel FROM orders WHERE 1 = 0",
                "SELECT country FROM countries WHERE false",
                "SELECT channel, count(*) FROM orders GROUP BY 1 LIMIT 0",
            )
        ]


@check
def sums_of_no_rows(side: Side) -> Any:
    with _open(side) as c:
        return shape(c.execute("SELECT count(*), sum(amount) FROM orders WHERE 1 = 0"))


def _answered(side: Side, *statements: str) -> Any:
    """The columns and rows of the last statement, or the SQLSTATE of the one that fails."""
    with _open(side) as c:
        try:
            for sql in statements:
                found = c.execute(sql)
        except psycopg.Error as error:
            return error.sqlstate
        columns = [(d.name, d.type_code) for d in found.description or ()]
        return columns, plain(found) if columns else found.statusmessage


CONSTANTS = (
    "SELECT 'abc'::date", "SELECT DATE 'abc'", "SELECT '2024-13-40'::date", "SELECT 'abc'::timestamp",
    "SELECT 'abc'::time", "SELECT '25:00'::time", "SELECT 'abc'::interval", "SELECT 'abc'::int",
    "SELECT '99999999999'::int", "SELECT 'abc'::uuid", "SELECT '{'::json", "SELECT '{'::jsonb",
    "SELECT 1/0", "SELECT 1/0.0", "SELECT 1 % 0", "SELECT 2147483647 + 1", "SELECT 40000::int2",
    "SELECT 9223372036854775807 + 1", "SELECT 99999999999::int",
    "SELECT 1 UNION SELECT 1, 2", "SELECT (SELECT 1, 2)",
    "SELECT 'orders'::regclass, 'orders'::regclass::text", "SELECT 'nowhere'::regclass",
    "SELECT 'public'::regnamespace", "SELECT 'int4'::regtype AS kind, NULL::regtype IS NULL", "SELECT 'pg_class'::pg_catalog.regclass",
    """SELECT '{"bb":1, "a":[1,2.5]}'::jsonb, CAST('{"a":  1}' AS jsonb) AS x, '{"a":  1}'::json""",
    "SELECT 'abcdef'::varchar(3), 'abc'::varchar, CAST('abc' AS character varying(2)), NULL::varchar",
    "SELECT timestamp '2024-01-01' AT TIME ZONE 'UTC'::varchar IS NULL AS a, 'b' || 'c'::varchar AS d",
    "SELECT lower('ABC')::varchar(2), (1 + 1)::varchar, 'x'::text::varchar, CAST(1 AS varchar)",
    "SELECT 'abc'::char(5), 'abc'::name AS n", "SELECT '1'::text::int, -1::int, 'a' || 'b'::text",
    "SELECT relname::varchar FROM pg_class WHERE relname = 'orders' ORDER BY relname::varchar",
    "SELECT '2024-07-01 10:00+02'::timestamptz = '2024-07-01 08:00+00'::timestamptz AS same",
    "SELECT NULL::timestamptz, NULL::timestamp with time zone",
    "SELECT current_user, session_user, current_schema, current_schema(), current_database()",
    "SELECT pg_advisory_unlock_all()", "SELECT current_timestamp IS NULL",
    "SELECT has_table_privilege('orders', 'select'), has_schema_privilege('public', 'usage')",
    "SELECT has_table_privilege('nowhere', 'select')", "SELECT has_schema_privilege('nowhere', 'usage')",
    "SELECT has_table_privilege('analyst', 'nowhere', 'select')",
    "SELECT country FROM countries ORDER BY 1 LIMIT NULL", "SELECT 1 AS a LIMIT NULL OFFSET NULL",
    "SELECT country FROM countries ORDER BY 1 LIMIT 2 OFFSET NULL",
    "SELECT country FROM shop.public.countries ORDER BY 1 LIMIT 2", "SELECT 1 FROM other.public.countries",
    "SELECT relname FROM shop.pg_catalog.pg_class WHERE relname = 'orders'",
    "SELECT continent FROM public.countries WHERE country = 'fr'",
    "SELECT current_setting('nothing')", "SELECT current_setting('no.thing', true)",
)  # fmt: skip
DIFFERENT = (
    "EXPLAIN ANALYZE SELECT 1", "SELECT 1e400::float8", "SELECT sqrt(-1)",
    "SELECT pg_typeof(1)", "SELECT 1.50::numeric(10,2)", "SELECT length('abc')", "SELECT 7.0 / 2",
    "SELECT 1 UNION SELECT 'a'", "SELECT sum(country) FROM countries",
)  # fmt: skip
SETTINGS = (
    ("SELECT set_config('application_name', 'x', false)",),
    ("SELECT set_config('application_name', 'x', false)", "SHOW application_name"),
    ("SELECT set_config('application_name', 'x', true)", "SHOW application_name"),
    ("BEGIN", "SELECT set_config('application_name', 'x', true)", "SHOW application_name"),
    ("BEGIN", "SELECT set_config('application_name', 'x', true)", "COMMIT", "SHOW application_name"),
    ("BEGIN", "SELECT set_config('application_name', 'x', false)", "ROLLBACK", "SHOW application_name"),
    ("SELECT set_config('my.a', 'x', false), set_config('my.b', 'y', false)", "SELECT current_setting('my.b')"),
    ("SET search_path = public", "SELECT current_setting('search_path')"),
    ("SELECT set_config('role', 'analyst', false)", "SELECT current_user"),
    ("SELECT set_config('server_version', 'x', false)",),
    ("SELECT set_config('standard_conforming_strings', 'maybe', false)",),
    ("BEGIN", "SET LOCAL ROLE analyst", "COMMIT", "SHOW role"),
    ("SET LOCAL application_name = 'y'; SHOW application_name",),
    ("SET LOCAL application_name = 'y'; SELECT 1", "SHOW application_name"),
    ("SET application_name = 'y'; BEGIN; SET application_name = 'z'; ROLLBACK", "SHOW application_name"),
    ("SET application_name = 'y'; COMMIT", "SHOW application_name"),
    ("SET application_name = 'y'; ROLLBACK", "SHOW application_name"),
    ("BEGIN", "SAVEPOINT a", "DECLARE c CURSOR FOR SELECT 1 AS x", "ROLLBACK TO a", "FETCH c"),
    ("BEGIN", "DECLARE c CURSOR FOR SELECT 1 AS x", "SAVEPOINT a", "ROLLBACK TO a", "FETCH c"),
)  # fmt: skip


@check
def a_script_that_fails_sets_nothing(side: Side) -> Any:
    with _open(side, options="-c application_name=before") as c:
        found = []
        for sql in (
            "SET application_name = 'a'; SELECT 1/0", "SET application_name = 'b'; SELEC 1",
            "SET application_name = 'c'; COMMIT; SET application_name = 'd'; SELECT 1/0",
            "SELECT set_config('application_name', 'e', false); SELECT 1/0",
            "SET LOCAL application_name = 'f'; SELECT 1/0",
            "DECLARE h CURSOR WITH HOLD FOR SELECT 1; SELECT 1/0",
        ):  # fmt: skip
            error = state(lambda sql=sql: c.execute(sql))  # type: ignore[misc]
            found.append((error, c.execute("SHOW application_name").fetchone()))
        return found, state(lambda: c.execute("FETCH h"))


@check
def a_limit_that_is_null(side: Side) -> Any:
    """No limit, as a parameter too."""
    with _open(side) as c:
        sql = "SELECT country FROM countries ORDER BY 1 LIMIT %s OFFSET %s"
        return [plain(c.execute(sql, pair)) for pair in ((None, 7), (2, None), (None, None))]


def _register() -> None:
    for sql in (*CONSTANTS, *DIFFERENT):
        CHECKS["psycopg 3", sql] = lambda side, sql=sql: _answered(side, sql)
    for many in SETTINGS:
        CHECKS["psycopg 3", "; ".join(many)] = lambda side, many=many: _answered(side, *many)


_register()
