"""Which tests reach which changes: a call before each statement that is to be changed.

Counting all lines makes tests take three times as long; a few hundred calls cost nothing.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tests.mutation.changes import Change
from tests.mutation.timing import REACHED
from tests.mutation.tree import Tree

MODULE = f"""import os

seen = set()


def reached(key):
    if key not in seen:
        seen.add(key)
        with open(os.environ["{REACHED}"], "a") as file:
            file.write(f"{{key}}\\n")
"""
"""A process that a test starts writes to the same file."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def insert(tree: Tree, drawn: Sequence[Change]) -> None:
    """Calls in a copy of the tree, with the place of each change in the list."""
    (tree.folder / "dpsql_reached.py").write_text(MODULE)
    files: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for key, change in enumerate(drawn):
        files[change.path][change.lines].append(key)
    for path, statements in files.items():
        text = tree.text(path)
        (tree.folder / path).write_text(probed(text, statements), "utf-8")


def probed(text: str, statements: Mapping[tuple[int, int], Sequence[int]]) -> str:
    """A file with a call before each statement, known by its first and last line.

    What is run when a module is imported is reached by whatever runs a function of the module.
    """
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    inside = {id(n) for function in functions for part in function.body for n in ast.walk(part)}
    left = dict(statements)
    for holder in list(ast.walk(tree)):
        for block in ("body", "orelse", "finalbody"):
            body = getattr(holder, block, None)
            if isinstance(body, list):
                for statement in [s for s in body if id(s) in inside]:
                    lines = (statement.lineno, statement.end_lineno)
                    body[(at := body.index(statement)) : at] = _calls(left.pop(lines, ()))
    for keys in left.values():
        for function in functions:
            has_words = ast.get_docstring(function, clean=False) is not None
            function.body[int(has_words) : int(has_words)] = _calls(keys)
    return ast.unparse(ast.fix_missing_locations(tree))


def _calls(keys: Sequence[int]) -> list[ast.stmt]:
    return [
        s for key in keys for s in ast.parse(f"__import__('dpsql_reached').reached({key})").body
    ]
