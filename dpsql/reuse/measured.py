"""A piece that is measured, and what measuring all such pieces of a plan costs.

Claim: the price of what is due is that of its own mechanisms, whatever was released before: the
    numbers that are drawn now carry exactly the noise that the price is for.
Assumes: the noise is drawn anew, and used once.
Argument: only the choice of what to measure, and how wide its noise is, follows from what is
    stored; that is public, and fixed before the measurement. Later merging with stored numbers is
    post-processing of two releases, each charged when it was made (adaptive composition).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.ir.privacy_clause import Terms
from dpsql.ledger.store import RecallKey
from dpsql.price.charge import events_of
from dpsql.price.priced import Chosen, Noise, Noised, PricedMeasurement, PricedPlan, Share
from dpsql.privacy.accounting import epsilon_of_zcdp
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import Event, cost_of
from dpsql.reuse.pieces import Piece, Slot
from dpsql.reuse.source import Columns, Wanted


@dataclass(frozen=True, slots=True)
class Measured:
    """New numbers, with the noise that the plan says."""

    piece: Piece

    def measures(self) -> Wanted:
        """All of its statistics, and the choice of its groups."""
        slots = self.piece.slots
        return {(slot.part, at): None for slot in slots for at in (-1, *slot.columns)}

    def merge(self, new: Sequence[Columns], /) -> tuple[Columns, ...]:
        """What was measured."""
        return tuple(new)

    def recall_key(self) -> RecallKey:
        """The name of the piece."""
        piece = self.piece
        return RecallKey(piece.key, piece.family, piece.noise, piece.base, piece.about)

    def explain(self, names: str) -> None:
        """Nothing: what a plan measures is said of the plan."""


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


def price_due(priced: PricedPlan, wanted: Wanted) -> Due:
    """What measuring these statistics takes, each with the noise that is given or the one that it has."""
    parts = tuple(_parts(priced, wanted))
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


def _parts(priced: PricedPlan, wanted: Wanted) -> Iterator[DuePart]:
    for at, part in enumerate(priced.parts):
        noises = {i: wanted[at, i] for i in range(len(part.noised)) if (at, i) in wanted}
        if noises or (at, -1) in wanted:
            yield DuePart(Slot(at, tuple(noises)), _reduced(part, noises))


def _reduced(part: PricedMeasurement, noises: Mapping[int, Noise | None]) -> PricedMeasurement:
    """The measurement with some of its statistics, bounded as it is."""
    chosen = tuple(noises)
    if len(chosen) == len(part.noised) and not any(noises.values()):
        return part
    measurement = replace(
        part.measurement,
        statistics=tuple(part.measurement.statistics[i] for i in chosen),
        columns=tuple(part.measurement.columns[i] for i in chosen),
    )
    noised = tuple(_with_noise(_placed(part, i, noises), noises[i]) for i in chosen)
    return replace(part, measurement=measurement, noised=noised)


def _placed(
    part: PricedMeasurement, position: int, noises: Mapping[int, Noise | None]
) -> Noised | Chosen:
    """A statistic among those that are chosen: halves only where both of them are, and alike.

    Claim: a half is never released for the price of two without its twin.
    Assumes: twins name each other by position.
    Argument: a half whose twin is not due, or has other noise, is measured alone, at the price of one.
    """
    item = part.noised[position]
    if isinstance(item, Chosen) or item.halves is None:
        return item
    other = item.halves.other
    if other not in noises or noises[position] != noises[other]:
        return item.alone
    return replace(item, halves=replace(item.halves, other=list(noises).index(other)))


def _with_noise(item: Noised | Chosen, noise: Noise | None) -> Noised | Chosen:
    return item if noise is None or isinstance(item, Chosen) else replace(item, noise=noise)


def _cost(events: Sequence[Event], share: Share) -> Cost:
    """What these mechanisms of one budget cost a unit.

    Claim: they are (epsilon, delta)-DP together, and threshold_delta-approximately rho-zCDP.
    Assumes: the events are those of the mechanisms that will run.
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
