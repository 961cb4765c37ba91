"""Every aggregate call that is read has a private form, or a rule that refuses it."""

from __future__ import annotations

import pytest
from sqlglot import exp
from support.corpus import SHOP
from support.measured import plan_of
from support.services import service

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.diagnostics.refusal import Refused
from dpsql.sql.bind.aggregate_calls import NAMES, PAIRED
from dpsql.sql.bind.quantile_calls import QUANTILES

OTHERWISE = {"count_if": "count", "approx_count_distinct": "count"}
REFUSED = {"arg_max", "arg_min"}


def test_every_call_is_lowered_or_refused() -> None:
    several = (exp.WithinGroup, exp.ApproxQuantiles)  # each stands for others
    plain = {n for kind, n in NAMES.items() if kind not in (*QUANTILES, *several)}
    found = {OTHERWISE.get(n, n) for n in plain} | set(QUANTILES.values())
    assert found == set(AGGREGATES) | REFUSED


def _written(name: str) -> str:
    """A call of the aggregate."""
    if name.startswith("quantile"):
        return f"{name.upper()}(age, 0.5)"
    if name in PAIRED:
        return f"{name.upper()}(age, customer_id % 7)"
    return f"{name.upper()}({'age > 30' if name.startswith('bool') else 'age'})"


@pytest.mark.parametrize("name", sorted(AGGREGATES))
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
