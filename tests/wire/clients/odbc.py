"""psqlODBC through unixODBC and pyodbc: catalog functions, cursors, parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sides import Side, checks, plain, shape

check = checks("psqlODBC")
DRIVER = "PostgreSQL Unicode"


def available() -> bool:
    """Whether there is a driver manager, and it knows the driver."""
    try:
        import pyodbc
    except ImportError:
        return False
    return DRIVER in pyodbc.drivers()


@contextmanager
def _open(side: Side, **more: str) -> Iterator[Any]:
    import pyodbc

    parts = {
        "DRIVER": f"{{{DRIVER}}}", "SERVER": side.host, "PORT": str(side.port), "UID": side.role,
        "PWD": side.password, "DATABASE": side.database, "SSLmode": "disable", **more,
    }  # fmt: skip
    connection = pyodbc.connect(";".join(f"{k}={v}" for k, v in parts.items()))
    try:
        yield connection
    finally:
        connection.close()


def _state(cursor: Any, sql: str) -> str:
    import pyodbc

    try:
        cursor.execute(sql)
    except pyodbc.Error as error:
        return f"error {error.args[0]}"
    return "no error"


@check
def rows_and_their_types(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.execute("SELECT page, count(*) AS n FROM visits GROUP BY page ORDER BY page")
        return [(d[0], d[1].__name__) for d in cursor.description], shape(cursor.fetchall(), 1)


@check
def constants(side: Side) -> Any:
    with _open(side) as c:
        sql = "SELECT 1 AS i, 'x' AS t, DATE '2024-02-29' AS d, TIMESTAMP '2024-01-01 10:00:00' AS m, NULL AS z"
        return plain(c.execute(sql).fetchall())


@check
def parameters(side: Side) -> Any:
    with _open(side) as c:
        sql = "SELECT count(*) FROM orders WHERE placed >= ? AND channel = ?"
        return shape(c.execute(sql, dt.date(2024, 6, 1), "web").fetchall())


@check
def numbers_as_parameters(side: Side) -> Any:
    with _open(side) as c:
        sql = "SELECT country FROM countries WHERE population > ? ORDER BY 1"
        return plain(c.execute(sql, 100).fetchall())


@check
def tables(side: Side) -> Any:
    with _open(side) as c:
        found = c.cursor().tables(schema="public").fetchall()
        return sorted((t.table_name, t.table_type, t.remarks) for t in found)


@check
def columns(side: Side) -> Any:
    with _open(side) as c:
        found = c.cursor().columns(table="orders").fetchall()
        return [
            (r.column_name, r.type_name, r.data_type, r.nullable, r.ordinal_position) for r in found
        ]


@check
def primary_keys(side: Side) -> Any:
    with _open(side) as c:
        return [(r.column_name, r.key_seq, r.pk_name) for r in c.cursor().primaryKeys("customers")]


@check
def foreign_keys(side: Side) -> Any:
    with _open(side) as c:
        found = c.cursor().foreignKeys(foreignTable="orders").fetchall()
        return [(r.pktable_name, r.pkcolumn_name, r.fktable_name, r.fkcolumn_name) for r in found]


@check
def statistics(side: Side) -> Any:
    with _open(side) as c:
        found = c.cursor().statistics("customers", quick=True).fetchall()
        return [(r.index_name, r.column_name, r.non_unique) for r in found if r.index_name]


@check
def type_info(side: Side) -> Any:
    with _open(side) as c:
        return sorted(r.type_name for r in c.cursor().getTypeInfo())[:10]


@check
def declare_and_fetch(side: Side) -> Any:
    with _open(side, UseDeclareFetch="1", Fetch="3") as c:
        return plain(c.execute("SELECT country FROM countries ORDER BY 1").fetchall())


@check
def errors_and_rollback(side: Side) -> Any:
    with _open(side) as c:
        cursor = c.cursor()
        found = [
            _state(cursor, "SELECT * FROM nowhere"),
            _state(cursor, "SELECT nothing FROM customers"),
        ]
        c.rollback()
        return [*found, plain(cursor.execute("SELECT 1").fetchall())]
