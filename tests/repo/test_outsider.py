"""The adversary stays outside: what it shares with dpsql is the public interface, and a few seams."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "adversary"
MODULES = sorted(FOLDER.rglob("*.py"))
SEAMS = {FOLDER / "seams.py", FOLDER / "pinned.py"}
LIBRARIES = {"duckdb", "yaml", "numpy", "pyarrow", "pytest"}
PUBLIC = {"dpsql", "dpsql.connect", "dpsql.Connection", "dpsql.Refused", "dpsql.__file__"}
LONGEST = 400


def strangers(text: str, seams: bool) -> list[str]:
    """Imports that an outsider may not have."""
    found = []
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("import_module", "__import__", "patch")
        ):
            names = [] if seams else [f"called: {ast.unparse(node)[:40]}"]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "dpsql":
            names = [f"dpsql.{node.attr}"]
        found += [name for name in names if not _may(name, seams)]
    return found


def _may(name: str, seams: bool) -> bool:
    first = name.partition(".")[0]
    if first == "dpsql":
        return seams or name in PUBLIC
    if first == "tests":
        return name.startswith("tests.adversary.")
    return first in LIBRARIES or first in sys.stdlib_module_names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_the_adversary_shares_nothing_with_what_it_attacks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert strangers(text, path in SEAMS) == []
    assert text.count("\n") <= LONGEST
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "from dpsql.plan.build import build",
        "import dpsql.sql",
        "from dpsql import pipeline",
        "import dpsql\ndpsql.pipeline.answer()",
        "from support import shop",
        "import support.hostile",
        "from tests.fuzz import draw",
        "import importlib\nimportlib.import_module('dpsql.plan')",
        "__import__('dpsql.sql')",
        "patch('dpsql.release.noise.noise')",
    ],
)
def test_a_stranger_is_noticed(text: str) -> None:
    assert strangers(text, seams=False) != []


def test_seams_are_for_the_inside_of_dpsql_alone() -> None:
    assert strangers("from dpsql.release import noise", seams=True) == []
    assert strangers("from support import shop", seams=True) == ["support.shop"]
