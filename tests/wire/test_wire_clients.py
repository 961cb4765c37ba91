"""Stock drivers talk to the endpoint and get what they get from PostgreSQL."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator
from typing import Any

import asyncpg
import pg8000.dbapi
import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint, endpoint, generous

BY_COUNTRY = "SELECT country, count(*) AS n FROM customers GROUP BY country ORDER BY country"
COUNTRIES = ["at", "br", "ch", "de", "fr", "in", "jp", "us", "va"]


@pytest.fixture
def conn(shop: Endpoint) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:
        yield connection


# -- psycopg 3


def test_a_query_has_typed_columns(conn: psycopg.Connection) -> None:
    found = conn.execute(BY_COUNTRY)
    assert found.description is not None
    assert [(c.name, c.type_code) for c in found.description] == [("country", 25), ("n", 20)]
    rows = found.fetchall()
    assert [row[0] for row in rows] == COUNTRIES
    assert all(isinstance(row[1], int) for row in rows)


@pytest.mark.parametrize("binary", [False, True])
def test_text_and_binary_agree(conn: psycopg.Connection, binary: bool) -> None:
    sql = (
        "SELECT min(placed) AS d, min(started) AS t, 1.5 AS x, true AS b, NULL AS z"
        " FROM (VALUES (DATE '2024-02-29', TIMESTAMP '2024-01-01 10:00:00.25')) v(placed, started)"
    )
    row = conn.cursor(binary=binary).execute(sql).fetchone()
    assert row is not None
    moment = dt.datetime(2024, 1, 1, 10, 0, 0, 250_000)  # noqa: DTZ001
    assert row[0] == dt.date(2024, 2, 29)
    assert row[1] == moment
    assert float(row[2]) == 1.5
    assert row[3:] == (True, None)


@pytest.mark.parametrize("binary", [False, True])
def test_private_answers_in_both_formats_are_the_same_release(
    conn: psycopg.Connection, binary: bool
) -> None:
    sql = "SELECT channel, count(*), avg(amount) FROM orders GROUP BY channel ORDER BY channel"
    first = conn.execute(sql).fetchall()
    assert conn.cursor(binary=binary).execute(sql).fetchall() == first


def test_parameters_of_every_kind(conn: psycopg.Connection) -> None:
    sql = (
        "SELECT count(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id"
        " WHERE placed >= %s AND amount < %s AND channel = %s AND age > %s"
    )
    values = (dt.date(2024, 6, 1), 250.5, "web", 30)
    assert len(conn.execute(sql, values).fetchall()) == 1
    assert len(conn.cursor(binary=True).execute(sql, values).fetchall()) == 1


def test_prepared_statements_are_reused(conn: psycopg.Connection) -> None:
    sql = "SELECT count(*) FROM customers WHERE age > %s"
    for _ in range(8):  # after five times psycopg prepares
        assert len(conn.execute(sql, (40,), prepare=True).fetchall()) == 1


def test_a_server_side_cursor(conn: psycopg.Connection) -> None:
    with conn.transaction(), conn.cursor("c") as cursor:
        cursor.itersize = 4
        cursor.execute(BY_COUNTRY)
        assert [row[0] for row in cursor] == COUNTRIES


def test_a_scrollable_cursor(conn: psycopg.Connection) -> None:
    with conn.transaction(), conn.cursor("c", scrollable=True) as cursor:
        cursor.execute(BY_COUNTRY)
        assert [r[0] for r in cursor.fetchmany(2)] == COUNTRIES[:2]
        cursor.scroll(3)
        first = cursor.fetchone()
        assert first is not None
        assert first[0] == COUNTRIES[5]
        cursor.scroll(0, mode="absolute")
        assert [r[0] for r in cursor.fetchall()] == COUNTRIES


def test_a_cursor_that_outlives_its_transaction(conn: psycopg.Connection) -> None:
    with conn.cursor("h", withhold=True) as cursor:
        cursor.execute(BY_COUNTRY)
        assert len(cursor.fetchall()) == 9


def test_pipeline_mode(conn: psycopg.Connection) -> None:
    with conn.pipeline():
        cursors = [conn.execute("SELECT %s::int4 + 1", (i,)) for i in range(20)]
    assert [c.fetchone() for c in cursors] == [(i + 1,) for i in range(20)]


def test_an_error_in_a_pipeline_skips_to_the_sync(conn: psycopg.Connection) -> None:
    def talk() -> None:
        with conn.pipeline() as pipeline:
            for sql in ("SELECT 1", "SELECT count(*) FROM nowhere", "SELECT 2"):
                conn.execute(sql)
            pipeline.sync()

    with pytest.raises(psycopg.errors.UndefinedTable):
        talk()
    assert conn.execute("SELECT 3").fetchone() == (3,)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("", b"at\t"),
        ("(FORMAT csv)", b"at,"),
        ("(FORMAT csv, DELIMITER ';', HEADER)", b"country;n\n"),
    ],
)
def test_copy_out(conn: psycopg.Connection, options: str, line: bytes) -> None:
    with conn.cursor().copy(f"COPY ({BY_COUNTRY}) TO STDOUT {options}") as copy:
        data = b"".join(bytes(part) for part in copy)
    assert data.startswith(line)
    assert data.count(b"\n") == 9 + ("HEADER" in options)


def test_copy_out_in_binary(conn: psycopg.Connection) -> None:
    with conn.cursor().copy(f"COPY ({BY_COUNTRY}) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["text", "int8"])
        assert [row[0] for row in copy.rows()] == COUNTRIES


def test_transactions_are_a_state_machine(shop: Endpoint) -> None:
    with psycopg.connect(shop.dsn()) as connection:
        status = connection.info
        connection.execute("SELECT 1")
        assert status.transaction_status.name == "INTRANS"
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT count(*) FROM nowhere")
        assert status.transaction_status.name == "INERROR"
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        connection.execute("SAVEPOINT a")
        with pytest.raises(psycopg.errors.UndefinedTable), connection.transaction():
            connection.execute("SELECT count(*) FROM nowhere")
        connection.execute("ROLLBACK TO a")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_several_statements_at_once(conn: psycopg.Connection) -> None:
    cursor = conn.execute("SELECT 1; SELECT 'a;b' AS x; -- and\n SHOW timezone")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.fetchall() == [("a;b",)]
    assert cursor.nextset()
    assert cursor.fetchall() == [("UTC",)]
    assert not cursor.nextset()


def test_a_refusal_has_its_fields(conn: psycopg.Connection) -> None:
    sql = "SELECT 1; SELECT email FROM customers"
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        conn.execute(sql)
    said = caught.value.diag
    assert said.message_primary is not None
    assert said.message_primary.startswith("DP")
    assert said.message_detail
    assert said.message_hint
    assert sql[int(said.statement_position or 0) - 1 :].startswith(("email", "SELECT email"))


def test_notices_say_what_no_row_was_looked_at_for(conn: psycopg.Connection) -> None:
    said: list[str | None] = []
    conn.add_notice_handler(lambda notice: said.append(notice.message_primary))
    for _ in range(2):
        conn.execute("SELECT DISTINCT channel FROM orders ORDER BY 1")
    assert said == ["channel: all values that the policy lists; no rows were read"] * 2


def test_notices_say_what_it_cost(conn: psycopg.Connection) -> None:
    heard: list[str] = []
    conn.add_notice_handler(lambda d: heard.append(d.message_primary or ""))
    sql = "SELECT count(*) FROM visits WHERE seconds > 17"
    first = conn.execute(sql).fetchall()
    assert heard.pop().startswith("cost: epsilon 0.1")
    assert conn.execute(sql).fetchall() == first
    assert heard.pop().startswith("recalled:")
    heard.clear()
    conn.execute("SET dpsql.notices = off")
    assert conn.execute(sql).fetchall() == first
    assert not heard


def test_what_was_answered_is_charged_once(shop: Endpoint, conn: psycopg.Connection) -> None:
    before = shop.spent
    conn.execute("SET dpsql.fresh = on")
    with conn.transaction():
        conn.execute(f"DECLARE twice SCROLL CURSOR FOR {BY_COUNTRY}")
        assert shop.spent == before
        first = conn.execute("FETCH ALL FROM twice").fetchall()
        paid = shop.spent
        assert paid > before
        conn.execute("MOVE ABSOLUTE 0 FROM twice")
        assert conn.execute("FETCH ALL FROM twice").fetchall() == first
    assert shop.spent == paid


def test_dpsqls_own_tables_are_described(shop: Endpoint) -> None:
    async def talk() -> None:
        c = await _asyncpg(shop)
        statement = await c.prepare("SELECT account, left_epsilon FROM dpsql.budget LIMIT 1")
        assert [(a.name, a.type.name) for a in statement.get_attributes()] == [
            ("account", "text"), ("left_epsilon", "float8"),
        ]  # fmt: skip
        assert len(await statement.fetch()) == 1
        with pytest.raises(asyncpg.UndefinedColumnError):
            await c.prepare("SELECT nothing FROM dpsql.budget")
        await c.close()

    asyncio.run(talk())


def test_describe_costs_nothing(shop: Endpoint) -> None:
    async def talk() -> list[str]:
        connection = await _asyncpg(shop)
        await connection.execute("SET dpsql.fresh = on")
        statement = await connection.prepare("SELECT page, avg(seconds) FROM visits GROUP BY page")
        names = [a.name for a in statement.get_attributes()]
        await connection.close()
        return names

    before = shop.spent
    assert asyncio.run(talk()) == ["page", "avg"]
    assert shop.spent == before


def test_a_suspended_portal_reads_one_answer(shop: Endpoint) -> None:
    """asyncpg's cursors are portals with row limits."""

    async def talk() -> list[Any]:
        connection = await _asyncpg(shop)
        await connection.execute("SET dpsql.fresh = on")
        before = shop.spent
        async with connection.transaction():
            cursor = await connection.cursor(BY_COUNTRY)
            rows = await cursor.fetch(4) + await cursor.fetch(4) + await cursor.fetch(4)
        await connection.close()
        assert shop.spent > before
        return rows

    assert [row["country"] for row in asyncio.run(talk())] == COUNTRIES


