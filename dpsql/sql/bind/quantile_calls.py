"""MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC, QUANTILE and APPROX_QUANTILE, as two functions."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.catalog.record import RANKED, AggregateRecord, Form
from dpsql.exact import parse_exact
from dpsql.ir.expressions import Expression
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.nodes import aggregate_call

FINEST = 10**6
"""The inverse of the finest step of a fraction: fractions have at most six decimals."""


def bind_quantile(scalars: Binder, node: exp.Expr) -> tuple[AggregateRecord, Expression, str]:
    """The aggregate of a quantile call, its value, and the text of its exact fraction."""
    call, ordered = node, None
    if isinstance(node, exp.WithinGroup):
        if node.expression is None:
            raise _unclear(node)
        call, ordered = node.this, node.expression.expressions[0]
    record, written = aggregate_call(call) or (None, None)
    given = call.args.get("quantile") or call.args.get("expression")
    value, fraction = call.this, given
    if ordered is not None:
        value, fraction = ordered.this, call.this
    if record is None or written is None or written.form is not Form.RANK or value is None:
        raise _unclear(node)
    if (fraction is None) != (len(written.arguments) == 1):
        raise _unclear(node)
    share = Fraction(1, 2) if fraction is None else _fraction(fraction)
    if ordered is not None and ordered.args.get("desc"):
        share = _from_the_top(node, record, share)
    bound = scalars.bind(value)
    kind = bound.shape.kind
    if kind not in record.kinds:
        raise refuse(
            "DP201",
            node,
            f"a quantile takes numbers, dates or times, not {kind.value}",
            "Its error is measured along an ordered range.",
            "COUNT(*) counts rows of any type.",
        )
    return record, bound, str(share)


def _fraction(node: exp.Expr) -> Fraction:
    if isinstance(node, exp.Literal) and not node.is_string:
        share = _exact(str(node.this))
        if share is not None and 0 <= share <= 1 and (share * FINEST).denominator == 1:
            return share
    raise refuse(
        "DP114",
        node,
        "the fraction of a quantile must be a literal between 0 and 1",
        "The fraction must be known before the data is read. It may have six decimals.",
        "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY x)",
    )


def _exact(text: str) -> Fraction | None:
    try:
        return parse_exact(text)
    except ValueError:
        return None


def _from_the_top(node: exp.Expr, record: AggregateRecord, share: Fraction) -> Fraction:
    if record.kinds == RANKED:
        return 1 - share
    raise refuse(
        "DP100",
        node,
        "PERCENTILE_DISC is answered in ascending order only",
        "Counted from the highest value, ties can give another result.",
        "Write PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY x) for 0.9 with DESC.",
    )


def _unclear(node: exp.Expr) -> Exception:
    return refuse(
        "DP102",
        node,
        "this quantile lacks its value or its fraction",
        "A quantile needs both.",
        "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY x), MEDIAN(x) or QUANTILE(x, 0.95)",
    )


MOST_PARTS = 100
"""The most quantiles that one call may ask for."""


def separate(node: exp.Expr) -> list[exp.Expr] | None:
    """The single calls that a call with several fractions stands for; None for other calls.

    ``APPROX_QUANTILES(x, n)`` stands for MIN, n - 1 quantiles, and MAX. If an index selects one
    quantile of the list, only that quantile is measured (``pick_quantile``).
    """
    if isinstance(node, exp.Filter):
        return _each(node, separate(node.this), "this")
    if isinstance(node, exp.ApproxQuantiles):
        return _steps(node)
    if isinstance(node, exp.WithinGroup):
        return _each(node, _several(node.this, "this"), "this")
    _, written = aggregate_call(node) or (None, None)
    if written is None or written.form is not Form.RANK or len(written.arguments) == 1:
        return None
    return _several(node, written.arguments[1])


def pick_quantile(node: exp.Bracket) -> exp.Expr:
    """The quantile that an index selects from ``APPROX_QUANTILES(x, n)``."""
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    parts = _steps(inner) if isinstance(inner, exp.ApproxQuantiles) else []
    place = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(place, exp.Literal) and str(place.this).isdigit():
        at = int(str(place.this)) - int(node.args.get("offset") or 0)
        if 0 <= at < len(parts):
            return parts[at]
    raise refuse(
        "DP114",
        node,
        "only APPROX_QUANTILES(x, n) can be indexed, by a literal within its length",
        "The index must be known before the data is read.",
        "QUANTILE_CONT(x, 0.25) asks for one quantile.",
    )


def is_ascending(node: exp.Expr) -> bool:
    """Whether the fractions are in ascending order, so that exact quantiles would be too."""
    listed = next(iter(node.find_all(exp.Array)), None)
    if listed is None:
        return True
    ordered = next(iter(node.find_all(exp.Ordered)), None)
    fractions = [_fraction(f) for f in listed.expressions]
    downwards = ordered is not None and bool(ordered.args.get("desc"))
    return fractions == sorted(fractions, reverse=downwards)


def _several(call: exp.Expr, name: str) -> list[exp.Expr] | None:
    given = call.args.get(name)
    if not isinstance(given, exp.Array):
        return None
    fractions = given.expressions
    if not 0 < len(fractions) <= MOST_PARTS:
        raise _too_many(call)
    return [_with(call, name, fraction) for fraction in fractions]


def _each(node: exp.Expr, parts: list[exp.Expr] | None, name: str) -> list[exp.Expr] | None:
    return None if parts is None else [_with(node, name, part) for part in parts]


def _with(node: exp.Expr, name: str, value: exp.Expr) -> exp.Expr:
    """A copy of a call with another argument, and the same place in the text."""
    changed = node.copy()
    changed.set(name, value.copy())
    return changed


def _steps(node: exp.ApproxQuantiles) -> list[exp.Expr]:
    """The calls of ``APPROX_QUANTILES``: MIN, quantiles at equal steps of rank, and MAX."""
    count = node.expression
    known = isinstance(count, exp.Literal) and str(count.this).isdigit()
    number = int(str(count.this)) if known else 0
    if not 0 < number <= MOST_PARTS:
        raise _too_many(node)
    inner = [
        exp.Quantile(this=node.this.copy(), quantile=exp.Literal.number(_decimal(i, number)))
        for i in range(1, number)
    ]
    found: list[exp.Expr] = [exp.Min(this=node.this.copy()), *inner, exp.Max(this=node.this.copy())]
    for part in found:
        part.meta.update(node.meta)
    return found


def _decimal(part: int, whole: int) -> str:
    return f"{round(Fraction(part, whole) * FINEST) / FINEST:.6f}"


def _too_many(node: exp.Expr) -> Exception:
    return refuse(
        "DP114",
        node,
        f"a list of quantiles takes 1 to {MOST_PARTS} parts, given as literals",
        "The parts must be known before the data is read, and each part gets its share of the "
        "budget.",
        "APPROX_QUANTILES(x, 4), or PERCENTILE_CONT(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY x)",
    )
