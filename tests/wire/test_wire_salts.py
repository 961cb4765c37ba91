"""What a client sees of a name before it proves anything: the same whether or not it exists, for ever."""

from __future__ import annotations

import secrets
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from endpoint import PASSWORD, ROLE, generous
from support.services import policy_file

from dpsql.ledger.tables import TableLedger
from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.databases import Databases
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.pgwire.scram import Verifier
from dpsql.serve.salts import Salts, looks
from dpsql.service import Service

NAMES = (ROLE, "pure", "ann", "nobody", "Zoë", "", *(f"name{i}" for i in range(20)))
SECRET = bytes(range(32))


def _seen(paths: list[Path]) -> dict[tuple[str, str], tuple[bytes, int]]:
    """What an endpoint that was started just now shows of every name in several databases."""
    services = [Service.open(path) for path in paths]
    try:
        houses = [ServiceEndpoint(service, role_catalog) for service in services]
        house = houses[0] if len(houses) == 1 else Databases(houses)
        return {
            (name, database): (seen.salt, seen.iterations)
            for database in ("shop", "clinic", "elsewhere", "anywhere")
            for name in NAMES
            if (seen := house.at(database).verifier(name)[0])
        }
    finally:
        for service in services:
            service.close()


@pytest.fixture
def paths() -> list[Path]:
    """Two policies: a role with a password in clear, and a user with a salt of another length."""
    shop = policy_file("shop", "shop", lambda text: "database: shop\n" + generous(text))
    users.write(
        shop.with_name("policy.users"),
        [
            users.with_password("ann", ROLE, "x"),
            users.User("bob", ROLE, Verifier.of("x", b"twelve bytes", 9000)),
        ],
    )
    clinic = policy_file("shop", "shop", lambda text: "database: clinic\n" + generous(text))
    return [shop, clinic]


def test_a_restart_does_not_tell_which_names_exist(paths: list[Path]) -> None:
    for served in (paths[:1], paths):
        assert _seen(served) == _seen(served)


def test_a_secret_of_each_start_would_be_noticed(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableLedger, "secret", lambda _: secrets.token_bytes(32))
    before, after = _seen(paths), _seen(paths)
    same = {key for key in before if before[key] == after[key]}
    assert ("ann", "shop") in same
    assert ("nobody", "shop") not in same


def test_unknown_names_have_salts_as_known_ones_have(paths: list[Path]) -> None:
    seen = [look for (_, database), look in _seen(paths).items() if database == "shop"]
    assert {(n, len(s)) for s, n in seen} == {(4096, 16), (20000, 16), (9000, 12)}
    assert len({salt for salt, _ in seen}) == len(seen), "each name has its own"


def test_policies_on_one_ledger_have_other_salts() -> None:
    assert Salts(SECRET, "shop").salt("nobody") != Salts(SECRET, "clinic").salt("nobody")


def test_users_who_come_change_the_form_of_few_names() -> None:
    """And of none while all verifiers have one form."""
    salts, names = Salts(SECRET, "shop"), [f"name{i}" for i in range(500)]

    def forms(counts: dict[tuple[int, int], int]) -> list[tuple[int, int]]:
        return [salts.look(name, counts) for name in names]

    old, new = (4096, 16), (20000, 16)
    before, after = forms({old: 30, new: 10}), forms({old: 30, new: 11})
    moved = Counter(zip(before, after, strict=True))
    assert Counter(before)[old] == pytest.approx(375, abs=40)
    assert moved[new, old] == 0
    assert 0 < moved[old, new] < 20
    assert set(forms({old: 1})) == set(forms({old: 9})) == {old}
    assert set(looks([])) == {old}


def test_a_verifier_of_another_length_is_among_the_forms() -> None:
    one = Verifier.of(PASSWORD, b"salt", 7)
    assert looks(u.verifier for u in [SimpleNamespace(verifier=one)] * 2) == {(7, 4): 2}
