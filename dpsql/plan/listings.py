"""The public relations below a grouping, and the conditions that every row below satisfies.

Claim: whatever is computed from a ``Below`` depends on no private row. Its listings read public
    tables and constants alone, and its conditions are text of the statement.
Claim: a private row that reaches the grouping matches a row of each listing that is not
    ``optional``, and then satisfies every condition. It may match no row of an ``optional``
    listing, and has NULLs there. It may also match no row of a ``declared`` listing, if the owner's
    declaration is wrong.
Assumes: tables that the policy calls public are public.
Argument: filters, inner joins and groupings of single units leave only rows (or groups of rows) for
    which everything below them holds. Conditions below the right side of a LEFT JOIN are not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations

from dpsql.catalog.build import call as apply
from dpsql.ir.expressions import (
    Call,
    Column,
    Expression,
    Parameter,
    Subquery,
    columns,
    conjuncts,
    substitute,
    walk,
)
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Public,
    Relation,
    Scan,
    Sort,
    Union,
    Values,
    Windowed,
    expressions,
    inputs,
)
from dpsql.policy.model import Table
from dpsql.policy.types import Kind
from dpsql.sql.bind.join_rules import equalities
from dpsql.sql.narrow import conjunction

MOST_PARTS = 100
"""The most parts of an expression that is rewritten over listings."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A public relation that private rows are joined with, and the join conditions on it alone.

    ``optional``: a private row that matches none of its rows is kept, with NULL in its columns.
    ``declared``: there is no join; a declared foreign key says that the matching row exists.
    """

    relation: Relation
    optional: bool
    conditions: tuple[Expression, ...] = ()
    declared: bool = False

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of its columns."""
        return frozenset(f.number for f in self.relation.fields)

    @property
    def rows(self) -> Relation:
        """The relation's rows where the conditions hold."""
        if not self.conditions:
            return self.relation
        condition = conjunction(list(self.conditions))
        return Filter(self.relation, condition, self.relation.fields, Public())


@dataclass(slots=True)
class Below:
    """The rows that are grouped: the listings they are joined with, and their common conditions."""

    listings: list[Listing] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    _matches: list[Expression] = field(default_factory=list)
    """Equalities of joins, which hold where neither side is NULL."""
    _made: dict[int, Expression] = field(default_factory=dict)
    """The expressions of computed columns."""
    _sources: dict[int, Expression | None] = field(default_factory=dict)

    @classmethod
    def of(cls, relation: Relation) -> Below:
        """Collect the listings and conditions of the rows of a relation."""
        found = cls()
        found._see(relation, sure=True)
        found.conditions += found._agreements()
        found.conditions = [found.over_listings(c) for c in found.conditions]
        return found

    def listing(self, column: Column) -> int | None:
        """The position of the listing that a column belongs to."""
        owners = (i for i, known in enumerate(self.listings) if column.number in known.numbers)
        return next(owners, None)

    def equal(self, column: Column) -> Column | None:
        """A listed column with an equal value in each row; none for doubles, whose zeros differ."""
        if column.shape.kind is Kind.DOUBLE:
            return None
        same = equalities(self.conditions).closure(frozenset({column.number}))
        others = (f for known in self.listings for f in known.relation.fields)
        fitting = (f for f in others if f.number in same and f.shape.kind is column.shape.kind)
        return next(fitting, None)

    def _agreements(self) -> Iterator[Expression]:
        """Equalities between columns of different listings.

        They hold because joins compare the two columns, or both with the same column. A listing
        that is optional may have NULL instead.
        """
        tied: dict[int, Column] = {}
        for match in self._matches:
            for one, other in permutations(columns(match)):
                if self.listing(other) is None or not _is_exact(one, other):
                    continue
                first = one if self.listing(one) is not None else tied.setdefault(one.number, other)
                if self.listing(first) != self.listing(other):
                    yield self._agree(first, other)

    def _agree(self, one: Column, other: Column) -> Expression:
        owners = [(c, self.listing(c)) for c in (one, other)]
        found = apply("eq", one, other)
        for column, owner in owners:
            if owner is not None and self.listings[owner].optional:
                found = apply("or", apply("is_null", column), found)
        return found

    def over_listings(self, node: Expression) -> Expression:
        """An expression whose columns are replaced by their expressions over listings, if any."""
        return substitute(node, lambda n: self._source(n) if isinstance(n, Column) else None)

    def _source(self, column: Column) -> Expression | None:
        """The expression of a column over listings, found once; None if it is too long."""
        if column.number not in self._sources:
            value = self._made.get(column.number)
            passed = isinstance(value, Column) and value.number == column.number
            told = None if value is None or passed else self.over_listings(value)
            self._sources[column.number] = told if told and self._is_listed(told) else None
        return self._sources[column.number]

    def _is_listed(self, node: Expression) -> bool:
        needed = list(columns(node))
        known = bool(needed) and all(self.listing(c) is not None for c in needed)
        return known and not settled_later(node) and len(list(walk(node))) <= MOST_PARTS

    def _see(self, relation: Relation, *, sure: bool, on: tuple[Expression, ...] = ()) -> None:
        """Collect from a relation. ``sure``: each grouped row comes from one of its rows."""
        if isinstance(relation.privacy, Public):
            if _is_listable(relation):
                known = Listing(relation, not sure)
                own = (c for c in on if _only(c, known.numbers)) if not sure else ()
                self.listings.append(replace(known, conditions=tuple(own)))
            return
        match relation:
            case Filter(input=below, predicate=predicate):
                self._hold(conjuncts(predicate), sure=sure)
                self._see(below, sure=sure)
            case Project(input=below, fields=fields, values=made):
                self._compute(fields, made, sure=sure)
                self._see(below, sure=sure)
            case Aggregate(input=below, fields=fields, keys=keys, sets=()):
                self._compute(fields, keys, sure=sure)
                self._see(below, sure=sure)
            case Sort(input=below) | Windowed(input=below):
                self._see(below, sure=sure)
            case Join():
                self._join(relation, sure=sure)
            case Scan():
                self.listings += _declared(relation, sure=sure)
            case _:
                pass

    def _join(self, join: Join, *, sure: bool) -> None:
        on = () if join.condition is None else tuple(conjuncts(join.condition))
        if join.kind in ("inner", "cross") and not join.whole:
            self._hold(on, sure=sure)
        self._see(join.left, sure=sure)
        if join.kind in ("inner", "cross", "left") and not join.whole:
            self._matches += [c for c in on if is_match(c)]
        if join.kind in ("inner", "cross"):
            self._see(join.right, sure=sure)
        elif join.kind == "left" and not self._attach(join, on):
            self._see(join.right, sure=False, on=on)

    def _attach(self, join: Join, on: tuple[Expression, ...]) -> bool:
        """Join a listing with the right side of a LEFT JOIN whose condition uses only the two.

        Claim: a row that matches a row of the listing matches one of the joined listing.
        Assumes: conditions are false or NULL where they compare NULL.
        Argument: which rows of the right side match depends on the row of the listing alone. If
            none matches, the join has NULL, as the joined listing has. A row that matches none of
            the listing has NULL in the column that is compared with the right side, so it has NULL
            in the columns of the right side too.
        """
        own = frozenset(f.number for f in join.right.fields)
        if join.whole or not isinstance(join.right.privacy, Public) or not _is_listable(join.right):
            return False
        for i, known in enumerate(self.listings):
            both = known.numbers | own
            paired = any(_is_pair(c, known.numbers, own) for c in on)
            if paired and not known.declared and all(_only(c, both) for c in on):
                fields = (*known.relation.fields, *(f for f in join.fields if f.number in own))
                made = replace(join, left=known.relation, fields=fields, privacy=Public())
                self.listings[i] = replace(known, relation=made)
                return True
        return False

    def _compute(
        self, fields: Iterable[Column], values: Iterable[Expression], *, sure: bool
    ) -> None:
        """Record the expressions of columns, but not of rows that may be absent and have NULL."""
        if sure:
            self._made |= {f.number: v for f, v in zip(fields, values, strict=False)}

    def _hold(self, found: Iterable[Expression], *, sure: bool) -> None:
        self.conditions += [c for c in found if sure and not settled_later(c)]


