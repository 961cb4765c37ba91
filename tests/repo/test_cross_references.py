"""Dotted names in docstrings (``module.name``) are those of modules, classes, and what they define."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from benchmarks.structure import PACKAGE, ROOT, dotted, modules

PARSED = {dotted(path): module for path, module in modules(ROOT).items()}
_DOTTED = re.compile(r"``([A-Za-z_]\w*(?:\.\w+)+)(?:\(\))?``")
LIBRARIES = frozenset(("asyncio", "functools", "np", "os", "str"))
OTHERS: dict[str, str] = {
    "database.schema.table": "a name in SQL",
    "dpsql.budget": "a table that dpsql answers itself",
    "dpsql.intervals": "a setting",
    "dpsql.remaining": "a function in SQL",
    "endpoint.memory": "a key of the policy",
    "limits.memory": "a key of the policy",
    "str.casefold": "a method of Python's texts",
    "slot.part": "a field of what is passed",
    "synopsis.py": "a file that is not written yet",
}
"""Dotted words that name nothing in the package, each with what it is."""


def _defined(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)


DEFINED = {name: frozenset(_defined(module)) for name, module in PARSED.items()}
FILES = frozenset(path.rpartition("/")[2] for path in modules(ROOT))


def resolves(reference: str) -> bool:
    """Whether a dotted name ends in what a module, or a class of one, defines.

    >>> resolves("dpsql.pipeline.admit"), resolves("pipeline.nothing_of_the_kind")
    (True, False)
    """
    parts = reference.split(".")
    if reference in FILES or parts[0] in LIBRARIES:
        return True
    for cut in range(1, len(parts) + 1):
        head, rest = ".".join(parts[:cut]), parts[cut:]
        homes = (name for name in PARSED if name == head or name.endswith(f".{head}"))
        if any(all(part in DEFINED[name] for part in rest[:2]) for name in homes):
            return True
    owners = (names for names in DEFINED.values() if parts[0] in names)
    return parts[0][0].isupper() and any(parts[1] in names for names in owners)


def _references(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield from _DOTTED.findall(text)


def test_dotted_names_in_docstrings_resolve() -> None:
    found = {(name, r) for name, module in PARSED.items() for r in _references(module)}
    assert len(found) > 100, f"few references in {PACKAGE}"
    assert sorted((n, r) for n, r in found if r not in OTHERS and not resolves(r)) == []


def test_what_names_nothing_is_still_written() -> None:
    written = {r for module in PARSED.values() for r in _references(module)}
    assert set(OTHERS) <= written
