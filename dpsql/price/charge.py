"""The cost of a measurement: the events for the ledger, and the sum of their guarantees."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import assert_never

from dpsql.price.priced import Chosen, Noised, PricedMeasurement, Share
from dpsql.privacy.accounting import rho_of_exponential, rho_of_pure
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ThresholdEvent,
    ThresholdKind,
    TruncatedGeometricEvent,
)
from dpsql.privacy.events import cost_of as cost_of_event
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    TruncatedGeometric,
)


def events_of(part: PricedMeasurement) -> Iterator[Event]:
    """The events that a ledger records for a measurement."""
    share = part.share
    selection = part.selection
    noised = part.noised
    if selection is not None and selection.shares is None:
        noised = (*noised, selection.units)
    for i, item in enumerate(noised):
        if isinstance(item, Noised) and item.halves is not None and item.halves.other < i:
            continue  # the event of the other half covers both
        yield _event(item, share)
    if selection is not None and not isinstance(selection.units.noise, TruncatedGeometric):
        groups = part.bounding.groups * part.bounding.size
        kind: ThresholdKind = "gaussian" if share.family == "gaussian" else "laplace"
        yield ThresholdEvent(kind, share.selection_delta, groups)


def _event(item: Noised | Chosen, share: Share) -> Event:
    moved = item.sensitivity
    match item.noise:
        case Exponential(scale=scale):
            return ExponentialEvent(moved.l1, moved.l2_squared, scale)
        case DiscreteLaplace(scale=scale):
            return LaplaceEvent(moved.l1 if item.halves is None else item.halves.l1, scale)
        case DiscreteGaussian(variance=variance):
            delta = share.noise_delta / share.statistics
            return GaussianEvent(item.sensitivity.l2_squared, variance, delta)
        case TruncatedGeometric(epsilon=epsilon):
            return TruncatedGeometricEvent(epsilon, share.selection_delta)
        case _:
            assert_never(item.noise)


def cost_of(parts: tuple[PricedMeasurement, ...], share: Share) -> Cost:
    """The cost of the answer: its privacy guarantee for one unit.

    Claim: the answer is (epsilon, delta)-DP and threshold_delta-approximately rho-zCDP.
    Assumes: each mechanism of ``parts`` has the guarantee that its share pays for.
    Argument: the mechanisms are fixed beforehand and run on the same data, so their guarantees
        add: pure epsilons, or rho for the Gaussian ones and for choices, whose sum is converted
        once. Where pure noise is priced in rho, each event is charged what its own record costs.
    """
    selections = sum(part.selection is not None for part in parts)
    threshold = selections * share.selection_delta
    if share.family == "gaussian":
        assert share.label is not None
        assert share.rho is not None
        epsilon, rho = share.label * share.statistics, share.rho * share.statistics
        return Cost(epsilon, share.noise_delta + threshold, rho, threshold)
    if share.rho is not None:
        events = (event for part in parts for event in events_of(part))
        return sum(map(cost_of_event, events), Cost.zero())
    rho = sum((_rho(item, share) for part in parts for item in part.noised), Fraction(0))
    rho += rho_of_pure(share.epsilon) * (selections - _shared(parts))
    return Cost(share.epsilon * share.statistics, threshold, rho, threshold)


def _shared(parts: tuple[PricedMeasurement, ...]) -> int:
    """How many selections use a number of units that is released anyway."""
    return sum(p.selection is not None and p.selection.shares is not None for p in parts)


def _rho(item: Noised | Chosen, share: Share) -> Fraction:
    """The rho of a statistic; each of two halves has half of the rho of the pair."""
    if isinstance(item, Chosen):
        return rho_of_exponential(share.epsilon)
    if item.halves is not None:
        return rho_of_pure(2 * share.epsilon) / 2
    return rho_of_pure(item.weight * share.epsilon)
