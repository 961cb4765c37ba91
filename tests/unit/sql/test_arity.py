"""Functions of no values, of too many and of strange ones are refused, never an error of ours."""

from __future__ import annotations

import pytest
from support.services import service

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.diagnostics.refusal import Refused

OTHERS = ("ntile", "lag", "nth_value", "date_trunc", "log", "substring", "width_bucket", "coalesce")
CALLED = {node.output for record in AGGREGATES.values() for node in record.nodes}
FUNCTIONS = sorted({*AGGREGATES, *CALLED, *OTHERS})
INSIDE = ("", "*", "DISTINCT", "NULL", "amount, 1, 2", "DISTINCT amount, channel", "'x'", "placed")
AROUND = ("", " OVER ()", " FILTER (WHERE true)", " WITHIN GROUP (ORDER BY amount)")


DIALECTS = ("postgres", "duckdb", "bigquery", "snowflake")


@pytest.mark.parametrize("step", [len(DIALECTS), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_whatever_a_function_is_given_it_is_answered_or_refused(dialect: str, step: int) -> None:
    """By day each dialect has a share of the functions, which are all of them together."""
    refused, first = 0, DIALECTS.index(dialect) % step
    with service("oracle", "shop") as here:
        session = here.session("oracle")
        session.execute(f"SET dpsql.dialect = '{dialect}'")
        for name in FUNCTIONS[first::step]:
            for inside in INSIDE:
                for around in AROUND:
                    try:
                        session.prepare(f"SELECT {name}({inside}){around} FROM orders")
                    except Refused:
                        refused += 1
    assert refused > 500 / step


@pytest.mark.parametrize("call", ["SUM(*)", "MIN(DISTINCT)", "REGR_COUNT(*)", "VAR_POP(*) OVER ()"])
def test_a_value_is_asked_for(call: str) -> None:
    with service("oracle", "shop") as here, pytest.raises(Refused) as caught:
        here.session("oracle").prepare(f"SELECT {call} FROM orders")
    assert "DP201" in str(caught.value)
    assert "takes" in str(caught.value)
