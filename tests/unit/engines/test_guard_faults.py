"""Faults that keep every rule on units but one: each such statement must be refused.

A statement may join by the wrong columns, convert what rows hold, use a number before its noise, or
forget a cap; none of that is seen by who only looks at keys and aggregates.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import duckdb
import pytest
from support.corpus import SHOP, World
from support.guards import keyed
from support.measured import opened

from dpsql.engines.duckdb.guard import Guard, Unsafe, statement
from dpsql.engines.duckdb.guard.facts import Fact
from dpsql.engines.duckdb.guard.sizes import arithmetic

TRADE = World("far", "trade")
ID = 'TRY_CAST(t."customer_id" AS BIGINT)'
VID = 'TRY_CAST(v."customer_id" AS BIGINT)'
AMOUNT = 'TRY_CAST(t."amount" AS DOUBLE)'
CH = 'TRY_CAST(t."channel" AS VARCHAR)'
CLAMPED = f"CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 500 THEN CAST({AMOUNT} * 16.0e0 AS BIGINT) WHEN {AMOUNT} < 0 THEN 0 WHEN {AMOUNT} > 500 THEN 8000 END"
FROM, V = 'FROM "orders" AS t', '"visits" AS v'
PER = f"(SELECT {ID} AS u0, count(*) AS s0 {FROM} GROUP BY 1) AS g"
"""How many rows each unit has."""
N = f"(SELECT {CH} AS k0, count(*) AS n {FROM} GROUP BY 1) AS g"
"""A number of each group, before its noise."""
FEW = f"SELECT sum(n) AS p0 FROM (SELECT count(*) AS n FROM (SELECT {ID} AS u0 {FROM}) AS b ANTI JOIN (SELECT {ID} AS u0 {FROM} GROUP BY 1 HAVING count(*) > 5) AS m USING (u0) GROUP BY u0) AS g"
TEXTUAL = f"CASE WHEN {AMOUNT} = 7 THEN 'x' ELSE 'true' END"
"""A text where a truth value is due: the engine casts it, and fails where it is ``x``."""
UNIT, EMAIL = 't."customer_id"', 'TRY_CAST(t."email" AS VARCHAR)'
CUSTOMERS = f'FROM "customers" AS t WHERE {UNIT} IS NOT NULL'
PER_UNIT = f"SELECT k AS k0, count(*) AS p0 FROM (SELECT {UNIT} AS u, %s AS k {CUSTOMERS} GROUP BY 1) AS g GROUP BY 1"
"""Groups by something of each customer's own rows, which have an address that identifies."""
SOUND = (
    f"SELECT k0, n AS p0 FROM {N}",
    f"SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 1.0e120 THEN CAST({AMOUNT} * 1.0e-113 AS BIGINT) END) AS p0 {FROM}",
    f"SELECT k0, coalesce(n, 0) * 1048576 + n AS p0 FROM {N} WHERE k0 = 'web' ORDER BY k0",
    f"SELECT sum(n) AS p0 FROM {N}",
    f"SELECT list({{'b': 1, 'n': least(n, 5)}}) FILTER (WHERE n IS NOT NULL) AS p0 FROM {N}",
    f"SELECT {CH} AS k0, count(*) AS p0 {FROM} GROUP BY 1 HAVING count(*) FILTER (WHERE {AMOUNT} > 5) > 0",
    f"SELECT a.n AS p0 FROM {N.replace(' AS g', ' AS a')} LEFT JOIN {N.replace(' AS g', ' AS b')} ON a.k0 IS NOT DISTINCT FROM b.k0",
    f"SELECT sum(least(s0, 5)) AS p0 FROM {PER}",
    f"SELECT sum(s0 * w) AS p0 FROM (SELECT {ID} AS u0, count(*) AS s0, 5 // greatest(count(*), 1) AS w {FROM} GROUP BY 1) AS g",
    f'SELECT count(*) AS p0 {FROM} SEMI JOIN {V} ON {ID} = {VID} AND {AMOUNT} = TRY_CAST(v."seconds" AS DOUBLE)',
    f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u0 {FROM}) AS a JOIN (SELECT {VID} AS u0 FROM {V}) AS b USING (u0)",
    FEW,
    f"SELECT n AS k0, count(*) AS p0 FROM (SELECT {UNIT}, count({EMAIL}) AS n {CUSTOMERS} GROUP BY 1) AS g GROUP BY 1",
    f"SELECT n AS k0, count(*) AS p0 FROM (SELECT {UNIT}, count(DISTINCT {EMAIL}) FILTER (WHERE {EMAIL} IS NOT NULL) AS n {CUSTOMERS} GROUP BY 1) AS g GROUP BY 1",
    f"SELECT n AS k0, count(*) AS p0 FROM (SELECT {UNIT}, sum(CASE WHEN {EMAIL} IS NULL THEN 0 ELSE 1 END) AS n {CUSTOMERS} GROUP BY 1) AS g GROUP BY 1",
    f"SELECT n AS k0, count(*) AS p0 FROM (SELECT rank() OVER (PARTITION BY {UNIT} ORDER BY {EMAIL}) AS n {CUSTOMERS}) AS g GROUP BY 1",
    f"SELECT n AS k0, count(*) AS p0 FROM (SELECT {UNIT}, bool_or(starts_with({EMAIL}, 'a')) AS n {CUSTOMERS} GROUP BY 1) AS g GROUP BY 1",
)
FAULTY: dict[str, str] = {
    "a HAVING by an alias": f"SELECT k0, count(*) AS c FROM (SELECT {CH} AS k0, {ID} AS c {FROM}) AS g GROUP BY 1 HAVING c = 1",
    "an order by an alias": f"SELECT k0, count(*) AS p0 FROM (SELECT {CH} AS k0, {ID} AS p0 {FROM}) AS g GROUP BY 1 ORDER BY p0",
    "a FILTER by a text": f"SELECT count(*) FILTER (WHERE {TEXTUAL}) AS p0 {FROM}",
    "a WHERE by a text": f"SELECT count(*) AS p0 {FROM} WHERE {TEXTUAL}",
    "a CASE by a text": f"SELECT sum(CASE WHEN {TEXTUAL} THEN 1 ELSE 0 END) AS p0 {FROM}",
    "a text AND a condition": f"SELECT count(*) AS p0 {FROM} WHERE {TEXTUAL} AND {AMOUNT} > 5",
    "NOT a text": f"SELECT count(*) AS p0 {FROM} WHERE NOT {TEXTUAL}",
    "a join on a text": f"SELECT count(*) AS p0 {FROM} JOIN {V} ON {ID} = {VID} AND {TEXTUAL}",
    "a HAVING by a text": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u0 {FROM} GROUP BY 1 HAVING CASE WHEN count(*) = 5 THEN 'x' ELSE 'true' END) AS g",
    "a window's FILTER by a text": f"SELECT count(*) AS p0 FROM (SELECT count(*) FILTER (WHERE {TEXTUAL}) OVER (PARTITION BY {ID}) AS n {FROM}) AS g WHERE n > 5",
    "texts counted as truth values": f"SELECT count(*) AS p0 FROM (SELECT {ID} AS u0, count_if({TEXTUAL}) AS n {FROM} GROUP BY 1) AS g WHERE n > 5",
    "a number as a condition": f"SELECT count(*) AS p0 {FROM} WHERE {AMOUNT}",
    "another number first": f"SELECT k0, coalesce(length(k0), n) AS p0 FROM {N}",
    "few rows by another table": f"SELECT sum(n) AS p0 FROM (SELECT count(*) AS n FROM (SELECT {ID} AS u0 {FROM}) AS b ANTI JOIN (SELECT {VID} AS u0 FROM {V} GROUP BY 1 HAVING count(*) > 5) AS m USING (u0) GROUP BY u0) AS g",
    "few rows by other rows": f"SELECT sum(n) AS p0 FROM (SELECT count(*) AS n FROM (SELECT {ID} AS u0 {FROM}) AS b ANTI JOIN (SELECT {ID} AS u0 {FROM} WHERE {AMOUNT} > 5 GROUP BY 1 HAVING count(*) > 5) AS m USING (u0) GROUP BY u0) AS g",
    "few rows by the many": f"SELECT sum(n) AS p0 FROM (SELECT count(*) AS n FROM (SELECT {ID} AS u0 {FROM}) AS b SEMI JOIN (SELECT {ID} AS u0 {FROM} GROUP BY 1 HAVING count(*) > 5) AS m USING (u0) GROUP BY u0) AS g",
    "a join by one side's own columns": f'SELECT count(*) AS p0 {FROM} JOIN {V} ON {AMOUNT} = {AMOUNT}',
    "USING what is no unit": 'SELECT count(*) AS p0 FROM "orders" AS t JOIN "orders" AS v USING (channel)',
    "a semi join by values": f'SELECT count(*) AS p0 {FROM} SEMI JOIN {V} ON {AMOUNT} = TRY_CAST(v."seconds" AS DOUBLE)',
    "an anti join by values": f'SELECT count(*) AS p0 {FROM} ANTI JOIN {V} ON {AMOUNT} = TRY_CAST(v."seconds" AS DOUBLE)',
    "a left join by values": f'SELECT count(*) AS p0 {FROM} LEFT JOIN {V} ON {AMOUNT} = TRY_CAST(v."seconds" AS DOUBLE)',
    "a join by the unit of one side": f'SELECT count(*) AS p0 {FROM} JOIN {V} ON {ID} = TRY_CAST(v."seconds" AS BIGINT)',
    "a join by units or something else": f'SELECT count(*) AS p0 {FROM} JOIN {V} ON {ID} = {VID} OR {AMOUNT} > 5',
    "a join by rounded units": f'SELECT count(*) AS p0 {FROM} JOIN {V} ON TRY_CAST(t."customer_id" AS DOUBLE) = TRY_CAST(v."customer_id" AS DOUBLE)',
    "a join by units that may lack": f'SELECT count(*) AS p0 FROM (SELECT v."customer_id" AS c {FROM} LEFT JOIN {V} ON {ID} = {VID}) AS a JOIN "orders" AS b ON TRY_CAST(a.c AS BIGINT) = TRY_CAST(b."customer_id" AS BIGINT)',
    "a join by what a subquery calls the unit": f'SELECT count(*) AS p0 FROM (SELECT TRY_CAST(t."amount" AS BIGINT) AS u0 {FROM}) AS a JOIN (SELECT {ID} AS u0 {FROM}) AS b USING (u0)',
    "raw columns of two types": f'SELECT count(*) AS p0 {FROM} WHERE t."channel" = t."customer_id"',
    "a raw column beside another table's": f'SELECT count(*) AS p0 {FROM} JOIN {V} ON {ID} = {VID} AND t."channel" = v."seconds"',
    "one raw column or another": f'SELECT count(*) AS p0 {FROM} WHERE coalesce(t."channel", t."customer_id") IS NULL',
    "a case of raw columns": f'SELECT count(*) AS p0 {FROM} WHERE CASE WHEN TRUE THEN t."channel" ELSE t."customer_id" END IS NULL',
    "raw columns one under the other": f'SELECT count(*) AS p0 FROM (SELECT t."channel" AS c {FROM} UNION ALL SELECT t."customer_id" AS c {FROM}) AS g',
    "a function of a raw column": 'SELECT count(*) AS p0 FROM "visits" AS t WHERE sqrt(t."seconds") IS NULL',
    "raw columns in a list": f'SELECT count(*) AS p0 {FROM} WHERE t."channel" IN (t."customer_id")',
    "HAVING before noise": f"SELECT {CH} AS k0, count(*) AS p0 {FROM} GROUP BY 1 HAVING count(*) = 1",
    "HAVING many before noise": f"SELECT {CH} AS k0, count(*) AS p0 {FROM} GROUP BY 1 HAVING count(*) > 5",
    "HAVING a sum before noise": f"SELECT {CH} AS k0, count(*) AS p0 {FROM} GROUP BY 1 HAVING sum({CLAMPED}) > 0",
    "WHERE before noise": f"SELECT k0, n AS p0 FROM {N} WHERE n = 1",
    "a CASE before noise": f"SELECT k0, CASE WHEN n = 1 THEN 1000000 END AS p0 FROM {N}",
    "a simple CASE before noise": f"SELECT k0, CASE n WHEN 1 THEN 1000000 END AS p0 FROM {N}",
    "squares before noise": f"SELECT sum(n*n) AS p0 FROM {N}",
    "an order before noise": f"SELECT k0, n AS p0 FROM {N} ORDER BY n LIMIT 1",
    "an order": f"SELECT k0, n AS p0 FROM {N} ORDER BY n",
    "an order by place": f"SELECT k0, n AS p0 FROM {N} ORDER BY 2",
    "a LIMIT before noise": f"SELECT k0, n AS p0 FROM {N} LIMIT 1",
    "DISTINCT before noise": f"SELECT DISTINCT n AS p0 FROM {N}",
    "a minimum without noise": f"SELECT min(n) AS secret FROM {N}",
    "a minimum before noise": f"SELECT min(n) AS p0 FROM {N}",
    "the number of groups": f"SELECT count(*) AS p0 FROM {N}",
    "keys that are added up": f"SELECT sum(length(k0)) AS p0 FROM {N}",
    "a number as a key": f"SELECT n AS k0, n AS p0 FROM {N}",
    "a number by another name": f"SELECT k0, n FROM {N}",
    "a group of numbers": f"SELECT sum(n) AS p0 FROM {N} GROUP BY n",
    "a value as a number": f"SELECT {CLAMPED} AS p0, count(*) AS units {FROM} GROUP BY 1",
    "a window before noise": f"SELECT k0, row_number() OVER (ORDER BY n) AS p0 FROM {N}",
    "a window over keys before noise": f"SELECT k0, sum(n) OVER () AS p0 FROM {N}",
    "another number for none": f"SELECT k0, coalesce(n, 1000000) AS p0 FROM {N}",
    "a number as text": f"SELECT CAST(n AS VARCHAR) AS k0, n AS p0 FROM {N}",
    "a join by numbers": f"SELECT a.n AS p0 FROM {N.replace(' AS g', ' AS a')} LEFT JOIN {N.replace(' AS g', ' AS b')} ON a.n = b.n",
    "groups that are there": f"SELECT a.n AS p0 FROM {N.replace(' AS g', ' AS a')} JOIN {N.replace(' AS g', ' AS b')} ON a.k0 IS NOT DISTINCT FROM b.k0",
    "groups that are there beside public ones": f'SELECT b.n AS p0 FROM "countries" AS c JOIN {N.replace(" AS g", " AS b")} ON b.k0 IS NOT DISTINCT FROM TRY_CAST(c."country" AS VARCHAR)',
    "groups of both": f"SELECT k0, n AS p0 FROM {N} INTERSECT ALL SELECT k0, n AS p0 FROM {N}",
    "the greater of numbers": f"SELECT k0, greatest(n, 5) AS p0 FROM {N}",
    "the lesser of two numbers": f"SELECT k0, least(n, n) AS p0 FROM {N}",
    "a difference's size": f"SELECT k0, abs(n) AS p0 FROM {N}",
    "a quotient before noise": f"SELECT k0, n // 2 AS p0 FROM {N}",
    "whether there is a number": f"SELECT k0, n IS NULL AS p0 FROM {N}",
    "a list of exact conditions": f"SELECT list({{'b': 1, 'n': n}}) FILTER (WHERE n > 1) AS p0 FROM {N}",
    "a filtered sum of numbers": f"SELECT sum(n) FILTER (WHERE k0 = 'web') AS p0 FROM {N}",
    "units as numbers beside what was measured": f"SELECT sum(n) AS p0 FROM (SELECT n FROM {N} UNION ALL SELECT 5 AS n) AS h",
    "a number that is tried": f"SELECT k0, TRY(n // n) AS p0 FROM {N}",
    "a forgotten cap": f"SELECT sum(s0) AS p0 FROM {PER}",
    "a forgotten cap on a sum": f"SELECT sum(s) AS p0 FROM (SELECT {ID} AS u0, sum({CLAMPED}) AS s {FROM} GROUP BY 1) AS g",
    "a cap on the wrong side": f"SELECT sum(greatest(s0, 5)) AS p0 FROM {PER}",
    "a cap on one of two sides": f"SELECT sum(least(s, 5)) AS p0 FROM (SELECT {ID} AS u0, sum({CLAMPED} - 4000) AS s {FROM} GROUP BY 1) AS g",
    "a cap that is no constant": f"SELECT sum(least(s0, s0)) AS p0 FROM {PER}",
    "a cap of another": f"SELECT sum(s0 + least(s0, 5)) AS p0 FROM {PER}",
    "a forgotten cap on a place": f"SELECT sum(place) AS p0 FROM (SELECT row_number() OVER (PARTITION BY {ID}) AS place {FROM}) AS g",
    "a forgotten cap on a running number": f"SELECT sum(n) AS p0 FROM (SELECT count(*) OVER (PARTITION BY {ID}) AS n {FROM}) AS g",
    "a weight of one": f"SELECT sum(s0 * w) AS p0 FROM (SELECT {ID} AS u0, count(*) AS s0, 1 AS w {FROM} GROUP BY 1) AS g",
    "an identifier as a key": 'SELECT TRY_CAST(t."email" AS VARCHAR) AS k0, count(*) AS p0, count(*) AS units FROM "customers" AS t WHERE t."customer_id" IS NOT NULL GROUP BY 1',
    "part of an identifier as a key": 'SELECT left(k, 3) AS k0, count(*) AS p0 FROM (SELECT lower(TRY_CAST(t."email" AS VARCHAR)) AS k FROM "customers" AS t WHERE t."customer_id" IS NOT NULL) AS g GROUP BY 1',
    "an identifier of a unit as a key": 'SELECT k AS k0, count(*) AS p0 FROM (SELECT t."customer_id" AS u, max(TRY_CAST(t."email" AS VARCHAR)) AS k FROM "customers" AS t WHERE t."customer_id" IS NOT NULL GROUP BY 1) AS g GROUP BY 1',
    "a number made of an identifier": PER_UNIT % f"max(length({EMAIL}))",
    "an identifier in a case": PER_UNIT % f"max(CASE WHEN length({EMAIL}) > 5 THEN {EMAIL} END)",
    "an identifier for another value": PER_UNIT % f"max(coalesce(TRY_CAST(t.\"city\" AS VARCHAR), {EMAIL}))",
    "an identifier beside a count": PER_UNIT % f"TRY(length(max({EMAIL})) + count({EMAIL}))",
    "a unit's first identifier": f"SELECT k AS k0, count(*) AS p0 FROM (SELECT first_value({EMAIL}) OVER (PARTITION BY {UNIT} ORDER BY {EMAIL}) AS k {CUSTOMERS}) AS g GROUP BY 1",
    "an identifier where there is none before": f"SELECT k AS k0, count(*) AS p0 FROM (SELECT lag(TRY_CAST(t.\"city\" AS VARCHAR), 1, {EMAIL}) OVER (PARTITION BY {UNIT} ORDER BY TRY_CAST(t.\"city\" AS VARCHAR), {EMAIL}) AS k {CUSTOMERS}) AS g GROUP BY 1",
    "grouping sets of private rows": f"SELECT {CH} AS k0, count(*) AS p0 {FROM} GROUP BY CUBE(1)",
    "grouping sets of a unit's rows": f"SELECT sum(least(n, 5)) AS p0 FROM (SELECT {ID} AS u, count(*) AS n {FROM} GROUP BY ROLLUP(1)) AS g",
    "grouping sets before noise": f"SELECT k0, sum(n) AS p0 FROM {N} GROUP BY ROLLUP(k0)",
    "an aggregate of public rows over private ones": f"SELECT regr_count({AMOUNT}, {AMOUNT}) AS p0 {FROM}",
    "an aggregate of public rows over a unit's": f"SELECT sum(least(n, 5)) AS p0 FROM (SELECT {ID} AS u, regr_count({AMOUNT}, {AMOUNT}) AS n {FROM} GROUP BY 1) AS g",
    "a mode of private rows": f"SELECT mode({CH}) AS k0, count(*) AS p0 {FROM}",
    "a key by the place of no column": f"SELECT {CH} AS k0, count(*) AS p0 {FROM} GROUP BY 0",
    "a sum of different values": f"SELECT sum(DISTINCT {CLAMPED}) AS p0 {FROM}",
    "a product that leaves 64 bits": f"SELECT sum(TRY(a * b)) AS p0, sum(a * b) AS p1 FROM (SELECT least(greatest({ID}, -9000000000000000000), 9000000000000000000) AS a, least(greatest({ID}, -9000000000000000000), 9000000000000000000) AS b {FROM}) AS g",
    "a double beyond whole numbers": f"SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 1.0e300 THEN CAST({AMOUNT} AS BIGINT) END) AS p0 {FROM}",
    "a double that is scaled too far": f"SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 500 THEN CAST({AMOUNT} * 1.0e18 AS BIGINT) END) AS p0 {FROM}",
    "a quotient by nothing": f"SELECT count(*) AS p0 {FROM} WHERE 5 // least(greatest({ID}, 0), 9) = 1",
    "a remainder by nothing": f"SELECT count(*) AS p0 {FROM} WHERE least(greatest({ID}, 0), 9) % 0 = 1",
    "a quotient by a number of rows": f"SELECT sum(5 // s0) AS p0 FROM {PER}",
    "a double that is not scaled enough": f"SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 1.0e120 THEN CAST({AMOUNT} * 1.0e-100 AS BIGINT) END) AS p0 {FROM}",
    "a narrow type": f"SELECT count(*) AS p0 {FROM} WHERE CAST(least(greatest({ID}, 0), 3000000000) AS INTEGER) = 1",
    "a sum that leaves 64 bits": f"SELECT count(*) AS p0 {FROM} WHERE least(greatest({ID}, 0), 9000000000000000000) + 9000000000000000000 = 1",
    "a shift out of its type": f"SELECT count(*) AS p0 {FROM} WHERE (1::BIGINT << 62) + (1::BIGINT << 62) = 1",
}  # fmt: skip