def _declared(scan: Scan, *, sure: bool) -> Iterator[Listing]:
    """Listings of columns whose values together are those of one row of a public table.

    A foreign key says so, and each column has ``values_from`` the same table. Only the owner's
    declaration says that each row has a listed combination; nothing enforces it. Rows with another
    combination are in no group.
    """
    columns, own = scan.table.columns, {f.name: f for f in scan.fields}
    for key in scan.table.foreign_keys:
        pairs = list(zip(key.columns, key.key, strict=True))
        if len(pairs) < 2 or any(columns[a].values_from != (key.references, b) for a, b in pairs):
            continue
        table = Table(key.references, {b: replace(columns[a], name=b) for a, b in pairs})
        fields = tuple(replace(own[a], name=b) for a, b in pairs)
        nullable = any(columns[a].nullable for a, _ in pairs)
        yield Listing(Scan(table, fields, (), Public()), nullable or not sure, declared=True)


def settled_later(node: Expression) -> bool:
    """Whether the expression uses a value that is known only after a release."""
    return any(isinstance(part, Parameter | Subquery) for part in walk(node))


def is_match(condition: Expression) -> bool:
    """Whether a condition is an equality of two columns, which engines join fast."""
    return (
        isinstance(condition, Call)
        and condition.function == "eq"
        and all(isinstance(side, Column) for side in condition.args)
    )


def _is_exact(one: Column, other: Column) -> bool:
    """Whether a value that equals one column equals the other; false for doubles or mixed types."""
    return one.shape.kind is other.shape.kind and one.shape.kind is not Kind.DOUBLE


def _is_pair(condition: Expression, left: frozenset[int], right: frozenset[int]) -> bool:
    """Whether a condition equates a left column with a right one. NULL matches nothing."""
    numbers = [c.number for c in columns(condition)]
    return (
        is_match(condition) and any(n in left for n in numbers) and any(n in right for n in numbers)
    )


def _only(condition: Expression, numbers: frozenset[int]) -> bool:
    needed = {c.number for c in columns(condition)}
    return bool(needed) and needed <= numbers and not settled_later(condition)


def _is_listable(relation: Relation) -> bool:
    """Whether the rows of a relation say more than the lists of values of its columns."""
    return _is_repeatable(relation) and (
        not isinstance(relation, Values) or len(relation.fields) > 1
    )


def _is_repeatable(relation: Relation) -> bool:
    """Whether a public relation has the same rows whenever it is read.

    Rows that are limited or numbered, and sums of doubles, may differ from run to run.
    """
    match relation:
        case Scan() | Values():
            return True
        case Filter() | Project() | Join() | Union() | Distinct() | Sort() | Aggregate(calls=()):
            later = any(settled_later(e) for e in expressions(relation))
            return not later and all(map(_is_repeatable, inputs(relation)))
        case _:
            return False
