"""Aggregates: any over one unit's rows, but only counts and bounded sums over several units' rows.

A number over several units has no noise yet. Until it has, it may be added up, multiplied by a
constant, cut at a constant, and listed. No condition, group or order may depend on it.
"""

from __future__ import annotations

from dpsql.engines.duckdb.guard.facts import (
    ABOVE,
    BELOW,
    DOUBLE,
    LIST,
    NUMBERS,
    STORED,
    TRUTH,
    WHOLE,
    Fact,
    Unsafe,
    fact_of_size,
    plain,
)
from dpsql.engines.duckdb.guard.parts import Node, conjuncts
from dpsql.engines.duckdb.guard.sizes import FEW, OWN, ROWS, adds_exactly, sum_bounds

COUNTING = ("count", "count_star", "count_if")
AGGREGATES = {
    "count": WHOLE, "count_star": WHOLE, "sum": "", "avg": DOUBLE, "min": "", "max": "",
    "var_pop": DOUBLE, "var_samp": DOUBLE, "stddev_pop": DOUBLE, "stddev_samp": DOUBLE,
    "quantile_cont": "", "quantile_disc": "", "bool_and": TRUTH, "bool_or": TRUTH,
    "count_if": WHOLE, "list": LIST, "bit_or": WHOLE,
}  # fmt: skip
"""The kind of an aggregate's result; empty for the kind of its argument."""
CHOOSING = ("min", "max", "quantile_cont", "quantile_disc")
"""Aggregates that return one of several equal values, which the order of rows chooses."""
OF_PUBLIC = {
    "kurtosis": DOUBLE, "skewness": DOUBLE,
    "mode": "", "arg_max": "", "arg_min": "", "corr": DOUBLE, "covar_pop": DOUBLE, "covar_samp": DOUBLE, "regr_count": WHOLE,
    "regr_slope": DOUBLE, "regr_intercept": DOUBLE, "regr_r2": DOUBLE, "regr_avgx": DOUBLE,
    "regr_avgy": DOUBLE, "regr_sxx": DOUBLE, "regr_syy": DOUBLE, "regr_sxy": DOUBLE,
}  # fmt: skip
"""Aggregates for public rows only: they may fail, or choose among equal values."""
NOTHING = fact_of_size(WHOLE, 0, 31)
"""The only replacement of a missing number: zero."""


def aggregate_fact(
    name: str, found: list[Fact], groups: str, *, distinct: bool, few: bool = False
) -> Fact:
    """The facts of an aggregate over rows of one unit, of all units, or of none."""
    rows = OWN if groups in ("unit", "few") else ROWS
    if name == "count_if" and found[0].kind != TRUTH:
        raise Unsafe("count_if of what is no truth value")
    if name in COUNTING:
        many = ABOVE if groups == "unit" else 0
        return Fact(WHOLE, 0, rows, 63, exact=groups == "all", many=many)
    first = found[0]
    if first.kind == STORED and name not in ("min", "max"):
        raise Unsafe(f"{name} of a column as it is stored")
    if name in CHOOSING and groups in ("unit", "few") and not first.identical:
        raise Unsafe(f"{name} of values of which equal ones are not the same")
    doubles = few and first.kind == DOUBLE and adds_exactly(first)
    whole = doubles or (first.kind == WHOLE and first.bounded)
    if groups == "all" and (name != "sum" or distinct or not whole):
        raise Unsafe(f"{name} over rows of several units, of what is not a bounded whole number")
    if groups == "all" and first.many:
        raise Unsafe("a sum over several units, of what grows with a unit's rows")
    if name == "sum":
        return _sum(first, FEW if doubles and groups == "all" else rows, groups)
    kind = AGGREGATES[name] or first.kind
    if name in ("min", "max", "bit_or") and kind in NUMBERS:
        return Fact(
            kind, first.low, first.high, first.bits, many=first.many, share=first.share,
            canonical=first.canonical,
        )  # fmt: skip
    many = ABOVE | BELOW if first.many else 0
    return Fact(kind, many=many) if kind in NUMBERS else plain(kind)


def _sum(first: Fact, rows: int, groups: str) -> Fact:
    if first.kind == WHOLE and not first.bounded and first.bits > 63:
        raise Unsafe("a sum that may overflow")
    low, high = sum_bounds(first, rows)
    many = 0
    if groups == "unit" and not first.share:
        many = (BELOW if low is None or low < 0 else 0) | (ABOVE if high is None or high else 0)
    return Fact(first.kind, low, high, 127, exact=groups == "all", many=many)


def again(name: str, found: list[Fact], node: Node) -> Fact:
    """The facts of an aggregate over numbers without noise yet: their sum, or the list of them."""
    if node["distinct"] or not found:
        raise Unsafe(f"{name} over numbers before their noise")
    (first,) = found
    if name == "sum" and first.exact and first.kind == WHOLE and not node["filter"]:
        low, high = sum_bounds(first, ROWS)
        return Fact(WHOLE, low, high, 127, exact=True)
    if name == "list" and first.kind == LIST and _there(node["filter"]):
        return first
    raise Unsafe(f"{name} over numbers before their noise")


def _there(condition: Node | None) -> bool:
    """Whether a condition only leaves out NULL."""
    return condition is None or all(
        part["type"] == "OPERATOR_IS_NOT_NULL" and part["children"][0]["class"] == "COLUMN_REF"
        for part in conjuncts(condition)
    )


def linear(name: str, found: list[Fact]) -> bool:
    """Whether a function of numbers without noise yet only adds, weighs, cuts or lists them."""
    fixed = [f.low is not None and f.low == f.high for f in found if not f.exact]
    waiting = len(found) - len(fixed)
    if not all(fixed):
        return name == "struct_pack"
    return name in ("+", "-", "struct_pack") or (name in ("*", "least") and waiting == 1)


def present(having: Node) -> bool:
    """Whether a condition on groups only says that a group has rows, or rows of some kind."""
    right = having.get("right", {})
    return bool(
        having["type"] == "COMPARE_GREATERTHAN"
        and having["left"].get("function_name") in COUNTING
        and not having["left"]["distinct"]
        and right.get("literal", {}).get("text") == "0"
    )
