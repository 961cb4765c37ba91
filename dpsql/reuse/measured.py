"""A piece that is measured, and the cost of measuring all such pieces of a plan.

Claim: the price of the due measurements is that of their own mechanisms, whatever was released
    before: the new numbers have exactly the noise that the price is for.
Assumes: the noise is drawn anew, and used once.
Argument: only the choice of what to measure, and with how much noise, depends on stored releases.
    These are public, and the choice is fixed before the measurement. Later merging with stored
    numbers is post-processing of two releases, each charged when it was made (adaptive
    composition).
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
    """New numbers, with the noise of the plan."""

    piece: Piece

    def measures(self) -> Wanted:
        """All statistics of the piece, and the selection of its groups."""
        slots = self.piece.slots
        return {(slot.part, at): None for slot in slots for at in (-1, *slot.columns)}

    def merge(self, new: Sequence[Columns], /) -> tuple[Columns, ...]:
        """The new numbers, unchanged."""
        return tuple(new)

    def recall_key(self) -> RecallKey:
        """The key of the piece itself."""
        piece = self.piece
        return RecallKey(piece.key, piece.family, piece.noise, piece.base, piece.about)

    def explain(self, names: str) -> None:
        """No line: EXPLAIN shows the measurements with the plan."""


@dataclass(frozen=True, slots=True)
class DuePart:
    """A measurement of some of the statistics of the plan's measurement at ``slot.part``."""

    slot: Slot
    priced: PricedMeasurement


@dataclass(frozen=True, slots=True)
class Due:
    """The measurements to run and pay now; no parts if everything is stored."""

    parts: tuple[DuePart, ...]
    cost: Cost
    events: tuple[Event, ...]


def price_due(priced: PricedPlan, wanted: Wanted) -> Due:
    """The measurements of the wanted statistics with their cost.

    Each statistic has the given noise, or that of the plan for None.
    """
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
    """The measurement with some of its statistics, under the same bounding."""
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
    """A statistic among the chosen ones; it stays a half only if its twin is due with equal noise.

    Claim: a half is never released without its twin for the price of both.
    Assumes: twins refer to each other by position.
    Argument: a half whose twin is not due, or has other noise, is measured alone, at the price of
        one.
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
    """The cost of these mechanisms of one budget: their privacy guarantee for one unit.

    Claim: together they are (epsilon, delta)-DP, and threshold_delta-approximately rho-zCDP.
    Assumes: the events are those of the mechanisms that will run.
    Argument: each is a mechanism of the plan, or one with wider noise. Pure guarantees add up. The
        rho of Gaussian noise and of choices adds up too, and the sum is converted once.
    """
    costs = [cost_of(event) for event in events]
    rho = sum((c.rho for c in costs), Fraction(0))
    threshold = sum((c.threshold_delta for c in costs), Fraction(0))
    if share.family == "gaussian":
        assert share.label is not None
        epsilon = min(epsilon_of_zcdp(rho, share.noise_delta), share.label * share.statistics)
        return Cost(epsilon, share.noise_delta + threshold, rho, threshold)
    return Cost(sum((c.epsilon for c in costs), Fraction(0)), threshold, rho, threshold)
