"""What the handlers of single constructs need of the binder of expressions (``scalars.Scalars``)."""

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
        """What is shared by the whole statement."""
        ...

    @property
    def scope(self) -> Scope:
        """The names that can be used here."""
        ...

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression of a node."""
        ...

    def condition(self, node: exp.Expr) -> Expression:
        """An expression that must be true or false."""
        ...

    def call(
        self, name: str, args: tuple[Expression, ...], node: exp.Expr, option: str = ""
    ) -> Expression:
        """A function call with typed arguments."""
        ...

    def negated(self, node: exp.Expr, bound: Expression) -> Expression:
        """NOT around it where the node says ``negate``."""
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
