"""What is said to be left is looked up again when somebody spent, and when it has grown old."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.privacy.cost import Cost
from dpsql.serve import remaining
from dpsql.serve.remaining import Balances, describe_charge, describe_left, describe_recall
from dpsql.service import Remaining

WHO = ("analyst", "session")


class World:
    """A clock that tests turn, and a ledger that counts how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked, self.left = 1_000.0, 0, Fraction(3)
        monkeypatch.setattr(remaining.time, "monotonic", lambda: self.now)
        self.balances = Balances()

    def ask(self) -> list[Remaining]:
        self.asked += 1
        return [account(self.left)]

    def look(self, who: tuple[str, ...] = WHO) -> str:
        return self.balances.look(who, self.ask)


def account(left: Fraction, delta: Fraction = Fraction(0)) -> Remaining:
    spent = Fraction(5) - left
    return Remaining(
        "dataset", "dataset", "", False, Fraction(5), delta, spent, delta / 2, left, delta / 2, None
    )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_it_grows_old_within_two_seconds(world: World) -> None:
    """Another process may have spent: what is known for longer would be said of a ledger long past."""
    assert world.look() == "dataset: epsilon 3 of 5"
    world.left = Fraction(1)
    world.now += 1.9
    assert world.look() == "dataset: epsilon 3 of 5"
    assert world.asked == 1
    world.now += 0.2
    assert world.balances.find(WHO) is None
    assert world.look() == "dataset: epsilon 1 of 5"
    world.now += 1.9
    assert world.look() == "dataset: epsilon 1 of 5"
    assert world.asked == 2


def test_whoever_spends_makes_all_of_it_old(world: World) -> None:
    world.look()
    world.look(("other", ""))
    world.balances.note_spending()
    assert world.balances.generation == 1
    world.left = Fraction(2)
    assert world.look() == world.look(("other", "")) == "dataset: epsilon 2 of 5"
    assert world.asked == 4


def test_what_was_asked_before_somebody_spent_is_not_kept(world: World) -> None:
    """A charge that is noted while the ledger is asked may not be in its answer."""

    def ask() -> list[Remaining]:
        world.balances.note_spending()
        return world.ask()

    world.balances.look(WHO, ask)
    assert world.balances.find(WHO) is None


def test_sessions_do_not_read_of_each_other(world: World) -> None:
    world.look()
    assert world.balances.find(("analyst", "another")) is None


def test_how_it_is_said() -> None:
    both = [account(Fraction(1, 3)), account(Fraction(2), Fraction(1, 10**6))]
    left = describe_left(both)
    assert left == ("dataset: epsilon 0.3333 of 5; dataset: epsilon 2 of 5, delta 5e-07 of 1e-06")
    assert describe_charge(Cost(Fraction(1, 10)), left) == f"cost: epsilon 0.1; left in {left}"
    with_delta = Cost(Fraction(1, 10), Fraction(1, 10**8))
    assert describe_charge(with_delta, left) == f"cost: epsilon 0.1, delta 1e-08; left in {left}"
    in_rho = replace(both[1], rho=Fraction(3, 2), left_rho=Fraction(1, 3), in_rho=True)
    assert describe_left([in_rho]) == "dataset: rho 0.3333 of 1.5, delta 5e-07 of 1e-06"
    dear = replace(with_delta, rho=Fraction(1, 8))
    assert describe_charge(dear, "x", in_rho=True) == (
        "cost: epsilon 0.1, delta 1e-08, rho 0.125; left in x"
    )
    assert describe_recall(left).endswith(f"costs nothing; left in {left}")
