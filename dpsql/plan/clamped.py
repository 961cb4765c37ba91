"""Notes on values that count as the nearer end of their range.

Claim: a note depends on the statement and the policy alone. It is there whenever the policy lets a
    value be outside the range, whether or not one is.
Assumes: the shape of a column says what the policy declares of it.
Argument: the range of a value is computed a second time, from columns about which nothing is
    declared. An end that stays the same follows from the statement, and no value is beyond it.
    Every other end follows from a declaration, which the data may break.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.function import Mismatch
from dpsql.catalog.functions import FUNCTIONS
from dpsql.catalog.record import Needs
from dpsql.effort import step
from dpsql.exact import number
from dpsql.ir.domain import ANYTHING, Domain, hull_of
from dpsql.ir.expressions import Aggregated, Call, Case, Column, Expression, Literal
from dpsql.ir.relations import Aggregate, Project, Relation, Scan, walk_relations
from dpsql.policy.types import Scalar


def clamped_values(aggregate: Aggregate, calls: Iterable[Aggregated]) -> tuple[str, ...]:
    """The notes on the values of some calls of an aggregate, each once."""
    ranges = _Ranges(*_origins(aggregate.input))
    found = (note for call in calls for note in _notes(call, ranges))
    return tuple(dict.fromkeys(found))


def _notes(call: Aggregated, ranges: _Ranges) -> Iterator[str]:
    needs = AGGREGATES[call.function].needs
    if needs is Needs.NOTHING:
        return
    for value in call.args:
        given, known = value.shape.domain, ranges.domain(value)
        if call.bounds is not None and call.bounds.row is not None:
            known = ANYTHING
        kind = value.shape.kind
        if needs is Needs.LIST or not (kind.numeric or kind.temporal):
            if given.members is not None and known.members is None:
                yield "values that the policy does not list do not count"
            continue
        low, high = known.low != given.low, known.high != given.high
        assert given.low is not None
        assert given.high is not None, "checks.bounded_values lets no other pass"
        first, last = _written(given.low), _written(given.high)
        if low and high:
            yield f"values outside {first} .. {last} count as the nearer end"
        elif low:
            yield f"values below {first} count as {first}"
        elif high:
            yield f"values above {last} count as {last}"


def _written(end: Scalar) -> str:
    return number(Fraction(end)) if isinstance(end, int | Fraction) else str(end)


Origins = tuple[Mapping[int, Domain], Mapping[int, Expression]]


def _origins(relation: Relation) -> Origins:
    """What is declared of the columns of tables, and how other columns are computed."""
    declared: dict[int, Domain] = {}
    made: dict[int, Expression] = {}
    for part in walk_relations(relation):
        step(len(part.fields))
        if isinstance(part, Scan):
            declared |= {f.number: f.shape.domain for f in part.fields}
        elif isinstance(part, Project):
            made |= {
                f.number: value
                for f, value in zip(part.fields, part.values, strict=True)
                if not isinstance(value, Column) or value.number != f.number
            }
    return declared, made


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The domains of values if nothing is declared of columns."""

    declared: Mapping[int, Domain]
    made: Mapping[int, Expression]
    known: dict[int, Domain] = field(default_factory=dict)

    def domain(self, value: Expression) -> Domain:
        """The domain of a value that follows from the statement alone."""
        step()
        match value:
            case Literal():
                return value.shape.domain
            case Column():
                return self._selected(value)
            case Case(whens=whens, otherwise=otherwise):
                return hull_of([self.domain(v) for v in (*(v for _, v in whens), otherwise)])
            case Call(function=name, args=args, option=option):
                try:
                    return FUNCTIONS[name].shape(tuple(map(self._freed, args)), option).domain
                except Mismatch:
                    return ANYTHING
            case _:
                return ANYTHING

    def _freed(self, value: Expression) -> Expression:
        return replace(value, shape=replace(value.shape, domain=self.domain(value)))

    def _selected(self, column: Column) -> Domain:
        """The domain of a column; conditions on rows may have narrowed it."""
        number, given = column.number, column.shape.domain
        made = self.made.get(number)
        before = self.declared.get(number, ANYTHING) if made is None else made.shape.domain
        if number not in self.known:
            self.known[number] = ANYTHING if made is None else self.domain(made)
        known = self.known[number]
        return replace(
            known,
            low=known.low if given.low == before.low else given.low,
            high=known.high if given.high == before.high else given.high,
            members=known.members if given.members == before.members else given.members,
        )
