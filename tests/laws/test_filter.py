"""The best adaptive adversary against a budget, found by exhaustive search.

An analyst who chooses each query after the last answer plays randomised responses, the worst
mechanisms there are for their epsilon. The state of the game is the privacy loss so far and how
often each query was asked, so the largest delta at the promised epsilon is found exactly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.privacy.accounting import rho_for, rho_of_pure

QUANTUM = Fraction(1, 20)
"""Epsilons are multiples of it."""
Counts = tuple[int, ...]
Rule = Callable[[Counts], bool]


class Game:
    """A budget (epsilon, delta) and a menu of epsilons, in quanta."""

    def __init__(self, epsilon: str, delta: str, menu: tuple[int, ...], rounds: int) -> None:
        self.epsilon, self.delta = Fraction(epsilon), Fraction(delta)
        self.menu, self.rounds = menu, rounds

    def pure(self, asked: Counts) -> bool:
        """Epsilons add."""
        return sum(n * m for n, m in zip(asked, self.menu, strict=True)) * QUANTUM <= self.epsilon

    def zcdp(self, asked: Counts) -> bool:
        """Rhos add."""
        rho = sum(n * rho_of_pure(m * QUANTUM) for n, m in zip(asked, self.menu, strict=True))
        return rho <= rho_for(self.epsilon, self.delta)

    def dual(self, asked: Counts) -> bool:
        """Either."""
        return self.pure(asked) or self.zcdp(asked)

    def curve(self, asked: Counts) -> bool:
        """The exact delta of what was asked, as if it had been fixed beforehand: not a filter."""
        law = {0: 1.0}
        for times, steps in zip(asked, self.menu, strict=True):
            truth = 1 / (1 + math.exp(-steps * float(QUANTUM)))
            for _ in range(times):
                after: dict[int, float] = {}
                for loss, p in law.items():
                    after[loss + steps] = after.get(loss + steps, 0) + p * truth
                    after[loss - steps] = after.get(loss - steps, 0) + p * (1 - truth)
                law = after
        return sum(p * self.excess(loss) for loss, p in law.items()) <= self.delta

    def excess(self, loss: int) -> float:
        """What a transcript with this privacy loss adds to delta."""
        return max(0.0, 1 - math.exp(float(self.epsilon - loss * QUANTUM)))

    def worst(self, rule: Rule) -> float:
        """The largest delta an adaptive analyst reaches under the rule."""
        allowed = functools.cache(lambda asked: sum(asked) <= self.rounds and rule(asked))

        @functools.cache
        def value(loss: int, asked: Counts) -> float:
            best = self.excess(loss)
            for i, steps in enumerate(self.menu):
                more = (*asked[:i], asked[i] + 1, *asked[i + 1 :])
                if allowed(more):
                    truth = 1 / (1 + math.exp(-steps * float(QUANTUM)))
                    up, down = value(loss + steps, more), value(loss - steps, more)
                    best = max(best, truth * up + (1 - truth) * down)
            return best

        return value(0, (0,) * len(self.menu))


GAMES = [
    ("0.5", "0.05", (1, 4), 30),
    ("0.5", "0.02", (2, 6), 26),
    ("1.0", "0.02", (2, 10), 40),
    ("0.3", "0.1", (1, 6), 40),
]


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_no_adaptive_analyst_exceeds_the_promise(game: tuple[str, str, Counts, int]) -> None:
    play = Game(*game)
    assert play.worst(play.pure) <= 1e-15
    alone, both = play.worst(play.zcdp), play.worst(play.dual)
    assert 0 < alone <= play.delta
    assert alone <= both <= play.delta


def test_the_search_finds_the_hole_in_a_rule_that_is_no_filter() -> None:
    play = Game("1.0", "0.02", (2, 10), 40)
    assert play.worst(play.curve) > 1.4 * play.delta


def test_the_search_finds_a_rho_that_is_too_large() -> None:
    play = Game("0.5", "0.05", (1, 4), 40)

    def doubled(asked: Counts) -> bool:
        rho = sum(n * rho_of_pure(m * QUANTUM) for n, m in zip(asked, play.menu, strict=True))
        return rho <= 4 * rho_for(play.epsilon, play.delta)

    assert play.worst(doubled) > play.delta
