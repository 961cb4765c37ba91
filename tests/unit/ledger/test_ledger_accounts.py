"""Identities and limits of accounts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from dpsql.diagnostics.refusal import Refused
from dpsql.ledger.accounts import accounts_for, window_of
from dpsql.policy.model import Allowance, DataSource, Policy, QueryLimit, Role, Table

NOW = datetime(2026, 11, 18, 14, tzinfo=UTC)


def allowance(epsilon, delta="0", composition="basic", per=None):
    return Allowance(Fraction(epsilon), Fraction(delta), composition, per)


def policy(*names: str, **allowances: Allowance) -> Policy:
    a = {
        "dataset": allowance(20, "1e-5", "zcdp"),
        "role": allowance(5, "1e-6", "zcdp", "month"),
        "session": allowance(1, "1e-7", "zcdp", "day"),
    } | allowances
    limit = QueryLimit(Fraction(1, 10), Fraction(0))
    roles = {name: Role(name, a["role"], a["session"], limit) for name in names or ("analyst",)}
    return Policy(
        path=Path("/srv/shop.yaml"),
        source=DataSource("duckdb", Path("/srv/shop.duckdb")),
        data_version="1",
        units={},
        tables={},
        dataset=a["dataset"],
        roles=roles,
        ledger=Path("/srv/shop.ledger"),
        version="abc",
        answers_key="abc",
    )


def test_dataset_role_and_session_in_this_order():
    accounts = accounts_for(policy(), "analyst", now=NOW)
    assert [account.id for account in accounts] == [
        "shop/dataset",
        "shop/role:analyst@2026-11",
        "shop/session:analyst/default@2026-11-18",
    ]
    assert [account.title for account in accounts] == [
        "the dataset",
        'role "analyst"',
        'session "default" of role "analyst"',
    ]
    assert {account.dataset for account in accounts} == {"shop"}
    assert [account.renews for account in accounts] == [
        None,
        datetime(2026, 12, 1, tzinfo=UTC),
        datetime(2026, 11, 19, tzinfo=UTC),
    ]


def test_limits_are_rounded_down():
    account = accounts_for(
        policy(dataset=allowance(Fraction(1, 3), Fraction(2, 3), "zcdp")), "analyst", now=NOW
    )[0]
    assert (account.epsilon, account.delta) == (333_333_333, 666_666_666_666_666_666)


@pytest.mark.parametrize(
    ("composition", "delta", "zcdp"),
    [("zcdp", "1e-6", True), ("zcdp", "0", False), ("basic", "1e-6", False)],
)
def test_charges_compose_in_rho_only_where_there_is_delta(composition, delta, zcdp):
    given = policy(dataset=allowance(1, delta, composition))
    assert accounts_for(given, "analyst", now=NOW)[0].zcdp is zcdp


def test_a_change_of_limits_keeps_the_identity():
    before = accounts_for(policy(), "analyst", now=NOW)
    after = accounts_for(policy(dataset=allowance(99)), "analyst", now=NOW)
    assert [a.id for a in before] == [a.id for a in after]
    assert before != after


def test_no_names_collide():
    names = ["a", "b", "a/b", "a%2Fb", "a@2026-11", "role:a", "a:b", "é", "A", "a b", "../a"]
    given = policy(*names, role=allowance(1), session=allowance(1))
    monthly = policy(*names, session=allowance(1, per="month"))
    pairs = list(itertools.product(names, names))
    for each in (given, monthly):
        ids = [
            account.id
            for role, session in pairs
            for account in accounts_for(each, role, session, now=NOW)[1:]
        ]
        assert len(set(ids)) == len(names) + len(pairs)
    assert accounts_for(given, "a@2026-11", now=NOW)[1].id != (
        accounts_for(monthly, "a", now=NOW)[1].id
    )


@pytest.mark.parametrize(
    ("per", "now", "window", "renews"),
    [
        ("day", (2026, 12, 31, 23, 59), "2026-12-31", (2027, 1, 1)),
        ("week", (2027, 1, 3, 23), "2026-W53", (2027, 1, 4)),
        ("week", (2027, 1, 4), "2027-W01", (2027, 1, 11)),
        ("month", (2026, 1, 31), "2026-01", (2026, 2, 1)),
        ("month", (2026, 12, 31), "2026-12", (2027, 1, 1)),
        ("month", (2028, 2, 29), "2028-02", (2028, 3, 1)),
        ("year", (2028, 2, 29), "2028", (2029, 1, 1)),
    ],
)
def test_windows_follow_the_calendar(per, now, window, renews):
    assert window_of(per, datetime(*now, tzinfo=UTC)) == (window, datetime(*renews, tzinfo=UTC))


def test_windows_follow_the_time_zone():
    zone = ZoneInfo("Pacific/Auckland")
    late = datetime(2026, 11, 30, 12, tzinfo=UTC)
    there = replace(policy(), time_zone="Pacific/Auckland")
    here = accounts_for(there, "analyst", now=late)[1]
    assert here.id == "shop/role:analyst@2026-12"
    assert here.renews == datetime(2027, 1, 1, tzinfo=zone)
    assert accounts_for(policy(), "analyst", now=late)[1].id == "shop/role:analyst@2026-11"


def test_tables_with_an_account_of_their_own_are_debited_too():
    orders = Table("or ders", {}, account=allowance(2, "1e-7", "zcdp", "week"))
    wide = replace(policy(), tables={"or ders": orders, "visits": Table("visits", {})})
    found = accounts_for(wide, "analyst", tables=["visits", "or ders", "or ders"], now=NOW)
    assert [account.holder for account in found] == ["dataset", "table", "role", "session"]
    assert found[1].id == "shop/table:or%20ders@2026-W47"
    assert found[1].title == 'table "or ders"'
    assert found[1].role == ""
    assert found[0].dataset == found[1].dataset


def test_a_time_without_zone_is_nobodys_window():
    with pytest.raises(ValueError, match="time zone"):
        window_of("day", datetime(2026, 1, 1))  # noqa: DTZ001


def test_unknown_roles_and_unusable_session_names_are_refused():
    with pytest.raises(Refused, match=r"DP602.*nobody"):
        accounts_for(policy(), "nobody", now=NOW)
    for name in ("", "  ", "x" * 64):
        with pytest.raises(Refused, match=r"DP401.*session name"):
            accounts_for(policy(), "analyst", name, now=NOW)
