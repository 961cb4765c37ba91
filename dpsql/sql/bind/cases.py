"""CASE and IF. All values of one expression share a type."""

from __future__ import annotations

from sqlglot import exp

from dpsql.catalog.function import common_kind, name_of_type
from dpsql.catalog.functions import Mismatch
from dpsql.catalog.functions.conditional import join_domains, optional_as
from dpsql.ir.domain import ANYTHING
from dpsql.ir.expressions import NULL, Case, Expression, Shape
from dpsql.policy.types import Kind
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.bind.copies import check_copy
from dpsql.sql.narrow import narrow, narrow_else
from dpsql.sql.spans import span_of


def bind_case(self: Binder, node: exp.Expr) -> Expression:
    """CASE. In each branch the columns are narrowed by its condition and the earlier ones."""
    subject = node.args.get("this")
    whens: list[tuple[Expression, Expression]] = []
    inner = self
    for branch in node.args.get("ifs", ()):
        test = branch.this
        condition = (
            inner.condition(test)
            if subject is None
            else inner.call("eq", (_again(inner, subject), inner.bind(test)), exp.EQ(this=test))
        )
        fields = inner.scope.fields
        then = inner.within(inner.scope.with_fields(narrow(fields, condition)))
        whens.append((condition, then.bind(branch.args["true"])))
        inner = inner.within(inner.scope.with_fields(narrow_else(fields, condition)))
    default = node.args.get("default")
    otherwise = NULL if default is None else inner.bind(default)
    return make_case(tuple(whens), otherwise, node)


def _again(self: Binder, subject: exp.Expr) -> Expression:
    return check_copy(self.bind(subject), subject)


def bind_if(self: Binder, node: exp.Expr) -> Expression:
    """IF(condition, then, otherwise)."""
    default = node.args.get("false")
    condition = self.condition(node.this)
    then = self.bind(node.args["true"])
    return make_case(((condition, then),), NULL if default is None else self.bind(default), node)


def make_case(
    whens: tuple[tuple[Expression, Expression], ...], otherwise: Expression, node: exp.Expr
) -> Expression:
    """A CASE whose values share a type; its domain covers the domains of all values."""
    values = [value for _, value in whens] + [otherwise]
    try:
        kind = common_kind(values, "CASE")
    except Mismatch as mismatch:
        raise refuse("DP201", node, str(mismatch), "All values of a CASE have one type.") from None
    nullable = any(optional_as(v, kind) for v in values)
    domain = join_domains(values, kind) if kind is not Kind.NULL else ANYTHING
    return Case(
        whens, otherwise, Shape(kind, nullable, domain, name_of_type(kind, values)), span_of(node)
    )
