"""DP109: windows over private rows stay within a unit.

What: PARTITION BY includes the unit's key.
Why: a rank or running sum across units puts one unit's rows into everyone's values.
Example: ``SELECT AVG(n) FROM (SELECT COUNT(*) OVER () AS n FROM orders) AS t``
Instead: ``PARTITION BY customer_id``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import visible
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.diagnostics.span import Span
from dpsql.ir.relations import Private, Windowed, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.bind.privacy import groups_by_unit


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse windows that mix units."""
    for relation in walk_relations(bound.relation):
        if isinstance(relation, Windowed) and isinstance(relation.privacy, Private):
            for window in relation.windows:
                if not groups_by_unit(relation.privacy, window.partition):
                    unit = relation.privacy.unit
                    yield Refusal(
                        "DP109",
                        f"this window mixes rows of different units ({unit})",
                        "Each value would be computed from rows of several units, so one unit "
                        "could change the values of all the others.",
                        f"PARTITION BY the key of {unit}, or use the window over the groups "
                        "of an aggregation.",
                        window.span,
                        _partitioned(relation, window.span),
                    )


def _partitioned(relation: Windowed, span: Span | None) -> tuple[Edit, ...]:
    """Suggests the unit's key in the PARTITION BY, where the key can be named."""
    assert isinstance(relation.privacy, Private)
    names = [visible(relation.input, component) for component in relation.privacy.key]
    return (Edit("partition", span, ", ".join(names)),) if names and all(names) else ()
