"""psycopg 3: text and binary, parameters, prepared statements, cursors, pipelines, COPY."""

from __future__ import annotations

import datetime as dt
import hashlib
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import dict_row
from sides import Side, checks, plain, shape, state

check = checks("psycopg 3")
BY_CHANNEL = "SELECT channel, count(*) AS n FROM orders GROUP BY channel ORDER BY channel"
PAGES = "SELECT page, count(*) FROM visits GROUP BY page ORDER BY page"


def _open(side: Side, **more: Any) -> psycopg.Connection:
    return psycopg.connect(side.dsn, autocommit=True, **more)


def _seen(cursor: psycopg.Cursor[Any]) -> list[Any]:
    return [(c.name, c.type_code) for c in cursor.description or ()]


def _read(side: Side, sql: str) -> Any:
    """The columns of a query and its rows."""
    with _open(side) as c:
        found = c.execute(sql)
        return _seen(found), plain(found)


@check
def columns_have_names_and_types(side: Side) -> Any:
    with _open(side) as c:
        found = c.execute(
            "SELECT channel, count(*) AS n, sum(amount), avg(amount) FROM orders GROUP BY 1 ORDER BY 1"
        )
        return _seen(found), shape(found, 1)


@check
def sums_and_averages_of_integers(side: Side) -> Any:
    with _open(side) as c:
        return _seen(c.execute("SELECT sum(seconds), avg(seconds), stddev(seconds) FROM visits"))


@check
def minima_of_dates_and_times(side: Side) -> Any:
    with _open(side) as c:
        return _seen(c.execute("SELECT min(placed), max(placed) FROM orders"))


@check
def groups_of_a_public_list(side: Side) -> Any:
    with _open(side) as c:
        return shape(c.execute(PAGES), 1)


@check
def groups_that_hold_nobody(side: Side) -> Any:
    """Every public group is answered, whether or not someone is in it."""
    with _open(side) as c:
        sql = "SELECT country, count(*) FROM customers WHERE age > 99 GROUP BY country ORDER BY 1"
        return len(c.execute(sql).fetchall())


@check
def constants_in_text(side: Side) -> Any:
    sql = "SELECT 1 AS i, 'a' AS t, true AS b, NULL AS z, DATE '2024-02-29' AS d"
    with _open(side) as c:
        found = c.execute(sql)
        return _seen(found), plain(found)


@check
def constants_in_binary(side: Side) -> Any:
    sql = "SELECT 1 AS i, 'a' AS t, true AS b, NULL AS z, TIMESTAMP '2024-01-01 10:00:00.25' AS d"
    with _open(side) as c:
        found = c.cursor(binary=True).execute(sql)
        return _seen(found), plain(found)


@check
def names_of_columns(side: Side) -> Any:
    sql = (
        "SELECT CAST('1' AS int4), CAST(NULL AS text) AS b, 1 + 1, true, count(*), max(x.a), 'a', CAST(x.a AS int8),"
        " CASE WHEN true THEN 1 END, coalesce(x.a, 1), (SELECT 1 AS inner), ARRAY[1], TIMESTAMP '2024-01-01'"
        " FROM (SELECT 1 AS a) x GROUP BY x.a"
    )
    with _open(side) as c:
        return [name for name, _ in _seen(c.execute(sql))]


@check
def a_decimal_constant(side: Side) -> Any:
    with _open(side) as c:
        found = c.execute("SELECT 1.5, 2 * 1.25")
        return _seen(found), plain(found)


@check
def public_tables(side: Side) -> Any:
    sql = "SELECT continent, count(*), sum(population) FROM countries GROUP BY 1 ORDER BY 1"
    with _open(side) as c:
        return plain(c.execute(sql))


@check
def rows_of_public_tables(side: Side) -> Any:
    with _open(side) as c:
        found = c.execute("SELECT * FROM countries ORDER BY country LIMIT 3")
        return _seen(found), plain(found)


@check
def parameters_of_every_kind(side: Side) -> Any:
    sql = "SELECT count(*) FROM orders WHERE placed >= %s AND amount < %s AND channel = %s"
    with _open(side) as c:
        return shape(c.execute(sql, (dt.date(2024, 6, 1), 250.5, "web")))


