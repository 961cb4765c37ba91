"""The context of binding one statement: the policy, its parameters, and new column numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.ir.expressions import Column, Shape
from dpsql.policy.model import Policy, TemporaryView, View
from dpsql.policy.types import Scalar
from dpsql.sql.spans import span_of

if TYPE_CHECKING:
    from dpsql.ir.relations import Relation
    from dpsql.sql.bind.scope import Scope


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a session may see: the policy, the tables of its role, and resolved public values.

    ``public_values`` has the values in the data for each ``values_from: table.column``. ``now`` is
    the value of CURRENT_DATE and CURRENT_TIMESTAMP. ``schemas`` are the schema names that tables
    may be qualified with. ``temporary`` are the session's own views, which see what it sees.
    """

    policy: Policy
    now: datetime
    visible: frozenset[str]
    public_values: Mapping[tuple[str, str], tuple[Scalar, ...]] = field(default_factory=dict)
    schemas: tuple[str, ...] = ("public", "main")
    temporary: Mapping[str, TemporaryView] = field(default_factory=dict)


@dataclass(slots=True)
class Context:
    """The mutable state of binding: counters, the tables that are read, and the current views."""

    catalog: Catalog
    parameters: Sequence[Scalar | float | None] = ()
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    tables: list[str] = field(default_factory=list)
    copied: int = 0
    views: tuple[View, ...] = ()
    """The views that are being bound, from the outermost to the innermost."""
    hidden_by: str = ""
    """The outermost view of the policy that is being bound: analysts are not shown its tables."""
    query: QueryBinder | None = None

    def column(self, name: str, shape: Shape, *, identifier: bool = False) -> Column:
        """A new column with a new number."""
        return Column(next(self._numbers), name, shape, identifier=identifier)

    def called(self, *names: str) -> tuple[str, ...]:
        """The names of keys as an analyst may see them; within a view of the policy, the view's."""
        return tuple(f"view {self.hidden_by}" if self.hidden_by else name for name in names)


@dataclass(frozen=True, slots=True)
class Output:
    """A bound query: its relation, and its output columns in order."""

    relation: Relation
    columns: tuple[Column, ...]


class QueryBinder(Protocol):
    """The function that binds a query with given CTEs; derived tables and subqueries call it."""

    def __call__(self, node: exp.Expr, context: Context, ctes: Scope) -> Output: ...


MOST_QUERY_PARTS = 20_000
"""The most parts of WITH queries and views in a statement, counted for each use."""


def count_copy(body: exp.Expr, context: Context, node: exp.Expr) -> None:
    """Count the parts of a query that is bound once more; refuse ``node`` if they are too many."""
    context.copied += sum(1 for _ in body.walk())
    if context.copied > MOST_QUERY_PARTS:
        why = "Planning time is bounded so that no statement can keep others waiting."
        raise refuse(
            "DP115", node, "the views and WITH queries of this statement are used too often", why
        )


def refuse(
    code: str, node: exp.Expr, headline: str, why: str, instead: str = "", *edits: Edit
) -> Refused:
    """A refusal that points at a node, for the caller to raise.

    An edit without a place gets the place of the node.
    """
    place = span_of(node)
    there = tuple(edit if edit.span is not None else replace(edit, span=place) for edit in edits)
    return Refused(Refusal(code, headline, why, instead, place, there))
