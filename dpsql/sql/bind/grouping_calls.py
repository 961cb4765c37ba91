"""GROUPING(key, ...): a bit for each key that the row's grouping set does not have.

The first key has the highest bit. A key may be NULL in a result row for two reasons: it is NULL in
the rows of the group, or it is not in the row's grouping set. To tell these apart, each key that
GROUPING asks about gets a constant in the same sets. The constant is NULL only if the set does not
have the key.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.catalog.functions import FUNCTIONS
from dpsql.ir.domain import interval
from dpsql.ir.expressions import Call, Case, Column, Expression, Literal, Shape, integer
from dpsql.policy.types import Kind
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import Context, refuse

MOST_BITS = 31
_CONSTANT = Shape(Kind.TEXT)


@dataclass(slots=True)
class GroupingCalls:
    """The GROUPING calls of one SELECT; ``found`` has the column of each key's constant."""

    context: Context
    keys: tuple[Expression, ...]
    sets: tuple[tuple[int, ...], ...]
    found: dict[int, Column] = field(default_factory=dict)

    def bind(self, scalars: Binder, node: exp.Expr) -> Expression:
        """The value of a call, as an expression over the grouped rows."""
        if len(node.expressions) > MOST_BITS:
            raise refuse(
                "DP110",
                node,
                f"GROUPING takes at most {MOST_BITS} keys",
                "Each key is one bit of the resulting whole number.",
                "Ask for each key: GROUPING(a), GROUPING(b).",
            )
        total: Expression = integer(0)
        for place, part in enumerate(reversed(node.expressions)):
            bit = self._bit(scalars, part, 1 << place)
            total = bit if total == integer(0) else scalars.call("add", (bit, total), node)
        return total

    def _bit(self, scalars: Binder, node: exp.Expr, worth: int) -> Expression:
        key = scalars.rowwise().bind(node)
        if key not in self.keys:
            raise refuse(
                "DP111", node, "GROUPING takes keys of GROUP BY",
                "It says which of its keys a row of ROLLUP, CUBE or GROUPING SETS is not "
                "grouped by.",
                "Write a key exactly as in GROUP BY.",
            )  # fmt: skip
        if not self.sets:
            return integer(0)
        position = self.keys.index(key)
        if position not in self.found:
            self.found[position] = self.context.column("grouping", _CONSTANT)
        beside = self.found[position]
        absent = Call("is_null", (beside,), FUNCTIONS["is_null"].shape((beside,), ""))
        shape = Shape(Kind.INTEGER, nullable=False, domain=interval(0, worth, integral=True))
        return Case(((absent, integer(worth)),), integer(0), shape)

    @property
    def constants(self) -> tuple[Expression, ...]:
        """The constants, all different: an engine treats equal keys as one key."""
        return tuple(Literal(f"key {position}", _CONSTANT) for position in self.found)

    @property
    def with_constants(self) -> tuple[tuple[int, ...], ...]:
        """The grouping sets, each with the constants of the keys that it has."""
        first = len(self.keys)
        return tuple(
            (*chosen, *(first + i for i, key in enumerate(self.found) if key in chosen))
            for chosen in self.sets
        )
