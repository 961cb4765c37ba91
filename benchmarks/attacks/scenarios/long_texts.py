"""Texts that are long, deep, or costly to read, to check, to plan and to explain."""

from __future__ import annotations

import time

from benchmarks.attacks.hostile import Hostile
from benchmarks.attacks.registry import attack

SIZE = 900_000


def _filled(head: str, piece: str, between: str, tail: str, size: int = SIZE) -> str:
    """As many pieces as fit."""
    count = (size - len(head) - len(tail)) // len(piece + between)
    return head + between.join([piece] * count) + tail


def _long(table: str) -> list[str]:
    rows = f"FROM {table}"
    return [
        _filled(f"SELECT count(*) {rows} WHERE ", "1 = 1", " AND ", ""),
        _filled(f"SELECT count(*) {rows} WHERE 1 IN (", "12345", ", ", ")"),
        _filled("", f"SELECT 1 {rows}", " UNION ALL ", ""),
        _filled("SELECT ", "1 + 1", ", ", f" {rows}"),
        _filled("SELECT CASE ", "WHEN 1 = 2 THEN 3", " ", f" ELSE 4 END {rows}"),
        _filled("SELECT 'x'", "'y'", " || ", f" {rows}").replace("'x''y'", "'x' || 'y'", 1),
        _filled("VALUES ", "(1, 2)", ", ", ""),
        _filled("SELECT ", "1", " + ", f" {rows}"),
    ]


@attack()
def long_statements(hostile: Hostile) -> None:
    """Statements of 0.9 MB: conditions, lists, unions, columns, cases, sums."""
    hostile.loop(
        2, [sql for pair in zip(_long("pg_class"), _long("people"), strict=True) for sql in pair]
    )


@attack()
def deep_statements(hostile: Hostile) -> None:
    """Parentheses, calls, negations, subqueries and lists within each other, as deep as they go."""
    depths = (300, 3_000, 30_000)
    hostile.loop(
        4,
        [
            sql
            for depth in depths
            for rows in ("", " FROM people", " FROM pg_class")
            for sql in (
                f"SELECT {'(' * depth}1{')' * depth}{rows}",
                f"SELECT {'abs(' * depth}1{')' * depth}{rows}",
                f"SELECT {'NOT ' * depth}true{rows}",
                f"SELECT {'- ' * depth}1{rows}",
                f"SELECT {'CASE WHEN true THEN ' * depth}1{' END' * depth}{rows}",
                f"{'SELECT * FROM (' * depth}SELECT 1{') AS t' * depth}",
                f"SELECT {'ARRAY[' * depth}1{']' * depth}{rows}",
                f"SELECT 1{'::text' * depth}{rows}",
                f"SELECT {'/*' * depth}{'*/' * depth} 1",
            )
        ],
    )


@attack()
def texts_read_again(hostile: Hostile) -> None:
    """What a parser may read again and again: lists, types and joins within each other."""
    depth = 60
    hostile.loop(
        4,
        [
            f"SELECT {'ARRAY[' * depth}1{']' * depth}",
            f"SELECT {'int[' * depth}1{']' * depth}",
            f"SELECT {'STRUCT(' * depth}'a'{')' * depth}",
            f"SELECT CAST(1 AS {'date(' * depth}1{')' * depth})",
            f"SELECT count(*) FROM {'people JOIN ' * depth}people",
            f"SELECT count(*) FROM {'pg_class JOIN pg_class AS x(' * depth}pg_class{')' * depth}",
            f"SELECT count(*) FROM {'people LEFT JOIN (VALUES (' * depth}1",
        ],
    )


def _doubling(first: str, steps: int) -> str:
    """Each name stands for two of the one before."""
    names = ", ".join(f"t{i} AS (SELECT a.x FROM t{i - 1} a, t{i - 1} b)" for i in range(1, steps))
    return f"WITH t0 AS ({first}), {names} SELECT count(*) FROM t{steps - 1}"


def costly(number: str) -> list[str]:
    """Statements that are short, and whose plans are not."""
    keys = ", ".join(f"day % {i}" for i in range(2, 7))
    unions = " UNION ALL ".join(f"SELECT id, slot FROM events WHERE slot = {i}" for i in range(60))
    cases = "slot"
    for i in range(8):
        cases = f"CASE WHEN {cases} > {i} THEN {cases} + 1 ELSE {cases} END"
    medians = ", ".join(
        f"sum(amount + {number} + {i}), median(amount * {i + 1})" for i in range(60)
    )
    windows = ", ".join(
        f"row_number() OVER (PARTITION BY id ORDER BY slot + {i}) AS r{i}" for i in range(100)
    )
    ranks = " + ".join(f"r{i}" for i in range(100))
    joins = " ".join(f"JOIN pages p{i} ON p0.page = p{i}.page + {number}" for i in range(1, 30))
    types = " CROSS JOIN ".join(f"pg_type p{i}" for i in range(25))
    return [
        f"SELECT count(*) FROM events WHERE slot <> {number} GROUP BY CUBE({keys}, word)",
        *(
            _doubling(f"SELECT {column} AS x FROM {table} WHERE {column} <> {number}", steps)
            for column, table in (("page", "pages"), ("oid", "pg_class"))
            for steps in (6, 20)
        ),
        f"SELECT count(*) FROM ({unions}) AS t",
        f"SELECT sum({cases}) FROM events WHERE slot <> {number}",
        f"SELECT {medians} FROM events GROUP BY day",
        f"SELECT sum({ranks}) FROM (SELECT {windows} FROM events WHERE slot <> {number}) AS t",
        f"SELECT count(*) FROM pages p0 {joins}",
        f"SELECT count(*) FROM {types} WHERE false",
    ]


@attack()
def costly_plans(hostile: Hostile) -> None:
    """Short statements with long plans: cubes, names that double, windows, joins, nested cases."""
    hostile.loop(4, costly("{n}"))


@attack()
def costly_explained(hostile: Hostile) -> None:
    """The same and stored products, explained."""
    product = "WITH g AS (SELECT slot, count(*) AS c FROM events GROUP BY slot) SELECT count(*) FROM g a, g b, g c"
    hostile.loop(4, [f"EXPLAIN {sql}" for sql in [*costly("{n}"), product]])


@attack()
def many_small_statements(hostile: Hostile) -> None:
    """Scripts of tens of thousands of statements in one message, left when the time is over."""
    scripts = (
        ";" * SIZE,
        "SELECT 1;" * 100_000,
        "BEGIN; ROLLBACK;" * 50_000,
        "SET a.b = 1;" * 50_000,
    )

    def work(index: int) -> None:
        with hostile.client() as client:
            client.socket.settimeout(max(0.1, hostile.until - time.monotonic()))
            hostile.count(client.ask(scripts[index]) or "answered")

    hostile.together(4, work)
