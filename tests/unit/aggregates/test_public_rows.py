"""Every aggregate over a public table is what the engine says, or refused: nothing stops it later.

By day each call is asked for with groups or without, by turns; at night both ways.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

import duckdb
import pytest
from support.daily import some
from support.datasets import database
from support.services import service

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.engines.duckdb.guard import sums
from dpsql.service import Session

UNTIED = {"mode": "continent", "arg_max": "country, population", "arg_min": "country, population"}
"""Arguments of those that choose one of several, where there is just one."""
CALLED = {node.output for record in AGGREGATES.values() for node in record.nodes}
FUNCTIONS = sorted({*AGGREGATES, *CALLED, "max_by", "min_by"})
ARGUMENTS = ("*", "population", "continent", "population > 9", "country, population",
             "population, length(continent)", "population, 0.5")  # fmt: skip
FORMS = ("{0}({1})", "{0}({1}) FILTER (WHERE population > 0)", "{0}(DISTINCT {1})")
QUERIES = (
    "SELECT {0} FROM countries",
    "SELECT continent, {0} FROM countries GROUP BY continent ORDER BY continent",
)

_PAIR = re.compile(r"count\(DISTINCT (.+, .+)\) FROM")
"""PostgreSQL has combinations without brackets, too."""
_MACRO = re.compile(
    r"geometric_mean\((DISTINCT )?(population)\)( FILTER \(WHERE [^)]+\))?(?= FROM)"
)
"""DuckDB has it as a macro, which takes no clauses."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with service("oracle", "shop") as here:
        found = here.session("oracle")
        found.execute("SET dpsql.dialect = 'duckdb'")
        yield found


def _queries(function: str) -> Iterator[str]:
    listed = [UNTIED[function]] if function in UNTIED else ARGUMENTS
    begin = FUNCTIONS.index(function)
    for turn, (arguments, form) in enumerate(itertools.product(listed, FORMS), begin):
        for query in some(QUERIES, turn, len(QUERIES)):
            yield query.format(form.format(function, arguments))


def _is_determined(sql: str) -> bool:
    """Whether one answer is right: an approximation may differ, and distinct values are all modes."""
    return "approx_" not in sql and "mode(DISTINCT" not in sql


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and not math.isnan(one):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return repr(one) == repr(other)


def test_every_aggregate_is_answered_or_refused(session: Session) -> None:
    answered = set[str]()
    with duckdb.connect(str(database("shop")), read_only=True) as plain:
        for function in FUNCTIONS:
            for sql in _queries(function):
                try:
                    table = session.execute(sql).table
                except Refused:
                    continue
                answered.add(function)
                if not _is_determined(sql):
                    continue
                rows = list(zip(*(c.to_pylist() for c in table.columns), strict=True))
                spelled = _PAIR.sub(
                    r"count(DISTINCT (\1)) FROM", sql.replace("percentile", "quantile")
                )
                spelled = _MACRO.sub(r"exp(avg(\1ln(\2))\3)", spelled)
                expected = plain.execute(spelled).fetchall()
                assert len(rows) == len(expected), sql
                for row, other in zip(rows, expected, strict=True):
                    assert all(map(_same, row, other)), (sql, row, other)
    assert answered >= {*AGGREGATES, "max_by", "min_by"}, answered


@pytest.mark.parametrize("function", ["max_by", "min_by", "arg_max", "arg_min"])
def test_the_row_of_an_extreme_stays_unanswered_over_private_rows(
    session: Session, function: str
) -> None:
    with pytest.raises(Refused):
        session.execute(f"SELECT {function}(city, age) FROM customers")


def test_an_aggregate_that_the_guard_does_not_know_is_noticed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sums.OF_PUBLIC, "regr_r2")
    with pytest.raises(EngineFailed):
        session.execute("SELECT regr_r2(population, length(country)) AS unseen FROM countries")
