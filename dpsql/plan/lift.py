"""Conditions lifted into aggregates, so that no unit's row decides how many other rows are read.

An engine skips work where it can. A join without matching rows reads nothing, and a filter skips
blocks of a file. An analyst who filters on one person then learns from the time whether that
person's row exists. Here a condition over private rows becomes a column, ``kept``. Aggregates only
count rows where it is true, but all rows are read, joined and grouped whatever its value is.

Claim: the lifted relation has every row that the relation has, with ``kept`` true, and others, with
    ``kept`` false; below its aggregates no condition decides which private rows are read, joined
    or grouped, save those that pair rows of two tables.
Assumes: expressions are total, also over rows that are not kept.
Argument: by cases. A filter only adds a condition to ``kept``. A row of an inner join is kept if
    both its sides are kept; join conditions that do not pair the sides are added like any other. A
    unit's aggregate counts kept rows alone, and its group is kept if one of its rows is; DISTINCT
    of private rows is such a grouping. Windows and set operations handle kept rows apart from
    others. A semi join groups the other side, and looks up whether any of its rows is kept.
    Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpsql.catalog.functions import FUNCTIONS
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Case,
    Column,
    Expression,
    Literal,
    Shape,
    columns,
    conjuncts,
)
from dpsql.ir.relations import (
    Aggregate,
    Filter,
    Join,
    Private,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
    Windowed,
    walk_relations,
    written_columns,
)
from dpsql.plan.nodes import Lifted
from dpsql.policy.types import Kind
from dpsql.sql.narrow import conjunction

_TRUTH = Shape(Kind.BOOLEAN, nullable=False)
TRUE, FALSE = Literal(True, _TRUTH), Literal(False, _TRUTH)
Conditions = tuple[Expression, ...]


def lift_conditions(relation: Relation, numbers: Iterator[int]) -> Lifted:
    """Private rows as an engine reads them under strict timing; ``numbers`` are free numbers."""
    lifter = _Lifter(numbers)
    below, kept = lifter.rows(relation)
    if not kept:
        return Lifted(below, None)
    return Lifted(*lifter.flagged(below, kept))


@dataclass(frozen=True, slots=True)
class _Lifter:
    numbers: Iterator[int]

    def rows(self, relation: Relation) -> tuple[Relation, Conditions]:
        """The relation without its conditions, and the conditions over its columns."""
        if not isinstance(relation.privacy, Private):
            return relation, ()
        match relation:
            case Scan():
                return relation, ()
            case Filter(input=below, predicate=predicate):
                inner, kept = self.rows(below)
                return inner, (*kept, *conjuncts(predicate))
            case Project(input=below) | Sort(input=below):
                inner, kept = self.rows(below)
                return replace(relation, input=inner), kept
            case Join():
                return self._join(relation)
            case Aggregate(sets=()):
                return self._aggregate(relation)
            case Windowed():
                return self._windowed(relation)
            case Union(operation="union all" | "union"):
                return self._union(relation)
            case _:
                raise Refused(_refusal(relation, type(relation).__name__.upper()))

    def column(self, name: str, shape: Shape = _TRUTH) -> Column:
        """A column that the statement does not have yet."""
        return Column(next(self.numbers), name, shape)

    def flagged(self, relation: Relation, kept: Conditions) -> tuple[Relation, Column]:
        """The relation with one more column: whether all conditions hold."""
        flag = self.column("kept")
        fields = (*relation.fields, flag)
        values = (*relation.fields, _sure(kept))
        return Project(relation, values, fields, relation.privacy), flag

    def _aggregate(self, aggregate: Aggregate) -> tuple[Relation, Conditions]:
        """A unit's groups over kept rows alone. A group is kept if it has a kept row."""
        below, kept = self.rows(aggregate.input)
        if not kept:
            return replace(aggregate, input=below), ()
        below, flag = self.flagged(below, kept)
        calls = tuple(replace(c, where=_both(c.where, flag)) for c in aggregate.calls)
        some, present = _any(flag), self.column("kept")
        fields = (*aggregate.fields, present)
        return replace(aggregate, input=below, calls=(*calls, some), fields=fields), (present,)

    def _windowed(self, windowed: Windowed) -> tuple[Relation, Conditions]:
        """Windows that see kept rows and other rows apart."""
        below, kept = self.rows(windowed.input)
        new = windowed.fields[len(windowed.input.fields) :]
        if not kept:
            return replace(windowed, input=below, fields=(*below.fields, *new)), ()
        below, flag = self.flagged(below, kept)
        windows = tuple(replace(w, partition=(*w.partition, flag)) for w in windowed.windows)
        fields = (*below.fields, *new)
        return replace(windowed, input=below, windows=windows, fields=fields), (flag,)

    def _union(self, union: Union) -> tuple[Relation, Conditions]:
        """Rows of all sides, each with a column that says whether it is kept."""
        sides = [self.rows(side) for side in union.inputs]
        width = len(union.fields)
        mine = union.columns or tuple(side.fields[:width] for side in union.inputs)
        if not any(kept for _, kept in sides):
            inputs = tuple(side for side, _ in sides)
            return replace(union, inputs=inputs, columns=mine), ()
        flagged = [self.flagged(side, kept) for side, kept in sides]
        columns = tuple((*own, flag) for own, (_, flag) in zip(mine, flagged, strict=True))
        flag = self.column("kept")
        inputs, fields = tuple(side for side, _ in flagged), (*union.fields, flag)
        return replace(union, inputs=inputs, fields=fields, columns=columns), (flag,)

    def _join(self, join: Join) -> tuple[Relation, Conditions]:
        left, before = self.rows(join.left)
        right, after = self.rows(join.right)
        parts = _Parts.of(join)
        if join.kind in ("inner", "cross"):
            stays = parts.pairs or parts.mixed
            moved = () if stays is parts.mixed else parts.mixed
            condition = conjunction(list(stays)) if stays else None
            kind = "inner" if stays else "cross"
            made = replace(join, kind=kind, left=left, right=right, condition=condition)
            return made, (*before, *after, *parts.left, *parts.right, *moved)
        if join.kind in ("semi", "anti") and parts.pairs and not parts.mixed:
            return self._half(join, parts, (left, before), (right, after))
        if join.kind == "left" and parts.pairs:
            made = replace(join, left=left, right=right, condition=conjunction(list(parts.pairs)))
            others = (*after, *parts.left, *parts.right, *parts.mixed)
            if not others:
                return made, before
            if _single(join.right, parts.pairs):
                return _matched(made, others), before
        raise Refused(_refusal(join, f"{join.kind.upper()} JOIN"))

    def _half(
        self, join: Join, parts: _Parts,
        left: tuple[Relation, Conditions], right: tuple[Relation, Conditions],
    ) -> tuple[Relation, Conditions]:  # fmt: skip
        """A semi or anti join as a left join with the other side's keys.

        Each key has a column that says whether one of its rows is kept. The join pairs rows of one
        unit only, so a key belongs to one unit, whose key is added to it.
        """
        below, flag = self.flagged(right[0], (*right[1], *parts.right))
        sides = [_sides(p, _made(join.right)) for p in parts.pairs]
        keys = tuple(key for _, key in sides)
        keys += tuple(unit for unit in _units(join.right) if unit not in keys)
        fields = tuple(self.column("key", key.shape) for key in keys)
        some, match = _any(flag), self.column("match", _TRUTH.optional())
        marks = Aggregate(below, keys, (some,), (*fields, match), join.right.privacy, join.span)
        pairs: list[Expression] = [
            _call("eq", a, f) for (a, _), f in zip(sides, fields, strict=False)
        ]
        made = replace(join, kind="left", left=left[0], right=marks, condition=conjunction(pairs))
        found = _sure((match, *parts.left))
        return made, (*left[1], found if join.kind == "semi" else _call("not", found))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a join's condition: over one side, pairs of equal values, and all others."""

    left: Conditions
    right: Conditions
    pairs: Conditions
    mixed: Conditions

    @staticmethod
    def of(join: Join) -> _Parts:
        """The parts of a join's condition."""
        found: tuple[list[Expression], ...] = ([], [], [], [])
        theirs = _made(join.right)
        for part in [] if join.condition is None else conjuncts(join.condition):
            used = {c.number for c in columns(part)}
            if not used & theirs:
                found[0].append(part)
            elif used <= theirs:
                found[1].append(part)
            else:
                found[2 if _pairs(part, theirs) else 3].append(part)
        return _Parts(*map(tuple, found))


