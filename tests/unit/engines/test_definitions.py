"""Rows that follow from more than the file are not verified, and not read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.engines.duckdb import copies, definitions
from dpsql.engines.duckdb import engine as engine_module
from dpsql.engines.duckdb.definitions import STEADY, computed_views, unsteady
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.duckdb.inspect import describe
from dpsql.policy.load import load
from dpsql.policy.model import Limits

POLICY = """
source: {engine: duckdb, path: data.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people:
    unit: person
    columns: {id: {type: integer}, age: {type: integer, range: [0, 100]}}
accounts: {dataset: {epsilon: 1e9, delta: 1e-5, composition: basic}}
roles: {analyst: {epsilon: 1e9}}
"""
STORED = """
CREATE TABLE stored (id INTEGER, age INTEGER, city VARCHAR, seen TIMESTAMP, "user" VARCHAR);
INSERT INTO stored SELECT i, i % 90, 'A', TIMESTAMP '2024-01-01', 'u' FROM range(40) r(i);
CREATE TABLE later (id INTEGER, made TIMESTAMP GENERATED ALWAYS AS (now()));
CREATE TABLE older (id INTEGER, next INTEGER GENERATED ALWAYS AS (id + 1));
CREATE TABLE given (id INTEGER, made TIMESTAMP DEFAULT now());
CREATE SEQUENCE numbers;
CREATE TYPE mood AS ENUM ('good');
CREATE MACRO shifted(x) AS x + random();
CREATE MACRO latest(n) AS TABLE SELECT * FROM stored WHERE seen > now();
CREATE SCHEMA other;
CREATE TABLE other.far (id INTEGER);
CREATE VIEW today AS SELECT id FROM stored WHERE seen >= current_date - 1;
CREATE VIEW other.near AS SELECT id, random() AS r FROM stored;
"""
VOLATILE = {
    "time": "SELECT * FROM stored WHERE seen < now()",
    "day": "SELECT * FROM stored WHERE seen >= current_date - 1",
    "day by name": "SELECT * FROM stored WHERE seen >= today()",
    "age": "SELECT id, age(seen) AS a FROM stored",
    "instant": "SELECT id, current_timestamp AS t FROM stored",
    "chance": "SELECT * FROM stored WHERE random() < 0.5",
    "sample": "SELECT * FROM stored USING SAMPLE 10%",
    "table sample": "SELECT * FROM stored TABLESAMPLE reservoir(2 ROWS)",
    "identifier": "SELECT uuid() AS id FROM stored",
    "sequence": "SELECT nextval('numbers') AS id FROM stored",
    "variable": "SELECT * FROM stored WHERE id = getvariable('x')",
    "setting": "SELECT current_setting('memory_limit') AS s FROM stored",
    "who": "SELECT current_user AS u, id FROM stored",
    "catalog": "SELECT count(*) AS id FROM duckdb_tables()",
    "catalog view": "SELECT table_name FROM information_schema.tables",
    "settings": "SELECT value FROM duckdb_settings()",
    "file": "SELECT * FROM read_csv('{folder}/rows.csv')",
    "file by name": "SELECT * FROM '{folder}/rows.csv'",
    "files": "SELECT * FROM glob('*')",
    "macro": "SELECT shifted(id) AS id FROM stored",
    "table macro": "SELECT * FROM latest(3)",
    "view": "SELECT * FROM today",
    "view of a view": "WITH q AS (SELECT id FROM today) SELECT s.id FROM stored s, (SELECT 1) LEFT JOIN q ON true",
    "subquery": "SELECT * FROM stored WHERE id IN (SELECT id FROM today)",
    "another schema": "SELECT id FROM other.near",
    "generated column": "SELECT id FROM later",
    "some rows": "SELECT * FROM stored LIMIT 3",
    "ordered rows": "SELECT * FROM stored ORDER BY age LIMIT 3",
    "one row each": "SELECT DISTINCT ON (age) id FROM stored",
    "numbered rows": "SELECT row_number() OVER () AS id FROM stored",
    "rows before": "SELECT sum(age) OVER (ORDER BY age ROWS 2 PRECEDING) AS id FROM stored",
    "any row": "SELECT any_value(id) AS id FROM stored",
    "first row": "SELECT first(id) AS id FROM stored",
    "texts": "SELECT string_agg(city) AS id FROM stored",
    "collation": "SELECT DISTINCT city COLLATE nocase AS city FROM stored",
    "own type": "SELECT id, 'good'::mood AS m FROM stored",
}
STEADY_VIEWS = (
    "SELECT * FROM stored",
    'SELECT DISTINCT id, lower(city) COLLATE "binary" AS city FROM stored WHERE age > 3',
    "SELECT s.\"user\" AS id, extract(year FROM seen) AS y, date_trunc('month', seen) AS m FROM stored s",
    "SELECT id, sum(age) AS total, count(*) AS n FROM stored GROUP BY id HAVING count(*) > 1",
    "WITH q AS (SELECT id FROM other.far) SELECT q.id FROM q JOIN main.stored s ON q.id = s.id",
    "SELECT id FROM stored UNION ALL SELECT id FROM other.far",
    "SELECT id, CASE WHEN age > 3 THEN 1 ELSE coalesce(age, 0) END AS c FROM stored ORDER BY id",
    "SELECT i AS id FROM range(3) r(i)",
    "SELECT id, rank() OVER (PARTITION BY city ORDER BY age) AS r FROM stored",
    "SELECT id, next FROM older",
    "SELECT id, made FROM given",
    "VALUES (1, 'a')",
    "SELECT * EXCLUDE (city) FROM stored SEMI JOIN other.far USING (id)",
    "SELECT city, count(*) AS n FROM stored GROUP BY ALL",
)


def made(place: Path, *statements: str) -> Path:
    """A policy beside a database in which these were run."""
    (place / "rows.csv").write_text("id\n1\n")
    with duckdb.connect(str(place / "data.duckdb")) as connection:
        for statement in (STORED, *statements):
            connection.execute(statement)
    (place / "policy.yaml").write_text(POLICY)
    return place / "policy.yaml"


def why(place: Path, query: str, name: str = "v") -> str:
    path = made(place, f"CREATE VIEW {name} AS {query.format(folder=place)}")
    return describe(path.with_name("data.duckdb")).tables[name].unsteady


@pytest.mark.parametrize("what", VOLATILE)
def test_views_of_more_than_the_file_are_found(what: str, tmp_path: Path) -> None:
    assert why(tmp_path, VOLATILE[what])


def test_views_of_the_file_alone_are_read(tmp_path: Path) -> None:
    views = (f'CREATE VIEW "v ""AS {i}" AS {q}' for i, q in enumerate(STEADY_VIEWS))
    made(tmp_path, *views, 'CREATE VIEW named (a, "b c") AS SELECT id, age FROM stored')
    tables = describe(tmp_path / "data.duckdb").tables
    names = [f'v "AS {i}' for i, _ in enumerate(STEADY_VIEWS)]
    assert {
        n: tables[n].unsteady for n in (*names, "named", "stored", "older", "given")
    } == dict.fromkeys((*names, "named", "stored", "older", "given"), "")
    assert tables["later"].unsteady
    assert tables["today"].unsteady


ADDED_UP = (
    "SELECT id, sum(age) AS total FROM stored GROUP BY id",
    "SELECT DISTINCT id FROM stored",
    "SELECT city FROM stored GROUP BY ALL",
    "SELECT id FROM stored UNION SELECT id FROM other.far",
    "SELECT id FROM stored EXCEPT ALL SELECT id FROM other.far",
    "SELECT id, max(age) OVER (PARTITION BY city) AS top FROM stored",
    "SELECT * FROM stored WHERE age > (SELECT avg(age) FROM stored)",
    "WITH q AS (SELECT count(*) AS n FROM stored) SELECT id FROM stored, q",
    "SELECT s.id FROM stored s JOIN totals USING (id)",
)
ROW_BY_ROW = (
    "SELECT id, age + 1 AS age FROM stored WHERE city = 'A' ORDER BY id",
    "SELECT id FROM stored UNION ALL SELECT id FROM other.far",
    "SELECT s.id, rank() OVER (ORDER BY age) AS r FROM stored s JOIN older USING (id)",
    "SELECT * FROM stored WHERE id IN (SELECT id FROM other.far)",
    "VALUES (1, 'a')",
)


@pytest.mark.parametrize("query", [*ADDED_UP, *ROW_BY_ROW])
def test_views_that_make_a_row_of_several_rows_are_found(query: str, tmp_path: Path) -> None:
    first = "CREATE VIEW totals AS SELECT id, sum(age) AS total FROM stored GROUP BY id"
    made(
        tmp_path, first, f"CREATE VIEW v AS {query}", "CREATE VIEW w AS SELECT id AS a FROM v x(id)"
    )
    tables = describe(tmp_path / "data.duckdb").tables
    assert tables["v"].computed is tables["w"].computed is (query in ADDED_UP)
    assert not tables["stored"].computed


LATER = (
    "SELECT id, age FROM stored UNION ALL"
    " SELECT 5, 90 FROM range(400) WHERE now()::TIMESTAMP > TIMESTAMP '2999-01-01'"
)


def test_a_view_that_the_time_changes_is_no_table_of_a_policy(tmp_path: Path) -> None:
    """Its key is unique today: what is verified would be false in time."""
    with pytest.raises(SourceMismatch) as caught:
        dpsql.connect(made(tmp_path, f"CREATE VIEW people AS {LATER}"))
    (problem,) = caught.value.problems
    assert "it calls now" in problem
    assert "CREATE TABLE .. AS SELECT" in problem


def test_without_the_check_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: definitions are not looked at."""
    monkeypatch.setattr(engine_module, "unsteady", lambda _: {})
    dpsql.connect(made(tmp_path, f"CREATE VIEW people AS {LATER}")).close()


def test_the_rows_as_a_table_are_read(tmp_path: Path) -> None:
    dpsql.connect(made(tmp_path, f"CREATE TABLE people AS {LATER}")).close()


@pytest.mark.parametrize(
    "macro",
    ["sum(x) AS 7", '"+"(a, b) AS 99', "Lower(x) AS random()", "range(n) AS TABLE SELECT 1"],
)
def test_macros_in_place_of_functions_of_the_engine_open_nothing(
    macro: str, tmp_path: Path
) -> None:
    made(tmp_path, f"CREATE MACRO {macro}")
    with pytest.raises(SourceMismatch, match="called like functions of the engine"):
        DuckDB(tmp_path / "data.duckdb", Limits())


ZONED = "SELECT id, date_diff('hour', TIMESTAMP '2024-01-01', CAST(moment AS TIMESTAMP)) AS age FROM instants"


def test_a_copy_is_made_by_the_same_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a view may depend on it: in UTC the age is 12."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    instants = (
        "CREATE TABLE instants AS SELECT 1 AS id, TIMESTAMPTZ '2024-01-01 12:00:00+00' AS moment"
    )
    path = made(tmp_path, instants, f"CREATE VIEW people AS {ZONED}")
    policy = load(path)
    copies.prepare(policy, ["people"])
    with duckdb.connect(str(copies.place(policy)), read_only=True) as connection:
        assert connection.execute("SELECT age FROM people").fetchall() == [(12,)]


def test_every_listed_function_is_one_of_its_arguments_alone() -> None:
    """As the engine says of itself; macros of its own are named here."""
    asked = "SELECT function_name, stability, has_side_effects FROM duckdb_functions()"
    steady, volatile = set[str](), set[str]()
    for name, stability, effects in duckdb.connect().execute(asked).fetchall():
        (volatile if effects or stability not in ("CONSISTENT", None) else steady).add(name.lower())
    listed = STEADY.functions | STEADY.rows | STEADY.windows
    assert not listed & volatile
    assert listed - steady == {"coalesce"}, "an operator of its own"


def test_what_the_engine_writes_otherwise_is_not_believed(tmp_path: Path) -> None:
    cursor = duckdb.connect()
    cursor.execute("CREATE VIEW v AS SELECT 1 AS a")
    assert unsteady(cursor) == {}
    with pytest.MonkeyPatch.context() as change:
        change.setattr(
            definitions,
            "_VIEWS",
            "SELECT view_name, schema_name, 'CREATE WIDE VIEW v AS SELECT 1;' FROM duckdb_views()",
        )
        assert "cannot be read" in unsteady(cursor)["v"]
        assert computed_views(cursor) == {"v"}
