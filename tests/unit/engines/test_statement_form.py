"""Statements that differ in what values are compared with are of one form, and checked once."""

from __future__ import annotations

import pytest
from support.corpus import CORPUS, SHOP, World
from support.daily import some
from support.guards import led
from support.measured import every_way, opened, plan_of, request

from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.guard import Guard
from dpsql.engines.duckdb.statement_form import form_of
from dpsql.engines.duckdb.statements import StatementText, statement_text
from dpsql.engines.duckdb.write import write
from dpsql.ir.statements import Query
from dpsql.price.priced import PricedMeasurement
from dpsql.rewrite.statement import statement_of

COUNT = "SELECT COUNT(*) FROM orders WHERE {}"


def relations(sql: str, world: World = SHOP) -> list[Query]:
    """The relations of all statements that may run for a query."""
    parts: list[PricedMeasurement] = list(
        every_way(plan_of(sql, world), request(3, 1), ("laplace",))
    )
    made = [statement_of(part) for part in parts]
    return [r for s in made for r in (s.relation, *(a.relation for a in s.alternatives))]


def texts(sql: str) -> list[StatementText]:
    return [statement_text(relation) for relation in relations(sql)]


ALIKE = (
    (COUNT.format("channel = 'web'"), COUNT.format("channel = 'shop'")),
    (COUNT.format("channel <> 'web'"), COUNT.format("channel <> 'it''s'")),
    (COUNT.format("customer_id = 17"), COUNT.format("customer_id = 123456789012345")),
    (
        "SELECT channel || 'x', COUNT(*) FROM orders WHERE channel || 'x' = 'webx' GROUP BY 1",
        "SELECT channel || 'x', COUNT(*) FROM orders WHERE channel || 'x' = 'shopx' GROUP BY 1",
    ),
    (
        "SELECT channel, SUM(amount) FROM orders WHERE channel = 'a' GROUP BY 1",
        "SELECT channel, SUM(amount) FROM orders WHERE channel = 'b' GROUP BY 1",
    ),
    (COUNT.format("channel = 'web' OR channel = 'shop'"), COUNT.format("channel = 'phone' OR channel = 'a'")),
    (
        "SELECT COUNT(*) FILTER (WHERE channel = 'web'), SUM(CASE WHEN channel = 'web' THEN amount END) FROM orders",
        "SELECT COUNT(*) FILTER (WHERE channel = 'shop'), SUM(CASE WHEN channel = 'shop' THEN amount END) FROM orders",
    ),
    (
        "SELECT COUNT(*) FROM orders AS o JOIN customers AS c ON o.customer_id = c.customer_id AND c.city = 'linz'",
        "SELECT COUNT(*) FROM orders AS o JOIN customers AS c ON o.customer_id = c.customer_id AND c.city = 'graz'",
    ),
)  # fmt: skip
APART = (
    (COUNT.format("channel = 'web' OR channel = 'web'"), COUNT.format("channel = 'web' OR channel = 'shop'")),
    (COUNT.format("amount > 5"), COUNT.format("amount > 6")),
    (COUNT.format("customer_id = 17"), COUNT.format("customer_id = 1234567890123456")),
    (COUNT.format("customer_id = 17"), COUNT.format("customer_id = -17")),
    (COUNT.format("channel = 'web'"), COUNT.format("channel <> 'web'")),
    (COUNT.format("channel LIKE 'w%'"), COUNT.format("channel LIKE 's%'")),
    (COUNT.format("channel || 'a' = 'web'"), COUNT.format("channel || 'b' = 'web'")),
    ("SELECT SUM(LEAST(amount, 5)) FROM orders", "SELECT SUM(LEAST(amount, 6)) FROM orders"),
    ("SELECT SUM(seconds) FROM visits WHERE seconds = 5", "SELECT SUM(seconds) FROM visits WHERE seconds = 6"),
)  # fmt: skip


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_values_are_compared_with_is_not_in_the_form(one: str, other: str) -> None:
    first, second = texts(one), texts(other)
    assert [t.form for t in first] == [t.form for t in second]
    assert all(a.sql != b.sql for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(("one", "other"), APART)
def test_all_else_is_in_it(one: str, other: str) -> None:
    """Which constants are equal is too: parts of a statement are compared with each other."""
    assert not {t.form for t in texts(one)} & {t.form for t in texts(other)}


def test_statements_of_one_form_are_walked_once() -> None:
    policy = opened(SHOP).policy
    own = Guard(policy, None, led(policy))
    for number in range(20):
        text = statement_text(relations(COUNT.format(f"channel = 'c{number}'"))[0])
        own.check(text.sql, form=text.form)
    assert len(own._known) == 1


def test_a_form_passes_as_its_statement_does() -> None:
    """It is the statement with other constants."""
    tried = changed = 0
    for entry in some(CORPUS, 0, 6):
        policy = opened(entry.world).policy
        own = Guard(policy, None, led(policy))
        try:
            found = relations(entry.sql, entry.world)[:1]
        except Refused:
            continue
        for relation in found:
            form = write(form_of(relation))
            own.check(write(relation))
            own.check(form)
            tried += 1
            changed += form != write(relation)
    assert tried > 50
    assert changed > 5
