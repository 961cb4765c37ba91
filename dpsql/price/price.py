"""Choose bounding and mechanism by predicted error, and compute the cost of the answer.

The mechanisms of one query are fixed before it runs, so its epsilon is split before it runs: the
noise of every statistic gets an equal share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.bound import (
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    PreparedRows,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
    caps,
)
from dpsql.bound.buckets import buckets
from dpsql.bound.candidates import candidates, narrow_ranges, narrows
from dpsql.bound.grid import Grid, finer, grid, last_digit
from dpsql.bound.reading import match_copies
from dpsql.bound.sensitivity import Sensitivity, sensitivity
from dpsql.catalog.statistic import Ranked, Rows, Statistic, Total, Units
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.effort import step
from dpsql.plan.nodes import Measurement, Plan
from dpsql.price.charge import cost_of, events_of
from dpsql.price.clauses import price_each_clause
from dpsql.price.divide import divide
from dpsql.price.halves import pair_halves, twins
from dpsql.price.priced import (
    WHOLE,
    Chosen,
    Noise,
    Noised,
    PricedMeasurement,
    PricedPlan,
    Selection,
    Share,
)
from dpsql.price.request import Request
from dpsql.privacy.accounting import pure_for_rho
from dpsql.privacy.cost import Cost
from dpsql.privacy.mechanisms import (
    Exponential,
    exponential_for,
    exponential_for_zcdp,
    gaussian_for,
    gaussian_threshold,
    laplace_for,
    laplace_threshold,
    truncated_geometric_for,
)

WIDEST_NOISE = 2.0**39
"""Noise wider than this many grid steps is drawn on a coarser grid."""
TOTAL = Fraction(3, 2)
"""The weight of a total beside the number of its rows, which together have the weight two."""
NEGLIGIBLE = 1e-6
"""Boundings whose errors differ by less, as through rounding, count as equally accurate."""


def price(plan: Plan, request: Request) -> PricedPlan:
    """The plan with the smallest predicted noise among the mechanisms that are allowed."""
    if not plan.measurements:
        return PricedPlan(plan, (), Cost.zero(), (), "none")
    return replace(price_each_clause(plan, request, _pot), consistent=request.consistent)


def _pot(plan: Plan, request: Request) -> PricedPlan:
    """The measurements of ``plan``, which share one budget, with their noise."""
    _require_epsilon(plan, request)
    _require_delta(plan, request)
    options = [_priced(plan, request, share) for share in _shares(plan, request)]
    if not options:
        raise Refused(_no_mechanism(request))
    return min(options, key=_error)


def _shares(plan: Plan, request: Request) -> Iterator[Share]:
    selections = sum(m.cells is None for m in plan.measurements)
    statistics = sum(len(_noisy(m)) for m in plan.measurements)
    return divide(request, statistics, selections)


def _noisy(measurement: Measurement) -> tuple[Statistic, ...]:
    """The statistics that get noise; a selection of groups needs the number of units as well."""
    found = measurement.statistics
    if measurement.cells is None and _shared(measurement) is None:
        return (*found, Units())
    return found


def _shared(measurement: Measurement) -> int | None:
    """The position of a statistic that is the number of units, which selection uses for free."""
    for i, statistic in enumerate(measurement.statistics):
        if statistic == Units() or (statistic == Rows() and measurement.privacy.max_rows == 1):
            return i
    return None


def _priced(plan: Plan, request: Request, share: Share) -> PricedPlan:
    parts = tuple(_best(m, request, share) for m in plan.measurements)
    events = tuple(e for part in parts for e in events_of(part))
    return PricedPlan(plan, parts, cost_of(parts, share), events, share.family)


def _best(measurement: Measurement, request: Request, share: Share) -> PricedMeasurement:
    """The bounding with the smallest predicted error; among equals the first, which is cheapest."""
    size = request.size(measurement.privacy.unit)
    copies = match_copies(measurement, request.shelf)
    ranked = None if copies is None else copies.most
    found = request.found.get(measurement.name)
    worth = None if found is None else found.get("worth", 1)
    if worth is not None and narrows(measurement):
        measurement = narrow_ranges(measurement, worth)
    asked = request.bounding
    every = tuple(candidates(measurement, request.groups, size, ranked, found, asked))
    options = tuple(b for b in every if b.name == asked) or every
    drafts = [_draft(measurement, bounding, share) for bounding in options]
    errors = [_part_error(draft) for draft in drafts]
    least = min(errors) + NEGLIGIBLE
    best = next(d for d, error in zip(drafts, errors, strict=True) if error <= least)
    return replace(best, reading=copies)


def _draft(measurement: Measurement, bounding: Bounding, share: Share) -> PricedMeasurement:
    bounding = _with_bits(bounding, share)
    noised = tuple(
        _measured(s, measurement, bounding, share, weight)
        for s, weight in zip(measurement.statistics, _weights(measurement, bounding), strict=True)
    )
    position = _shared(measurement) if measurement.cells is None else None
    noised = pair_halves(noised, bounding, share, WIDEST_NOISE, position, measurement.cells)
    if measurement.cells is not None:
        return PricedMeasurement(measurement, bounding, noised, None, share)
    selection = _selection(bounding, position, share)
    least = None if measurement.terms is None else measurement.terms.least
    if least is not None:
        # A higher threshold only lowers the probability that a group is shown.
        selection = replace(selection, threshold=selection.threshold + least - 1)
    if position is not None:
        kept = list(noised)
        kept[position] = selection.units
        noised = tuple(kept)
    return PricedMeasurement(measurement, bounding, noised, selection, share)


def _weights(measurement: Measurement, bounding: Bounding) -> tuple[Fraction, ...]:
    """How the budget is divided among statistics: a total gets more than the number of its rows.

    The error of a mean is mostly that of its total, since around a centre near the mean the error
    of the number is multiplied by a small number. Other strategies share the noise of both.
    """
    weights = [WHOLE] * len(measurement.statistics)
    if isinstance(bounding, VectorClip):
        for total, count in twins(measurement.statistics):
            weights[total], weights[count] = TOTAL, 2 - TOTAL
    return tuple(weights)


def _with_bits(bounding: Bounding, share: Share) -> Bounding:
    """The bounding with weights as fine as its noise allows; other boundings have no weights.

    Fewer bits are chosen where numbers of rows in steps of ``2**-bits`` would need noise wider than
    ``WIDEST_NOISE``; the same holds for numbers of units. Valued weights keep their bits.
    """
    match bounding:
        case OneRow() | PreparedRows() | UnitTotals() | GroupCaps():
            return bounding
        case RowWeights(valued=True) | WeightsAndGroups(valued=True):
            return bounding
        case RowWeights() | WeightsAndGroups() | NormClip() | VectorClip():
            while bounding.bits > 0:
                moved = [sensitivity(Rows(), 1 << bounding.bits, bounding)]
                if bounding.unit_bits:
                    moved.append(sensitivity(Units(), 1 << bounding.unit_bits, bounding))
                if max(_spread(each, share) for each in moved) < WIDEST_NOISE:
                    break
                bounding = replace(bounding, bits=bounding.bits - 1)
            return bounding
        case _:
            assert_never(bounding)


def _spread(moved: Sensitivity, share: Share) -> float:
    """The approximate standard deviation of the noise, in grid steps."""
    if share.family == "gaussian":
        assert share.rho is not None
        return math.sqrt(float(moved.l2_squared / (2 * share.rho)))
    return float(moved.l1 / share.epsilon)


def _measured(
    statistic: Statistic, measurement: Measurement, bounding: Bounding, share: Share,
    weight: Fraction,
) -> Noised | Chosen:  # fmt: skip
    if isinstance(statistic, Ranked):
        return _chosen(statistic, measurement, bounding, share)
    if weight == WHOLE:
        return _noised(statistic, bounding, share)
    return replace(_noised(statistic, bounding, share.times(weight)), weight=weight)


def _chosen(
    statistic: Ranked, measurement: Measurement, bounding: Bounding, share: Share
) -> Chosen:
    """The choice of a value by its rank, or by how often it occurs.

    Claim: one unit moves the differences between utilities of a group by at most a span, and the
        spans of all groups together are bounded by the sensitivity.
    Assumes: ``bound.bins`` bounds the weights of a unit as its strategy says.
    Argument: for a choice by rank, a row of weight w moves each utility, the distance of a value
        from the rank asked for, by at most w times the steepness, up or down (``release.choose``),
        so the span is twice that. For a choice by frequency, it raises one count by w and lowers
        none. Weights add up.
    """
    reach = statistic.span * (1 << bounding.bin_bits)
    moved = sensitivity(Rows(), reach, bounding)
    bins = buckets(statistic, measurement.cells)
    return Chosen(statistic, bounding.bin_bits, moved, _choice(moved, share, bins.count), bins)


def _choice(moved: Sensitivity, share: Share, candidates: int) -> Exponential:
    """The law of a choice.

    Claim: it costs at most its share.
    Assumes: ``moved`` bounds the spans of utilities.
    Argument: under each limit alone, the law that needs the smaller scale is enough: in rho, the
        bounded range, or any pure mechanism of that rho. A wider scale costs less, so the widest of
        the limits keeps them all. The label of Gaussian noise is that of its rho.
    """
    found = []
    if share.rho is not None:
        ranged = exponential_for_zcdp(moved.l2_squared, share.rho, candidates)
        pure = exponential_for(moved.l1, pure_for_rho(share.rho), candidates)
        found.append(min(ranged, pure, key=_scale))
    if share.label is not None and share.family != "gaussian":
        found.append(exponential_for(moved.l1, share.label, candidates))
    return max(found, key=_scale)


def _scale(law: Exponential) -> Fraction:
    return law.scale


def _noised(statistic: Statistic, bounding: Bounding, share: Share) -> Noised:
    digit = last_digit(statistic) if isinstance(statistic, Total) else None
    coarser = -finer(statistic) if isinstance(statistic, Total) else 0
    while True:
        step(200)
        shift, reach = _shift_and_reach(statistic, bounding, coarser)
        moved = sensitivity(statistic, reach, bounding)
        spread = _spread(moved, share)
        if digit is not None and coarser < 0 and spread >= float(digit) * 2.0**shift:
            coarser = 0  # noise hides the last digit, and the usual grid is computed faster
            continue
        if spread < WIDEST_NOISE:
            return Noised(statistic, shift, moved, _noise(moved, share))
        if not isinstance(statistic, Total) or reach == 1:  # no grid is coarser than one step
            raise Refused(_too_noisy())
        coarser += max(1, int(math.log2(spread / WIDEST_NOISE)))


def _shift_and_reach(statistic: Statistic, bounding: Bounding, coarser: int) -> tuple[int, int]:
    if isinstance(statistic, Total):
        at: Grid = grid(statistic, coarser)
        return at.shift, at.reach if statistic.cap is None else caps.reach(statistic, at, bounding)
    if isinstance(statistic, Rows):
        capped = statistic.cap is not None
        one = 1 << bounding.bits
        return bounding.bits, caps.reach(statistic, None, bounding) if capped else one
    if isinstance(statistic, Units):
        return bounding.unit_bits, 1 << bounding.unit_bits
    return 0, 1


def _noise(moved: Sensitivity, share: Share) -> Noise:
    if share.family == "gaussian":
        assert share.rho is not None
        return gaussian_for(moved.l2_squared, share.rho)
    return laplace_for(moved.l1, share.epsilon)


def _selection(bounding: Bounding, position: int | None, share: Share) -> Selection:
    """How groups that are not public are selected.

    Claim: the probability that any group that exists because of one unit alone is shown is at most
        ``selection_delta``, over all groups of the unit.
    Assumes: the bounding limits a unit to its number of groups.
    Argument: see the threshold functions of ``privacy.mechanisms``. Where ``size`` units count as
        one, up to ``size`` of them may start a group together, so the threshold is higher by ``size
        - 1``.
    """
    moved = sensitivity(Units(), 1, bounding)
    groups, extra = bounding.groups * bounding.size, bounding.size - 1
    delta = share.selection_delta
    if share.family == "gaussian":
        assert share.rho is not None
        gaussian = gaussian_for(moved.l2_squared, share.rho)
        threshold = gaussian_threshold(gaussian.variance, delta, groups) + extra
        return Selection(Noised(Units(), 0, moved, gaussian), threshold, position)
    if groups == 1:
        cut = truncated_geometric_for(share.epsilon, delta)
        return Selection(Noised(Units(), 0, moved, cut), cut.bound + 1, position)
    laplace = laplace_for(moved.l1, share.epsilon)
    threshold = laplace_threshold(laplace.scale, delta, groups) + extra
    return Selection(Noised(Units(), 0, moved, laplace), threshold, position)


def _error(option: PricedPlan) -> float:
    return sum(_part_error(part) for part in option.parts)


def _part_error(part: PricedMeasurement) -> float:
    """The sum of the logarithms of the predicted errors, so that units of measure do not matter."""
    logs = [math.log(max(n.standard_deviation, _unseen(n))) for n in part.noised]
    if part.selection is not None:
        logs.append(math.log(part.selection.threshold))
    return sum(logs)


def _unseen(item: Noised | Chosen) -> float:
    """The error below which differences do not matter: a whole number is hardly ever wrong then."""
    whole = not isinstance(item.statistic, Total) or item.statistic.whole
    return 0.01 if whole else 1e-12


def _require_epsilon(plan: Plan, request: Request) -> None:
    """Refuse a budget so small that even one row would need wider noise than is drawn."""
    statistics = sum(len(_noisy(m)) for m in plan.measurements)
    widest, epsilon, rho = Fraction(WIDEST_NOISE), request.epsilon, request.rho
    if (epsilon is not None and epsilon * widest <= statistics) or (
        rho is not None and 2 * rho * widest**2 <= statistics
    ):
        raise Refused(_too_noisy())


def _require_delta(plan: Plan, request: Request) -> None:
    for measurement in plan.measurements:
        if measurement.cells is None and request.delta == 0:
            raise Refused(_not_public(measurement))


def _not_public(measurement: Measurement) -> Refusal:
    """Groups that are not public need a delta, and the session has none."""
    names = ", ".join(f'"{f.name}"' for f in measurement.key_fields)
    span = next((k.span for k in measurement.keys if k.span is not None), None)
    return Refusal(
        "DP501",
        f"the groups of {names} are not public",
        "A group can exist because of one unit. Seeing it listed shows that the unit is in the "
        "data, whatever noise its count carries. Choosing groups privately needs a delta, and "
        "this session has none.",
        "Name the groups: WHERE key IN ('a', 'b'). Every group that you list is answered, also "
        "empty ones. Or ask the data owner to declare `values` for the column.",
        span,
    )


def _too_noisy() -> Refusal:
    """The noise would be wider than is drawn, and no coarser grid makes it narrower."""
    return Refusal(
        "DP204",
        "the noise of this answer would be larger than what 2^39 rows add up to",
        "One unit may have so many rows, and the epsilon is so small, that the answer would be "
        "noise alone.",
        "Ask for a larger epsilon, or count units: COUNT(DISTINCT the key).",
    )


def _no_mechanism(request: Request) -> Refusal:
    """The mechanism that the session asks for is not one that its role allows."""
    return Refusal(
        "DP405",
        f"the mechanism {request.mechanism} cannot be used here",
        "The role allows " + ", ".join(request.allowed) + "; Gaussian noise also needs a delta.",
        "SET dpsql.mechanism = 'auto'",
    )
