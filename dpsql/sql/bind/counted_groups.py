"""COUNT over SELECT DISTINCT or GROUP BY of private rows, as COUNT(DISTINCT ...) of the rows.

``SELECT COUNT(*) FROM (SELECT DISTINCT city, age FROM customers) AS x`` counts groups. If the inner
query were answered first, its groups would be all public groups, also empty ones, or the groups
with enough units. SQL counts neither of these. So the different combinations are counted in the
rows below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpsql.catalog.functions import FUNCTIONS
from dpsql.diagnostics.span import Span
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Column,
    Expression,
    Subquery,
    Window,
    columns,
    integer,
    substitute,
    walk,
)
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Private,
    Project,
    Relation,
    Sort,
    with_arguments,
)
from dpsql.ir.relations import walk_relations as rows
from dpsql.sql.bind import privacy
from dpsql.sql.narrow import conjunction, narrow


@dataclass(frozen=True, slots=True)
class Counting:
    """A grouping: its input rows, its keys, and its aggregate calls."""

    relation: Relation
    keys: tuple[Expression, ...]
    calls: tuple[Aggregated, ...]


def over_rows(counting: Counting) -> Counting:
    """The same counts over the rows below the inner groups; unchanged if that is not possible.

    Claim: the results are equal.
    Assumes: the groups of ``groups_of`` are filtered by nothing but conditions on their keys.
    Argument: each combination of the inner keys is one row of the groups. So counting these rows is
        counting different combinations, including those with NULLs. Conditions and keys above the
        groups use only the inner keys, so they have the same value for a group and for each of its
        rows.
    """
    found = groups_of(counting.relation)
    if found is None or not all(_counts(call) for call in counting.calls) or not counting.calls:
        return counting
    known, kept = found.known, found.rows
    used = [*counting.keys, *(part for call in counting.calls for part in _parts(call))]
    if not all(is_over(part, known) for part in used):
        return counting
    keys = tuple(substitute(key, key_swap(known)) for key in counting.keys)
    calls = tuple(_counted(call, found.keys, known) for call in counting.calls)
    return Counting(kept, keys, calls)


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of private rows: the rows, and the keys as expressions over them.

    ``known`` maps the number of each column of the groups to an expression over the rows. ``calls``
    maps the numbers of aggregate columns to their calls. ``names`` are the names of the keys.
    """

    rows: Relation
    keys: tuple[Expression, ...]
    known: Mapping[int, Expression]
    calls: Mapping[int, Aggregated] = field(default_factory=dict)
    names: tuple[str, ...] = ()


def groups_of(relation: Relation) -> Groups | None:
    """The grouping of private rows below filters, projections and sorts; None for other relations.

    None also where a LEFT JOIN keeps groups without rows.
    """
    match relation:
        case Aggregate(input=below, keys=keys, sets=(), terms=None) if keys:
            if not isinstance(below.privacy, Private):
                return _coarser(groups_of(below), keys, relation.fields, relation.key_names)
            state = privacy.group_privacy(below.privacy, keys, relation.fields)
            if isinstance(state, Private) or any(
                isinstance(r, Join) and r.whole for r in rows(below)
            ):
                return None
            known = {f.number: k for f, k in zip(relation.fields, keys, strict=False)}
            made = zip(relation.fields[len(keys) :], relation.calls, strict=True)
            calls = {f.number: call for f, call in made}
            return Groups(below, keys, known, calls, relation.key_names)
        case Distinct(input=below, fields=fields, called=called):
            return _coarser(groups_of(below), fields, fields, called)
        case Sort(input=below):
            return groups_of(below)
        case Project(input=below, values=values, fields=fields):
            found = groups_of(below)
            if found is None:
                return None
            told = {
                f.number: substitute(v, key_swap(found.known))
                for f, v in zip(fields, values, strict=True)
                if is_over(v, found.known)
            }
            calls = {
                f.number: found.calls[v.number]
                for f, v in zip(fields, values, strict=True)
                if isinstance(v, Column) and v.number in found.calls
            }
            return replace(found, known=told, calls=calls)
        case Filter(input=below, predicate=predicate):
            found = groups_of(below)
            if found is None or not is_over(predicate, found.known):
                return None
            return _kept(found, substitute(predicate, key_swap(found.known)), relation.span)
        case _:
            return None


def _coarser(
    found: Groups | None,
    keys: Sequence[Expression],
    fields: Sequence[Column],
    names: tuple[str, ...],
) -> Groups | None:
    """Groups of groups, as groups of the rows: their keys become expressions over the rows."""
    if found is None or not all(is_over(key, found.known) for key in keys):
        return None
    own = tuple(substitute(key, key_swap(found.known)) for key in keys)
    known = {f.number: key for f, key in zip(fields, own, strict=False)}
    return Groups(found.rows, own, known, names=names)


def _kept(found: Groups, condition: Expression, place: Span | None) -> Groups:
    """The groups whose keys satisfy a condition: the rows are filtered, and columns narrowed."""
    fields = narrow(found.rows.fields, condition)
    kept = Filter(found.rows, condition, fields, found.rows.privacy, place)
    swap = key_swap({f.number: f for f in fields})
    keys = tuple(substitute(key, swap) for key in found.keys)
    calls = {n: with_arguments(c, lambda v: substitute(v, swap)) for n, c in found.calls.items()}
    known = {n: substitute(v, swap) for n, v in found.known.items()}
    return Groups(kept, keys, known, calls, found.names)


def key_swap(known: Mapping[int, Expression]) -> Callable[[Expression], Expression | None]:
    """A substitution of columns by their expressions in ``known``."""
    return lambda node: known.get(node.number) if isinstance(node, Column) else None


def is_over(value: Expression, known: Mapping[int, Expression]) -> bool:
    """Whether a value is computed only from the columns of ``known``."""
    if any(isinstance(part, Subquery | Window) for part in walk(value)):
        return False
    return all(column.number in known for column in columns(value))


def _counts(call: Aggregated) -> bool:
    return call.function == "count" and call.bounds is None


def _parts(call: Aggregated) -> tuple[Expression, ...]:
    return call.args if call.where is None else (*call.args, call.where)


def _counted(
    call: Aggregated, keys: tuple[Expression, ...], known: Mapping[int, Expression]
) -> Aggregated:
    """A count of groups as a count of different combinations of the keys.

    COUNT(DISTINCT x) ignores NULL. So a single key gets a constant beside it: combinations with
    NULL are counted.
    """
    swap = key_swap(known)
    args = tuple(substitute(arg, swap) for arg in call.args)
    conditions = [] if call.where is None else [substitute(call.where, swap)]
    if call.distinct:
        return replace(call, args=args, where=conditions[0] if conditions else None)
    conditions += [present(arg) for arg in args if arg.shape.nullable]
    where = conjunction(conditions) if conditions else None
    combination = keys if len(keys) > 1 else (*keys, integer(1))
    return replace(call, args=combination, distinct=True, where=where)


def present(value: Expression) -> Expression:
    """The condition that a value is not NULL."""
    absent = Call("is_null", (value,), FUNCTIONS["is_null"].shape((value,), ""))
    return Call("not", (absent,), FUNCTIONS["not"].shape((absent,), ""))
