"""Statements are trees until a writer makes text of them: no other layer has SQL of an engine in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dpsql"
BELOW = ("plan", "price", "rewrite", "bound", "declarations")
"""Folders below the engines without SQL text but in what they say to people."""
ABOVE = ("release", "reuse", "service")
"""The same of folders above, which may know a writer."""
WRITER = "release/postprocess_sql.py"
"""The writer of statements over released tables."""
CLIENTS = {"service/session.py", "service/views.py"}
"""Modules with words of the client's SQL: a view is read by a query, an answer is called SELECT."""
UNKNOWING = (*BELOW, "catalog", "checks", "ir", "sql")
"""Folders that know no writer; some have words of the client's SQL, or show people what to write."""
WRITERS = re.compile(r"dpsql\.engines\b")
_SQL = re.compile(
    r"\b(?:SELECT|FROM|WHERE|GROUP BY|ORDER BY|PARTITION BY|HAVING|JOIN|UNION ALL|VALUES|DISTINCT|LIMIT"
    r"|CASE WHEN|NULLS FIRST|NULLS LAST|IS NULL|IS NOT NULL|MATERIALIZED)\b|\b(?:TRY_)?CAST\(|\bOVER \("
)
_TOLD = ("Refusal", "Refused")


def _modules(folders: tuple[str, ...]) -> list[str]:
    files = (path for folder in folders for path in (PACKAGE / folder).rglob("*.py"))
    return sorted(path.relative_to(PACKAGE).as_posix() for path in files)


def _is_told(node: ast.AST) -> bool:
    """Whether what stands in a node is shown to people: a refusal, or what makes one; or it is a docstring."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _TOLD
        case ast.FunctionDef(returns=ast.expr() as returns):
            return any(isinstance(n, ast.Name) and n.id in _TOLD for n in ast.walk(returns))
        case ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False


def _texts(node: ast.AST) -> Iterator[str]:
    """The text constants of a module that nobody is told, parts of f-strings too."""
    if _is_told(node):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from _texts(child)


def _sql(source: str) -> list[str]:
    return [text for text in _texts(ast.parse(source)) if _SQL.search(text)]


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_what_looks_for_text_finds_it() -> None:
    assert _sql('def f(x: str) -> str:\n    "FROM"\n    return f"SELECT {x}"') == ["SELECT "]
    assert _sql('A = {"rows": " IS NOT NULL"}') == [" IS NOT NULL"]
    assert not _sql('def f() -> Refusal:\n    return Refusal("DP1", "WHERE it is")')
    assert not _sql('def f() -> None:\n    raise Refused(_refusal("LEFT JOIN"))')
    assert not _sql('A = Op("is not null", "values from a table")')
    assert WRITERS.match(next(_imports("import dpsql.engines.duckdb.write")))


@pytest.mark.parametrize("name", sorted({*_modules((*BELOW, *ABOVE))} - CLIENTS - {WRITER}))
def test_no_statement_is_composed_of_text(name: str) -> None:
    assert not _sql((PACKAGE / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", _modules(UNKNOWING))
def test_no_writer_is_known(name: str) -> None:
    found = [n for n in _imports((PACKAGE / name).read_text(encoding="utf-8")) if WRITERS.match(n)]
    assert not found
