"""The cost of a step, both as (epsilon, delta) and in zCDP."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Cost:
    """The guarantee of a step, stated in both notions.

    Claim: the step is (epsilon, delta)-DP, and it is threshold_delta-approximately rho-zCDP. Both
        add up over steps: epsilons and deltas under basic composition, rho and threshold_delta
        under zCDP composition, also when later steps are chosen after earlier answers.
    Assumes: every cost is made with a guarantee that the step has; ``events.cost_of`` does this.
    Argument: basic composition (Dwork et al. 2006) and composition of approximate zCDP (Bun and
        Steinke 2016); for adaptive choice of parameters Rogers et al. 2016 and Whitehouse et al.
        2023.

    >>> one = Cost(epsilon=Fraction(1), rho=Fraction(1, 2))
    >>> (one + one + Cost.zero()).epsilon
    Fraction(2, 1)
    """

    epsilon: Fraction = _NOTHING
    delta: Fraction = _NOTHING
    rho: Fraction = _NOTHING
    threshold_delta: Fraction = _NOTHING

    def __post_init__(self) -> None:
        """A charge is never negative."""
        for name in ("epsilon", "delta", "rho", "threshold_delta"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} of a cost is negative: {getattr(self, name)}")

    @classmethod
    def zero(cls) -> Cost:
        """The cost of post-processing."""
        return cls()

    @property
    def pure(self) -> bool:
        """Whether the step is epsilon-DP with no delta."""
        return self.delta == 0

    def __add__(self, other: Cost) -> Cost:
        """The cost of both steps."""
        return Cost(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.rho + other.rho,
            self.threshold_delta + other.threshold_delta,
        )
