"""Groups whose keys describe the unit itself: the country of a customer, if customers are protected.

A row of the unit's own table has one value in each column, and every row of the unit is joined with
this row. So the unit is in one group, however many rows it has. The role's limit on groups would
make the noise of numbers of units several times wider than it need be.

Claim: where ``in_one_group`` is true, a unit is in at most one group if the data is as the policy
    says.
Assumes: the policy is right that the table has one row of each unit.
Argument: keys are computed from columns of tables with at most one row of a unit, and every
    operator from there to the grouping keeps the values of these columns. A join that may put NULL
    in their place is not accepted.

Statements do not rely on this. They keep one group of a unit, the first in the order of its draws,
whatever the data holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.ir.expressions import columns
from dpsql.ir.relations import (
    Filter,
    Join,
    Private,
    Project,
    Relation,
    Scan,
    Sort,
    Windowed,
)
from dpsql.plan.nodes import Measurement


def in_one_group(measurement: Measurement) -> bool:
    """Whether every key is computed from the unit's own row."""
    own = frozenset(_own(measurement.input))
    return all(c.number in own for key in measurement.keys for c in columns(key))


def _own(relation: Relation) -> Iterator[int]:
    """The numbers of the columns that have one value for all rows of a unit."""
    match relation:
        case Scan(privacy=Private(max_rows=1)):
            yield from (f.number for f in relation.fields)
        case Filter(input=below) | Sort(input=below) | Windowed(input=below):
            yield from _own(below)
        case Project(input=below, values=values, fields=fields):
            known = frozenset(_own(below))
            for value, field in zip(values, fields, strict=True):
                if all(c.number in known for c in columns(value)):
                    yield field.number
        case Join(kind="inner" | "cross", whole=False, left=left, right=right):
            yield from _own(left)
            yield from _own(right)
        case Join(kind="left" | "semi" | "anti", whole=False, left=left):
            yield from _own(left)
        case _:
            pass
