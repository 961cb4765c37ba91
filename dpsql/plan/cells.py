"""Public groups: every value that the keys can take, listed from declarations and public tables.

Claim: the groups listed do not depend on any private row. They are computed from declared domains,
    constants of the statement and public tables, by a query that reads nothing else.
Claim: every row that is counted and has declared values is in one of the groups.
Assumes: the policy declares the columns of public tables as they are.
Argument: columns of a public table have the values of one of its rows, which satisfies all
    conditions (``plan.listings``); other columns have one of their declared values. A condition
    that is not used, or that needs other columns, only leaves more groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from math import prod

from dpsql.effort import step
from dpsql.ir.expressions import (
    Call,
    Case,
    Column,
    Expression,
    Literal,
    Shape,
    columns,
    substitute,
)
from dpsql.ir.public_groups import Combinations, PublicGroups, RowList
from dpsql.ir.relations import Relation
from dpsql.plan.covered import is_covered
from dpsql.plan.listings import Below, is_match, settled_later
from dpsql.plan.nodes import Cells, Enumerator
from dpsql.plan.value_lists import list_values, whole_ends
from dpsql.policy.types import Kind

MOST_BASE_VALUES = 2_000_000
"""The most combinations that enumeration may walk through to find the distinct groups."""
_COUNTED_IN_A_STEP = 4
"""The number of combinations that an engine walks through in about a microsecond."""


class TooManyCells(Exception):
    """The keys are public, but there are more groups than the policy allows."""

    def __init__(self, count: int) -> None:
        """``count`` is public: it follows from the policy."""
        self.count = count
        super().__init__(count)


@dataclass(frozen=True, slots=True)
class _Atom:
    """A column, or an expression with few results, whose values can be listed.

    A column of a public table is listed together with the other columns of its ``listing``.
    """

    value: Expression
    column: Column
    listing: int | None = None

    @property
    def source(self) -> Expression | int:
        """The source that lists the values: the expression itself, or the number of its listing."""
        return self.value if self.listing is None else self.listing


def cells(
    keys: tuple[Expression, ...], below: Relation,
    enumerator: Enumerator, most: int,
) -> Cells | None:  # fmt: skip
    """The groups of ``keys`` over the rows of ``below``; None if they are not public."""
    found = _Groups(Below.of(below), enumerator)
    return found.listed(keys, most)


@dataclass(slots=True)
class _Groups:
    """Builds the groups of one aggregate."""

    below: Below
    enumerator: Enumerator
    atoms: dict[Expression, _Atom] = field(default_factory=dict)

    def listed(self, keys: tuple[Expression, ...], most: int) -> Cells | None:
        keys = tuple(map(self._told, keys))
        if not all(self._collect(key, self.atoms) for key in keys):
            return None
        parts = self._components(keys)
        if any(self._size(part) > MOST_BASE_VALUES for part in parts):
            return None
        step(sum(self._size(part) // _COUNTED_IN_A_STEP for part in parts))
        count = prod(self._count(part, keys) for part in parts) if keys else 1
        if count > most:
            raise TooManyCells(count)
        sure = self.below.conditions
        tied = [p for p in parts if any(self._is_tied(i, p) for i in p.listings)]
        doubtful = [p for p in parts if p in tied or not all(_is_sure(a, sure) for a in p.atoms)]
        made = tuple(self._combinations(part, keys) for part in parts)
        groups = PublicGroups(made, tuple(f"k{i}" for i in range(len(keys))))
        rows = self.enumerator.read_public(groups) if any(p.listings for p in parts) else None
        doubts = frozenset(k for p in doubtful for k in p.keys)
        return Cells(groups, count, doubts, rows, frozenset(k for p in tied for k in p.keys))

    def _is_tied(self, listing: int, part: _Component) -> bool:
        """Whether several columns are listed together by a foreign key, which rows may break."""
        several = sum(a.listing == listing for a in part.atoms) > 1
        return several and self.below.listings[listing].declared

    def _told(self, key: Expression) -> Expression:
        """The key, rewritten over columns of public tables that it is computed from or equals."""

        def swap(node: Expression) -> Expression | None:
            if not isinstance(node, Column) or _listable(node.shape):
                return None
            return None if self.below.listing(node) is not None else self.below.equal(node)

        return substitute(self.below.over_listings(key), swap)

    def _collect(self, node: Expression, atoms: dict[Expression, _Atom]) -> bool:
        """Collect atoms that determine the expression; False if its values cannot be listed."""
        if isinstance(node, Column):
            listing = self.below.listing(node)
            return (listing is not None or _listable(node.shape)) and _add(node, atoms, listing)
        if isinstance(node, Literal):
            return True
        if not isinstance(node, Call | Case):
            return False
        trial = dict(atoms)
        if not settled_later(node) and all(self._collect(c, trial) for c in columns(node)):
            atoms.update(trial)
            return True
        if _listable(node.shape):
            return _add(node, atoms)
        if isinstance(node, Case):
            parts = [part for when in node.whens for part in when] + [node.otherwise]
            return all(self._collect(part, atoms) for part in parts)
        return all(self._collect(part, atoms) for part in node.args)

    def _components(self, keys: tuple[Expression, ...]) -> list[_Component]:
        groups: list[_Component] = []
        for position, key in enumerate(keys):
            _merge(groups, _Component(_atoms_of(key, self.atoms), [position], []))
        waiting = [c for c in self.below.conditions if list(columns(c))]
        while waiting:
            touching = [c for c in waiting if self._touches(c, groups)]
            waiting = [c for c in waiting if c not in touching]
            for condition in touching:
                self._narrow(groups, condition)
            if not touching:
                break
        return groups

    def _touches(self, condition: Expression, groups: list[_Component]) -> bool:
        """Whether all columns of a condition can be listed, and one already lists groups."""
        known = {source for group in groups for source in group.sources}
        sources = [self._source(column) for column in columns(condition)]
        return None not in sources and any(source in known for source in sources)

    def _source(self, column: Column) -> Expression | int | None:
        listing = self.below.listing(column)
        return listing if listing is not None else column if column in self.atoms else None

    def _narrow(self, groups: list[_Component], condition: Expression) -> None:
        """Add a condition to the component of its columns, unless the combinations get too many."""
        for column in columns(condition):
            _add(column, self.atoms, self.below.listing(column))
        needed = [self.atoms[c] for c in columns(condition)]
        trial = list(groups)
        made = _merge(trial, _Component(needed, [], [condition]))
        if not made.listings or self._size(made) <= MOST_BASE_VALUES:
            groups[:] = trial

    def _size(self, part: _Component) -> int:
        """How many combinations are walked through. Two matched sources count as the larger one."""
        sizes = {a.source: _size(a.column.shape) for a in part.atoms if a.listing is None}
        if len(part.sources) > 1:
            sizes |= {i: self._rows(i, part) for i in part.listings}
        matched: dict[Expression | int, Expression | int] = {}
        for condition in filter(is_match, part.conditions):
            one, other = (_last(matched, self.atoms[c].source) for c in columns(condition))
            if one != other:
                matched[one] = other
                sizes[other] = max(sizes.get(one, 0), sizes.get(other, 0))
        return prod(size for source, size in sizes.items() if source not in matched)

    def _rows(self, listing: int, part: _Component) -> int:
        return self.enumerator.count_public(self._row_list(listing, part))

    def _count(self, part: _Component, keys: tuple[Expression, ...]) -> int:
        made = self._combinations(part, keys)
        return self.enumerator.count_public(made) if part.listings else self.enumerator.count(made)

    def _combinations(self, part: _Component, keys: tuple[Expression, ...]) -> Combinations:
        swap = {a.value: a.column for a in part.atoms}
        lists = [list_values(a.column) for a in part.atoms if a.listing is None]
        return Combinations(
            (*lists, *(self._row_list(i, part) for i in part.listings)),
            tuple((i, substitute(keys[i], swap.get)) for i in part.keys),
            tuple(substitute(c, swap.get) for c in part.conditions),
            not _once(part, keys),
        )

    def _row_list(self, listing: int, part: _Component) -> RowList:
        """The distinct rows of a public relation over the columns that the component needs."""
        known = self.below.listings[listing]
        own = tuple(_pair(atom) for atom in part.atoms if atom.listing == listing)
        return RowList(listing, known.rows, own, known.optional)


def _pair(atom: _Atom) -> tuple[Column, Column]:
    assert isinstance(atom.value, Column)
    return atom.column, atom.value


def _is_sure(atom: _Atom, conditions: list[Expression]) -> bool:
    """Whether no row has a value that is not listed."""
    return atom.listing is not None or is_covered(atom.value, conditions)


def _last(
    matched: dict[Expression | int, Expression | int], one: Expression | int
) -> Expression | int:
    while one in matched:
        one = matched[one]
    return one


def _add(node: Expression, atoms: dict[Expression, _Atom], listing: int | None = None) -> bool:
    if node not in atoms:
        atoms[node] = _Atom(node, Column(len(atoms), "a", node.shape), listing)
    return True


def _listable(shape: Shape) -> bool:
    domain = shape.domain
    if domain.members is not None:
        return True
    if not domain.bounded:
        return False
    return shape.kind is Kind.DATE or domain.grain is not None or domain.integral


_PER_DAY = {"hour": 24, "minute": 1440, "second": 86400}
_LEAST_DAYS = {"week": 7, "month": 28, "quarter": 90, "year": 365}


def _size(shape: Shape) -> int:
    domain = shape.domain
    if domain.members is not None:
        return len(domain.members) + shape.nullable
    low, high = domain.low, domain.high
    if isinstance(low, date) and isinstance(high, date):
        days = (high - low).days
        grain = domain.grain or "day"
        return (days // _LEAST_DAYS.get(grain, 1) + 2) * _PER_DAY.get(grain, 1)
    ends = whole_ends(domain)
    return ends[1] - ends[0] + 2 if ends is not None else 2**62


@dataclass(slots=True)
class _Component:
    """Atoms that share keys, conditions or a public table. They are enumerated together."""

    atoms: list[_Atom]
    keys: list[int]
    conditions: list[Expression]

    @property
    def sources(self) -> dict[Expression | int, None]:
        """The sources that list the atoms."""
        return dict.fromkeys(a.source for a in self.atoms)

    @property
    def listings(self) -> list[int]:
        """The numbers of the public relations that list some of the atoms."""
        return list(dict.fromkeys(a.listing for a in self.atoms if a.listing is not None))


def _atoms_of(node: Expression, known: dict[Expression, _Atom]) -> list[_Atom]:
    found: list[_Atom] = []

    def see(part: Expression) -> Expression | None:
        atom = known.get(part)
        if atom is not None:
            found.append(atom)
        return part if atom is not None else None

    substitute(node, see)
    return found


def _merge(groups: list[_Component], new: _Component) -> _Component:
    """Merge the new component with those that share a source with it."""
    step(10 * sum(len(g.atoms) for g in groups))
    sources = dict(new.sources)
    touching = [g for g in groups if sources.keys() & g.sources.keys()]
    merged = _Component(list(new.atoms), list(new.keys), list(new.conditions))
    for group in touching:
        groups.remove(group)
        merged.keys += group.keys
        merged.conditions += group.conditions
        merged.atoms += group.atoms
    unique = {a.value: a for a in merged.atoms}
    made = _Component(list(unique.values()), sorted(merged.keys), merged.conditions)
    groups.append(made)
    return made


def _once(part: _Component, keys: tuple[Expression, ...]) -> bool:
    """Whether each combination of values is listed once, and is a group of its own.

    This holds if every atom is a key itself and runs through whole numbers or days. Looking for
    equal combinations among a million groups takes as long as counting two million rows.
    """
    own = {keys[i] for i in part.keys}
    return not part.listings and all(
        atom.value in own and _counted(atom.column.shape) for atom in part.atoms
    )


def _counted(shape: Shape) -> bool:
    """Whether values are listed by counting from the first to the last. No two are equal then."""
    return shape.domain.members is None and shape.kind in (Kind.INTEGER, Kind.DATE)
