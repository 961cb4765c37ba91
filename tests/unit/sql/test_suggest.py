"""How a suggestion is looked for: what it may name, how much it may take, and what ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shop import catalog, refusal

from dpsql.diagnostics.refusal import NotAdmitted, Refusal, Refused, Stopped
from dpsql.effort import limit_effort, limit_part, step
from dpsql.sql.parse import Source
from dpsql.sql.suggest import LONGEST, MOST_TRIED, suggest_statement

TABLES = tuple(sorted(catalog().visible))
TEXT = "SELECT MY_FUNCTION(age), OTHER(city), COUNT(*) FROM customers WHERE age ~ 'a|b' ORDER BY 1"


def refused_of(text: str) -> Refused:
    found = refusal(text)
    assert found is not None
    (first, *_) = found.refusals
    return Refused(Refusal(first.code, "no", "because", "", first.span, first.edits), text=text)


def asks(outcome: Callable[[Source], object], text: str = TEXT) -> tuple[list[str], Refused]:
    """The statements that were asked for one suggestion, and the refusal with it."""
    found: list[str] = []

    def ask(source: Source) -> object:
        found.append(source.text)
        return outcome(source)

    return found, suggest_statement(refused_of(text), Source(text), ask, TABLES)


def test_the_first_statement_that_is_answered_is_suggested() -> None:
    tried, refused = asks(lambda _: None)
    assert len(tried) == 1
    assert refused.instead.split("\n--")[0] == tried[0]


@pytest.mark.parametrize("error", [NotAdmitted("x1"), Refused(Refusal("DP100", "no", "because"))])
def test_what_is_not_answered_is_not_suggested(error: Exception) -> None:
    def ask(_: Source) -> object:
        raise error

    tried, refused = asks(ask)
    assert 1 < len(tried) <= MOST_TRIED
    assert len(set(tried)) == len(tried)
    assert refused.instead == ""


def test_a_statement_that_is_too_deep_ends_the_search() -> None:
    def ask(_: Source) -> object:
        raise RecursionError

    tried, refused = asks(ask)
    assert len(tried) == 1
    assert refused.instead == ""


def test_the_end_of_a_statement_ends_the_search() -> None:
    def ask(_: Source) -> object:
        raise Stopped

    with pytest.raises(Stopped):
        asks(ask)


def test_work_is_limited() -> None:
    def ask(_: Source) -> object:
        step(10_000)
        raise Refused(Refusal("DP100", "no", "because"))

    with limit_effort():
        tried, refused = asks(ask)
        step(100_000)  # what a statement may take is not used up
    assert len(tried) < MOST_TRIED
    assert refused.instead == ""


def test_a_part_is_never_more_than_the_whole() -> None:
    with pytest.raises(Refused), limit_part(1_000):
        step(20_000)
    with limit_effort(), limit_part(1_000), pytest.raises(Refused), limit_part(50_000):
        step(20_000)


def test_long_statements_get_none() -> None:
    text = f"SELECT MY_FUNCTION(age) FROM customers WHERE city = '{'x' * LONGEST}'"
    tried, refused = asks(lambda _: None, text)
    assert tried == []
    assert refused.instead == ""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM order",
        "SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) FROM customers c JOIN orders o ON o.customer_id = c.customer_id",
        "DELETE FROM orders",
        "SELECT amonut FROM customers",
    ],
)
def test_only_what_the_role_sees_is_named(text: str) -> None:
    """Claim: tables and columns that a role may not see are in a suggestion only if the analyst wrote them."""
    refused = Refused(Refusal("DP104", "no", "because"), text=text)
    told: list[str] = []

    def ask(source: Source) -> object:
        told.append(source.text)
        raise Refused(Refusal("DP104", "no", "because"))

    suggest_statement(refused, Source(text), ask, ("customers",))
    hidden = {"orders", "visits", "countries", "amount"}
    written = set(text.lower().split())
    assert not [t for t in told if (set(t.lower().split()) & hidden) - written]
