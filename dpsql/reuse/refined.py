"""The average of a stored number that is not accurate enough and a new one.

Claim: the merged number is as accurate as the plan says, and the new one costs no more than
    measuring anew.
Assumes: both are noisy versions of the same exact number, with independent noise.
Argument: two unbiased numbers with independent errors of variances v and w, merged by inverse
    variance, have the variance 1 / (1/v + 1/w). Under zCDP the cost is 1/w up to a factor, so only
    the difference is paid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dpsql.ledger.store import Kept, RecallKey
from dpsql.price.price import WIDEST_NOISE
from dpsql.price.priced import Chosen, Noise, Noised, PricedMeasurement, PricedPlan
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.privacy.mechanisms.noise_sum import NoiseSum
from dpsql.release.rows import ColumnNoise
from dpsql.reuse.measured import Measured
from dpsql.reuse.pieces import AS_GOOD, Piece, key_of, widths
from dpsql.reuse.source import Columns, PieceSource, Wanted, align_rows
from dpsql.reuse.store import Store
from dpsql.reuse.stored import columns_of, release_time

_DIGITS = 2**30
_TRIES = (1 - 1e-6, 0.97, 0.9)
"""Shares of the sufficient variance that are tried: rounding and tails may need a little less."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """New noise for a statistic, and its noise once it is merged with the stored number."""

    noise: Noise
    weight: Fraction
    """The weight of the new number; the stored one has the rest."""
    merged: NoiseSum


@dataclass(frozen=True, slots=True)
class Refined:
    """Numbers that are measured less exactly than the plan says, and merged with stored ones."""

    piece: Piece
    kept: Kept
    stored: Columns
    refinement: Refinement

    @property
    def law(self) -> NoiseSum:
        """The noise of the stored numbers."""
        [noise] = self.stored.noise
        assert noise is not None
        return noise.laws[0]

    def measures(self) -> Wanted:
        """The statistic of the piece, with the new noise."""
        [slot] = self.piece.slots
        return {(slot.part, position): self.refinement.noise for position in slot.columns}

    def merge(self, new: Sequence[Columns], /) -> tuple[Columns, ...]:
        """The weighted average of both numbers of each group, not rounded."""
        [measured] = new
        table, last = measured.table, measured.table.num_columns - 1
        old = align_rows(table, self.stored.table, last)
        one, other = (np.asarray(t.column(-1), dtype=np.float64) for t in (table, old))
        weight = float(self.refinement.weight)
        merged = pa.array(weight * one + (1 - weight) * other)
        table = table.set_column(last, table.column_names[-1], merged)
        return (Columns(table, (ColumnNoise((self.refinement.merged,)),)),)

    def recall_key(self) -> RecallKey:
        """The key of the average."""
        piece, merged = self.piece, self.refinement.merged
        key = key_of(piece.family, merged)
        return RecallKey(key, piece.family, widths(merged), piece.base, piece.about)

    def explain(self, names: str) -> str:
        """A line with the time of the stored numbers."""
        since = release_time(self.kept)
        return (
            f"refined: {names}: {since} is averaged with a new one; only the difference is charged"
        )


def find_refined(store: Store, piece: Piece) -> Refined | None:
    """A stored release that is not accurate enough, with the new noise that makes it so."""
    slot = piece.slots[0]
    part = store.priced.parts[slot.part]
    if len(piece.slots) > 1 or len(slot.columns) != 1 or part.selection is not None:
        return None
    for kept in store.of_family(piece):
        for stored in store.tables(kept):
            [law] = stored.noise
            found = None if law is None else refinement(part, slot.columns[0], law)
            if found is not None:
                return Refined(piece, kept, columns_of(stored), found)
    return None


def pair_halves(priced: PricedPlan, sources: Sequence[PieceSource]) -> tuple[PieceSource, ...]:
    """Let halves that are both due be measured together: refined with one law, or else anew.

    Claim: the due measurements cost no more than the plan.
    Assumes: the plan prices both halves together.
    Argument: one half measured alone costs less than both together. Both measured separately could
        cost more, so they are measured together.
    """
    found = list(sources)
    places = {
        (slot.part, slot.columns[0]): i
        for i, source in enumerate(sources) for slot in source.piece.slots[:1] if slot.columns
    }  # fmt: skip
    for (at, position), i in places.items():
        part = priced.parts[at]
        item = part.noised[position]
        twin = item.halves.other if isinstance(item, Noised) and item.halves else -1
        j = places.get((at, twin), -1)
        if position < twin and j >= 0:
            found[i], found[j] = _paired(part, (position, found[i]), (twin, found[j]))
    return tuple(found)


def _paired(
    part: PricedMeasurement, one: tuple[int, PieceSource], other: tuple[int, PieceSource]
) -> tuple[PieceSource, PieceSource]:
    """The sources of two halves."""
    pair = one[1], other[1]
    if not all(source.measures() for source in pair) or all(isinstance(s, Measured) for s in pair):
        return pair
    first, second = pair
    if isinstance(first, Refined) and isinstance(second, Refined):
        both = refined_together(part, ((one[0], first.law), (other[0], second.law)))
        if both is not None:
            return replace(first, refinement=both[0]), replace(second, refinement=both[1])
    return Measured(first.piece), Measured(second.piece)


def refinement(
    part: PricedMeasurement, position: int, stored: NoiseSum, *,
    whole: bool = False, law: Noise | None = None,
) -> Refinement | None:  # fmt: skip
    """The widest new noise that, merged with a stored number, is as accurate as the plan demands.

    None where merging does not help: for values chosen by rank, or where tails are too heavy. A
    half is refined alone, unless the ``whole`` pair is refined, with one ``law`` for both.
    """
    item, wanted = part.noised[position], part.noise(position)
    if isinstance(item, Chosen) or wanted is None:
        return None
    item = item if whole else item.alone
    if item.noise.standard_deviation() < 1:  # less than a step: wider noise cannot be tuned
        return None
    have, want = stored.standard_deviation() ** 2, wanted.standard_deviation() ** 2
    if have <= want:  # only the tails are too heavy, which averaging does not mend
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
    """The refinements of two halves by one measurement of both; None if this does not help.

    Claim: it costs less than both halves measured anew.
    Assumes: wider noise of one family costs less.
    Argument: both get one law, the narrower of the two that each would get alone. ``refinement``
        accepts only a law that is wider than the plan's.
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
