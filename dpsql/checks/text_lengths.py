"""DP116: texts and lists are no longer than is known before.

What: each text that is put together has at most 10,000 characters and 64 stored texts in it; all
    that a statement makes together, 30,000 characters and 300 stored texts.
Why: an engine holds 2,048 of them at once, more than its limit on memory counts, and cannot stop.
Example: ``SELECT COUNT(DISTINCT CONCAT(d, d, d, d, d)) FROM (SELECT customer_id, CONCAT(c, c, c, c,
c) AS d FROM (SELECT customer_id, CONCAT(city, city, city, city, city) AS c FROM customers) AS t) AS
u``
Instead: ``SELECT COUNT(DISTINCT CONCAT(city, city, city, city, city)) FROM customers``
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import assert_never

from dpsql.catalog.functions import FUNCTIONS
from dpsql.checks.rule import short, source_text
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.expressions import (
    Call,
    Case,
    Column,
    Expression,
    Interval,
    Literal,
    Parameter,
    Subquery,
    Window,
    child_expressions,
)
from dpsql.ir.lengths import NOTHING, STORED, Length, either
from dpsql.ir.relations import (
    Aggregate,
    Project,
    Relation,
    Scan,
    Union,
    Values,
    Windowed,
    expressions,
    inputs,
)
from dpsql.policy.types import Kind
from dpsql.sql.bind import Bound

LONGEST = Length(64, 10_000)
"""The greatest length of one text."""
TOGETHER = Length(300, 30_000)
"""The greatest total length of all texts that a statement makes for one row."""


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse the first text that may become too long, or all texts if they may be together."""
    lengths = _Lengths()
    lengths.visit(bound.relation)
    if lengths.unknown:
        yield _refusal(bound, lengths.unknown[0], "has no known limit on its length")
    elif lengths.long:
        yield _refusal(bound, lengths.long[0], f"may become longer than {_said(LONGEST)}")
    elif _beyond(lengths.made, TOGETHER):
        said = f"and the texts before it may together become longer than {_said(TOGETHER)}"
        yield _refusal(bound, lengths.last, said)


@dataclass(slots=True)
class _Lengths:
    """The lengths of texts: of each column by its number, and of all texts made for a row."""

    columns: dict[int, Length] = field(default_factory=dict)
    made: Length = NOTHING
    long: list[Expression] = field(default_factory=list)
    unknown: list[Expression] = field(default_factory=list)
    last: Expression | None = None

    def visit(self, relation: Relation) -> None:
        """Add the texts that a relation makes, and the lengths of its columns."""
        for below in inputs(relation):
            self.visit(below)
        found = [self.of(expression) for expression in expressions(relation)]
        match relation:
            case Scan(fields=fields, unit_fields=units):
                self.columns |= {f.number: STORED for f in (*fields, *units)}
            case Values(fields=fields, rows=rows):
                for i, one in enumerate(fields):
                    longest = max((len(str(row[i])) for row in rows), default=0)
                    self.columns[one.number] = Length(0, longest)
            case Project(fields=fields):
                self._name(fields, found)
            case Aggregate(keys=keys, calls=calls, fields=fields):
                rest = iter(found[len(keys) :])
                chosen = [either(islice(rest, len(call.args))) for call in calls]
                self._name(fields, [*found[: len(keys)], *chosen])
            case Windowed(input=below, fields=fields):
                self._name(fields[len(below.fields) :], found)
            case Union(fields=fields):
                self._name(fields, self._of_union(relation))
            case _:
                return

    def _name(self, fields: tuple[Column, ...], lengths: list[Length]) -> None:
        self.columns |= {f.number: n for f, n in zip(fields, lengths, strict=True)}

    def _of_union(self, union: Union) -> list[Length]:
        sides = [
            union.columns[i] if union.columns else side.fields[: len(union.fields)]
            for i, side in enumerate(union.inputs)
        ]
        return [either(self.of(c) for c in alike) for alike in zip(*sides, strict=True)]

    def of(self, node: Expression) -> Length:
        """The length of an expression. Texts that it and its parts make are added to ``made``."""
        if isinstance(node, Subquery):
            self.visit(node.relation)
        below = [self.of(child) for child in child_expressions(node)]
        match node:
            case Column():
                return self._of_column(node)
            case Literal(value=value):
                return Length(0, len(value)) if isinstance(value, str) else NOTHING
            case Subquery(column=column):
                return NOTHING if column is None else self.of(column)
            case Call():
                return self._of_call(node, below)
            case Case() | Window():
                return either(below)
            case Interval() | Parameter():
                return NOTHING
            case _:
                assert_never(node)

    def _of_column(self, column: Column) -> Length:
        if not _is_long(column):
            return NOTHING
        if column.number not in self.columns:
            self.unknown.append(column)
        return self.columns.get(column.number, NOTHING)

    def _of_call(self, node: Call, below: list[Length]) -> Length:
        if not _is_long(node):
            return NOTHING
        growth = FUNCTIONS[node.function].growth
        if growth is None:
            self.unknown.append(node)
            return NOTHING
        found = growth(below, node.args, node.option)
        if node.function not in _AS_IT_IS and not (
            node.function == "cast" and _is_long(node.args[0])
        ):
            self.made, self.last = self.made + found, node
        if _beyond(found, LONGEST) and not self.long:
            self.long.append(node)
        return found


_AS_IT_IS = frozenset({"coalesce", "nullif", "least", "greatest"})
"""Functions that return one of their arguments, and make no new text."""


def _is_long(node: Expression) -> bool:
    """Whether a node is a text or a list."""
    kind = node.shape.kind
    return kind is Kind.TEXT or kind.element is not None


def _beyond(length: Length, most: Length) -> bool:
    return length.stored > most.stored or length.fixed > most.fixed


def _said(most: Length) -> str:
    return f"{most.fixed} characters plus {most.stored} stored texts"


def _refusal(bound: Bound, node: Expression | None, what: str) -> Refusal:
    span = None if node is None else node.span
    return Refusal(
        "DP116",
        f'"{short(source_text(bound, span))}" {what}',
        "The engine holds such texts for thousands of rows at once, even beyond its memory "
        "limit. Their length is therefore bounded before any row is read.",
        "Concatenate fewer texts, or shorten them first: LEFT(city, 20).",
        span,
    )
