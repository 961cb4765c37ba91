"""SELECT DISTINCT: rows of outputs, each once."""

from __future__ import annotations

from dpsql.diagnostics.span import Span
from dpsql.ir.expressions import Column
from dpsql.ir.relations import Aggregate, Distinct, Private, Relation
from dpsql.sql.bind import privacy
from dpsql.sql.bind.context import Context


def without_repeats(
    relation: Relation, outputs: tuple[Column, ...], span: Span | None, context: Context
) -> Relation:
    """The outputs, with each row once; over private rows, a GROUP BY of all outputs.

    So the rules of GROUP BY hold for private rows. A column that is output twice is one key.
    """
    outputs = tuple({column.number: column for column in outputs}.values())
    called = context.called(*(f.name for f in outputs))
    if not isinstance(relation.privacy, Private):
        return Distinct(relation, outputs, relation.privacy, span, called)
    state = privacy.group_privacy(relation.privacy, outputs, outputs)
    return Aggregate(relation, outputs, (), outputs, state, span, called=called)
