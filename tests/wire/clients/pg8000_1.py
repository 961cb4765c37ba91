"""pg8000: pure Python, extended protocol with text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pg8000.dbapi
from sides import Side, checks, plain, shape, state

check = checks("pg8000")


@contextmanager
def _open(side: Side) -> Iterator[pg8000.dbapi.Connection]:
    connection = pg8000.dbapi.connect(
        user=side.role, host=side.host, port=side.port, password=side.password,
        database=side.database,
    )  # fmt: skip
    try:
        yield connection
    finally:
        connection.close()


@check
def rows_and_their_types(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.cursor()
        cursor.execute(
            "SELECT page, count(*) AS n, avg(seconds * 1.5::float8) FROM visits GROUP BY 1 ORDER BY 1"
        )
        return [(d[0], d[1]) for d in cursor.description], shape(cursor.fetchall(), 1)


@check
def parameters(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.cursor()
        cursor.execute(
            "SELECT count(*) FROM orders WHERE placed > %s AND channel = %s AND amount > %s",
            (dt.date(2024, 6, 1), "web", 10.5),
        )
        return shape(cursor.fetchall())


@check
def values_come_back(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.cursor()
        cursor.execute("SELECT true, 1, 'x', DATE '2024-01-02', NULL, ARRAY[1, 2]")
        return plain(cursor.fetchall())


@check
def errors_and_rollback(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.cursor()
        found = [
            state(lambda: cursor.execute("SELECT nothing FROM customers")),
            state(lambda: cursor.execute("SELECT 1")),
        ]
        c.rollback()
        cursor.execute("SELECT 5")
        return [*found, plain(cursor.fetchall())]


@check
def many_fetches(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.cursor()
        cursor.execute("SELECT country FROM countries ORDER BY 1")
        return cursor.fetchone(), plain(cursor.fetchmany(3)), plain(cursor.fetchall())
