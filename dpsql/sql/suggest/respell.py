"""Rewrites constructs that are not answered with ones that are: a function per kind of node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal

from sqlglot import exp

from dpsql.diagnostics.refusal import Refusal
from dpsql.sql.suggest.candidate import CHANGE, MEND, Case, Change
from dpsql.sql.suggest.places import innermost, upward
from dpsql.sql.suggest.writer import count_star, put, text_of, touch


def respell_node(case: Case, refusal: Refusal) -> Iterator[Change]:
    """The statement with the innermost node around the place that can be rewritten, rewritten."""
    tree = case.copy()
    spellings = (*_SPELLINGS, *(_OF_OTHER_TYPES if refusal.code == "DP201" else ()))
    for node in upward(innermost(tree, refusal.span)):
        for kinds, write, far in spellings:
            if isinstance(node, kinds):
                parent = node.parent  # the alias named another value
                named = parent if write is _by_value and isinstance(parent, exp.Alias) else node
                said = "WINDOW" if isinstance(node, exp.Select) else text_of(named, case.source)
                if write(node):
                    yield Change(tree, far, (f"instead of {said}",))
                    return


def _pattern(node: exp.Expr) -> bool:
    """Rewrite a regular expression as LIKE, if LIKE can express it."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal):
        return False
    text, anchored = str(pattern.this), isinstance(node, exp.SimilarTo)
    if not anchored:
        text = text[1:] if text.startswith("^") else f".*{text}"
        text = text[:-1] if text.endswith("$") else f"{text}.*"
        text = text.replace("%", "\\%").replace("_", "\\_") if "\\" not in text else text
        text = text.replace(".*", "%").replace(".", "_")
    if re.search(r"[\\|()\[\]{}*+?^$.]", text):
        return False
    kind = exp.ILike if isinstance(node, exp.RegexpILike) else exp.Like
    put(node, kind(this=node.this.copy(), expression=exp.Literal.string(text)))
    return True


def _star(node: exp.Expr) -> bool:
    """Rewrite ``COUNT(t.*)`` as ``COUNT(*)``."""
    if isinstance(node.this, exp.Column) and isinstance(node.this.this, exp.Star):
        put(node, count_star())
        return True
    return False


def _unordered(node: exp.Expr) -> bool:
    """Remove ORDER BY from the arguments of an aggregate; it does not change a sum."""
    if not isinstance(node.this, exp.Order) or node.this.this is None:
        return False
    put(node.this, node.this.this.copy())
    return True


def _text(node: exp.Expr) -> bool:
    """Rewrite a text in other quotes as an ordinary string."""
    put(node, exp.Literal.string(str(node.this)))
    return True


def _written_out(node: exp.Expr) -> bool:
    """Write each window of a WINDOW clause where it is used."""
    named = {w.name.casefold(): w for w in node.args.get("windows") or ()}
    if not named or any(w.args.get("alias") for w in named.values()):
        return False
    for call in list(node.find_all(exp.Window)):
        name = call.args.get("alias")
        definition = named.get(name.name.casefold()) if isinstance(name, exp.Identifier) else None
        if definition is None:
            continue
        touch(call)
        call.set("alias", None)
        for key in ("partition_by", "order", "spec"):
            part = definition.args.get(key)
            if part and not call.args.get(key):
                copies = [p.copy() for p in part] if isinstance(part, list) else part.copy()
                call.set(key, copies)
    touch(node)
    node.set("windows", None)
    return True


def _whole_limit(node: exp.Expr) -> bool:
    """Rewrite LIMIT and FETCH in percent or with ties as a plain LIMIT."""
    count = node.args.get("count") or node.args.get("expression")
    if not isinstance(count, exp.Literal):
        return False
    put(node, exp.Limit(expression=count.copy()))
    return True


def _all_keys(node: exp.Expr) -> bool:
    said = [key for key in ("all", "distinct") if node.args.get(key) is not None]
    touch(node)
    for key in said:
        node.set(key, None)
    return bool(said)


