"""The guarantee of an account's queries under each composition, and the guarantee for groups.

For reports only. Advanced composition and conversions after the fact are no privacy filters: they
state what would hold if the queries had been chosen beforehand, so nothing is admitted because of
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.ledger.accounts import Account
from dpsql.ledger.balance import Balance
from dpsql.ledger.chain import Record
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.ledger.states import State
from dpsql.privacy.accounting import epsilon_of_zcdp

USUAL_DELTA = Fraction(1, 10**6)
"""The delta at which an account without delta is compared."""
GROUPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Composed:
    """The guarantee of all queries of an account together, by one kind of composition."""

    name: str
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Promise:
    """The guarantee for ``size`` units together. A delta of 1 guarantees nothing."""

    size: int
    epsilon: float
    delta: float


def charges(records: Iterable[Record]) -> dict[str, list[Charge]]:
    """Every charge that counts as spent, by account."""
    found: dict[str, list[Charge]] = {}
    holds: dict[int, tuple[list[str], Charge]] = {}
    for record in records:
        content = record.content
        if "charge" in content:
            holds[record.hold] = content["accounts"], Charge(*content["charge"])
        elif content.get("state") == State.CANCELLED:
            holds.pop(record.hold, None)
        for account, numbers in content.get("added", {}).items():
            found.setdefault(account, []).append(Charge(*numbers))
    for accounts, charge in holds.values():
        for account in accounts:
            found.setdefault(account, []).append(charge)
    return found


def compare(account: Account, spent: Sequence[Charge]) -> tuple[Composed, ...]:
    """Basic, advanced and zCDP composition of an account's charges, at the account's delta.

    Claim: each would be a guarantee of the queries in ``spent`` if they had been fixed beforehand.
    Assumes: each charge is a guarantee of its query.
    Argument: basic composition; Kairouz, Oh, Viswanath 2015, theorem 3.5, and never more than
        basic; approximate zCDP with the tight conversion. Printed numbers are rounded up.
    """
    total = sum(spent, Charge())
    basic = Composed("basic", _up(Fraction(total.epsilon, NANO)), _up(Fraction(total.delta, ATTO)))
    room = Fraction(account.delta, ATTO) or USUAL_DELTA
    advanced = _advanced(spent, room - Fraction(total.delta, ATTO), basic)
    left = room - Fraction(total.threshold, ATTO)
    zcdp = basic
    if total.rho and left > 0:
        zcdp = Composed("zcdp", _up(epsilon_of_zcdp(Fraction(total.rho, NANO), left)), _up(room))
    return basic, advanced, Composed("zcdp", zcdp.epsilon, zcdp.delta)


def _advanced(spent: Sequence[Charge], slack: Fraction, basic: Composed) -> Composed:
    epsilons = [charge.epsilon / NANO for charge in spent]
    if slack <= 0:
        return Composed("advanced", basic.epsilon, basic.delta)
    mean = sum(e * math.tanh(e / 2) for e in epsilons)
    spread = math.sqrt(2 * math.log(1 / float(slack)) * sum(e * e for e in epsilons))
    epsilon = _up(Fraction(mean + spread))
    if epsilon >= basic.epsilon:
        return Composed("advanced", basic.epsilon, basic.delta)
    return Composed("advanced", epsilon, _up(Fraction(basic.delta) + slack))


def promises(balance: Balance, sizes: Sequence[int] = GROUPS) -> tuple[Promise, ...]:
    """The guarantee that the spending so far gives to groups of units of these sizes.

    Claim: the transcripts on two databases that differ in ``size`` units are
        (epsilon, delta)-indistinguishable.
    Assumes: each charge is a guarantee for databases that differ in one unit.
    Argument: the group property of (epsilon, delta)-DP (Dwork and Roth 2014, theorem 2.2 and its
        remark); where every step is zCDP without an approximation, k units have k**2 rho (Bun and
        Steinke 2016, proposition 1.9).
    """
    return tuple(min(_promises(balance, k), key=lambda p: (p.delta >= 1, p.epsilon)) for k in sizes)


def _promises(balance: Balance, size: int) -> Iterator[Promise]:
    spent = balance.spent
    pairs = {balance.guarantee, (Fraction(spent.epsilon, NANO), Fraction(spent.delta, ATTO))}
    for epsilon, delta in sorted(pairs):
        yield Promise(size, _up(size * epsilon), _group_delta(float(epsilon), float(delta), size))
    room = Fraction(balance.account.delta // 4, ATTO)
    if spent.rho and not spent.threshold and room > 0:
        rho = Fraction(spent.rho, NANO) * size**2
        yield Promise(size, _up(epsilon_of_zcdp(rho, room)), _up(room))


def _group_delta(epsilon: float, delta: float, size: int) -> float:
    """``delta`` times 1 + e^epsilon + .. + e^((size - 1) epsilon), at most 1."""
    if delta == 0:
        return 0.0
    exponents = [math.log(delta) + i * epsilon for i in range(size)]
    if max(exponents) > 0:
        return 1.0
    return min(1.0, _up(Fraction(math.fsum(map(math.exp, exponents)))))


def _up(value: Fraction) -> float:
    """A double that is not below ``value``, with a margin for earlier rounding errors."""
    return math.nextafter(float(value) * (1 + 1e-12), math.inf) if value else 0.0
