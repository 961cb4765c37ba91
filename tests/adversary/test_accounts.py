"""Attacks on accounts and doors find nothing, and each of them sees what it looks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adversary import accounts, doors
from tests.adversary.books import NANO
from tests.adversary.faces.servers import Servers
from tests.adversary.model import Charge, Finding

ATTO = 10**18
Attack = Callable[[Path], Iterator[Finding]]


def words(found: Iterator[Finding]) -> list[str]:
    return [each.meaning for each in found]


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(a, marks=[pytest.mark.slow] if a is accounts.stopped else [], id=a.__name__)
        for a in accounts.ATTACKS
    ],
)
def test_no_account_gives_more_than_it_has(attack: Attack, tmp_path: Path) -> None:
    assert words(attack(tmp_path / "place")) == []


def test_who_knocks_stays_outside(tmp_path: Path) -> None:
    with Servers() as servers:
        assert words(doors.knock(tmp_path / "doors", servers)) == []
        assert words(doors.wait(tmp_path / "waits", servers)) == []


def test_an_offer_of_channel_binding_is_not_struck_out(tmp_path: Path) -> None:
    with Servers() as servers:
        assert words(doors.encrypted(tmp_path, servers)) == []


def charge(epsilon: float, delta: float, *events: str) -> Charge:
    return Charge(0, "committed", round(epsilon * NANO), round(delta * ATTO), 0, 0, events)


GAUSSIAN = '{"event": "gaussian", "l2_squared": "1", "variance": "25"}'
LAPLACE = '{"event": "laplace", "l1": "1", "scale": "1"}'


@pytest.mark.parametrize(("kept", "wrong"), [
    ([charge(1, 0, LAPLACE)] * 6, False),
    ([charge(1, 0, LAPLACE)] * 7, True),
    ([charge(7, 1e-6, GAUSSIAN)], False),  # zCDP adds it up to less
    ([charge(7, 1e-6, GAUSSIAN)] * 60, True),
    ([charge(1, 2e-6, '{"event": "threshold", "delta": "2e-6"}')], True),
])  # fmt: skip
def test_what_an_account_gave_is_added_up(kept: list[Charge], wrong: bool) -> None:
    assert bool(accounts.overspent(kept, 6.0, 1e-6)) == wrong


def test_an_account_that_does_not_pay_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    free = {"the dataset": 0.0, "role": 1.0, "session": 1.0}
    answers = iter([dict.fromkeys(free, 0.0), free])
    monkeypatch.setattr(accounts, "spent", lambda _: next(answers))
    assert words(accounts.every_account_pays(tmp_path)) == ["an account does not pay"]


def test_answers_without_a_ledger_and_with_an_old_one_are_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(accounts, "ask", lambda *_: [(1,)])
    assert words(accounts.unwritable(tmp_path / "one")) == [
        "an answer leaves while the ledger cannot be written"
    ]
    monkeypatch.setattr(accounts.dpsql, "connect", lambda *_, **__: Open())
    assert words(accounts.put_back(tmp_path / "two")) == ["an older copy of the ledger is taken"]


class Open:
    """A connection that only closes."""

    def close(self) -> None:
        """Nothing is open."""


def test_noise_that_repeats_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(accounts, "ASKED", "print(17)")
    assert words(accounts.afresh(tmp_path)) == ["noise is the same in two processes"]


def test_a_month_that_is_a_day_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(accounts, "answered_at", lambda *_: True)
    assert words(accounts.months(tmp_path)) == ["a month's budget is there at the wrong time"]


def test_log_ins_that_succeed_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    world = accounts.shop.shop()
    monkeypatch.setattr(doors, "enters", lambda *_: True)
    server: Any = None
    assert len(words(doors.passwords(server, world))) == 6
    assert words(doors.downgrade(server, world)) == [
        "an offer of channel binding is struck out unnoticed"
    ]


def test_a_changed_proof_is_really_another_one() -> None:
    offer = "r={nonce}x,s=c2FsdA==,i=4096"
    for change, longer in ((bytes, 0), (lambda proof: proof + b"\0", 1)):
        exchange = doors.Wrong("right", change)
        first = exchange.first()
        nonce = first.rpartition("r=")[2]
        said = exchange.final(offer.format(nonce=nonce))
        proof = said.rpartition(",p=")[2]
        assert len(doors.base64.b64decode(proof)) == 32 + longer
    assert doors.Wrong("right", flag="y").first().startswith("y,,")
