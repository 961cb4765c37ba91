"""Removing a unit moves every exact measurement of every coverage query within its price.

Some units are made to own a share of all rows, far more than the policy declares, so that what
holds them back is the bounding and not the data.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pytest
from support.daily import some
from support.datasets import folder
from support.measured import Exact, broken, every_way, exact, planned, request, text_of, values_in

from dpsql.bound.sensitivity import Sensitivity
from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.engine import Value
from dpsql.policy.model import Policy, Table
from dpsql.price.priced import PricedMeasurement
from dpsql.service import Service

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.coverage.corpus import CORPORA, Corpus  # noqa: E402
from benchmarks.coverage.outcome import Asked, opened  # noqa: E402

SMALL = {"tpch": 0.01}
"""What a unit can change does not depend on how many others there are."""
HEAVY = 2
"""Units that own a third of all rows each."""
ORDINARY = 2 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1
"""Units of the usual size that are removed, one after the other."""


OPEN = ExitStack()
"""What is closed when the tests of this file end."""


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    with OPEN:
        yield


@functools.cache
def _asked(name: str) -> Asked:
    """The corpus, over data that is written once."""
    corpus = _corpus(name)
    return OPEN.enter_context(opened(corpus, _scale(corpus), folder()))


def _corpus(name: str) -> Corpus:
    return next(corpus for corpus in CORPORA if corpus.name == name)


def _scale(corpus: Corpus) -> float:
    return SMALL.get(corpus.name, corpus.small)


@functools.cache
def _broken_data(name: str) -> tuple[duckdb.DuckDBPyConnection, tuple[int, ...]]:
    """A copy whose first units own too much, and the units that will be removed."""
    corpus = _corpus(name)
    policy = _service(name).policy
    copy = folder() / f"{name}-neighbours.duckdb"
    shutil.copy(folder() / f"{name}-{_scale(corpus):g}.duckdb", copy)
    connection = duckdb.connect(str(copy), config={"threads": 1})
    (unit,) = policy.units.values()
    (key,) = map(quote_name, unit.key)
    keys = f"SELECT {key} FROM {quote_name(unit.table)} ORDER BY hash({key})"
    units = [row[0] for row in connection.execute(keys).fetchall()]
    for i, heavy in enumerate(units[:HEAVY]):
        for table in policy.tables.values():
            if table.unit == unit.name and not table.path and table.name != unit.table:
                given = f"{quote_name(table.unit_columns[0])} = {heavy}"
                share = f"hash(rowid, 77) % 3 = {i}"
                connection.execute(f"UPDATE {quote_name(table.name)} SET {given} WHERE {share}")
    return connection, tuple(units[: HEAVY + ORDINARY])


def _service(name: str) -> Service:
    return _asked(name).session._service


def _deletions(policy: Policy, unit: int) -> Iterator[str]:
    """Removes a unit's rows, those furthest from it first."""
    private = [t for t in policy.tables.values() if not t.public]
    for table in sorted(private, key=lambda t: -len(t.path)):
        yield f"DELETE FROM {quote_name(table.name)} WHERE {_of(policy, table, unit)}"


def _of(policy: Policy, table: Table, unit: int) -> str:
    if not table.path:
        (column,) = table.unit_columns
        return f"{quote_name(column)} = {unit}"
    step = table.path[0]
    target = policy.tables[step.references]
    (here,), (there,) = step.columns, step.key
    inner = f"SELECT {quote_name(there)} FROM {quote_name(target.name)} WHERE {_of(policy, target, unit)}"
    return f"{quote_name(here)} IN ({inner})"


@dataclass(frozen=True)
class Measured:
    """A query with each way to bound it, and the values that its statements are given."""

    name: str
    parts: list[PricedMeasurement]
    values: Mapping[str, Value]


def _law(corpus: str, queries: Sequence[Measured]) -> dict[str, list[str]]:
    """For each query the claims that a unit breaks; it is removed once for all queries."""
    connection, units = _broken_data(corpus)
    before = _exact(corpus, queries)
    found: dict[str, list[str]] = {query.name: [] for query in queries}
    for unit in units:
        connection.execute("BEGIN")
        try:
            for deletion in _deletions(_service(corpus).policy, unit):
                connection.execute(deletion)
            after = _exact(corpus, queries)
        finally:
            connection.execute("ROLLBACK")
        for query, *sides in zip(queries, before, after, strict=True):
            for part, one, other in zip(query.parts, *sides, strict=True):
                found[query.name] += [
                    f"{query.name}: {part.bounding.name}: {said} without {unit}\n{text_of(part)}"
                    for said in broken(part, one, other)
                ]
    return found


def _exact(corpus: str, queries: Sequence[Measured]) -> list[list[Exact]]:
    connection, _ = _broken_data(corpus)
    return [exact(connection, query.parts, query.values) for query in queries]


@functools.cache
def _answered(name: str) -> list[Measured]:
    """Queries that measure something, with each way to bound them."""
    corpus, here, found = _corpus(name), _service(name), []
    for query in corpus.queries:
        try:
            plan = planned(query.sql, here)
        except Refused:
            continue
        if plan.measurements:
            parts = list(every_way(plan, request(3, 1), ("gaussian",)))
            found.append(Measured(query.name, parts, values_in(query.sql, here)))
    return found


@pytest.mark.parametrize("corpus", [c.name for c in CORPORA])
def test_a_unit_moves_measurements_of_every_query_within_their_price(corpus: str) -> None:
    """By day every other query; the corpora vary a few shapes."""
    queries = some(_answered(corpus), 0, 2)
    found = [said for each in _law(corpus, queries).values() for said in each]
    assert not found, found[0]


def _cheaper(part: PricedMeasurement) -> PricedMeasurement:
    """The fault of claiming a third of what one unit can change."""
    third = tuple(
        replace(item, sensitivity=Sensitivity(item.sensitivity.l1 / 3, item.sensitivity.l2_squared / 9))
        for item in part.noised
    )  # fmt: skip
    return replace(part, noised=third)


@pytest.mark.parametrize("corpus", [c.name for c in CORPORA])
def test_the_law_notices_sensitivities_that_are_too_small(corpus: str) -> None:
    """In every fifth query, one of four notices at least."""
    planted = [
        replace(query, parts=[_cheaper(part) for part in query.parts])
        for query in _answered(corpus)[::5]
    ]
    noticed = [bool(said) for said in _law(corpus, planted).values()]
    assert sum(noticed) >= 0.25 * len(noticed)
