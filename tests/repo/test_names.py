"""Public names: a function's is a verb or a noun, and no two modules of a package define the same one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from benchmarks.structure import ROOT, modules, participles

PARSED = modules(ROOT)
KEPT: dict[str, str] = {
    "apply": "a verb: what each bounding strategy and each function record is asked for",
    "multiply": "a verb",
}
"""Words that only look like participles, or that the field uses, each with the reason; at most 20."""
ONE_EACH: dict[str, str] = {
    "WRITERS": "each module of an engine's functions lists how they are written under this name",
    "RECORDS": "each module of the catalog lists its records under this name",
    "apply": "each bounding strategy is a module with this function",
    "check": "each rule is a module with this function",
    "lower": "each aggregate is a module with this function",
    "run": "each command is a module with this function",
}
"""Names that every module of a kind defines, so that a registry can call them all alike."""


def test_public_functions_are_no_bare_participles() -> None:
    found = {entry.rpartition(" ")[2] for entry in participles(PARSED)}
    assert found <= set(KEPT)
    assert len(KEPT) <= 20


def _public(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.Assign(targets=targets):
                yield from (t.id for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_no_public_name_is_defined_twice_in_a_package() -> None:
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path, module in PARSED.items():
        for name in _public(module):
            variable = len(name) == 1  # of a type: each module has its own
            if not name.startswith("_") and not variable and name not in ONE_EACH:
                places[str(PurePosixPath(path).parent), name].add(path)
    assert {name: sorted(paths) for name, paths in places.items() if len(paths) > 1} == {}