def _plain_with(node: exp.Expr) -> bool:
    if not node.args.get("recursive"):
        return False
    touch(node)
    node.set("recursive", None)
    return True


def _all_columns(node: exp.Expr) -> bool:
    """Rewrite ``*`` with EXCEPT, REPLACE or RENAME as a plain ``*``."""
    said = [key for key in ("except_", "replace", "rename") if node.args.get(key)]
    touch(node)
    for key in said:
        node.set(key, None)
    return bool(said)


def _from_below(node: exp.Expr) -> bool:
    """Rewrite a quantile that counts from the highest value as one from the lowest."""
    fraction, order = node.this.this, node.expression
    ordered = order.expressions[0] if isinstance(order, exp.Order) else None
    if not isinstance(ordered, exp.Ordered) or not ordered.args.get("desc"):
        return False
    if not isinstance(fraction, exp.Literal) or fraction.is_string:
        return False
    put(fraction, exp.Literal.number(str(1 - Decimal(str(fraction.this)))))
    by = exp.Order(expressions=[exp.Ordered(this=ordered.this.copy(), nulls_first=False)])
    put(order, by)
    return True


def _as_number(node: exp.Expr) -> bool:
    """Rewrite a condition as a number: 1 where it is true, else 0."""
    value = node.this
    if not isinstance(value, exp.Predicate | exp.Connector | exp.Not):
        return False
    number = exp.Case(
        ifs=[exp.If(this=value.copy(), true=exp.Literal.number(1))], default=exp.Literal.number(0)
    )
    put(value, number)
    return True


def _by_value(node: exp.Expr) -> bool:
    """Rewrite an aggregate that shows values as groups of the values with COUNT(*)."""
    select = node.find_ancestor(exp.Select)
    output = node.parent if isinstance(node.parent, exp.Alias) else node
    name = str(getattr(node, "this", "")).upper() if isinstance(node, exp.Anonymous) else ""
    value = node.expressions[0] if name and node.expressions else node.args.get("this")
    shown = not name or name in ("HISTOGRAM", "APPROX_TOP_COUNT", "APPROX_TOP_K", "LIST")
    value = value.this if isinstance(value, exp.Order | exp.Distinct) else value
    if (
        not shown
        or select is None
        or output.parent is not select
        or not isinstance(value, exp.Column)
    ):
        return False
    group = select.args.get("group") or exp.Group(expressions=[])
    touch(output)
    touch(group)
    group.append("expressions", value.copy())
    select.set("group", group)
    counts = any(isinstance(item.unalias(), exp.Count) for item in select.expressions)
    output.replace(value.copy())
    if not counts:
        select.append("expressions", count_star())
    return True


_Spelling = tuple[tuple[type[exp.Expr], ...], Callable[[exp.Expr], bool], int]
_OF_OTHER_TYPES: tuple[_Spelling, ...] = (
    ((exp.Avg, exp.Sum), _as_number, MEND),
    ((exp.Avg, exp.Sum, exp.Median), _by_value, CHANGE),
)
"""Rewrites of aggregates over values that are not numbers."""
_SPELLINGS: tuple[_Spelling, ...] = (
    ((exp.RegexpLike, exp.RegexpILike, exp.SimilarTo), _pattern, MEND),
    ((exp.Count,), _star, MEND),
    ((exp.AggFunc,), _unordered, MEND),
    ((exp.RawString, exp.Heredoc), _text, MEND),
    ((exp.Select,), _written_out, MEND),
    ((exp.Limit, exp.Fetch), _whole_limit, CHANGE),
    ((exp.Group,), _all_keys, MEND),
    ((exp.With,), _plain_with, MEND),
    ((exp.Star,), _all_columns, CHANGE),
    ((exp.WithinGroup,), _from_below, MEND),
    (
        (exp.AnyValue, exp.First, exp.Last, exp.ArrayAgg, exp.GroupConcat, exp.ApproxTopK, exp.Anonymous,
         exp.Max, exp.Min, exp.Mode),
        _by_value, CHANGE,
    ),
)  # fmt: skip
