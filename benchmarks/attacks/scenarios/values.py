"""Single values and lists that grow while they are computed."""

from __future__ import annotations

from benchmarks.attacks.hostile import Hostile
from benchmarks.attacks.registry import attack

GROUPS = "(SELECT word, count(*) AS c FROM events GROUP BY word) AS g"
PAGES = "(SELECT body AS word FROM pages) AS g"
SOURCES = ("(SELECT relname::text AS word FROM pg_class) AS g", PAGES, GROUPS)
"""The catalog, a public table, released groups: each is computed by another engine."""


@attack()
def repeated_texts(hostile: Hostile) -> None:
    """Four connections repeat texts: to two billion characters, and to what is just not refused."""
    hostile.loop(
        4,
        [
            "SELECT length(repeat('x', 2000000000))",
            "SELECT length(repeat('x', 999999999))",
            "SELECT max(length(repeat(relname, 1000000))) FROM pg_class",
            "SELECT length(repeat(repeat(repeat('x', 1000), 1000), 1000))",
            "SELECT count(repeat('x', 100000) || a.oid) FROM pg_type a, pg_type b",
            "SELECT repeat('x', 900000000)",
        ],
    )


@attack()
def texts_that_double(hostile: Hostile) -> None:
    """Eight copies of eight copies, ten times over, with ``||``."""
    eight = " || ".join(["t"] * 8)
    steps = ", ".join(f"s{i} AS (SELECT {eight} AS t FROM s{i - 1})" for i in range(1, 11))
    hostile.loop(
        4,
        [
            f"WITH s0 AS (SELECT word AS t FROM {source}), {steps} SELECT length(t) FROM s10"
            for source in ("(SELECT 'xxxxxxxx' AS word) AS g", *SOURCES)
        ],
    )


@attack()
def replacement(hostile: Hostile) -> None:
    """Each character is replaced by ten thousand, and each of those too; pads and patterns."""
    grown = "replace(replace(repeat('x', 10000), 'x', repeat('y', 10000)), 'y', repeat('z', 100))"
    hostile.loop(
        4,
        [
            f"SELECT length({grown})",
            "SELECT lpad('x', 2000000000)",
            "SELECT length(rpad('x', 2000000000, 'yz'))",
            "SELECT length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 1000), 'g'))",
            "SELECT length(translate(repeat('x', 100000000), 'x', 'y'))",
            "SELECT length(concat(repeat('x', 900000000), repeat('y', 900000000)))",
            "SELECT length(format('%s%s%s', repeat('x', 500000000), repeat('y', 500000000), 1))",
            "SELECT length(md5(repeat('x', 500000000)))",
            "SELECT max(length(replace(relname, 'e', repeat(relname, 100000)))) FROM pg_class",
        ],
    )


@attack()
def aggregated_texts(hostile: Hostile) -> None:
    """All rows of products of tables in one text."""
    hostile.loop(
        4,
        [
            "SELECT length(string_agg(repeat('x', 1000), ',')) FROM generate_series(1, 10000000)",
            "SELECT string_agg(a.typname || b.typname, ',') FROM pg_type a, pg_type b, pg_type c",
            "SELECT length(string_agg(a.body || b.body, ',')) FROM pages a, pages b",
            (
                "WITH g AS (SELECT slot, count(*) AS c FROM events GROUP BY slot)"
                " SELECT length(string_agg(CAST(a.c AS text), ',')) FROM g a, g b"
            ),
        ],
    )


@attack()
def aggregated_lists(hostile: Hostile) -> None:
    """``array_agg`` over products of catalog tables, and lists of lists."""
    hostile.loop(
        4,
        [
            "SELECT array_agg(a.oid) FROM pg_class a, pg_class b, pg_class c, pg_class d",
            "SELECT array_length(array_agg(a.typname), 1) FROM pg_type a, pg_type b, pg_type c",
            "SELECT array_agg(x) FROM generate_series(1, 100000000) AS s(x)",
            "SELECT ARRAY(SELECT x FROM generate_series(1, 100000000) AS s(x))",
        ],
    )


@attack()
def recursion(hostile: Hostile) -> None:
    """Recursive queries that double a text or a table at each step."""
    hostile.loop(
        4,
        [
            (
                "WITH RECURSIVE r(n, t) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, t || t FROM r"
                " WHERE n < 40) SELECT max(length(t)) FROM r"
            ),
            (
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r, pg_class"
                " WHERE r.n < 40) SELECT count(*) FROM r"
            ),
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
            (
                "WITH RECURSIVE r(n, t) AS (SELECT 1, repeat('x', 1000000) UNION ALL"
                " SELECT n + 1, t || n FROM r WHERE n < 100000) SELECT count(t) FROM r"
            ),
        ],
    )


@attack()
def large_numbers(hostile: Hostile) -> None:
    """Numbers, dates and texts of numbers that are costly to compute or to read."""
    digits = "9" * 100_000
    hostile.loop(
        4,
        [
            "SELECT 10::numeric ^ 100000",
            f"SELECT {digits} * {digits}",
            f"SELECT CAST('{digits}' AS numeric)",
            f"SELECT count(*) FROM people WHERE id < {digits}",
            (
                "SELECT count(*) FROM generate_series(TIMESTAMP '0001-01-01', TIMESTAMP '9999-12-31',"
                " INTERVAL '1 microsecond')"
            ),
            "SELECT repeat('a', 50000) ~ '((a*)*)*b'",
            "SELECT repeat('a', 50000) LIKE '%a%a%a%a%a%a%a%b'",
        ],
    )
