"""Law: a view of the source that adds rows up may differ from reading to reading, and no claim rests on it.

The order in which threads add doubles decides their last digits, so a condition may find a row in one
reading of a statement and not in the next. Here every reading gets a view of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from support.measured import (
    Exact,
    alternatives,
    broken,
    every_way,
    exact,
    instead,
    planned,
    text_of,
    way,
)

from dpsql.engines.statement_chooser import StatementChooser
from dpsql.policy import against_source
from dpsql.price.priced import PricedMeasurement
from dpsql.price.request import Request
from dpsql.rewrite import shortcut
from dpsql.rewrite.statement import statement_of
from dpsql.service import Service

POLICY = """
source: {engine: duckdb, path: data.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people:
    unit: person
    columns: {id: {type: bigint}}
  days:
    unit: person
    max_rows_per_unit: 4
    foreign_keys: [{columns: id, references: people}]
    columns:
      id: {type: bigint}
      day: {type: integer, range: [0, 99]}
      part: {type: text, values: [a, b, c, d, e, f]}
      total: {type: double, range: [0, 10]}
accounts: {dataset: {epsilon: 1000, delta: 1e-3}}
roles: {analyst: {query: {epsilon: 1, delta: 1e-6}}}
"""
PARTS = "['a', 'b', 'c', 'd', 'e', 'f'][1 + day % 6]"
VIEW = f"SELECT id, day, {PARTS} AS part, sum(amount) AS total FROM raw GROUP BY id, day"
ROWS = "SELECT 1 + i % 30 AS id, i // 30 AS day, 1.5 AS amount FROM range(60) r(i)"
VICTIM = "SELECT 999 AS id, i AS day, {} AS amount FROM range(80) r(i)"
READINGS = {"low": "1.7", "high": "1.7000000000000002"}
"""The sums of 0.1, 0.7, 0.3, 0.2, 0.1 and 0.3 in two orders."""
QUESTIONS = (
    "SELECT part, COUNT(*) FROM days WHERE total > 1.7 GROUP BY part",
    "SELECT part, SUM(total) FROM days WHERE total > 1.7 GROUP BY part",
    "SELECT part, COUNT(DISTINCT day) FROM days WHERE total > 1.7 GROUP BY part",
    "SELECT part, MEDIAN(day) FROM days WHERE total > 1.7 GROUP BY part",
    "SELECT total > 1.7 AS much, COUNT(*) FROM days GROUP BY 1",
    "SELECT part, COUNT(*) FROM days WHERE CAST(total AS VARCHAR) = '1.7' GROUP BY part",
    "SELECT COUNT(*) FROM days WHERE total > 1.7",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    with duckdb.connect(str(folder / "data.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS id FROM range(1, 1000) r(i)")
        connection.execute(f"CREATE TABLE raw AS {ROWS}")
        connection.execute(f"CREATE VIEW days AS {VIEW}")
    (folder / "policy.yaml").write_text(POLICY)
    return folder


@pytest.fixture(scope="module")
def tables() -> duckdb.DuckDBPyConnection:
    """The view as each reading may find it, with the unit and without."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT i AS id FROM range(1, 1000) r(i)")
    there = f"SELECT id, day, {PARTS} AS part, amount AS total FROM"
    connection.execute(f"CREATE TABLE nobody AS {there} ({ROWS})")
    for name, total in READINGS.items():
        both = f"({ROWS} UNION ALL {VICTIM.format(f'{total}::DOUBLE')})"
        connection.execute(f"CREATE TABLE {name} AS {there} {both}")
    return connection


def ways(place: Path, sql: str) -> list[PricedMeasurement]:
    wanted = Request(Fraction(1), Fraction(1, 10**6), groups=3, sizes={"person": 1})
    with Service.open(place / "policy.yaml") as service:
        return list(every_way(planned(sql, service), wanted))


def spelled_out(text: str) -> str:
    """A statement in which a common table that is not materialised stands wherever it is read."""
    while found := re.search(r'("[^"]+") AS NOT MATERIALIZED \(', text):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        body, rest = text[found.end() : end - 1], text[end:]
        head = text[: found.start()].removesuffix("WITH ").removesuffix(", ")
        joint = "" if not rest.startswith(",") else "WITH " if not head else ", "
        text = head + joint + rest.removeprefix(",").strip().replace(found[1], f"({body})")
    return text


def readings(part: PricedMeasurement, choose: Callable[[int], str]) -> PricedMeasurement:
    """The measurement with a statement that finds another view in each reading."""
    first, *rest = spelled_out(text_of(part)).split('"days" AS')
    text = first + "".join(f"{choose(i)} AS{after}" for i, after in enumerate(rest))
    return replace(way(part), sql=text)


