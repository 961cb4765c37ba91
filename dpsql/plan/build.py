"""Cut a checked query at its frontier: measurements below, the analyst's own SQL above."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dpsql.aggregates.registry import AGGREGATES
from dpsql.aggregates.statistic import Statistic
from dpsql.checks import Checked
from dpsql.checks.rule import is_measured
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.plan.cells import TooManyCells, cells
from dpsql.plan.identity import identity
from dpsql.plan.nodes import Cells, Enumerator, Lookup, Measurement, Plan, PublicQuery
from dpsql.sql.blocks import Writer
from dpsql.sql.expressions import Call, Column, Expression, Parameter, Subquery, substitute
from dpsql.sql.relations import (
    Aggregate,
    Private,
    Project,
    Public,
    Relation,
    Released,
    Scan,
    Stored,
    inputs,
    subqueries,
    walk,
    with_expressions,
    with_inputs,
)
from dpsql.sql.render import alias, quoted


def build(checked: Checked, enumerator: Enumerator, most_cells: int) -> Plan:
    """The plan of a checked query. Reads no data: ``enumerator`` only counts public groups."""
    bound = checked.bound
    builder = _Builder(enumerator, most_cells, _numbers(bound.relation))
    try:
        output = builder.lift(bound.relation)
    except Refused as refused:
        raise refused.within(bound.source.text) from None
    lookups = tuple(builder.lookups)
    parts = tuple(builder.measurements), tuple(builder.publics)
    return Plan(*parts, output, bound.columns, lookups)


def _numbers(relation: Relation) -> Iterator[int]:
    """Column numbers that the statement does not use yet."""
    used = [f.number for r in walk(relation) for f in r.fields]
    used += [f.number for r in walk(relation) if isinstance(r, Scan) for f in r.unit_fields]
    return iter(range(max(used, default=0) + 1, 2**31))


@dataclass(slots=True)
class _Builder:
    enumerator: Enumerator
    most_cells: int
    numbers: Iterator[int]
    measurements: list[Measurement] = field(default_factory=list)
    publics: list[PublicQuery] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)
    identities: dict[object, Measurement] = field(default_factory=dict)

    def lift(self, relation: Relation) -> Relation:
        """The relation with everything below the frontier replaced by stored tables."""
        if isinstance(relation, Aggregate) and is_measured(relation):
            return self._measure(relation)
        if isinstance(relation.privacy, Public) and _reads_tables(relation):
            return self._public(relation)
        below = tuple(self.lift(r) for r in inputs(relation))
        return with_expressions(with_inputs(relation, below), self._settled)

    def _settled(self, node: Expression) -> Expression:
        """The expression with the result of each subquery as a parameter."""
        return substitute(node, self._looked_up)

    def _looked_up(self, node: Expression) -> Expression | None:
        if not isinstance(node, Subquery):
            return None
        relation = self.lift(node.relation)
        name = f"x{len(self.lookups)}_"
        lookup = Lookup(name, node.form, relation, node.column, len(self.measurements))
        self.lookups.append(lookup)
        if node.value is None:
            return Parameter(name, node.shape, span=node.span)
        assert node.column is not None
        options = Parameter(name, node.column.shape, many=True, span=node.span)
        return Call("in_list", (self._settled(node.value), options), node.shape, span=node.span)

    def _below(self, relation: Relation) -> Relation:
        """Private rows as the engine will read them: subqueries are parameters by then."""
        below = tuple(self._below(r) for r in inputs(relation))
        return with_expressions(with_inputs(relation, below), self._settled)

    def _public(self, relation: Relation) -> Relation:
        fields = _unique(relation.fields)
        return self._read(Writer().select(relation, fields), fields)

    def _read(self, sql: str, fields: tuple[Column, ...]) -> Stored:
        """A stored table of public rows; the same query is read once."""
        for known in self.publics:
            if known.sql == sql:
                return Stored(known.name, fields, Public())
        name = f"p{len(self.publics)}"
        self.publics.append(PublicQuery(name, sql, fields))
        return Stored(name, fields, Public())

    def _listed(self, aggregate: Aggregate, cells: Cells) -> Relation:
        """GROUP BY without aggregates over public groups: the groups themselves, for free."""
        items = ", ".join(f"k{i} AS {quoted(alias(f))}" for i, f in enumerate(aggregate.fields))
        return self._read(f"SELECT {items} FROM ({cells.sql}) AS c", aggregate.fields)

    def _measure(self, aggregate: Aggregate) -> Relation:
        """A measurement, and above it the projection that finishes each aggregate."""
        privacy = aggregate.input.privacy
        assert isinstance(privacy, Private)
        aggregate = replace(aggregate, input=self._below(aggregate.input))
        settled = with_expressions(aggregate, self._settled)
        assert isinstance(settled, Aggregate)
        aggregate = settled
        lowered = [AGGREGATES[call.function](call, privacy) for call in aggregate.calls]
        statistics = tuple(dict.fromkeys(s for low in lowered for s in low.statistics))
        noisy = {s: self._column(s, i) for i, s in enumerate(statistics)}
        key_fields = aggregate.fields[: len(aggregate.keys)]
        cells = self._cells(aggregate)
        if cells is not None and not statistics:
            return self._listed(aggregate, cells)
        measurement = Measurement(
            f"m{len(self.measurements)}",
            aggregate.input,
            privacy,
            aggregate.keys,
            key_fields,
            cells,
            statistics,
            tuple(noisy.values()),
        )
        measurement = self._shared(measurement)
        noisy = dict(zip(statistics, measurement.columns, strict=True))
        stored = Stored(measurement.name, measurement.key_fields + measurement.columns)
        finished = tuple(low.finish(tuple(noisy[s] for s in low.statistics)) for low in lowered)
        values: tuple[Expression, ...] = (*measurement.key_fields, *finished)
        return Project(stored, values, aggregate.fields, Released(), aggregate.span)

    def _shared(self, measurement: Measurement) -> Measurement:
        """The measurement, or an equal one of this query: equal ones are released once."""
        known = self.identities.setdefault(identity(measurement), measurement)
        if known is measurement:
            self.measurements.append(measurement)
        return known

    def _column(self, statistic: Statistic, position: int) -> Column:
        return Column(next(self.numbers), f"s{position}", statistic.shape)

    def _cells(self, aggregate: Aggregate) -> Cells | None:
        try:
            return cells(aggregate.keys, aggregate.input, self.enumerator, self.most_cells)
        except TooManyCells as many:
            raise Refused(
                Refusal(
                    "DP502",
                    f"this query has {many.count} public groups; "
                    f"the policy allows {self.most_cells}",
                    "Every public group is answered, empty ones too, so that their presence says "
                    "nothing.",
                    "Group more coarsely, or name the groups: WHERE key IN (...).",
                    aggregate.span,
                )
            ) from None


def _reads_tables(relation: Relation) -> bool:
    """Whether the engine answers it: it reads tables, and no subquery must be settled first."""
    parts = list(walk(relation))
    return any(isinstance(r, Scan) for r in parts) and not any(
        True for r in parts for _ in subqueries(r)
    )


def _unique(fields: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple({f.number: replace(f) for f in fields}.values())
