"""Statements that take long, or much memory for their rows, in each engine that words of a client reach."""

from __future__ import annotations

import os
import signal
import socket
import time

from benchmarks.attacks.client import (
    SYNC,
    Client,
    bind,
    cancel,
    connect,
    describe,
    execute,
    parse,
    query,
)
from benchmarks.attacks.hostile import Hostile
from benchmarks.attacks.registry import attack

SERIES = (
    "SELECT max(a.x + b.x) FROM generate_series(1, 100000) a(x), generate_series(1, 100000) b(x)"
)
STORED = (
    "/* dpsql.empty_groups = 'keep' */"
    " WITH g AS (SELECT slot, count(*) AS c FROM events GROUP BY slot)"
)
PRODUCT = f"{STORED} SELECT count(*) FROM g a, g b, g c WHERE a.c + b.c < c.c + {{n}}"


@attack()
def series(hostile: Hostile) -> None:
    """A hundred million rows: sent, ordered, made distinct, in a window."""
    rows = "FROM generate_series(1, 100000000) AS s(x)"
    hostile.loop(
        4,
        [
            f"SELECT x {rows}",
            f"SELECT max(y) FROM (SELECT md5(x::text) AS y {rows} ORDER BY y OFFSET 1000) AS t",
            f"SELECT count(DISTINCT md5(x::text)) {rows}",
            f"SELECT max(y) FROM (SELECT lag(x) OVER (ORDER BY x DESC) AS y {rows}) AS t",
            f"SELECT x % 50000000, count(*) {rows} GROUP BY 1",
            SERIES,
        ],
    )


@attack()
def recursive_catalog(hostile: Hostile) -> None:
    """Eight connections ask a costly recursive question of the catalog, again and again."""
    hostile.loop(
        8,
        [
            (
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 30000)"
                " SELECT count(*) FROM r, pg_attribute a WHERE a.attnum < n"
            ),
            SERIES,
        ],
    )


@attack()
def catalog_products(hostile: Hostile) -> None:
    """Rows of the catalog times themselves: hashed, ordered, wide, correlated."""
    rows = "FROM pg_type a, pg_type b, pg_type c"
    hostile.loop(
        6,
        [
            f"SELECT count(DISTINCT a.typname || b.typname || c.typname) {rows}",
            f"SELECT a.*, b.*, c.* {rows} ORDER BY c.typname, b.oid LIMIT 10",
            f"SELECT a.*, b.*, c.* {rows}",
            (
                "SELECT count(*) FROM pg_type a WHERE EXISTS (SELECT 1 FROM pg_type b, pg_type c"
                " WHERE b.oid + c.oid < a.oid - 1000000000)"
            ),
            "SELECT * FROM pg_class, pg_attribute, pg_type, pg_namespace",
        ],
    )


@attack()
def stored_products(hostile: Hostile) -> None:
    """Eight joins of a stored answer of 10,000 groups with itself, under statement_timeout."""

    def work(_: int) -> None:
        with hostile.client() as client:
            client.ask("SET statement_timeout = '2s'")
            while hostile.goes_on:
                hostile.ask(client, PRODUCT.replace("{n}", str(hostile.number())))

    hostile.together(8, work)


@attack()
def stored_rows(hostile: Hostile) -> None:
    """Stored groups are joined, ordered and put in windows, and large answers come of it."""
    hostile.loop(
        6,
        [
            f"{STORED} SELECT a.slot, b.slot, a.c * b.c AS p FROM g a, g b ORDER BY p, a.slot LIMIT 99999",
            f"{STORED} SELECT a.slot, sum(b.c) OVER (PARTITION BY a.slot ORDER BY b.slot) FROM g a, g b",
            f"{STORED} SELECT count(DISTINCT a.c * 10000 + b.c) FROM g a, g b",
            f"{STORED} SELECT a.slot, b.slot, a.c + {{n}} FROM g a, g b",
            (
                f"{STORED} SELECT a.slot FROM g a WHERE a.c > (SELECT avg(b.c * c.c) FROM g b, g c"
                " WHERE b.slot < a.slot)"
            ),
        ],
    )


