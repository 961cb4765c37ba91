"""Public groups: every value that the keys can take, worked out from declarations alone.

Claim: the groups listed do not depend on any row. They are computed from declared domains,
constants of the statement and public tables, by a query over constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import prod

from dpsql.effort import step
from dpsql.plan.covered import is_covered
from dpsql.plan.nodes import Cells, Enumerator
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.domain import Domain
from dpsql.sql.expressions import (
    Call,
    Case,
    Column,
    Expression,
    Literal,
    Parameter,
    Shape,
    Subquery,
    columns,
    substitute,
    walk,
)
from dpsql.sql.narrow import conjuncts
from dpsql.sql.relations import Filter, Join, Project, Relation, Scan, Sort
from dpsql.sql.render import expression, key_text, literal

MOST_BASE_VALUES = 2_000_000
"""Combinations that enumeration may walk through to find the distinct groups."""
_COUNTED_IN_A_STEP = 4
"""Combinations that an engine walks through in about a microsecond."""


class TooManyCells(Exception):
    """The keys are public, but there are more groups than the policy allows."""

    def __init__(self, count: int) -> None:
        """``count`` is public: it follows from the policy."""
        self.count = count
        super().__init__(count)


@dataclass(frozen=True, slots=True)
class _Atom:
    """Something whose values can be listed: a column, or an expression with few results."""

    value: Expression
    column: Column


def cells(
    keys: tuple[Expression, ...], below: Relation,
    enumerator: Enumerator, most: int,
) -> Cells | None:  # fmt: skip
    """The groups of ``keys`` over the rows of ``below``; None when they are not public."""
    atoms: dict[Expression, _Atom] = {}
    for key in keys:
        if not _collect(key, atoms):
            return None
    conditions = _conditions(below)
    parts = _components(keys, tuple(atoms.values()), conditions)
    if any(part.size > MOST_BASE_VALUES for part in parts):
        return None
    step(sum(part.size // _COUNTED_IN_A_STEP for part in parts))
    count = prod(enumerator.count(_component_sql(part, keys)) for part in parts) if keys else 1
    if count > most:
        raise TooManyCells(count)
    doubtful = (p for p in parts if not all(is_covered(a.value, conditions) for a in p.atoms))
    return Cells(_query(parts, keys), count, frozenset(k for p in doubtful for k in p.keys))


def _collect(node: Expression, atoms: dict[Expression, _Atom]) -> bool:
    """Find atoms that determine the expression; False when its values cannot be listed."""
    if isinstance(node, Column):
        return _listable(node.shape) and _add(node, atoms)
    if isinstance(node, Literal):
        return True
    if not isinstance(node, Call | Case):
        return False
    trial = dict(atoms)
    if not _settled_later(node) and all(_collect(column, trial) for column in columns(node)):
        atoms.update(trial)
        return True
    if _listable(node.shape):
        return _add(node, atoms)
    if isinstance(node, Case):
        parts = [part for when in node.whens for part in when] + [node.otherwise]
        return all(_collect(part, atoms) for part in parts)
    return all(_collect(part, atoms) for part in node.args)


def _settled_later(node: Expression) -> bool:
    """Whether the expression uses a value that is only known once something was released."""
    return any(isinstance(part, Parameter | Subquery) for part in walk(node))


def _add(node: Expression, atoms: dict[Expression, _Atom]) -> bool:
    if node not in atoms:
        atoms[node] = _Atom(node, Column(len(atoms), "a", node.shape))
    return True


def _listable(shape: Shape) -> bool:
    domain = shape.domain
    if domain.members is not None:
        return True
    if not domain.bounded:
        return False
    return shape.kind is Kind.DATE or domain.grain is not None or domain.integral


def _size(shape: Shape) -> int:
    domain = shape.domain
    if domain.members is not None:
        return len(domain.members) + shape.nullable
    low, high = domain.low, domain.high
    if isinstance(low, date) and isinstance(high, date):
        per_day = {"hour": 24, "minute": 1440, "second": 86400}.get(domain.grain or "day", 1)
        return ((high - low).days + 2) * per_day
    ends = _whole(domain)
    return ends[1] - ends[0] + 2 if ends is not None else 2**62


def _whole(domain: Domain) -> tuple[int, int] | None:
    """The first and the last whole number of a range."""
    low, high = domain.low, domain.high
    if not isinstance(low, int | Fraction) or not isinstance(high, int | Fraction):
        return None
    return math.ceil(low), math.floor(high)


@dataclass(slots=True)
class _Component:
    """Atoms that share keys or conditions: enumerated together."""

    atoms: list[_Atom]
    keys: list[int]
    conditions: list[Expression]

    @property
    def size(self) -> int:
        return prod(_size(a.column.shape) for a in self.atoms)


def _components(
    keys: tuple[Expression, ...], atoms: tuple[_Atom, ...], conditions: list[Expression]
) -> list[_Component]:
    known = {a.value: a for a in atoms}
    groups: list[_Component] = []
    for position, key in enumerate(keys):
        _merge(groups, _Component(_atoms_of(key, known), [position], []))
    by_column = {a.value: a for a in atoms if isinstance(a.value, Column)}
    for condition in conditions:
        needed = list(columns(condition))
        if needed and all(c in by_column for c in needed) and not _settled_later(condition):
            _merge(groups, _Component([by_column[c] for c in needed], [], [condition]))
    return groups


def _atoms_of(node: Expression, known: dict[Expression, _Atom]) -> list[_Atom]:
    found: list[_Atom] = []

    def see(part: Expression) -> Expression | None:
        atom = known.get(part)
        if atom is not None:
            found.append(atom)
        return part if atom is not None else None

    substitute(node, see)
    return found


def _merge(groups: list[_Component], new: _Component) -> None:
    """Join the new component with those that share an atom with it."""
    step(10 * sum(len(g.atoms) for g in groups))
    values = {a.value for a in new.atoms}
    touching = [g for g in groups if values & {a.value for a in g.atoms}]
    for group in touching:
        groups.remove(group)
        new.keys += group.keys
        new.conditions += group.conditions
        new.atoms += [a for a in group.atoms if a.value not in values]
        values |= {a.value for a in group.atoms}
    unique = {a.value: a for a in new.atoms}
    groups.append(_Component(list(unique.values()), sorted(new.keys), new.conditions))


def _conditions(relation: Relation) -> list[Expression]:
    """What every row of the relation satisfies: conditions of filters straight below."""
    found: list[Expression] = []
    while True:
        match relation:
            case Filter(input=below, predicate=predicate):
                found += conjuncts(predicate)
                relation = below
            case Project(input=below) | Sort(input=below):
                relation = below
            case Join(kind="inner", left=left, right=right):
                return found + _conditions(left) + _conditions(right)
            case Scan():
                return found
            case _:
                return found


def _query(parts: list[_Component], keys: tuple[Expression, ...]) -> str:
    texts = [_component_sql(part, keys) for part in parts]
    items = ", ".join(f"k{i}" for i in range(len(keys)))
    source = " CROSS JOIN ".join(f"({text}) AS d{i}" for i, text in enumerate(texts))
    order = ", ".join(f"k{i} ASC NULLS LAST" for i in range(len(keys)))
    return f"SELECT {items} FROM {source} ORDER BY {order}"


def _component_sql(part: _Component, keys: tuple[Expression, ...]) -> str:
    names = {a.column.number: f"a{a.column.number}.v" for a in part.atoms}
    swap = {a.value: a.column for a in part.atoms}
    items = ", ".join(
        f"{key_text(substitute(keys[i], swap.get), names)} AS k{i}" for i in part.keys
    )
    source = " CROSS JOIN ".join(
        f"({_values_sql(a.column.shape)}) AS a{a.column.number}" for a in part.atoms
    )
    where = " AND ".join(expression(substitute(c, swap.get), names) for c in part.conditions)
    clause = (f" FROM {source}" if source else "") + (f" WHERE {where}" if where else "")
    return f"SELECT {'' if _once(part, keys) else 'DISTINCT '}{items}{clause}"


def _once(part: _Component, keys: tuple[Expression, ...]) -> bool:
    """Whether each combination of values is listed once, and is a group of its own.

    So it is where every atom is a key itself and runs through whole numbers or days. To look for
    equal ones among a million groups takes as long as to count the rows of two million.
    """
    own = {keys[i] for i in part.keys}
    return all(atom.value in own and _counted(atom.column.shape) for atom in part.atoms)


def _counted(shape: Shape) -> bool:
    """Whether values are listed by counting from the first to the last: no two are equal."""
    return shape.domain.members is None and shape.kind in (Kind.INTEGER, Kind.DATE)


def _values_sql(shape: Shape) -> str:
    """A query for the values of a listable shape in a column ``v``."""
    text = _present_sql(shape)
    return f"{text} UNION ALL SELECT NULL" if shape.nullable else text


def _present_sql(shape: Shape) -> str:
    domain, kind = shape.domain, shape.kind
    type_name = {Kind.INTEGER: "BIGINT", Kind.DOUBLE: "DOUBLE", Kind.TEXT: "VARCHAR"}.get(kind)
    if domain.members is not None:
        rows = ", ".join(f"({literal(v, kind)})" for v in domain.members)
        cast = f"CAST(v AS {type_name})" if type_name else "v"
        empty = f"SELECT CAST(NULL AS {type_name or kind.value}) AS v WHERE FALSE"
        return f"SELECT {cast} AS v FROM (VALUES {rows}) AS m(v)" if rows else empty
    low, high = domain.low, domain.high
    if isinstance(low, date) and isinstance(high, date):
        return _dates_sql(low, high, kind, domain.grain)
    ends = _whole(domain)
    assert ends is not None
    first, last = ends
    return f"SELECT CAST(v AS {type_name}) AS v FROM range({first}, {max(first, last + 1)}) AS r(v)"


def _dates_sql(low: date, high: date, kind: Kind, grain: str | None) -> str:
    if kind is Kind.DATE:
        days = max(0, (_day(high) - _day(low)).days + 1)
        start = literal(_day(low), Kind.DATE)
        return f"SELECT {start} + CAST(v AS INTEGER) AS v FROM range(0, {days}) AS r(v)"
    unit = grain or "day"
    ends = f"{_stamp(low)}, {_stamp(high)}"
    return f"SELECT v FROM generate_series({ends}, INTERVAL '1 {unit}') AS r(v)"


def _day(value: date) -> date:
    return date(value.year, value.month, value.day)


def _stamp(value: Scalar) -> str:
    return f"CAST({literal(value, Kind.TIMESTAMP)} AS TIMESTAMP)"
