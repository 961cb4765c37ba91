"""WIDTH_BUCKET: the number of the bucket of a value, for equal steps or listed thresholds."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.ir.expressions import NULL, Expression, Literal, integer
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.cases import make_case
from dpsql.sql.bind.context import refuse


def width_bucket(scalars: Binder, node: exp.Expr) -> Expression:
    """WIDTH_BUCKET as a function for equal steps, and as a CASE for listed thresholds."""
    thresholds = node.args.get("threshold")
    if thresholds is None:
        names = ("this", "min_value", "max_value", "num_buckets")
        given = tuple(scalars.bind(node.args[n]) for n in names if node.args.get(n) is not None)
        return scalars.call("width_bucket", given, node)
    value = scalars.bind(node.this)
    listed = thresholds.expressions if isinstance(thresholds, exp.Array) else []
    ends = [scalars.bind(item) for item in listed]
    known = [e.value for e in ends if isinstance(e, Literal) and _is_number(e.value)]
    if not ends or len(known) < len(ends) or known != sorted(set(known)):  # type: ignore[type-var]
        raise refuse(
            "DP114",
            node,
            "WIDTH_BUCKET takes two literal bounds and a number of buckets, or a list of "
            "literal numbers in ascending order",
            "Its buckets are public groups, so their bounds must be public constants.",
            "WIDTH_BUCKET(x, 0, 100, 10), or WIDTH_BUCKET(x, ARRAY[10, 20, 50])",
        )
    below = [(scalars.call("lt", (value, end), node), integer(i)) for i, end in enumerate(ends)]
    above = (scalars.call("ge", (value, ends[-1]), node), integer(len(ends)))
    return make_case((*below, above), NULL, node)


def _is_number(value: object) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)
