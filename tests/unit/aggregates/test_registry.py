"""Every aggregate call that is read has a private form, or a rule that refuses it."""

from __future__ import annotations

import pytest
from sqlglot import exp
from support.services import service

from dpsql.aggregates.registry import AGGREGATES
from dpsql.diagnostics.refusal import Refused
from dpsql.sql.bind.aggregate_calls import NAMES
from dpsql.sql.bind.quantile_calls import QUANTILES

OTHERWISE = {"count_if": "count", "approx_count_distinct": "count"}
REFUSED = {"arg_max", "arg_min"}


def test_every_call_is_lowered_or_refused() -> None:
    plain = {n for kind, n in NAMES.items() if kind not in (*QUANTILES, exp.WithinGroup)}
    found = {OTHERWISE.get(n, n) for n in plain} | set(QUANTILES.values())
    assert found == set(AGGREGATES) | REFUSED


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_private_form_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="DP110"):
        service("shop", "shop").session("pure").execute(
            f"SELECT {name}(country, age) FROM customers"
        )
