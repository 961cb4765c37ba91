"""At epsilon 1e9 every query of the corpus equals plain DuckDB on the same data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest
from support.answers import Row, close, difference, kind, rows
from support.corpus import CORPUS, Entry, World
from support.daily import some
from support.datasets import in_memory
from support.services import FreeLedger, service

from dpsql import pipeline
from dpsql.bound import STRATEGIES, Bounding, PreparedRows
from dpsql.catalog.functions import FUNCTIONS
from dpsql.ir.expressions import conjuncts
from dpsql.ir.relations import Aggregate, Distinct, Filter, Relation, inputs, with_inputs
from dpsql.price import price
from dpsql.price.priced import PricedPlan
from dpsql.release.intervals import widths
from dpsql.service import Reply, Service
from dpsql.sql.bind import Bound, bind

NAMES = tuple(strategy.name for strategy in STRATEGIES)


@functools.cache
def _service(world: World, *, prepared: bool) -> Service:
    return service(world.policy, world.data, world.change, prepared=prepared)


@functools.cache
def _plain(world: World) -> duckdb.DuckDBPyConnection:
    return in_memory(world.data)


@functools.cache
def _expected(entry: Entry) -> pa.Table:
    return _plain(entry.world).sql(entry.plain).to_arrow_table()


def _answer(entry: Entry, settings: tuple[str, ...], *, prepared: bool) -> tuple[PricedPlan, Reply]:
    opened = _service(entry.world, prepared=prepared)
    assert isinstance(opened.ledger, FreeLedger)
    opened.ledger.released.clear()
    session = opened.session()
    for setting in (f"dialect = '{entry.world.dialect}'", *settings):
        session.execute(f"SET dpsql.{setting}")
    return session.prepare(entry.sql), session.execute(entry.sql)


def differs(entry: Entry, *settings: str, prepared: bool = False) -> str:
    """What is wrong with the answer to an entry; empty when nothing is."""
    priced, reply = _answer(entry, settings, prepared=prepared)
    expected = _expected(entry)
    mine, other = (
        [kind(t) for t in reply.table.schema.types],
        [kind(t) for t in expected.schema.types],
    )
    if mine != other:
        return f"types {mine} instead of {other}"
    found, wanted = rows(reply.table), rows(expected)
    if entry.ordered:
        same = len(found) == len(wanted) and all(
            len(a) == len(b) and all(map(close, a, b)) for a, b in zip(found, wanted, strict=True)
        )
        return "" if same else f"{found} instead of {wanted}"
    extra, missing = difference(found, wanted)
    extra = [row for row in extra if not _empty_group(row, priced)]
    return f"extra {extra[:5]}, missing {missing[:5]}" if extra or missing else ""


def _empty_group(row: Row, priced: PricedPlan) -> bool:
    """A public group without rows, which plain SQL does not list: counts and sums are 0."""
    public = any(part.measurement.cells is not None for part in priced.parts)
    measured = widths(priced, priced.plan.columns)
    # Ten half widths are thirty scales of the noise: passed once in 10^12 groups.
    near = [isinstance(v := row[i], int | float) and abs(v) <= 10 * w for i, w in measured.items()]
    return public and bool(near) and all(near)


@pytest.mark.parametrize("entry", CORPUS, ids=str)
def test_the_answer_equals_plain_sql(entry: Entry) -> None:
    assert differs(entry) == ""


def test_a_bound_that_is_searched_for_changes_no_answer_either() -> None:
    """At this epsilon the search finds a bound that no unit is above."""
    several = [e for e in CORPUS if "orders" in e.sql or "visits" in e.sql or "lineitem" in e.sql]
    asked = some(several[::3], 0, 3)
    wrong = {e.sql: said for e in asked if (said := differs(e, "search = on"))}
    assert wrong == {}, "\n".join(f"{k}: {v}" for k, v in wrong.items())


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 150


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Services remember plans: none made under a fault may stay, and none from before be used."""
    _service.cache_clear()
    yield
    _service.cache_clear()


def _only(strategy: str) -> Callable[..., Iterator[Bounding]]:
    """Candidates of one strategy wherever it is among them."""
    everything = price.candidates

    def candidates(*args: object) -> Iterator[Bounding]:
        found = list(everything(*args))  # type: ignore[arg-type]
        yield from [b for b in found if b.name == strategy] or found

    return candidates


