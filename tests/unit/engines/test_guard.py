"""The second opinion: what the planner writes passes, and what it must never write does not."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from support.corpus import CORPUS, SHOP, WORLDS, World
from support.daily import some
from support.guards import keyed, led
from support.hostile import HOSTILE
from support.measured import alternatives, every_way, instead, opened, plan_of, request, text_of
from support.services import service

from dpsql.bound.copies import companion
from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.engines.duckdb import terms
from dpsql.engines.duckdb.expressions import canonical
from dpsql.engines.duckdb.groups import write_public
from dpsql.engines.duckdb.guard import MOST_KNOWN, Guard, Unsafe, parse_statement
from dpsql.engines.duckdb.guard.casts import SHORT, SURE
from dpsql.engines.duckdb.guard.facts import KINDS
from dpsql.engines.duckdb.guard.listed import Listed
from dpsql.engines.duckdb.guard.statement import check_measurement
from dpsql.ir.alternatives import Alternative, FewRows, OverLimitRowsKept, ValuesInRange
from dpsql.plan.nodes import Plan
from dpsql.policy.model import Policy
from dpsql.policy.prepared_copies import OVER_LIMIT_CATALOG, PreparedCopies, declared_key
from dpsql.policy.types import Kind
from dpsql.price import search
from dpsql.price.price import price
from dpsql.price.priced import PricedMeasurement

sys.path.insert(0, str(Path(__file__).parents[2] / "laws"))
from scalar_expressions import single_calls, wild_world

from dpsql.catalog.functions import FUNCTIONS


@functools.cache
def guard(world: World = SHOP) -> Guard:
    policy = opened(world).policy
    return Guard(policy, None, led(policy))


@functools.cache
def sure() -> Guard:
    """For statements of the shop that are about other rules than whose a row is."""
    return keyed(opened(SHOP).policy)


@functools.cache
def known(world: World, sql: str) -> tuple[Plan, tuple[PricedMeasurement, ...]]:
    """A query's plan and each way to bound it, which no test here changes."""
    plan = plan_of(sql, world)
    return plan, tuple(every_way(plan, request(3, 1)))


def statements(world: World, sql: str) -> Iterator[tuple[str, bool]]:
    """Every statement that a query may become, and whether it is over public tables."""
    try:
        plan, parts = known(world, sql)
    except Refused:
        return
    yield from {(text_of(part), False) for part in parts}
    yield from {(write_public(query), True) for query in plan.publics}


@pytest.mark.no_cover  # plans what the laws plan, and walks what the tests of the guard's parts walk
@pytest.mark.parametrize("third", range(3))
def test_whatever_is_planned_passes(third: int) -> None:
    more = [(SHOP, h.sql) for h in HOSTILE if h.kind != "size"]
    # with a limit on rows in a group, which the corpus does without: norms are clipped there
    more += [(World("far", "trade"), e.sql) for e in CORPUS if e.world is WORLDS["trade"]]
    asked = [*((e.world, e.sql) for e in CORPUS[third::3]), *some(more[third::3], third, 3)]
    wrong = []
    for world, sql in asked:
        for text, over_public in statements(world, sql):
            try:
                guard(world).check(text, over_public=over_public)
            except Unsafe as unsafe:
                wrong.append(f"{unsafe}: {text}")
    assert not wrong, wrong[0]


@functools.cache
def strict(world: World) -> World:
    """The same policy, where time must not tell."""
    change = world.change
    return World(
        world.policy, world.data, lambda t: f"{change(t)}\nstrict_timing: on\n", world.dialect
    )


def _shelf(policy: Policy) -> PreparedCopies:
    """Copies of all private tables."""
    private = [t for t in policy.tables.values() if not t.public]
    keyed = frozenset(t.name for t in private if declared_key(t))
    return PreparedCopies({t.name: companion(t) for t in private}, keyed)


def otherwise(mode: str, world: World, sql: str) -> Iterator[PricedMeasurement]:
    """The statements of a query under strict timing, over copies, or with a search before."""
    wanted = request(3, 1)
    try:
        plan, parts = known(strict(world) if mode == "strict" else world, sql)
        if mode == "search":
            found = search.price_with_searches(plan, replace(wanted, search="on"))
            for after in (found, *search.extremes(found)) if found.searches else ():
                yield from after.parts
                yield from (part for one in after.searches for part in one.priced.parts)
        else:
            if mode == "prepared":
                wanted = replace(wanted, shelf=_shelf(opened(world).policy))
                parts = tuple(every_way(plan, wanted))
            yield from parts
            yield from unweighed(parts)
            yield from unweighed(price(plan, wanted).parts)
    except Refused:
        return


def unweighed(parts: Iterable[PricedMeasurement]) -> Iterator[PricedMeasurement]:
    """The same where nobody has more rows than declared, and nothing is known of values."""
    for part in parts:
        for alternative in alternatives(part):
            if not any(
                isinstance(r, (*OF_VALUES, OverLimitRowsKept)) for r in alternative.requires
            ):
                yield instead(part, alternative)


OF_VALUES = (FewRows, ValuesInRange)


MEANS = (
    "SELECT AVG(amount) FROM orders WHERE amount > 100",
    "SELECT channel, AVG(amount) FILTER (WHERE amount > 5), COUNT(*) FROM orders GROUP BY channel",
    "SELECT AVG(age) FROM customers WHERE age > 30",
)


@pytest.mark.no_cover  # for the same reason
def test_searches_pass_under_strict_timing() -> None:
    worlds = [*((SHOP, sql) for sql in MEANS), *((e.world, e.sql) for e in CORPUS[::16])]
    seen = 0
    for world, sql in worlds:
        own = strict(world)
        for part in otherwise("search", own, sql):
            guard(own).check(text_of(part))
            seen += 1
    assert seen > 100


@functools.cache
def trusting_ways() -> list[tuple[World, Alternative, str]]:
    """Every alternative in the corpus, with its text."""
    ways = [(e.world, p) for e in CORPUS for p in otherwise("plain", e.world, e.sql)]
    found = {text_of(p): (world, p) for world, p in ways}
    return [
        (world, alternative, text_of(instead(part, alternative)))
        for world, part in found.values()
        for alternative in alternatives(part)
    ]


