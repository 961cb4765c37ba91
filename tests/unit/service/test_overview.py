"""SHOW TABLES and DESCRIBE say what the policy lists for a role, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.services import service

from dpsql.diagnostics.refusal import Refused
from dpsql.serve.catalog.rows import policy_rows
from dpsql.service import Service, plain
from dpsql.service.overview import overview_of
from dpsql.service.settings import Settings
from dpsql.service.temporary import with_views


@pytest.fixture(scope="module")
def shop() -> Iterator[Service]:
    with service("shop", "shop") as opened:
        yield opened


@pytest.mark.parametrize(
    "text", ["SHOW TABLES", "show tables ;", r"\d", r"\dt", "-- all\nSHOW TABLES"]
)
def test_tables_are_shown(shop: Service, text: str) -> None:
    reply = shop.session("analyst").execute(text)
    assert [c.name for c in reply.columns] == ["table_name", "type", "unit", "description"]
    assert [(r[0], r[2]) for r in plain.python_rows(reply)] == [
        (t.name, t.unit) for t in shop.policy.tables.values()
    ]
    assert not reply.cost.epsilon


@pytest.mark.parametrize(
    "text",
    ["DESCRIBE orders", "desc Orders;", 'DESCRIBE TABLE public."orders"', "SHOW COLUMNS FROM orders",
     "show columns in main.orders", r"\d orders", "/* a */ describe /* b */ orders"],
)  # fmt: skip
def test_columns_are_described(shop: Service, text: str) -> None:
    rows = plain.python_rows(shop.session("analyst").execute(text))
    orders = shop.policy.tables["orders"]
    assert [r[0] for r in rows] == list(orders.columns)
    assert [r[1] for r in rows] == [c.declared for c in orders.columns.values()]
    assert {r[0]: r[3] for r in rows}["channel"] == "web, shop, phone"


def test_what_a_role_does_not_see_is_not_there() -> None:
    def hide(text: str) -> str:
        return text.replace(
            "  analyst:\n", "  analyst:\n    tables: [countries, visits, customers]\n"
        )

    with service("shop", "shop", hide) as opened:
        session = opened.session("analyst")
        assert "orders" not in [r[0] for r in plain.python_rows(session.execute("SHOW TABLES"))]
        with pytest.raises(Refused) as hidden:
            session.execute("DESCRIBE orders")
        with pytest.raises(Refused) as missing:
            session.execute("DESCRIBE nowhere")
        assert hidden.value.first.code == missing.value.first.code == "DP104"
        assert "orders" not in hidden.value.first.instead
        assert hidden.value.first.instead == missing.value.first.instead


def _narrow(text: str) -> str:
    return text.replace("  analyst:\n", "  analyst:\n    tables: [orders, customers]\n", 1)


def test_values_from_a_hidden_table_are_told_and_its_name_is_not() -> None:
    with service("shop", "shop", _narrow) as opened:
        session = opened.session("analyst")
        shown = {r[0]: r[3] for r in plain.python_rows(session.execute("DESCRIBE customers"))}
        values = opened.public_values["countries", "country"]
        assert shown["country"] == ", ".join(map(str, values))
        policy = plain.python_rows(session.execute("SELECT * FROM dpsql.policy"))
        catalog = policy_rows(opened.policy, "analyst", {}, opened.views)["pg_description"]
        assert "countries" not in str(policy) + str(catalog)
        everything = policy_rows(opened.policy, "pure", {}, opened.views)["pg_description"]
        assert "values of countries.country" in str(everything)


def test_a_view_over_a_table_is_described_as_the_table_is() -> None:
    with service("types", "types") as opened:
        session = opened.session("analyst")
        session.execute("CREATE TEMP VIEW known AS SELECT * FROM buyers")
        tables = {
            name: plain.python_rows(session.execute(f"DESCRIBE {name}"))
            for name in ("buyers", "known")
        }
        numbers = [[r for r in rows if r[0] in ("balance", "points")] for rows in tables.values()]
        assert numbers[0] == numbers[1] != []
        assert numbers[0][0][1] == "decimal(9, 2)"


def test_the_two_values_of_a_boolean_are_not_told(shop: Service) -> None:
    session = shop.session("analyst")
    session.execute("CREATE TEMP VIEW old AS SELECT age > 50 AS old FROM customers")
    assert plain.python_rows(session.execute("DESCRIBE old"))[0][3] is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SHOW TABLES x",
        "DESCRIBE",
        "DESCRIBE SELECT 1",
        "DESCRIBE a.b",
        "SHOW dpsql.budget",
    ],
)
def test_anything_else_is_something_else(text: str) -> None:
    assert overview_of(text) is None


HOSTILE = (
    "/**/" * 200, "/* * */" * 200 + "x", " " * 20_000 + "x", "-- \n" * 5_000,
    "show" + " " * 20_000 + "tables" + " " * 20_000 + "x", "desc a" + " " * 20_000 + "x",
    "create" + "/**/" * 200, "create temp view a" + "/**/" * 200, "drop view " + "a , " * 5_000,
    "drop view a" + " " * 20_000 + "x", 'drop view "' + '""' * 10_000, "discard" + " " * 20_000,
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_is_read_again_and_again(text: str) -> None:
    """Comments that could be read in several ways took for ever, and stopped all threads."""
    begun = time.process_time()
    assert overview_of(text) is None
    assert with_views(Settings(), text, None) is None  # type: ignore[arg-type]  # none is made
    assert time.process_time() - begun < 2
