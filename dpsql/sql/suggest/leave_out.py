"""The statement without the refused part: a condition, an output, a key, or a clause."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpsql.diagnostics.span import Span
from dpsql.sql.suggest.candidate import LEAVE_OUT, SUMMARIZE, Case, Change
from dpsql.sql.suggest.places import innermost, upward
from dpsql.sql.suggest.writer import count_star, text_of, touch

_CLAUSES = (
    exp.Where, exp.Having, exp.Qualify, exp.Order, exp.Limit, exp.Offset, exp.Fetch, exp.Group, exp.Distinct,
    exp.Join, exp.Lateral, exp.Lock, exp.Into, exp.TableSample, exp.Pivot, exp.Hint, exp.Window,
)  # fmt: skip
_LISTS = ("joins", "laterals", "locks", "pivots", "windows")


def left_out(case: Case, span: Span | None) -> Iterator[Change]:
    """The changes that leave out a part around the place, from the smallest part outwards."""
    inside = innermost(case.tree, span)
    for depth, node in enumerate(upward(inside)):
        tree = case.copy()
        found = _same(tree, node)
        note = _without(found, case)
        if note:
            far = SUMMARIZE if isinstance(node, exp.Join) else LEAVE_OUT
            yield Change(tree, far + min(depth, 2) // 2, (note,), loses=True)
        yield from _by_count(case, node)
        if isinstance(node, exp.SetOperation):
            yield from _sides(case, node)
    yield from _bare(case)


def _same(tree: exp.Expr, node: exp.Expr) -> exp.Expr:
    """The node of a copied tree that corresponds to this node of the original tree."""
    path: list[tuple[str, int | None]] = []
    current = node
    while current.parent is not None:
        path.append((str(current.arg_key), current.index))
        current = current.parent
    for key, index in reversed(path):
        value = tree.args[key]
        tree = value if index is None else value[index]
    return tree


def _without(node: exp.Expr, case: Case) -> str:
    """Remove the node from its tree; returns the note, or "" if it cannot be removed."""
    parent, said = node.parent, text_of(node, case.source)
    if parent is None or not _named_here(node, parent):
        return _flags(node)
    if isinstance(parent, exp.And):
        other = parent.expression if node.arg_key == "this" else parent.this
        touch(parent)
        parent.replace(other)
        return f"without {said}"
    select = parent if isinstance(parent, exp.Select) else node.find_ancestor(exp.Select)
    if isinstance(parent, exp.Select) and node.arg_key == "expressions":
        return _output(parent, node, said)
    if isinstance(parent, exp.Group) and select is not None:
        return _key(parent, node, select, said)
    touch(parent)
    if isinstance(parent, exp.Order):
        _drop(parent, "expressions", node)
        return f"without ORDER BY {said}"
    if isinstance(parent, exp.Filter):
        parent.replace(parent.this)
        return f"without FILTER ({said})"
    if isinstance(node.arg_key, str) and node.index is not None:
        _drop(parent, node.arg_key, node)
    else:
        parent.set(str(node.arg_key), None)
    return f"without {said}"


def _named_here(node: exp.Expr, parent: exp.Expr) -> bool:
    """Whether the statement is complete without the node."""
    match parent:
        case exp.Order():
            return not isinstance(parent.parent, exp.WithinGroup)
        case exp.And() | exp.Group():
            return True
        case exp.Filter():
            return node.arg_key == "expression"
        case exp.Select():
            several = len(parent.expressions) > 1
            return isinstance(node, _CLAUSES) or (node.arg_key == "expressions" and several)
        case exp.Query() | exp.Table() | exp.With():
            return isinstance(node, _CLAUSES)
        case _:
            return False


def _drop(parent: exp.Expr, key: str, node: exp.Expr) -> None:
    """Remove a node from a list, and the clause if its list is then empty."""
    rest = [item for item in parent.args[key] if item is not node]
    parent.set(key, rest)
    if not rest and parent.parent is not None and key == "expressions":
        parent.parent.set(str(parent.arg_key), None)


def _flags(node: exp.Expr) -> str:
    """Remove the modifiers of a table, a SELECT or a WITH; returns the note, or ""."""
    taken = []
    if isinstance(node, exp.Select) and node.args.get("locks"):
        taken += [lock.sql("postgres") for lock in node.args["locks"]]
        node.set("locks", None)
    for key in (
        "only",
        "sample",
        "pivots",
        "recursive",
        "ordinality",
        "when",
        "version",
        "rows_from",
        "materialized",
    ):
        if isinstance(node, exp.Table | exp.With | exp.CTE) and node.args.get(key):
            node.set(key, None)
            taken.append(key)
    if isinstance(node, exp.Join) and str(node.args.get("method") or ""):
        return ""
    touch(node)
    return f"without {' and '.join(taken).upper()}" if taken else ""


def _output(select: exp.Select, node: exp.Expr, said: str) -> str:
    """Remove an output, and adapt the positions in GROUP BY and ORDER BY; returns the note."""
    place = next(i for i, item in enumerate(select.expressions, 1) if item is node)
    keys = [select.args.get(name) for name in ("group", "order")]
    for clause in (key for key in keys if key is not None):
        for item in list(clause.expressions):
            value = item.this if isinstance(item, exp.Ordered) else item
            number = str(value.this) if isinstance(value, exp.Literal) else ""
            if number.isdigit() and int(number) == place:
                touch(clause)
                _drop(clause, "expressions", item)
            elif number.isdigit() and int(number) > place:
                touch(value)
                value.set("this", str(int(number) - 1))
    touch(select)
    _drop(select, "expressions", node)
    return f"without {said}"


def _key(group: exp.Group, node: exp.Expr, select: exp.Select, said: str) -> str:
    """Remove a key, and the output that shows it; returns the note."""
    touch(group)
    number = str(node.this) if isinstance(node, exp.Literal) else ""
    outputs = select.expressions
    shown = outputs[int(number) - 1 : int(number)] if number.isdigit() and int(number) else []
    shown = shown or [o for o in outputs if node in (o, o.unalias())]
    _drop(group, "expressions", node)
    if shown and len(outputs) > 1:
        said = _output(select, shown[0], said) and said
    return f"without the group {said}"


def _sides(case: Case, node: exp.SetOperation) -> Iterator[Change]:
    """The changes that keep only one of the two queries of a set operation."""
    for key, other in (("this", "expression"), ("expression", "this")):
        tree = case.copy()
        found = _same(tree, node)
        note = f"without {type(node).__name__.upper()} and {text_of(node.args[other], case.source)}"
        side = found.args[key]
        if found is tree:
            tree = side
        else:
            touch(found)
            found.replace(side)
        yield Change(tree, SUMMARIZE, (note,), loses=True)


def _by_count(case: Case, node: exp.Expr) -> Iterator[Change]:
    """The change of an output to COUNT(*); its alias is left out too."""
    parent = node.parent
    in_list = isinstance(parent, exp.Select) and node.arg_key == "expressions"
    if (
        not in_list
        or parent is None
        or parent.args.get("from_") is None
        or isinstance(node.unalias(), exp.Star)
    ):
        return
    tree = case.copy()
    found = _same(tree, node)
    select = found.parent
    touch(select)
    found.replace(count_star())
    yield Change(
        tree, SUMMARIZE, (f"COUNT(*) instead of {text_of(node, case.source)}",), loses=True
    )


def _bare(case: Case) -> Iterator[Change]:
    """The change of the statement to COUNT(*) of the rows that it reads, with its conditions."""
    tree = case.copy()
    reads = (select for select in tree.find_all(exp.Select) if select.args.get("from_") is not None)
    select = next(reads, None)
    if select is None:
        return
    counted = exp.Select(expressions=[count_star()])
    for key in ("with_", "from_", "joins", "where"):
        if select.args.get(key):
            counted.set(key, select.args[key])
    yield Change(
        counted,
        SUMMARIZE + LEAVE_OUT,
        ("only COUNT(*) of the rows that the query reads",),
        loses=True,
    )
