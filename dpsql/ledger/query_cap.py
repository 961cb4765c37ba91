"""What one query of a role may cost at most, in every notion that limits it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from dpsql.ledger.charge import ATTO, NANO, down, up
from dpsql.ledger.filter import rho_limit_of
from dpsql.policy.model import QueryLimit, QueryShare, Role
from dpsql.price.divide import divide
from dpsql.price.request import Request
from dpsql.privacy.accounting import epsilon_of_zcdp, pure_for_rho, rho_of_pure
from dpsql.privacy.cost import Cost


@dataclass(frozen=True, slots=True)
class QueryCap:
    """The most that one query may cost. Of ``epsilon`` and ``rho`` at least one is given."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None = None

    def lower(self, other: QueryCap) -> QueryCap:
        """The cap that keeps both."""
        return QueryCap(
            _lower(self.epsilon, other.epsilon),
            min(self.delta, other.delta),
            _lower(self.rho, other.rho),
        )

    @property
    def dearest(self) -> Cost:
        """The cost of a query for one number at the cap, with the kind of noise that costs most."""
        if self.rho is None:
            return Cost(self.label, rho=rho_of_pure(self.label))
        return Cost(self.label, self.delta, self.rho)

    def costs(self, allowed: Sequence[str]) -> Iterator[tuple[str, Cost]]:
        """The kinds of noise that a query with one number may have, and what each costs."""
        request = Request(self.epsilon, self.delta, allowed=tuple(allowed), rho=self.rho)
        for share in divide(request, statistics=1, selections=0):
            if share.family == "laplace":
                yield "Laplace", Cost(share.epsilon, rho=rho_of_pure(share.epsilon))
            else:
                assert share.label is not None
                assert share.rho is not None
                yield "Gaussian", Cost(share.label, share.noise_delta, share.rho)

    @property
    def label(self) -> Fraction:
        """The largest epsilon of an answer for one number, at the cap's delta.

        If it follows from a rho, it is rounded up to billionths.
        """
        if self.rho is None:
            assert self.epsilon is not None
            return self.epsilon
        pure = pure_for_rho(self.rho)
        found = max(pure, epsilon_of_zcdp(self.rho, self.delta)) if self.delta else pure
        label = Fraction(up(found, NANO), NANO)
        return label if self.epsilon is None else min(label, self.epsilon)


def cap_of(role: Role) -> QueryCap:
    """The cap of a role's queries.

    Claim: a session of a role with a share of 1/n can ask n questions, each at its cap.
    Assumes: nobody else spends from its accounts.
    Argument: the rho of a question is a whole number of billionths, and at most 1/n of the rho
        that the session's account admits. So n charges of it, which are rounded to billionths, are
        within that account, and within those above it, which admit no less. A selection of groups
        spends at most a quarter of the delta (``price.divide``), which is 1/n of the quarter that
        accounts have for it, also in whole units of the ledger.
    """
    match role.query:
        case QueryLimit(epsilon, delta):
            return QueryCap(epsilon, delta)
        case QueryShare(share, delta):
            rho = Fraction(down(rho_limit_of(role.session) * share, 1), NANO)
            return QueryCap(None, Fraction(4 * down(delta / 4, ATTO), ATTO), rho)
        case _:
            assert_never(role.query)


def _lower(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else None
