"""Rows whose unit is NULL are nobody's: no statement counts them."""

from __future__ import annotations

import functools
from contextlib import nullcontext

import pytest
from support.corpus import CORPUS, WORLDS, World
from support.datasets import in_memory
from support.measured import every_way, opened, plan_of, request, text_of

from dpsql.engines.duckdb import relations as blocks
from dpsql.engines.duckdb.guard import Guard, Unsafe
from dpsql.engines.duckdb.guard.seen import strays

RATINGS = WORLDS["ratings"]
TRADE = World("far", "trade")
S, WHO = 'TRY_CAST(t."s" AS BIGINT)', 'TRY_CAST(l."who" AS BIGINT)'
ROWS = f'SELECT {S} AS u0 FROM "ratings" AS t'
LOGINS = f'(SELECT {WHO} AS u0 FROM "logins" AS l WHERE {WHO} IS NOT NULL) AS l'
REPLIES = 'FROM "replies" AS a JOIN "ratings" AS t ON a."rating" = t."rating"'
MARKS = 'FROM "marks" AS m'
SOUND = (
    f'SELECT count(*) AS p0 FROM "ratings" AS t WHERE {S} IS NOT NULL',
    'SELECT count(*) AS p0 FROM "ratings" AS t WHERE t."s" IS NOT NULL',
    f"SELECT count(*) AS p0 FROM ({ROWS}) AS g WHERE g.u0 IS NOT NULL",
    f"WITH r AS MATERIALIZED ({ROWS} WHERE {S} IS NOT NULL) SELECT count(*) AS p0 FROM r",
    f"SELECT sum(least(n, 5)) AS p0 FROM ({ROWS[: -len(' AS t')]} AS t WHERE {S} IS NOT NULL GROUP BY 1) AS g".replace(
        "AS u0 FROM", "AS u0, count(*) AS n FROM"
    ),
    f'SELECT count(*) AS p0 FROM "ratings" AS t JOIN {LOGINS} ON {S} = l.u0',
    f'SELECT count(*) AS p0 FROM ({ROWS}) AS g JOIN "logins" AS l ON g.u0 = {WHO}',
    f"SELECT count(*) AS p0 {REPLIES} WHERE {S} IS NOT NULL",
    f'SELECT count(*) AS p0 {MARKS} WHERE m."school" IS NOT NULL AND m."number" IS NOT NULL',
)
FAULTY = {
    "no condition": 'SELECT count(*) AS p0 FROM "ratings" AS t',
    "a condition on something else": 'SELECT count(*) AS p0 FROM "ratings" AS t WHERE t."course" IS NOT NULL',
    "a condition or another": f'SELECT count(*) AS p0 FROM "ratings" AS t WHERE {S} IS NOT NULL OR t."course" IS NOT NULL',
    "that it is NULL": f'SELECT count(*) AS p0 FROM "ratings" AS t WHERE {S} IS NULL',
    "a filter of another aggregate": f'SELECT count(*) AS p0, count(*) FILTER (WHERE {S} IS NOT NULL) AS p1 FROM "ratings" AS t',
    "half of a key": f'SELECT count(*) AS p0 {MARKS} WHERE m."school" IS NOT NULL',
    "half of a key, twice": f'SELECT count(*) AS p0 {MARKS} WHERE m."school" IS NOT NULL AND m."school" IS NOT NULL',
    "the unit's number of rows": f"SELECT sum(least(n, 5)) AS p0 FROM ({ROWS} GROUP BY 1) AS g".replace(
        "AS u0 FROM", "AS u0, count(*) AS n FROM"
    ),
    "a table below": f"SELECT count(*) AS p0 FROM ({ROWS}) AS g",
    "a table that is written down": f"WITH r AS MATERIALIZED ({ROWS}) SELECT count(*) AS p0 FROM r",
    "one side of a union": f"SELECT count(*) AS p0 FROM ({ROWS} WHERE {S} IS NOT NULL UNION ALL {ROWS}) AS g",
    "a left join": f'SELECT count(*) AS p0 FROM "ratings" AS t LEFT JOIN {LOGINS} ON {S} = l.u0',
    "an anti join": f'SELECT count(*) AS p0 FROM "ratings" AS t ANTI JOIN {LOGINS} ON {S} = l.u0',
    "a public table": 'SELECT count(*) AS p0 FROM "ratings" AS t JOIN "courses" AS c ON TRY_CAST(t."course" AS VARCHAR) = TRY_CAST(c."course" AS VARCHAR)',
    "the row that another belongs to": f"SELECT count(*) AS p0 {REPLIES}",
}  # fmt: skip


