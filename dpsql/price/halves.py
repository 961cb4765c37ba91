"""A total and the number of its rows, noised together as two halves.

Let values x lie in the range c - h .. c + h. Instead of a total T of x - c and a number n of rows,
noise is added to the sums of the distances to both ends, a = T + h n and b = h n - T. A row moves a
and b together by 2 h, whatever its value is. Then T = (a - b) / 2 and n = (a + b) / (2 h).


Claim: at the same price, the errors of T and of n with Laplace noise are both 1/sqrt(2) of those
    that they have if each gets half the epsilon.
Assumes: both numbers are computed over the same rows, whose values lie in the range.
Argument: with half of the epsilon each, T gets noise of scale 2 h / epsilon and n noise of scale 2
    / epsilon, for each row that a unit may have. As halves, a and b get noise of scale 2 h /
    epsilon. Half of the sum of two such draws has 1/sqrt(2) of the deviation of one. (Gaussian
    noise is equally wide either way. So is Laplace noise that is priced in a small rho: both halves
    together may then have an epsilon that is sqrt(2) times that of one number.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.bound import Bounding, VectorClip
from dpsql.bound.grid import grid
from dpsql.bound.sensitivity import sensitivity
from dpsql.catalog.build import not_null
from dpsql.catalog.statistic import Rows, Statistic, Total
from dpsql.plan.nodes import Cells
from dpsql.price.priced import Chosen, Halves, Noised, Share
from dpsql.privacy.mechanisms import laplace_for

GAINED = Fraction(1, 16)
"""Rounding to coarser steps may add at most this part of the widest noise.

It is then at most a quarter of the noise that it is added to, and halves still gain with noise that
is wider by so much.
"""


def pair_halves(
    noised: tuple[Noised | Chosen, ...], bounding: Bounding, share: Share, widest: float,
    taken: int | None, cells: Cells | None,
) -> tuple[Noised | Chosen, ...]:  # fmt: skip
    """The statistics, where each total with a number of its rows (its twin) is noised as halves.

    ``taken`` is the position of the number that selects groups, which has no twin. A vector clip
    scales numbers and totals by different factors, so they are noised apart.
    """
    if share.family != "laplace" or isinstance(bounding, VectorClip):
        return noised
    found, epsilon = list(noised), share.pure(2)
    for i, j in twins(tuple(item.statistic for item in noised)):
        total, count = found[i], found[j]
        if j == taken or isinstance(total, Chosen) or isinstance(count, Chosen):
            continue
        halves = _halves(total, j, bounding, epsilon, widest, cells)
        if halves is not None:
            noise = laplace_for(halves.l1, epsilon)
            found[i] = replace(total, noise=noise, halves=halves)
            found[j] = replace(count, noise=noise, halves=replace(halves, other=i))
    return tuple(found)


def twins(statistics: tuple[Statistic, ...]) -> Iterator[tuple[int, int]]:
    """Positions of totals and of the numbers of their rows; each number is used at most once."""
    free = {s: j for j, s in enumerate(statistics) if isinstance(s, Rows) and s.cap is None}
    for i, statistic in enumerate(statistics):
        if isinstance(statistic, Total) and statistic.cap is None and not statistic.whole:
            j = free.pop(Rows(not_null(statistic.value, statistic.where)), None)
            if j is not None:
                yield i, j


def _halves(
    total: Noised, other: int, bounding: Bounding, epsilon: Fraction, widest: float,
    cells: Cells | None,
) -> Halves | None:  # fmt: skip
    """The halves of a total and the number of its rows; None where their noise would be too wide.

    Claim: adding or removing one unit moves both halves over all groups by at most ``l1``, so that
        noise for ``epsilon`` makes both together ``epsilon``-DP.
    Assumes: a unit's total in a group is in absolute value at most ``reach`` times its number of
        rows there, both as the engine counts them, and its numbers have the sensitivity of
        ``bound.sensitivity``.
    Argument: then a unit's halves are not negative, and add up to 2 * reach times its number. Every
        strategy but the vector clip keeps the assumption, since it scales numbers and totals of a
        unit by the same weight or factor, and rounds totals toward zero. It also holds where both are capped in a group,
        the number at c and the total at reach * c. Rounding the sums of a group to coarser steps
        adds less than one step for each half of each group that the unit has rows in. There are at
        most ``touched`` such groups, however little the rows weigh there.
    """
    statistic, one = total.statistic, 1 << bounding.bits
    assert isinstance(statistic, Total)
    reach = grid(statistic, grid(statistic).shift - total.shift).reach
    moved = 2 * reach * sensitivity(Rows(), one, bounding).l1
    if moved / epsilon < widest:
        return Halves(other, reach, one, 0, moved)
    rounding = 2 * bounding.touched(cells) * bounding.size
    if rounding / epsilon > GAINED * Fraction(widest):
        return None
    coarse = math.ceil(math.log2(2 * moved / epsilon / Fraction(widest)))
    return Halves(other, reach, one, coarse, moved / 2**coarse + rounding)
