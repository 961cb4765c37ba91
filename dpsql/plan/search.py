"""A private search for how many rows of a unit should count, where the policy's word is loose.

A policy that allows 10,000 rows of a unit, of units that have 50, makes every count 200 times noisier
than it need be. For a tenth of the budget dpsql asks a question of its own first: how many rows do
the units with the most rows have here? What is found is a bound like one of the policy: the rows of
units beyond it weigh less. It is stored like any other answer, and is free for later questions
about the same rows. The other nine tenths are the price of the answer, whether or not the bound was
stored, so that what a query costs depends on no row, and its stored answer serves it again.

The choice is by the exponential mechanism among the rungs of a ladder: a rung is the better, the
nearer the number of units beyond it is to a target, which one unit moves by one. It errs less than
comparing noisy counts with a noisy threshold, rung by rung (the sparse vector technique): one draw
instead of two noises, an error that grows with the logarithm of the rungs, and, since log-ratios of
such a choice lie in an interval of length epsilon, epsilon**2 / 8 in zCDP instead of epsilon**2 / 2.
Since bounds are found before the noise that they allow is drawn, both are charged one after
the other, and add.

Claim: the choice costs what its event says, and the answer what it would if the policy said so.
Argument: a unit has one row in the relation that is searched, so ``plan.price`` prices it as any
    choice by rank. What is released is public, and the answer's statement enforces it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.aggregates.build import call as apply
from dpsql.aggregates.statistic import Quantile, Units
from dpsql.plan.identity import identity
from dpsql.plan.nodes import Cells, Measurement, Plan
from dpsql.plan.price import price
from dpsql.plan.priced import Chosen, PricedPlan, Search
from dpsql.plan.request import Request
from dpsql.plan.steady import steady
from dpsql.policy.types import Kind
from dpsql.sql.domain import interval
from dpsql.sql.expressions import Aggregated, Case, Column, Expression, Shape, integer
from dpsql.sql.relations import Aggregate, Relation, Scan, Stored, walk

SHARE = Fraction(1, 10)
"""What a search costs of the whole budget of a query."""
CAUTION = 50
"""A bound far too high spoils the answer, one a little low clips a few units: the target is so far from
the end that one search in a thousand, and not one in twenty, may choose a bound that no unit reaches."""


def priced(plan: Plan, request: Request) -> PricedPlan:
    """The plan, with the searches that come before it where the request allows them."""
    found = tuple(_searches(plan, request)) if request.search else ()
    if not found:
        return price(plan, request)
    rest = _part(request, 1 - SHARE)
    return replace(price(plan, rest), searches=found, asked=rest)


def settled(base: PricedPlan, levels: tuple[int, ...]) -> PricedPlan:
    """The plan under the bounds that its searches have found."""
    assert base.asked is not None
    limits = {
        name: search.rungs[level]
        for search, level in zip(base.searches, levels, strict=True)
        for name in search.measurements
    }
    return price(base.plan, replace(base.asked, found=limits))


def _part(request: Request, share: Fraction) -> Request:
    return replace(request, epsilon=request.epsilon * share, delta=request.delta * share)


def _searches(plan: Plan, request: Request) -> Iterator[Search]:
    """One search for all measurements of the same rows."""
    if plan.lookups or any(m.terms is not None for m in plan.measurements):
        return  # rows that depend on released numbers, or bounds that the query names itself
    wanted: dict[object, tuple[Plan, tuple[int, ...], list[str]]] = {}
    for measurement in plan.measurements:
        rungs = ladder(measurement.privacy.max_rows)
        if len(rungs) < 2 or not _profits(measurement):
            continue
        asked = _asked(measurement, rungs)
        names = wanted.setdefault(identity(asked), (_plan(asked), rungs, []))[2]
        names.append(measurement.name)
    for search, rungs, names in wanted.values():
        share = _part(request, SHARE / len(wanted))
        yield Search(_careful(price(search, share)), rungs, tuple(names))


def _careful(search: PricedPlan) -> PricedPlan:
    """The search with a deeper target, as if there were more candidates; its law is the same."""
    [part] = search.parts
    [item] = part.noised
    assert isinstance(item, Chosen)
    law = replace(item.noise, candidates=item.noise.candidates * CAUTION)
    return replace(search, parts=(replace(part, noised=(replace(item, noise=law),)),))


def _profits(measurement: Measurement) -> bool:
    """Whether fewer rows of a unit would mean less noise, and can be seen to: see ``plan.steady``."""
    only_units = all(isinstance(s, Units) for s in measurement.statistics)
    return not only_units and steady(measurement.input)


def ladder(most: int) -> tuple[int, ...]:
    """Bounds to choose from, each a third or a half above the last one; ``most`` is the highest.

    >>> ladder(20)
    (1, 2, 3, 4, 6, 8, 12, 16, 20)
    """
    rungs, power = {1}, 2
    while power < most:
        rungs |= {power, power * 3 // 2}
        power *= 2
    return (*sorted(r for r in rungs if r < most), most)


def _asked(measurement: Measurement, rungs: tuple[int, ...]) -> Measurement:
    """On which rung is the number of rows of each unit? A unit has one row here."""
    below, privacy = measurement.input, measurement.privacy
    known = {c.number: c for r in walk(below) for c in _columns(r)}
    keys = tuple(known[min(part & known.keys())] for part in privacy.key)
    numbers = iter(range(max(known) + 1, max(known) + 3))
    shape = Shape(Kind.INTEGER, nullable=False, domain=interval(1, None, integral=True))
    rows = Column(next(numbers), "n", shape)
    count = Aggregated("count", (), shape)
    unit = replace(
        privacy,
        key=tuple(frozenset({key.number}) for key in keys),
        max_rows=1,
        per_group=None,
    )
    by_unit = Aggregate(below, keys, (count,), (*keys, rows), unit)
    last = len(rungs) - 1
    level = Quantile(_level(rows, rungs), 0, last, Fraction(1), extreme=True, kind=Kind.INTEGER)
    column = Column(next(numbers), "rung", level.shape)
    return Measurement("m0", by_unit, unit, (), (), Cells("SELECT 1", 1), (level,), (column,))


def _level(rows: Column, rungs: tuple[int, ...]) -> Expression:
    """The number of the lowest rung that is not below the number of rows."""
    whens = tuple((apply("le", rows, integer(r)), integer(i)) for i, r in enumerate(rungs[:-1]))
    last = len(rungs) - 1
    shape = Shape(Kind.INTEGER, nullable=False, domain=interval(0, last, integral=True))
    return Case(whens, integer(last), shape)


def _columns(relation: Relation) -> tuple[Column, ...]:
    owners = relation.unit_fields if isinstance(relation, Scan) else ()
    return (*relation.fields, *owners)


def _plan(measurement: Measurement) -> Plan:
    output = Stored(measurement.name, measurement.columns)
    return Plan((measurement,), (), output, measurement.columns)
