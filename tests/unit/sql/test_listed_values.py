"""Lists of values, written or given, mean IN and NOT IN; what is no list of values is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from support.services import service

from dpsql.diagnostics.refusal import Refused
from dpsql.service import Service
from dpsql.sql.parameters import MOST_PARAMETERS
from dpsql.sql.parse import Source, parse

COUNT = "SELECT COUNT(*) FROM orders WHERE "


@pytest.fixture(scope="module")
def shop() -> Iterator[Service]:
    with service("shop", "shop") as opened:
        yield opened


@pytest.mark.parametrize(
    ("given", "values", "plain"),
    [
        ("channel = ANY($1)", ["web", "it's"], "channel IN ('web', 'it''s')"),
        ("channel = ANY(?)", ("web", None), "channel IN ('web', NULL)"),
        ("channel <> ALL($1::text[])", ["web"], "NOT channel IN (CAST('web' AS TEXT))"),
        ("order_id = SOME(?)", [1, -2], "order_id IN (1, -2)"),
        ("(amount > 3) = ANY($1)", [True], "(amount > 3) IN (TRUE)"),
        ("placed = ANY($1)", [dt.date(2024, 3, 1)], "placed IN (CAST('2024-03-01' AS DATE))"),
        ("order_id = ANY('{1,\"2\"}')", None, "order_id IN ('1', '2')"),
        ("order_id = ANY($1)", [], "(order_id IN (NULL)) IS TRUE"),
    ],
)
def test_a_list_is_the_in_that_it_stands_for(given: str, values: object, plain: str) -> None:
    source = Source(COUNT + given, parameters=() if values is None else (values,))  # type: ignore[arg-type]
    assert parse(source).tree.sql("postgres") == parse(Source(COUNT + plain)).tree.sql("postgres")


def test_a_list_that_is_given_costs_nothing_after_the_one_that_is_written(shop: Service) -> None:
    session = shop.session("analyst")
    written = session.execute(COUNT + "channel IN ('web', 'shop')")
    given = session.execute(COUNT + "channel = ANY(?)", (["web", "shop"],))
    assert given.table == written.table
    assert written.cost.epsilon > 0 == given.cost.epsilon


@pytest.mark.parametrize(
    ("condition", "values", "code"),
    [
        ("order_id = $1", [[1, 2]], "DP113"),
        ("order_id IN ($1)", [[1, 2]], "DP113"),
        ("order_id = ANY($1)", [[b"x"]], "DP113"),
        ("order_id = ANY($1)", [[float("nan")]], "DP113"),
        ("order_id = ANY($1)", [[[1]]], "DP100"),
        ("order_id = ANY($1)", [list(range(MOST_PARAMETERS + 1))], "DP100"),
        ("order_id = ANY($1) OR order_id = ANY($1)", [list(range(MOST_PARAMETERS - 1))], "DP113"),
        ("order_id = ANY($1)", ["{" + "1," * MOST_PARAMETERS + "1}"], "DP115"),
        ("order_id = ANY($1)", ["{1"], "DP100"),
        ("order_id = ANY(ARRAY[ARRAY[1]])", [], "DP100"),
        ("order_id < ANY(ARRAY[1])", [], "DP100"),
        ("order_id = ALL(ARRAY[1])", [], "DP107"),
        ("(order_id, amount) = ANY(ARRAY[1])", [], "DP100"),
    ],
)
def test_what_is_no_list_of_values_is_refused(
    shop: Service, condition: str, values: list[object], code: str
) -> None:
    with pytest.raises(Refused) as refused:
        shop.session("analyst").execute(COUNT + condition, values)  # type: ignore[arg-type]
    assert refused.value.first.code == code


@pytest.mark.parametrize(
    "written", ["order_id > ?::int", "order_id > ? :: int", "order_id > ?::int AND amount < ?::int"]
)
def test_a_parameter_before_a_cast(written: str) -> None:
    numbered = written
    for number in range(1, written.count("?") + 1):
        numbered = numbered.replace("?", f"${number}", 1)
    values = (7,) * written.count("?")
    mine, other = (parse(Source(COUNT + text, parameters=values)) for text in (written, numbered))
    assert mine.tree.sql("postgres") == other.tree.sql("postgres")
    assert "7" in mine.tree.sql("postgres")
