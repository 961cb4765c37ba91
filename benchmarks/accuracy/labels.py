"""Guarantees that a question may be asked at: the accounts and the role of a policy, and what an oracle may spend."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.accuracy.oracle import Guarantee


@dataclass(frozen=True)
class Label:
    """A guarantee: the policy's ``accounts`` and ``roles``, what it allows, and bounds on coverage.

    ``covered`` is the least coverage of any question, and that of the median question.
    """

    name: str
    about: str
    accounts: str
    query: str
    guarantee: Guarantee
    covered: tuple[float, float]

    def policy(self, groups: int | None) -> str:
        """Accounts and the one role; each question has a session account of its own."""
        limit = "" if groups is None else f", max_groups_per_unit: {groups}"
        session = "" if self.name != "share" else ", session: {epsilon: 10, delta: 1e-6}"
        return (
            f"accounts: {{dataset: {self.accounts}}}\n"
            f"roles: {{analyst: {{query: {self.query}{session}{limit}}}}}\n"
        )


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is zero, by halving on a logarithmic scale."""
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def account_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP guarantee implies (epsilon, delta).

    By Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (2020), Proposition 12.

    >>> round(account_rho(10, 1e-6), 4), round(account_rho(1, 1e-6), 6)
    (1.5393, 0.024356)
    """
    orders = [1 + 10 ** (step / 400) for step in range(-1600, 1601)]

    def room(rho: float) -> float:
        return math.log(delta) - min(
            (a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a) for a in orders
        )

    return _root(room, 1e-9, 1e3)


def laplace_epsilon(rho: float) -> float:
    """The epsilon of a pure answer that an account is charged this rho for: epsilon tanh(epsilon / 2).

    >>> round(laplace_epsilon(0.4621171572600097), 9)
    1.0
    """
    return _root(lambda epsilon: rho - epsilon * math.tanh(epsilon / 2), 1e-9, 1e3)


TENTH = account_rho(10, 1e-6) / 10
LARGE = "{epsilon: 1e9, delta: 0.1, composition: basic}"
LABELS = {
    label.name: label
    for label in (
        Label(
            "laplace", "epsilon 1", "{epsilon: 1e9}", "{epsilon: 1, delta: 0}",
            Guarantee(1.0, 0.0), (0.85, 0.94),
        ),
        Label(
            "label", "(1, 1e-6)", LARGE, "{epsilon: 1, delta: 1e-6}",
            Guarantee(1.0, account_rho(1, 1e-6)), (0.90, 0.94),
        ),
        Label(
            "share", "a tenth of a (10, 1e-6) account", "{epsilon: 1e6, delta: 1e-6, composition: zcdp}",
            "{share: 10%}", Guarantee(laplace_epsilon(TENTH), TENTH), (0.90, 0.94),
        ),
    )
}  # fmt: skip
