"""Cut a checked query at its frontier: measurements below, the analyst's own SQL above."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from dpsql.catalog.statistic import Lowered, Statistic
from dpsql.checks import Checked
from dpsql.checks.rule import is_measured
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Column,
    Expression,
    Parameter,
    Subquery,
    substitute,
)
from dpsql.ir.public_groups import PublicGroups
from dpsql.ir.relations import (
    Aggregate,
    Private,
    Project,
    Public,
    Relation,
    Released,
    Scan,
    Stored,
    Union,
    Values,
    inputs,
    subqueries,
    walk_relations,
    with_expressions,
    with_inputs,
)
from dpsql.plan import interval_functions as ends
from dpsql.plan import missing_groups
from dpsql.plan.cells import TooManyCells, cells
from dpsql.plan.clamped import clamped_values
from dpsql.plan.contents import contents
from dpsql.plan.declared import answer_from_bounds
from dpsql.plan.empty_groups import (
    Above,
    EmptyGroups,
    above,
    counting_units,
    drops_empty,
    hides_noise,
    keeps_empty,
    note,
    with_units,
    without_noise,
)
from dpsql.plan.group_means import over_rows
from dpsql.plan.grouping_sets import as_level, group_by, with_constants, without_constants
from dpsql.plan.identity import identity
from dpsql.plan.lift import lift_conditions
from dpsql.plan.lower import adds_up, centre_sums, check_timing, finish, lower
from dpsql.plan.narrowed import NeededColumns, fit_columns, needed_below, split_filter
from dpsql.plan.nodes import Cells, Enumerator, Lookup, Measurement, Plan, PublicQuery
from dpsql.plan.noise_alone import Show, hide, with_hidden
from dpsql.policy.types import Kind


def build(
    checked: Checked, enumerator: Enumerator, most_cells: int, *,
    strict_timing: bool = False, empty_groups: EmptyGroups = "auto", show: Show = "sensible",
) -> Plan:  # fmt: skip
    """The plan of a checked query. Reads no private row: ``enumerator`` lists public groups."""
    bound = checked.bound
    numbers = _numbers(bound.relation)
    builder = _Builder(enumerator, most_cells, numbers, strict_timing, empty_groups, show)
    try:
        if strict_timing:
            check_timing(bound.relation)
        output = builder.lift(bound.relation)
    except Refused as refused:
        raise refused.within(bound.source.text) from None
    lookups = tuple(builder.lookups)
    parts = tuple(builder.measurements), tuple(builder.publics)
    notes, clamped = (tuple(dict.fromkeys(n)) for n in (builder.notes, builder.clamped))
    plan = Plan(*parts, output, bound.columns, lookups, notes, clamped)
    try:
        ends.check(plan)
    except Refused as refused:
        raise refused.within(bound.source.text) from None
    return plan


def _numbers(relation: Relation) -> Iterator[int]:
    """The column numbers that the statement does not use yet."""
    used = [f.number for r in walk_relations(relation) for f in r.fields]
    used += [
        f.number for r in walk_relations(relation) if isinstance(r, Scan) for f in r.unit_fields
    ]
    return iter(range(max(used, default=0) + 1, 2**31))


@dataclass(slots=True)
class _Builder:
    enumerator: Enumerator
    most_cells: int
    numbers: Iterator[int]
    strict_timing: bool
    empty_groups: EmptyGroups
    show: Show
    measurements: list[Measurement] = field(default_factory=list)
    publics: list[PublicQuery] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)
    identities: dict[object, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    clamped: list[str] = field(default_factory=list)

    def lift(
        self, relation: Relation, needed: NeededColumns = None, state: Above = Above.NOTHING
    ) -> Relation:
        """The relation with everything below the frontier replaced by stored tables.

        Of public rows only the ``needed`` columns are read. ``state`` says which operators stand
        above.
        """
        if isinstance(relation, Aggregate) and is_measured(relation):
            make = self._levels if relation.sets else self._measure
            return make(relation, state)
        over = self._over_rows(relation) if isinstance(relation, Aggregate) else None
        if over is not None:
            return self.lift(over, needed, state)
        if isinstance(relation.privacy, Public):
            relation = ends.without_intervals(relation)
            if _reads_tables(relation):
                return self._public(relation, needed)
            relation = split_filter(relation)
        wanted = needed_below(relation, needed)
        below = tuple(self.lift(r, wanted, above(relation, r, state)) for r in inputs(relation))
        return fit_columns(with_expressions(with_inputs(relation, below), self._settled))

    def _over_rows(self, aggregate: Aggregate) -> Relation | None:
        """Means over groups as aggregates of rows, if there are many groups with few rows each."""
        found = (
            None
            if self.empty_groups == "keep"
            else over_rows(aggregate, self.numbers, self._how_many)
        )
        if found is None:
            return None
        self.notes.append(found.note)
        return found.relation

    def _how_many(self, aggregate: Aggregate) -> int | None:
        """The number of public groups, also if there are too many; None if they are not public."""
        try:
            found = cells(aggregate.keys, aggregate.input, self.enumerator, self.most_cells)
        except TooManyCells as many:
            return many.count
        return None if found is None else found.count

    def _settled(self, node: Expression) -> Expression:
        """The expression with the result of each subquery as a parameter."""
        return substitute(node, self._looked_up)

    def _looked_up(self, node: Expression) -> Expression | None:
        if not isinstance(node, Subquery):
            return None
        relation = self.lift(node.relation, state=Above.MORE)
        name = f"x{len(self.lookups)}_"
        lookup = Lookup(name, node.form, relation, node.column, len(self.measurements))
        self.lookups.append(lookup)
        if node.value is None:
            return Parameter(name, node.shape, span=node.span)
        assert node.column is not None
        shape, kind = node.column.shape, node.value.shape.kind
        if shape.kind is Kind.NULL:  # the list holds NULLs alone: they take the type of the value
            shape = replace(shape, kind=Kind.TEXT if kind is Kind.NULL else kind)
        options = Parameter(name, shape, many=True, span=node.span)
        return Call("in_list", (self._settled(node.value), options), node.shape, span=node.span)

    def _below(self, relation: Relation) -> Relation:
        """Private rows as the engine will read them: results released before are parameters.

        Claim: the only aggregates over private rows in the statement are those of single units.
        Assumes: results that are released before are parameters of the statement.
        Argument: everything that is computed from a measurement is released first, with noise.
        """
        if isinstance(relation.privacy, Released):
            return self._given(relation)
        below = tuple(self._below(r) for r in inputs(relation))
        return with_expressions(with_inputs(relation, below), self._settled)

    def _given(self, relation: Relation) -> Stored:
        """A released relation as a table of rows that is passed with the statement."""
        fields = _unique(relation.fields)
        lifted = self.lift(relation, state=Above.MORE)
        name = f"x{len(self.lookups)}_"
        chosen = Project(lifted, fields, fields, Released())
        self.lookups.append(Lookup(name, "rows", chosen, None, len(self.measurements)))
        return Stored(name, fields, Public(), given=True)

    def _public(self, relation: Relation, needed: NeededColumns) -> Relation:
        there = _unique(relation.fields)
        fields = tuple(f for f in there if needed is None or f.number in needed) or there[:1]
        return self._read(relation, fields, contents(relation))

    def _read(
        self, source: Relation | PublicGroups, fields: tuple[Column, ...], contents: Iterable[object]
    ) -> Stored:  # fmt: skip
        """A stored table of public rows; the same rows are read once."""
        for known in self.publics:
            if known.source == source and known.fields == fields:
                return Stored(known.name, fields, Public())
        name = f"p{len(self.publics)}"
        self.publics.append(PublicQuery(name, source, fields, tuple(contents)))
        return Stored(name, fields, Public())

    def _listed(self, aggregate: Aggregate, cells: Cells) -> Relation:
        """The groups of a GROUP BY without aggregates, where they are public. They cost nothing."""
        names = ", ".join(aggregate.key_names)
        self.notes.append(f"{names}: all values that the policy lists; no rows were read")
        contents = [] if cells.rows is None else [cells.rows.digest]
        return self._read(cells.groups, aggregate.fields, contents)

    def _measure(self, aggregate: Aggregate, state: Above) -> Relation:
        """A measurement, and above it the projection that finishes each aggregate."""
        aggregate = self._settle(aggregate)
        lowered = [self._declared(aggregate, c) for c in aggregate.calls]
        pairs = zip(aggregate.calls, lowered, strict=True)
        self.clamped += clamped_values(aggregate, [call for call, low in pairs if low.statistics])
        return self._answered(aggregate, lowered, state)

    def _declared(self, aggregate: Aggregate, call: Aggregated) -> Lowered:
        """A call as constants where declared bounds may answer it, else as statistics."""
        found = answer_from_bounds(aggregate, call)
        if found is None:
            return lower(aggregate, call)
        self.notes.append(found.note)
        return found.lowered

    def _answered(self, aggregate: Aggregate, lowered: list[Lowered], state: Above) -> Relation:
        """The groups with their aggregates. They are measured if any aggregate needs rows."""
        if not aggregate.keys and not any(low.statistics for low in lowered):
            nothing = Values((), ((),), Released())
            values = tuple(low.finish(()) for low in lowered)
            return Project(nothing, values, aggregate.fields, Released(), aggregate.span)
        cells = self._cells(aggregate)
        dropped = cells is not None and drops_empty(aggregate, state, self.empty_groups)
        if cells is not None and not aggregate.calls and not dropped:
            return self._listed(aggregate, cells)
        hidden = hides_noise(aggregate, state, self.empty_groups)
        said = note(aggregate, state, public=cells is not None, dropped=dropped or hidden)
        self.notes += [] if said is None else [said]
        lowered = centre_sums(lowered)
        measurement, source = self._added(
            aggregate, lowered, cells, dropped=dropped, counted=hidden
        )
        found = finish(aggregate, source, measurement.key_fields, measurement, lowered)
        if self.show == "sensible":
            found, may_hide = hide(found, measurement, lowered)
            name = measurement.name
            self.measurements = [with_hidden(m, name, may_hide) for m in self.measurements]
        if not hidden:
            return found
        whole = next(m for m in self.measurements if m.name == measurement.name)
        return without_noise(aggregate, found, whole)

    def _settle(self, aggregate: Aggregate) -> Aggregate:
        """The aggregate over rows as the engine will read them."""
        aggregate = replace(aggregate, input=self._below(aggregate.input))
        settled = with_expressions(aggregate, self._settled)
        assert isinstance(settled, Aggregate)
        assert not any(isinstance(r.privacy, Released) for r in walk_relations(settled.input))
        return settled

    def _added(
        self, aggregate: Aggregate, lowered: list[Lowered], cells: Cells | None, *, dropped: bool,
        counted: bool = False,
    ) -> tuple[Measurement, Relation]:  # fmt: skip
        """The measurement of an aggregate, and the relation of its released groups.

        An equal measurement of this query is used again, so that each is released once. Groups that
        may have no rows are ``dropped`` by their number of units, or keep it as a column
        (``counted``).
        """
        privacy = aggregate.input.privacy
        assert isinstance(privacy, Private)
        statistics = tuple(dict.fromkeys(s for low in lowered for s in low.statistics))
        measurement = Measurement(
            f"m{len(self.measurements)}",
            aggregate.input,
            privacy,
            aggregate.keys,
            aggregate.fields[: len(aggregate.keys)],
            cells,
            statistics,
            tuple(self._column(s, i) for i, s in enumerate(statistics)),
            aggregate.terms,
            lift_conditions(aggregate.input, self.numbers) if self.strict_timing else None,
        )
        place = self.identities.setdefault(identity(measurement), len(self.measurements))
        if place == len(self.measurements):
            self.measurements.append(measurement)
        known = self.measurements[place]
        if dropped or counted:
            known = self.measurements[place] = counting_units(known, self.numbers)
        own = known.columns[: len(statistics)]
        shown = known.columns if counted else own
        source = with_units(known) if dropped else Stored(known.name, known.key_fields + shown)
        return replace(known, statistics=statistics, columns=own), source

    def _levels(self, aggregate: Aggregate, state: Above) -> Relation:
        """The levels of grouping sets.

        A level is added up from the finest groups where that errs less; otherwise it is measured
        apart. Levels that are measured apart share the query's budget like any other measurements.
        """
        aggregate = self._settle(aggregate)
        self.clamped += clamped_values(aggregate, aggregate.calls)
        plain = without_constants(aggregate)
        parts = (self._level(plain, chosen, state) for chosen in plain.sets)
        levels = with_constants(aggregate, tuple(parts))
        columns = tuple(level.fields for level in levels)
        return Union("union all", levels, aggregate.fields, Released(), aggregate.span, columns)

    def _level(self, aggregate: Aggregate, chosen: tuple[int, ...], state: Above) -> Relation:
        """One grouping set, with NULL for the keys that it does not have."""
        part = group_by(aggregate, chosen)
        lowered = [lower(part, call) for call in part.calls]
        dropped = drops_empty(aggregate, state, self.empty_groups)
        hidden = hides_noise(part, state, self.empty_groups)
        summed = None if dropped or hidden else self._added_up(aggregate, part)
        said = None if summed is None else note(part, state, public=True, dropped=False)
        self.notes += [] if said is None else [said]
        return as_level(aggregate, chosen, summed or self._answered(part, lowered, state))

    def _added_up(self, whole: Aggregate, part: Aggregate) -> Relation | None:
        """A coarser level as sums over the finest one; None if not all is public and additive.

        A total of r noisy groups errs sqrt(r) times as much as one group. With levels that are
        measured apart, the error of each is multiplied by the number of levels.
        """
        finest = replace(whole, sets=())
        if tuple(range(len(whole.keys))) not in whole.sets:
            return None
        lowered = centre_sums([lower(finest, call) for call in finest.calls])
        cells, coarse = self._cells(finest), self._cells(part)
        additive = all(adds_up(s) for low in lowered for s in low.statistics)
        if cells is None or coarse is None or not additive or not finest.calls:
            return None
        if cells.count > coarse.count * len(whole.sets) ** 2:
            return None
        if any(whole.keys[i] not in part.keys for i in cells.open):
            return None  # rows that are in no finest group are in a coarser one
        measurement, _ = self._added(finest, lowered, cells, dropped=False)
        keys = tuple(measurement.key_fields[whole.keys.index(k)] for k in part.keys)
        sums = tuple(Aggregated("sum", (c,), c.shape) for c in measurement.columns)
        totals = tuple(replace(c, number=next(self.numbers)) for c in measurement.columns)
        stored = Stored(measurement.name, measurement.key_fields + measurement.columns)
        summed = Aggregate(stored, keys, sums, keys + totals, Released(), whole.span)
        return finish(part, summed, keys, replace(measurement, columns=totals), lowered)

    def _column(self, statistic: Statistic, position: int) -> Column:
        return Column(next(self.numbers), f"s{position}", statistic.shape)

    def _cells(self, aggregate: Aggregate) -> Cells | None:
        wanted = None if aggregate.terms is None else aggregate.terms.selection
        chosen = wanted == "threshold" and bool(aggregate.keys)
        found = None if chosen else self._public_cells(aggregate)
        if found is None and keeps_empty(aggregate):
            raise Refused(missing_groups.no_whole_groups(aggregate))
        if wanted == "public" and found is None:
            raise Refused(missing_groups.no_public_groups(aggregate))
        self.notes += [] if found is None else missing_groups.left_out(aggregate, found)
        return found

    def _public_cells(self, aggregate: Aggregate) -> Cells | None:
        try:
            return cells(aggregate.keys, aggregate.input, self.enumerator, self.most_cells)
        except TooManyCells as many:
            raise Refused(
                missing_groups.too_many_groups(aggregate, many.count, self.most_cells)
            ) from None


def _reads_tables(relation: Relation) -> bool:
    """Whether the engine can answer it: it reads tables, and needs no subquery's result first."""
    parts = list(walk_relations(relation))
    return any(isinstance(r, Scan) for r in parts) and not any(
        True for r in parts for _ in subqueries(r)
    )


def _unique(fields: tuple[Column, ...]) -> tuple[Column, ...]:
    """Each column once, under its first name."""
    return tuple({f.number: f for f in reversed(fields)}.values())[::-1]
