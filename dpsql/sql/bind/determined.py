"""Groups of one unit each, because their keys determine the unit.

With ``GROUP BY order_id`` each group is of one customer, as each order belongs to one customer.
Adding the customer to the keys changes no group, and the groups stay private: they can be
aggregated again, and are never shown.

Claim: with the added keys every group is of one unit, whether or not the declarations hold.
Assumes: the columns that the relation names as its unit's key hold it (``sql.bind.privacy``).
Argument: rows are grouped by the unit itself. Declarations only say that this changes no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpsql.ir.expressions import Column, Expression
from dpsql.ir.relations import Private, Relation, Scan
from dpsql.sql.bind import privacy
from dpsql.sql.bind.join_rules import equalities, known_conditions, scans


def unit_of(relation: Relation, keys: Iterable[Expression]) -> tuple[Column, ...]:
    """The columns of the unit's key, if the keys determine the unit but do not include it."""
    state, keys = relation.privacy, tuple(keys)
    if not isinstance(state, Private) or not state.key or privacy.groups_by_unit(state, keys):
        return ()
    known = equalities(known_conditions(relation))
    equal = known.closure(frozenset(k.number for k in keys if isinstance(k, Column)))
    below = scans(relation)
    if not any(set(columns) <= equal for scan in below for columns in _determining(scan)):
        return ()
    visible = [*relation.fields, *(f for s in below if not s.skip_unit_path for f in s.unit_fields)]
    found = [next((f for f in visible if f.number in part), None) for part in state.key]
    return tuple(f for f in found if f is not None) if None not in found else ()


def _determining(scan: Scan) -> Iterator[list[int]]:
    """Sets of columns of a private table that determine the unit.

    These are its key, and its foreign keys to parent rows of the same unit.
    """
    if isinstance(scan.privacy, Private):
        own = {f.name: f.number for f in scan.fields}
        steps = [*scan.table.path[:1], *(k for k in scan.table.foreign_keys if k.same_unit)]
        sets = [scan.table.key, *(step.columns for step in steps)]
        for names in sets:
            if names and all(name in own for name in names):
                yield [own[name] for name in names]
