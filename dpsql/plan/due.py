"""What is still to be measured, and what that costs, once stored releases are taken into account.

Claim: the price of what is due is that of its own mechanisms, whatever was released before: the
    numbers that are drawn now carry exactly the noise that the price is for.
Argument: only the choice of what to measure, and how wide its noise is, follows from what is
    stored; that is public, and fixed before the measurement. Later merging with stored numbers is
    post-processing of two releases, each charged when it was made (adaptive composition).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.plan.price import WIDEST_NOISE, events_of
from dpsql.plan.priced import Chosen, Noise, Noised, PricedMeasurement, PricedPlan, Share
from dpsql.plan.recall import AS_GOOD, Slot, widths
from dpsql.plan.written import statement_of
from dpsql.privacy.accounting import epsilon_of_zcdp
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import Event, cost_of
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.privacy.mechanisms.noise_sum import NoiseSum
from dpsql.sql.terms import Terms

_DIGITS = 2**30
_TRIES = (1 - 1e-6, 0.97, 0.9)
"""Shares of the variance that would just do: rounding and tails may ask for a little less."""


@dataclass(frozen=True, slots=True)
class DuePart:
    """A measurement of some of the statistics of the plan's measurement at ``slot.part``."""

    slot: Slot
    priced: PricedMeasurement


@dataclass(frozen=True, slots=True)
class Due:
    """What will be run and paid now; no parts when everything is stored."""

    parts: tuple[DuePart, ...]
    cost: Cost
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Refinement:
    """New noise for a statistic, and what it will have once merged with the stored number."""

    noise: Noise
    weight: Fraction
    """Of the new number; the stored one has the rest."""
    merged: NoiseSum


def due(priced: PricedPlan, refined: Mapping[tuple[int, int], Noise | None]) -> Due:
    """The statistics named by (part, column), each with its own noise or the one that it has."""
    parts = tuple(_parts(priced, refined))
    if len(parts) == len(priced.parts) and all(
        part.priced == whole for part, whole in zip(parts, priced.parts, strict=True)
    ):
        return Due(parts, priced.cost, priced.events)
    pots: dict[tuple[Terms | None, Share], list[Event]] = {}
    for part in parts:
        pot = part.priced.measurement.terms, part.priced.share
        pots.setdefault(pot, []).extend(events_of(part.priced))
    cost = sum((_cost(events, share) for (_, share), events in pots.items()), Cost.zero())
    return Due(parts, cost, tuple(event for events in pots.values() for event in events))


def _parts(
    priced: PricedPlan, refined: Mapping[tuple[int, int], Noise | None]
) -> Iterator[DuePart]:
    for at, part in enumerate(priced.parts):
        chosen = tuple(i for i in range(len(part.noised)) if (at, i) in refined)
        if part.selection is not None and (at, -1) not in refined:
            continue
        if chosen or part.selection is not None:
            yield DuePart(Slot(at, chosen), _reduced(part, at, chosen, refined))


def _reduced(
    part: PricedMeasurement, at: int, chosen: tuple[int, ...],
    refined: Mapping[tuple[int, int], Noise | None],
) -> PricedMeasurement:  # fmt: skip
    """The measurement with some of its statistics, bounded as it is."""
    if len(chosen) == len(part.noised) and not any(refined.get((at, i)) for i in chosen):
        return part
    measurement = replace(
        part.measurement,
        statistics=tuple(part.measurement.statistics[i] for i in chosen),
        columns=tuple(part.measurement.columns[i] for i in chosen),
    )
    noised = tuple(
        _with_noise(_placed(part, i, chosen, refined, at), refined[at, i]) for i in chosen
    )
    made = replace(part, measurement=measurement, noised=noised)
    return replace(made, sql=statement_of(made))


def _placed(
    part: PricedMeasurement, position: int, chosen: tuple[int, ...],
    refined: Mapping[tuple[int, int], Noise | None], at: int,
) -> Noised | Chosen:  # fmt: skip
    """A statistic among those that are chosen: halves only where both of them are, and alike.

    Claim: a half is never released for the price of two without its twin.
    """
    item = part.noised[position]
    if isinstance(item, Chosen) or item.halves is None:
        return item
    other = item.halves.other
    if other not in chosen or refined[at, position] != refined[at, other]:
        return item.alone
    return replace(item, halves=replace(item.halves, other=chosen.index(other)))


def _with_noise(item: Noised | Chosen, noise: Noise | None) -> Noised | Chosen:
    return item if noise is None or isinstance(item, Chosen) else replace(item, noise=noise)


