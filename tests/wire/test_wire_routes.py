"""Which statements are the catalog's: every face answers the others alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from endpoint import PASSWORD, ROLE, generous
from support.services import policy_file
from talk import Client, FixedHouse, errors, kinds, query

from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.tokens import tokens
from dpsql.serve.uses import tables
from dpsql.service import Service

SAME = [
    "WITH orders AS (SELECT * FROM orders) SELECT COUNT(*) FROM orders",
    "WITH a AS (SELECT * FROM orders), orders AS (SELECT amount FROM a) SELECT COUNT(*) FROM orders",
    "EXPLAIN (SELECT COUNT(*) FROM orders) UNION ALL (SELECT COUNT(*) FROM visits)",
    "SELECT * FROM TABLE(SNOWFLAKE.DATA_PRIVACY.ESTIMATE_REMAINING_DP_AGGREGATES('orders'))",
]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service.open(policy_file("shop", "shop", generous)) as found:
        yield found


def _client(service: Service) -> Client:
    client = Client(FixedHouse(ServiceEndpoint(service, role_catalog)))
    client.login(ROLE, PASSWORD)
    return client


@pytest.mark.parametrize("sql", SAME)
def test_what_the_service_answers_is_answered_over_the_wire(service: Service, sql: str) -> None:
    rows = service.session(ROLE).execute(sql).table.num_rows
    said = _client(service).send(query(sql))
    assert errors(said) == []
    assert kinds(said).count("D") == rows > 0


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("WITH t AS (SELECT 1 FROM t) SELECT 1 FROM t", ["t"]),
        ("WITH t(a) AS MATERIALIZED (SELECT 1 FROM t) SELECT 1 FROM t", ["t"]),
        ("WITH RECURSIVE t AS (SELECT 1 UNION SELECT 1 FROM t) SELECT 1 FROM t", []),
        ("WITH a AS (SELECT 1 FROM b), b AS (SELECT 1 FROM a) SELECT 1 FROM a, b", ["b"]),
        ("WITH pg_class AS (SELECT 1) SELECT 1 FROM pg_class", []),
        ("SELECT 1 FROM x.y.f(1)", ["f"]),
        ("SELECT 1 FROM y.f(1)", []),
    ],
)
def test_a_query_has_its_name_after_its_end(sql: str, named: list[str]) -> None:
    assert [one.name for one in tables(tokens(sql))] == named


@pytest.mark.parametrize("words", ["(ANALYZE)", "(FORMAT JSON)", "ANALYZE", "()"])
def test_explain_takes_no_options(service: Service, words: str) -> None:
    said = _client(service).send(query(f"EXPLAIN {words} SELECT COUNT(*) FROM orders"))
    assert errors(said) == ["0A000"]
