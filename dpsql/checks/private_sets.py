"""DP303, DP302: set operations keep each row with its unit.

What: EXCEPT and INTERSECT over private rows are not answered.
Why: whether a row stays would depend on rows of other units.
Example: ``SELECT COUNT(*) FROM (SELECT city FROM customers EXCEPT SELECT page FROM visits) AS t``
Instead: ``SELECT COUNT(DISTINCT customer_id) FROM customers``
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.checks.rule import refuse_mixed_units
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.relations import Distinct, Private, Relation, Union, inputs, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.bind.set_operations import share_one_unit


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse set operations below the frontier."""
    if isinstance(bound.relation.privacy, Private):
        return
    for relation in walk_relations(bound.relation):
        if not isinstance(relation.privacy, Private):
            continue
        if _keeps_units(relation):
            continue
        kinds = [r.privacy.unit for r in inputs(relation) if isinstance(r.privacy, Private)]
        if isinstance(relation, Union) and len(set(kinds)) > 1:
            yield refuse_mixed_units(relation.operation.upper(), kinds, relation.span)
        elif isinstance(relation, Distinct | Union):
            name = "DISTINCT" if isinstance(relation, Distinct) else relation.operation.upper()
            yield Refusal(
                "DP303",
                f"{name} is not answered over private rows",
                "Rows of different units would be compared, and the rows that remain would "
                "depend on more than one unit.",
                "Aggregate each part, then combine the noisy results.",
                relation.span,
            )


def _keeps_units(relation: Relation) -> bool:
    """UNION ALL of rows of one kind of unit: each row stays with its unit."""
    every = isinstance(relation, Union) and relation.operation == "union all"
    return every and share_one_unit(list(inputs(relation)))
