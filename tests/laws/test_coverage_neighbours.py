"""Removing a unit moves every exact measurement of every coverage query within its price.

Some units are made to own a share of all rows, far more than the policy declares, so that what
holds them back is the bounding and not the data.
"""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from support.datasets import folder
from support.measured import broken, every_way, exact, planned, removed, request, values_in

from dpsql.diagnostics.refusal import Refused
from dpsql.plan.bounding import Sensitivity
from dpsql.plan.priced import PricedMeasurement
from dpsql.policy.model import Policy, Table
from dpsql.service import Service
from dpsql.sql.render import quoted

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.coverage.corpus import CORPORA, Corpus  # noqa: E402
from benchmarks.coverage.outcome import Asked, opened  # noqa: E402

SMALL = {"tpch": 0.01}
"""What a unit can change does not depend on how many others there are."""
HEAVY = 2
"""Units that own a third of all rows each."""
ORDINARY = 2


OPEN = ExitStack()
"""What is closed when the tests of this file end."""


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    with OPEN:
        yield


@functools.cache
def _asked(name: str) -> Asked:
    """The corpus, over data that is written once."""
    corpus = next(c for c in CORPORA if c.name == name)
    return OPEN.enter_context(opened(corpus, _scale(corpus), folder()))


def _scale(corpus: Corpus) -> float:
    return SMALL.get(corpus.name, corpus.small)


@functools.cache
def _broken_data(name: str) -> tuple[duckdb.DuckDBPyConnection, tuple[int, ...]]:
    """A copy whose first units own too much, and the units that will be removed."""
    corpus = next(c for c in CORPORA if c.name == name)
    policy = _service(name).policy
    copy = folder() / f"{name}-neighbours.duckdb"
    shutil.copy(folder() / f"{name}-{_scale(corpus):g}.duckdb", copy)
    connection = duckdb.connect(str(copy), config={"threads": 1})
    (unit,) = policy.units.values()
    (key,) = map(quoted, unit.key)
    keys = f"SELECT {key} FROM {quoted(unit.table)} ORDER BY hash({key})"
    units = [row[0] for row in connection.execute(keys).fetchall()]
    for i, heavy in enumerate(units[:HEAVY]):
        for table in policy.tables.values():
            if table.unit == unit.name and not table.path and table.name != unit.table:
                given = f"{quoted(table.unit_columns[0])} = {heavy}"
                share = f"hash(rowid, 77) % 3 = {i}"
                connection.execute(f"UPDATE {quoted(table.name)} SET {given} WHERE {share}")
    return connection, tuple(units[: HEAVY + ORDINARY])


def _service(name: str) -> Service:
    return _asked(name).session._service


def _deletions(policy: Policy, unit: int) -> Iterator[str]:
    """Removes a unit's rows, those furthest from it first."""
    private = [t for t in policy.tables.values() if not t.public]
    for table in sorted(private, key=lambda t: -len(t.path)):
        yield f"DELETE FROM {quoted(table.name)} WHERE {_of(policy, table, unit)}"


def _of(policy: Policy, table: Table, unit: int) -> str:
    if not table.path:
        (column,) = table.unit_columns
        return f"{quoted(column)} = {unit}"
    step = table.path[0]
    target = policy.tables[step.references]
    (here,), (there,) = step.columns, step.key
    inner = f"SELECT {quoted(there)} FROM {quoted(target.name)} WHERE {_of(policy, target, unit)}"
    return f"{quoted(here)} IN ({inner})"


def _law(name: str, parts: list[PricedMeasurement], sql: str) -> list[str]:
    connection, units = _broken_data(name)
    here = _service(name)
    values = values_in(sql, here)
    before = exact(connection, parts, values)
    found = []
    for unit in units:
        after = removed(connection, list(_deletions(here.policy, unit)), parts, values)
        for part, one, other in zip(parts, before, after, strict=True):
            found += [f"{part.bounding.name}: {said} without {unit}\n{part.sql}"
                      for said in broken(part, one, other)]  # fmt: skip
    return found


def _answered(corpus: Corpus, each: int = 1) -> Iterator[tuple[str, str, list[PricedMeasurement]]]:
    """Queries that measure something (one of so many), with each way to bound them."""
    for query in corpus.queries[::each]:
        try:
            plan = planned(query.sql, _service(corpus.name))
        except Refused:
            continue
        if plan.measurements:
            yield query.name, query.sql, list(every_way(plan, request(3, 1), ("gaussian",)))


@pytest.mark.xdist_group("coverage")
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda c: c.name)
def test_a_unit_moves_measurements_of_every_query_within_their_price(corpus: Corpus) -> None:
    found = [
        f"{name}: {said}"
        for name, sql, parts in _answered(corpus)
        for said in _law(corpus.name, parts, sql)
    ]
    assert not found, found[0]


def _cheaper(part: PricedMeasurement) -> PricedMeasurement:
    """The fault of claiming a third of what one unit can change."""
    third = tuple(
        replace(item, sensitivity=Sensitivity(item.sensitivity.l1 / 3, item.sensitivity.l2_squared / 9))
        for item in part.noised
    )  # fmt: skip
    return replace(part, noised=third)


@pytest.mark.xdist_group("coverage")
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda c: c.name)
def test_the_law_notices_sensitivities_that_are_too_small(corpus: Corpus) -> None:
    noticed = [
        bool(_law(corpus.name, [_cheaper(part) for part in parts], sql))
        for _, sql, parts in _answered(corpus, 5)
    ]
    assert sum(noticed) >= 0.25 * len(noticed)