@check
def parameters_in_binary(side: Side) -> Any:
    sql = "SELECT count(*) FROM visits WHERE started >= %b AND seconds > %b"
    moment = dt.datetime(2024, 6, 1)  # noqa: DTZ001
    with _open(side) as c:
        return shape(c.execute(sql, (moment, 20)))


@check
def parameters_come_back(side: Side) -> Any:
    sql = "SELECT %s::int4, %s::text, %s::bool, %s::date, %s::float8, %s::numeric"
    values = (7, "ü'\\", True, dt.date(1999, 12, 31), -0.5, Decimal("12.5"))
    with _open(side) as c:
        found = c.execute(sql, values)
        return _seen(found), plain(found)


@check
def a_list_as_a_parameter(side: Side) -> Any:
    with _open(side) as c:
        sql = "SELECT count(*) FROM orders WHERE channel = ANY(%s)"
        return shape(c.execute(sql, (["web", "shop"],)))


@check
def prepared_statements(side: Side) -> Any:
    with _open(side) as c:
        return [
            shape(c.execute("SELECT count(*) FROM customers WHERE age > %s", (n,), prepare=True))
            for n in (30, 40, 50)
        ]


@check
def rows_as_dictionaries(side: Side) -> Any:
    with _open(side, row_factory=dict_row) as c:
        return [list(row) for row in c.execute(BY_CHANNEL)]


@check
def a_named_cursor(side: Side) -> Any:
    with _open(side) as c, c.transaction(), c.cursor("x") as cursor:
        cursor.itersize = 2
        cursor.execute(PAGES)
        return shape(cursor, 1)


@check
def a_scrollable_cursor(side: Side) -> Any:
    with _open(side) as c, c.transaction(), c.cursor("x", scrollable=True) as cursor:
        cursor.execute(PAGES)
        first = shape(cursor.fetchmany(2), 1)
        cursor.scroll(1)
        second = shape([cursor.fetchone() or ()], 1)
        cursor.scroll(0, mode="absolute")
        return first, second, shape(cursor.fetchall(), 1)


@check
def a_cursor_with_hold(side: Side) -> Any:
    with _open(side) as c, c.cursor("h", withhold=True) as cursor:
        cursor.execute(PAGES)
        return shape(cursor.fetchall(), 1)


@check
def a_cursor_that_cannot_scroll(side: Side) -> Any:
    with _open(side) as c, c.transaction(), c.cursor("x", scrollable=False) as cursor:
        cursor.execute(PAGES)
        cursor.fetchmany(3)
        return state(lambda: cursor.scroll(-2))


@check
def pipelines(side: Side) -> Any:
    with _open(side) as c:
        with c.pipeline():
            cursors = [c.execute("SELECT %s::int4 + 1", (i,)) for i in range(12)]
        return [cursor.fetchone() for cursor in cursors]


@check
def an_error_in_a_pipeline(side: Side) -> Any:
    def talk(c: psycopg.Connection) -> None:
        with c.pipeline() as pipeline:
            for sql in ("SELECT 1", "SELECT count(*) FROM nowhere", "SELECT 2"):
                c.execute(sql)
            pipeline.sync()

    with _open(side) as c:
        return state(lambda: talk(c)), c.execute("SELECT 3").fetchone()


@check
def copy_as_text(side: Side) -> Any:
    sql = "COPY (SELECT country, continent, population FROM countries ORDER BY 1) TO STDOUT"
    with _open(side) as c, c.cursor().copy(sql) as copy:
        return b"".join(bytes(part) for part in copy).decode()


@check
def copy_as_csv(side: Side) -> Any:
    inner = "SELECT country, NULL AS nothing, 'a;\"b' AS x FROM countries ORDER BY 1"
    sql = f"COPY ({inner}) TO STDOUT (FORMAT csv, DELIMITER ';', HEADER, NULL '-', FORCE_QUOTE *)"
    with _open(side) as c, c.cursor().copy(sql) as copy:
        return b"".join(bytes(part) for part in copy).decode()


_SPECIAL = r"SELECT E'a\tb\\c\nd' AS x, 'qr,s;t' AS y, NULL AS z, '' AS e, '\.' AS f"


