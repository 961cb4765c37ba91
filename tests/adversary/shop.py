"""A world of every readable type, with several roles, and statements that touch each of them.

Generated worlds have one role and no password. This one is served: roles log in, see different
tables and share the data's account.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from tests.adversary.model import Role, Row, Step, World

PASSWORD = "a password of the shop"
PEOPLE = 240
NOON = dt.datetime(2024, 6, 1, 12)  # noqa: DTZ001 (the column has no zone)
CITIES = ("Ulm", "Graz", "Brno", "Linz", "Łódź")
COLOURS = ("red", "green", "blué")
POLICY = """\
source: {engine: duckdb, path: data.duckdb}
data_version: "%(name)s"
units: {person: {table: people, key: id}}
tables:
  people:
    unit: person
    columns:
      id: {type: bigint, identifier: true}
      region: {type: integer, range: [0, 4]}
      rank: {type: smallint, values: [1, 2, 3]}
      city: {type: text}
      colour: {type: text, values: [red, green, "blué"]}
      joined: {type: date, range: [2020-01-01, 2024-12-31]}
      score: {type: double, range: [-10, 10], nullable: true}
      weight: {type: real, range: [0, 1]}
      money: {type: "decimal(10, 2)", range: [0, 100]}
      ok: {type: boolean}
      seen: {type: timestamptz, range: ["2024-01-01 00:00:00", "2024-12-31 00:00:00"]}
  orders:
    unit: person
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 4
    columns:
      id: {type: bigint, identifier: true}
      amount: {type: double, range: [0, 50]}
      placed: {type: timestamp, range: ["2024-01-01 00:00:00", "2024-12-31 23:59:59"]}
      page: {type: integer, values_from: pages.page}
  pages: {public: true, key: page}
accounts: {dataset: {epsilon: 1e9, delta: 0.5%(composition)s}}
limits: {timeout_seconds: %(seconds)s, threads: 1, memory: 512MB}
%(more)sroles:
  analyst:
    password: "%(password)s"
    query: {epsilon: %(epsilon)s, delta: 1e-6}
    max_groups_per_unit: 3
  second:
    password: "%(password)s"
    query: {epsilon: %(epsilon)s, delta: 1e-9}
    session: {epsilon: 3}
    tables: [people, pages]
  owner: {password: "%(password)s", owner: true, query: {epsilon: 1, delta: 1e-6}}
"""
DDL = (
    "CREATE TABLE people (id BIGINT, region INTEGER, rank SMALLINT, city VARCHAR, colour VARCHAR, joined DATE, score DOUBLE, weight FLOAT, money DECIMAL(10, 2), ok BOOLEAN, seen TIMESTAMP WITH TIME ZONE)",
    "CREATE TABLE orders (id BIGINT, amount DOUBLE, placed TIMESTAMP, page INTEGER)",
    "CREATE TABLE pages (page INTEGER, title VARCHAR, price DECIMAL(6, 2), share DOUBLE, made UUID, since DATE)",
)
ASKED = (
    "SELECT COUNT(*) FROM people",
    "SELECT colour, COUNT(*) AS n, AVG(score), MAX(seen), MAX(joined), SUM(money), BOOL_OR(ok) FROM people GROUP BY colour",
    "SELECT region, rank, COUNT(*) FROM people GROUP BY region, rank ORDER BY 3 DESC LIMIT 4",
    "SELECT city, COUNT(*) FROM people GROUP BY city",
    "SELECT COUNT(DISTINCT id), SUM(weight), STDDEV(score) FROM people WHERE ok",
    "SELECT PERCENTILE_CONT(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY score) FROM people",
    "SELECT MEDIAN(money), MIN(rank), MAX(placed) FROM people JOIN orders USING (id)",
    "SELECT DATE_TRUNC('quarter', placed) AS q, SUM(amount) FROM orders GROUP BY q ORDER BY q",
    "SELECT title, COUNT(*) FROM orders JOIN pages USING (page) GROUP BY title",
    "SELECT region, COUNT(*) FROM people GROUP BY ROLLUP (region)",
    "SELECT n FROM (SELECT colour, COUNT(*) AS n FROM people GROUP BY colour) AS c WHERE n > 0",
    "WITH t AS (SELECT region, SUM(money) AS m FROM people GROUP BY region) SELECT AVG(m) FROM t",
    "SELECT COUNT(*) FROM people WHERE score > (SELECT AVG(score) FROM people)",
    "SELECT * FROM pages",
    "SELECT SUM(price), AVG(share), MAX(since) FROM pages",
    "SELECT DISTINCT colour FROM people",
    'SELECT COUNT(*) AS "odd ""name""", COUNT(*) AS "ünï" FROM people',
    "SELECT MODE(colour), CORR(score, money) FROM people",
    "SELECT EXTRACT(year FROM joined) AS y, COUNT(*) FROM people GROUP BY y",
    "SELECT CASE WHEN COUNT(*) > 1 THEN 'many' END, NULL AS x, -0.0::double precision FROM people",
    "/* dpsql.max_error = 20 */ SELECT COUNT(*) FROM people WHERE region = 2",
)
REFUSED = (
    "SELECT id FROM people",
    "SELECT * FROM people LIMIT 1",
    "SELECT\n  COUNT(*),\n  nope\nFROM people",
    "SELECT COUNT(*) FROM nobody",
    "SELECT SUM(score), 'ü' FROM people GROUP BY id",
    "SELECT MAX(city) FROM people",
    "SELECT pg_read_file('policy.yaml'), COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people, orders",
    "SELECT COUNT(*) FROM people WHERE score = ANY (SELECT score FROM people)",
    "SELECT COUNT(*) FROM orders o JOIN people p ON o.id < p.id",
    "SELECT RANDOM(), COUNT(*) FROM people",
    "SELECT COUNT(*) OVER () FROM people",
    "SELECT STRING_AGG(city, ',') FROM people",
    "SELECT COUNT(*) FROM read_csv('notes.csv'), people",
    "SELECT CAST('x' AS INTEGER), COUNT(*) FROM people",
)
PARAMETERS = (
    ("SELECT COUNT(*) FROM people WHERE region < $1 AND colour = $2", (3, "red")),
    ("SELECT SUM(money) FROM people WHERE joined >= $1", (dt.date(2022, 1, 1),)),
    ("SELECT COUNT(*) FROM orders WHERE placed < $1", (NOON,)),
    ("SELECT COUNT(*) FROM people WHERE score > $1 OR ok = $2", (-1.5, True)),
    ("SELECT COUNT(*) FROM people WHERE city = $1", ("Ulm'; DROP TABLE people; --",)),
    ("SELECT COUNT(*) FROM people WHERE region = $1", (None,)),
)


