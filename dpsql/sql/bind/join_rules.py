"""The facts that joins use: equal columns, unique keys, and foreign keys that lead to the unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from dpsql.catalog.functions import FUNCTIONS
from dpsql.ir.expressions import Call, Column, Expression, conjuncts
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Private,
    Project,
    Relation,
    Scan,
    Sort,
    Values,
    walk_relations,
    written_columns,
)
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind import privacy
from dpsql.sql.bind.privacy import Equalities
from dpsql.sql.narrow import conjunction, narrow


def equalities(conditions: Iterable[Expression]) -> Equalities:
    """The conjuncts of the form column = column for which equal values are the same value.

    A whole number and a double are compared as doubles, and several whole numbers have the same
    double. So such a comparison implies nothing about keys or units.
    """
    pairs = []
    for condition in conditions:
        for part in conjuncts(condition):
            if isinstance(part, Call) and part.function == "eq":
                a, b = map(_compared, part.args)
                if isinstance(a, Column) and isinstance(b, Column) and _exact(a, b):
                    pairs.append((a.number, b.number))
    return Equalities(pairs)


def _compared(side: Expression) -> Expression:
    """The compared value, without a cast that maps different values to different values.

    This is the cast of a date to a timestamp, and the cast of a key that is only reached by a path,
    which reads the key as its own type.
    """
    if isinstance(side, Call) and side.function == "cast":
        (value,) = side.args
        day = value.shape.kind is Kind.DATE and side.shape.kind is Kind.TIMESTAMP
        return value if day or value.shape.kind is Kind.NULL else side
    return side


def _exact(one: Column, other: Column) -> bool:
    """Whether different values of the two columns never compare as equal.

    A key that is only reached by a path has no kind of its own. No analyst can name it, so it is
    compared only with keys of its unit, which are of one type.
    """
    kinds = {one.shape.kind, other.shape.kind}
    return len(kinds) == 1 or Kind.NULL in kinds or all(kind.temporal for kind in kinds)


def known_conditions(relation: Relation) -> list[Expression]:
    """Conditions that hold for every row: those of inner joins, semi joins and filters below."""
    match relation:
        case Join(kind="inner" | "cross" | "semi", left=left, right=right, condition=condition):
            below = known_conditions(left) + known_conditions(right)
            return below if condition is None else [condition, *below]
        case Join(kind="left" | "anti", left=left):
            return known_conditions(left)
        case Filter(input=below, predicate=predicate):
            return [predicate, *known_conditions(below)]
        case Project(input=below) | Sort(input=below):
            return known_conditions(below)
        case _:
            return []


def units_agree(left: Private, right: Private, known: Equalities) -> bool:
    """Whether the join pairs only rows of the same unit."""
    if not left.key or len(left.key) != len(right.key) or left.unit != right.unit:
        return False
    return all(known.closure(a) & b for a, b in zip(left.key, right.key, strict=True))


def imply_equal_units(left: Relation, right: Relation, known: Equalities) -> list[tuple[int, int]]:
    """The pairs of unit columns that are equal because the join follows a declared foreign key.

    Claim: a child row joined with the first parent row of its path to the unit belongs to the
        parent row's unit. So do two child rows of one parent row.
    Assumes: declared keys are unique, which is verified before any question
        (``declarations.requirements``).
    Argument: the parent's key is unique, so the joined row is the row that the path finds.
    """
    found: list[tuple[int, int]] = []
    for below, parent in _pairs(left, right):
        if follows(below, parent, known) or siblings(below, parent, known):
            pairs = zip(below.unit_fields, parent.unit_fields, strict=True)
            found += [(a.number, b.number) for a, b in pairs]
    return found


def _pairs(left: Relation, right: Relation) -> Iterator[tuple[Scan, Scan]]:
    """All pairs of a table of one side and a table of the other, in both orders."""
    mine, theirs = scans(left), scans(right)
    for one, other in product(mine, theirs):
        yield one, other
        yield other, one


def led_to_one_unit(left: Relation, right: Relation, known: Equalities) -> bool:
    """Whether foreign keys say that joined rows are of one unit."""
    return any(
        follows(a, b, known) or siblings(a, b, known) or declared_same(a, b, known)
        for a, b in _pairs(left, right)
    )


def scans(relation: Relation) -> list[Scan]:
    """The tables whose rows are in the relation, unchanged or grouped within their unit."""
    match relation:
        case Scan():
            return [relation]
        case Join(left=left, right=right, kind=kind):
            return scans(left) + (scans(right) if kind in ("inner", "cross") else [])
        case Filter(input=below) | Project(input=below) | Sort(input=below):
            return scans(below)
        case Aggregate(input=below, privacy=Private()):
            return scans(below)
        case _:
            return []


def follows(child: Scan, parent: Scan, known: Equalities) -> bool:
    """Whether the two are joined by the first step of the child's path to its unit."""
    path = child.table.path
    if not path or path[0].references != parent.table.name:
        return False
    mine, theirs = ({f.name: f.number for f in side.fields} for side in (child, parent))
    return all(
        theirs[b] in known.closure(frozenset({mine[a]}))
        for a, b in zip(path[0].columns, path[0].key, strict=True)
    )