def _made(relation: Relation) -> set[int]:
    """Every column that the relation or something below it has."""
    found = {f.number for part in walk_relations(relation) for f in part.fields}
    return found | {
        f.number for r in walk_relations(relation) if isinstance(r, Scan) for f in r.unit_fields
    }


def _units(relation: Relation) -> Iterator[Column]:
    """The columns of a relation that are its unit's key, as far as it has them."""
    if isinstance(relation.privacy, Private):
        known = written_columns(relation)
        for part in relation.privacy.key:
            yield from (known[n] for n in sorted(part & known.keys())[:1])


def _pairs(part: Expression, theirs: set[int]) -> bool:
    """Whether a condition makes a value of one side equal to one of the other."""
    if not isinstance(part, Call) or part.function != "eq":
        return False
    sides = [{c.number for c in columns(a)} for a in part.args]
    return all(s <= theirs or not s & theirs for s in sides)


def _sides(part: Expression, theirs: set[int]) -> tuple[Expression, Expression]:
    """The two values of an equality: that of the left side, then that of the right side."""
    assert isinstance(part, Call)
    one, other = part.args
    return (other, one) if {c.number for c in columns(one)} & theirs else (one, other)


def _single(relation: Relation, pairs: Conditions) -> bool:
    """Whether at most one row of the relation, kept or not, matches a row of the other side."""
    while isinstance(relation, Project | Filter | Sort):
        relation = relation.input
    if not isinstance(relation, Aggregate) or relation.sets:
        return False
    sides = [a for p in pairs if isinstance(p, Call) for a in p.args]
    compared = {a.number for a in sides if isinstance(a, Column)}
    return {f.number for f in relation.fields[: len(relation.keys)]} <= compared