def test_sql_prepare_and_execute(conn: psycopg.Connection) -> None:
    """Each execution is the statement with its own value in the parameter's place.

    Answers of the statements as they are written are recalled, number for number; so a parameter
    that is ignored, or taken from another execution, is noticed.
    """
    older = "SELECT count(*) FROM customers WHERE age > {}"
    written = {age: conn.execute(older.format(age)).fetchall() for age in (20, 50)}
    assert written[20] != written[50]
    before = conn.execute("SHOW dpsql.budget").fetchall()
    conn.execute(f"PREPARE q (int) AS {older.format('$1')}")
    for age in (50, 20, 50):
        assert conn.execute(f"EXECUTE q ({age})").fetchall() == written[age]
    assert conn.execute("SHOW dpsql.budget").fetchall() == before, "each of them was recalled"
    conn.execute("DEALLOCATE q")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        conn.execute("EXECUTE q (50)")


def test_settings_and_their_rollback(shop: Endpoint) -> None:
    with psycopg.connect(shop.dsn()) as connection:
        connection.execute("SET application_name = 'chart'")
        assert connection.execute("SHOW application_name").fetchone() == ("chart",)
        connection.rollback()
        assert connection.execute("SHOW application_name").fetchone() == ("",)
        connection.execute("SET dpsql.epsilon = 0.05")
        assert connection.execute("SHOW dpsql.epsilon").fetchone() != ("default",)
        connection.rollback()
        assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("default",)


