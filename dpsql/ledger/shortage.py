"""Refusals for lack of budget: which account is short, what the query costs, what is left."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction

from dpsql.diagnostics.refusal import OutOfBudget, Refusal
from dpsql.ledger import filter as rule
from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.ledger.query_cap import QueryCap
from dpsql.privacy.accounting import pure_for_rho
from dpsql.privacy.cost import Cost

_WHY = (
    "Every answer reveals a little about someone, and the owner set how much may be revealed in "
    "all. Nothing was spent, and no data was read."
)


def out_of_budget(balances: Sequence[Balance], charge: Charge) -> OutOfBudget:
    """The refusal of ``charge``, about the account with the least left that does not admit it."""
    short = [b for b in balances if not b.admits(charge)]
    tightest = min(short, key=lambda balance: balance.left)
    if tightest.closed:
        return OutOfBudget(_closed(tightest))
    quantity, costs, left, total = _what_is_short(tightest, charge)
    headline = (
        f"this query costs {quantity} {more(costs)} and {tightest.account.title} has "
        f"{less(left)} left of {less(total)}"
    )
    affordable = min(balance.left[0] for balance in balances)
    cheaper = quantity != "delta" and affordable > 0
    return OutOfBudget(
        Refusal("DP402", headline, _WHY, _instead(tightest, affordable if cheaper else None))
    )


def check_left(balances: Sequence[Balance], cost: Cost) -> None:
    """Refuse (DP402) a cost that will be charged in parts and is too much for an account in all."""
    charge = Charge.of(cost)
    if not all(b.admits(charge) for b in balances):
        raise out_of_budget(balances, charge)


def check_cap(cap: QueryCap, cost: Cost) -> None:
    """Refuse (DP403) a query that costs more than one query of the role may cost."""
    pairs = (
        ("epsilon", cost.epsilon, cap.epsilon),
        ("delta", cost.delta, cap.delta),
        ("rho", cost.rho, cap.rho),
    )
    for quantity, costs, allowed in pairs:
        if allowed is not None and costs > allowed:
            # Each of several clauses of a query has a budget of its own, so each must shrink.
            smaller = pure_for_rho(allowed * allowed / costs) if quantity == "rho" else allowed
            setting = "delta" if quantity == "delta" else "epsilon"
            raise OutOfBudget(
                Refusal(
                    "DP403",
                    f"this query costs {quantity} {more(costs)} and one query may cost "
                    f"{less(allowed)}",
                    "The owner limits what a single answer may reveal. " + _WHY,
                    f"SET dpsql.{setting} = {less(smaller)}",
                )
            )


def more(number: Fraction) -> str:
    """A number in three digits, rounded up, for costs.

    >>> more(Fraction(1, 3)), less(Fraction(1, 3)), more(Fraction(1, 10**6)), less(Fraction(5))
    ('0.334', '0.333', '1e-6', '5')
    """
    return _digits(number, ROUND_CEILING)


def less(number: Fraction) -> str:
    """A number in three digits, rounded down, for what is left."""
    return _digits(number, ROUND_FLOOR)


def _digits(number: Fraction, rounding: str) -> str:
    rounded = Context(prec=3, rounding=rounding, Emin=-999, Emax=999)
    shown = rounded.divide(number.numerator, number.denominator).normalize()
    return f"{shown:f}" if -4 <= shown.adjusted() <= 9 else f"{shown:e}"


def _what_is_short(balance: Balance, charge: Charge) -> tuple[str, Fraction, Fraction, Fraction]:
    """The quantity that is short: its name, the cost of the query, what is left, and the limit."""
    account, spent = balance.account, balance.spent
    (epsilon, delta), after = balance.total, spent + charge
    in_rho = account.zcdp and charge.delta > charge.threshold  # what is left is of a pure query
    if not in_rho and Fraction(charge.epsilon, NANO) > balance.left[0]:
        return "epsilon", Fraction(charge.epsilon, NANO), balance.left[0], epsilon
    if after.epsilon <= account.epsilon and after.delta > rule.basic_delta(account):
        room = max(rule.basic_delta(account) - spent.delta, 0)
        return "delta", Fraction(charge.delta, ATTO), Fraction(room, ATTO), delta
    if after.threshold > rule.threshold_delta(account):
        room = max(rule.threshold_delta(account) - spent.threshold, 0)
        return "delta", Fraction(charge.threshold, ATTO), Fraction(room, ATTO), delta
    limit = rule.rho_limit(account)
    room = max(limit - spent.rho, 0)
    return "rho", Fraction(charge.rho, NANO), Fraction(room, NANO), Fraction(limit, NANO)


def _closed(balance: Balance) -> Refusal:
    title = balance.account.title
    return Refusal(
        "DP402",
        f"{title} is closed: the ledger was restored from a backup",
        "What was asked between the backup and the loss of the ledger is not known, so all that "
        "could have been spent then counts as spent. Nothing was spent now, and no data was read.",
        _way_to_open(balance),
    )


def _way_to_open(balance: Balance) -> str:
    if balance.account.renews is not None:
        return _instead(balance, None)
    return (
        f"Ask the owner of the policy: {balance.account.title} has no window, so it stays closed until "
        "the policy gives it one (`per: month`). A higher limit does not open it."
    )


def _instead(balance: Balance, affordable: Fraction | None) -> str:
    renews = balance.account.renews
    if affordable is not None:
        return f"SET dpsql.epsilon = {less(affordable)}"
    if renews is not None:
        return f"Wait until {renews:%Y-%m-%d}, when {balance.account.title} is renewed."
    return f"Ask the owner of the policy to raise the limit of {balance.account.title}."
