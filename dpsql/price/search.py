"""A private search for a tighter contribution bound, where the bound of the policy is loose.

If a policy allows 10,000 rows of a unit, and units have 50, every count is 200 times noisier than
it need be. So dpsql first spends a tenth of the budget on a question of its own: how many rows do
the units with the most rows have here? The result is a bound like one of the policy: the rows of
units beyond it weigh less. It is stored like any other answer, and is free for later questions
about the same rows. The other nine tenths are the price of the answer, whether or not the bound was
stored. So the cost of a query depends on no row, and its stored answer can serve it again.

The bound is chosen by the exponential mechanism among candidates (the rungs of a ladder). A rung is
better, the nearer the number of units beyond it is to a target. One unit moves this number by one.
This errs less than comparing noisy counts with a noisy threshold, rung by rung (the sparse vector
technique). It needs one draw instead of two noises, and its error grows with the logarithm of the
number of rungs. As the log-ratios of such a choice lie in an interval of length epsilon, it costs
epsilon**2 / 8 in zCDP instead of epsilon**2 / 2. A bound is found before the noise that it allows
is drawn, so both are charged one after the other, and their costs add.

Where only sums are asked, the size of a unit is not the number of its rows but the sum of the
absolute values of its rows. The most rows that the policy allows, all of the largest value that it
allows, are more than any unit has, and often far more. The ladder is then finer and has rungs below
one row, since ranges of values are often wide. (Where a unit has one row, the result is a narrower
range.)

Rungs do not count alike beforehand. Most rungs are far above any unit, and together they would often
be chosen by chance, unless the target left many units beyond the bound. So a rung t counts as
``t**-1.5`` (its *prior*). Then all rungs above a rung count about as much as the eight around it,
however many there are, and the target can be nearer to the largest units.

Claim: the choice costs what its event states, and the answer costs what it would cost if the policy
    stated the bound that was found.
Assumes: the target and the prior are public, and a unit moves the number of units beyond a rung by
    one.
Argument: a unit has one row in the relation that is searched, so ``price.price`` prices the choice
    like any choice by rank. Log-ratios of two databases are differences of utilities and of the
    logarithms of two sums, in which the prior is the same, so their interval is no longer. The
    released bound is public, and the statement of the answer enforces it.
"""

from __future__ import annotations

import functools
import itertools
import math
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
"""The share of the budget of a query that searches spend."""
_PRIOR_BITS = 48
"""The lowest rung counts as ``2**_PRIOR_BITS``, so that all of them together fit into 64 bits."""

SMALLEST = Fraction(1, 2**10)
"""The lowest bound on the worth of the rows of a unit, in rows of the largest value."""
STEPS = 8
"""The number of bounds from one power of two to the next.

A bound is then at most an eighth too high. The target grows with the logarithm of the number of
bounds, which is hardly larger.
"""


def price_with_searches(plan: Plan, request: Request) -> PricedPlan:
    """The priced plan, with the searches that run before it where the request allows them."""
    found = tuple(_searches(plan, request)) if request.search else ()
    if not found:
        return price(plan, request)
    rest = request.part(1 - SHARE)
    return replace(price(plan, rest), searches=found, asked=rest)


def with_found_bounds(base: PricedPlan, levels: tuple[int, ...]) -> PricedPlan:
    """The plan priced under the bounds that its searches have found."""
    assert base.asked is not None
    limits = {
        name: search.rungs[level]
        for search, level in zip(base.searches, levels, strict=True)
        for name in search.measurements
    }
    return price(base.plan, replace(base.asked, found=limits))


def extremes(base: PricedPlan) -> Iterator[PricedPlan]:
    """The plan priced under the lowest, a middle and the highest bound that may be found."""
    many = [len(search.rungs) for search in base.searches]
    for part in (0.0, 0.5, 1.0) if many else ():
        yield with_found_bounds(base, tuple(int(part * (n - 1)) for n in many))


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
        share = request.part(SHARE / len(wanted))
        yield Search(_with_prior(price(search, share), rungs), rungs, tuple(names), valued)


def _with_prior(search: PricedPlan, rungs: tuple[Fraction, ...]) -> PricedPlan:
    """The search in which lower rungs count more; its law and its cost are the same."""
    [part] = search.parts
    [item] = part.noised
    assert isinstance(item, Chosen)
    assert item.buckets.count == len(rungs), "each rung is a bin"
    return replace(search, parts=(replace(part, noised=(replace(item, prior=prior(rungs)),)),))


def prior(rungs: tuple[Fraction, ...]) -> tuple[int, ...]:
    """How much each rung counts before the data is asked: as ``t**-1.5``, in whole numbers.

    >>> prior((Fraction(1), Fraction(4), Fraction(16)))
    (281474976710656, 35184372088832, 4398046511104)
    """
    steepest = 1 << 2 * _PRIOR_BITS
    return tuple(max(1, math.isqrt(int(steepest * (rungs[0] / rung) ** 3))) for rung in rungs)


def _profits(measurement: Measurement) -> bool:
    """Whether a lower bound means less noise, and can be enforced: see ``plan.steady``."""
    only_units = all(isinstance(s, Units) for s in measurement.statistics)
    return not only_units and steady(measurement.input)


def ladder(most: int) -> tuple[Fraction, ...]:
    """Bounds on numbers of rows to choose from; ``most`` is the highest.

    >>> print(*ladder(20))
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 18 20
    """
    return tuple(rung for rung in fine_ladder(most) if rung.denominator == 1)


def fine_ladder(most: int) -> tuple[Fraction, ...]:
    """Bounds on the worth of rows, which begin at a small part of one row.

    >>> [float(rung) for rung in fine_ladder(1)[-4:]]
    [0.8125, 0.875, 0.9375, 1.0]
    """
    rungs, power = set[Fraction](), SMALLEST
    while power < most:
        rungs |= {power * (STEPS + i) / STEPS for i in range(STEPS)}
        power *= 2
    return (*sorted(r for r in rungs if r < most), Fraction(most))


def _asked(measurement: Measurement, rungs: tuple[Fraction, ...]) -> Measurement:
    """The measurement of a search: the rung of each unit, by its rows or its sums of values.

    A unit has one row in its relation.
    """
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
    """For each total, the sum of absolute values of a unit, and the largest absolute value."""
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
    """The position of the lowest rung that none of a unit's sizes exceeds."""
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
