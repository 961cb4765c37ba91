"""Differences of operators, conditionals, text and casts."""

from __future__ import annotations

import unicodedata

from sqlglot import exp

from dpsql.sql.dialects.change import cast, number, part, refuse, text
from dpsql.sql.marks import NO_DOUBLES, NO_TIMES, ROUNDS_AWAY, SIX_DIGITS, WHOLE_ONLY, mark_node

WHITE = "".join(map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))))
WHITE += "".join(map(chr, (0x2028, 0x2029, 0x202F, 0x205F, 0x3000)))
"""Every character that Unicode calls white space."""
SPACES = "".join(c for c in WHITE if unicodedata.category(c) == "Zs")
"""The white space that is a space in Unicode: no tabs, no ends of lines."""


def exact(node: exp.Expr) -> exp.Expr:
    """``/`` whose quotient is never rounded to a whole number."""
    return exp.Div(this=cast(node.this, exp.DType.DOUBLE), expression=node.expression, typed=True)


def six_digits(node: exp.Expr) -> exp.Expr:
    """``/`` of fixed-point numbers: a quotient of whole numbers is rounded to six digits."""
    return mark_node(exp.Div(this=node.this, expression=node.expression, typed=True), SIX_DIGITS)


def whole(node: exp.Expr) -> exp.Expr:
    """``//`` and ``DIV``: division of whole numbers, rounded toward zero."""
    return mark_node(exp.Div(this=node.this, expression=node.expression, typed=True), WHOLE_ONLY)


def strict_extreme(node: exp.Expr) -> exp.Expr:
    """GREATEST and LEAST that are NULL if an argument is NULL."""
    if node.args.get("ignore_nulls"):
        return node
    items = [node.this, *node.expressions]
    tests = [_is_null(i.copy()) for i in items if not isinstance(i, exp.Literal)]
    if not tests:
        return node
    condition = tests[0]
    for test in tests[1:]:
        condition = exp.Or(this=condition, expression=test)
    branch = exp.If(this=condition, true=exp.Null())
    return exp.Case(ifs=[branch], default=type(node)(this=node.this, expressions=node.expressions))


def strict_concat(node: exp.Expr) -> exp.Expr:
    """CONCAT that is NULL if an argument is NULL."""
    parts = list(node.expressions)
    joined: exp.Expr = parts[0]
    for item in parts[1:]:
        joined = exp.DPipe(this=joined, expression=item)
    return joined


def untimed_pipe(node: exp.Expr) -> exp.Expr:
    """``||`` that refuses timestamps."""
    return mark_node(node, NO_TIMES)


def undoubled_pipe(node: exp.Expr) -> exp.Expr:
    """``||`` that refuses numbers with a fraction."""
    return mark_node(node, NO_DOUBLES)


def without_like_escape(node: exp.Expr) -> exp.Expr:
    """LIKE without an escape character."""
    if isinstance(node.parent, exp.Escape) or "\\" not in str(node.expression.name):
        return node
    return exp.Escape(this=node.copy(), expression=text(""))


def trimmed_white(node: exp.Expr) -> exp.Expr:
    """TRIM that removes all white space if no characters are given."""
    if node.args.get("expression") is None:
        node.set("expression", text(WHITE))
    return node


def trimmed_spaces(node: exp.Expr) -> exp.Expr:
    """TRIM that removes all spaces of Unicode if no characters are given."""
    if node.args.get("expression") is None:
        node.set("expression", text(SPACES))
    return node


def counted_from_one(node: exp.Expr) -> exp.Expr:
    """SUBSTR whose start 0 means the first character; in PostgreSQL it is the place before it."""
    start = node.args.get("start")
    node.set("zero_start", None)
    if isinstance(start, exp.Literal) and str(start.name) == "0":
        node.set("start", number(1))
    return node


def logarithm(node: exp.Expr) -> exp.Expr:
    """``LOG(10, x)``."""
    other = node.args.get("expression")
    if other is None:
        return node
    if not isinstance(node.this, exp.Literal) or node.this.name != "10":
        raise refuse(
            node,
            "logarithms are natural or to base 10",
            "Other bases are not in the SQL that dpsql answers.",
            "LN(x) / LN(2)",
        )
    return exp.Log(this=other)


def nvl2(node: exp.Expr) -> exp.Expr:
    """``NVL2(a, b, c)``: ``b`` if ``a`` is not NULL, else ``c``."""
    there = exp.Not(this=_is_null(node.this))
    return exp.If(this=there, true=node.args["true"], false=node.args.get("false"))


def contains(node: exp.Expr) -> exp.Expr:
    """``CONTAINS(a, 'x')``."""
    return exp.GT(
        this=exp.StrPosition(this=node.this, substr=node.expression), expression=number(0)
    )


def raw(node: exp.Expr) -> exp.Expr:
    """A string constant in which a backslash is an ordinary character."""
    return text(str(node.name))


def as_double(node: exp.Expr) -> exp.Expr:
    """``TO_DOUBLE(a)``."""
    return cast(node.this, exp.DType.DOUBLE)


def as_number(node: exp.Expr) -> exp.Expr:
    """``TO_NUMBER(a)``, ``TO_NUMBER(a, 10, 2)``."""
    sizes = [node.args.get(name) for name in ("precision", "scale")]
    params = [exp.DataTypeParam(this=size) for size in sizes if size is not None]
    kind = exp.DataType(this=exp.DType.DECIMAL, expressions=params)
    return mark_node(exp.Cast(this=node.this, to=decimal(kind)), ROUNDS_AWAY)


def epoch_seconds(node: exp.Expr) -> exp.Expr:
    """Whole seconds since 1970."""
    return cast(exp.Floor(this=part(node.this, "epoch")), exp.DType.BIGINT)


def integer_for(kind: exp.Expr) -> exp.Expr | None:
    """BIGINT for a fixed-point type of more than 18 digits, none after the point; else None."""
    sizes = [str(size.name) for size in kind.expressions]
    if kind.this != exp.DType.DECIMAL or sizes[1:] != ["0"] or not sizes[0].isdigit():
        return None
    return exp.DataType(this=exp.DType.BIGINT) if int(sizes[0]) > 18 else None


def decimal(kind: exp.Expr) -> exp.Expr:
    """A numeric type in PostgreSQL's words."""
    return integer_for(kind) or kind


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node, expression=exp.Null())