@check
def copy_of_special_characters(side: Side) -> Any:
    ways = ("", "(DELIMITER ';', NULL '-')", "(FORMAT csv)", "(FORMAT csv, QUOTE '#', HEADER)")
    found = []
    for options in ways:
        with _open(side) as c, c.cursor().copy(f"COPY ({_SPECIAL}) TO STDOUT {options}") as copy:
            found.append(b"".join(bytes(part) for part in copy).decode())
    return found


@check
def copy_of_many_rows(side: Side) -> Any:
    rows = "SELECT i::int4 AS i, 'x,' || i AS t, NULL::text AS z FROM generate_series(1, 40000) AS s(i)"
    found = []
    for options in ("", "(FORMAT csv)", "(FORMAT binary)"):
        with _open(side) as c, c.cursor().copy(f"COPY ({rows}) TO STDOUT {options}") as copy:
            data = b"".join(bytes(part) for part in copy)
            found.append((len(data), hashlib.sha256(data).hexdigest()))
    return found


@check
def many_numbers_and_times(side: Side) -> Any:
    """Columns of a large answer, in both formats, down to the last digit."""
    sql = (
        "SELECT (i * 7919 % 20011)::float8 / 7 AS a, 10 ^ ((i % 60) - 30)::float8 AS b,"
        " TIMESTAMP '2000-02-28 23:59:59.5' + i * INTERVAL '13 seconds' AS c,"
        " CASE WHEN i % 3 = 0 THEN NULL ELSE DATE '1999-12-31' + i::int4 END AS d, i % 2 = 0 AS e"
        " FROM generate_series(1, 3000) AS s(i)"
    )
    found = []
    with _open(side) as c:
        for binary in (False, True):
            rows = plain(c.cursor(binary=binary).execute(sql))
            found.append([rows[0], rows[1500], hashlib.sha256(repr(rows).encode()).hexdigest()])
        with c.cursor().copy(f"COPY ({sql}) TO STDOUT") as copy:
            found.append([hashlib.sha256(b"".join(bytes(p) for p in copy)).hexdigest()])
    return found


@check
def copy_of_nothing(side: Side) -> Any:
    found = []
    for options in ("", "(FORMAT csv, HEADER)", "(FORMAT binary)"):
        sql = f"COPY (SELECT country FROM countries WHERE false) TO STDOUT {options}"
        with _open(side) as c, c.cursor().copy(sql) as copy:
            found.append(b"".join(bytes(part) for part in copy).hex())
    return found


@check
def copy_as_binary(side: Side) -> Any:
    sql = "COPY (SELECT country, population FROM countries ORDER BY 1) TO STDOUT (FORMAT binary)"
    with _open(side) as c, c.cursor().copy(sql) as copy:
        return b"".join(bytes(part) for part in copy).hex()


