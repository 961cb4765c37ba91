"""Typical questions are made from names and types, and each of them is answered."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest
from support.forecasts import opened, write_rides
from support.shop import FIXTURES

from dpsql.forecast.questions import (
    few_questions,
    quote_identifier,
    sample_questions,
    typical_questions,
)
from dpsql.policy.load import load
from dpsql.policy.model import Column, Policy
from dpsql.policy.types import Kind, Scalar

KINDS = ["rows", "times", "sum", "listed", "mean"]


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return load(write_rides(tmp_path))


def table_of(policy: Policy, **columns: Column) -> Policy:
    rides = replace(policy.tables["rides"], columns=columns, unit_columns=("rider",))
    return replace(policy, tables={"rides": rides})


def column(name: str, declared: str, ends: tuple[Scalar, Scalar] | None = None) -> Column:
    kinds = {"date": Kind.DATE, "timestamp": Kind.TIMESTAMP, "boolean": Kind.BOOLEAN}
    return Column(name, declared, kinds.get(declared, Kind.INTEGER), range=ends)


def test_each_private_table_is_asked_about_in_five_ways(policy: Policy) -> None:
    found = typical_questions(policy, "analyst")
    assert [question.kind for question in found] == KINDS
    assert {question.table for question in found} == {"rides"}
    assert [question.about for question in found] == [
        "number of rows", "rows by month of day", "sum of minutes", "rows by kind",
        "mean of minutes by kind",
    ]  # fmt: skip
    assert [question.kind for question in few_questions(policy, "analyst")] == [
        "rows", "times", "mean",
    ]  # fmt: skip
    assert [q.kind for q in sample_questions(policy, "analyst")] == ["rows", "sum", "listed"]


def test_tables_with_several_rows_of_a_unit_come_first_and_hidden_ones_not_at_all() -> None:
    shop = load(FIXTURES / "policies" / "shop.yaml")
    tables = [question.table for question in typical_questions(shop, next(iter(shop.roles)))]
    limits = [shop.tables[name].max_rows_per_unit > 1 for name in tables]
    assert limits == sorted(limits, reverse=True)
    assert len(set(limits)) == 2
    role = next(iter(shop.roles.values()))
    hidden = replace(shop, roles={role.name: replace(role, tables=frozenset({"customers"}))})
    assert {q.table for q in typical_questions(hidden, role.name)} == {"customers"}


def test_every_typical_question_is_answered(tmp_path: Path) -> None:
    with opened(write_rides(tmp_path)) as (planner, forecaster):
        questions = typical_questions(planner.policy, "analyst")
        assert [forecaster.forecast(planner.policy, q).refused for q in questions] == [""] * 5


@pytest.mark.parametrize(
    ("declared", "ends", "step"),
    [
        ("date", (date(2025, 1, 1), date(2025, 1, 3)), "day"),
        ("timestamp", (datetime(2025, 1, 1), datetime(2025, 1, 3)), "hour"),  # noqa: DTZ001
        ("date", (date(2025, 1, 1), date(2025, 3, 1)), "day"),
        ("date", (date(2020, 1, 1), date(2025, 3, 1)), "month"),
        ("date", (date(1920, 1, 1), date(2025, 3, 1)), "year"),
        ("date", None, None),
        ("integer", (1, 5), None),
    ],
)
def test_the_step_of_time_follows_from_the_range(
    policy: Policy, declared: str, ends: tuple[Scalar, Scalar] | None, step: str | None
) -> None:
    found = typical_questions(table_of(policy, at=column("at", declared, ends)), "analyst")
    said = [q.about for q in found if q.kind == "times"]
    assert said == ([] if step is None else [f"rows by {step} of at"])


def test_a_table_without_values_is_counted_only(policy: Policy) -> None:
    plain = typical_questions(table_of(policy, rider=column("rider", "bigint", (1, 9))), "analyst")
    assert [q.kind for q in plain] == ["rows"]
    value = typical_questions(table_of(policy, v=column("v", "bigint", (1, 9))), "analyst")
    assert [q.about for q in value] == ["number of rows", "sum of v", "mean of v"]
    truth = typical_questions(table_of(policy, paid=column("paid", "boolean")), "analyst")
    assert [q.about for q in truth] == ["number of rows", "rows by paid"]
    summed = few_questions(table_of(policy, v=column("v", "bigint", (1, 9))), "analyst")
    assert [q.kind for q in summed] == ["rows", "mean"]


def test_names_are_quoted_where_they_must_be() -> None:
    assert [quote_identifier(n) for n in ("orders", "Orders", 'a"b', "größe")] == [
        "orders", '"Orders"', '"a""b"', '"größe"',
    ]  # fmt: skip
