"""asyncpg: everything prepared, everything binary, cursors as portals with row limits, pools."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
from sides import Side, checks, plain, shape

check = checks("asyncpg")


def _talk(side: Side, work: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    async def talk() -> Any:
        connection = await asyncpg.connect(**_where(side))
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(talk())


def _where(side: Side) -> dict[str, Any]:
    return {
        "host": side.host, "port": side.port, "user": side.role, "password": side.password,
        "database": side.database, "ssl": False,
    }  # fmt: skip


async def _state(work: Awaitable[Any]) -> str:
    try:
        await work
    except asyncpg.PostgresError as error:
        return f"error {error.sqlstate}"
    return "no error"


@check
def parameter_types_are_inferred(side: Side) -> Any:
    sql = (
        "SELECT count(*) FROM orders WHERE placed >= $1 AND amount < $2 AND channel = $3"
        " AND customer_id > $4"
    )

    async def work(c: asyncpg.Connection) -> Any:
        prepared = await c.prepare(sql)
        values = (dt.date(2024, 6, 1), 99.5, "web", 3)
        return (
            [p.name for p in prepared.get_parameters()],
            [(a.name, a.type.name) for a in prepared.get_attributes()],
            shape(await prepared.fetch(*values)),
        )

    return _talk(side, work)


@check
def parameters_beside_integers(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        prepared = await c.prepare("SELECT count(*) FROM customers WHERE age > $1 LIMIT $2")
        return [p.name for p in prepared.get_parameters()]

    return _talk(side, work)


@check
def arrays_as_parameters(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        types = await c.fetch(
            "SELECT typname FROM pg_type WHERE oid = ANY($1::oid[]) ORDER BY 1", [23, 25]
        )
        channels = await c.fetch(
            "SELECT count(*) FROM orders WHERE channel = ANY($1::text[])", ["web", "shop"]
        )
        return plain(types), shape(channels)

    return _talk(side, work)


@check
def values_come_back(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        moment = dt.datetime(2024, 6, 1, 1, 2, 3, 456)  # noqa: DTZ001
        return plain(
            await c.fetch(
                "SELECT $1::int8, $2::float8, $3::text, $4::timestamp, $5::bool, $6::int4[]",
                2**40, 0.1, "x", moment, None, [1, 2],
            )
        )  # fmt: skip

    return _talk(side, work)


@check
def cursors(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        async with c.transaction():
            cursor = await c.cursor("SELECT page, count(*) FROM visits GROUP BY 1 ORDER BY 1")
            return shape(
                [*await cursor.fetch(2), *await cursor.fetch(2), *await cursor.fetch(9)], 1
            )

    return _talk(side, work)


@check
def cursors_that_are_iterated(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        async with c.transaction():
            sql = "SELECT country FROM countries ORDER BY 1"
            return [row["country"] async for row in c.cursor(sql, prefetch=2)]

    return _talk(side, work)


@check
def errors(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        return [
            await _state(c.fetch("SELECT count(*) FROM nowhere")),
            await _state(c.fetch("SELECT nothing FROM customers")),
            await _state(c.execute("CREATE TABLE x (a int)")),
            await c.fetchval("SELECT 1"),
        ]

    return _talk(side, work)


@check
def transactions(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        outer = c.transaction()
        await outer.start()
        inner = c.transaction()
        await inner.start()
        found = [await _state(c.fetch("SELECT count(*) FROM nowhere"))]
        await inner.rollback()
        found.append(await c.fetchval("SELECT 2"))
        await outer.commit()
        return found

    return _talk(side, work)


@check
def many_executions(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        prepared = await c.prepare("SELECT $1::int4 * 2")
        return [await prepared.fetchval(i) for i in range(10)]

    return _talk(side, work)


@check
def copy_from_a_query(side: Side) -> Any:
    import io

    async def work(c: asyncpg.Connection) -> Any:
        out = io.BytesIO()
        said = await c.copy_from_query(
            "SELECT country, population FROM countries ORDER BY 1", output=out, format="csv"
        )
        return said, out.getvalue().decode()

    return _talk(side, work)


@check
def pools_reset_their_connections(side: Side) -> Any:
    async def talk() -> Any:
        async with asyncpg.create_pool(min_size=2, max_size=3, **_where(side)) as pool:
            return await asyncio.gather(
                *(pool.fetchval("SELECT 2 + $1::int4", i) for i in range(12))
            )

    return asyncio.run(talk())


@check
def introspection_of_types(side: Side) -> Any:
    async def work(c: asyncpg.Connection) -> Any:
        await c.set_type_codec("json", encoder=str, decoder=str, schema="pg_catalog")
        return await c.fetchval("SELECT '{}'::json")

    return _talk(side, work)


@check
def parameters_in_the_place_of_constants(side: Side) -> Any:
    sql = (
        "SELECT date_trunc($1, started) AS month, count(*) FROM visits"
        " WHERE to_char(started, $2) > $3 AND started < DATE '2025-01-01' + $4::interval"
        " GROUP BY 1 ORDER BY 1 LIMIT $5"
    )

    async def work(c: asyncpg.Connection) -> Any:
        prepared = await c.prepare(sql)
        return (
            [p.name for p in prepared.get_parameters()],
            [(a.name, a.type.name) for a in prepared.get_attributes()],
            shape(await prepared.fetch("month", "YYYY-MM", "2023-12", dt.timedelta(days=3), 4), 1),
        )

    return _talk(side, work)
