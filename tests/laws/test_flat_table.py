"""A flat table of 73,421 ratings by 2,972 students: the students are protected, not the ratings."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.measured import broken, every_way, exact, planned, removed, request
from support.services import FreeLedger, Seeded, SpyEngine, noon

from dpsql.diagnostics.refusal import DataBreaksPolicy
from dpsql.engines.duckdb.write import write
from dpsql.engines.facts import Facts
from dpsql.engines.lookups import one_row
from dpsql.ir.statements import Query
from dpsql.policy.load import parse
from dpsql.price.priced import PricedMeasurement
from dpsql.service import Service

RATINGS, STUDENTS, MOST = 73_421, 2_972, 60
DATA = f"""
CREATE TABLE ratings AS
SELECT CASE WHEN i < {STUDENTS} THEN i WHEN i < {STUDENTS} + 500 THEN 7
            ELSE (hash(i, 1) % {STUDENTS})::BIGINT END AS s,
  'course ' || (hash(i, 2) % 9) AS course, 1 + (hash(i, 3) % 5)::INTEGER AS stars
FROM range({RATINGS}) AS r(i);
CREATE TABLE logins AS SELECT (hash(i, 4) % {STUDENTS})::INTEGER AS who, 1 AS n FROM range(20000) AS r(i);
"""
POLICY = f"""
source: {{engine: duckdb, path: ratings.duckdb}}
data_version: "1"
units: {{student: {{key: s}}}}
tables:
  ratings:
    unit: student
    max_rows_per_unit: {MOST}
    columns:
      s: {{type: bigint}}
      course: {{type: text}}
      stars: {{type: integer, range: [1, 5]}}
  logins:
    unit: student
    unit_key: who
    max_rows_per_unit: 20
    columns: {{who: {{type: integer}}}}
accounts: {{dataset: {{epsilon: 10, delta: 1e-5}}}}
roles: {{analyst: {{session: {{epsilon: 10}}, query: {{epsilon: 1}}}}}}
"""
FIRST_TRY = POLICY.replace("{key: s}", "{table: ratings, key: s}").replace(
    f"    max_rows_per_unit: {MOST}\n", ""
)
"""Each row is taken for a student."""
FIRST_TRY = FIRST_TRY[: FIRST_TRY.index("  logins:")] + FIRST_TRY[FIRST_TRY.index("accounts:") :]
QUESTIONS = (
    "SELECT COUNT(DISTINCT s) FROM ratings",
    "SELECT COUNT(*), AVG(stars) FROM ratings",
    "SELECT course, COUNT(*), COUNT(DISTINCT s), SUM(stars) FROM ratings GROUP BY course",
    "SELECT AVG(n) FROM (SELECT s, LEAST(COUNT(*), 50) AS n FROM ratings GROUP BY s) AS t",
    "SELECT COUNT(*) FROM ratings AS r JOIN logins AS l ON l.who = r.s WHERE r.stars = 5",
    "SELECT COUNT(DISTINCT who) FROM logins WHERE who NOT IN (SELECT s FROM ratings WHERE stars = 1)",
)
GONE = (7, 0, STUDENTS - 1)
"""Of a student with hundreds of ratings, and of two others, all rows are removed in all tables."""


@functools.cache
def data() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute(DATA)
    return connection


@dataclass
class Engine(SpyEngine):
    """The table, in memory."""

    def largest(self, query: Query) -> int:
        return int(data().execute(write(query)).fetchall()[0][0])

    def is_empty(self, query: Query | str) -> bool:
        sql = query if isinstance(query, str) else write(one_row(query))
        return not data().execute(sql).fetchall()


@functools.cache
def here(text: str = POLICY, *, believed: bool = False) -> Service:
    policy = parse(text, Path("ratings.yaml"), "ratings.yaml")
    engine = Engine(lambda sql: data().sql(sql).to_arrow_table())
    facts = Facts() if believed else None
    return Service(policy, engine, FreeLedger(), clock=noon, entropy=Seeded(3), facts=facts)


def moved(sql: str, service: Service) -> list[str]:
    """The claims that the removal of a student breaks."""
    parts: list[PricedMeasurement] = list(every_way(planned(sql, service), request(3, 1)))
    before = exact(data(), parts)
    tables = {"ratings": "s", "logins": "who"}
    found = []
    for student in GONE:
        gone = [f"DELETE FROM {table} WHERE {key} = {student}" for table, key in tables.items()]
        after = removed(data(), gone, parts)
        for part, one, other in zip(parts, before, after, strict=True):
            found += list(broken(part, one, other))
    return found


def test_the_table_is_as_large_as_it_is_said_to_be() -> None:
    [counts] = data().execute("SELECT count(*), count(DISTINCT s) FROM ratings").fetchall()
    assert counts == (RATINGS, STUDENTS)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_no_student_moves_a_measurement_by_more_than_its_price(sql: str) -> None:
    assert moved(sql, here()) == []


def test_students_are_counted() -> None:
    session = here().session()
    answer: pa.Table = session.execute("SELECT COUNT(DISTINCT s) AS n FROM ratings").table
    assert abs(answer.column(0)[0].as_py() - STUDENTS) < 30


@pytest.mark.parametrize("sql", QUESTIONS[:2])
def test_rows_that_are_taken_for_students_protect_nobody(sql: str) -> None:
    """The planted fault, which is a policy: what one student moves is not what is priced."""
    with pytest.raises(DataBreaksPolicy):
        here(FIRST_TRY)
    assert moved(sql, here(FIRST_TRY, believed=True))
