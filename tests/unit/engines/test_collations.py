"""Texts are compared byte by byte, or their column is not opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.engines.duckdb.collations import _names
from dpsql.engines.duckdb.engine import LOCKED, Constants, DuckDB
from dpsql.engines.duckdb.lockdown import SETTINGS as LOCKS
from dpsql.policy.against_source import compare
from dpsql.policy.load import load
from dpsql.policy.model import Limits

POLICY = """
source: {{engine: duckdb, path: data.duckdb}}
data_version: "1"
units: {{person: {{table: {table}, key: id}}}}
tables:
  {table}:
    unit: person
    columns: {{id: {{type: {key}}}, city: {{type: text}}}}
accounts: {{dataset: {{epsilon: 10, delta: 1e-5}}}}
roles: {{analyst: {{epsilon: 5, query: {{epsilon: 1}}}}}}
"""
MADE = """
CREATE TABLE plain (id BIGINT, city VARCHAR, "odd COLLATE nocase, c9 VARCHAR COLLATE de" VARCHAR, n INTEGER);
CREATE TABLE nocase (id BIGINT, city VARCHAR COLLATE NOCASE);
CREATE TABLE chained (id BIGINT, city VARCHAR COLLATE NOACCENT.NOCASE);
CREATE TABLE icu (id BIGINT, city VARCHAR COLLATE de);
CREATE TABLE nfc (id BIGINT, city VARCHAR COLLATE NFC);
CREATE TABLE keyed (id VARCHAR COLLATE NOCASE, city VARCHAR);
CREATE TABLE bytes (id BIGINT, city VARCHAR COLLATE "binary");
CREATE TABLE posix (id BIGINT, city VARCHAR COLLATE POSIX);
CREATE TYPE name_of_city AS VARCHAR('nocase');
CREATE TABLE typed (id BIGINT, city name_of_city);
CREATE TABLE given (id BIGINT, city VARCHAR('nocase'));
CREATE TABLE worked (id BIGINT, plain VARCHAR, city VARCHAR GENERATED ALWAYS AS (plain COLLATE NOCASE));
CREATE TABLE made AS SELECT * FROM nocase;
CREATE VIEW seen AS SELECT id, city FROM nocase;
CREATE VIEW cast_only AS SELECT id, CAST(city AS VARCHAR) AS city FROM nocase;
CREATE VIEW added AS SELECT id, city COLLATE NOCASE AS city FROM plain;
CREATE VIEW mended AS SELECT id, city COLLATE "binary" AS city FROM nocase;
CREATE VIEW lowered AS SELECT id, lower(city) COLLATE "binary" AS city FROM nocase;
CREATE SCHEMA other;
CREATE TABLE other.plain (id BIGINT, city VARCHAR COLLATE NOCASE, more VARCHAR);
CREATE TABLE gone (id BIGINT, city VARCHAR);
CREATE VIEW broken AS SELECT id, city FROM gone;
DROP TABLE gone;
"""
REFUSED = {
    "nocase": "nocase", "chained": "noaccent.nocase", "icu": "de", "nfc": "nfc", "made": "nocase",
    "seen": "nocase", "cast_only": "nocase", "added": "nocase", "broken": "unknown", "typed": "nocase",
    "given": "nocase", "worked": "nocase",
}  # fmt: skip
ALLOWED = ("plain", "bytes", "posix", "mended", "lowered")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("collations")
    with duckdb.connect(str(place / "data.duckdb")) as connection:
        connection.execute(MADE)
    return place


@pytest.fixture(scope="module")
def engine(home: Path) -> Iterator[DuckDB]:
    found = DuckDB(home / "data.duckdb", Limits())
    yield found
    found.close()


def checked(home: Path, engine: DuckDB, table: str, key: str = "bigint") -> None:
    path = home / f"{table}.yaml"
    path.write_text(POLICY.format(table=table, key=key))
    compare(load(path), engine.describe())


@pytest.mark.parametrize("table", REFUSED)
def test_a_text_with_a_collation_is_not_opened(home: Path, engine: DuckDB, table: str) -> None:
    with pytest.raises(SourceMismatch) as caught:
        checked(home, engine, table)
    said = str(caught.value)
    assert f"{table}.city is varchar collate {REFUSED[table]} in the source" in said.lower()
    assert 'city COLLATE "binary" AS city' in said


def test_nor_is_a_key_with_one(home: Path, engine: DuckDB) -> None:
    with pytest.raises(SourceMismatch, match=r"keyed\.id is VARCHAR COLLATE NOCASE"):
        checked(home, engine, "keyed", "text")


@pytest.mark.parametrize("table", ALLOWED)
def test_texts_that_are_compared_byte_by_byte_are(home: Path, engine: DuckDB, table: str) -> None:
    checked(home, engine, table)
    assert set(engine.describe().tables[table].columns.values()) <= {"BIGINT", "VARCHAR", "INTEGER"}


def test_what_a_refusal_says_to_write_is_opened(home: Path, engine: DuckDB) -> None:
    """The view of the message, and its groups are those of the bytes."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(MADE)
        connection.execute("INSERT INTO nocase VALUES (1, 'PARIS'), (2, 'paris')")
        counted = "SELECT count(DISTINCT city) FROM {}"
        one, two = (connection.execute(counted.format(t)).fetchone() for t in ("seen", "mended"))
    assert (one, two) == ((1,), (2,))


