"""Private searches for tighter limits on what a unit adds, where those of the policy are loose.

If a policy allows 10,000 rows of a unit, and units have 50, every count is 200 times noisier than
it need be. So dpsql first spends a part of the budget on questions of its own: how many rows, or
groups, do the units with the most have here, and what do their values add up to? The results are
limits like those of the policy: units beyond them count as the limit. They are stored like any
other answer, and are free for later questions about the same rows. The rest of the budget is the
price of the answer, whether or not the limits were stored. So the cost of a query depends on no
row, and its stored answer can serve it again.

A limit is chosen by the exponential mechanism among candidates (the rungs of a ladder). A rung is
better, the nearer the number of units beyond it is to a target. One unit moves this number by one.
This errs less than comparing noisy counts with a noisy threshold, rung by rung (the sparse vector
technique). It needs one draw instead of two noises, and its error grows with the logarithm of the
number of rungs. As the log-ratios of such a choice lie in an interval of length epsilon, it costs
epsilon**2 / 8 in zCDP instead of epsilon**2 / 2. A limit is found before the noise that it allows
is drawn, so both are charged one after the other, and their costs add.

The size of a unit is the norm of its vector over all groups: the sum of absolute values for Laplace
noise, the Euclidean norm for Gaussian noise. Which noise errs less may depend on what is found.
Then both norms are searched. Sums beside their number of rows are taken around a centre near the
mean, which is found first (``price.centres``).

Rungs do not count alike beforehand. Most rungs are far above any unit, and together they would often
be chosen by chance, unless the target left many units beyond the limit. So a rung t counts as
``t**-1.5`` (its *prior*). Then all rungs above a rung count about as much as the eight around it,
however many there are, and the target can be nearer to the largest units.

Claim: the choices cost what their events state, and the answer costs what it would cost if the
    policy stated the limits that were found.
Assumes: the targets and the prior are public, and a unit moves the number of units beyond a rung by
    one.
Argument: a unit has one row in the relation that is searched, so ``price.price`` prices the choice
    like any choice by rank. Log-ratios of two databases are differences of utilities and of the
    logarithms of two sums, in which the prior is the same, so their interval is no longer. What was
    released is public, also where a later search depends on it. The statement of the answer
    enforces the limits. The shares of the budget are fixed before the first search.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.bound.candidates import clips_vectors, narrows, only_sums
from dpsql.bound.found_limits import Amount, FoundLimits, Norm
from dpsql.bound.sensitivity import has_cap
from dpsql.catalog.statistic import Ranked, Rows, Statistic, Total, Units
from dpsql.ir.relations import Stored
from dpsql.plan.identity import identity
from dpsql.plan.nodes import Measurement, Plan
from dpsql.plan.steady import steady
from dpsql.price.centres import centred_sums, with_centres
from dpsql.price.divide import divide
from dpsql.price.ladder import fine_ladder, ladder, prior
from dpsql.price.price import price
from dpsql.price.priced import Chosen, PricedPlan, Search
from dpsql.price.request import Request
from dpsql.price.size import Size
from dpsql.price.sizes import centre_of_units, rungs_of_units
from dpsql.privacy.cost import Cost

SHARE = Fraction(1, 10)
"""The share of the budget of a query that searches spend."""
CENTRED = Fraction(15, 100)
"""The same where sums are centred."""
OF_CENTRES = Fraction(1, 4)
"""The part of it that is for the centres."""
FEW = Fraction(3, 10)
"""The same for answers of at most ``FEW_CELLS`` numbers, which have little noise beside the bound."""
FEW_CELLS = 3
DEEP = 0.5
"""How much of the depth is used at which bias and noise are equal."""
SOME = Fraction(2, 10)
"""The same for answers of at most ``MANY_CELLS`` numbers."""
MANY_CELLS = 20
MANY_SUMS = 12
"""The most sums of one statement whose values are searched: each is a condition on each rung."""
MANY_COUNTS = {"laplace": 13, "gaussian": 8}
"""The number of groups from which counts gain by a search, by the mechanism."""


def price_with_searches(plan: Plan, request: Request) -> PricedPlan:
    """The priced plan, with the searches that run before it where the request allows them."""
    share = _share(plan, request)
    if share is None:
        return price(plan, request)
    centres = tuple(_centres(plan, request, share))
    searches = centres or tuple(_limits(plan, request, share))
    found = replace(price(plan, request.part(1 - share)), searches=searches, asked=request)
    return replace(found, later=_cost(_limits(plan, request, share))) if centres else found


def with_found(base: PricedPlan, found: tuple[float, ...]) -> PricedPlan:
    """The plan after its searches have found something; it may have further searches."""
    assert base.asked is not None
    share = _share(base.plan, base.asked)
    assert share is not None, "the plan has searches"
    rest = base.asked.part(1 - share)
    if any(search.size is None for search in base.searches):
        centres = {
            (name, search.position): Fraction(value)
            for search, value in zip(base.searches, found, strict=True)
            for name in search.measurements
        }
        plan = with_centres(base.plan, centres)
        searches = tuple(_limits(plan, base.asked, share))
        return replace(price(plan, rest), searches=searches, asked=base.asked)
    limits: dict[str, list[tuple[Amount, Norm, Fraction]]] = {}
    for search, value in zip(base.searches, found, strict=True):
        assert search.size is not None
        limit = search.size.amount, search.size.norm, search.rungs[int(value)]
        for name in search.measurements:
            limits.setdefault(name, []).append(limit)
    named = {name: FoundLimits(tuple(each)) for name, each in limits.items()}
    return price(base.plan, replace(rest, found=named))


def extremes(base: PricedPlan) -> Iterator[PricedPlan]:
    """The plan after searches that find the lowest, a middle and the highest value.

    Also the plans in between, which have further searches.
    """
    for part in (0.0, 0.5, 1.0) if base.searches else ():
        found = base
        while found.searches:
            found = with_found(found, tuple(_at(search, part) for search in found.searches))
            yield found


def every_search(base: PricedPlan) -> Iterator[Search]:
    """All searches, round by round. Those around a centre are shown for the middle of its range."""
    while base.searches:
        yield from base.searches
        base = with_found(base, tuple(_at(search, 0.5) for search in base.searches))


def _at(search: Search, part: float) -> float:
    """A value that a search may find."""
    if search.size is not None:
        return int(part * (len(search.rungs) - 1))
    low, high = search.rungs
    return float(low + (high - low) * Fraction(part))


def _cost(searches: Iterable[Search]) -> Cost:
    return sum((search.priced.cost for search in searches), Cost.zero())


def _share(plan: Plan, request: Request) -> Fraction | None:
    """The share of the budget that searches spend; None if there are none."""
    wanted = [m for m in plan.measurements if any(_sizes(m, plan, request))]
    if not wanted:
        return None
    cells = max(m.cells.count if m.cells is not None else MANY_CELLS + 1 for m in wanted)
    if cells <= MANY_CELLS:
        return FEW if cells <= FEW_CELLS else SOME
    return CENTRED if any(map(_is_centred, wanted)) else SHARE


def _centres(plan: Plan, request: Request, share: Fraction) -> Iterator[Search]:
    """One search for the centre of each sum that may have another; equal ones are one."""
    wanted: dict[object, tuple[Plan, Total, int, list[str]]] = {}
    for measurement in plan.measurements:
        if not any(_sizes(measurement, plan, request)):
            continue
        for position in _to_centre(measurement):
            total = measurement.statistics[position]
            assert isinstance(total, Total)
            asked = centre_of_units(measurement, total)
            known = wanted.setdefault(
                (identity(asked), position), (_plan(asked), total, position, [])
            )
            known[3].append(measurement.name)
    for search, total, position, names in wanted.values():
        priced = price(search, request.part(share * OF_CENTRES / len(wanted)))
        [part] = priced.parts
        [item] = part.noised
        assert isinstance(item, Chosen)
        priced = replace(priced, parts=(replace(part, noised=(replace(item, search=True),)),))
        yield Search(priced, (total.low, total.high), tuple(names), None, position)


def _is_centred(measurement: Measurement) -> bool:
    return next(_to_centre(measurement), None) is not None


def _to_centre(measurement: Measurement) -> Iterator[int]:
    """The positions of the sums whose centre is searched for."""
    if measurement.cells is not None and (
        clips_vectors(measurement) or measurement.privacy.max_rows == 1
    ):
        yield from (i for i, _ in centred_sums(measurement))


def _limits(plan: Plan, request: Request, share: Fraction) -> Iterator[Search]:
    """One search for all measurements of the same rows and groups, for each size."""
    wanted: dict[object, tuple[Plan, tuple[Fraction, ...], list[str], Size, Measurement]] = {}
    centred = False
    for measurement in plan.measurements:
        for size in _sizes(measurement, plan, request):
            centred = centred or _is_centred(measurement)
            rungs = _rungs(measurement, size)
            asked = rungs_of_units(measurement, size, rungs)
            key = identity(asked), size.norm
            wanted.setdefault(key, (_plan(asked), rungs, [], size, measurement))[2].append(
                measurement.name
            )
    part = share * (1 - OF_CENTRES) if centred else share
    for search, rungs, names, size, measurement in wanted.values():
        priced = price(search, request.part(part / len(wanted)))
        deep = _depth(measurement, size, request.part(1 - share))
        yield Search(_with_prior(priced, rungs, deep), rungs, tuple(names), size)


def _depth(measurement: Measurement, size: Size, rest: Request) -> int:
    """The number of units that a limit may leave beyond it, because the noise of many groups shrinks.

    A limit that is lower by d takes at most d off each of r larger units. Spread over D groups,
    this is d r / D for each group, or d r / sqrt(D) in the Euclidean norm. The noise of each group
    shrinks by its deviation times d. Up to the r at which both are equal, a lower limit is better.
    """
    deviations, groups = _families(measurement, rest), 1
    if measurement.cells is not None:
        groups = measurement.cells.count
    if size.norm == 1:
        return int(DEEP * deviations.get("laplace", 0.0) * groups)
    return int(DEEP * deviations.get("gaussian", 0.0) * math.sqrt(groups))


def _with_prior(search: PricedPlan, rungs: tuple[Fraction, ...], deep: int) -> PricedPlan:
    """The search in which lower rungs count more; its law and its cost are the same."""
    [part] = search.parts
    [item] = part.noised
    assert isinstance(item, Chosen)
    assert item.buckets.count == len(rungs), "each rung is a bin"
    chosen = replace(item, prior=prior(rungs), deep=deep << item.shift, search=True)
    return replace(search, parts=(replace(part, noised=(chosen,)),))


def _sizes(measurement: Measurement, plan: Plan, request: Request) -> Iterator[Size]:
    """The sizes of units whose limits are searched for."""
    if plan.lookups or measurement.terms is not None or not _gains(measurement, request):
        return  # rows that depend on released numbers, or limits that the query names itself
    yield from _useful_sizes(measurement, request)


def _gains(measurement: Measurement, request: Request) -> bool:
    """Whether searches are wanted here.

    With ``auto``, they are made where a bound that errs is better than the loosest one that the
    policy allows for most tables: for sums, and for counts of many groups.
    """
    statistics, cells = measurement.statistics, measurement.cells
    sums = sum(map(_is_sum, statistics))
    if request.search == "off" or sums > MANY_SUMS:
        return False
    if request.search == "on" or sums:
        return True
    if measurement.privacy.max_rows == 1 or cells is None:
        return False
    many = min(MANY_COUNTS[family] for family in _families(measurement, request))
    return cells.count >= many


def _is_sum(statistic: Statistic) -> bool:
    return (
        isinstance(statistic, Total) and not has_cap(statistic) and statistic.low < statistic.high
    )


def _families(measurement: Measurement, request: Request) -> dict[str, float]:
    """The deviation of noise for a norm of one, by the family of mechanisms that may be used."""
    statistics, selections = len(measurement.statistics), int(measurement.cells is None)
    found = {}
    for share in divide(request, statistics, selections):
        if share.family == "gaussian":
            assert share.rho is not None
            found[share.family] = 1 / math.sqrt(2 * float(share.rho))
        else:
            found[share.family] = math.sqrt(2) / float(share.epsilon)
    return found or {"laplace": 1.0}  # pricing refuses what no mechanism may answer


def _norms(measurement: Measurement, request: Request) -> tuple[Norm, ...]:
    """The norms that may decide the noise: |v|_2 <= |v|_1 <= sqrt(groups) |v|_2."""
    deviations = _families(measurement, request)
    laplace, gaussian = deviations.get("laplace"), deviations.get("gaussian")
    if gaussian is None:
        return (1,)
    if laplace is None or gaussian <= laplace:
        return (2,)
    groups = 1 if measurement.cells is None else measurement.cells.count
    return (1,) if laplace * math.sqrt(groups) <= gaussian else (1, 2)


def _useful_sizes(measurement: Measurement, request: Request) -> Iterator[Size]:
    statistics, cells = measurement.statistics, measurement.cells
    most = measurement.privacy.max_rows
    if most == 1:
        if any(map(_is_sum, statistics)) and narrows(measurement):
            yield Size("worth", 1, by_row=True)
        return
    if cells is None or not clips_vectors(measurement):
        if all(isinstance(s, Units) for s in statistics) or not steady(measurement.input):
            return
        yield Size("worth" if only_sums(measurement) else "rows", 1, by_row=True)
        if cells is not None and 2 in _norms(measurement, request) and _has_votes(measurement):
            yield Size("rows", 2, by_row=False)
        return
    for norm in _norms(measurement, request):
        if any(isinstance(s, Units) for s in statistics) and min(most, cells.count) > 1:
            yield Size("units", norm, by_row=False)
        if any(isinstance(s, Rows) for s in statistics):
            yield Size("rows", norm, by_row=False)
        if any(map(_is_sum, statistics)):
            yield Size("worth", norm, by_row=False)


def _has_votes(measurement: Measurement) -> bool:
    """Whether values are chosen by their ranks, and nothing counts units."""
    kinds = Ranked | Rows | Total
    chosen = any(isinstance(s, Ranked) for s in measurement.statistics)
    return chosen and all(isinstance(s, kinds) and not has_cap(s) for s in measurement.statistics)


def _rungs(measurement: Measurement, size: Size) -> tuple[Fraction, ...]:
    """The limits to choose from."""
    most, cells = measurement.privacy.max_rows, measurement.cells
    if size.amount == "units":
        assert cells is not None
        groups = min(most, cells.count)
        return (
            ladder(groups) if size.norm == 1 else _euclidean(Fraction(math.isqrt(groups - 1) + 1))
        )
    if size.amount == "worth":
        return fine_ladder(Fraction(most))
    return ladder(most) if size.norm == 1 else _euclidean(Fraction(most))


def _euclidean(most: Fraction) -> tuple[Fraction, ...]:
    """Limits on the Euclidean norm of whole numbers, which is one at least."""
    return fine_ladder(most, Fraction(1))


def _plan(measurement: Measurement) -> Plan:
    output = Stored(measurement.name, measurement.columns)
    return Plan((measurement,), (), output, measurement.columns)