@attack()
def public_products(hostile: Hostile) -> None:
    """Products of a public table, in the engine that holds the data."""
    hostile.loop(
        6,
        [
            "SELECT count(*) FROM pages a, pages b, pages c WHERE a.page + b.page < c.page - {n}",
            "SELECT count(DISTINCT a.body || b.body) FROM pages a, pages b WHERE a.page <> {n}",
            "SELECT a.body, b.body FROM pages a, pages b WHERE a.page <> {n}",
            "SELECT a.page, b.page FROM pages a, pages b ORDER BY a.body || b.body LIMIT {n}",
        ],
    )


@attack()
def heavy_measurements(hostile: Hostile) -> None:
    """Eight connections with charged questions that are as heavy as there are."""
    hostile.loop(
        8,
        [
            "SELECT slot, MEDIAN(amount), count(*) FROM events WHERE slot <> {n} GROUP BY slot",
            (
                "SELECT day, word, slot % 20 AS s, COUNT(*), SUM(amount), AVG(amount), STDDEV(amount)"
                " FROM events WHERE slot <> {n} GROUP BY day, word, s"
            ),
            "SELECT slot, COUNT(DISTINCT id) FROM events WHERE slot <> {n} GROUP BY slot",
            (
                "SELECT COUNT(*) FROM events a JOIN events b ON a.id = b.id JOIN events c ON b.id = c.id"
                " JOIN events d ON c.id = d.id WHERE a.slot <> {n}"
            ),
            (
                "SELECT city, tag, COUNT(*) FROM events JOIN people ON events.id = people.id"
                " WHERE slot <> {n} GROUP BY city, tag"
            ),
        ],
    )


@attack()
def charged_flood(hostile: Hostile) -> None:
    """Sixteen connections with small questions that were not asked before: the ledger has no rest."""
    hostile.loop(16, ["SELECT count(*) FROM people WHERE region < 7 AND id <> {n}"])


@attack(processes=2)
def flood_of_ones(hostile: Hostile) -> None:
    """Thirty connections send the smallest statement, a thousand at a time."""

    def work(_: int) -> None:
        with hostile.client() as client:
            while hostile.goes_on:
                client.send((parse("", "SELECT 1") + bind("", "") + execute("")) * 1000 + SYNC)
                hostile.count(client.ready() or "answered")

    hostile.together(15, work)


@attack()
def cancel_storm(hostile: Hostile) -> None:
    """Long statements, cancelled at once and all the time, with right and wrong keys."""

    def work(index: int) -> None:
        if index % 2:
            with hostile.client() as client:
                hostile.ask(client, SERIES)
            return
        with hostile.client() as client:
            client.send(query(SERIES))
            for turn in range(200):
                key = client.key if turn % 2 else bytes(len(client.key))
                with connect(hostile.place) as door:
                    door.sendall(cancel(client.process, key))
            hostile.count(client.ready() or "answered")

    hostile.together(8, work)


@attack()
def gone_in_the_middle(hostile: Hostile) -> None:
    """Connections end as soon as a long statement has begun, in each engine."""
    long = (
        SERIES, PRODUCT, "SELECT count(*) FROM pages a, pages b, pages c WHERE a.page + b.page < c.page - {n}",
        "SELECT length(repeat('x', 500000000))",
    )  # fmt: skip

    def work(index: int) -> None:
        client = Client(hostile.place)
        client.send(query(long[index % len(long)].replace("{n}", str(hostile.number()))))
        time.sleep(hostile.fraction() / 5)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        hostile.count("left")

    hostile.together(12, work)


