"""A priced plan: the whole privacy claim of an answer in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.aggregates.statistic import Ranked, Statistic, Total
from dpsql.plan.bounding import Bounding, Sensitivity
from dpsql.plan.buckets import Buckets
from dpsql.plan.nodes import Measurement, Plan
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


@dataclass(frozen=True, slots=True)
class Noised:
    """One statistic, its sensitivity, and the noise it gets: integers of ``2**-shift``."""

    statistic: Statistic
    shift: int
    sensitivity: Sensitivity
    noise: Noise

    @property
    def step(self) -> Fraction:
        """What one grid step is worth."""
        return Fraction(2) ** -self.shift

    @property
    def standard_deviation(self) -> float:
        """Of the noise, in the statistic's own units."""
        return self.noise.standard_deviation() * float(self.step)

    @property
    def half_width(self) -> float:
        """Within this of the exact value in 19 of 20 answers."""
        return self.noise.half_width() * float(self.step)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A value chosen by rank among ``buckets``; ranks are counted in rows of ``2**-shift``.

    ``sensitivity`` is of the differences between utilities; see ``exponential_for``.
    """

    statistic: Ranked
    shift: int
    sensitivity: Sensitivity
    noise: Exponential
    buckets: Buckets

    @property
    def step(self) -> Fraction:
        """What one step of rank is worth, in rows."""
        return Fraction(2) ** -self.shift

    @property
    def standard_deviation(self) -> float:
        """Of the rank, in rows."""
        return self.noise.standard_deviation() * float(self.step)

    @property
    def half_width(self) -> float:
        """The rank is within so many rows of the one asked for in 19 of 20 answers."""
        return self.noise.half_width() * float(self.step)


@dataclass(frozen=True, slots=True)
class Selection:
    """Groups are shown when their noisy number of units is above ``threshold``.

    ``shares`` is the position of the statistic whose released value is that number; None when
    it is only used for selection.
    """

    units: Noised
    threshold: int
    shares: int | None


@dataclass(frozen=True, slots=True)
class Share:
    """What each noised statistic and each selection of a query may spend."""

    family: str
    statistics: int
    epsilon: Fraction
    rho: Fraction
    noise_delta: Fraction
    selection_delta: Fraction


@dataclass(frozen=True, slots=True)
class PricedMeasurement:
    """A measurement with its bounding, its statement, and its noise."""

    measurement: Measurement
    bounding: Bounding
    sql: str
    noised: tuple[Noised | Chosen, ...]
    selection: Selection | None
    share: Share
    """How the budget was divided that it is paid from."""

    def noise(self, position: int) -> NoiseSum | None:
        """The noise of a released column; None for values chosen by rank, whose error is in rank."""
        item = self.noised[position]
        if isinstance(item, Chosen):
            return None
        whole = not isinstance(item.statistic, Total) or item.statistic.whole
        term = NoiseTerm(item.noise, item.step, rounded=whole and item.shift > 0)
        return NoiseSum((term,), whole)


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """What will be run, released and paid. Nothing about it depends on a row."""

    plan: Plan
    parts: tuple[PricedMeasurement, ...]
    cost: Cost
    events: tuple[Event, ...]
    family: str
