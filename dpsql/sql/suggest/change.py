"""Applies the changes that rules propose to the syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from sqlglot import exp

from dpsql.diagnostics.edit import Edit
from dpsql.sql.suggest.candidate import CHANGE, Case, Change
from dpsql.sql.suggest.leave_out import left_out
from dpsql.sql.suggest.places import at, innermost, outermost_select
from dpsql.sql.suggest.writer import count_star, fragment, put, text_of, touch

_MOST_KEYS = 3


def apply_edits(case: Case, edits: tuple[Edit, ...]) -> Iterator[Change]:
    """The changed statements, one for each edit that can be applied."""
    for order, edit in enumerate(edits):
        if edit.how == "leave_out":
            yield from left_out(case, edit.span)
            continue
        tree = case.copy()
        made = _MAKERS[edit.how](tree, edit, case)
        if made is not None:
            yield Change(made[0], CHANGE + order, made[1])


_Made = tuple[exp.Expr, tuple[str, ...]] | None


def _replace(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    node = at(tree, edit.span)
    if node is None or node.parent is None:
        return None
    select = node.find_ancestor(exp.Select)
    if edit.sql == "COUNT(*)" and (select is None or select.args.get("from_") is None):
        return None
    new = fragment(edit.sql, case.source.dialect)
    counts = isinstance(new, exp.Count) and isinstance(new.this, exp.Star)
    outer = node.parent
    if counts and isinstance(outer, exp.Alias):  # the alias named another value
        node = outer
    note = (f"COUNT(*) instead of {text_of(node, case.source)}",) if counts else ()
    put(node, new)
    return tree, (edit.note,) if edit.note else note


def _rename(tree: exp.Expr, edit: Edit, _: Case) -> _Made:
    node = at(tree, edit.span)
    if not isinstance(node, exp.Column):
        return None
    for column in list(tree.find_all(exp.Column)):
        if column == node and column is not node:
            _call(column, edit.sql)
    _call(node, edit.sql)
    return tree, (edit.note,)


def _call(column: exp.Expr, name: str) -> None:
    touch(column)
    quoted = name.startswith('"')
    column.set("this", exp.to_identifier(name.strip('"'), quoted=quoted))


def _values(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    """Replace an aggregate over values by the values with their numbers of rows."""
    node = at(tree, edit.span)
    while node is not None and isinstance(node.parent, exp.Alias | exp.Paren):
        node = node.parent
    select = node.parent if node is not None else None
    if not isinstance(select, exp.Select) or node is None or node.arg_key != "expressions":
        return None
    value = fragment(edit.sql, case.source.dialect)
    note = f"each value with its COUNT(*) instead of {text_of(node, case.source)}"
    _add_key(select, value)
    put(node, value.copy())
    if not any(isinstance(item.unalias(), exp.Count) for item in select.expressions):
        select.append("expressions", count_star())
    return tree, (note,)


def _first_group(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    """Replace the value of the first row in an order by the first group in an order."""
    node = at(tree, edit.span)
    select = None if node is None else node.find_ancestor(exp.Select)
    if node is None or select is None:
        return None
    key, _, order = edit.sql.partition("\n")
    value = fragment(key, case.source.dialect)
    put(node, value)
    _add_key(select, value.copy())
    sorted_by = fragment(f"SELECT 1 ORDER BY {order}", case.source.dialect)
    select.set("order", sorted_by.args["order"])
    select.limit(1, copy=False)
    return tree, ()


def _alias(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    node = at(tree, edit.span)
    if not isinstance(node, exp.Join):
        return None
    touch(node.this)
    node.this.set("alias", exp.TableAlias(this=fragment(edit.sql, case.source.dialect).this))
    return tree, ()


def _add_key(select: exp.Expr, key: exp.Expr) -> None:
    group = select.args.get("group")
    if group is None:
        group = exp.Group(expressions=[])
        select.set("group", group)
    touch(group)
    group.append("expressions", key)


def _on(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    node = at(tree, edit.span)
    if not isinstance(node, exp.Join) or node.args.get("using"):
        return None
    condition, before = fragment(edit.sql, case.source.dialect), node.args.get("on")
    if before is not None and not isinstance(before, exp.Boolean):
        condition = _and(
            exp.Paren(this=before) if isinstance(before, exp.Or) else before, condition
        )
    touch(node)
    node.set("on", condition)
    return tree, _keep_both(node)


def _using(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    """Replace NATURAL JOIN by a join with USING and the columns that it would use."""
    node = at(tree, edit.span)
    if not isinstance(node, exp.Join):
        return None
    names = [fragment(name, case.source.dialect).this for name in edit.sql.split(", ")]
    touch(node)
    node.set("using", names)
    node.set("method", None)
    return tree, (f"JOIN ... USING ({edit.sql}) instead of NATURAL JOIN",)


def _and(before: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The conjunction of both conditions, nested to the left as the parser does it."""
    parts = condition.flatten() if isinstance(condition, exp.And) else (condition,)
    return reduce(lambda found, part: exp.And(this=found, expression=part), parts, before)