def _matched(join: Join, conditions: Conditions) -> Project:
    """A left join whose right columns are NULL where the matching row is not kept."""
    found = _sure(conditions)
    own = {f.number for f in join.right.fields}
    values = tuple(
        Case(((found, f),), Literal(None, f.shape), f.shape) if f.number in own else f
        for f in join.fields
    )
    return Project(join, values, join.fields, join.privacy)


def _sure(conditions: Conditions) -> Expression:
    """Whether all conditions hold. A condition that is NULL does not hold."""
    return _call("coalesce", conjunction(list(conditions)), FALSE) if conditions else TRUE


def _both(one: Expression | None, other: Expression) -> Expression:
    return other if one is None else conjunction([one, other])


def _any(flag: Column) -> Aggregated:
    return Aggregated("bool_or", (flag,), _TRUTH)


def _call(name: str, *args: Expression) -> Call:
    return Call(name, args, FUNCTIONS[name].shape(args, ""))


def _refusal(relation: Relation, what: str) -> Refusal:
    return Refusal(
        "DP306",
        f"how long this {what} takes could reveal something about one unit's rows",
        "The policy asks for strict timing: all rows are read and joined, and conditions only "
        "decide what is counted. This part of the query cannot be written that way.",
        "Join on equal keys only, and put other conditions into the aggregates: COUNT(*) FILTER "
        "(WHERE ...), or SUM(CASE WHEN ... THEN x END).",
        relation.span,
    )
