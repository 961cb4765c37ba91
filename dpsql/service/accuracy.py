"""Turns a requested accuracy into the smallest budget that gives it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.price.priced import PricedPlan
from dpsql.price.request import Request
from dpsql.service.settings import Settings

SMALLEST = Fraction(1, 10**6)


def widest_error(mine: Settings) -> Fraction | None:
    """The largest half-width that the settings allow for a 95 % interval of the noise; None if they set none."""
    if mine.max_relative_error is None:
        return mine.max_error
    if mine.expected_size is None:
        raise Refused(_size_unknown(mine.max_relative_error))
    relative = mine.max_relative_error * mine.expected_size
    return relative if mine.max_error is None else min(relative, mine.max_error)


def cheapest(
    at: Callable[[Request], PricedPlan], best: PricedPlan, most: Request, wanted: Fraction
) -> PricedPlan:
    """The plan with the smallest budget at which every error is at most ``wanted``.

    ``best`` is the plan at the budget of ``most``. If no column of it is a noised number (for example,
    because values are only listed), an error has no meaning, and ``best`` is returned as it is.
    """
    if not any(part.noised for part in best.parts):
        return best
    if _widest(best) > wanted:
        raise Refused(
            Refusal(
                "DP404",
                f"an error of {float(wanted):.6g} costs more than one query may cost",
                f"For the most that one query may cost, {_written(most)}, the error is "
                f"{_widest(best):.6g}.",
                f"SET dpsql.max_error = {_widest(best):.6g}",
            )
        )
    low, high = min(SMALLEST, most.strength), most.strength
    while high > low * Fraction(101, 100):
        middle = (low + high) / 2 if high < 4 * low else low * 2
        middle = middle.limit_denominator(10**9)
        trial = at(most.at(middle))
        if _widest(trial) <= wanted:
            best, high = trial, middle
        else:
            low = middle
    return best


def _written(request: Request) -> str:
    given = (("epsilon", request.epsilon), ("rho", request.rho))
    return " and ".join(f"{name} {float(n):.6g}" for name, n in given if n is not None)


def _size_unknown(share: Fraction) -> Refusal:
    return Refusal(
        "DP401",
        "max_relative_error is a share of an expected size, which is not set",
        "Finding the size in the data would itself cost.",
        "Say what size you expect: with SET dpsql.expected_size = 5000 the error is "
        f"{float(share * 5000):.6g} ({float(share):.6g} of 5000).",
    )


def error_unknown() -> Refusal:
    """The refusal of a requested error while dpsql.search is on."""
    return Refusal(
        "DP401",
        "an error cannot be promised while bounds are searched for",
        "The width of the noise depends on the bound that is found, but the price is fixed before.",
        "RESET dpsql.search",
    )


def _widest(priced: PricedPlan) -> float:
    return max(item.half_width for part in priced.parts for item in part.noised)