@pytest.mark.no_cover  # writes what the neighbours' laws write
@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("strategy", NAMES[1:])
def test_every_way_to_bound_gives_the_same_answer(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is above the declared limits, so no bounding changes anything.

    Each strategy has its own part of the corpus here, and all of it every night.
    """
    monkeypatch.setattr(price, "candidates", _only(strategy))
    several = [e for e in CORPUS if "visits" in e.sql or "orders" in e.sql or "lineitem" in e.sql]
    several += [e for e in CORPUS if e.world.policy == "ratings"][::6]
    prepared = strategy == PreparedRows.name
    asked = some(several, NAMES.index(strategy), 6)
    wrong = {e.sql: said for e in asked if (said := differs(e, prepared=prepared))}
    assert wrong == {}, "\n".join(f"{k}: {v}" for k, v in wrong.items())


def _everywhere(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    below = tuple(_everywhere(r, change) for r in inputs(relation))
    return change(with_inputs(relation, below))


def _without_filter(relation: Relation) -> Relation:
    if isinstance(relation, Aggregate):
        calls = tuple(replace(c, where=None) for c in relation.calls)
        return replace(relation, calls=calls)
    return relation


def _without_having(relation: Relation) -> Relation:
    if isinstance(relation, Filter) and isinstance(relation.input, Aggregate):
        return relation.input
    return relation


def _without_last_conjunct(relation: Relation) -> Relation:
    if not isinstance(relation, Filter) or isinstance(relation.input, Aggregate):
        return relation
    first, *rest = conjuncts(relation.predicate)
    for part in rest[:-1]:
        args = (first, part)
        first = replace(
            relation.predicate, function="and", args=args, shape=FUNCTIONS["and"].shape(args, "")
        )  # type: ignore[call-arg]
    return replace(relation, predicate=first) if rest else relation.input


def _without_distinct(relation: Relation) -> Relation:
    if isinstance(relation, Aggregate):
        return replace(relation, calls=tuple(replace(c, distinct=False) for c in relation.calls))
    return relation.input if isinstance(relation, Distinct) else relation


FAULTS: dict[str, tuple[Callable[[Relation], Relation], str, tuple[str, ...]]] = {
    "FILTER dropped": (_without_filter, "FILTER (", ()),
    "HAVING dropped": (
        _without_having,
        " HAVING ",
        ("COUNT(*) > 100", "COUNT(*) > 0", "COUNT(*) >= 2", "COUNT(*) > 1", "MAX(age) > 0", "GROUPING(city) AS g"),
    ),
    "a condition dropped": (
        _without_last_conjunct,
        " WHERE ",
        (
            "started < '2024-03-03'", "<> 'va'", "IN ('de', 'fr', 'it')", "IN ('web', 'shop')",
            "IN ('europe', 'asia')", "age BETWEEN 20 AND 25", "channel IS NOT NULL GROUP",
            "WHERE amount IS NOT NULL", "IS NOT NULL LIMIT", "ORDER BY population DESC", "ORDER BY price DESC", "NOT EXISTS",
            "'2024-01-05' GROUP", "AS t WHERE n <= 5", "s WHERE m >", "s WHERE w >", "<> ALL('{}')", "l.who = p.s)",  # of units, and a semi join
        ),
    ),
    "DISTINCT ignored": (_without_distinct, "DISTINCT ", ("FROM customers WHERE age > 40", "IS DISTINCT FROM", "SELECT DISTINCT", "MIN(DISTINCT", "BOOL_OR(DISTINCT", "DISTINCT age * NULL")),
}  # fmt: skip
"""Each with the word that a query has, and words of queries whose answer is the same without it."""


@pytest.mark.no_cover  # answers what is answered above
@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_dropped_clause_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, word, idle = FAULTS[fault]

    def faulty(*args: object) -> Bound:
        bound = bind(*args)  # type: ignore[arg-type]
        return replace(bound, relation=_everywhere(bound.relation, change))

    concerned = [
        e
        for e in CORPUS
        if word in e.sql
        and not any(i in e.sql for i in idle)
        and not e.name.startswith(
            ("extremes", "dashboards")
        )  # an extreme may be the same of fewer rows
    ]
    assert len(concerned) >= 3
    monkeypatch.setattr(pipeline, "bind", faulty)
    unnoticed = [e.sql for e in concerned if not differs(e)]
    assert unnoticed == [], "\n".join(unnoticed)
