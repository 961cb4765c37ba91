"""Every aggregate in every place is answered or refused, as its record says, and nothing else happens.

What is answered is planned and priced, and its statements pass the second check, which knows nothing of
records. By day each aggregate is asked about every value, and every value in every place, but not all three
at once; that is for the night.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from sqlglot import exp
from support.daily import some
from support.measured import text_of
from support.shop import ANALYST, catalog, evaluator

from dpsql import pipeline
from dpsql.catalog.aggregates import AGGREGATES, is_private
from dpsql.catalog.functions import RECORDS
from dpsql.catalog.record import CONDITIONS, AggregateRecord, Distinct, Form, Needs
from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.guard import Guard, terms
from dpsql.engines.duckdb.guard.facts import Unsafe
from dpsql.sql import nodes
from dpsql.sql.bind.context import Catalog
from dpsql.sql.dialects.tables import DIALECTS
from dpsql.sql.parse import Source

POLICY = "policies/examples.yaml"
VALUES = (
    "x",
    "n",
    "y + 1",
    "free",
    "flag",
    "kind",
    "word",
    "day",
    "moment",
    "NULL",
    "LENGTH(word)",
)
PLACES = {
    "all rows": "SELECT {call} FROM events",
    "groups": "SELECT kind, {call} FROM events GROUP BY kind",
    "per unit": "SELECT COUNT(v) FROM (SELECT person, {call} AS v FROM events GROUP BY person) AS t",
    "window": "SELECT COUNT(v) FROM (SELECT {call} OVER (PARTITION BY person) AS v FROM events) AS t",
}
FEW = ("x", "free", "kind")
"""Values for clauses and dialects: bounded, unbounded, listed."""


@cache
def seen(*, strict: bool) -> Catalog:
    found = catalog(POLICY)
    policy = found.policy
    limits = replace(policy.limits, strict_timing=strict)
    return replace(found, policy=replace(policy, limits=limits))


@cache
def guard(*, strict: bool) -> Guard:
    return Guard(seen(strict=strict).policy)


def is_answered(sql: str, dialect: str = "postgres", *, strict: bool = False) -> bool:
    """Whether there is an answer; whatever else than a refusal is raised fails the test."""
    source = Source(sql, dialect)
    try:
        plan = pipeline.make_plan(source, seen(strict=strict), evaluator())
        found = pipeline.price_plan(plan, source, ANALYST)
    except Refused:
        return False
    for part in found.parts:
        guard(strict=strict).check(text_of(part))
    return True


def written(record: AggregateRecord, value: str) -> str:
    """A call of the aggregate over a value (or over two, the other one being bounded)."""
    name = record.name.upper()
    if any(node.form is Form.RANK for node in record.nodes):
        return f"{name}({value}, 0.5)"
    return f"{name}({value}, y)" if record.values == (2, 2) else f"{name}({value})"


def good(record: AggregateRecord) -> str:
    """A value of which the record says that the aggregate is answered."""
    if record.kinds == CONDITIONS:
        return "flag"
    return {Needs.LIST: "kind", Needs.POSITIVE_BOUNDS: "y + 1"}.get(record.needs, "x")


def places(record: AggregateRecord, turn: int) -> Sequence[str]:
    """One of the places by day, another one for each aggregate and turn."""
    return some([*PLACES], [*AGGREGATES].index(record.name) + turn, len(PLACES))


EVERY = pytest.mark.parametrize("record", AGGREGATES.values(), ids=lambda r: r.name)


@EVERY
@pytest.mark.parametrize("strict", [False, True], ids=["usual", "strict timing"])
def test_every_value_in_every_place(record: AggregateRecord, *, strict: bool) -> None:
    pairs = [(place, good(record)) for place in PLACES]
    pairs += [(place, v) for i, v in enumerate(VALUES) for place in places(record, i + strict)]
    answered = {
        (place, value): is_answered(
            PLACES[place].format(call=written(record, value)), strict=strict
        )
        for place, value in pairs
    }
    said = is_private(record) and (record.strict_timing or not strict)
    known = {
        "all rows": said,
        "groups": said,
        "per unit": record.per_unit is None and (record.strict_timing or not strict),
        "window": record.windowed,
    }
    assert {place: answered[place, good(record)] for place in PLACES} == known


@EVERY
def test_what_is_not_bounded_is_refused(record: AggregateRecord) -> None:
    free = {
        v: is_answered(PLACES["all rows"].format(call=written(record, v))) for v in ("free", "word")
    }
    assert free["free"] == (
        record.needs is Needs.NOTHING and is_private(record) and record.kinds != CONDITIONS
    )
    assert not free["word"] or record.name == "count"
    if record.needs is Needs.POSITIVE_BOUNDS:
        assert not is_answered(PLACES["all rows"].format(call=written(record, "x")))


@EVERY
def test_clauses_of_a_call(record: AggregateRecord) -> None:
    value = good(record)
    call = written(record, value)
    where = PLACES["all rows"].format(call=f"{call} FILTER (WHERE n > 1)")
    assert is_answered(where) == is_private(record)
    ranks = any(node.form is Form.RANK for node in record.nodes)
    for turn, other in enumerate((value, *FEW)):
        text = PLACES["all rows"].format(call=written(record, f"DISTINCT {other}"))
        found = is_answered(text)
        if other == value and record.values[1] == 1 and not ranks:
            assert found == (is_private(record) and record.distinct is not Distinct.REFUSED)
        for place in places(record, turn):
            is_answered(PLACES[place].format(call=written(record, f"DISTINCT {other}")))
            is_answered(PLACES[place].format(call=f"{written(record, other)} FILTER (WHERE n > 1)"))


@EVERY
@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_every_dialect(record: AggregateRecord, dialect: str) -> None:
    called = {
        record.name,
        *(n.output for n in record.nodes),
        *(s for n in record.nodes for s in n.spellings),
    }
    values = (*FEW, "DISTINCT x", "x, y", "x, 0.5", "*", "")
    for turn, (name, value) in enumerate(itertools.product(sorted(called), values)):
        for place in places(record, turn + [*DIALECTS].index(dialect)):
            is_answered(PLACES[place].format(call=f"{name}({value})"), dialect)
    plain = [n for n in record.nodes if n.form is Form.VALUES]
    if plain and is_private(record) and (dialect == "postgres" or dialect in plain[0].dialects):
        assert is_answered(PLACES["all rows"].format(call=written(record, good(record))), dialect)


@EVERY
def test_the_second_check_passes_every_example(record: AggregateRecord) -> None:
    for example in record.examples:
        for place in ("all rows", "groups"):
            text = PLACES[place].format(call=example)
            for strict in (False, True):
                assert is_answered(text, strict=strict) == is_private(record), example


@pytest.mark.parametrize("name", RECORDS)
def test_the_second_check_passes_every_example_of_a_function(name: str) -> None:
    for example in RECORDS[name].examples:
        for text in (
            f"SELECT COUNT(*) FROM events WHERE ({example}) IS NOT NULL",
            f"SELECT COUNT(DISTINCT ({example})) FROM events",
        ):
            assert is_answered(text), example
            assert is_answered(text, strict=True), example


def test_an_aggregate_that_is_not_recorded_is_refused() -> None:
    for name in ("KURTOSIS_POP", "MAD", "ENTROPY", "PRODUCT", "FAVG", "ANY_VALUE", "HISTOGRAM"):
        for place in PLACES.values():
            for dialect in DIALECTS:
                assert not is_answered(place.format(call=f"{name}(x)"), dialect), name


def test_a_record_that_claims_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second check is what would otherwise be met after the charge."""
    claimed = replace(AGGREGATES["corr"], per_unit=None)
    monkeypatch.setitem(AGGREGATES, "corr", claimed)
    monkeypatch.setitem(nodes.AGGREGATE_CALLS, exp.Corr, (claimed, claimed.nodes[0]))
    with pytest.raises(Unsafe):
        is_answered(PLACES["per unit"].format(call="CORR(x, y)"))


def test_a_function_that_the_second_check_does_not_know_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(terms.TOTAL, "cbrt")
    guard.cache_clear()
    with pytest.raises(Unsafe):
        is_answered("SELECT COUNT(*) FROM events WHERE CBRT(x) > 1")
    guard.cache_clear()
