"""The type of a check, and helpers that checks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.diagnostics.span import Span
from dpsql.ir.relations import Aggregate, Private, Relation, Released, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.bind.scope import spell_name

Rule = Callable[[Bound], Iterator[Refusal]]


def frontier(bound: Bound) -> Iterator[Aggregate]:
    """Aggregates whose result is a measurement: private rows in, a released table out."""
    for relation in walk_relations(bound.relation):
        if isinstance(relation, Aggregate) and is_measured(relation):
            yield relation


def is_measured(relation: Aggregate) -> bool:
    """Whether this aggregate is where noise is added."""
    return isinstance(relation.input.privacy, Private) and isinstance(relation.privacy, Released)


def short(text: str) -> str:
    """The analyst's text, shortened for a headline."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def visible(relation: Relation, numbers: frozenset[int]) -> str:
    """The name of one of these columns, if no other column has the name; else the empty text."""
    names = [f.name for f in relation.fields]
    known = (f.name for f in relation.fields if f.number in numbers)
    return next((spell_name(n) for n in known if names.count(n) == 1), "")


def source_text(bound: Bound, span: Span | None) -> str:
    """The analyst's text at a span of the query."""
    return "" if span is None else bound.source.text[span.start : span.end]


def refuse_mixed_units(word: str, units: Iterable[str], span: Span | None) -> Refusal:
    """DP302: a join or UNION ALL (``word``) puts rows of different kinds of unit together."""
    return Refusal(
        "DP302",
        f"this {word} mixes units: {' and '.join(dict.fromkeys(units))}",
        "Each row below an aggregate must belong to one unit of one kind, and the noise is "
        "scaled for that kind. A row of two kinds would change with a unit of either kind.",
        "Aggregate one kind in its own subquery. Its noisy result may then be joined or compared.",
        span,
        (Edit("leave_out", span),),
    )
