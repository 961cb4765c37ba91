"""Variants of a policy: which keys are tried, with which values, and what they change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from support.forecasts import POLICY, write_rides

from dpsql.forecast.settings import (
    Knob,
    Wanted,
    composes_in_rho,
    list_knobs,
    scale_range,
)
from dpsql.policy.load import load
from dpsql.policy.model import Column, Policy, QueryLimit, QueryShare
from dpsql.policy.types import Kind


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return load(write_rides(tmp_path))


def shared(tmp_path: Path, query: str = "{share: 5%}") -> Policy:
    return load(write_rides(tmp_path, policy=POLICY.replace("{epsilon: 1}", query)))


def values(knobs: dict[str, Knob]) -> dict[str, list[str]]:
    return {key: [variant.value for variant in knob.variants] for key, knob in knobs.items()}


def knobs(policy: Policy, **wanted: tuple[object, ...]) -> dict[str, Knob]:
    given = Wanted(**wanted)  # type: ignore[arg-type]
    return {knob.key: knob for knob in list_knobs(policy, "analyst", given)}


def test_values_around_those_of_the_policy_are_tried(policy: Policy) -> None:
    assert values(knobs(policy)) == {
        "query.epsilon": ["0.25", "0.5", "1", "2", "4"],
        "max_groups_per_unit": ["1", "2", "4", "8", "16"],
        "rides: max_rows_per_unit": ["2", "5", "10", "20", "40"],
        "rides.minutes: range": ["0 .. 50", "0 .. 100", "0 .. 200"],
    }
    for knob in knobs(policy).values():
        assert [v.policy == policy for v in knob.variants] == [v.own for v in knob.variants]
        assert sum(v.own for v in knob.variants) == 1


def test_the_owner_chooses_the_values(policy: Policy) -> None:
    found = knobs(
        policy, epsilons=(Fraction(1, 10), Fraction(1)), rows=(3, 3, 4), groups=(7,),
        ranges=(Fraction(3),),
    )  # fmt: skip
    assert values(found) == {
        "query.epsilon": ["0.1", "1"],
        "max_groups_per_unit": ["7"],
        "rides: max_rows_per_unit": ["3", "4"],
        "rides.minutes: range": ["0 .. 300"],
    }
    tried = found["query.epsilon"].variants[0].policy.roles["analyst"].query
    assert tried == QueryLimit(Fraction(1, 10), policy.roles["analyst"].query.delta)
    assert (
        found["rides: max_rows_per_unit"].variants[1].policy.tables["rides"].max_rows_per_unit == 4
    )
    wide = found["rides.minutes: range"].variants[0].policy.tables["rides"].columns["minutes"]
    assert wide.range == (0, 300)


def test_a_share_is_varied_where_the_policy_has_one(tmp_path: Path) -> None:
    policy = shared(tmp_path)
    found = knobs(policy)["query.share"]
    assert [v.value for v in found.variants] == ["1.25%", "2.5%", "5%", "10%", "20%"]
    delta = policy.roles["analyst"].session.delta
    for variant in found.variants:
        query = variant.policy.roles["analyst"].query
        assert isinstance(query, QueryShare)
        assert query.delta == query.share * delta
    both = knobs(policy, shares=(Fraction(1, 2),), epsilons=(Fraction(2),))
    assert list(both)[:2] == ["query.share", "query.epsilon"]
    assert not any(v.own for v in both["query.epsilon"].variants)
    assert "query.share" not in knobs(policy, epsilons=(Fraction(2),))


def test_a_delta_that_the_owner_wrote_stays(tmp_path: Path) -> None:
    policy = shared(tmp_path, "{share: 50%, delta: 1e-9}")
    tried = knobs(policy)["query.share"].variants
    assert [v.value for v in tried] == ["12.5%", "25%", "50%", "100%"]
    assert {v.policy.roles["analyst"].query.delta for v in tried} == {Fraction(1, 10**9)}


def test_shares_need_accounts_in_rho(policy: Policy) -> None:
    assert composes_in_rho(policy, "analyst")
    role = policy.roles["analyst"]
    basic = replace(role, session=replace(role.session, composition="basic"))
    assert not composes_in_rho(replace(policy, roles={"analyst": basic}), "analyst")


def test_a_table_with_one_row_of_a_unit_has_no_limit_to_try(policy: Policy) -> None:
    """With 1, a policy declares that the data has one row, and that is not enforced."""
    rides = replace(policy.tables["rides"], max_rows_per_unit=1)
    one = replace(policy, tables={**policy.tables, "rides": rides})
    assert "rides: max_rows_per_unit" not in knobs(one)
    two = replace(policy, tables={"rides": replace(rides, max_rows_per_unit=3)})
    assert values(knobs(two))["rides: max_rows_per_unit"] == ["2", "3", "6", "12"]


def test_only_questions_that_may_depend_on_a_key_are_tried(policy: Policy) -> None:
    found = knobs(policy)
    limit, ends = found["rides: max_rows_per_unit"], found["rides.minutes: range"]
    assert found["query.epsilon"].touches((), "SELECT 1")
    assert limit.touches({"rides"}, "SELECT 1")
    assert not limit.touches({"visits"}, "SELECT minutes")
    assert ends.touches({"rides"}, "SELECT SUM(Minutes) FROM rides")
    assert not ends.touches({"rides"}, "SELECT COUNT(*) FROM rides")


def test_ranges_grow_from_what_is_nearest_to_zero(policy: Policy) -> None:
    whole = Column("v", "integer", Kind.INTEGER, range=(18, 100))
    assert scale_range(whole, Fraction(1, 2)) == (18, 59)
    both = Column("v", "double", Kind.DOUBLE, range=(Fraction(-60), Fraction(600)))
    assert scale_range(both, Fraction(1, 2)) == (-30, 300)
    below = replace(both, range=(Fraction(-9), Fraction(-1)))
    assert scale_range(below, Fraction(2)) == (-17, -1)
    rides = policy.tables["rides"]
    flag = replace(rides.columns["minutes"], range=(0, 1))
    tables = {"rides": replace(rides, columns={**rides.columns, "minutes": flag})}
    found = values(knobs(replace(policy, tables=tables)))["rides.minutes: range"]
    assert found == ["0 .. 1", "0 .. 2"]  # half of it would be one value
