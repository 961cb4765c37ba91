"""What is stored is recalled over the same public rows alone, whatever ``data_version`` says."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from support.services import policy_file

from dpsql.reuse import pieces as naming
from dpsql.reuse.canonical import NotCanonical
from dpsql.service import Service

MET = "SELECT COUNT(*) FROM customers JOIN countries USING (country) WHERE population > 20"
FINER = "SELECT age, COUNT(*) FROM customers JOIN countries USING (country) WHERE population > 20 GROUP BY age"
LISTED = "SELECT COUNT(*) FROM customers WHERE country IN (SELECT country FROM countries WHERE population > 20)"
SCALAR = "SELECT COUNT(*) FROM customers WHERE age > (SELECT MIN(population) FROM countries)"
GROUPS = (
    "SELECT COUNT(*) FROM customers WHERE EXISTS (SELECT DISTINCT c.country FROM customers AS c"
    " JOIN countries AS k ON c.country = k.country WHERE k.population > 20 AND c.country > 'x')"
)
PRIVATE = "SELECT age, COUNT(*) FROM customers GROUP BY age"
OTHER = "UPDATE countries SET population = population + 1000 WHERE country = 'at'"


def _names(path: Path, sql: str) -> set[tuple[str, str]]:
    """Under which names an answer is stored, and may be added up."""
    with Service.open(path) as service:
        priced = service.session("analyst").prepare(sql)
        found = naming.pieces(priced, service.policy.answers_key)
        return {(piece.family, piece.base) for piece in found}


def _after(path: Path, change: str) -> Path:
    with duckdb.connect(str(path.parent / "shop.duckdb")) as connection:
        connection.execute(change)
    return path


@pytest.fixture
def path() -> Path:
    return policy_file("shop", "shop")


@pytest.mark.parametrize("sql", [MET, FINER, LISTED, SCALAR, GROUPS])
def test_other_public_rows_are_another_question(path: Path, sql: str) -> None:
    before = _names(path, sql)
    after = _names(_after(path, OTHER), sql)
    assert not {family for family, _ in before} & {family for family, _ in after}
    assert not {base for _, base in before if base} & {base for _, base in after if base}


def test_so_are_they_where_a_question_has_no_canonical_words(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: object) -> None:
        raise NotCanonical

    monkeypatch.setattr(naming, "question", unknown)
    assert _names(path, PRIVATE) == _names(_after(path, "SELECT 1"), PRIVATE)
    before = _names(path, MET)
    assert not before & _names(_after(path, OTHER), MET)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE other AS SELECT 1",
        (
            "CREATE TABLE moved AS SELECT * FROM countries ORDER BY country DESC;"
            " DELETE FROM countries; INSERT INTO countries SELECT * FROM moved"
        ),
        "UPDATE customers SET age = age + 1",
    ],
)
def test_the_same_public_rows_are_the_same_question(path: Path, change: str) -> None:
    """In whatever order they are; of people's rows ``data_version`` tells."""
    before = _names(path, FINER)
    assert _names(_after(path, change), FINER) == before


@pytest.mark.parametrize("sql", [PRIVATE, "SELECT AVG(amount) FROM orders"])
def test_a_question_that_reads_no_public_table_stays(path: Path, sql: str) -> None:
    before = _names(path, sql)
    assert _names(_after(path, OTHER), sql) == before


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO countries (country) VALUES ('zz')",
        "UPDATE countries SET population = NULL WHERE country = 'at'",
        "DELETE FROM countries",
    ],
)
def test_each_change_of_rows_is_seen(path: Path, change: str) -> None:
    with Service.open(path) as service:
        before = service.policy.tables["countries"].content
    with Service.open(_after(path, change)) as service:
        assert service.policy.tables["countries"].content not in (None, before)
