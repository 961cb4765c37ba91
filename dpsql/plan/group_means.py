"""Means of what groups count or sum, as totals over the rows by the number of groups with rows.

``SELECT country, AVG(n) FROM (SELECT country, joined, COUNT(*) AS n ...) GROUP BY country``: where days
are many and each has few rows, no noised number tells which days have any. But the sum of all counts is
the number of rows, and how many days have rows is ``COUNT(DISTINCT (country, joined))``.
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
"""Groups for each row that a unit may have, from which on their number is known well enough."""
_NUMBER = Shape(Kind.INTEGER, nullable=False, domain=interval(0, None, integral=True))


@dataclass(frozen=True, slots=True)
class OverRows:
    """An aggregate of groups as one of their rows, and what an answer says of it."""

    relation: Project
    note: str


def over_rows(
    aggregate: Aggregate, numbers: Iterator[int], count: Callable[[Aggregate], int | None]
) -> OverRows | None:
    """An aggregate of groups as one of the rows below them.

    None where it is not a function of those, or where groups are so few that they are told apart by
    their numbers of units. ``count`` gives the number of public groups, None where they are not public.

    Claim: both are equal for exact numbers, in every group that has rows.
    Assumes: nothing but conditions on keys leaves out groups in between.
    Argument: each row is in one group, so sums of counts and of sums are those of the rows. Each
        combination of the inner keys that has rows is one group, and its SUM is NULL where none of
        its values are there: so that many groups are counted, and averaged over. Conditions and
        keys above are of the inner keys alone, so they hold for a group where they hold for its rows.
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
    """Whether there are many groups for each one above, so that their number is known well enough."""
    rows = groups.rows.privacy
    assert isinstance(rows, Private)
    each, every = count(over), count(replace(over, keys=groups.keys))
    if each is None or every is None:
        return False
    return every >= each * MANY_GROUPS * rows.max_rows


@dataclass(frozen=True, slots=True)
class _Rows:
    """Aggregates of groups as expressions over calls of rows; equal calls are asked once."""

    groups: Groups
    numbers: Iterator[int]
    calls: dict[Aggregated, Column]

    def value(self, call: Aggregated) -> Expression | None:
        """A call over groups; None where it does not follow from the rows."""
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
        # A COUNT is there for every group, a SUM where one of its values is.
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
        """How many groups have a row where the condition holds and the argument is there."""
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
    return f"{names}: averaged over the number of groups with rows, which is measured"


def _adds_up(inner: Aggregated) -> bool:
    """Whether the call of several groups together is the sum of theirs."""
    plain = not inner.distinct and inner.bounds is None and not inner.averaged
    return plain and inner.function in ("count", "sum")


def _both(one: Expression | None, other: Expression | None) -> Expression | None:
    tests = [test for test in (one, other) if test is not None]
    return conjunction(tests) if tests else None
