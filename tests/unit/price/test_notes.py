"""What an answer is said to leave out: each note once, in plain words, with the key that sets it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from support.measured import planned
from support.services import service

from dpsql.bound import GroupCaps, NormClip, RowWeights
from dpsql.price import notes
from dpsql.price.price import price
from dpsql.price.priced import PricedPlan
from dpsql.price.request import Request
from dpsql.service import Service

PUBLIC = "channel: all public groups are shown, those without rows too"
AMOUNTS = "values outside 0 .. 500 count as the nearer end"
FEW = "each customer counts in at most 50 of 731 groups (max_rows_per_unit): counts may be low"
ROWS = "rows beyond 50 a customer weigh less (max_rows_per_unit)"


@pytest.fixture(scope="module")
def shop() -> Iterator[Service]:
    with service("shop", "shop") as found:
        yield found


def priced(shop: Service, sql: str, dialect: str = "postgres", epsilon: int = 1) -> PricedPlan:
    return price(planned(sql, shop, dialect), Request(Fraction(epsilon), Fraction(1, 10**6)))


@pytest.mark.parametrize(("sql", "expected"), [
    ("SELECT COUNT(*) FROM customers", ()),
    ("SELECT COUNT(*) FROM orders", (ROWS.replace("weigh less", "do not count"),)),
    ("SELECT channel, COUNT(*) FROM orders GROUP BY channel", (PUBLIC, ROWS)),
    ("SELECT AVG(age) FROM customers", ("values outside 18 .. 100 count as the nearer end",)),
    ("SELECT channel, SUM(amount), AVG(amount) FROM orders GROUP BY channel", (PUBLIC, AMOUNTS, ROWS)),
    ("SELECT placed, COUNT(DISTINCT customer_id) FROM orders GROUP BY placed", (
        "placed: all public groups are shown, those without rows too",
        FEW,
    )),
    ("SELECT city, COUNT(*) FROM customers GROUP BY city", (
        "groups of fewer than about 15 units (customer) are not shown",
    )),
    ("SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) AS t", (
        "city: groups that are not shown are left out of what is computed from groups",
        "groups of fewer than about 15 units (customer) are not shown",
    )),
    ("SELECT COUNT(DISTINCT placed) FROM orders", (
        "at most 50 different values of a customer count",
    )),
    ("SELECT MEDIAN(placed) FROM orders", (
        "values outside 2024-01-01 .. 2025-12-31 count as the nearer end",
        ROWS.replace("weigh less", "do not count"),
    )),
])  # fmt: skip
def test_an_answer_says_what_it_may_leave_out(
    shop: Service, sql: str, expected: tuple[str, ...]
) -> None:
    assert notes.notes(priced(shop, sql)) == expected


@pytest.mark.parametrize(("value", "said"), [
    ("amount", AMOUNTS),
    ("2 * amount", "values outside 0 .. 1000 count as the nearer end"),
    ("LEAST(GREATEST(amount, 0), 100)", None),
    ("LEAST(amount, 100)", "values below 0 count as 0"),
    ("GREATEST(amount, 100)", "values above 500 count as 500"),
    ("CASE WHEN amount > 100 THEN 1 ELSE 0 END", None),
    ("CASE WHEN amount > 100 THEN amount ELSE 100 END", "values above 500 count as 500"),
    ("EXTRACT(MONTH FROM placed)", None),
    ("EXTRACT(YEAR FROM placed)", "values outside 2024 .. 2025 count as the nearer end"),
    ("CASE WHEN placed > DATE '2025-01-01' THEN NULL ELSE amount END", AMOUNTS),
])  # fmt: skip
def test_values_that_the_statement_bounds_are_not_said_to_be_cut(
    shop: Service, value: str, said: str | None
) -> None:
    for sql in (
        f"SELECT SUM({value}) FROM orders",
        f"SELECT SUM(v) FROM (SELECT {value} AS v FROM orders) AS t",
        f"SELECT SUM(w) FROM (SELECT v AS w FROM (SELECT {value} AS v FROM orders) AS t) AS u",
    ):
        assert priced(shop, sql).plan.clamped == (() if said is None else (said,)), sql


@pytest.mark.parametrize(("condition", "said"), [
    ("amount > 100", "values above 500 count as 500"),
    ("amount BETWEEN 10 AND 20", None),
    ("amount < 900", AMOUNTS),
])  # fmt: skip
def test_rows_that_a_condition_leaves_out_are_not_said_to_be_cut(
    shop: Service, condition: str, said: str | None
) -> None:
    found = priced(shop, f"SELECT AVG(amount) FROM orders WHERE {condition}").plan.clamped
    assert found == (() if said is None else (said,))


def test_listed_values_that_others_may_stand_beside(shop: Service) -> None:
    found = priced(shop, "SELECT MODE() WITHIN GROUP (ORDER BY channel) FROM orders")
    assert "values that the policy does not list do not count" in notes.notes(found)


def test_limits_of_a_statement_name_no_key_of_the_policy(shop: Service) -> None:
    head = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, {}) "
    few = head.format("max_groups_contributed = 2") + "placed, COUNT(*) FROM orders GROUP BY placed"
    found = notes.notes(priced(shop, few, "bigquery"))
    assert "each customer counts in at most 2 of 731 groups: counts may be low" in found
    rows = (
        head.format("max_rows_contributed = 5") + "channel, COUNT(*) FROM orders GROUP BY channel"
    )
    assert "rows beyond 5 a customer weigh less" in notes.notes(priced(shop, rows, "bigquery"))
    caps = head.format("max_groups_contributed = 2") + (
        "channel, SUM(amount, contribution_bounds_per_group => (0, 800)),"
        " SUM(amount, contribution_bounds_per_row => (0, 90)) FROM orders GROUP BY channel"
    )
    said = notes.notes(priced(shop, caps, "bigquery"))
    assert "what a customer adds to a group counts as 0 .. 800 if it is outside" in said
    assert "values outside 0 .. 90 count as the nearer end" in said


def test_other_limits_have_notes_too(shop: Service) -> None:
    [part] = priced(shop, "SELECT channel, SUM(amount) FROM orders GROUP BY channel").parts

    def said(bounding: object, per_group: int | None = None) -> list[str]:
        privacy = replace(part.measurement.privacy, per_group=per_group)
        measurement = replace(part.measurement, privacy=privacy)
        return list(notes._cuts(replace(part, measurement=measurement, bounding=bounding)))  # type: ignore[arg-type]

    assert said(GroupCaps(3, limit=True, per_group=4), 4) == [
        "each customer counts in at most 3 of 4 groups (max_groups_per_unit): counts may be low",
        "rows beyond 4 a customer in a group do not count (max_rows_per_group)",
    ]
    assert said(GroupCaps(50, limit=True, per_group=50))[0] == (
        "each customer counts in at most 50 of 4 groups (max_rows_per_unit): counts may be low"
    )
    assert said(NormClip(4, Fraction(9, 2)), 2) == [
        "rows weigh less where the counts of a customer have a norm above 4.5 (max_rows_per_group)"
    ]
    assert said(RowWeights(Fraction(7, 2), 4, valued=True)) == [
        "a customer adds to a sum at most what 3.5 rows of the largest value do"
    ]
    assert said(RowWeights(7, 4)) == ["rows beyond 7 a customer weigh less"]


def test_a_note_is_there_whether_or_not_rows_come_back(shop: Service) -> None:
    session = shop.session("analyst")
    reply = session.execute("SELECT city, COUNT(*) FROM customers WHERE age > 99 GROUP BY city")
    assert reply.table.num_rows == 0
    assert any("are not shown" in note for note in reply.notes)


def test_intervals_are_of_the_noise_alone_where_something_may_be_cut(shop: Service) -> None:
    session = shop.session("analyst")
    assert not session.execute("SELECT COUNT(*) FROM customers").noise_alone
    assert session.execute("SELECT COUNT(*) FROM orders").noise_alone
    assert session.execute("SELECT AVG(age) FROM customers").noise_alone
