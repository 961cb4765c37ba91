"""Public groups that may have no rows, and the operators above them.

Every public group is released, whether it has rows or not. Plain SQL has no group without rows, so
an average, a rank or a join above would read too many groups. Below such an operator a group takes
part only if the released number of its units is so high that it is hardly ever the noise of a zero.

Claim: which groups take part is a function of released numbers and public noise laws. So it costs
    no more than the number of units, which is a statistic of the measurement like any other. The
    probability that any group without rows takes part is at most ``CHANCE``, over all groups of a
    measurement together.
Assumes: the noise of the number of units is drawn as it was priced.
Argument: the number of units of a group without rows is zero, so its released number is noise
    alone; see ``privacy.mechanisms.zeros``. Groups with few units are left out with those that have
    none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from typing import Literal

from dpsql.catalog.functions import FUNCTIONS
from dpsql.catalog.statistic import Rows, Statistic, Units
from dpsql.checks.rule import is_measured
from dpsql.ir.expressions import (
    NULL,
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Parameter,
    Shape,
    Subquery,
    Window,
    columns,
    conjuncts,
    walk,
)
from dpsql.ir.relations import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Project,
    Public,
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
from dpsql.ir.relations import walk_relations as rows_below
from dpsql.plan.nodes import Measurement, UnitCount
from dpsql.policy.types import Kind
from dpsql.privacy.mechanisms.noise_sum import NoiseSum
from dpsql.privacy.mechanisms.zeros import zero_threshold

EmptyGroups = Literal["auto", "keep", "drop"]
CHANCE = Fraction(1, 20)
"""The highest probability that any group without rows takes part."""
_WHOLE = Shape(Kind.INTEGER, nullable=False)


class Above(IntEnum):
    """The operators above groups: none, sums to which an empty group adds 0, others, or both."""

    NOTHING = 0
    SUMS = 1
    MORE = 2
    MORE_AND_SUMS = 3


def above(relation: Relation, below: Relation, state: Above) -> Above:
    """The operators above one input of a relation that has ``state`` above it."""
    match relation:
        case Project() | Sort() | Union(operation="union all"):
            return state
        case Filter(predicate=predicate, input=groups):
            plain = state is Above.NOTHING or _is_of_keys(predicate, groups)
            return state if plain else max(state, Above.MORE)
        case Limit():
            return state if state is Above.NOTHING else max(state, Above.MORE)
        case Join(left=left, right=right):
            return (
                state if _has_one_row(right if below is left else left) else max(state, Above.MORE)
            )
        case Aggregate(keys=keys, calls=calls) if calls and _adds_zeros(relation):
            return max(state, Above.SUMS) if keys else Above.SUMS
        case Windowed() if _adds_zeros(relation):
            return max(state, Above.SUMS)
        case Aggregate(calls=calls) | Windowed(windows=calls):
            return max(state, Above.MORE_AND_SUMS if _adds(calls) else Above.MORE)
        case _:
            return max(state, Above.MORE)


def _adds(calls: Sequence[Aggregated | Window]) -> bool:
    """Whether groups are summed or counted. A reader may then think that no group is missing."""
    return any(call.function in ("sum", "count") for call in calls)


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
    """Whether a relation only sums columns that are 0 in groups without rows.

    The groups that are summed must be chosen by keys alone.
    """
    below = relation.input
    zero = _zeros(below)
    calls: tuple[Window | Aggregated, ...]
    if isinstance(relation, Windowed):
        calls, parts = relation.windows, [p for w in relation.windows for p in w.partition]
        if any(w.order or w.frame is not None for w in relation.windows):
            return False
    else:
        calls, parts = relation.calls, list(relation.keys)
    parts += [call.where for call in calls if call.where is not None]
    sums = all(c.function == "sum" and not c.distinct and _in(c.args, zero) for c in calls)
    return sums and all(_is_of_keys(part, below) for part in parts)


def _is_of_keys(value: Expression, relation: Relation) -> bool:
    """Whether a value is computed from keys of groups and from public columns alone."""
    known = _keys(relation)
    return all(column.number in known for column in columns(value))


def _keys(relation: Relation) -> set[int]:
    """Columns that are known of a group whether it has rows or not."""
    match relation:
        case Aggregate(input=below, keys=keys, fields=fields):
            told = is_measured(relation) or not isinstance(below.privacy, Released)
            return {
                f.number
                for f, key in zip(fields, keys, strict=False)
                if told or _is_of_keys(key, below)
            }
        case Project(input=below, values=values, fields=fields):
            pairs = zip(fields, values, strict=True)
            return {f.number for f, v in pairs if _is_of_keys(v, below)}
        case Windowed(input=below):
            return _keys(below)
        case _ if isinstance(relation.privacy, Public):
            return {f.number for f in relation.fields}
        case _:
            return {number for below in inputs(relation) for number in _keys(below)}


def _in(args: tuple[Expression, ...], known: set[int]) -> bool:
    return all(isinstance(arg, Column) and arg.number in known for arg in args)


def _zeros(relation: Relation) -> set[int]:
    """Columns that are 0 or NULL in each row of a group without rows."""
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
    """Whether plain SQL has groups without rows as well, because a LEFT JOIN keeps them."""
    return any(isinstance(r, Join) and r.whole for r in rows_below(aggregate.input))


def drops_empty(aggregate: Aggregate, state: Above, wanted: EmptyGroups) -> bool:
    """Whether only public groups with enough units take part and are shown.

    A grouping without aggregates shows only which groups exist. Where conditions on rows decide
    that, groups without enough units are dropped.
    """
    if not aggregate.keys or keeps_empty(aggregate):
        return False
    if not aggregate.calls and _is_chosen(aggregate.input, aggregate.keys):
        return True
    return wanted == "drop" or (wanted == "auto" and state >= Above.MORE)


def hides_noise(aggregate: Aggregate, state: Above, wanted: EmptyGroups) -> bool:
    """Whether groups that a LEFT JOIN keeps get NULL for all but counts if they may have no rows.

    Plain SQL has NULL there, which averages and ranks ignore. The released value would be noise
    alone.
    """
    if not aggregate.keys or not keeps_empty(aggregate) or not _beside_counts(aggregate):
        return False
    return wanted == "drop" or (wanted == "auto" and state >= Above.MORE)


def _beside_counts(aggregate: Aggregate) -> bool:
    """Whether it has calls other than counts. Plain SQL has NULL for them in an empty group."""
    return any(call.function != "count" for call in aggregate.calls)


def without_noise(aggregate: Aggregate, finished: Project, measurement: Measurement) -> Project:
    """The finished groups, with NULL for all but counts where the number of units is too small."""
    enough, place = _enough(measurement), len(aggregate.keys)
    values = list(finished.values)
    for i, call in enumerate(aggregate.calls, place):
        if call.function != "count":
            shape = values[i].shape.optional()
            values[i] = Case(((enough, values[i]),), replace(NULL, shape=shape), shape)
    fields = tuple(
        replace(f, shape=v.shape) if i >= place else f
        for i, (f, v) in enumerate(zip(finished.fields, values, strict=True))
    )
    return replace(finished, values=tuple(values), fields=fields)


def _is_chosen(relation: Relation, keys: tuple[Expression, ...]) -> bool:
    """Whether groups of these keys may have no rows although the table has rows with these keys.

    Conditions on the keys alone decide which groups are public. All other conditions select rows.
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
    """The measurement with a number of units of each group: an existing statistic, or a new one."""
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
    """The released groups whose number of units is too high to be the noise of a zero."""
    fields = measurement.key_fields + measurement.columns
    return Filter(Stored(measurement.name, fields), _enough(measurement), fields, Released())


