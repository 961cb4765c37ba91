"""What one change of the code may be: one operator, one constant, one condition, one statement less.

A change is text for text, so that a survivor is printed as it would be reviewed. Annotations,
docstrings, assertions and imports are left alone: what they say is not run.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
_NO_ORDER = {"isinstance", "getattr", "cast", "max", "min", "gcd"}
_PLAIN_TYPES = {"bool", "bytes", "dict", "float", "int", "list", "object", "set", "str", "tuple"}


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of a text: lines count from one, columns in bytes from zero, as in syntax trees."""

    line: int
    column: int
    end_line: int
    end_column: int

    def within(self, text: str) -> tuple[int, int]:
        """Where it begins and ends in the encoded text."""
        starts = [0]
        for line in text.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts[self.line - 1] + self.column, starts[self.end_line - 1] + self.end_column


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one file."""

    path: str
    kind: str
    place: Place
    new: str
    lines: tuple[int, int]
    """The lines of the statement that it is in."""

    @property
    def name(self) -> str:
        """The same for the same change of the same text."""
        where = self.place
        return f"{self.path}:{where.line}:{where.column}-{where.end_column}:{self.kind}:{self.new}"

    def applied(self, text: str) -> str:
        """The text with this change."""
        start, end = self.place.within(text)
        whole = text.encode()
        return (whole[:start] + self.new.encode() + whole[end:]).decode()

    def diff(self, text: str) -> str:
        """The change as a reviewer reads it."""
        lines = difflib.unified_diff(
            text.splitlines(keepends=True), self.applied(text).splitlines(keepends=True),
            self.path, f"{self.path} ({self.kind})", n=2,
        )  # fmt: skip
        return "".join(lines)


def changes(path: str, text: str) -> tuple[Change, ...]:
    """Every change of a file that this package knows, in the order of the text."""
    tree = ast.parse(text)
    found = []
    for statement, node, last in _nodes(tree):
        for kind, new in _of(node, last=last):
            if ast.dump(new) == ast.dump(node):
                continue
            place = Place(
                node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0
            )
            lines = (statement.lineno, statement.end_lineno or statement.lineno)
            written = ast.unparse(new)
            if isinstance(new, ast.expr) and not isinstance(new, (ast.Constant, ast.Name)):
                written = f"({written})" if _tight(new) else written
            found.append(Change(path, kind, place, written, lines))
    return tuple(dict.fromkeys(found))


def _tight(node: ast.expr) -> bool:
    """Whether it may mean something else where it stands without brackets."""
    return isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp))


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.expr | ast.stmt, bool]]:
    """Expressions and statements, the statement that holds them, and whether a function ends with it."""
    for holder in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            body = getattr(holder, block, None)
            if isinstance(body, list):
                for statement in body:
                    if not _silent(statement):
                        ends = isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef))
                        yield statement, statement, ends and statement is body[-1]
                        for node in _run(statement):
                            yield statement, node, False


def _silent(statement: ast.AST) -> bool:
    """Nothing that a test could notice is in it."""
    if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
        return True
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
        return True
    return not isinstance(statement, ast.stmt) or isinstance(
        statement, (ast.Assert, ast.Import, ast.ImportFrom, ast.Pass)
    )


def _run(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions of a statement that are run, without those of the statements in it."""
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "returns", "decorator_list", "targets", "target", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield from _within(child)
            elif isinstance(child, ast.arguments):
                for default in [*child.defaults, *child.kw_defaults]:
                    if default is not None:
                        yield from _within(default)
            elif isinstance(child, ast.withitem):
                yield from _within(child.context_expr)


def _within(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _within(child)
        elif isinstance(child, ast.keyword):
            yield from _within(child.value)
        elif isinstance(child, ast.comprehension):
            for part in (child.iter, *child.ifs):
                yield from _within(part)


def _of(node: ast.expr | ast.stmt, *, last: bool) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    if isinstance(node, ast.stmt):
        yield from _of_statement(node, last=last)
    else:
        for of in (_comparison, _arithmetic, _constant, _truth, _call):
            yield from of(node)


def _of_statement(node: ast.stmt, *, last: bool) -> Iterator[tuple[str, ast.stmt]]:
    gone = ast.Pass()
    if isinstance(node, ast.Raise):
        yield "raise left out", gone
    elif isinstance(node, ast.Return) and not last and node.value is not None:
        yield "return left out", gone
    elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
        yield "call left out", gone
    elif isinstance(node, ast.AugAssign):
        other = _ARITHMETIC.get(type(node.op))
        if other is not None:
            new = copy.deepcopy(node)
            new.op = other()
            yield "arithmetic", new


def _comparison(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                new = copy.deepcopy(node)
                new.ops[place] = other()
                yield "comparison", new


def _arithmetic(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.BinOp) or type(node.op) not in _ARITHMETIC or _is_type(node):
        return
    if isinstance(node.op, (ast.Add, ast.Mod)) and _is_text(node):
        return
    new = copy.deepcopy(node)
    new.op = _ARITHMETIC[type(node.op)]()
    yield "arithmetic", new


def _is_text(node: ast.BinOp) -> bool:
    """Texts are put together: no other operator would be run."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes)))
        for side in (node.left, node.right)
    )


def _is_type(node: ast.BinOp) -> bool:
    """``int | None`` and its like."""
    if not isinstance(node.op, ast.BitOr):
        return False
    for side in (node.left, node.right):
        if isinstance(side, ast.Constant) and side.value is None:
            return True
        name = side.id if isinstance(side, ast.Name) else ""
        if name in _PLAIN_TYPES or (name[:1].isupper() and not name.isupper()):
            return True
        if isinstance(side, ast.Subscript):
            return True
    return False


def _constant(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield "truth", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
        if value > 0:
            yield "constant", ast.Constant(value - 1)
    elif isinstance(value, float):
        yield "constant", ast.Constant(value * 2 + 1)


def _truth(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.BoolOp):
        new = copy.deepcopy(node)
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "condition", new
        for place in range(len(node.values)):
            rest = [value for at, value in enumerate(node.values) if at != place]
            fewer = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield "part left out", copy.deepcopy(fewer)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not left out", copy.deepcopy(node.operand)
    elif isinstance(node, ast.IfExp):
        new = copy.deepcopy(node)
        new.body, new.orelse = node.orelse, node.body
        yield "condition", new


def _call(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return
    if any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
        return
    if isinstance(node.func, ast.Name) and node.func.id in _NO_ORDER:
        return
    new = copy.deepcopy(node)
    new.args[0], new.args[1] = node.args[1], node.args[0]
    yield "arguments", new