@check
def several_statements_at_once(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.execute("SELECT 1; SELECT 'a;b' AS x; -- and\n SHOW timezone")
        found = [plain(cursor)]
        while cursor.nextset():
            found.append([[c.name for c in cursor.description or ()], *plain(cursor)])
        return found[:2]


@check
def transaction_states(side: Side) -> Any:
    with psycopg.connect(side.dsn) as c:
        found = [c.info.transaction_status.name]
        c.execute("SELECT 1")
        found.append(c.info.transaction_status.name)
        found.append(state(lambda: c.execute("SELECT count(*) FROM nowhere")))
        found.append(c.info.transaction_status.name)
        found.append(state(lambda: c.execute("SELECT 1")))
        c.rollback()
        c.execute("SAVEPOINT a")
        found.append(state(lambda: c.execute("SELECT nothing FROM customers")))
        c.execute("ROLLBACK TO a")
        found.append(c.execute("SELECT 1").fetchone())
        return found


@check
def settings_and_their_rollback(side: Side) -> Any:
    with psycopg.connect(side.dsn) as c:
        c.execute("SET application_name = 'chart'")
        found = [c.execute("SHOW application_name").fetchone()]
        c.rollback()
        return [*found, c.execute("SHOW application_name").fetchone()]


@check
def server_parameters(side: Side) -> Any:
    with _open(side) as c:
        names = ("server_encoding", "client_encoding", "standard_conforming_strings", "DateStyle",
                 "integer_datetimes", "IntervalStyle", "is_superuser", "session_authorization")  # fmt: skip
        return [c.info.parameter_status(name) for name in names]


@check
def sql_prepare(side: Side) -> Any:
    with _open(side) as c:
        c.execute("PREPARE q (int) AS SELECT count(*) FROM customers WHERE age > $1")
        found = shape(c.execute("EXECUTE q (50)"))
        c.execute("DEALLOCATE q")
        return found, state(lambda: c.execute("EXECUTE q (50)"))


@check
def what_is_not_there(side: Side) -> Any:
    with _open(side) as c:
        return [
            state(lambda sql=sql: c.execute(sql))  # type: ignore[misc]
            for sql in (
                "SELECT count(*) FROM nowhere", "SELECT nothing FROM customers",
                "SELECT no_such_function(age) FROM customers", "SELEC 1",
                "SELECT count(* FROM orders", "SELECT 'open", "FETCH 1 FROM nothing",
                "EXECUTE nothing", "RELEASE nothing", "SHOW nothing_at_all",
                "SELECT country, count(*) FROM customers",
            )
        ]  # fmt: skip


@check
def a_group_that_is_not_selected(side: Side) -> Any:
    with _open(side) as c:
        return state(lambda: c.execute("SELECT count(*) FROM customers GROUP BY 2"))[:8]


@check
def what_may_not_be_written(side: Side) -> Any:
    with _open(side) as c:
        return [
            state(lambda sql=sql: c.execute(sql))  # type: ignore[misc]
            for sql in (
                "CREATE TABLE t (a int)", "CREATE TEMP TABLE t (a int)", "DELETE FROM orders",
                "INSERT INTO countries VALUES ('xx', 'x', 1)", "UPDATE orders SET amount = 0",
                "COPY orders FROM STDIN", "TRUNCATE orders",
            )
        ]  # fmt: skip


@check
def rows_of_people(side: Side) -> Any:
    with _open(side) as c:
        return state(lambda: c.execute("SELECT email FROM customers LIMIT 5"))


@check
def columns_without_rows(side: Side) -> Any:
    with _open(side) as c:
        return [
            _seen(c.execute(sql))
            for sql in (
                "SELECT * FROM orders LIMIT 0", "SELECT * FROM visits WHERE 1 = 0",
                "SELECT channel, sum(amount) FROM orders GROUP BY 1 LIMIT 0",
                "SELECT o.*, c.age FROM orders o JOIN customers c USING (customer_id) LIMIT 0",
            )
        ]  # fmt: skip


@check
def a_canceled_statement_leaves_a_usable_session(side: Side) -> Any:
    with _open(side) as c:
        c.cancel_safe()
        return c.execute("SELECT 1").fetchone()


@check
def a_wrong_password(side: Side) -> Any:
    try:
        psycopg.connect(side.dsn, password="wrong")
    except psycopg.OperationalError as error:
        return "password authentication failed" in str(error)
    return False


@check
def catalog_types(side: Side) -> Any:
    sql = "SELECT oid, typname, typarray, typlen, typtype, typcategory FROM pg_type WHERE oid IN (16, 20, 23, 25, 701, 1082, 1114, 1700) ORDER BY oid"
    return _read(side, sql)


@check
def catalog_tableoid_and_names(side: Side) -> Any:
    sql = "SELECT tableoid, relname, relname::text, relkind FROM pg_class WHERE relname = 'orders'"
    return _read(side, sql)


@check
def catalog_composites(side: Side) -> Any:
    sql = "SELECT (information_schema._pg_expandarray(indkey)).* FROM pg_index WHERE indrelid = 'customers'::regclass"
    return _read(side, sql)


@check
def columns_of_the_information_schema(side: Side) -> Any:
    sql = (
        "SELECT table_name, column_name, ordinal_position, data_type, is_nullable, udt_name,"
        " numeric_precision, datetime_precision FROM information_schema.columns"
        " WHERE table_schema = 'public' ORDER BY 1, 3"
    )
    return _read(side, sql)


@check
def constants_are_computed_as_postgresql_does(side: Side) -> Any:
    with _open(side) as c:
        quotients = c.execute("SELECT 7 / 2, -7 / 2, 7 % 2, 7.0 / 2 > 3").fetchall()
        order = "SELECT * FROM (VALUES (1), (NULL), (2)) AS t(a) ORDER BY a"
        return quotients, [c.execute(order + way).fetchall() for way in (" DESC", "", " ASC")]