def siblings(one: Scan, other: Scan, known: Equalities) -> bool:
    """Whether the paths of the two tables to their unit begin with the same parent row."""
    if not one.table.path or not other.table.path:
        return False
    mine, theirs = one.table.path[0], other.table.path[0]
    if (mine.references, mine.key) != (theirs.references, theirs.key):
        return False
    first, second = ({f.name: f.number for f in side.fields} for side in (one, other))
    return all(
        second[b] in known.closure(frozenset({first[a]}))
        for a, b in zip(mine.columns, theirs.columns, strict=True)
    )


def one_unit_conditions(left: Relation, right: Relation, known: Equalities) -> list[Expression]:
    """Conditions that the units are equal, for a foreign key that is declared to imply this.

    Claim: with these conditions the join pairs rows of one unit only, whatever the data is.
    Assumes: on each side the columns of the unit's key hold it.
    Argument: they compare each part of the unit's key. The declaration only says that the
        conditions drop no rows but those of no unit. So it affects the answer, not the protection.
    """
    mine, theirs = left.privacy, right.privacy
    if not isinstance(mine, Private) or not isinstance(theirs, Private):
        return []
    declared = any(declared_same(a, b, known) for a, b in _pairs(left, right))
    if not declared or units_agree(mine, theirs, known):
        return []
    return units_equal(left, right)


def units_equal(left: Relation, right: Relation) -> list[Expression]:
    """The conditions that two rows are of one unit; empty if a relation lacks its unit's key."""
    mine, theirs = left.privacy, right.privacy
    if not isinstance(mine, Private) or not isinstance(theirs, Private):
        return []
    sides = [_keys(left, mine), _keys(right, theirs)]
    if mine.unit != theirs.unit or not all(sides):
        return []
    parts = [(_read_as(a, b), _read_as(b, a)) for a, b in zip(*sides, strict=True)]
    return [Call("eq", pair, FUNCTIONS["eq"].shape(pair, "")) for pair in parts]


def _read_as(column: Column, other: Column) -> Expression:
    """The column; a key that is only reached by a path is cast to the kind of the other key."""
    kind = other.shape.kind
    if column.shape.kind is not Kind.NULL or kind is Kind.NULL:
        return column
    return Call("cast", (column,), FUNCTIONS["cast"].shape((column,), kind.value), kind.value)


def _keys(relation: Relation, state: Private) -> tuple[Column, ...]:
    """The columns of the unit's key, visible or hidden; empty if a part of the key is missing."""
    there, shown = written_columns(relation), {f.number for f in relation.fields}
    parts = [sorted(part & there.keys(), key=lambda n: (n not in shown, n)) for part in state.key]
    return tuple(there[part[0]] for part in parts) if all(parts) else ()


def declared_same(child: Scan, parent: Scan, known: Equalities) -> bool:
    """Whether the two are joined by a foreign key that pairs rows of the same unit."""
    mine, theirs = ({f.name: f.number for f in side.fields} for side in (child, parent))
    return any(
        step.same_unit
        and step.references == parent.table.name
        and all(
            theirs[b] in known.closure(frozenset({mine[a]}))
            for a, b in zip(step.columns, step.key, strict=True)
        )
        for step in child.table.foreign_keys
    )