def test_only_the_schema_that_is_read_is_described(engine: DuckDB) -> None:
    assert "more" not in engine.describe().tables["plain"].columns


def test_describing_leaves_nothing_behind(engine: DuckDB) -> None:
    engine.describe()
    left = engine._root.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()
    assert left == []


SETTINGS = {
    "default_collation": "",
    "TimeZone": "UTC",
    "Calendar": "gregorian",
    "lock_configuration": True,
}


def test_settings_that_decide_what_is_equal_are_those_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the process, or another connection of it, has set before; in every cursor."""
    monkeypatch.setenv("TZ", "America/New_York")
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (city VARCHAR)")
        connection.execute("SET GLOBAL default_collation = 'nocase'")
        connection.execute("SET GLOBAL TimeZone = 'Asia/Tokyo'")
    engine = DuckDB(path, Limits())
    for name, value in SETTINGS.items():
        for asked in (engine._root, engine._root.cursor()):
            assert asked.execute(f"SELECT current_setting('{name}')").fetchone() == (value,)
    engine.close()
    found = Constants()._connection.execute("SELECT current_setting('default_collation')")
    assert found.fetchone() == ("",)


@pytest.mark.parametrize(
    ("setting", "value"), [("default_collation", "nocase"), ("TimeZone", "Asia/Tokyo")]
)
def test_a_database_that_is_locked_with_other_settings_is_not_opened(
    tmp_path: Path, setting: str, value: str
) -> None:
    """Somebody else in this process has opened it so, and locked it."""
    path = tmp_path / "data.duckdb"
    duckdb.connect(str(path)).close()
    config = {**LOCKED, "memory_limit": Limits().memory}
    other = duckdb.connect(str(path), read_only=True, config=dict(config))
    other.execute(f"SET GLOBAL TimeZone = 'UTC'; SET GLOBAL {setting} = '{value}'")
    for lock, on in LOCKS.items():
        other.execute(f"SET GLOBAL {lock} = {on}")
    with pytest.raises(SourceMismatch, match=setting):
        DuckDB(path, Limits())
    other.close()


SPELLINGS = {
    "CREATE TEMP TABLE p(c0 VARCHAR, c1 VARCHAR COLLATE de);": ["", "de"],
    'CREATE TEMP TABLE p(c0 VARCHAR COLLATE "de", c1 VARCHAR);': ["de", ""],
    "CREATE TEMP TABLE p(c0 VARCHAR, c1 VARCHAR('de'));": ["", "unknown"],
    "CREATE TEMP TABLE p(c0 TEXT, c1 VARCHAR);": ["unknown", ""],
    "CREATE TEMP TABLE p(c0 VARCHAR, c1 VARCHAR COLLATE de, c2 VARCHAR);": ["unknown", "unknown"],
    "": ["unknown", "unknown"],
}


@pytest.mark.parametrize("described", SPELLINGS)
def test_what_an_engine_says_otherwise_is_not_taken_for_bytes(described: str) -> None:
    assert _names(described, 2) == SPELLINGS[described]