def constant(value: str) -> str:
    """A text as a constant."""
    return "'" + value.replace("'", "''") + "'"


def person(number: int) -> Row:
    """One person, whose values follow from the number."""
    score = "NULL" if number % 17 == 0 else str((number * 37 % 200 - 100) / 10)
    day = dt.date(2020, 1, 1) + dt.timedelta(days=number * 7 % 1800)
    seen = dt.datetime(2024, 1, 1) + dt.timedelta(minutes=number * 431)  # noqa: DTZ001
    cells = (
        str(number), str(number % 5), str(number % 3 + 1), constant(CITIES[number % 5]),
        constant(COLOURS[number // 3 % 3]), f"DATE '{day}'", score, str(number % 8 / 8),
        str(number % 97 + 0.25), str(number % 2 == 0), f"TIMESTAMPTZ '{seen}+00'",
    )  # fmt: skip
    return Row("people", cells, f"person:{number}")


def order(number: int, place: int) -> Row:
    """One order of a person."""
    moment = dt.datetime(2024, 1, 1) + dt.timedelta(hours=(number * 31 + place * 997) % 8700)  # noqa: DTZ001
    cells = (str(number), str(number % 40 + place / 4), f"TIMESTAMP '{moment}'", str(place))
    return Row("orders", cells, f"person:{number}")


def shop(
    name: str = "shop", *, epsilon: str = "1", seconds: int = 20, basic: bool = True, more: str = ""
) -> World:  # fmt: skip
    """The shop. Its name is its data version too: another name makes what was answered old."""
    composition = ", composition: basic" if basic else ""
    policy = POLICY % {
        "password": PASSWORD, "epsilon": epsilon, "seconds": seconds, "more": more,
        "composition": composition, "name": name,
    }  # fmt: skip
    rows = [person(number) for number in range(PEOPLE)]
    rows += [order(number, place) for number in range(PEOPLE) for place in range(number % 4)]
    rows += [
        Row("pages", (str(place), f"'page {place}'", f"{place}.50", f"{place / 3}",
                      f"'1a0af42b-c9be-49fc-ba54-64f1bc793a8{place}'", "DATE '2020-02-29'"))
        for place in range(4)
    ]  # fmt: skip
    roles = tuple(Role(each, PASSWORD) for each in ("analyst", "second", "owner"))
    return World(name, policy, DDL, tuple(rows), roles)


def with_password(world: World) -> World:
    """A generated world whose roles can log in."""
    policy = world.policy
    for role in world.roles:
        policy = policy.replace(
            f"  {role.name}:\n", f"  {role.name}:\n    password: {PASSWORD}\n", 1
        )
    return replace(world, policy=policy, roles=tuple(Role(r.name, PASSWORD) for r in world.roles))


def questions() -> tuple[Step, ...]:
    """One step for each statement: answers, refusals, parameters, plans, another role."""
    plain = [Step("ask", sql) for sql in (*ASKED, *REFUSED)]
    bound = [Step("ask", sql, values) for sql, values in PARAMETERS]
    plans = [Step("explain", sql) for sql in (*ASKED, *REFUSED)]
    others = [Step("ask", sql, role="second") for sql in (ASKED[0], ASKED[7], REFUSED[3])]
    return (*plain, *bound, *plans, *others)
