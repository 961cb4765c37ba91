"""How much each unit adds to a measurement, as a private relation with one row for each unit.

A search chooses a bound on these sizes. The relation has a number for each unit: the position of
the lowest rung that bounds the unit. It is built from the rows of the measurement, so the second
check and the neighbour laws see it like any other question.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.bound.found_limits import Norm
from dpsql.catalog.build import call as apply
from dpsql.catalog.build import clamp, not_null, real
from dpsql.catalog.statistic import Quantile, Total
from dpsql.ir.domain import interval
from dpsql.ir.expressions import Aggregated, Case, Column, Expression, Shape, integer
from dpsql.ir.public_groups import PublicGroups
from dpsql.ir.relations import (
    Aggregate,
    Private,
    Project,
    Relation,
    Scan,
    walk_relations,
    written_columns,
)
from dpsql.plan.lift import lift_conditions
from dpsql.plan.nodes import Cells, Measurement
from dpsql.policy.types import Kind
from dpsql.price.size import Size

_MANY = Shape(Kind.INTEGER, nullable=False, domain=interval(1, None, integral=True))
_SUM = Shape(Kind.DOUBLE, nullable=False)
_MEAN = Shape(Kind.DOUBLE)
_HALF = Fraction(1, 2)


def rungs_of_units(
    measurement: Measurement, size: Size, rungs: tuple[Fraction, ...]
) -> Measurement:
    """The measurement of a search: the rung of each unit. A unit has one row in its relation."""
    numbers = unused_numbers(measurement)
    by_unit, unit, sizes = _sized(measurement, size, numbers)
    last = len(rungs) - 1
    level = Quantile(
        _level(sizes, rungs, size.norm), 0, last, Fraction(1), extreme=True, kind=Kind.INTEGER
    )
    return _asked(measurement, by_unit, unit, level, numbers)


def centre_of_units(measurement: Measurement, total: Total) -> Measurement:
    """The measurement of a centre: the median, over units, of the mean of a unit's values."""
    numbers = unused_numbers(measurement)
    value = apply("cast", total.value, option=Kind.DOUBLE.value)
    if measurement.privacy.max_rows == 1:
        middle = Quantile(value, total.low, total.high, _HALF, where=total.where)
        return _asked(measurement, measurement.input, measurement.privacy, middle, numbers)
    keys, unit = _unit(measurement)
    mean = Column(next(numbers), "mean", _MEAN)
    value = clamp(value, total.low, total.high)
    call = Aggregated("avg", (value,), _MEAN, where=total.where)
    below = Aggregate(measurement.input, keys, (call,), (*keys, mean), unit)
    middle = Quantile(mean, total.low, total.high, _HALF)
    return _asked(measurement, below, unit, middle, numbers)


def _asked(
    measurement: Measurement, by_unit: Relation, unit: Private, level: Quantile,
    numbers: Iterator[int],
) -> Measurement:  # fmt: skip
    column = Column(next(numbers), "rung" if level.extreme else "centre", level.shape)
    measured = Measurement(
        "m0", by_unit, unit, (), (), Cells(PublicGroups((), ()), 1), (level,), (column,)
    )
    if measurement.lifted is None:
        return measured
    return replace(measured, lifted=lift_conditions(by_unit, numbers))


def unused_numbers(measurement: Measurement) -> Iterator[int]:
    """The column numbers above those of a measurement's rows."""
    used = (c.number for r in walk_relations(measurement.input) for c in _columns(r))
    return itertools.count(max(used) + 1)


def _columns(relation: Relation) -> tuple[Column, ...]:
    owners = relation.unit_fields if isinstance(relation, Scan) else ()
    return (*relation.fields, *owners)


def _unit(measurement: Measurement) -> tuple[tuple[Column, ...], Private]:
    """The columns of the unit's key, and the privacy of a relation with one row for each unit."""
    privacy, known = measurement.privacy, written_columns(measurement.input)
    keys = tuple(known[min(part & known.keys())] for part in privacy.key)
    own = tuple(frozenset({key.number}) for key in keys)
    return keys, replace(privacy, key=own, max_rows=1, per_group=None)


