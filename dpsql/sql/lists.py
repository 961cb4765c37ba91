"""``= ANY(array)`` and ``<> ALL(array)`` of a literal list or a parameter, as IN and NOT IN.

In PostgreSQL the two forms are equivalent, also for lists with NULL. For an empty list
``= ANY('{}')`` is false and ``<> ALL('{}')`` is true, also if the left side is NULL. Lists that are
made of rows are not answered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.effort import step
from dpsql.sql.parameters import MOST_PARAMETERS
from dpsql.sql.spans import span_of

_MEANT = {
    (exp.EQ, "ANY"): exp.In, (exp.EQ, "SOME"): exp.In, (exp.NEQ, "ALL"): exp.Not,
}  # fmt: skip
BLANK = " \t\n\r\v\f"
_ITEM = re.compile(
    r'(?:([^",{}]+)|[ \t\n\r\v\f]*+("(?:[^"\\]|\\.)*+")[ \t\n\r\v\f]*+)(?:,|\Z)', re.DOTALL
)


def elements(text: str) -> list[str | None] | None:
    """The elements of an array in text format; None if it is malformed.

    >>> elements('{a,"b,c",NULL}'), elements("a")
    (['a', 'b,c', None], None)
    """
    body = text.strip(BLANK)
    if not (body.startswith("{") and body.endswith("}")):
        return None
    found: list[str | None] = []
    at, end = 1, len(body) - 1
    while at < end:
        item = _ITEM.match(body, at, end)
        if item is None:
            return None
        plain, quoted = item.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL))
        else:
            word = plain.strip(BLANK)
            found.append(None if word.upper() == "NULL" else word)
        at = item.end()
    return found


def resolve_lists(tree: exp.Expr) -> None:
    """Replace each comparison with a list by IN or NOT IN; other nodes stay unchanged."""
    count = 0
    for node in list(tree.find_all(exp.EQ, exp.NEQ)):
        word, listed = match_quantifier(node.expression)
        meant = _MEANT.get((type(node), word))
        values = None if listed is None or meant is None else _values(listed)
        if values is None or isinstance(node.this.unnest(), exp.Tuple):
            continue
        count += len(values)
        if count > MOST_PARAMETERS:
            raise Refused(_too_long(node))
        new: exp.Expr = exp.In(this=node.this, expressions=values or [exp.Null()])
        if meant is exp.Not:
            new = exp.Not(this=new)
        if not values:
            new = _of_nothing(new, found=meant is exp.Not)
        new.meta.update(node.meta)
        node.replace(new)


def _of_nothing(compared: exp.Expr, *, found: bool) -> exp.Expr:
    """The comparison with an empty list: a condition that always has the value ``found``.

    It is made from ``compared``, a comparison with NULL alone, which is never true or false.
    """
    true = exp.Is(this=exp.Paren(this=compared), expression=exp.Boolean(this=True))
    if not found:
        return true
    never = exp.Is(this=exp.Paren(this=compared), expression=exp.Boolean(this=False))
    return exp.Not(this=never)


def match_quantifier(node: exp.Expr) -> tuple[str, exp.Expr | None]:
    """``ANY``, ``SOME`` or ``ALL`` in capitals, and its operand; "" and None for other nodes."""
    if isinstance(node, exp.Any):
        return "ANY", node.this.unnest()
    name = str(node.this).upper() if isinstance(node, exp.Anonymous) else ""
    if name not in ("SOME", "ALL") or len(node.expressions) != 1:
        return "", None
    return name, node.expressions[0].unnest()


def _values(node: exp.Expr) -> Sequence[exp.Expr] | None:
    """The values of an array, or of the text of one, maybe with a cast; None for other nodes."""
    if isinstance(node, exp.Cast):
        target = node.args["to"]
        inner = _values(node.this.unnest())
        if inner is None or target.this is not exp.DType.ARRAY or len(target.expressions) != 1:
            return None
        return [exp.Cast(this=value, to=target.expressions[0].copy()) for value in inner]
    if isinstance(node, exp.Array):
        nested = any(isinstance(value.unnest(), exp.Array) for value in node.expressions)
        return None if nested else node.expressions
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    step(len(str(node.this)) // 10)
    found = elements(str(node.this))
    if found is None:
        return None
    made: list[exp.Expr] = []
    for text in found:
        value = exp.Null() if text is None else exp.Literal.string(text)
        value.meta.update(node.meta)
        made.append(value)
    return made


def _too_long(node: exp.Expr) -> Refusal:
    return Refusal(
        "DP115",
        f"the lists of the statement have more than {MOST_PARAMETERS:,} values",
        "Planning time is bounded so that no statement can keep others waiting.",
        "Ask for fewer values, or name them by a condition: x BETWEEN $1 AND $2.",
        span_of(node),
    )