@functools.cache
def seeing(world: World) -> Guard:
    """A guard to which all data is as declared."""
    return Guard(opened(world).policy, None, lambda _: True)


@pytest.mark.no_cover  # for the same reason
def test_values_that_are_not_clamped_in_integers_need_a_look_at_the_data() -> None:
    """Each of them passes where the data is seen to be as declared; most pass only there."""
    trusting = needed = 0
    for world, alternative, sql in trusting_ways():
        if not any(isinstance(r, OF_VALUES) for r in alternative.requires):
            continue
        own = admitting_kept(world, alternative, seeing(world))
        own.check(sql)
        trusting += 1
        try:
            admitting_kept(world, alternative, guard(world)).check(sql)
        except Unsafe:
            needed += 1
    assert trusting >= needed > 100


@functools.cache
def admitting(world: World) -> Guard:
    policy = opened(world).policy
    return Guard(policy, None, led(policy))


def kept_by(alternative: Alternative) -> OverLimitRowsKept | None:
    """The rows of units above the limit that it reads."""
    return next((r for r in alternative.requires if isinstance(r, OverLimitRowsKept)), None)


def admitting_kept(world: World, alternative: Alternative, own: Guard) -> Guard:
    """A guard to which what the alternative reads is listed."""
    kept = kept_by(alternative)
    if kept is not None:
        own.list_kept(kept.name, kept.table)
    return own


def test_what_is_kept_of_a_table_is_as_private() -> None:
    found = [(w, a, sql) for w, a, sql in trusting_ways() if kept_by(a) is not None]
    plain = [f for f in found if not any(isinstance(r, OF_VALUES) for r in f[1].requires)]
    assert len(plain) > 10
    for world, alternative, sql in plain:
        admitting_kept(world, alternative, admitting(world)).check(sql)
        with pytest.raises(Unsafe, match="not listed"):
            Guard(opened(world).policy, None, led(opened(world).policy)).check(sql)
    with pytest.raises(Unsafe):
        admitting(SHOP).check(
            f'SELECT sum(TRY_CAST(t."amount" AS BIGINT)) AS p0 FROM {OVER_LIMIT_CATALOG}."kept of orders" AS t'
        )


@functools.cache
def guard_of(mode: str, world: World) -> Guard:
    """Of a mode; what differs in nothing is one guard, which walks a statement once."""
    if mode == "strict":
        return Guard(opened(strict(world)).policy)
    if mode != "prepared":
        return guard(world)
    policy = opened(world).policy
    return Guard(policy, _shelf(policy), led(policy))


MODES = ("plain", "strict", "prepared", "search")


@pytest.mark.no_cover  # for the same reason
@pytest.mark.parametrize("mode", MODES)
def test_whatever_is_planned_otherwise_passes(mode: str) -> None:
    """By day each mode has its own part of the corpus."""
    tried = 0
    for entry in some(CORPUS, MODES.index(mode), 3):
        for part in otherwise(mode, entry.world, entry.sql):
            guard_of(mode, entry.world).check(text_of(part))
            tried += 1
    assert tried > 100


@pytest.mark.no_cover  # for the same reason
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"in_list"}))
def test_every_total_function_is_known(name: str) -> None:
    """A function that is added is listed here a second time, by someone who has looked again."""
    world = wild_world()
    tables = {("", "w"): Listed(frozenset(c.name for c in world.columns), "row")}
    names = {
        c.number: f'TRY_CAST(w."{c.name}" AS {_type(c.shape.kind.value)})' for c in world.columns
    }
    from dpsql.engines.duckdb.expressions import expression

    for node in list(single_calls(world, name))[:60]:
        text = (
            f'SELECT count(*) AS p0 FROM "w" AS w WHERE hash({expression(node, names)}) IS NOT NULL'
        )
        check_measurement(parse_statement(text), tables)


def _type(kind: str) -> str:
    return {"integer": "BIGINT", "text": "VARCHAR"}.get(kind, kind.upper())