def _sized(
    measurement: Measurement, size: Size, numbers: Iterator[int]
) -> tuple[Relation, Private, list[tuple[Column, Fraction]]]:
    """Units with their sizes, and what one row adds to each size at most.

    Where groups matter, rows are added up by unit and group first, and then by unit.
    """
    below, parts = measurement.input, _parts(measurement, size)
    calls, each = tuple(call for call, _ in parts), [one for _, one in parts]
    if measurement.privacy.max_rows == 1:  # a unit is a row, which may have no key
        unit, values = measurement.privacy, tuple(apply("abs", call.args[0]) for call in calls)
        found = _columns_for(values, numbers)
        rows = Project(below, (*below.fields, *values), (*below.fields, *found), unit)
        return rows, unit, list(zip(found, each, strict=True))
    keys, unit = _unit(measurement)
    if not size.by_row and (size.amount != "rows" or size.norm != 1):
        inner, groups = _columns_for(calls, numbers), _columns_for(measurement.keys, numbers)
        several = replace(unit, max_rows=measurement.privacy.max_rows)
        by_group = (*keys, *measurement.keys)
        below = Aggregate(below, by_group, calls, (*keys, *groups, *inner), several)
        calls = tuple(_length(column, size) for column in inner)
    found = _columns_for(calls, numbers)
    units = Aggregate(below, keys, calls, (*keys, *found), unit)
    return units, unit, list(zip(found, each, strict=True))


def _columns_for(
    values: Iterable[Expression | Aggregated], numbers: Iterator[int]
) -> tuple[Column, ...]:
    """New columns for computed values."""
    return tuple(Column(next(numbers), "n", value.shape) for value in values)


def _parts(measurement: Measurement, size: Size) -> list[tuple[Aggregated, Fraction]]:
    """What is added up by unit, or by unit and group, and how much of it is one row."""
    if size.amount != "worth":
        return [(Aggregated("count", (), _MANY), Fraction(1))]
    found = []
    for total in measurement.statistics:
        if isinstance(total, Total):
            value = _offset(total)
            if size.by_row:
                value = apply("abs", value)
            largest = max(abs(total.low - total.centre), abs(total.high - total.centre))
            found.append((Aggregated("sum", (value,), _SUM), largest))
    return found


def _offset(total: Total) -> Expression:
    """What a row adds to a total, before rounding to a grid; zero for rows that do not count."""
    value = clamp(total.value, total.low, total.high)
    value = apply("subtract", value, real(total.centre))
    there = not_null(total.value, total.where)
    if there is None:
        return value
    return Case(((there, value),), real(Fraction(0)), replace(value.shape, nullable=False))


def _length(column: Column, size: Size) -> Aggregated:
    """What a group adds to the size of its unit."""
    if size.amount == "units":
        return Aggregated("count", (), _MANY)
    value = apply("cast", column, option=Kind.DOUBLE.value)
    if size.norm == 2:
        return Aggregated("sum", (apply("multiply", value, value),), _SUM)
    return Aggregated("sum", (apply("abs", value),), _SUM)


def _level(
    sizes: list[tuple[Column, Fraction]], rungs: tuple[Fraction, ...], norm: Norm
) -> Expression:
    """The position of the lowest rung that none of a unit's sizes exceeds."""
    whens = tuple((_within(sizes, rung, norm), integer(i)) for i, rung in enumerate(rungs[:-1]))
    last = len(rungs) - 1
    shape = Shape(Kind.INTEGER, nullable=False, domain=interval(0, last, integral=True))
    return Case(whens, integer(last), shape)


def _within(sizes: list[tuple[Column, Fraction]], rung: Fraction, norm: Norm) -> Expression:
    """Whether a unit is within a rung. Sizes in the Euclidean norm are its squares."""
    parts = [apply("le", size, _end(size, (rung * one) ** norm)) for size, one in sizes]
    return functools.reduce(lambda one, other: apply("and", one, other), parts)


def _end(size: Column, end: Fraction) -> Expression:
    return real(end) if size.shape.kind is Kind.DOUBLE else integer(math.floor(end))
