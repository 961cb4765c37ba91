"""Different values: units below the limit keep all of them, those above it no more than they may."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from support.measured import text_of

from dpsql.bound import PreparedRows, WeightsAndGroups
from dpsql.bound import sensitivity as bounds
from dpsql.bound.sensitivity import count_pairs
from dpsql.catalog.statistic import Values
from dpsql.engines.duckdb import copies
from dpsql.ir.domain import Domain
from dpsql.ir.expressions import Column, Shape
from dpsql.policy.load import load
from dpsql.policy.types import Kind
from dpsql.service import Service, Session

POLICY = """
source: {engine: duckdb, path: few.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: bigint}}}
  t:
    unit: person
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 5
    columns:
      id: {type: bigint}
      grp: {type: text, values: [a, b]}
      day: {type: integer, range: [0, 100000]}
      x: {type: double, range: [0, 10]}
accounts: {dataset: {epsilon: 1000000000, delta: 0, composition: basic}}
roles: {analyst: {query: {epsilon: 1000000}, max_groups_per_unit: 2}}
"""
LIGHT = "SELECT 1 + range // 5 AS id, 'a' AS grp, range AS day, 1.0::DOUBLE AS x FROM range(500)"
HEAVY = "SELECT 0 AS id, 'b' AS grp, 1000 + range AS day, 1.0::DOUBLE AS x FROM range(300)"
EDGE = "SELECT 200 AS id, 'b' AS grp, 5000 + range % 5 AS day, 1.0::DOUBLE AS x FROM range(300)"


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "few.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS id FROM range(201)")
        connection.execute(f"CREATE TABLE t AS {' UNION ALL '.join(request.param)}")
    (tmp_path / "policy.yaml").write_text(POLICY)
    with Service.open(tmp_path / "policy.yaml") as service:
        found = service.session()
        found.execute("SET dpsql.fresh = on")
        yield found


def _counts(session: Session, sql: str) -> dict[str, int]:
    table = session.execute(sql).table
    return dict(zip(*(c.to_pylist() for c in table.columns), strict=True))


BY = "SELECT grp, COUNT(DISTINCT day) FROM t GROUP BY grp"


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ((LIGHT,), {"a": 500, "b": 0}),
        ((HEAVY,), {"a": 0, "b": 5}),
        ((LIGHT, HEAVY), {"a": 500, "b": 5}),
        ((EDGE,), {"a": 0, "b": 5}),
        ((LIGHT, HEAVY, EDGE), {"a": 500, "b": 10}),
    ],
    indirect=["session"],
)
def test_only_what_is_above_the_limit_is_cut(session: Session, expected: dict[str, int]) -> None:
    """``EDGE`` has many rows and few values: it is looked at, and loses nothing."""
    assert _counts(session, BY) == expected


@pytest.mark.parametrize("session", [(LIGHT, HEAVY)], indirect=True)
def test_rows_that_may_differ_from_place_to_place_are_read_once(session: Session) -> None:
    shaky = (
        "SELECT grp, COUNT(DISTINCT r) FROM (SELECT id, grp, ROW_NUMBER() OVER"
        " (PARTITION BY id ORDER BY x) AS r FROM t) AS s GROUP BY grp"
    )
    (part,) = session.prepare(shaky).parts
    assert "ANTI JOIN" not in text_of(part)
    assert "place <= 10" in text_of(part)
    (part,) = session.prepare(BY).parts
    assert "ANTI JOIN" in text_of(part)


@pytest.mark.parametrize(("rows", "pairs"), [(20, 12), (5, 5)])
def test_a_unit_keeps_every_pair_of_group_and_value_that_it_can_have(rows: int, pairs: int) -> None:
    """Four declared values in three groups are twelve pairs."""
    column = Column(0, "x", Shape(Kind.TEXT, domain=Domain(members=("a", "b", "c", "d"))))
    assert (
        count_pairs(Values((column,)), WeightsAndGroups(rows=rows, groups=3, limit=False)) == pairs
    )


STRANGE = "SELECT 0 AS id, 'z' || range AS grp, 0 AS day, 1.0::DOUBLE AS x FROM range(5)"
"""A unit with five values, none of which is declared."""


def _moved(place: Path) -> tuple[int, Fraction]:
    """How far one unit moves the number of values of a prepared table, and how far it is said to."""
    found, said = [], Fraction(0)
    for number, rows in enumerate((f"{LIGHT} UNION ALL {STRANGE}", LIGHT)):
        folder = place / str(number)
        folder.mkdir()
        with duckdb.connect(str(folder / "few.duckdb")) as connection:
            connection.execute("CREATE TABLE people AS SELECT range AS id FROM range(201)")
            connection.execute(f"CREATE TABLE t AS {rows}")
        (folder / "policy.yaml").write_text(POLICY)
        copies.prepare(load(folder / "policy.yaml"), ["t"])
        with Service.open(folder / "policy.yaml") as service:
            session = service.session()
            (part,) = session.prepare("SELECT COUNT(DISTINCT grp) AS n FROM t").parts
            assert isinstance(part.bounding, PreparedRows)
            said = part.noised[0].sensitivity.l1
            found += (
                session.execute("SELECT COUNT(DISTINCT grp) AS n FROM t")
                .table.column(0)
                .to_pylist()
            )
    return found[0] - found[1], said


def test_values_that_are_not_declared_are_priced_on_a_prepared_copy(tmp_path: Path) -> None:
    moved, said = _moved(tmp_path)
    assert moved == said == 5


def test_declared_values_bound_nothing_where_units_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault that this is about: two declared values were taken for all that a unit can have."""
    monkeypatch.setattr(bounds, "count_pairs", lambda *_: 2)
    moved, said = _moved(tmp_path)
    assert moved > said
