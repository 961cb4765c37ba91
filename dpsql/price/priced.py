"""A priced plan: the whole privacy claim of an answer in one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.bound import Bounding
from dpsql.bound.buckets import Buckets
from dpsql.bound.reading import Reading
from dpsql.bound.sensitivity import Sensitivity
from dpsql.catalog.statistic import Ranked, Statistic, Total
from dpsql.plan.nodes import Measurement, Plan
from dpsql.price.request import Request
from dpsql.price.size import Size
from dpsql.privacy.accounting import pure_for_rho
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import Event
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    TruncatedGeometric,
)
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm

Noise = DiscreteLaplace | DiscreteGaussian | TruncatedGeometric
_DIGITS = 2**30
DOUBT = Fraction(60)
"""A bin that nothing exceeds weighs a sixtieth of a bin at the target, before the prior."""


WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Halves:
    """A total and the number of its rows, noised together: see ``price.halves``.

    With t the total and n the number in integers as the engine counts them, the halves are ``t *
    one + reach * n`` and ``reach * n - t * one``, in steps of ``2**coarse``. ``l1`` bounds how far
    one unit moves both over all groups. ``other`` is the position of the other statistic.
    """

    other: int
    reach: int
    one: int
    coarse: int
    l1: Fraction

    def worth(self, statistic: Statistic, shift: int) -> Fraction:
        """The value of one step of the halves, in units of one of their two statistics."""
        if isinstance(statistic, Total):
            return Fraction(2) ** (self.coarse - shift) / (2 * self.one)
        return Fraction(2) ** self.coarse / (2 * self.reach * self.one)


@dataclass(frozen=True, slots=True)
class Noised:
    """One statistic, its sensitivity, and its noise, both in integer steps of ``2**-shift``.

    With ``halves``, ``noise`` is the law of the noise of each half, in the steps of the halves. The
    budget of the statistic is that of its share times ``weight``.
    """

    statistic: Statistic
    shift: int
    sensitivity: Sensitivity
    noise: Noise
    halves: Halves | None = None
    weight: Fraction = WHOLE

    @property
    def grain(self) -> Fraction:
        """The value of one grid step of the exact value."""
        return Fraction(2) ** -self.shift

    @property
    def step(self) -> Fraction:
        """The value of one step of the noise."""
        return self.grain if self.halves is None else self.halves.worth(self.statistic, self.shift)

    @property
    def term(self) -> NoiseTerm:
        """The noise in the statistic's own units."""
        if self.halves is not None:
            return NoiseTerm(self.noise, self.step, count=2)
        whole = not isinstance(self.statistic, Total) or self.statistic.whole
        return NoiseTerm(self.noise, self.step, rounded=whole and self.shift > 0)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise, in the statistic's own units."""
        if self.halves is None:
            return self.noise.standard_deviation() * float(self.step)
        deviation = self.noise.standard_deviation() * float(self.step) * math.sqrt(2)
        if isinstance(self.statistic, Total) or deviation >= 0.5:
            return deviation
        # A number that is rounded to a whole one is wrong if both draws together exceed one half.
        beyond = 1 / max(deviation, 1e-9)
        return min(deviation, math.sqrt((1 + beyond / 2) * math.exp(-beyond)))

    @property
    def half_width(self) -> float:
        """The width within which the value is of the exact one in 19 of 20 answers."""
        if self.halves is not None:
            return NoiseSum((self.term,)).half_width()
        return self.noise.half_width() * float(self.step)

    @property
    def alone(self) -> Noised:
        """The statistic measured alone instead of as halves, with Laplace noise that is no wider.

        Claim: it costs no more than both halves.
        Assumes: the halves have Laplace noise.
        Argument: its noise is never narrower than the noise that the whole price of both halves
            pays for.
        """
        if self.halves is None:
            return self
        assert isinstance(self.noise, DiscreteLaplace)
        paid = self.sensitivity.l1 * self.noise.scale / self.halves.l1
        narrow = min(self.standard_deviation / math.sqrt(2), self.half_width / math.log(20))
        scale = Fraction(narrow / float(self.grain)).limit_denominator(_DIGITS)
        law = DiscreteLaplace(max(scale, paid))
        return Noised(self.statistic, self.shift, self.sensitivity, law)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A value chosen by rank among ``buckets``; ranks count rows in steps of ``2**-shift``.

    ``sensitivity`` bounds differences between utilities; see ``exponential_for``. With a ``prior``,
    bin i counts as ``prior[i]`` candidates; otherwise each bin counts as one. A prior is public.
    The target of an extreme is at least ``deep`` steps of rank from the end. A choice of a
    ``search`` is recalled only for the same law, so that later questions do not change what earlier
    ones found.
    """

    statistic: Ranked
    shift: int
    sensitivity: Sensitivity
    noise: Exponential
    buckets: Buckets
    prior: tuple[int, ...] = ()
    deep: int = 0
    search: bool = False

    @property
    def step(self) -> Fraction:
        """The value of one step of rank, in rows."""
        return Fraction(2) ** -self.shift

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the rank, in rows."""
        return self.noise.standard_deviation() * float(self.step)

    @property
    def depth(self) -> int:
        """The distance of the target of an extreme from the end, in steps of rank.

        Without a prior, the bins beyond the data are chosen in at most one answer of twenty, all
        together. With a prior that falls fast enough, they count as little as a few of the bins
        before them, however many there are. So the target can be nearer to the end.
        """
        return max(self.deep, self.noise.fall(DOUBT)) if self.prior else self.noise.half_width()

    @property
    def half_width(self) -> float:
        """The number of rows within which the rank is of the one asked for in 19 of 20 answers."""
        return self.noise.half_width() * float(self.step)


