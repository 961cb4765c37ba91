"""Public groups that may have no rows, and what is computed above them.

Every public group is released, whether rows are in it or not. Plain SQL has no group without rows, so
an average, a rank or a join above would be of too many groups. There groups take part only where a
released number of their units is so high that it is hardly ever the noise of a zero.

Claim: which groups take part is a function of released numbers and public noise laws, so it costs
    no more than the number of units, which is a statistic of the measurement like any other. That any
    of the groups without rows takes part has at most the chance ``CHANCE``, over all groups of a
    measurement together.
Argument: the number of units of such a group is zero, and what is released of it is noise; see
    ``privacy.mechanisms.zeros``. Groups with few units are left out with those that have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from typing import Literal

from dpsql.aggregates.statistic import Rows, Statistic, Units
from dpsql.checks.rule import is_measured
from dpsql.plan.nodes import Measurement, UnitCount
from dpsql.policy.types import Kind
from dpsql.privacy.mechanisms.noise_sum import NoiseSum
from dpsql.privacy.mechanisms.zeros import zero_threshold
from dpsql.sql.expressions import (
    Call,
    Column,
    Expression,
    Parameter,
    Shape,
    Subquery,
    Window,
    columns,
    walk,
)
from dpsql.sql.functions import FUNCTIONS
from dpsql.sql.narrow import conjuncts
from dpsql.sql.relations import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Released,
    Scan,
    Sort,
    Stored,
    Union,
    Values,
    Windowed,
    inputs,
)
from dpsql.sql.relations import walk as rows_below

EmptyGroups = Literal["auto", "keep", "drop"]
CHANCE = Fraction(1, 20)
"""That any group without rows takes part, at most."""
_WHOLE = Shape(Kind.INTEGER, nullable=False)


class Above(IntEnum):
    """What stands above groups: nothing, sums to which a group without rows adds 0, or more."""

    NOTHING = 0
    SUMS = 1
    MORE = 2


def above(relation: Relation, below: Relation, state: Above) -> Above:
    """What stands above one of the inputs of a relation that has ``state`` above it."""
    match relation:
        case Project() | Filter() | Sort() | Limit() | Union(operation="union all"):
            return state
        case Join(left=left, right=right):
            return state if _has_one_row(right if below is left else left) else Above.MORE
        case Aggregate(keys=keys, calls=calls) if calls and _adds_zeros(relation):
            return max(state, Above.SUMS) if keys else Above.SUMS
        case Windowed() if _adds_zeros(relation):
            return max(state, Above.SUMS)
        case _:
            return Above.MORE


def _has_one_row(relation: Relation) -> bool:
    """Whether there is at most one row, whatever the data."""
    match relation:
        case Aggregate(keys=(), sets=()):
            return True
        case Values(rows=rows):
            return len(rows) <= 1
        case Limit(count=int() as count):
            return count <= 1
        case Project(input=below) | Filter(input=below) | Sort(input=below) | Windowed(input=below):
            return _has_one_row(below)
        case _:
            return False


def _adds_zeros(relation: Aggregate | Windowed) -> bool:
    """Whether nothing is computed but sums of what is 0 in a group without rows, over all rows."""
    zero = _zeros(relation.input)
    if isinstance(relation, Windowed):
        plain = all(not (w.order or w.frame or w.distinct) for w in relation.windows)
        return plain and all(w.function == "sum" and _in(w.args, zero) for w in relation.windows)
    return all(c.function == "sum" and not c.distinct and _in(c.args, zero) for c in relation.calls)


def _in(args: tuple[Expression, ...], known: set[int]) -> bool:
    return all(isinstance(arg, Column) and arg.number in known for arg in args)


def _zeros(relation: Relation) -> set[int]:
    """Columns that are 0, or NULL, in each row that is there for a group without rows."""
    match relation:
        case Aggregate(keys=keys, calls=calls, fields=fields):
            added = {"count", "sum"} if is_measured(relation) else {"sum"}
            known = None if is_measured(relation) else _zeros(relation.input)
            return {
                field.number
                for field, call in zip(fields[len(keys) :], calls, strict=True)
                if call.function in added and (known is None or _in(call.args, known))
            }
        case Project(values=values, fields=fields):
            known = _zeros(relation.input)
            return {f.number for f, v in zip(fields, values, strict=True) if _in((v,), known)}
        case Filter() | Sort() | Limit() | Windowed():
            return _zeros(relation.input)
        case _:
            return {number for below in inputs(relation) for number in _zeros(below)}


def keeps_empty(aggregate: Aggregate) -> bool:
    """Whether SQL has groups without a pair of rows as well: a LEFT JOIN keeps them."""
    return any(isinstance(r, Join) and r.whole for r in rows_below(aggregate.input))


def drops_empty(aggregate: Aggregate, state: Above, wanted: EmptyGroups) -> bool:
    """Whether of public groups only those with enough units take part, and are shown.

    Of keys alone nothing is shown but which groups there are: conditions on rows decide that.
    """
    if not aggregate.keys or keeps_empty(aggregate):
        return False
    if not aggregate.calls and _is_chosen(aggregate.input, aggregate.keys):
        return True
    return wanted == "drop" or (wanted == "auto" and state is Above.MORE)


def _is_chosen(relation: Relation, keys: tuple[Expression, ...]) -> bool:
    """Whether groups of these keys may lack rows for another reason than that the table has none.

    Conditions on the keys alone decide which groups are public. All others are about rows.
    """
    own = {key.number for key in keys if isinstance(key, Column)}
    while not isinstance(relation, Scan):
        match relation:
            case Filter(predicate=predicate, input=below):
                if not all(_is_about(test, own) for test in conjuncts(predicate)):
                    return True
                relation = below
            case Project(input=below) | Sort(input=below):
                relation = below
            case _:
                return True
    return False


def _is_about(test: Expression, own: set[int]) -> bool:
    later = any(isinstance(part, Parameter | Subquery | Window) for part in walk(test))
    return not later and all(column.number in own for column in columns(test))


def counting_units(measurement: Measurement, columns: Iterator[int]) -> Measurement:
    """The measurement with a number of units for each group, among its statistics or as one more."""
    if measurement.unit_count is not None:
        return measurement
    name = f"{measurement.name}_least"
    for i, statistic in enumerate(measurement.statistics):
        if _is_number_of_units(statistic, measurement):
            return replace(measurement, unit_count=UnitCount(i, name))
    column = Column(next(columns), "units", _WHOLE)
    return replace(
        measurement,
        statistics=(*measurement.statistics, Units()),
        columns=(*measurement.columns, column),
        unit_count=UnitCount(len(measurement.statistics), name),
    )


def _is_number_of_units(statistic: Statistic, measurement: Measurement) -> bool:
    one_each = statistic == Rows() and measurement.privacy.max_rows == 1
    return statistic == Units() or one_each


def with_units(measurement: Measurement) -> Relation:
    """The released groups whose number of units is not taken for the noise of a zero."""
    count = measurement.unit_count
    assert count is not None
    fields = measurement.key_fields + measurement.columns
    least = Parameter(count.least, _WHOLE)
    args = (measurement.columns[count.position], least)
    enough = Call("ge", args, FUNCTIONS["ge"].shape(args, ""))
    return Filter(Stored(measurement.name, fields), enough, fields, Released())


def least_units(measurement: Measurement, noises: tuple[NoiseSum, ...]) -> int:
    """From how many units on, as they were released, a group takes part."""
    assert measurement.cells is not None
    groups = max(1, measurement.cells.count)
    return max(zero_threshold(noise, CHANCE, groups) for noise in noises)


def note(aggregate: Aggregate, state: Above, *, public: bool, dropped: bool) -> str | None:
    """What an answer says of groups: which are there, and which took part."""
    names = ", ".join(dict.fromkeys(f.name for f in aggregate.fields[: len(aggregate.keys)]))
    if not names or keeps_empty(aggregate):
        return None
    if not public:
        hidden = "groups with too few units are hidden, and not in what is computed of others"
        return f"{names}: {hidden}" if state is not Above.NOTHING else None
    if dropped:
        return (
            f"{names}: only groups with enough units, by a noised number, take part; one without rows"
            " does in at most 1 of 20 answers"
        )
    if state is Above.NOTHING:
        return f"{names}: all public groups are shown, those without rows too"
    if state is Above.SUMS:
        return f"{names}: all public groups take part, those without rows as 0"
    return f"{names}: all public groups take part, those without rows too"