def test_a_session_account_is_chosen_by_the_options(shop: Endpoint) -> None:
    options = "-c dpsql.session=board -c dpsql.epsilon=0.02"
    with psycopg.connect(shop.dsn(options=options), autocommit=True) as connection:
        assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("1/50",)
        accounts = connection.execute("SHOW dpsql.budget").fetchall()
    assert any("board" in row[0] for row in accounts)


def test_intervals_are_columns(conn: psycopg.Connection) -> None:
    conn.execute("SET dpsql.intervals = on")
    cursor = conn.execute("SELECT count(*) AS n FROM customers", prepare=True)
    assert [c.name for c in cursor.description or ()] == ["n", "n_low", "n_high"]
    row = cursor.fetchone()
    assert row is not None
    assert row[1] < row[0] < row[2]


@pytest.mark.parametrize(
    "sql",
    ["CREATE TEMP TABLE t (a int)", "INSERT INTO orders VALUES (1)", "COPY orders FROM STDIN",
     "DROP TABLE orders", "SELECT * FROM read_csv('/etc/passwd')", "ATTACH 'x'", "DO $$ x $$",
     "SELECT pg_read_file('/etc/passwd')", "SELECT getenv('HOME')"],
)  # fmt: skip
def test_nothing_is_written_and_no_file_is_read(conn: psycopg.Connection, sql: str) -> None:
    with pytest.raises(psycopg.Error):
        conn.execute(sql)


def test_columns_without_rows_are_free(shop: Endpoint, conn: psycopg.Connection) -> None:
    before = shop.spent
    for sql in (
        "SELECT * FROM orders LIMIT 0",
        "SELECT * FROM (SELECT * FROM orders) AS t WHERE 1 = 0",
        "SELECT channel, sum(amount) FROM orders GROUP BY 1 LIMIT 0",
    ):
        cursor = conn.execute(sql)
        assert cursor.fetchall() == []
        assert cursor.description
    assert shop.spent == before
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        conn.execute("SELECT * FROM orders LIMIT 1000")


# -- asyncpg


async def _asyncpg(shop: Endpoint, **more: Any) -> asyncpg.Connection:
    return await asyncpg.connect(
        host="127.0.0.1", port=shop.port, user=ROLE, password=PASSWORD, database="shop",
        ssl=False, **more,
    )  # fmt: skip