@functools.cache
def guard(world: World = SHOP) -> Guard:
    return keyed(opened(world).policy)


@pytest.mark.parametrize("sql", SOUND)
def test_what_is_alike_and_right_passes(sql: str) -> None:
    guard().check(sql)


@pytest.mark.parametrize("fault", FAULTY)
def test_a_fault_of_one_rule_is_refused(fault: str) -> None:
    with pytest.raises(Unsafe):
        guard().check(FAULTY[fault])


IDENTIFYING = (
    "an identifier as a key", "part of an identifier as a key", "an identifier of a unit as a key",
    "a number made of an identifier", "an identifier in a case", "an identifier for another value",
    "an identifier beside a count", "a unit's first identifier", "an identifier where there is none before",
)  # fmt: skip


@pytest.mark.parametrize("fault", IDENTIFYING)
def test_one_rule_keeps_identifiers_from_naming_groups(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it each of these would run."""
    monkeypatch.setattr(statement, "made_of", lambda _: iter(()))
    Guard(opened(SHOP).policy).check(FAULTY[fault])


LINE, BACK, ORDER = '"lineitem" AS t', '"returns" AS r', '"orders" AS o'
OWNED = {
    f"FROM {LINE} JOIN {ORDER} ON t.order_id = o.order_id": True,
    f"FROM {LINE} JOIN {ORDER} ON TRY_CAST(t.order_id AS BIGINT) = TRY_CAST(o.order_id AS BIGINT)": True,
    f"FROM {LINE} JOIN {ORDER} USING (order_id)": True,
    f"FROM {LINE} JOIN {ORDER} ON TRY_CAST(t.order_id AS DOUBLE) = TRY_CAST(o.order_id AS DOUBLE)": False,
    f"FROM {LINE} JOIN {ORDER} ON t.order_id = o.customer_number": False,
    f"FROM {LINE} SEMI JOIN \"lineitem\" AS s ON t.order_id = s.order_id": True,
    f"FROM {LINE} SEMI JOIN \"lineitem\" AS s ON t.part_id = s.part_id": False,
    f"FROM {LINE} JOIN {BACK} ON t.order_id = r.order_id AND t.line = r.line": True,
    f"FROM {LINE} JOIN {BACK} ON t.line = r.line": False,
    f"FROM {LINE} JOIN {BACK} ON t.order_id = r.order_id AND t.line = t.line": False,
    f"FROM {BACK} ANTI JOIN \"returns\" AS s USING (order_id, line)": True,
    f"FROM {BACK} LEFT JOIN \"returns\" AS s USING (line)": False,
    f'FROM {ORDER} JOIN "customer" AS c ON o.customer_region = c.region AND o.customer_number = c.number': True,
    f'FROM {ORDER} JOIN "customer" AS c ON o.customer_region = c.region': False,
    f'FROM (SELECT t.order_id AS i FROM {LINE} LEFT JOIN "lineitem" AS s ON t.order_id = s.order_id) AS a JOIN {ORDER} ON a.i = o.order_id': True,
    f'FROM (SELECT s.order_id AS i FROM {LINE} LEFT JOIN "lineitem" AS s ON t.order_id = s.order_id) AS a JOIN {ORDER} ON a.i = o.order_id': False,
    f'FROM (SELECT s.order_id AS i, s.line AS j FROM {LINE} JOIN "lineitem" AS s ON t.order_id = s.order_id) AS a JOIN {BACK} ON a.i = r.order_id AND a.j = r.line': True,
}  # fmt: skip


@pytest.mark.parametrize("joined", OWNED)
def test_rows_meet_by_the_unit_or_by_the_row_they_belong_to(joined: str) -> None:
    sql = f"SELECT count(*) AS p0 {joined}"
    if OWNED[joined]:
        guard(TRADE).check(sql)
    else:
        with pytest.raises(Unsafe, match=r"different units|stored beside whole"):
            guard(TRADE).check(sql)


def test_parts_of_two_rows_keys_are_no_key() -> None:
    """Of rows that are written down once, two readings are paired: their keys do not mix."""
    unit = "o.customer_region AS a, o.customer_number AS b"
    head = f"WITH r AS MATERIALIZED (SELECT {unit}, t.order_id AS i, t.line AS j FROM {LINE} JOIN {ORDER} USING (order_id))"
    for x, y in (("r", "r"), (f"({head} SELECT * FROM r)", f"({head} SELECT * FROM r)")):
        pair = f"(SELECT x.i, %s FROM {x} AS x JOIN {y} AS y USING (a, b)) AS p"
        text = f"SELECT count(*) AS p0 FROM {pair} JOIN {BACK} ON p.i = r.order_id AND p.j = r.line"
        text = f"{head} {text}" if x == "r" else text
        guard(TRADE).check(text % "x.j")
        with pytest.raises(Unsafe, match="different units"):
            guard(TRADE).check(text % "y.j")


HISTORIES = {
    "a text that is a table": ("SELECT count(*) AS p0 FROM 'orders'", "SELECT count(*) AS p0 FROM '/etc/passwd.csv'"),
    "a text that is an alias": (f"SELECT n AS 'p1' FROM {N}", f"SELECT n AS 'k0' FROM {N}"),
    "a text that is a column's name": (f"SELECT count(*) AS p0 FROM (SELECT {ID} AS 'a', {AMOUNT} AS 'b' {FROM}) AS g WHERE a > 1", f"SELECT count(*) AS p0 FROM (SELECT {ID} AS 'b', {AMOUNT} AS 'b' {FROM}) AS g WHERE a > 1"),
    "a text beside a number": (f"SELECT count(*) AS p0 {FROM} WHERE {ID} = 5", f"SELECT count(*) AS p0 {FROM} WHERE {ID} = 'x'"),
    "an end": (f"SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 999999999 THEN CAST({AMOUNT} * 1.0e9 AS BIGINT) END) AS p0 {FROM}", f"SELECT sum(CASE WHEN {AMOUNT} >= 0 AND {AMOUNT} <= 99999999999 THEN CAST({AMOUNT} * 1.0e9 AS BIGINT) END) AS p0 {FROM}"),
    "a comparison": (f"SELECT sum(CASE WHEN {ID} >= 0 AND {ID} <= 5 THEN {ID} END) AS p0 {FROM}", f"SELECT sum(CASE WHEN {ID} >= 0 AND {ID} = 5 THEN {ID} END) AS p0 {FROM}"),
    "an order by place": (f"SELECT k0, n AS p0 FROM {N} WHERE k0 = 'a' ORDER BY k0", f"SELECT k0, n AS p0 FROM {N} WHERE k0 = 'a' ORDER BY 'k0'"),
}  # fmt: skip


@pytest.mark.parametrize("what", HISTORIES)
def test_what_passed_before_decides_nothing(what: str) -> None:
    own, (sound, faulty) = keyed(opened(SHOP).policy), HISTORIES[what]
    own.check(sound)
    with pytest.raises(Unsafe):
        own.check(faulty)


def _corners() -> Iterator[tuple[Fact, Fact]]:
    ends = [(-7, -2), (-7, 3), (0, 0), (0, 5), (2, 9), (-1, 1)]
    for a, b in ends:
        for c, d in ends:
            yield Fact("whole", a, b, 63), Fact("whole", c, d, 63)


@pytest.mark.parametrize("name", ["+", "-", "*", "//", "%"])
def test_numbers_are_within_their_ends(name: str) -> None:
    """Every pair of whole numbers between ends, as the engine computes it."""
    with duckdb.connect(":memory:") as connection:
        for one, other in _corners():
            found = arithmetic(name, [one, other], tried=False)
            low, high = connection.execute(
                f"SELECT min(TRY(a {name} b)), max(TRY(a {name} b)) FROM range({one.low}, {one.high} + 1) AS r(a),"
                f" range({other.low}, {other.high} + 1) AS s(b)"
            ).fetchone() or (0, 0)
            assert low is None or (found.low <= low and high <= found.high)