@attack()
def stop_own_sessions(hostile: Hostile) -> None:
    """Sessions of one log-in cancel and end each other in loops."""
    stops = ("pg_cancel_backend", "pg_terminate_backend")
    hostile.loop(
        16,
        [f"SELECT count({stop}(pid)) FROM pg_stat_activity" for stop in stops]
        + [
            "SELECT count(*) FROM pg_stat_activity a, pg_stat_activity b, pg_stat_activity c",
            SERIES,
        ],
    )


@attack()
def described_only(hostile: Hostile) -> None:
    """Costly statements are described and never run."""

    def work(_: int) -> None:
        with hostile.client() as client:
            while hostile.goes_on:
                columns = ", ".join(f"a.oid + {hostile.number()} AS c{i}" for i in range(400))
                sql = f"SELECT {columns} FROM pg_class a, pg_class b ORDER BY 1"
                hostile.time_statement(
                    "described", lambda sql=sql: _described(client, parse("", sql))
                )

    hostile.together(8, work)


def _described(client: Client, parsed: bytes) -> str:
    client.send(parsed + describe("S", "") + SYNC)
    return client.ready()


@attack()
def sighup_burst(hostile: Hostile) -> None:
    """The policy is read again and again, while eight connections ask."""

    def work(index: int) -> None:
        if index:
            with hostile.client() as client:
                hostile.ask(client, PRODUCT.replace("{n}", str(hostile.number())))
        else:
            os.kill(hostile.place.process, signal.SIGHUP)
            time.sleep(0.05)

    hostile.together(9, work)


@attack()
def roles_in_turn(hostile: Hostile) -> None:
    """SET ROLE, transactions and savepoints at full speed."""
    hostile.loop(
        8,
        ["SET ROLE second", "SELECT count(*) FROM people", "RESET ROLE", "BEGIN", "SAVEPOINT a",
         "SET dpsql.epsilon = 0.05", "ROLLBACK TO a", "COMMIT", "DISCARD ALL"],
    )  # fmt: skip


@attack()
def ended_processes(hostile: Hostile) -> None:
    """Sixteen connections with the shortest way there is to more memory than one statement may take."""
    hostile.loop(
        16,
        [
            (
                "SELECT count(*) FROM (SELECT repeat('x', 900000) || x AS t FROM generate_series(1, 10000) AS s(x)"
                " ORDER BY t) AS u"
            ),
            "SELECT length(string_agg(repeat('x', 1000000), ',')) FROM generate_series(1, 10000)",
        ],
    )


@attack()
def searched_bounds(hostile: Hostile) -> None:
    """Errors that no budget reaches, bounds that are searched, in each dialect."""
    questions = (
        (
            "SELECT slot % 400 AS s, day % 20 AS d, SUM(amount), AVG(amount) FROM events WHERE slot <> {n}"
            " GROUP BY s, d"
        ),
        "SELECT slot, COUNT(DISTINCT id), SUM(amount) FROM events WHERE day <> {n} GROUP BY slot",
    )
    asked = (*questions, *(f"EXPLAIN {q}" for q in questions))
    hostile.loop(
        6,
        [
            statement
            for dialect in ("postgres", "duckdb", "bigquery", "snowflake")
            for statement in (
                f"SET dpsql.dialect = '{dialect}'",
                "SET dpsql.max_error = 0.000001", *asked, "SET dpsql.max_error = 50", *asked,
                "RESET dpsql.max_error", "SET dpsql.search = on", *asked, "RESET dpsql.search",
            )
        ],
    )  # fmt: skip


@attack()
def one_question(hostile: Hostile) -> None:
    """Forty connections ask the same heavy question at the same time, again and again."""

    def work(_: int) -> None:
        with hostile.client() as client:
            while hostile.goes_on:
                turn = int(time.monotonic() * 2)
                hostile.ask(
                    client,
                    f"SELECT slot, MEDIAN(amount) FROM events WHERE slot <> {turn} GROUP BY slot",
                )

    hostile.together(40, work)