LED = 'SELECT count(*) AS p0 FROM "replies" AS a'


@pytest.mark.parametrize(("data", "passes"), [("ratings", True), ("ratings_dirty", False)])
def test_rows_that_lead_to_a_unit_are_looked_at_when_a_policy_is_opened(
    data: str, *, passes: bool
) -> None:
    """A statement that does not follow them needs to know that each of them does."""
    policy, connection = opened(RATINGS).policy, in_memory(data)
    queries = {query for _, query in strays(policy)}
    found = {query: not connection.execute(query).fetchall() for query in queries}
    seeing = Guard(policy, None, lambda query: found.get(query, False))
    with nullcontext() if passes else pytest.raises(Unsafe, match="whose unit may be NULL"):
        seeing.check(LED)
    with pytest.raises(Unsafe, match="whose unit may be NULL"):
        guard().check(LED)


@pytest.mark.parametrize(
    "change",
    [
        "",
        "INSERT INTO replies VALUES (NULL, 5)",
        "INSERT INTO replies VALUES (-5, 5)",
        "UPDATE ratings SET s = NULL WHERE rating = (SELECT min(rating) FROM replies)",
    ],
)
def test_each_way_to_lead_to_nobody_is_seen(change: str) -> None:
    connection = in_memory("ratings")
    connection.execute(change or "SELECT 1")
    ((table, query),) = strays(opened(RATINGS).policy)
    assert table == "replies"
    assert bool(connection.execute(query).fetchall()) == bool(change)


@functools.cache
def guard(world: World = RATINGS) -> Guard:
    return Guard(opened(world).policy)


@pytest.mark.parametrize("sql", SOUND)
def test_rows_that_have_a_unit_are_counted(sql: str) -> None:
    guard().check(sql)


@pytest.mark.parametrize("fault", FAULTY)
def test_rows_that_may_have_none_are_not(fault: str) -> None:
    with pytest.raises(Unsafe, match="whose unit may be NULL"):
        guard().check(FAULTY[fault])


def test_so_it_is_where_units_have_a_table() -> None:
    guard(TRADE).check(
        'SELECT count(*) AS p0 FROM "orders" AS o WHERE o."customer_region" IS NOT NULL AND o."customer_number" IS NOT NULL'
    )
    for sql in (
        'SELECT count(*) AS p0 FROM "orders" AS o',
        'SELECT count(*) AS p0 FROM "lineitem" AS t JOIN "orders" AS o ON t.order_id = o.order_id',
    ):
        with pytest.raises(Unsafe, match="whose unit may be NULL"):
            guard(TRADE).check(sql)


def test_a_planner_that_forgets_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault where statements are written: the condition on the key is left out."""
    plain = blocks.Writer._scan

    def forgetful(self: blocks.Writer, scan: blocks.Scan) -> blocks.Block:
        return blocks.replace(plain(self, scan), where=())

    asked = [e for e in CORPUS if e.world is RATINGS]
    monkeypatch.setattr(blocks.Writer, "_scan", forgetful)
    passed, stopped = [], 0
    for entry in asked:
        for part in every_way(plan_of(entry.sql, RATINGS), request(3, 1), ("gaussian",)):
            try:
                guard().check(text_of(part))
                passed.append(text_of(part))
            except Unsafe:
                stopped += 1
    joined = [sql for sql in passed if " JOIN " in sql]
    assert stopped > 40
    assert passed == joined, "only a join by the unit leaves out rows without one"