def _enough(measurement: Measurement) -> Call:
    """Whether the released number of units is more than the noise of a zero."""
    count = measurement.unit_count
    assert count is not None
    args = (measurement.columns[count.position], Parameter(count.least, _WHOLE))
    return Call("ge", args, FUNCTIONS["ge"].shape(args, ""))


def least_units(measurement: Measurement, noises: tuple[NoiseSum, ...]) -> int:
    """The smallest released number of units with which a group takes part."""
    assert measurement.cells is not None
    groups = max(1, measurement.cells.count)
    return max(zero_threshold(noise, CHANCE, groups) for noise in noises)


_HIDDEN = (
    "a group shows more than counts only if its noisy number of units is large enough; a group "
    "without rows does so in at most 1 of 20 answers"
)
_SHOWN = "groups without rows are shown too; in them, whatever is not a count is 0 or noise"


def note(aggregate: Aggregate, state: Above, *, public: bool, dropped: bool) -> str | None:
    """The note of an answer on which groups it has, and which groups took part."""
    names = ", ".join(aggregate.key_names)
    if names and keeps_empty(aggregate) and _beside_counts(aggregate):
        return f"{names}: {_HIDDEN if dropped else _SHOWN}"
    if not names or keeps_empty(aggregate):
        return None
    if not public:
        left_out = (
            f"{names}: groups that are not shown are left out of what is computed from groups"
        )
        return None if state is Above.NOTHING else left_out
    if dropped:
        sums = ", also in sums and counts of groups" if state is Above.MORE_AND_SUMS else ""
        return (
            f"{names}: only groups whose noisy number of units is large enough take part{sums}; "
            "a group without rows does so in at most 1 of 20 answers"
        )
    if state is Above.NOTHING:
        return f"{names}: all public groups are shown, those without rows too"
    if state is Above.SUMS:
        return f"{names}: all public groups take part, those without rows as 0"
    return f"{names}: all public groups take part, those without rows too"
