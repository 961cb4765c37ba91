"""Columns come back as the types that the catalog says they have, in every format."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from uuid import UUID

import asyncpg
import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint, endpoint

OF_ARTICLES = {
    "article": ("int4", int), "price": ("numeric", Decimal), "list_price": ("float8", float),
    "size": ("int2", int), "weight": ("float4", float), "tag": ("uuid", UUID),
    "quality": ("text", str), "since": ("timestamptz", dt.datetime),
    "added": ("timestamp", dt.datetime), "made": ("date", dt.date), "name": ("text", str),
}  # fmt: skip
"""Each column of the public table: PostgreSQL's type, and psycopg's class of it."""
FIRST = (
    1, Decimal("1.01"), 1.001, 1, 0.125, UUID("00000000-0000-4000-8000-000000000001"), "fine",
    dt.datetime(2024, 3, 30, 21, 30, tzinfo=dt.UTC), dt.datetime(2024, 3, 30, 23, 30),  # noqa: DTZ001
    dt.date(2024, 1, 2), "article 1",
)  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[Endpoint]:
    with endpoint(world="types") as where:
        yield where


@pytest.fixture
def conn(served: Endpoint) -> Iterator[psycopg.Connection]:
    with psycopg.connect(served.dsn(), autocommit=True) as connection:
        yield connection


def _names(cursor: psycopg.Cursor) -> list[str]:
    assert cursor.description is not None
    types = psycopg.adapters.types
    return [found.name if (found := types.get(c.type_code)) else "?" for c in cursor.description]


@pytest.mark.parametrize("binary", [False, True])
def test_public_columns_have_their_own_types(conn: psycopg.Connection, binary: bool) -> None:
    cursor = conn.cursor(binary=binary)
    rows = cursor.execute("SELECT * FROM articles ORDER BY article").fetchall()
    assert _names(cursor) == [name for name, _ in OF_ARTICLES.values()]
    assert [type(v) for v in rows[0]] == [kind for _, kind in OF_ARTICLES.values()]
    assert rows[0] == FIRST
    assert cursor.description is not None
    assert (cursor.description[1].precision, cursor.description[1].scale) == (7, 2)


def test_the_catalog_and_the_rows_agree(conn: psycopg.Connection) -> None:
    said = conn.execute(
        "SELECT atttypid::int8, atttypmod FROM pg_catalog.pg_attribute WHERE attrelid ="
        " (SELECT oid FROM pg_catalog.pg_class WHERE relname = 'articles') AND attnum > 0"
        " ORDER BY attnum"
    ).fetchall()
    cursor = conn.execute("SELECT * FROM articles LIMIT 0")
    assert cursor.description is not None
    assert [(c.type_code, _modifier(c)) for c in cursor.description] == said


def _modifier(column: psycopg.Column) -> int:
    if column.precision is None or column.scale is None:
        return -1
    return (column.precision << 16 | column.scale) + 4


@pytest.mark.parametrize("binary", [False, True])
def test_groups_of_private_rows_have_them_too(conn: psycopg.Connection, binary: bool) -> None:
    cursor = conn.cursor(binary=binary)
    cursor.execute("SELECT points, COUNT(*), SUM(balance) FROM buyers GROUP BY points")
    assert _names(cursor) == ["int2", "int8", "numeric"]
    assert all(
        isinstance(total, Decimal) and total.as_tuple().exponent == -2
        for _, _, total in cursor.fetchall()
    )
    cursor.execute("SELECT DATE_TRUNC('month', joined) AS m, COUNT(*) FROM buyers GROUP BY 1")
    assert _names(cursor) == ["timestamptz", "int8"]
    assert all(m is None or m.utcoffset() == dt.timedelta() for m, _ in cursor.fetchall())


@pytest.mark.parametrize("binary", [False, True])
def test_parameters_of_these_types(conn: psycopg.Connection, binary: bool) -> None:
    cursor = conn.cursor(binary=binary)
    zone = dt.timezone(dt.timedelta(hours=2))
    for condition, value, wanted in (
        ("tag = %b", FIRST[5], [1]),
        ("tag = %s", str(FIRST[5]).upper(), [1]),
        ("since = %b", dt.datetime(2024, 3, 30, 23, 30, tzinfo=zone), [1]),
        ("since < %s", "2024-03-31T00:00:00+02:00", [1]),
        ("price = %b", Decimal("2.02"), [2]),
    ):
        found = cursor.execute(f"SELECT article FROM articles WHERE {condition}", (value,))  # type: ignore[arg-type]
        assert [row[0] for row in found.fetchall()] == wanted, condition


def test_local_times_are_those_of_the_named_zone(conn: psycopg.Connection) -> None:
    cursor = conn.execute(
        "SELECT since AT TIME ZONE 'Europe/Berlin', added AT TIME ZONE 'Europe/Berlin', since::text"
        " FROM articles WHERE article IN (4, 5) ORDER BY article"
    )
    assert _names(cursor) == ["timestamp", "timestamptz", "text"]
    assert cursor.description is not None
    assert [c.name for c in cursor.description] == ["timezone", "timezone", "since"]
    assert cursor.fetchall() == [
        (dt.datetime(2024, 3, 31, 1, 30), _utc(1, 30), "2024-03-31 00:30:00+00"),  # noqa: DTZ001
        # Clocks went from 2 to 3: half past two is half past three.
        (dt.datetime(2024, 3, 31, 3, 30), _utc(1, 30), "2024-03-31 01:30:00+00"),  # noqa: DTZ001
    ]  # fmt: skip


def _utc(hour: int, minute: int) -> dt.datetime:
    return dt.datetime(2024, 3, 31, hour, minute, tzinfo=dt.UTC)


COPIED = "SELECT article, price, size, weight, tag, since FROM articles ORDER BY article"
TYPES = ["int4", "numeric", "int2", "float4", "uuid", "timestamptz"]


def test_copy_writes_them(conn: psycopg.Connection) -> None:
    cursor = conn.cursor()
    with cursor.copy(f"COPY ({COPIED}) TO STDOUT") as copy:
        (first, *_) = bytes(b"".join(copy)).splitlines()
    assert first == (
        b"1\t1.01\t1\t0.125\t00000000-0000-4000-8000-000000000001\t2024-03-30 21:30:00+00"
    )
    with cursor.copy(f"COPY ({COPIED}) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(TYPES)
        (one, *_) = copy.rows()
    assert one == (*FIRST[:2], *FIRST[3:6], FIRST[7])


def test_many_rows_are_written_like_few(conn: psycopg.Connection) -> None:
    """Beyond some hundred rows other code writes them, by columns."""
    many = "FROM articles AS a, generate_series(1, 40) AS n"
    for binary in (False, True):
        cursor = conn.cursor(binary=binary)
        cursor.execute(
            f"SELECT DISTINCT article, price, size, weight, tag, since, n.n {many} ORDER BY n.n, article"
        )
        rows = cursor.fetchall()
        assert len(rows) == 480
        assert rows[0][:6] == (*FIRST[:2], *FIRST[3:6], FIRST[7])
        assert {row[:6] for row in rows} == {row[:6] for row in rows[:12]}


def test_asyncpg_learns_the_types_of_parameters(served: Endpoint) -> None:
    """It sends nothing before it knows them, and takes values of just these."""

    async def asked() -> list[list[int]]:
        client = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user=ROLE, password=PASSWORD, database="shop",
            ssl=False,
        )  # fmt: skip
        try:
            sql = "SELECT article FROM articles WHERE {} ORDER BY 1"
            found = [
                await client.fetch(sql.format("tag = $1"), FIRST[5]),
                await client.fetch(sql.format("tag = ANY($1)"), [FIRST[5]]),
                await client.fetch(sql.format("since = $1"), FIRST[7]),
                await client.fetch(sql.format("added = $1"), FIRST[8]),
            ]
            rows = await client.fetch("SELECT * FROM articles WHERE article = 1")
            assert tuple(rows[0].values()) == FIRST
        finally:
            await client.close()
        return [[row["article"] for row in rows] for rows in found]

    assert asyncio.run(asked()) == [[1]] * 4
