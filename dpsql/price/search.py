"""A private search for how much of a unit should count, where the policy's word is loose.

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

Where nothing is asked but sums, what counts of a unit is not the number of its rows but what their
values add up to, each as if it were positive: as many rows as the policy allows, all of the largest
value that it allows, are more than any unit has, and often far more. The ladder is then finer and
goes on below one row, since ranges of values are often wide. (Where a unit has one row, what is found
is a narrower range.)

Claim: the choice costs what its event says, and the answer what it would if the policy said so.
Assumes: the target is public, and a unit moves the number of units beyond a rung by one.
Argument: a unit has one row in the relation that is searched, so ``price.price`` prices it as any
    choice by rank. What is released is public, and the answer's statement enforces it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.bound.candidates import only_sums
from dpsql.catalog.build import call as apply
from dpsql.catalog.build import clamp, not_null, real
from dpsql.catalog.statistic import Quantile, Total, Units
from dpsql.ir.domain import interval
from dpsql.ir.expressions import Aggregated, Case, Column, Expression, Shape, integer
from dpsql.ir.public_groups import PublicGroups
from dpsql.ir.relations import (
    Aggregate,
    Project,
    Relation,
    Scan,
    Stored,
    walk_relations,
    written_columns,
)
from dpsql.plan.identity import identity
from dpsql.plan.lift import lift_conditions
from dpsql.plan.nodes import Cells, Measurement, Plan
from dpsql.plan.steady import steady
from dpsql.policy.types import Kind
from dpsql.price.price import price
from dpsql.price.priced import Chosen, PricedPlan, Search
from dpsql.price.request import Request

SHARE = Fraction(1, 10)
"""What a search costs of the whole budget of a query."""
CAUTION = 50
"""A bound far too high spoils the answer, one a little low clips a few units: the target is so far from
the end that one search in a thousand, and not one in twenty, may choose a bound that no unit reaches."""

SMALLEST = Fraction(1, 2**10)
"""The lowest bound on what rows of a unit are worth."""
STEPS = 8
"""How many bounds there are from one power of two to the next: a bound is then at most an eighth too high,
and the logarithm of their number, which the target grows with, is hardly larger."""


def price_with_searches(plan: Plan, request: Request) -> PricedPlan:
    """The plan, with the searches that come before it where the request allows them."""
    found = tuple(_searches(plan, request)) if request.search else ()
    if not found:
        return price(plan, request)
    rest = _part(request, 1 - SHARE)
    return replace(price(plan, rest), searches=found, asked=rest)


def with_found_bounds(base: PricedPlan, levels: tuple[int, ...]) -> PricedPlan:
    """The plan under the bounds that its searches have found."""
    assert base.asked is not None
    limits = {
        name: search.rungs[level]
        for search, level in zip(base.searches, levels, strict=True)
        for name in search.measurements
    }
    return price(base.plan, replace(base.asked, found=limits))


def extremes(base: PricedPlan) -> Iterator[PricedPlan]:
    """The plan under the lowest, a middle and the highest of the bounds that may be found."""
    many = [len(search.rungs) for search in base.searches]
    for part in (0.0, 0.5, 1.0) if many else ():
        yield with_found_bounds(base, tuple(int(part * (n - 1)) for n in many))


def _part(request: Request, share: Fraction) -> Request:
    return replace(request, epsilon=request.epsilon * share, delta=request.delta * share)


def _searches(plan: Plan, request: Request) -> Iterator[Search]:
    """One search for all measurements of the same rows."""
    if plan.lookups or any(m.terms is not None for m in plan.measurements):
        return  # rows that depend on released numbers, or bounds that the query names itself
    wanted: dict[object, tuple[Plan, tuple[Fraction, ...], list[str], bool]] = {}
    for measurement in plan.measurements:
        most, valued = measurement.privacy.max_rows, only_sums(measurement)
        rungs = fine_ladder(most) if valued else ladder(most)
        if len(rungs) < 2 or not _profits(measurement):
            continue
        asked = _asked(measurement, rungs)
        names = wanted.setdefault(identity(asked), (_plan(asked), rungs, [], valued))[2]
        names.append(measurement.name)
    for search, rungs, names, valued in wanted.values():
        share = _part(request, SHARE / len(wanted))
        yield Search(_careful(price(search, share)), rungs, tuple(names), valued)


def _careful(search: PricedPlan) -> PricedPlan:
    """The search with a deeper target, as if there were more candidates; its law is the same."""
    [part] = search.parts
    [item] = part.noised
    assert isinstance(item, Chosen)
    law = replace(item.noise, candidates=item.noise.candidates * CAUTION)
    return replace(search, parts=(replace(part, noised=(replace(item, noise=law),)),))


def _profits(measurement: Measurement) -> bool:
    """Whether less of a unit would mean less noise, and can be seen to: see ``plan.steady``."""
    only_units = all(isinstance(s, Units) for s in measurement.statistics)
    return not only_units and steady(measurement.input)


def ladder(most: int) -> tuple[Fraction, ...]:
    """Bounds on numbers of rows to choose from; ``most`` is the highest.

    >>> print(*ladder(20))
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 18 20
    """
    return tuple(rung for rung in fine_ladder(most) if rung.denominator == 1)


def fine_ladder(most: int) -> tuple[Fraction, ...]:
    """Bounds on what rows are worth, from a small part of one.

    >>> [float(rung) for rung in fine_ladder(1)[-4:]]
    [0.8125, 0.875, 0.9375, 1.0]
    """
    rungs, power = set[Fraction](), SMALLEST
    while power < most:
        rungs |= {power * (STEPS + i) / STEPS for i in range(STEPS)}
        power *= 2
    return (*sorted(r for r in rungs if r < most), Fraction(most))


def _asked(measurement: Measurement, rungs: tuple[Fraction, ...]) -> Measurement:
    """On which rung is what each unit has: rows, or sums of values? A unit has one row here."""
    below, privacy = measurement.input, measurement.privacy
    known = written_columns(below)
    keys = tuple(known[min(part & known.keys())] for part in privacy.key)
    numbers = itertools.count(max(c.number for r in walk_relations(below) for c in _columns(r)) + 1)
    sizes = _worth(measurement) if only_sums(measurement) else [_NUMBER]
    found = [Column(next(numbers), "n", size.shape) for size, _ in sizes]
    unit = replace(
        privacy,
        key=tuple(frozenset({key.number}) for key in keys),
        max_rows=1,
        per_group=None,
    )
    by_unit: Relation = Aggregate(below, keys, tuple(c for c, _ in sizes), (*keys, *found), unit)
    if privacy.max_rows == 1:  # a unit is a row, which may have no key
        values = tuple(call.args[0] for call, _ in sizes)
        unit = privacy
        by_unit = Project(below, (*below.fields, *values), (*below.fields, *found), unit)
    last = len(rungs) - 1
    each = [(column, one) for column, (_, one) in zip(found, sizes, strict=True)]
    level = Quantile(_level(each, rungs), 0, last, Fraction(1), extreme=True, kind=Kind.INTEGER)
    column = Column(next(numbers), "rung", level.shape)
    measured = Measurement(
        "m0", by_unit, unit, (), (), Cells(PublicGroups((), ()), 1), (level,), (column,)
    )
    return (
        measured
        if measurement.lifted is None
        else replace(measured, lifted=lift_conditions(by_unit, numbers))
    )


_MANY = Shape(Kind.INTEGER, nullable=False, domain=interval(1, None, integral=True))
_NUMBER = Aggregated("count", (), _MANY), Fraction(1)
"""The number of rows of a unit, each worth one."""


def _worth(measurement: Measurement) -> list[tuple[Aggregated, Fraction]]:
    """What each total sums of a unit, every value as if it were positive, and the largest value."""
    found = []
    for total in measurement.statistics:
        if isinstance(total, Total):
            value = clamp(total.value, total.low, total.high)
            value = apply("abs", apply("subtract", value, real(total.centre)))
            there = not_null(total.value, total.where)
            if there is not None:
                shape = replace(value.shape, nullable=False)
                value = Case(((there, value),), real(Fraction(0)), shape)
            largest = max(abs(total.low - total.centre), abs(total.high - total.centre))
            found.append((Aggregated("sum", (value,), _SUM), largest))
    return found


_SUM = Shape(Kind.DOUBLE, nullable=False)


def _level(each: list[tuple[Column, Fraction]], rungs: tuple[Fraction, ...]) -> Expression:
    """The number of the lowest rung that nothing which a unit has is above."""
    whens = tuple((_within(each, rung), integer(i)) for i, rung in enumerate(rungs[:-1]))
    last = len(rungs) - 1
    shape = Shape(Kind.INTEGER, nullable=False, domain=interval(0, last, integral=True))
    return Case(whens, integer(last), shape)


def _within(each: list[tuple[Column, Fraction]], rung: Fraction) -> Expression:
    parts = [
        apply(
            "le", size, real(rung * one) if size.shape.kind is Kind.DOUBLE else integer(int(rung))
        )
        for size, one in each
    ]
    return functools.reduce(lambda one, other: apply("and", one, other), parts)


def _columns(relation: Relation) -> tuple[Column, ...]:
    owners = relation.unit_fields if isinstance(relation, Scan) else ()
    return (*relation.fields, *owners)


def _plan(measurement: Measurement) -> Plan:
    output = Stored(measurement.name, measurement.columns)
    return Plan((measurement,), (), output, measurement.columns)