def _inner(tree: exp.Expr, edit: Edit, _: Case) -> _Made:
    node = at(tree, edit.span)
    return (tree, _keep_both(node)) if isinstance(node, exp.Join) else None


def _keep_both(node: exp.Join) -> tuple[str, ...]:
    """Make the join an inner join; returns the notes on that."""
    side = str(node.args.get("side") or "")
    touch(node)
    for key in ("side", "kind", "method"):
        node.set(key, None)
    return (
        (f"JOIN instead of {side} JOIN: it keeps only rows that match on both sides",)
        if side
        else ()
    )


def _partition(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    node = at(tree, edit.span)
    node = (
        node
        if isinstance(node, exp.Window)
        else innermost(tree, edit.span).find_ancestor(exp.Window)
    )
    if node is None:
        return None
    keys = [fragment(name, case.source.dialect) for name in edit.sql.split(", ")]
    touch(node)
    node.set("partition_by", [*keys, *(node.args.get("partition_by") or ())])
    return tree, ()


def _group(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    inside = innermost(tree, edit.span)
    select = inside if isinstance(inside, exp.Select) else inside.find_ancestor(exp.Select)
    if select is None:
        return None
    _add_key(select, fragment(edit.sql, case.source.dialect))
    return tree, ()


def _summarize(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    """Replace the outputs by keys and averages; the notes say what is changed and left out."""
    select, words = outermost_select(tree), edit.sql.split()
    if select is None or len(words) != len(select.expressions) or select.args.get("distinct"):
        return None
    keys: list[exp.Expr] = []
    outputs: list[exp.Expr] = []
    notes: list[str] = []
    for word, item in zip(words, select.expressions, strict=True):
        value, said = item.unalias(), text_of(item, case.source)
        if word in ("key", "month") and len(keys) < _MOST_KEYS:
            if word == "month":
                value = exp.TimestampTrunc(this=value.copy(), unit=exp.Var(this="MONTH"))
                notes.append(f"by month instead of {said}")
            keys.append(value.copy())
            outputs.append(item.copy() if word == "key" else value.copy())
        elif word == "mean":
            plain = value.this if isinstance(value, exp.Paren) else value
            outputs.append(exp.Avg(this=plain.copy()))
            notes.append(f"AVG instead of {said}")
        else:
            notes.append(f"without {said}")
    if not outputs:
        return None
    if not any(isinstance(output, exp.Avg) for output in outputs):
        outputs.append(count_star())
    notes += _unsorted(select, case)
    touch(select)
    select.set("expressions", outputs)
    select.set("group", exp.Group(expressions=keys) if keys else None)
    return tree, tuple(notes)


def _unsorted(select: exp.Expr, case: Case) -> list[str]:
    """Remove ORDER BY, LIMIT and OFFSET; returns notes on the removed clauses."""
    found = []
    for key in ("order", "limit", "offset"):
        clause = select.args.get(key)
        if clause is not None:
            found.append(f"without {text_of(clause, case.source)}")
            touch(select)
            select.set(key, None)
    return found


def _count_rows(tree: exp.Expr, edit: Edit, case: Case) -> _Made:
    """The number of rows of the query.

    A plain SELECT gets COUNT(*) as its list. Any other query becomes a subquery whose rows are
    counted, with averages of the columns in ``sql`` (one per line).
    """
    if not isinstance(tree, exp.Query):
        return None
    notes = _unsorted(tree, case)
    select = outermost_select(tree)
    shaped = ("distinct", "group", "having", "qualify")
    if select is not None and select is tree and not any(select.args.get(key) for key in shaped):
        left = [text_of(item, case.source) for item in select.expressions]
        whole = isinstance(select.expressions[0], exp.Star)
        notes += [] if whole else [f"COUNT(*) instead of {', '.join(left)}"]
        touch(select)
        select.set("expressions", [count_star()])
        return select, tuple(notes)
    with_ = tree.args.get("with_")
    tree.set("with_", None)
    alias = exp.TableAlias(this=exp.to_identifier("rows_of_one"))
    means = [fragment(f"AVG({name})", case.source.dialect) for name in edit.sql.split("\n") if name]
    outer = exp.Select(
        expressions=[count_star(), *means],
        from_=exp.From(this=exp.Subquery(this=tree, alias=alias)),
    )
    if with_ is not None:
        outer.set("with_", with_)
    return outer, tuple(notes)


_MAKERS: dict[str, Callable[[exp.Expr, Edit, Case], _Made]] = {
    "replace": _replace,
    "rename": _rename,
    "values": _values,
    "first_group": _first_group,
    "alias": _alias,
    "on": _on,
    "using": _using,
    "inner": _inner,
    "partition": _partition,
    "group": _group,
    "summarize": _summarize,
    "count_rows": _count_rows,
}
