"""Estimates how many aggregates a role may still ask of a table, as Snowflake's estimate does.

Claim: the estimate depends on the policy and the ledger only. It reads no data and spends nothing.
Assumes: nothing of the data. The number is an estimate: it supposes that nobody else spends
    meanwhile, and that each query has one aggregate.
Argument: each aggregate is taken to cost the most that one query may cost. The account that admits
    the fewest of them gives the number. The true number may be larger: an answer that is recalled
    costs nothing, and several aggregates in one query share its price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import Charge
from dpsql.policy.model import Policy, Window
from dpsql.privacy.cost import Cost

MOST = 10**9
"""The largest number that is shown."""
_WINDOWS: dict[Window | None, str] = {
    None: "NEVER", "day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY",
}  # fmt: skip


def estimates(
    policy: Policy,
    role: str,
    tables: Iterable[str],
    cost: Cost,
    balances: Callable[[str], Sequence[Balance]],
) -> Iterator[Sequence[object]]:
    """A row for each private table: its name, the number of aggregates, the budget they leave."""
    price = Charge.of(cost)
    for name in sorted(tables):
        if not policy.tables[name].public:
            found = [(affordable(b, price), i, b) for i, b in enumerate(balances(name))]
            number, _, tightest = min(found, key=lambda f: f[:2])
            limit, spent = tightest.total[0], tightest.guarantee[0]
            window = _WINDOWS[_per(policy, role, tightest)]
            yield name, number, float(limit), window, float(spent)


def affordable(balance: Balance, price: Charge) -> int:
    """How many charges of this price the account admits, one after the other."""

    def admitted(count: int) -> bool:
        dear = Charge(*(count * number for number in price.numbers))
        return balance.admits(dear)

    low, high = 0, MOST
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if admitted(middle) else (low, middle - 1)
    return low


def _per(policy: Policy, role: str, balance: Balance) -> Window | None:
    """The window after which the account is renewed; None if it never is."""
    known = policy.roles[role]
    match balance.account.holder:
        case "dataset":
            return policy.dataset.per
        case "table":
            own = policy.tables[balance.account.table].account
            return None if own is None else own.per
        case "role":
            return known.allowance.per
        case _:
            return known.session.per