def covers_key(public: Relation, known: Equalities) -> bool:
    """Whether at most one row of a public relation matches a row of the other side."""
    return _most_met(public, known) == 1


def _most_met(public: Relation, known: Equalities) -> int:
    """The most rows of a public relation that match one row of the other side; 0 if unbounded."""
    own = {f.number for f in public.fields}
    matched = {n for pair in known.pairs if set(pair) - own for n in pair} & own
    return min((most for columns, most in find_fan_outs(public) if columns <= matched), default=0)


def find_fan_outs(relation: Relation) -> list[tuple[set[int], int]]:
    """Sets of columns of a public or released relation, each with the most rows per value."""
    match relation:
        case Scan(table=table, fields=fields):
            own = {f.name: f.number for f in fields}
            counts = {**table.fan_outs, table.key: 1} if table.key else table.fan_outs
            there = [(names, most) for names, most in counts.items() if own.keys() >= set(names)]
            return [({own[name] for name in names}, most) for names, most in there]
        case Aggregate(fields=fields, keys=keys, sets=()):
            return [({f.number for f in fields[: len(keys)]}, 1)]
        case Distinct(fields=fields):
            return [({f.number for f in fields}, 1)]
        case Values(fields=fields, rows=rows):
            columns = zip(fields, zip(*rows, strict=True), strict=False)
            return [({f.number}, 1) for f, values in columns if _all_different(f, values)]
        case Filter(input=below) | Project(input=below) | Sort(input=below) | Limit(input=below):
            return find_fan_outs(below)
        case _:
            return []


def _all_different(column: Column, values: tuple[Scalar | None, ...]) -> bool:
    """Whether the constants of a column differ. The engine may round two doubles to one."""
    return column.shape.kind is not Kind.DOUBLE and len(set(values)) == len(values)


def fan_out(left: Relation, right: Relation, known: Equalities) -> int:
    """The most rows of the public side that match one private row; 0 if unbounded."""
    public = right if isinstance(left.privacy, Private) else left
    most = _most_met(public, known)
    return max(1, len(public.rows)) if not most and isinstance(public, Values) else most


def join(
    kind: str, left: Relation, right: Relation, condition: Expression | None,
    known: Equalities | None = None,
) -> Join:  # fmt: skip
    """The join of two relations, with its columns and its privacy state."""
    if condition is not None and known is None:
        apart = one_unit_conditions(left, right, equalities([condition]))
        condition = conjunction([condition, *apart])
    fields = _optional(left.fields, kind in ("right", "full"))
    if kind not in ("semi", "anti"):
        fields += _optional(right.fields, kind in ("left", "full"))
    if condition is not None and kind in ("inner", "semi"):
        fields = narrow(fields, condition)
    own = equalities([] if condition is None else [condition])
    known = known or own
    equal = known if kind in ("inner", "cross", "semi") else Equalities(())
    many = fan_out(left, right, known if kind == "inner" else own)
    sure = known if kind == "inner" else own
    unique = covers_key(left, sure), covers_key(right, sure)
    state = privacy.join_privacy(kind, left.privacy, right.privacy, equal, many, unique)
    return Join(kind, left, right, condition, fields, state)


def _optional(fields: tuple[Column, ...], optional: bool) -> tuple[Column, ...]:  # noqa: FBT001
    return tuple(replace(f, shape=f.shape.optional()) for f in fields) if optional else fields


def joined_on_unit(relation: Join) -> bool:
    """Whether a join of two private relations pairs rows of one unit only.

    For inner and semi joins the conditions below count too; for other joins only their own.
    """
    left, right = relation.left.privacy, relation.right.privacy
    assert isinstance(left, Private)
    assert isinstance(right, Private)
    own = [] if relation.condition is None else [relation.condition]
    inner = relation.kind in ("inner", "semi")
    known = equalities(
        [*own, *known_conditions(relation.left), *known_conditions(relation.right)]
        if inner
        else own
    )
    pairs = [*known.pairs, *imply_equal_units(relation.left, relation.right, known)]
    for below in walk_relations(relation) if inner else ():
        if isinstance(below, Join) and below.kind in ("inner", "cross"):
            pairs += imply_equal_units(below.left, below.right, known)
    return units_agree(left, right, Equalities(pairs))
