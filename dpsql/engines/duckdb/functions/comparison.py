"""Comparisons, logic, and tests for membership and patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.catalog.function import common_kind
from dpsql.engines.duckdb.forms import FunctionWriter, infix, template
from dpsql.engines.duckdb.types import as_double, write_coerced
from dpsql.ir.expressions import Expression
from dpsql.policy.types import Kind


def _comparison(symbol: str) -> FunctionWriter:
    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        left, right = _alike(texts, args)
        return f"({left} {symbol} {right})"

    return write


def _alike(texts: Sequence[str], args: tuple[Expression, ...]) -> list[str]:
    """The texts in a form that compares without failing.

    A date beside a timestamp is cast by TRY_CAST: an engine's dates reach farther than its
    timestamps, and its own implicit cast raises. Numbers are compared without a cast.
    """
    kind = common_kind(args, "a comparison")
    if kind is not Kind.TIMESTAMP:
        return list(texts)
    return [write_coerced(t, a, kind) for t, a in zip(texts, args, strict=True)]


def _in(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    value, *options = _alike(texts, args)
    return f"({value} IN ({', '.join(options)}))"


def _in_list(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    """``IN`` with a whole list as the second argument, of constants of a fitting type."""
    kind = common_kind(args, "IN")
    value = write_coerced(texts[0], args[0], kind) if kind is Kind.TIMESTAMP else texts[0]
    return f"({value} IN {texts[1]})"


def _like(operator: str) -> FunctionWriter:
    """A pattern operator. The option is its escape character, if there is one."""

    def write(texts: Sequence[str], _: tuple[Expression, ...], option: str) -> str:
        escape = " ESCAPE '" + option.replace("'", "''") + "'" if option else ""
        return f"({texts[0]} {operator} {texts[1]}{escape})"

    return write


def _width_bucket(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    """``width_bucket`` for rising or falling bounds: 0 before the first, ``n + 1`` from the last.

    The value is written once. NULL becomes NaN, which is above all numbers, so that both calls of
    ``greatest`` return it; the final cast makes it NULL.
    """
    x, low, high = (as_double(t, a) for t, a in zip(texts[:3], args[:3], strict=True))
    count = texts[3]
    place = f"floor(({x} - {low}) / ({high} - {low}) * {count})"
    bucket = f"greatest(coalesce({place}, CAST('NaN' AS DOUBLE)), -1)"
    return f"TRY_CAST({count} + 1 - greatest({count} - {bucket}, 0) AS BIGINT)"


WRITERS: Mapping[str, FunctionWriter] = {
    "eq": _comparison("="),
    "ne": _comparison("<>"),
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "gt": _comparison(">"),
    "ge": _comparison(">="),
    "distinct_from": _comparison("IS DISTINCT FROM"),
    "not_distinct_from": _comparison("IS NOT DISTINCT FROM"),
    "and": infix("AND"),
    "or": infix("OR"),
    "not": template("(NOT {0})"),
    "is_null": template("({0} IS NULL)"),
    "is_true": template("({0} IS TRUE)"),
    "is_false": template("({0} IS FALSE)"),
    "in": _in,
    "in_list": _in_list,
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "width_bucket": _width_bucket,
}
