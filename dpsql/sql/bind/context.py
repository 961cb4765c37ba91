"""What binding one statement knows and hands out: the policy, parameters, column numbers."""

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

    ``public_values`` holds the rows' values of each ``values_from: table.column``. ``now`` is
    the moment that CURRENT_DATE and CURRENT_TIMESTAMP stand for. ``schemas`` are those that its
    tables may be named with. ``temporary`` are the session's own views, which see what it sees.
    """

    policy: Policy
    now: datetime
    visible: frozenset[str]
    public_values: Mapping[tuple[str, str], tuple[Scalar, ...]] = field(default_factory=dict)
    schemas: tuple[str, ...] = ("public", "main")
    temporary: Mapping[str, TemporaryView] = field(default_factory=dict)


@dataclass(slots=True)
class Context:
    """The only mutable thing in binding: what is counted, and the tables met."""

    catalog: Catalog
    parameters: Sequence[Scalar | float | None] = ()
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    tables: list[str] = field(default_factory=list)
    copied: int = 0
    views: tuple[View, ...] = ()
    """Views that are being read, from the outermost on."""
    hidden_by: str = ""
    """The outermost view of the policy that is being read: nobody need see what it reads."""
    query: QueryBinder | None = None

    def column(self, name: str, shape: Shape, *, identifier: bool = False) -> Column:
        """A new column with a number of its own."""
        return Column(next(self._numbers), name, shape, identifier=identifier)

    def called(self, *names: str) -> tuple[str, ...]:
        """Names of keys as whoever asks may know them: what a view of the policy reads has none."""
        return tuple(f"view {self.hidden_by}" if self.hidden_by else name for name in names)


@dataclass(frozen=True, slots=True)
class Output:
    """A bound query: its relation, and its columns by name and in order."""

    relation: Relation
    columns: tuple[Column, ...]


class QueryBinder(Protocol):
    """Binds a query in given CTEs: what derived tables and subqueries need."""

    def __call__(self, node: exp.Expr, context: Context, ctes: Scope) -> Output: ...


MOST_QUERY_PARTS = 20_000
"""Parts of WITH queries and views, counted for each use of them."""


def count_copy(body: exp.Expr, context: Context, node: exp.Expr) -> None:
    """Count the parts of a query that is bound once more, for ``node``."""
    context.copied += sum(1 for _ in body.walk())
    if context.copied > MOST_QUERY_PARTS:
        why = "Planning is bounded."
        raise refuse("DP115", node, "its views and WITH queries are used too often", why)


def refuse(
    code: str, node: exp.Expr, headline: str, why: str, instead: str = "", *edits: Edit
) -> Refused:
    """A refusal that points at a syntax-tree node, where edits without a place are made; the caller raises it."""
    place = span_of(node)
    there = tuple(edit if edit.span is not None else replace(edit, span=place) for edit in edits)
    return Refused(Refusal(code, headline, why, instead, place, there))
