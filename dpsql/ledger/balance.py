"""What an account has spent and has left, in numbers that people understand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.ledger import filter as rule
from dpsql.ledger.accounts import Account
from dpsql.ledger.charge import ATTO, LARGEST, NANO, Charge, up
from dpsql.privacy.accounting import epsilon_of_zcdp, rho_of_pure


@dataclass(frozen=True, slots=True)
class Balance:
    """An account and the sum of all charges to it (``spent``, as stored)."""

    account: Account
    spent: Charge
    closed: bool = False
    """Whether nothing more is admitted before the next window: see ``restore.py``."""

    def admits(self, charge: Charge) -> bool:
        """Whether the account admits this further charge."""
        return not self.closed and rule.admits(self.account, self.spent + charge)

    @property
    def total(self) -> tuple[Fraction, Fraction]:
        """The account's (epsilon, delta)."""
        return Fraction(self.account.epsilon, NANO), Fraction(self.account.delta, ATTO)

    @property
    def guarantee(self) -> tuple[Fraction, Fraction]:
        """The (epsilon, delta) of all queries so far, by the composition that gives less epsilon.

        Basic composition gives the plain sums. In a zCDP account the sum of rho converts to an
        epsilon at a quarter of the account's delta, as in the filter.
        """
        basic = Fraction(self.spent.epsilon, NANO), Fraction(self.spent.delta, ATTO)
        if rule.rho_limit(self.account) < 0 or self.spent.rho == 0:
            return basic
        quarter = rule.threshold_delta(self.account)
        converted = epsilon_of_zcdp(Fraction(self.spent.rho, NANO), Fraction(quarter, ATTO))
        return min(basic, (converted, Fraction(self.spent.threshold + quarter, ATTO)))

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """The largest epsilon that a pure query may cost now, and the largest delta of any query.

        The epsilon is never more than the total, although composition in rho would admit a single
        expensive query in an account with little epsilon and much delta. Both are zero if the
        account is closed.
        """
        if self.closed:
            return Fraction(0), Fraction(0)
        return Fraction(self._epsilon_left(), NANO), Fraction(self._delta_left(), ATTO)

    @property
    def rho(self) -> tuple[Fraction, Fraction] | None:
        """The sum of rho and its limit; None for an account that does not compose in rho."""
        limit = rule.rho_limit(self.account)
        return None if limit < 0 else (Fraction(self.spent.rho, NANO), Fraction(limit, NANO))

    @property
    def left_rho(self) -> Fraction | None:
        """The largest rho of any query now; None for an account that does not compose in rho."""
        if self.rho is None:
            return None
        spent, limit = self.rho
        return Fraction(0) if self.closed else max(limit - spent, Fraction(0))

    def _epsilon_left(self) -> int:
        basic = 0
        if self.spent.delta <= rule.basic_delta(self.account):
            basic = self.account.epsilon - self.spent.epsilon
        room = rule.rho_limit(self.account) - self.spent.rho
        if self.spent.threshold > rule.threshold_delta(self.account):
            room = 0
        low, high = max(basic, 0), min(self.account.epsilon, LARGEST - self.spent.epsilon)
        while low < high:  # low fits, nothing above high does
            middle = (low + high + 1) // 2
            if up(rho_of_pure(Fraction(middle, NANO)), NANO) <= room:
                low = middle
            else:
                high = middle - 1
        return low

    def _delta_left(self) -> int:
        left = 0
        if self.spent.epsilon <= self.account.epsilon:
            left = rule.basic_delta(self.account) - self.spent.delta
        if self.spent.rho <= rule.rho_limit(self.account):
            left = max(left, rule.threshold_delta(self.account) - self.spent.threshold)
        return max(left, 0)
