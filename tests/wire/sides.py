"""Two servers with the same tables: dpsql's endpoint and a real PostgreSQL. Clients talk to both.

A check is what one client does, and gives back what it saw: values where they are public, the shape
of rows where they are noised, SQLSTATEs where something fails. What the two servers give must be
equal, unless ``differences.py`` says why not.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from endpoint import PASSWORD, ROLE, Endpoint
from postgres_server import Server
from support.datasets import database

CLIENTS = Path(__file__).parent / "clients"
DATABASE = "shop"


@dataclass(frozen=True)
class Side:
    """One of the two servers, as a client sees it."""

    port: int
    role: str = ROLE
    password: str = PASSWORD
    database: str = DATABASE
    host: str = "127.0.0.1"
    viewer: str = ROLE
    """A role that may have temporary views, which PostgreSQL allows together with tables."""

    @property
    def dsn(self) -> str:
        return (
            f"host={self.host} port={self.port} user={self.role} password='{self.password}'"
            f" dbname={self.database}"
        )

    def url(self, scheme: str) -> str:
        return f"{scheme}://{self.role}:correct%20horse@{self.host}:{self.port}/{self.database}"

    @property
    def environment(self) -> dict[str, str]:
        """As libpq and programs of other languages take it."""
        return {
            "PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.role,
            "PGPASSWORD": self.password, "PGDATABASE": self.database,
        }  # fmt: skip


Check = Callable[..., Any]
CHECKS: dict[tuple[str, str], Check] = {}


def checks(client: str) -> Callable[[Check], Check]:
    """Register a function as a check of this client, under its own name."""

    def register(function: Check) -> Check:
        CHECKS[client, function.__name__.replace("_", " ")] = function
        return function

    return register


_NAMES = {
    bool: "bool", int: "int", float: "float", decimal.Decimal: "decimal", str: "text",
    bytes: "bytes", dt.date: "date", dt.datetime: "timestamp", dt.time: "time",
    dt.timedelta: "interval", type(None): "null", list: "list", tuple: "list",
}  # fmt: skip


def shape(rows: Iterable[Iterable[Any]], public: int = 0) -> list[list[Any]]:
    """Each cell as the name of its type; the first ``public`` columns as they are."""
    return [
        [cell if i < public else _NAMES.get(type(cell), type(cell).__name__) for i, cell in enumerate(row)]
        for row in rows
    ]  # fmt: skip


def plain(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """Rows as lists, whatever a driver makes of them."""
    return [list(row) for row in rows]


def state(act: Callable[[], Any]) -> str:
    """The SQLSTATE of what goes wrong; it must."""
    try:
        act()
    except Exception as error:  # noqa: BLE001 (each driver has its own)
        found = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if found is None:
            coded = re.search(r"'C': '(\w{5})'|'(\w{5})'", str(error.args))
            found = None if coded is None else coded[1] or coded[2]
        return f"error {found or type(error).__name__}"
    return "no error"


@functools.cache
def _tables() -> str:
    """The shop for PostgreSQL: what the policy says of its tables."""
    return """
        CREATE TABLE countries (country text PRIMARY KEY, continent text, population bigint);
        CREATE TABLE customers (customer_id bigint PRIMARY KEY, email text NOT NULL,
            country text NOT NULL, age integer NOT NULL, city text NOT NULL);
        CREATE TABLE orders (customer_id bigint NOT NULL REFERENCES customers,
            amount double precision, placed date NOT NULL, channel text);
        CREATE TABLE visits (customer_id bigint NOT NULL REFERENCES customers,
            started timestamp NOT NULL, seconds integer NOT NULL, page text NOT NULL);
    """


@contextmanager
def postgres(server: Server, like: Endpoint) -> Iterator[Side]:
    """A database of the server with the shop's rows, its comments and a role that may read it."""
    with psycopg.connect(server.dsn, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        owner.execute(f"CREATE DATABASE {DATABASE}")
        owner.execute(f"REVOKE TEMPORARY ON DATABASE {DATABASE} FROM PUBLIC")
        owner.execute("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
    with psycopg.connect(server.dsn.replace("dbname=postgres", f"dbname={DATABASE}")) as owner:
        owner.execute(_tables())
        _fill(owner)
        _comment(owner, like)
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {ROLE}")
        owner.execute(f"CREATE ROLE viewer LOGIN PASSWORD '{PASSWORD}' IN ROLE {ROLE}")
        owner.execute(f"GRANT TEMPORARY ON DATABASE {DATABASE} TO viewer")
        owner.commit()
    yield Side(server.port, viewer="viewer")


def _fill(owner: psycopg.Connection) -> None:
    with duckdb.connect(str(database("shop")), read_only=True) as data:
        for table in ("countries", "customers", "orders", "visits"):
            rows = data.execute(f"SELECT * FROM {table}").fetchall()
            with owner.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)


def _comment(owner: psycopg.Connection, like: Endpoint) -> None:
    """The endpoint's comments come from the policy; PostgreSQL is given the same."""
    with psycopg.connect(like.dsn()) as reader:
        found = reader.execute(
            "SELECT c.relname, a.attname, d.description FROM pg_description d"
            " JOIN pg_class c ON c.oid = d.objoid AND c.relkind = 'r'"
            " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid"
        ).fetchall()
    for table, column, words in found:
        what = f"TABLE {table}" if column is None else f"COLUMN {table}.{column}"
        text = words.replace("'", "''")
        owner.execute(f"COMMENT ON {what} IS '{text}'")