ID = 'TRY_CAST(t."customer_id" AS BIGINT)'
PLACED = 'TRY_CAST(t."placed" AS TIMESTAMP)'
AMOUNT = 'TRY_CAST(t."amount" AS DOUBLE)'
ONE = canonical(AMOUNT, Kind.DOUBLE)
"""The amount as it may be a key."""
CLAMPED = f"CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 500 THEN CAST({AMOUNT} * 16.0e0 AS BIGINT) WHEN {AMOUNT} < 0 THEN 0 WHEN {AMOUNT} > 500 THEN 8000 END"
FROM = 'FROM "orders" AS t'
ROWS = f'WITH r AS MATERIALIZED (SELECT {ID} AS u0, TRY_CAST(t."channel" AS VARCHAR) AS k0, {CLAMPED} AS v0 {FROM})'
SOUND = (
    f"{ROWS} SELECT k0, coalesce(sum(v0), 0) AS p0 FROM (SELECT k0, v0 FROM r UNION ALL SELECT b.k0, b.v0 FROM r AS b JOIN (SELECT u0, count(*) AS n FROM r GROUP BY u0 HAVING count(*) > 5) AS w USING (u0)) AS s GROUP BY 1",
    f"{ROWS} SELECT sum(m) AS p0 FROM (SELECT max(v0) AS m FROM r GROUP BY u0) AS g",
    f"{ROWS.replace('MATERIALIZED', 'NOT MATERIALIZED')} SELECT count(*) AS p0 FROM r",
    f"{ROWS}, g AS MATERIALIZED (SELECT u0, count(*) AS n FROM r GROUP BY u0) SELECT count(*) AS p0 FROM (SELECT row_number() OVER (PARTITION BY u0 ORDER BY n) AS place FROM g AS x SEMI JOIN g AS y USING (u0)) AS d WHERE place < 3",
    f"SELECT p0 FROM ({ROWS} SELECT count(*) AS p0 FROM r) AS a",
    f"{ROWS} SELECT sum(n) AS p0 FROM (WITH m AS MATERIALIZED (SELECT k0, count(*) AS n FROM r GROUP BY 1) SELECT n FROM m UNION ALL SELECT n FROM m) AS a",
    f"SELECT count(*) AS p0 {FROM}",
    f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(TRY_CAST({AMOUNT} AS DECIMAL(9, 2)) AS VARCHAR) = '1.00'",
    f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(TRY_CAST({AMOUNT} AS FLOAT) AS VARCHAR) = '1.5'",
    f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone('Asia/Tokyo', timezone('UTC', {PLACED}))) > TIMESTAMP '2025-01-01 00:00:00'",
    f"SELECT coalesce(sum({CLAMPED}), 0) AS p0 {FROM}",
    f"SELECT coalesce(sum(least(s, 5)), 0) AS p0 FROM (SELECT {ID} AS u0, count(*) AS s {FROM} GROUP BY 1) AS g",
    f"SELECT coalesce(sum(greatest(0, least(s, 9))), 0) AS p0 FROM (SELECT {ID} AS u0, count(*) AS s {FROM} GROUP BY 1) AS g",
    f"SELECT count(*) AS p0 FROM (SELECT max({ONE}) AS m {FROM} GROUP BY {ID}) AS g WHERE m > 3",
    f"SELECT count(*) AS p0 FROM (SELECT row_number() OVER (PARTITION BY {ID}) AS r {FROM}) AS g WHERE r < 3",
)
FAULTY: dict[str, str] = {
    "rows": f"SELECT {AMOUNT} AS p0 {FROM}",
    "rows of units": f"SELECT {ID} AS k0, count(*) AS p0 {FROM} GROUP BY 1",
    "an unclamped sum": f"SELECT coalesce(sum({AMOUNT}), 0) AS p0 {FROM}",
    "a sum of unbounded whole numbers": f"SELECT sum(TRY_CAST({AMOUNT} AS BIGINT)) AS p0 {FROM}",
    "a clamp on one side": f"SELECT sum(CASE WHEN {AMOUNT} <= 500 THEN CAST({AMOUNT} AS BIGINT) END) AS p0 {FROM}",
    "a clamp of another column": f'SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 500 THEN TRY_CAST(t."customer_id" AS BIGINT) END) AS p0 {FROM}',
    "a clamp with a column": f"SELECT sum(CASE WHEN {AMOUNT} >= {ID} AND {AMOUNT} <= {ID} THEN TRY_CAST({AMOUNT} AS BIGINT) END) AS p0 {FROM}",
    "a clamp with OR": f"SELECT sum(CASE WHEN {AMOUNT} >= 0 OR {AMOUNT} <= 500 THEN CAST({AMOUNT} AS BIGINT) END) AS p0 {FROM}",
    "a sum of doubles": f"SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 500 THEN {AMOUNT} END) AS p0 {FROM}",
    "an average": f"SELECT avg({CLAMPED}) AS p0 {FROM}",
    "a maximum": f"SELECT max({CLAMPED}) AS p0 {FROM}",
    "a product that overflows": f"SELECT sum({ID} * {ID}) AS p0 {FROM}",
    "a cast that fails": f"SELECT count(*) AS p0 {FROM} WHERE CAST(t.\"channel\" AS BIGINT) = 1",
    "a cast of a double": f"SELECT count(*) AS p0 {FROM} WHERE CAST({AMOUNT} AS BIGINT) = 1",
    "a cast to a type that nobody lists": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(t.\"channel\" AS UUID) IS NULL",
    "whole numbers without room": f'SELECT count(*) AS p0 {FROM} WHERE CAST(TRY_CAST(t."amount" AS HUGEINT) AS BIGINT) = 1',
    "fewer bits": f"SELECT count(*) AS p0 {FROM} WHERE CAST({ID} AS INTEGER) = 1",
    "a cast of a cast": f"SELECT count(*) AS p0 {FROM} WHERE CAST(CAST(least(greatest({ID}, 0), 9) AS BIGINT) AS DATE) IS NULL",
    "a list of a number": f"SELECT count(*) AS p0 {FROM} WHERE CAST({ID} AS BIGINT[]) IS NULL",
    "a hash as a number": f"SELECT count(*) AS p0 {FROM} WHERE CAST(hash({ID}) AS BIGINT) = 1",
    "a comparison that converts": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(t.\"channel\" AS VARCHAR) = {ID}",
    "a division by nothing": f"SELECT count(*) AS p0 {FROM} WHERE {ID} // {ID} = 1",
    "groups of zeros that are one value": f"SELECT max(v) AS p0 FROM (SELECT {ID} AS u, {AMOUNT} AS v {FROM} GROUP BY 1, 2) AS g",
    "pairs of a unit and of zeros that are one value": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u, {AMOUNT} AS v, count(*) AS n {FROM} GROUP BY 1, 2) AS g WHERE signbit(v)",
    "numbers of pairs of a unit and of zeros that are one value": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u, {AMOUNT} AS v, count(*) AS n {FROM} GROUP BY 1, 2) AS g",
    "a remainder by what begins with nothing": f"SELECT count(*) AS p0 {FROM} WHERE 7 % ({CLAMPED}) = 1",
    "a remainder by what ends with nothing": f"SELECT count(*) AS p0 {FROM} WHERE 7 % (({CLAMPED}) - 8000) = 1",
    "a part by what ends with nothing": f"SELECT count(*) AS p0 {FROM} WHERE 7 // (({CLAMPED}) - 8000) = 1",
    "a remainder": f"SELECT count(*) AS p0 {FROM} WHERE {ID} % 0 = 1",
    "a function that fails": f"SELECT count(*) AS p0 {FROM} WHERE error('x') IS NULL",
    "a function that fails outside of TRY": f"SELECT count(*) AS p0 {FROM} WHERE date_trunc('day', TRY_CAST(t.\"placed\" AS TIMESTAMP)) IS NULL",
    "a volatile function": f"SELECT count(*) AS p0 {FROM} WHERE random() < 0.5",
    "a clock": f"SELECT count(*) AS p0 {FROM} WHERE now() IS NULL",
    "a slow function": f"SELECT count(*) AS p0 {FROM} WHERE sleep_ms(5) IS NULL",
    "a pattern from data": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(t.\"channel\" AS VARCHAR) LIKE TRY_CAST(t.\"channel\" AS VARCHAR)",
    "the least whole number": f"SELECT count(*) AS p0 {FROM} WHERE abs({ID}) = 1",
    "rounding up the greatest whole number": f"SELECT count(*) AS p0 {FROM} WHERE round({ID}, -1) = 1",
    "characters of data": f"SELECT count(*) AS p0 {FROM} WHERE chr({ID}) = 'x'",
    "a place in a text from data": f"SELECT count(*) AS p0 {FROM} WHERE substring('abc', {ID}, 1) = 'x'",
    "one name for two columns": f"SELECT coalesce(sum(least(n, 5)), 0) AS p0 FROM (SELECT k, count(*) AS n FROM (SELECT {AMOUNT} AS k, {ID} AS k {FROM}) AS r GROUP BY k) AS g",
    "names that differ in case": f"SELECT coalesce(sum(least(n, 5)), 0) AS p0 FROM (SELECT k, count(*) AS n FROM (SELECT {AMOUNT} AS \"K\", {ID} AS k {FROM}) AS r GROUP BY k) AS g",
    "dates that overflow": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(t.\"placed\" AS DATE) + 99999999 IS NULL",
    "a file": "SELECT count(*) AS p0 FROM read_csv('/etc/passwd') AS t(a)",
    "a file as a table": "SELECT count(*) AS p0 FROM '/etc/passwd.csv' AS t",
    "the catalogue": "SELECT count(*) AS p0 FROM duckdb_tables() AS t(a)",
    "a table that is not listed": 'SELECT count(*) AS p0 FROM "secrets" AS t',
    "a table of a schema": 'SELECT count(*) AS p0 FROM main."orders" AS t',
    "a column that is not listed": f'SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(t."note" AS BIGINT) = 1',
    "the row's number": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(t.rowid AS BIGINT) = 1",
    "a window across units": f"SELECT count(*) AS p0 FROM (SELECT row_number() OVER (ORDER BY {AMOUNT}) AS r {FROM}) AS g WHERE r < 3",
    "a window by half of a unit": f"SELECT count(*) AS p0 FROM (SELECT row_number() OVER (PARTITION BY TRY({ID} // 2)) AS r {FROM}) AS g WHERE r < 3",
    "units told as text": f"SELECT k AS k0, count(*) AS p0 FROM (SELECT TRY_CAST({ID} AS DOUBLE) AS k, max({ONE}) AS m {FROM} GROUP BY 1) AS g GROUP BY 1",
    "LIMIT": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u0 {FROM} LIMIT 5) AS g",
    "DISTINCT across units": f"SELECT count(*) AS p0 FROM (SELECT DISTINCT {ONE} AS a {FROM}) AS g",
    "a sample": 'SELECT count(*) AS p0 FROM "orders" AS t TABLESAMPLE 10%',
    "QUALIFY": f"SELECT count(*) AS p0 {FROM} QUALIFY TRUE",
    "GROUP BY ALL": f"SELECT {AMOUNT} AS k0, count(*) AS p0 {FROM} GROUP BY ALL",
    "grouping sets": f"SELECT {AMOUNT} AS k0, count(*) AS p0 {FROM} GROUP BY GROUPING SETS ((1), ())",
    "UNION of private rows": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u {FROM} UNION SELECT {ID} AS u {FROM}) AS g",
    "EXCEPT ALL": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u {FROM} EXCEPT ALL SELECT {ID} AS u {FROM}) AS g",
    "private and public rows together": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u {FROM} UNION ALL SELECT 1 AS u) AS g",
    "a cross join of units": f'SELECT count(*) AS p0 {FROM} CROSS JOIN "visits" AS v',
    "a join by anything": f'SELECT count(*) AS p0 {FROM} JOIN "visits" AS v ON {ID} > 5',
    "rows of no unit": 'SELECT count(*) AS p0 FROM "countries" AS c LEFT JOIN "customers" AS t ON TRUE',
    "a full join": f'SELECT count(*) AS p0 {FROM} FULL JOIN "visits" AS v ON {ID} = TRY_CAST(v."customer_id" AS BIGINT)',
    "a positional join": f'SELECT count(*) AS p0 {FROM} POSITIONAL JOIN "visits" AS v',
    "rows beside their count": f"SELECT sum(n) AS p0 FROM (SELECT count(*) AS n {FROM}) AS g JOIN \"orders\" AS t ON TRUE",
    "a subquery over private rows": f"SELECT count(*) AS p0 {FROM} WHERE {ID} IN (SELECT {ID} {FROM})",
    "a scalar subquery": f"SELECT count(*) AS p0 {FROM} WHERE {ID} = (SELECT 1)",
    "WITH": f"WITH c AS (SELECT 1 AS a) SELECT count(*) AS p0 {FROM}",
    "WITH RECURSIVE": f"WITH RECURSIVE r AS MATERIALIZED (SELECT {ID} AS u0 {FROM} UNION ALL SELECT u0 FROM r) SELECT count(*) AS p0 FROM r",
    "rows of a WITH that an engine computes once or not": f"{ROWS.replace('MATERIALIZED ', '')} SELECT count(*) AS p0 FROM r",
    "a WITH that names columns anew": f"WITH r(u0, v0) AS MATERIALIZED (SELECT {AMOUNT} AS v0, {ID} AS u0 {FROM}) SELECT sum(m) AS p0 FROM (SELECT max({CLAMPED.replace(AMOUNT, 'v0')}) AS m FROM r GROUP BY u0) AS g",
    "a WITH without the unit": f"{ROWS.replace(f'{ID} AS u0', f'{ONE} AS u0')} SELECT sum(m) AS p0 FROM (SELECT max(v0) AS m FROM r GROUP BY u0) AS g",
    "a WITH with half of the unit": f"{ROWS.replace(f'{ID} AS u0', f'TRY({ID} // 2) AS u0')} SELECT sum(m) AS p0 FROM (SELECT max(v0) AS m FROM r GROUP BY u0) AS g",
    "a WITH without the clamp": f"{ROWS.replace(CLAMPED, AMOUNT)} SELECT sum(v0) AS p0 FROM r",
    "a WITH without half of the clamp": f"{ROWS.replace(f'{AMOUNT} >= 0 AND ', '')} SELECT sum(v0) AS p0 FROM r",
    "a window over a WITH": f"{ROWS} SELECT count(*) AS p0 FROM (SELECT row_number() OVER (ORDER BY u0) AS place FROM r) AS d WHERE place < 3",
    "a limit over a WITH": f"{ROWS} SELECT count(*) AS p0 FROM (SELECT u0 FROM r LIMIT 5) AS d",
    "a WITH that is one row for each unit, and shown": f"WITH r AS MATERIALIZED (SELECT {ID} AS k0, count(*) AS p0 {FROM} GROUP BY 1) SELECT k0, p0 FROM r",
    "a WITH joined by anything": f"{ROWS} SELECT count(*) AS p0 FROM r AS a JOIN r AS b ON a.v0 < b.v0",
    "a WITH beside what was measured of it": f"{ROWS}, m AS MATERIALIZED (SELECT count(*) AS n FROM r) SELECT sum(n) AS p0 FROM r JOIN m ON TRUE",
    "a WITH as a subquery of an expression": f"{ROWS} SELECT count(*) AS p0 {FROM} WHERE {ID} IN (SELECT u0 FROM r)",
    "a WITH that is a listed table by its name": f'WITH "visits" AS MATERIALIZED (SELECT {AMOUNT} AS customer_id {FROM}) SELECT count(*) AS p0 FROM "visits" AS v',
    "a WITH that is one in other letters": f'WITH "Visits" AS MATERIALIZED (SELECT {AMOUNT} AS customer_id {FROM}) SELECT count(*) AS p0 FROM "visits" AS v',
    "a WITH that hides another": f"{ROWS} SELECT sum(n) AS p0 FROM (WITH r AS MATERIALIZED (SELECT {AMOUNT} AS n {FROM}) SELECT count(*) AS n FROM r) AS a",
    "a WITH that hides another in other letters": f"{ROWS} SELECT sum(n) AS p0 FROM (WITH R AS MATERIALIZED (SELECT {AMOUNT} AS n {FROM}) SELECT count(*) AS n FROM r) AS a",
    "a WITH after its end": f"SELECT count(*) AS p0 FROM ({ROWS} SELECT u0 FROM r) AS a JOIN r AS b USING (u0)",
    "a WITH before it is there": f"WITH g AS MATERIALIZED (SELECT u0 FROM r), {ROWS.removeprefix('WITH ')} SELECT count(*) AS p0 FROM g",
    "a WITH of a schema": f"{ROWS} SELECT count(*) AS p0 FROM main.r",
    "a WITH in other letters": f'{ROWS} SELECT count(*) AS p0 FROM "R"',
    "a WITH with other names": f"{ROWS} SELECT sum(k0) AS p0 FROM r AS b(v0, u0, k0)",
    "a column of a WITH that it has not": f'{ROWS} SELECT count(*) AS p0 FROM r WHERE TRY_CAST(r."amount" AS BIGINT) = 1',
    "a table with other names": 'SELECT sum(m) AS p0 FROM (SELECT count(*) AS m FROM "orders" AS t(amount, customer_id) GROUP BY t."customer_id") AS g',
    "a * with something else in it": f"SELECT sum(v) AS p0 FROM (SELECT * REPLACE ({AMOUNT} AS v) FROM (SELECT {CLAMPED} AS v, {AMOUNT} AS a {FROM}) AS t) AS g",
    "a * without something": f"{ROWS} SELECT count(*) AS p0 FROM (SELECT * EXCLUDE (v0) FROM r) AS g",
    "two columns of one name": f"SELECT sum(v) AS p0 FROM (SELECT {AMOUNT} AS v, {CLAMPED} AS v {FROM}) AS g",
    "two columns of one name in other letters": f"SELECT sum(v) AS p0 FROM (SELECT {AMOUNT} AS V, {CLAMPED} AS v {FROM}) AS g",
    "two columns of one name by *": f"{ROWS} SELECT sum(v0) AS p0 FROM (SELECT * FROM (SELECT {ID} AS u1, {AMOUNT} AS v0 {FROM}) AS a JOIN r ON a.u1 = r.u0) AS g",
    "unnest of a column": f"SELECT unnest([1, 2]) AS p0 {FROM}",
    "VALUES of columns": f"SELECT count(*) AS p0 {FROM}, (VALUES (random())) AS v(a)",
    "a series of columns": "SELECT count(*) AS p0 FROM range(random()) AS r(v)",
    "constants alone": "SELECT 1 AS p0",
    "two statements": f"SELECT count(*) AS p0 {FROM}; SELECT 1",
    "no statement": "DELETE FROM orders",
    "an aggregate in WHERE": f"SELECT count(*) AS p0 {FROM} WHERE count(*) > 1",
    "a lambda": f"SELECT count(*) AS p0 {FROM} WHERE list_transform([1], x -> x) IS NULL",
    "a function of a schema": f"SELECT count(*) AS p0 {FROM} WHERE main.hash({ID}) IS NULL",
    "an ordered aggregate": f"SELECT sum(1 ORDER BY {ID}) AS p0 {FROM}",
    "a filtered function": f"SELECT sum(CASE WHEN hash({ID}) > 1 THEN 1 END) FILTER (WHERE random() > 0) AS p0 {FROM}",
    "a list of values": f"SELECT list({{'b': {ID}, 'n': 1}}) AS p0 {FROM}",
    "a list of arrays": f"SELECT list(list_value({ID})) AS p0 {FROM}",
    "an array as a statistic": f"SELECT list_value({ID}) AS p0 {FROM}",
    "text as a statistic": "SELECT k AS p0 FROM (SELECT 'x' AS k, count(*) AS n FROM \"orders\" AS t) AS g",
    "an odd constant": f"SELECT count(*) AS p0 {FROM} WHERE 'x'::BLOB IS NULL",
    "one value of two kinds": f"SELECT count(*) AS p0 {FROM} WHERE coalesce({ID}, 'x') IS NULL",
    "arithmetic of text": f"SELECT count(*) AS p0 {FROM} WHERE 'a' + TRY_CAST(t.\"channel\" AS VARCHAR) IS NULL",
    "all columns beside a row's number": f"SELECT count(*) AS p0 FROM (SELECT *, row_number() OVER (PARTITION BY t.\"customer_id\") AS r {FROM}) AS g WHERE r < 3",
    "a column beside a row's number": f"SELECT count(*) AS p0 FROM (SELECT {AMOUNT} AS a, row_number() OVER (PARTITION BY {ID}) AS r {FROM}) AS g WHERE r < 3 AND a > 5",
    "a value made of a column beside a row's number": f"SELECT count(*) AS p0 FROM (SELECT {AMOUNT} > 5 AS a, row_number() OVER (PARTITION BY {ID} ORDER BY {AMOUNT} > 7) AS r {FROM}) AS g WHERE r < 3 AND a",
    "zeros that are one value": f"SELECT count(*) AS p0 FROM (SELECT {AMOUNT} AS a, row_number() OVER (PARTITION BY {ID} ORDER BY {AMOUNT}) AS r {FROM}) AS g WHERE r < 3 AND a > 5",
    "the last of a day": f"SELECT count(*) AS p0 FROM (SELECT last_value({ID}) OVER (PARTITION BY {ID}) AS i, last_value({AMOUNT}) OVER (PARTITION BY {ID} ORDER BY {ID}) AS r {FROM}) AS g WHERE r < 3",
    "an order of a sum": f"SELECT count(*) AS p0 FROM (SELECT max({AMOUNT} ORDER BY {ID}) OVER (PARTITION BY {ID}) AS r {FROM}) AS g WHERE r < 3",
    "a row's number by another name": f"SELECT count(*) AS p0 FROM (SELECT *, row_number() OVER (PARTITION BY u ORDER BY n) AS r FROM (SELECT {ID} AS u, {AMOUNT} AS n, count(*) AS c {FROM} GROUP BY 1, 2) AS l(u, c, n)) AS g WHERE r < 3",
    "numbers of rows of two queries": f"SELECT count(*) AS p0 FROM (SELECT *, row_number() OVER (PARTITION BY u) AS r FROM (SELECT {ID} AS u {FROM} GROUP BY 1 UNION ALL SELECT {ID} AS u {FROM} GROUP BY 1) AS l) AS g WHERE r < 3",
    "an aggregate of a schema": f"SELECT main.count(*) AS p0 {FROM}",
    "a function of a catalog": f"SELECT count(*) AS p0 {FROM} WHERE system.main.abs({AMOUNT}) > 1",
    "a decimal that is no text": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST({AMOUNT} AS DECIMAL(9, 2)) > 1",
    "a decimal as another number": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(TRY_CAST({AMOUNT} AS DECIMAL(9, 2)) AS DOUBLE) > 1",
    "a short float as another number": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(TRY_CAST({AMOUNT} AS FLOAT) AS DOUBLE) > 1",
    "a decimal as a date": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(TRY_CAST({AMOUNT} AS DECIMAL(9, 2)) AS DATE) IS NULL",
    "a decimal that may fail": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(CAST({AMOUNT} AS DECIMAL(9, 2)) AS VARCHAR) = '1.00'",
    "a decimal of a size that rows name": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(TRY_CAST({AMOUNT} AS DECIMAL({ID}, 2)) AS VARCHAR) = '1.00'",
    "a text as a decimal": f"SELECT count(*) AS p0 {FROM} WHERE TRY_CAST(TRY_CAST(TRY_CAST(t.\"channel\" AS VARCHAR) AS DECIMAL(9, 2)) AS VARCHAR) = '1.00'",
    "a number before its noise, as a text": f"SELECT TRY_CAST(TRY_CAST(count(*) AS DECIMAL(9, 2)) AS VARCHAR) AS k0, count(*) AS p0 {FROM}",
    "a time as an instant": f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone('UTC', {PLACED})) IS NULL",
    "a time of a zone that rows name": f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone(TRY_CAST(t.\"channel\" AS VARCHAR), timezone('UTC', {PLACED}))) IS NULL",
    "a time from a zone that rows name": f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone('UTC', timezone(TRY_CAST(t.\"channel\" AS VARCHAR), {PLACED}))) IS NULL",
    "a time of another zone, outside TRY": f"SELECT count(*) AS p0 {FROM} WHERE timezone('UTC', timezone('Asia/Tokyo', {PLACED})) IS NULL",
    "a text in another zone": f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone('UTC', timezone('Asia/Tokyo', TRY_CAST(t.\"channel\" AS VARCHAR)))) IS NULL",
    "a time of a zone's number": f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone(1, timezone('UTC', {PLACED}))) IS NULL",
    "a distinct time of a zone": f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone('UTC', timezone(DISTINCT 'Asia/Tokyo', {PLACED}))) IS NULL",
    "three zones": f"SELECT count(*) AS p0 {FROM} WHERE TRY(timezone('UTC', timezone('UTC', timezone('UTC', {PLACED})))) IS NULL",
    "a window that nobody lists": f"SELECT count(*) AS p0 FROM (SELECT nth_value({ID}, 2) OVER (PARTITION BY {ID}) AS r {FROM}) AS g WHERE r < 3",
}  # fmt: skip


@pytest.mark.parametrize("sql", SOUND)
def test_sound_statements_pass(sql: str) -> None:
    sure().check(sql)


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_statement_does_not_run(fault: str) -> None:
    with pytest.raises(Unsafe):
        sure().check(FAULTY[fault])


RAW = (
    f'SELECT count(*) AS p0 {FROM} WHERE t."amount" > 1',
    f'SELECT count(*) AS p0 {FROM} WHERE t."channel" = CAST(t."customer_id" AS VARCHAR)',
    f'SELECT sum(CASE WHEN t."amount" >= 0 AND t."amount" <= 9 THEN CAST(t."amount" AS BIGINT) END) AS p0 {FROM}',
)


@pytest.mark.parametrize("sql", RAW)
def test_a_column_is_read_as_it_is_where_it_has_that_very_type(sql: str) -> None:
    policy = opened(SHOP).policy
    keyed(policy).check(sql)
    orders = policy.tables["orders"]
    columns = {name: replace(c, held_as_read=False) for name, c in orders.columns.items()}
    other = replace(policy, tables={**policy.tables, "orders": replace(orders, columns=columns)})
    with pytest.raises(Unsafe):
        keyed(other).check(sql)


LEADING = (
    "SELECT city || channel, COUNT(*), SUM(amount)"
    " FROM customers JOIN orders USING (customer_id) GROUP BY 1"
)
HASH = r"hash\(u0 IS NULL, u0, k0 IS NULL, k0, \$salt\)"
MUTATED: dict[str, tuple[str, str]] = {
    "an order across units": (r"PARTITION BY u0 ", ""),
    "marks across units": (r"bit_or\((.*?)\) AS marks", r"bit_or(bit_or(\1)) OVER () AS marks"),
    "marks of all units as a number": (r"SELECT (k0|c\.k0), coalesce", f"SELECT (SELECT bit_or(1) {FROM}), coalesce"),
    "units paired with others": (r"JOIN (\(SELECT u0, CASE .*? AS w) USING \(u0\)", r"JOIN \1 ON TRUE"),
    "a mark that has no room": (rf"CAST\(1 AS HUGEINT\) << \({HASH} >> 58\)", "CAST(1 AS HUGEINT) << (hash(u0, k0, $salt) >> 50)"),
    "a mark in fewer bits": (r"CAST\(1 AS HUGEINT\) <<", "CAST(1 AS BIGINT) <<"),
    "another mark": (r"CAST\(1 AS HUGEINT\) <<", "CAST(3 AS HUGEINT) <<"),
    "a mark by the key": (rf"CAST\(1 AS HUGEINT\) << \({HASH} >> 58\)", "CAST(1 AS HUGEINT) << u0"),
    "a mark by part of the key": (rf"CAST\(1 AS HUGEINT\) << \({HASH} >> 58\)", "CAST(1 AS HUGEINT) << (u0 >> 58)"),
    "a hash that keeps all bits": (rf"CAST\({HASH} >> 58 AS BIGINT\)", "CAST(hash(u0) >> 0 AS BIGINT)"),
    "a hash that keeps bits by a column": (rf"{HASH} >> 58 AS", "hash(u0) >> u0 AS"),
    "a number without bounds in bits": (r"marks & \d+", "u0 & 3"),
    "a weight without bounds": (r"least\(\d+, \d+ // rows\) AS weight", "u0 AS weight"),
}  # fmt: skip


@functools.cache
def _leading() -> tuple[str, ...]:
    """Statements that tell a unit's first groups from marks, with weights and without."""
    found = tuple(text for text, _ in statements(SHOP, LEADING) if "bit_or" in text)
    assert any("AS weight" in text for text in found)
    return found


@pytest.mark.parametrize("mutation", MUTATED)
def test_marks_are_of_one_unit_and_have_room(mutation: str) -> None:
    pattern, new = MUTATED[mutation]
    tried = 0
    for text in _leading():
        guard().check(text)
        changed = re.sub(pattern, new, text)
        if changed != text:
            tried += 1
            with pytest.raises(Unsafe):
                guard().check(changed)
    assert tried


@pytest.mark.parametrize("bits", [1, 6, 58, 63])
def test_the_first_bits_of_a_hash_fit(bits: int) -> None:
    """Whatever is moved out of a hash, what is left is a BIGINT; a mark by six bits has room."""
    with duckdb.connect(":memory:") as connection:
        most = f"(18446744073709551615::UBIGINT >> {bits})"
        connection.execute(f"SELECT CAST({most} AS BIGINT)").fetchall()
        if bits >= 58:
            connection.execute(f"SELECT 1::HUGEINT << {most}").fetchall()


EXTREMES = {
    "BIGINT": ("-9223372036854775808", "9223372036854775807", "0"),
    "HUGEINT": ("-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"),
    "DOUBLE": ("'nan'", "'inf'", "'-inf'", "1.7e308", "-5e-324"),
    "VARCHAR": ("''", "'x'", "chr(0)"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "DATE": ("'infinity'", "'-infinity'", "'5881580-07-10'", "'5877642-06-25 (BC)'"),
    "TIMESTAMP": ("'infinity'", "'-infinity'", "'294247-01-10 04:00:54.775806'"),
    "INTERVAL": ("INTERVAL '-178956970 years'", "INTERVAL '9223372036854775807 microseconds'"),
}  # fmt: skip


def test_a_cast_that_needs_no_proof_never_fails() -> None:
    """Every pair of types that the list of sure casts covers, at the ends of their values."""
    tried = 0
    with duckdb.connect(":memory:") as connection:
        for source, values in EXTREMES.items():
            for target in EXTREMES:
                kinds = KINDS[source], KINDS[target]
                widest = target == "HUGEINT" and kinds == ("whole", "whole")
                if (not widest and kinds not in SURE) or (source, target) == ("HUGEINT", "BIGINT"):
                    continue
                for value in (*values, "NULL"):
                    connection.execute(
                        f"SELECT hash(CAST(v AS {target})) FROM (SELECT CAST({value} AS {source}) AS v) AS t"
                    ).fetchall()
                    tried += 1
    assert tried > 50


@pytest.mark.parametrize("name", sorted(SHORT))
def test_short_functions_give_64_bits(name: str) -> None:
    given = {"date_part": "'epoch', TIMESTAMP '2024-01-01'", "epoch_us": "TIMESTAMP '2024-01-01'",
             "length": "'x'", "strpos": "'x', 'y'", "sign": "5"}[name]  # fmt: skip
    with duckdb.connect(":memory:") as connection:
        (found,) = connection.execute(f"SELECT typeof({name}({given}))").fetchone() or ("",)
    assert found in ("BIGINT", "INTEGER", "TINYINT", "DOUBLE")


LEFT = 'FROM "orders" AS t LEFT JOIN "visits" AS v ON TRY_CAST(t."customer_id" AS BIGINT) = TRY_CAST(v."customer_id" AS BIGINT)'


def test_a_side_that_may_lack_holds_nobody_s_key() -> None:
    """Rows without a partner are of many units, and all have NULL there: they are not one unit."""
    sure().check(
        f'SELECT coalesce(sum(least(n, 5)), 0) AS p0 FROM (SELECT count(*) AS n {LEFT} GROUP BY t."customer_id") AS g'
    )
    with pytest.raises(Unsafe, match="several units"):
        sure().check(
            f'SELECT coalesce(sum(m), 0) AS p0 FROM (SELECT max({CLAMPED}) AS m {LEFT} GROUP BY v."customer_id") AS g'
        )
    joined = (
        "FROM orders o LEFT JOIN visits v ON v.customer_id = o.customer_id GROUP BY v.customer_id"
    )
    for query in (
        f"SELECT v.customer_id, COUNT(*) {joined}",
        f"SELECT SUM(n) FROM (SELECT v.customer_id, LEAST(COUNT(*), 5) AS n {joined}) AS g",
    ):
        for text, _ in statements(SHOP, query):
            guard().check(text)


STEADY = {
    "a filter": f"SELECT count(*) AS p0 {FROM} WHERE {AMOUNT} > 5",
    "a filter beside a key": f"SELECT count(*) AS p0 {FROM} WHERE {ID} IS NOT NULL AND {AMOUNT} > 5",
    "a filter of a side": f'SELECT count(*) AS p0 {FROM} JOIN (SELECT v."customer_id" AS i FROM "visits" AS v WHERE TRY_CAST(v."seconds" AS BIGINT) > 5) AS s ON {ID} = TRY_CAST(s.i AS BIGINT)',
    "a filter of rows that are written down": f"{ROWS} SELECT count(*) AS p0 FROM (SELECT u0 FROM r WHERE v0 > 5) AS g",
    "a filter where rows are written down": f"{ROWS[:-1]} WHERE {AMOUNT} > 5) SELECT count(*) AS p0 FROM r",
    "a condition of a join": f'SELECT count(*) AS p0 {FROM} JOIN "visits" AS v ON {ID} = TRY_CAST(v."customer_id" AS BIGINT) AND {AMOUNT} > 5',
    "a semi join": f'SELECT count(*) AS p0 {FROM} SEMI JOIN "visits" AS v ON {ID} = TRY_CAST(v."customer_id" AS BIGINT)',
}  # fmt: skip


@pytest.mark.parametrize("what", STEADY)
def test_strict_timing_lets_no_condition_choose_rows(what: str) -> None:
    strict = World(SHOP.policy, SHOP.data, lambda text: SHOP.change(text) + "\nstrict_timing: on\n")
    sure().check(STEADY[what])
    with pytest.raises(Unsafe, match="decides which"):
        keyed(opened(strict).policy).check(STEADY[what])


def test_private_rows_are_not_read_as_public() -> None:
    guard().check('SELECT t."country" AS c FROM "countries" AS t', over_public=True)
    with pytest.raises(Unsafe, match="private rows"):
        sure().check(f"SELECT count(*) AS p0 {FROM}", over_public=True)
    with pytest.raises(Unsafe, match="private rows"):
        sure().check(f"{ROWS} SELECT u0 FROM r", over_public=True)


def test_units_of_two_kinds_do_not_meet(tmp_path: Path) -> None:
    tables = {
        ("", "a"): Listed(frozenset({"i"}), "person", ("i",), 1),
        ("", "b"): Listed(frozenset({"i"}), "shop", ("i",), 1),
    }
    for text in (
        'SELECT count(*) AS p0 FROM "a" AS a JOIN "b" AS b ON a."i" = b."i"',
        'SELECT count(*) AS p0 FROM (SELECT a."i" FROM "a" AS a UNION ALL SELECT b."i" FROM "b" AS b) AS c',
    ):
        with pytest.raises(Unsafe, match="different kinds"):
            check_measurement(parse_statement(text), tables)


def test_a_wrong_plan_is_an_incident_and_never_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(terms, "_steps", lambda node, scope: scope.once(node.value))
    with service("shop", "shop") as here, pytest.raises(EngineFailed):
        here.session("analyst").execute("SELECT SUM(amount) FROM orders")
    assert "several units" in caplog.text


def test_statements_of_one_form_are_walked_once() -> None:
    own = keyed(opened(SHOP).policy)
    for text in SOUND[:2]:
        own.check(text, form=b"one")
    assert len(own._known) == 1, "whoever gives a form answers for it"
    own.check(SOUND[1])
    assert len(own._known) == 2, "without a form a text is its own"
    with pytest.raises(Unsafe):
        own.check(f"SELECT count(*) AS p0 {FROM} WHERE date_part('year', NULL) IS NULL")
    own._known.update(((str(i).encode(), "text"), 0) for i in range(MOST_KNOWN))
    own.check(SOUND[1])
    own.check(SOUND[0])
    assert len(own._known) == 1


def test_a_key_s_place_is_never_taken_for_another() -> None:
    """A statement with a hundred columns differs from another in which of them it groups by."""
    own, idle = keyed(opened(SHOP).policy), ", ".join(f"{i} AS x{i}" for i in range(120))
    text = (
        f"SELECT coalesce(sum(m), 0) AS p0 FROM (SELECT {idle}, {ID} AS u, {ONE} AS a,"
        f" max({CLAMPED}) AS m {FROM} GROUP BY %d) AS g"
    )
    own.check(text % 121)
    with pytest.raises(Unsafe, match="several units"):
        own.check(text % 122)


def test_a_policy_says_whose_rows_a_table_holds() -> None:
    policy: Policy = opened(World("far", "trade")).policy
    tables = Guard(policy)._tables
    assert tables["", "lineitem"].unit == ()
    assert tables["", "orders"].unit == ("customer_region", "customer_number")
    assert tables["", "part"].kind is None
