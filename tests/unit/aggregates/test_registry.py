"""Every aggregate call that is read has a private form, or a rule that refuses it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from support.corpus import CORPUS, SHOP
from support.measured import plan_of
from support.services import service

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import AggregateRecord, Unanswered
from dpsql.diagnostics.refusal import Refused
from dpsql.sql.nodes import aggregate_calls

REFUSED = {"arg_max", "arg_min"}
LOWERED = sorted(set(AGGREGATES) - REFUSED)


def test_what_is_refused_is_known_by_name() -> None:
    without = {name for name, r in AGGREGATES.items() if isinstance(r.lower, Unanswered)}
    assert without == REFUSED


def test_a_record_says_everything() -> None:
    """A field that is left out is no answer, so no record is made without it."""
    (given, *_) = AGGREGATES.values()
    said = {f.name: getattr(given, f.name) for f in fields(given)}
    for name in said:
        with pytest.raises(TypeError, match=name):
            AggregateRecord(**{n: value for n, value in said.items() if n != name})


def test_a_name_that_the_parser_does_not_know_stops_the_import() -> None:
    record = AGGREGATES["sum"]
    strange = replace(record, nodes=(replace(record.nodes[0], name="SumOfTomorrow"),))
    with pytest.raises(LookupError, match="SumOfTomorrow"):
        aggregate_calls([strange])
    with pytest.raises(TypeError, match="two records"):
        aggregate_calls([record, record])


def _written(name: str) -> str:
    """A call of the aggregate."""
    if name.startswith("quantile"):
        return f"{name.upper()}(age, 0.5)"
    if AGGREGATES[name].values == (2, 2):
        return f"{name.upper()}(age, customer_id % 7)"
    return f"{name.upper()}({'age > 30' if name.startswith('bool') else 'age'})"


@pytest.mark.parametrize("name", LOWERED)
def test_each_aggregate_takes_a_filter(name: str) -> None:
    where = "country = 'de'"
    plain = plan_of(f"SELECT {_written(name)} FROM customers", SHOP)
    some = plan_of(f"SELECT {_written(name)} FILTER (WHERE {where}) FROM customers", SHOP)
    (before,), (after,) = plain.measurements, some.measurements
    assert len(before.statistics) == len(after.statistics)
    assert all(s.where is None for s in before.statistics)
    assert all(s.where is not None for s in after.statistics)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_private_form_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="DP110"):
        service("shop", "shop").session("pure").execute(
            f"SELECT {name}(country, age) FROM customers"
        )


@pytest.mark.parametrize("name", LOWERED)
def test_the_corpus_asks_about_each_aggregate(name: str) -> None:
    """The oracle and the neighbours run on the corpus."""
    written = [n.output for n in AGGREGATES[name].nodes]
    written += [name, *(s for n in AGGREGATES[name].nodes for s in n.spellings)]
    calls = tuple(f"{word.upper()}(" for word in written)
    assert any(call in entry.sql.upper() for entry in CORPUS for call in calls)
