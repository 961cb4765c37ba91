"""MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC, QUANTILE and APPROX_QUANTILE: one rank, two functions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.exact import parse_exact
from dpsql.policy.types import Kind
from dpsql.sql.bind.context import refuse
from dpsql.sql.expressions import Expression, Shape
from dpsql.sql.functions.conditional import as_kind

if TYPE_CHECKING:
    from dpsql.sql.bind.scalars import Scalars

QUANTILES: dict[type[exp.Expr], str] = {
    exp.Median: "quantile_cont",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Quantile: "quantile_disc",
    exp.ApproxQuantile: "quantile_disc",
}
_LISTED = (Kind.TEXT, Kind.BOOLEAN)
"""Discrete quantiles of these are chosen from a public list."""
FINEST = 10**6
"""Fractions have no more than six decimals."""


def bind_quantile(scalars: Scalars, node: exp.Expr) -> tuple[str, Expression, str]:
    """The function, the value whose rank is meant, and the fraction as an exact number."""
    call, ordered = node, None
    if isinstance(node, exp.WithinGroup):
        call, ordered = node.this, node.expression.expressions[0]
    name = QUANTILES.get(type(call), "")
    given = call.args.get("quantile") or call.args.get("expression")
    value, fraction = call.this, given
    if ordered is not None:
        value, fraction = ordered.this, call.this
    if not name or value is None or (fraction is None) != isinstance(call, exp.Median):
        raise _unclear(node)
    share = Fraction(1, 2) if fraction is None else _fraction(fraction)
    if ordered is not None and ordered.args.get("desc"):
        share = _from_the_top(node, name, share)
    bound = scalars.bind(value)
    kind = bound.shape.kind
    if not (kind.numeric or kind.temporal or (name == "quantile_disc" and kind in _LISTED)):
        raise refuse(
            "DP201",
            node,
            f"a quantile is of numbers, dates or times, not {kind.value}",
            "Its error is measured along an ordered range.",
            "COUNT(*) counts rows of any type.",
        )
    return name, bound, str(share)


def quantile_shape(name: str, value: Expression) -> Shape:
    """The type of a quantile: continuous ones of numbers are doubles."""
    shape = value.shape.optional()
    if name == "quantile_disc" or not shape.kind.numeric:
        return shape
    return Shape(Kind.DOUBLE, True, as_kind(shape.domain, Kind.DOUBLE))


def _fraction(node: exp.Expr) -> Fraction:
    if isinstance(node, exp.Literal) and not node.is_string:
        share = _exact(str(node.this))
        if share is not None and 0 <= share <= 1 and (share * FINEST).denominator == 1:
            return share
    raise refuse(
        "DP114",
        node,
        "a quantile's fraction is a literal between 0 and 1",
        "What is asked must be known before the data is read; it may have six decimals.",
        "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY x)",
    )


def _exact(text: str) -> Fraction | None:
    try:
        return parse_exact(text)
    except ValueError:
        return None


def _from_the_top(node: exp.Expr, name: str, share: Fraction) -> Fraction:
    if name == "quantile_cont":
        return 1 - share
    raise refuse(
        "DP100",
        node,
        "PERCENTILE_DISC counts from the lowest value",
        "Counted from the highest, ties fall differently.",
        "PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY x) for 0.9 with DESC",
    )


def _unclear(node: exp.Expr) -> Exception:
    return refuse(
        "DP102",
        node,
        "this quantile lacks its value or its fraction",
        "It needs both.",
        "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY x), MEDIAN(x) or QUANTILE(x, 0.95)",
    )
