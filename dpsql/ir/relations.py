"""dpsql's relations, and the one invariant that they carry.

A relation is ``Public``, ``Private`` (every row belongs to exactly one privacy unit and is
computed from that unit's rows and public data only) or ``Released`` (noised and paid for).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from dpsql.diagnostics.span import Span
from dpsql.effort import step
from dpsql.ir.expressions import Aggregated, Column, Expression, SortKey, Subquery, Window
from dpsql.ir.expressions import walk as parts
from dpsql.ir.privacy_clause import Terms
from dpsql.policy.model import Table
from dpsql.policy.prepared_copies import Steps
from dpsql.policy.types import Scalar


@dataclass(frozen=True, slots=True)
class Public:
    """Public rows, which are answered exactly."""


@dataclass(frozen=True, slots=True)
class Private:
    """Rows of units of kind ``unit``.

    ``key`` identifies the row's unit: for each part of the unit's key, the columns that hold it. If
    it is empty, each row is a unit of its own. One unit has at most ``max_rows`` rows here, by
    declaration and through every operator since. The bound is enforced again where rows are
    counted, unless it is 1. ``per_group`` is the declared largest number of rows of one unit in one
    group.
    """

    unit: str
    key: tuple[frozenset[int], ...]
    max_rows: int
    per_group: int | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """Rows that are noised and paid for, or computed from such rows."""


Privacy = Public | Private | Released


@dataclass(frozen=True, slots=True)
class Stepped:
    """A column of a prepared copy that holds the values of the column ``of`` in steps."""

    of: int
    column: Column
    steps: Steps


@dataclass(frozen=True, slots=True)
class Copied:
    """Says that a scan reads the prepared copy of its table.

    Of each unit's rows the first ``most`` by rank are read; None reads all rows.
    """

    stepped: tuple[Stepped, ...]
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of a listed table. Its ``unit_columns`` are columns of the table its path ends in."""

    table: Table
    fields: tuple[Column, ...]
    unit_fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)
    skip_unit_path: bool = False
    """The unit is taken from a parent table in the same query, so no path is followed."""
    copied: Copied | None = None
    """Set where a plan is written as a statement, if there is a prepared copy."""
    over_limit_rows: str | None = None
    """The name of the kept rows of units above the limit, if only these are read."""
    view: str = field(default="", compare=False)
    """The policy's view that reads the table. The analyst may not be allowed to read the table."""


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows."""

    fields: tuple[Column, ...]
    rows: tuple[tuple[Scalar | None, ...], ...]
    privacy: Privacy = Public()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """WHERE or HAVING. ``fields`` may be fewer than the input's."""

    input: Relation
    predicate: Expression
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Project:
    """Computed columns, one for each field. The unit's key is kept without being a field."""

    input: Relation
    values: tuple[Expression, ...]
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY ``keys``; fields are the keys, then the calls.

    ``sets`` are the grouping sets, as positions in ``keys``; none means one set with all keys.
    ``terms`` are those of a differential privacy clause for its measurement. ``called`` has the
    names by which the analyst knows the keys; none means that these are the names of the fields.
    """

    input: Relation
    keys: tuple[Expression, ...]
    calls: tuple[Aggregated, ...]
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)
    sets: tuple[tuple[int, ...], ...] = ()
    terms: Terms | None = None
    called: tuple[str, ...] = field(default=(), compare=False)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the keys in answers and refusals, each once."""
        names = self.called or tuple(f.name for f in self.fields[: len(self.keys)])
        return tuple(dict.fromkeys(names))

    def called_at(self, positions: Iterable[int]) -> tuple[str, ...]:
        """The value of ``called`` for some of the keys."""
        return tuple(self.called[k] for k in positions) if self.called else ()


@dataclass(frozen=True, slots=True)
class Join:
    """A join. ``kind`` is inner, left, right, full, cross, semi or anti.

    ``on_unit`` is the condition that would join unit with unit, for suggestions. ``whole`` says
    that the query also asks for groups without a pair of rows, so the groups must be public.
    """

    kind: str
    left: Relation
    right: Relation
    condition: Expression | None
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)
    on_unit: str = field(default="", compare=False)
    whole: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Union:
    """A set operation: ``union all``, ``union``, ``except`` or ``intersect``, by position.

    ``columns`` has the columns of each input that make the fields (by default its first columns).
    """

    operation: str
    inputs: tuple[Relation, ...]
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)
    columns: tuple[tuple[Column, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Windowed:
    """The input's fields, and one more for each window function.

    ``read`` are the columns that the statement reads of the result; None means that it may read
    any.
    """

    input: Relation
    windows: tuple[Window, ...]
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)
    read: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Distinct:
    """SELECT DISTINCT. ``called`` has the names by which the analyst knows the columns."""

    input: Relation
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)
    called: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Sort:
    """ORDER BY."""

    input: Relation
    keys: tuple[SortKey, ...]
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Limit:
    """LIMIT and OFFSET."""

    input: Relation
    count: int | None
    offset: int
    fields: tuple[Column, ...]
    privacy: Privacy
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Stored:
    """A table that exists by the time it is read: a released measurement, or public rows.

    ``given`` says that its rows are passed with the statement, as the parameter of that name.
    """

    name: str
    fields: tuple[Column, ...]
    privacy: Privacy = Released()
    span: Span | None = field(default=None, compare=False)
    given: bool = False


