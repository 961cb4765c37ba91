"""Clocks, accounts and costs that the ledger's tests share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from dpsql.ledger.accounts import Account
from dpsql.ledger.charge import ATTO, NANO, down
from dpsql.ledger.store import Note
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.cost import Cost

NOTE = Note("v1", "analyst", "default", "SELECT COUNT(*) FROM t")
EVENT = '{"event": "laplace", "l1": "1", "scale": "10"}'


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 18, 14, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **by: float) -> None:
        self.now += timedelta(**by)


def make_account(
    key: str = "dataset", epsilon: float | str = 1, delta: float | str = 0, **more: object
) -> Account:
    holder = key.partition(":")[0].partition("@")[0]
    return Account(
        id=f"shop/{key}",
        holder=holder,  # type: ignore[arg-type]
        role="" if holder == "dataset" else "growth",
        session="daily" if holder == "session" else "",
        epsilon=down(Fraction(epsilon), NANO),
        delta=down(Fraction(delta), ATTO),
        zcdp=Fraction(delta) > 0,
        **more,  # type: ignore[arg-type]
    )


def pure(epsilon: float | str | Fraction) -> Cost:
    epsilon = Fraction(epsilon)
    return Cost(epsilon=epsilon, rho=rho_of_pure(epsilon))
