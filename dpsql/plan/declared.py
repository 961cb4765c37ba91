"""MIN and MAX that the policy answers by the declared ends of a column, for free and with a note.

Claim: such a value depends on the statement and the policy alone. No row is read, not even to learn
    whether there is one.
Assumes: the ends that the owner declared are public, as ``extremes: declared`` says.
Argument: the value is computed from the least and the greatest declared value of one column whose
    owner wrote ``extremes: declared``, and from constants of the statement. Only calls over whole
    tables are answered so. Under a WHERE, a join or a GROUP BY a reader would take the declared
    ends for those of the rows that are left, so such calls are measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsql.catalog.build import call as apply
from dpsql.catalog.statistic import Lowered
from dpsql.ir import domain as d
from dpsql.ir.expressions import (
    Aggregated,
    Call,
    Column,
    Expression,
    Interval,
    Literal,
    Shape,
    conjuncts,
    substitute,
)
from dpsql.ir.relations import Aggregate, Filter, Project, Relation, Scan, Sort
from dpsql.policy.types import Kind, Scalar

_STEADY = (
    "add", "subtract", "multiply", "negate", "floor", "ceil", "round", "trunc", "days", "shift",
)  # fmt: skip
"""Functions that, with one value and constants, are monotonic in the value."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A call that the policy answers, and the note about it for the reader."""

    lowered: Lowered
    note: str


def answer_from_bounds(aggregate: Aggregate, call: Aggregated) -> Declared | None:
    """The call as constants; None if it must be measured."""
    if call.function not in ("min", "max") or call.where or call.bounds or aggregate.keys:
        return None
    found = _traced(aggregate.input, call.args[0])
    if found is None:
        return None
    scan, value = found
    used = _only_column(value)
    column = next((f for f in scan.fields if used is not None and f.number == used.number), None)
    if column is None or scan.table.columns[column.name].extremes != "declared":
        return None
    values = tuple(_at(value, column, end) for end in _ends(column.shape.domain))
    answer = apply("least" if call.function == "min" else "greatest", *values)
    what = f"over view {scan.view}" if scan.view else f"of {scan.table.name}.{column.name}"
    note = f"{call.function.upper()} {what} is what the policy declares; no rows were read"
    return Declared(Lowered((), lambda _: answer), note)


def _traced(relation: Relation, value: Expression) -> tuple[Scan, Expression] | None:
    """The table whose rows are the relation's, one for one, and the value over its columns."""
    while not isinstance(relation, Scan):
        match relation:
            case Project(input=below, values=values, fields=fields):
                made = {f.number: v for f, v in zip(fields, values, strict=True)}
                value = _written_out(value, made)
                relation = below
            case Sort(input=below):
                relation = below
            case Filter(input=below, predicate=predicate):
                if not all(_present(part) for part in conjuncts(predicate)):
                    return None
                relation = below
            case _:
                return None
    return relation, value


def _written_out(value: Expression, made: Mapping[int, Expression]) -> Expression:
    """The value with computed columns replaced by their expressions."""
    return substitute(value, lambda n: made.get(n.number) if isinstance(n, Column) else None)


def _present(condition: Expression) -> bool:
    """Whether the condition is ``x IS NOT NULL``, which changes no extreme."""
    match condition:
        case Call(function="not", args=(Call(function="is_null", args=(Column(),)),)):
            return True
        case _:
            return False


def _only_column(value: Expression) -> Column | None:
    """The one column in which a value is monotonic."""
    match value:
        case Column():
            return value
        case Call(function="cast", args=(inner,), shape=shape):
            kinds = (inner.shape.kind, shape.kind)
            ordered = all(k.numeric for k in kinds) or all(k.temporal for k in kinds)
            return _only_column(inner) if ordered else None
        case Call(function="date_trunc", args=(inner,)):
            return _only_column(inner)
        case Call(function=name, args=args) if name in _STEADY:
            varying = [a for a in args if not isinstance(a, Literal | Interval)]
            return _only_column(varying[0]) if len(varying) == 1 else None
        case _:
            return None


def _ends(domain: d.Domain) -> tuple[Scalar, Scalar]:
    """The least and the greatest declared value."""
    if domain.members:
        return domain.members[0], domain.members[-1]
    assert domain.low is not None
    assert domain.high is not None, "checks.bounded_values lets no other pass"
    return domain.low, domain.high


def _at(value: Expression, column: Column, end: Scalar) -> Expression:
    """The value with the column replaced by one of its ends."""
    kind: Kind = column.shape.kind
    constant = Literal(end, Shape(kind, nullable=False, domain=d.members([end])))

    def swap(node: Expression) -> Expression | None:
        return constant if isinstance(node, Column) and node.number == column.number else None

    return substitute(value, swap)
