"""The interface of the binder of expressions (``scalars.Scalars``) for its handlers."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from dpsql.ir.expressions import Expression
from dpsql.sql.bind.context import Context
from dpsql.sql.bind.scope import Scope


class Binder(Protocol):
    """Binds expressions in one scope."""

    @property
    def context(self) -> Context:
        """The state that the whole statement shares."""
        ...

    @property
    def scope(self) -> Scope:
        """The names that can be used here."""
        ...

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression of a node."""
        ...

    def condition(self, node: exp.Expr) -> Expression:
        """The typed expression of a condition; refused if it is not a truth value."""
        ...

    def call(
        self, name: str, args: tuple[Expression, ...], node: exp.Expr, option: str = ""
    ) -> Expression:
        """A function call with typed arguments."""
        ...

    def negated(self, node: exp.Expr, bound: Expression) -> Expression:
        """``NOT bound`` if the node has ``negate``, else ``bound``."""
        ...

    def rowwise(self) -> Binder:
        """A binder for the same names that takes neither aggregates nor windows."""
        ...

    def without_windows(self) -> Binder:
        """The same binder, without window functions."""
        ...

    def within(self, scope: Scope) -> Binder:
        """The same binder for other names."""
        ...