def law(parts: list[PricedMeasurement], tables: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Every claim that is broken, whatever each of the readings finds."""
    for part in parts:
        count = spelled_out(text_of(part)).count('"days" AS')
        assert count
        (without,) = exact(tables, [readings(part, lambda _: "nobody")])
        for choice in itertools.product(READINGS, repeat=count):
            (there,) = exact(tables, [readings(part, choice.__getitem__)])
            yield from _said(part, there, without)


def _said(part: PricedMeasurement, there: Exact, without: Exact) -> Iterator[str]:
    yield from (f"{part.bounding.name}: {found}" for found in broken(part, there, without))


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_unit_moves_no_more_than_is_priced_whatever_a_reading_finds(
    sql: str, place: Path, tables: duckdb.DuckDBPyConnection
) -> None:
    assert list(law(ways(place, sql), tables)) == []


def test_rows_that_are_taken_for_steady_are_noticed(
    place: Path, tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a view that adds rows up is taken for a table."""
    monkeypatch.setattr(against_source, "_is_computed", lambda *_: False)
    for sql in QUESTIONS[:4]:
        assert list(law(ways(place, sql), tables)), sql


def chosen(place: Path) -> bool:
    """Whether a statement without bounds is chosen by what was looked up in the data."""
    with Service.open(place / "policy.yaml") as service:
        (part,) = service.session().prepare("SELECT COUNT(*) FROM days").parts
        statement = statement_of(part)
        return StatementChooser(service.policy, service.facts).choose(statement) is not None


def test_no_statement_is_chosen_by_what_one_reading_found(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a unit has more rows than declared would be looked up once, in another reading."""
    assert not chosen(place)
    monkeypatch.setattr(against_source, "_is_computed", lambda *_: False)
    assert chosen(place)


def test_a_table_whose_path_leads_over_a_view_is_no_steadier_than_the_view(place: Path) -> None:
    with Service.open(place / "policy.yaml") as service:
        description, (led,) = service._engine.describe(), service.policy.tables["days"].foreign_keys
        days = service.policy.tables["days"]
        people = replace(service.policy.tables["people"], path=(replace(led, references="days"),))
    assert days.computed
    assert not service.policy.tables["people"].computed
    assert against_source._is_computed(people, description)


FEW = POLICY.replace("max_rows_per_unit: 4", "max_rows_per_unit: 1")
"""Of which one reading may find no more than one row of each unit, and the next one many."""
MUCH = f"{VIEW} HAVING sum(amount) > 1.7"
LISTED = """
  prices:
    public: true
    columns: {id: {type: bigint}, price: {type: double, range: [0, 10]}}
"""
ONCE = (
    "SELECT COUNT(*) FROM days",
    "SELECT part, COUNT(*), SUM(total) FROM days GROUP BY part",
    "SELECT day, COUNT(*) FROM days GROUP BY day",
    "SELECT CAST(total AS VARCHAR) AS t, COUNT(*) FROM days GROUP BY 1",
    "SELECT COUNT(DISTINCT day), MEDIAN(day) FROM days",
    "SELECT COUNT(*) FROM people JOIN prices USING (id)",
)


def _few(folder: Path) -> Path:
    """A policy with a view of one row for each unit, and a public view of one row for each value."""
    place = folder / "few"
    place.mkdir()
    with duckdb.connect(str(place / "data.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS id FROM range(1, 1000) r(i)")
        connection.execute(
            "CREATE TABLE raw AS SELECT i AS id, 0 AS day, 9.0 AS amount FROM range(30) r(i)"
        )
        connection.execute(f"CREATE VIEW days AS {MUCH}")
        connection.execute(
            "CREATE VIEW prices AS SELECT id, sum(amount) AS price FROM raw GROUP BY id, day"
        )
    (place / "policy.yaml").write_text(FEW.replace("accounts:", f"{LISTED[1:]}accounts:"))
    return place


def _later(tables: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """What a later reading finds: 80 rows of one unit, and 80 public rows with one value."""
    there = f"SELECT id, day, {PARTS} AS part, amount AS total, amount AS price FROM"
    ordinary = "SELECT 1 + i AS id, 0 AS day, 9.0 AS amount FROM range(30) r(i)"
    tables.execute(f"CREATE OR REPLACE TABLE few AS {there} ({ordinary})")
    tables.execute(
        f"CREATE OR REPLACE TABLE many AS {there} ({ordinary} UNION ALL {VICTIM.format(9)})"
    )
    yield from ("few", "many")


def once(place: Path, tables: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Every claim that is broken where a later reading finds more rows than were verified."""
    few, many = _later(tables)
    for sql in ONCE:
        for part in ways(place, sql):
            for statement in (way(part), *(instead(part, other) for other in alternatives(part))):
                text = text_of(statement)
                (there,) = exact(tables, [replace(statement, sql=_in(text, many))])
                if "prices" in sql:
                    tables.execute("CREATE OR REPLACE TABLE persons AS FROM people WHERE id <> 999")
                    less = _in(text, many).replace('"people" AS', "persons AS")
                else:
                    less = _in(text, few)
                (without,) = exact(tables, [replace(statement, sql=less)])
                yield from _said(part, there, without)


def _in(text: str, table: str) -> str:
    return text.replace('"days" AS', f"{table} AS").replace('"prices" AS', f"{table} AS")


def test_one_row_of_a_unit_is_enforced_where_another_reading_may_find_more(
    tmp_path: Path, tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _few(tmp_path)
    assert list(once(place, tables)) == []
    monkeypatch.setattr(against_source, "_is_computed", lambda *_: False)  # the planted fault
    found = list(once(place, tables))
    assert all("one row per unit" in said for said in found)
    assert len(found) >= len(ONCE)


def test_no_statement_without_bounds_reads_a_view_that_adds_rows_up(
    tmp_path: Path, tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row of each unit was verified in another reading, so no alternative may rest on it."""
    place = _few(tmp_path)
    assert not [part for sql in ONCE[:5] for part in ways(place, sql) if alternatives(part)]
    monkeypatch.setattr(shortcut, "is_computed", lambda _: False)  # the planted fault
    found = list(once(place, tables))
    assert len(found) >= 2
    assert all("unit totals" in said for said in found)