Relation = (
    Scan
    | Values
    | Filter
    | Project
    | Aggregate
    | Join
    | Union
    | Windowed
    | Distinct
    | Sort
    | Limit
    | Stored
)


def inputs(relation: Relation) -> tuple[Relation, ...]:
    """The relations directly below."""
    match relation:
        case Scan() | Values() | Stored():
            return ()
        case Join(left=left, right=right):
            return (left, right)
        case Union(inputs=below):
            return below
        case _:
            return (relation.input,)


def with_inputs(relation: Relation, below: tuple[Relation, ...]) -> Relation:
    """The same operator over other inputs. The caller must keep the fields consistent."""
    match relation:
        case Scan() | Values() | Stored():
            return relation
        case Join():
            return replace(relation, left=below[0], right=below[1])
        case Union():
            return replace(relation, inputs=below)
        case _:
            return replace(relation, input=below[0])


def expressions(relation: Relation) -> tuple[Expression, ...]:
    """The scalar expressions of this operator alone."""
    match relation:
        case Scan() | Values() | Stored() | Union() | Distinct() | Limit():
            return ()
        case Filter(predicate=predicate):
            return (predicate,)
        case Project(values=values):
            return values
        case Aggregate(keys=keys, calls=calls):
            wheres = tuple(c.where for c in calls if c.where is not None)
            return (*keys, *(a for c in calls for a in c.args), *wheres)
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case Windowed(windows=windows):
            return windows
        case Sort(keys=keys):
            return tuple(key.value for key in keys)


def with_expressions(relation: Relation, change: Callable[[Expression], Expression]) -> Relation:
    """The same operator with each of its scalar expressions changed."""
    match relation:
        case Scan() | Values() | Stored() | Union() | Distinct() | Limit():
            return relation
        case Filter(predicate=predicate):
            return replace(relation, predicate=change(predicate))
        case Project(values=values):
            return replace(relation, values=tuple(change(v) for v in values))
        case Aggregate(keys=keys, calls=calls):
            changed = tuple(with_arguments(call, change) for call in calls)
            return replace(relation, keys=tuple(change(k) for k in keys), calls=changed)
        case Join(condition=condition):
            return relation if condition is None else replace(relation, condition=change(condition))
        case Windowed(windows=windows):
            kept = tuple(w for w in map(change, windows) if isinstance(w, Window))
            return replace(relation, windows=kept)
        case Sort(keys=keys):
            return replace(relation, keys=tuple(replace(k, value=change(k.value)) for k in keys))


def with_arguments(call: Aggregated, change: Callable[[Expression], Expression]) -> Aggregated:
    """An aggregate call with its arguments and its FILTER changed."""
    where = None if call.where is None else change(call.where)
    return replace(call, args=tuple(change(a) for a in call.args), where=where)


def subqueries(relation: Relation) -> Iterator[Subquery]:
    """Queries inside the expressions of this operator."""
    for expression in expressions(relation):
        for part in parts(expression):
            if isinstance(part, Subquery):
                yield part


def walk_relations(relation: Relation) -> Iterator[Relation]:
    """The relation and all relations below it, also those inside expressions."""
    step()
    yield relation
    for subquery in subqueries(relation):
        yield from walk_relations(subquery.relation)
    for below in inputs(relation):
        yield from walk_relations(below)


def written_columns(relation: Relation) -> dict[int, Column]:
    """The columns that a relation has when it is written as SQL, also those that are no fields."""
    found = {f.number: f for f in relation.fields}
    match relation:
        case Scan(skip_unit_path=False, unit_fields=owners):
            return {**found, **{f.number: f for f in owners}}
        case Join(kind="semi" | "anti", left=left):
            return {**found, **written_columns(left)}
        case Join(left=left, right=right):
            return {**found, **written_columns(left), **written_columns(right)}
        case Filter() | Project() | Sort() | Windowed():
            return {**found, **written_columns(relation.input)}
        case _:
            return found
