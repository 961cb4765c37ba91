"""Means of counts and sums of groups, as totals over the rows divided by the number of groups.

``SELECT country, AVG(n) FROM (SELECT country, joined, COUNT(*) AS n ...) GROUP BY country``: if
there are many days with few rows each, no noised number tells which days have rows. But the sum of
all counts is the number of rows, and the number of days with rows is ``COUNT(DISTINCT (country,
joined))``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import whole
from dpsql.ir.domain import interval
from dpsql.ir.expressions import Aggregated, Column, Expression, Shape, integer, substitute
from dpsql.ir.relations import Aggregate, Private, Project, Released
from dpsql.policy.types import Kind
from dpsql.sql.bind import privacy
from dpsql.sql.bind.counted_groups import Groups, groups_of, is_over, key_swap, present
from dpsql.sql.narrow import conjunction

MANY_GROUPS = 100
"""The least number of groups, for each row that a unit may have, whose count is accurate enough."""
_NUMBER = Shape(Kind.INTEGER, nullable=False, domain=interval(0, None, integral=True))


@dataclass(frozen=True, slots=True)
class OverRows:
    """An aggregate of groups as an aggregate of their rows, and the note of the answer on it."""

    relation: Project
    note: str


def over_rows(
    aggregate: Aggregate, numbers: Iterator[int], count: Callable[[Aggregate], int | None]
) -> OverRows | None:
    """An aggregate of groups as an aggregate of the rows below them.

    None if it is not a function of the rows, or if there are so few groups that the number of units
    of each can tell which have rows. ``count`` gives the number of public groups, or None if they
    are not public.

    Claim: both are equal for exact numbers, in every group that has rows.
    Assumes: between the two aggregates only conditions on keys leave out groups.
    Argument: each row is in one group, so sums of counts and of sums are those of the rows. Each
        combination of the inner keys that has rows is one group, and its SUM is NULL if it has no
        value that is not NULL. So the groups that are counted are those that plain SQL averages
        over. Conditions and keys above use the inner keys alone, so they hold for a group if they
        hold for its rows.
    """
    found = None if aggregate.sets or aggregate.terms else groups_of(aggregate.input)
    if found is None or all(call.function != "avg" for call in aggregate.calls):
        return None
    conditions = [call.where for call in aggregate.calls if call.where is not None]
    if not all(is_over(part, found.known) for part in (*aggregate.keys, *conditions)):
        return None
    rows = _Rows(found, numbers, {})
    values = [rows.value(call) for call in aggregate.calls]
    if any(value is None for value in values):
        return None
    keys = tuple(substitute(key, key_swap(found.known)) for key in aggregate.keys)
    outputs = aggregate.fields[: len(keys)]
    fields = (*outputs, *rows.calls.values())
    state = privacy.group_privacy(found.rows.privacy, keys, fields)
    assert isinstance(state, Released), "groups that are not of units are of many"
    below = Aggregate(found.rows, keys, tuple(rows.calls), fields, state, aggregate.span)
    made = (*outputs, *(value for value in values if value is not None))
    if not _are_many(found, below, count):
        return None
    return OverRows(Project(below, made, aggregate.fields, state, aggregate.span), _note(found))


def _are_many(groups: Groups, over: Aggregate, count: Callable[[Aggregate], int | None]) -> bool:
    """Whether each group above has enough groups for a noised count of them to be accurate."""
    rows = groups.rows.privacy
    assert isinstance(rows, Private)
    each, every = count(over), count(replace(over, keys=groups.keys))
    if each is None or every is None:
        return False
    return every >= each * MANY_GROUPS * rows.max_rows


@dataclass(frozen=True, slots=True)
class _Rows:
    """Aggregates of groups as expressions over calls on rows. Equal calls are made once."""

    groups: Groups
    numbers: Iterator[int]
    calls: dict[Aggregated, Column]

    def value(self, call: Aggregated) -> Expression | None:
        """A call over groups as an expression; None if it does not follow from the rows."""
        swap = key_swap(self.groups.known)
        where = None if call.where is None else substitute(call.where, swap)
        if call.distinct or call.bounds is not None or call.averaged:
            return None
        if call.function == "count" and not call.args:
            return self._number(where, ())
        if len(call.args) != 1 or not isinstance(call.args[0], Column):
            return None
        inner = self.groups.calls.get(call.args[0].number)
        known = call.function in ("count", "sum", "avg")
        if inner is None or not known or not _adds_up(inner):
            return None
        both = _both(inner.where, where)
        if call.function == "sum":
            return self._column(replace(inner, where=both))
        # A COUNT is never NULL. A SUM is NULL unless one of its values is not NULL.
        number = (
            self._number(both, inner.args) if inner.function == "sum" else self._number(where, ())
        )
        if call.function == "count":
            return number
        total = self._column(replace(inner, where=both))
        exact = apply(
            "cast", total, option=Kind.DOUBLE.value
        )  # a quotient of whole numbers is whole
        return apply("divide", exact, apply("greatest", number, whole(1)))

    def _number(self, where: Expression | None, args: tuple[Expression, ...]) -> Expression:
        """The number of groups that have a row with the condition true and no argument NULL."""
        tests = [] if where is None else [where]
        tests += [present(arg) for arg in args if arg.shape.nullable]
        keys = self.groups.keys
        combination = keys if len(keys) > 1 else (*keys, integer(1))
        found = conjunction(tests) if tests else None
        return self._column(Aggregated("count", combination, _NUMBER, distinct=True, where=found))

    def _column(self, call: Aggregated) -> Column:
        if call not in self.calls:
            self.calls[call] = Column(next(self.numbers), "over_rows", call.shape)
        return self.calls[call]


def _note(groups: Groups) -> str:
    names = ", ".join(dict.fromkeys(groups.names))
    return f"{names}: averaged over the groups with rows, whose number is measured"


def _adds_up(inner: Aggregated) -> bool:
    """Whether the call over several groups together is the sum of the calls of the groups."""
    plain = not inner.distinct and inner.bounds is None and not inner.averaged
    return plain and inner.function in ("count", "sum")


def _both(one: Expression | None, other: Expression | None) -> Expression | None:
    tests = [test for test in (one, other) if test is not None]
    return conjunction(tests) if tests else None