def _cost(events: Sequence[Event], share: Share) -> Cost:
    """What these mechanisms of one budget cost a unit.

    Claim: they are (epsilon, delta)-DP together, and threshold_delta-approximately rho-zCDP.
    Argument: they are some of those of a plan, or have wider noise; pure guarantees add up, and
        rho of Gaussian noise and of choices does, whose sum is converted once.
    """
    costs = [cost_of(event) for event in events]
    rho = sum((c.rho for c in costs), Fraction(0))
    threshold = sum((c.threshold_delta for c in costs), Fraction(0))
    if share.family == "gaussian":
        epsilon = min(epsilon_of_zcdp(rho, share.noise_delta), share.epsilon * share.statistics)
        return Cost(epsilon, share.noise_delta + threshold, rho, threshold)
    return Cost(sum((c.epsilon for c in costs), Fraction(0)), threshold, rho, threshold)


def refinement(
    part: PricedMeasurement, position: int, stored: NoiseSum, *,
    whole: bool = False, law: Noise | None = None,
) -> Refinement | None:  # fmt: skip
    """The widest new noise that, merged with a stored number, is as good as what is asked.

    Claim: the merged number errs as little as the plan says, and costs less than a new one.
    Argument: independent unbiased errors merged by inverse variance have the variance
        1 / (1/v + 1/w); under zCDP the cost is 1/w up to a factor, so this pays the difference.
        None where merging does not help: values chosen by rank, or tails that are too heavy.
    A half is refined alone, unless the ``whole`` pair is, which then gets one ``law``.
    """
    item, wanted = part.noised[position], part.noise(position)
    if isinstance(item, Chosen) or wanted is None:
        return None
    item = item if whole else item.alone
    if item.noise.standard_deviation() < 1:  # noise on integers has no finer shades than a step
        return None
    have, want = stored.standard_deviation() ** 2, wanted.standard_deviation() ** 2
    if have <= want:  # it misses more often only: nothing to average away
        return None
    missing = 1 / (1 / want - 1 / have) / float(item.step) ** 2 / item.term.count
    laws = (_law(item.noise, min(missing * share, WIDEST_NOISE**2 / 4)) for share in _TRIES)
    for wider in laws if law is None else (law,):
        found = _merged(part, position, replace(item, noise=wider), stored)
        if wider.standard_deviation() > item.noise.standard_deviation() and _good(found, wanted):
            return found
    return None


def refined_together(
    part: PricedMeasurement, twins: tuple[tuple[int, NoiseSum], tuple[int, NoiseSum]]
) -> tuple[Refinement, Refinement] | None:
    """The refinements of two halves by one measurement of both; None where it does not help.

    Claim: it costs less than both halves measured anew.
    """
    each = [refinement(part, *twin, whole=True) for twin in twins]
    laws = [found.noise for found in each if found is not None]
    if len(laws) < len(each):
        return None
    law = min(laws, key=lambda noise: noise.standard_deviation())
    one, other = (refinement(part, *twin, whole=True, law=law) for twin in twins)
    return None if one is None or other is None else (one, other)


def _law(noise: Noise, variance: float) -> Noise:
    """Noise of the same kind with at most this variance."""
    if isinstance(noise, DiscreteGaussian):
        return DiscreteGaussian(Fraction(variance).limit_denominator(_DIGITS))
    return DiscreteLaplace(Fraction(math.sqrt(variance / 2)).limit_denominator(_DIGITS))


def _merged(part: PricedMeasurement, position: int, item: Noised, stored: NoiseSum) -> Refinement:
    """The new noise merged with the stored one by inverse variance."""
    noised = (*part.noised[:position], item, *part.noised[position + 1 :])
    new = replace(part, noised=noised).noise(position)
    assert new is not None
    one, other = (1 / n.standard_deviation() ** 2 for n in (new, stored))
    share = Fraction(one / (one + other)).limit_denominator(_DIGITS)
    weight = min(max(share, Fraction(1, _DIGITS)), 1 - Fraction(1, _DIGITS))
    merged = NoiseSum((*stored.scaled(1 - weight), *new.scaled(weight)), new.whole)
    return Refinement(item.noise, weight, merged)


def _good(found: Refinement, wanted: NoiseSum) -> bool:
    pairs = zip(widths(found.merged), widths(wanted), strict=True)
    return all(merged <= asked * AS_GOOD for merged, asked in pairs)