@dataclass(frozen=True, slots=True)
class Selection:
    """Groups are shown when their noisy number of units is at least ``threshold``.

    ``shares`` is the position of the statistic whose released value is that number. It is None if
    the number is used for selection only.
    """

    units: Noised
    threshold: int
    shares: int | None


@dataclass(frozen=True, slots=True)
class Share:
    """The budget of each noised statistic and of each selection of a query.

    Each statistic may cost ``label`` in epsilon and ``rho`` in zCDP. One of them is None if the
    request does not limit it; Gaussian noise has both. With ``noise_delta``, all Gaussian noise
    together has the epsilon ``label * statistics``.
    """

    family: str
    statistics: int
    label: Fraction | None
    rho: Fraction | None
    noise_delta: Fraction
    selection_delta: Fraction

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of one statistic with pure noise."""
        return self.pure(1)

    def times(self, weight: Fraction) -> Share:
        """A share of ``weight`` times the budget for one statistic.

        Claim: statistics whose weights add up to their number cost no more than with equal shares.
        Assumes: labels and rho add up.
        Argument: each statistic costs at most its weight times the label, and times the rho.
        """
        label = None if self.label is None else self.label * weight
        return replace(self, label=label, rho=None if self.rho is None else self.rho * weight)

    def pure(self, count: int) -> Fraction:
        """The epsilon of a pure mechanism that measures ``count`` statistics together.

        Claim: the mechanism costs at most ``count`` shares, in epsilon and in rho.
        Assumes: it is pure.
        Argument: of the two limits, the one that allows less holds: ``count * label``, and the
            epsilon at which any pure mechanism costs at most ``count * rho``.
        """
        limits = [] if self.label is None else [count * self.label]
        if self.rho is not None:
            limits.append(pure_for_rho(count * self.rho))
        return min(limits)


@dataclass(frozen=True, slots=True)
class PricedMeasurement:
    """A measurement with its bounding and its noise."""

    measurement: Measurement
    bounding: Bounding
    noised: tuple[Noised | Chosen, ...]
    selection: Selection | None
    share: Share
    """How the budget from which the measurement is paid was divided."""
    reading: Reading | None = None
    """How rows are read from prepared copies; None if they are not."""

    def noise(self, position: int) -> NoiseSum | None:
        """The noise of a released column; None for values chosen by rank, which err in rank."""
        item = self.noised[position]
        if isinstance(item, Chosen):
            return None
        whole = not isinstance(item.statistic, Total) or item.statistic.whole
        return NoiseSum((item.term,), whole)


@dataclass(frozen=True, slots=True)
class Search:
    """A question that is answered before a plan runs, for the ``measurements`` of the plan.

    With a ``size``, it asks which of ``rungs`` bounds that size of units. The answer is a position
    in ``rungs``. Without a size, it asks for a centre of the values of the sum at ``position``. The
    answer is a number between the two ``rungs``.
    """

    priced: PricedPlan
    rungs: tuple[Fraction, ...]
    measurements: tuple[str, ...]
    size: Size | None
    position: int = 0


NOTHING = Cost.zero()


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """What will be run, released and paid. Nothing in it depends on a row.

    With ``searches``, limits are still to be found within the budget ``asked``. Until then the
    parts are priced under the limits of the policy, which gives the most noise that there may be.
    What is found decides which searches are next; their cost is ``later``. The levels of
    ``consistent`` answers add up: see ``reuse.consistent``.
    """

    plan: Plan
    parts: tuple[PricedMeasurement, ...]
    cost: Cost
    events: tuple[Event, ...]
    family: str
    searches: tuple[Search, ...] = ()
    asked: Request | None = None
    consistent: bool = False
    later: Cost = NOTHING

    @property
    def price(self) -> Cost:
        """The cost including the searches."""
        return sum((search.priced.cost for search in self.searches), self.cost + self.later)

    @property
    def most(self) -> Cost:
        """The highest possible cost, whatever the searches find; they may change the mechanism.

        What the request does not limit counts as 0 here.
        """
        if self.asked is None:
            return self.cost
        asked, nothing = self.asked, Fraction(0)
        return Cost(asked.epsilon or nothing, asked.delta, asked.rho or nothing)