def test_asyncpg_infers_parameters(shop: Endpoint) -> None:
    async def talk() -> None:
        c = await _asyncpg(shop)
        assert await c.fetchval("SELECT 1") == 1
        assert await c.fetchval("SELECT $1::int8 + 1", 41) == 42
        sql = (
            "SELECT count(*) FROM orders WHERE placed >= $1 AND amount < $2 AND channel = $3"
            " AND customer_id > $4"
        )
        found = await c.fetchval(sql, dt.date(2024, 6, 1), 99.5, "web", 3)
        assert isinstance(found, int)
        statement = await c.prepare(sql)
        kinds = [p.name for p in statement.get_parameters()]
        assert kinds == ["date", "float8", "text", "int8"]
        moment = dt.datetime(2024, 6, 1)  # noqa: DTZ001
        assert (
            await c.fetchval("SELECT count(*) FROM visits WHERE started < $1", moment) is not None
        )
        rows = await c.fetch("SELECT typname FROM pg_type WHERE oid = ANY($1::oid[])", [23, 25])
        assert sorted(r["typname"] for r in rows) == ["int4", "text"]
        with pytest.raises(asyncpg.UndefinedTableError):
            await c.fetch("SELECT count(*) FROM nowhere")
        await c.close()

    asyncio.run(talk())


def test_an_asyncpg_pool_resets_its_connections(shop: Endpoint) -> None:
    async def talk() -> None:
        async with asyncpg.create_pool(
            host="127.0.0.1", port=shop.port, user=ROLE, password=PASSWORD, database="shop",
            min_size=2, max_size=4, ssl=False,
        ) as pool:  # fmt: skip
            found = await asyncio.gather(
                *(pool.fetchval("SELECT 2 + $1::int4", i) for i in range(20))
            )
            assert found == [2 + i for i in range(20)]

    asyncio.run(talk())


# -- pg8000


def test_pg8000(shop: Endpoint) -> None:
    connection = pg8000.dbapi.connect(
        user=ROLE, host="127.0.0.1", port=shop.port, password=PASSWORD, database="shop"
    )
    try:
        cursor = connection.cursor()
        cursor.execute(BY_COUNTRY)
        assert [row[0] for row in cursor.fetchall()] == COUNTRIES
        cursor.execute("SELECT count(*) FROM customers WHERE age > %s AND country = %s", (30, "de"))
        assert len(cursor.fetchall()) == 1
        connection.commit()
        with pytest.raises(pg8000.dbapi.DatabaseError):
            cursor.execute("SELECT nothing FROM customers")
        connection.rollback()
    finally:
        connection.close()


# -- budgets


def _poor(text: str) -> str:
    return generous(text).replace("session: {epsilon: 1e4}", "session: {epsilon: 0.15}", 1)


def test_an_empty_budget_is_an_error_that_no_driver_retries() -> None:
    with endpoint(_poor) as poor, psycopg.connect(poor.dsn(), autocommit=True) as connection:
        connection.execute("SELECT count(*) FROM customers")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded) as caught:
            connection.execute("SELECT count(*) FROM orders")
        assert caught.value.diag.message_hint
        assert len(connection.execute("SELECT count(*) FROM customers").fetchall()) == 1


def test_several_quantiles_are_an_array(conn: psycopg.Connection) -> None:
    sql = "SELECT APPROX_QUANTILES(age, 4) AS q, QUANTILE_DISC(placed, ARRAY[0.5]) AS d FROM customers JOIN orders USING (customer_id)"
    for binary in (False, True):
        found = conn.cursor(binary=binary).execute(sql)
        assert [c.type_display for c in found.description or ()] == ["int8[]", "date[]"]
        row = found.fetchone()
        assert row is not None
        assert len(row[0]) == 5
        assert row[0] == sorted(row[0])
        assert isinstance(row[1][0], dt.date)


def test_tables_and_columns_are_told_in_words_of_other_databases(conn: psycopg.Connection) -> None:
    tables = conn.execute("SHOW TABLES")
    assert tables.description is not None
    assert [c.name for c in tables.description] == ["table_name", "type", "unit", "description"]
    assert {row[0] for row in tables} >= {"orders", "countries"}
    for sql in ("DESCRIBE orders", "DESC public.orders", "SHOW COLUMNS FROM orders"):
        columns = conn.execute(sql).fetchall()
        assert [row[0] for row in columns] == ["customer_id", "amount", "placed", "channel"]
    with pytest.raises(psycopg.errors.UndefinedTable):
        conn.execute("DESCRIBE nothing")
    with pytest.raises(psycopg.errors.SyntaxError):
        conn.execute("SHOW COLUMNS orders")
