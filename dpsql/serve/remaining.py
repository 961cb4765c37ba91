"""The notices after an answer: its cost, and the balances of the accounts.

Balances are cached, and looked up again after a charge.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpsql.privacy.cost import Cost
from dpsql.service import Remaining

FRESH_SECONDS = 2.0
"""The time for which a balance is cached, since other processes may spend from the same account."""


class Balances:
    """The balances of each session's accounts, cached until someone spends."""

    def __init__(self) -> None:
        """The cache is empty at first."""
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], tuple[float, int, str]] = {}
        self._spent = 0

    @property
    def generation(self) -> int:
        """The number of charges since the endpoint began."""
        return self._spent

    def note_spending(self) -> None:
        """Note that someone was charged, so that no cached balance is used any more."""
        with self._lock:
            self._spent += 1

    def find(self, who: tuple[str, ...]) -> str | None:
        """The balances in words, if they are cached and new enough."""
        found = self._known.get(who)
        if found is None or found[1] != self._spent:
            return None
        return found[2] if time.monotonic() - found[0] < FRESH_SECONDS else None

    def look(self, who: tuple[str, ...], ask: Callable[[], Sequence[Remaining]]) -> str:
        """The balances in words, from the cache or else from ``ask``."""
        found = self.find(who)
        if found is None:
            generation = self._spent
            found = describe_left(ask())
            with self._lock:
                if len(self._known) > 10_000:
                    self._known.clear()
                self._known[who] = time.monotonic(), generation, found
        return found


def describe_left(remaining: Sequence[Remaining]) -> str:
    """The balance of each account, in words."""
    parts = []
    for account in remaining:
        words = f"{account.account}: epsilon {_n(account.left_epsilon)} of {_n(account.epsilon)}"
        if account.in_rho and account.rho is not None and account.left_rho is not None:
            words = f"{account.account}: rho {_n(account.left_rho)} of {_n(account.rho)}"
        if account.delta:
            words += f", delta {_n(account.left_delta)} of {_n(account.delta)}"
        parts.append(words)
    return "; ".join(parts)


def describe_charge(cost: Cost, left_over: str, *, in_rho: bool = False) -> str:
    """The notice after an answer that was charged."""
    delta = f", delta {_n(cost.delta)}" if cost.delta else ""
    rho = f", rho {_n(cost.rho)}" if in_rho else ""
    return f"cost: epsilon {_n(cost.epsilon)}{delta}{rho}; left in {left_over}"


def describe_recall(left_over: str) -> str:
    """The notice after an answer that was stored, and so costs nothing."""
    return f"recalled: this answer was stored and costs nothing; left in {left_over}"


def _n(number: Fraction) -> str:
    return f"{float(number):.4g}"
